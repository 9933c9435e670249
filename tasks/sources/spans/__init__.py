"""Traces from spans: what a span is, what its attributes say, and the one assembly that every store of spans uses."""

from tasks.sources.spans.assembly import assemble
from tasks.sources.spans.piles import batches, traces
from tasks.sources.spans.span import Assembled, Span, SpanSettings

__all__ = ["Assembled", "Span", "SpanSettings", "assemble", "batches", "traces"]
