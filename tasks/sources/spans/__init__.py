"""Traces from spans: what a span is, what its attributes say, and the one assembly that every store of spans uses."""

from tasks.sources.spans.assembly import Assembled, Span, SpanSettings, assemble, batches, traces

__all__ = ["Assembled", "Span", "SpanSettings", "assemble", "batches", "traces"]
