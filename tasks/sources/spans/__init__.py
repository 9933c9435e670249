"""Traces from spans: what a span is, what its attributes say, and the one assembly that every store of spans uses."""

from tasks.sources.spans.assembly import assemble
from tasks.sources.spans.piles import batches, first, traces
from tasks.sources.spans.span import Assembled, Span, SpanSettings, SpanSource

__all__ = ["Assembled", "Span", "SpanSettings", "SpanSource", "assemble", "batches", "first", "traces"]
