"""Traces from spans: the type `Span`, parsers of span attributes, and the assembly that all span sources share."""

from tasks.sources.spans.assembly import assemble
from tasks.sources.spans.piles import batches, first, traces
from tasks.sources.spans.span import Assembled, Span, SpanSettings, SpanSource

__all__ = ["Assembled", "Span", "SpanSettings", "SpanSource", "assemble", "batches", "first", "traces"]
