"""The tree of spans of one trace, and its root."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tasks.sources.reading.values import cut_off
from tasks.sources.spans.span import RefusedError, Span, SpanSettings, name_of, start_of
from tasks.sources.spans.texts import ANSWER, ASSISTANT, QUESTION, USER, Document, SpanKind, documents_of, text_of


class Spans:
    """The spans of one trace, sorted by start and without duplicates, with their parents and children."""

    def __init__(self, spans: Sequence[Span], settings: SpanSettings) -> None:
        self.settings = settings
        by_id: dict[str, Span] = {}
        for span in spans:
            kind = settings.kinds.get(span.name) or _named_kind(span)
            twin = by_id.get(span.span_id)  # exporters send a span again if the server did not confirm it
            fresh = span if kind == span.kind else replace(span, kind=kind)
            by_id[span.span_id] = fresh if twin is None else min(fresh, twin, key=_completeness)
        self.all = sorted(by_id.values(), key=lambda s: (start_of(s), s.span_id))
        self._by_id = by_id
        self.children: dict[str, list[Span]] = defaultdict(list)
        for span in self.all:
            if span.parent_id:
                self.children[span.parent_id].append(span)
        self.documents = {s.span_id: _documents(s, settings) for s in self.all}
        self.root = self._find_root()

    def parent(self, span: Span) -> Span | None:
        """Return the span that called this one; None if it is missing."""
        return self._by_id.get(span.parent_id or "")

    def ancestors(self, span: Span) -> Iterator[Span]:
        """Yield the callers of a span, nearest first. Stops at a cycle of parents."""
        seen = {span.span_id}
        above = self.parent(span)
        while above and above.span_id not in seen:
            seen.add(above.span_id)
            yield above
            above = self.parent(above)

    def below(self, span: Span) -> Iterator[Span]:
        """Yield the span and its descendants, level by level."""
        seen, level = {span.span_id}, [span]
        while level:
            yield from level
            level = [c for s in level for c in self.children.get(s.span_id, ()) if c.span_id not in seen]
            seen |= {c.span_id for c in level}

    def _find_root(self) -> Span:
        if name := self.settings.root:
            named = [s for s in self.all if s.name == name]
            if not named:
                raise RefusedError("no_root", f"none of {len(self.all)} spans has the name that `root` gives")
            return named[0]
        tops = [s for s in self.all if not s.parent_id]
        if not tops:
            tops = [s for s in self.all if self.parent(s) is None]
            if not tops:
                raise RefusedError("no_root", f"the parents of {len(self.all)} spans form a cycle")
            tops = [s for s in tops if s.kind in ("chain", "agent", "tool", "other")] or tops
            if len(tops) == 1 and tops[0].kind not in ("chain", "agent", "tool", "other"):
                raise RefusedError("no_root", "the span that started the trace is missing")
        if len(tops) > 1:
            whole = [s for s in tops if question_in(s, self.settings) and answer_in(s, self.settings)]
            if len(whole) != 1:
                raise RefusedError("several_roots", f"{len(tops)} spans have no parent; name one in `root`")
            tops = whole
        return tops[0]


def question_in(span: Span, settings: SpanSettings) -> str | None:
    """Return the user's question from a span's input."""
    return text_of(span.input, [*settings.question, *QUESTION], USER)


def answer_in(span: Span, settings: SpanSettings) -> str | None:
    """Return the assistant's answer from a span's output."""
    return text_of(span.output, [*settings.answer, *ANSWER], ASSISTANT)


def _documents(span: Span, settings: SpanSettings) -> tuple[Document, ...]:
    """Return the documents of a search or of the configured tool. Missing ids are taken from the output."""
    if span.kind not in ("retriever", "reranker") and span.name != settings.tool:
        return ()
    logged = documents_of(span.output)
    if not logged and not span.documents and cut_off(span.output):
        raise RefusedError("malformed_span", f"the documents of {name_of(span)} were cut off when they were logged")
    if not span.documents:
        return logged
    if len(logged) != len(span.documents):
        return span.documents
    pairs = zip(span.documents, logged, strict=True)
    return tuple(replace(d, id=other.id) if d.id is None and d.text == other.text else d for d, other in pairs)


def _completeness(span: Span) -> tuple[bool, bool, str]:
    """Sort key for several states of a span: the most complete state comes first."""
    return span.end is None, span.output is None, repr(span)


def _named_kind(span: Span) -> SpanKind:
    """Return the span's kind. Few libraries log the kind `reranker`, so it is also detected by the span's name."""
    named = "rerank" in span.name.lower() and span.parent_id and span.kind in ("chain", "other", "tool", "retriever")
    return "reranker" if named and (span.documents or documents_of(span.output)) else span.kind
