"""Traces from spans: the one assembly that every store of spans uses.

A store's module turns what it stores into `Span`; here they become traces. The question is the input of the root, and
the answer its output. The chunks are what the retrievers found before the answering call of a model, and, where its
prompt was logged, what stands in the prompt, in the prompt's order. Whatever is wrong with the spans of one trace
rejects that trace only. Left out: where
spans come from, the names that stores give to their attributes, and the forms of values (`texts.py`).
"""

import pickle
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import IO, Annotated, Any, Literal
from zlib import crc32

import msgspec
from pydantic import Field

from tasks.core.config import Settings
from tasks.core.types import Feedback, Trace
from tasks.sources import Batch, Reason, Reject
from tasks.sources.reading.rejects import NAME_CHARS, nul_path, reject, too_large, undecodable
from tasks.sources.reading.rows import to_table
from tasks.sources.reading.values import cut_off, scalar
from tasks.sources.spans.texts import (
    ANSWER,
    ASSISTANT,
    QUESTION,
    USER,
    Document,
    Message,
    SpanKind,
    documents_of,
    messages_of,
    strings,
    text_of,
)

PILES = 64  # that spans are sorted into by trace, so that one pile fits into memory
PILE_BYTES = 1 << 20  # of a pile that are held in memory; the rest lies in a temporary file
BATCH_TRACES = 1_000
PREFIX = 120  # characters by which a passage that was cut off in the prompt is found
SHORT = 10  # characters: a shorter passage may stand in a prompt by chance
HEAD = 12  # characters by which the beginning of one is found at the end of a message
CONTEXT_CHARS = 20  # a chunk this long in a question shows that it is a prompt
UNKNOWN = "unknown"

_OLDEST = datetime(1, 1, 1, tzinfo=UTC)
_NUMBERED = re.compile(r"^\s*(\[1\]|context\b.*:\s*$|documents?\b.*:\s*$)", re.IGNORECASE | re.MULTILINE)
_PARENTS = ("doc_id", "document_id", "source", "file_name", "file_path", "url")


@dataclass(frozen=True, slots=True)
class Span:
    """One step of a trace, with the names of its store's attributes taken off.

    Attributes:
        input: Text, or any JSON value that holds one; JSON that is written as text will do.
        output: The same. A retriever's or tool's output may hold documents.
        documents: What a retriever found or a reranker kept, in its order.
        messages: The prompt of a call of a model.
        tags: Labels of the root; those of other spans are not kept.
        feedback: Where users rated this span or its trace.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    kind: SpanKind = "chain"
    start: datetime | None = None
    end: datetime | None = None
    error: bool = False
    input: Any = None
    output: Any = None
    documents: tuple[Document, ...] = ()
    messages: tuple[Message, ...] = ()
    model: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    prompt_version: str | None = None
    session: str | None = None
    app: str | None = None
    environment: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    feedback: Feedback | None = None


class SpanSettings(Settings):
    """How spans become traces: a part of the settings of every store of spans.

    Attributes:
        app: Name of the application; otherwise the name that the spans give it.
        generator: Name of the model where no span names one.
        root: Name of the span that holds question and answer; otherwise the span without a parent.
        question: Keys that hold the question in the input of the root, tried before the usual ones.
        answer: The same for the answer, in its output.
        kinds: Kinds of spans by their name, where the application logged another one or none.
        tool: Name of the tool whose output holds the chunks where no retriever has any.
        chunk_id: Keys of a document's metadata that hold its id, tried in this order where the document has none.
        prompt: `follow`: where the prompt was logged, the chunks are those that stand in it, in its order. `ignore`:
            they are what the retrievers found.
    """

    app: Annotated[str, Field(min_length=1)] | None = None
    generator: Annotated[str, Field(min_length=1)] | None = None
    root: str | None = None
    question: list[str] = Field(default_factory=list)
    answer: list[str] = Field(default_factory=list)
    kinds: dict[str, SpanKind] = Field(default_factory=dict)
    tool: str | None = None
    chunk_id: list[str] = Field(default_factory=lambda: ["chunk_id", "id", "_id", "node_id", "uuid"])
    prompt: Literal["follow", "ignore"] = "follow"


@dataclass(frozen=True, slots=True)
class Assembled:
    """A trace, or why there is none.

    Attributes:
        line: Number of the trace in its file or day, from 1.
        found: Where each field was found, such as `{"question": "root.input"}`. Names of spans, never their text.
    """

    line: int
    trace: Trace | None = None
    reject: Reject | None = None
    found: dict[str, str] = field(default_factory=dict)


class _RefusedError(Exception):
    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason: Reason = reason


def assemble(spans: Sequence[Span], settings: SpanSettings, line: int = 1) -> Assembled:
    """The trace of some spans, in any order, or a reject. Never raises for what is in them.

    Args:
        spans: All spans of one trace, at least one.
        line: Number of the trace in its file or day, from 1.
    """
    found: dict[str, str] = {}
    start = min((s.start for s in spans if s.start), default=None)
    trace_id = spans[0].trace_id.encode(errors="replace").decode()
    about = msgspec.json.encode({"trace_id": trace_id, "timestamp": start, "spans": len(spans)})
    try:
        raw = msgspec.json.encode(_fields(_Spans(spans, settings), found))
    except _RefusedError as refused:
        outcome: Trace | Reject = reject(line, about, refused.reason, str(refused))
    except RecursionError:
        outcome = reject(line, about, "malformed_span", "an input or output is nested too deeply")
    except UnicodeEncodeError:
        outcome = reject(line, about, "invalid_utf8", "half a surrogate pair in a text")
    except ValueError:  # Python writes no number of more than 4,300 digits
        outcome = reject(line, about, "malformed_span", "a number is too long")
    else:
        outcome = _checked(line, raw)
    trace, refused_as = (None, outcome) if isinstance(outcome, Reject) else (outcome, None)
    return Assembled(line, trace, refused_as, found)


def _checked(line: int, raw: bytes) -> Trace | Reject:
    """A trace as JSON, held to the trace format."""
    try:
        trace = msgspec.json.decode(raw, type=Trace)
    except msgspec.DecodeError as exc:
        return undecodable(line, raw, exc)
    if path := b"\\u0000" in raw and nul_path(msgspec.to_builtins(trace)):
        return reject(line, raw, "nul_character", f"`str` with a NUL character - at `{path}`")
    if wide := too_large(trace):
        return reject(line, raw, "out_of_range", wide)
    return msgspec.structs.replace(trace, timestamp=trace.timestamp.astimezone(UTC))


def batches(
    items: Iterable[Span | Reject], settings: SpanSettings, keep: Callable[[Sequence[Span]], bool] = bool
) -> Iterator[Batch]:
    """The same as `traces`, as a source hands them out."""
    found = traces(items, settings, keep)
    while group := list(islice(found, BATCH_TRACES)):
        good = [(a.line, a.trace) for a in group if a.trace]
        rejects = [a.reject for a in group if a.reject]
        yield Batch(to_table([t for _, t in good], [n for n, _ in good]), rejects, len(group))


def traces(
    items: Iterable[Span | Reject], settings: SpanSettings, keep: Callable[[Sequence[Span]], bool] = bool
) -> Iterator[Assembled]:
    """The traces of spans in any order, in bounded memory: most spans wait in temporary files.

    Args:
        items: Spans; and rejects of what is no span, which are handed on with a new line number.
        keep: Whether these spans of one trace are wanted; the others are left out without a reject.
    """
    line = 0
    with ExitStack() as stack:
        piles = [stack.enter_context(SpooledTemporaryFile(max_size=PILE_BYTES)) for _ in range(PILES)]
        for item in items:
            refused = _put(item, piles) if isinstance(item, Span) else item
            if refused:
                line += 1
                yield Assembled(line, reject=replace(refused, line=line))
        for pile in piles:
            groups: dict[str, list[Span]] = defaultdict(list)
            end = pile.tell()
            pile.seek(0)
            while pile.tell() < end:
                span = pickle.load(pile)  # noqa: S301 - of a file that was written above
                groups[span.trace_id].append(span)
            for spans in (groups[i] for i in sorted(groups)):
                if keep(spans):
                    line += 1
                    yield assemble(spans, settings, line)


def _put(span: Span, piles: Sequence[IO[bytes]]) -> Reject | None:
    """Lay a span on the pile of its trace; a reject if that can't be."""
    try:
        data = pickle.dumps(span)
    except RecursionError:
        return Reject(1, span.trace_id, "malformed_span", "an input or output is nested too deeply", b"")
    piles[crc32(span.trace_id.encode(errors="surrogatepass")) % PILES].write(data)
    return None


class _Spans:
    """The spans of one trace, each once, by start; with their parents and children."""

    def __init__(self, spans: Sequence[Span], settings: SpanSettings) -> None:
        self.settings = settings
        by_id: dict[str, Span] = {}
        for span in spans:
            kind = settings.kinds.get(span.name) or _named_kind(span)
            twin = by_id.get(span.span_id)  # exporters repeat what was not confirmed
            fresh = span if kind == span.kind else replace(span, kind=kind)
            by_id[span.span_id] = fresh if twin is None else min(fresh, twin, key=_completeness)
        self.all = sorted(by_id.values(), key=lambda s: (_start(s), s.span_id))
        self._by_id = by_id
        self.children: dict[str, list[Span]] = defaultdict(list)
        for span in self.all:
            if span.parent_id:
                self.children[span.parent_id].append(span)
        self.documents = {s.span_id: _documents(s, settings) for s in self.all}
        self.root = self._find_root()

    def parent(self, span: Span) -> Span | None:
        return self._by_id.get(span.parent_id or "")

    def ancestors(self, span: Span) -> Iterator[Span]:
        """Each once, where parents form a cycle."""
        seen = {span.span_id}
        above = self.parent(span)
        while above and above.span_id not in seen:
            seen.add(above.span_id)
            yield above
            above = self.parent(above)

    def below(self, span: Span) -> Iterator[Span]:
        """The span and what it called, level by level."""
        seen, level = {span.span_id}, [span]
        while level:
            yield from level
            level = [c for s in level for c in self.children.get(s.span_id, ()) if c.span_id not in seen]
            seen |= {c.span_id for c in level}

    def _find_root(self) -> Span:
        if name := self.settings.root:
            named = [s for s in self.all if s.name == name]
            if not named:
                raise _RefusedError("no_root", f"none of {len(self.all)} spans has the name that `root` gives")
            return named[0]
        tops = [s for s in self.all if not s.parent_id]
        if not tops:
            tops = [s for s in self.all if self.parent(s) is None]
            if not tops:
                raise _RefusedError("no_root", f"the parents of {len(self.all)} spans form a cycle")
            tops = [s for s in tops if s.kind in ("chain", "agent", "tool", "other")] or tops
            if len(tops) == 1 and tops[0].kind not in ("chain", "agent", "tool", "other"):
                raise _RefusedError("no_root", "the span that started the trace is missing")
        if len(tops) > 1:
            whole = [s for s in tops if _question_in(s, self.settings) and _answer_in(s, self.settings)]
            if len(whole) != 1:
                raise _RefusedError("several_roots", f"{len(tops)} spans have no parent; name one in `root`")
            tops = whole
        return tops[0]


def _fields(spans: _Spans, found: dict[str, str]) -> dict[str, object]:
    """The trace as builtins; what was found where goes into `found`."""
    settings, root = spans.settings, spans.root
    if root.start is None:
        raise _RefusedError("bad_timestamp", "the root has no start")
    if root.kind in ("retriever", "reranker", "embedding"):
        raise _RefusedError("no_answer", f"the trace is of a {root.kind} only")
    asked = _asked(spans)
    answer, model = _answer(spans, asked, found)
    documents, used = _chunks(spans, asked, model, found)
    question = _question(spans, asked, model, documents, found)
    calls = [s for s in ([model] if model else []) + spans.all if s.model]
    generator, found["generator"] = next(
        ((s.model, f"model of {_name(s)}") for s in calls), (settings.generator or UNKNOWN, "settings")
    )
    near = [root, asked, *([model] if model else []), *spans.all]
    app = settings.app or _first(near, "app") or UNKNOWN
    latency = (root.end - root.start) / timedelta(milliseconds=1) if root.end else None
    return {
        "trace_id": root.trace_id,
        "timestamp": root.start,
        "app": app,
        "generator": generator,
        "question": question,
        "answer": answer,
        "chunks": _named_chunks(documents, settings),
        "environment": _first(near, "environment"),
        "session": _first(near, "session"),
        "prompt_version": _first(near, "prompt_version"),
        "retriever": "+".join(dict.fromkeys(s.name for s in used if s.name)) or None,
        "latency_ms": latency if latency is not None and latency >= 0 else None,
        "tokens_in": _count(model.tokens_in if model else None),
        "tokens_out": _count(model.tokens_out if model else None),
        "tags": root.tags or asked.tags,
        "feedback": root.feedback or _first(near, "feedback"),
    }


def _asked(spans: _Spans) -> Span:
    """The span that holds the question: the root, or the first below it that has an input and asks a model."""
    for span in spans.below(spans.root):
        if span is spans.root or span.kind in ("chain", "agent", "other"):
            asks = span is spans.root or any(s.kind == "llm" for s in spans.below(span))
            if asks and _question_in(span, spans.settings):
                return span
    return spans.root


def _question_in(span: Span, settings: SpanSettings) -> str | None:
    return text_of(span.input, [*settings.question, *QUESTION], USER)


def _answer_in(span: Span, settings: SpanSettings) -> str | None:
    return text_of(span.output, [*settings.answer, *ANSWER], ASSISTANT)


def _answer(spans: _Spans, asked: Span, found: dict[str, str]) -> tuple[str, Span | None]:
    """The answer, and the call of a model that wrote it."""
    calls = [s for s in spans.all if s.kind == "llm"]
    for holder in (spans.root, asked):
        text = _answer_in(holder, spans.settings)
        if text is not None and text.strip():
            found["answer"] = "root.output" if holder is spans.root else f"output of {_name(holder)}"
            written = [s for s in calls if (_answer_in(s, spans.settings) or "").strip() == text.strip()]
            wrote = written or calls
            return text, wrote[-1] if wrote else None
    outer = [s for s in calls if not any(a.kind == "llm" for a in spans.ancestors(s))]
    if not outer:
        raise _RefusedError("no_answer", "neither the root nor a call of a model has an output")
    if spans.root.error:
        raise _RefusedError("no_answer", "the root failed")
    inner = [s for s in spans.below(outer[-1]) if s.kind == "llm"]
    written = [s for s in inner if (_answer_in(s, spans.settings) or "").strip()]
    if not written:
        problem = "failed" if outer[-1].error else "has no output"
        raise _RefusedError("no_answer", f"the last call of a model {problem}")
    found["answer"] = f"output of {_name(written[-1])}"
    return _answer_in(written[-1], spans.settings) or "", written[-1]


def _question(
    spans: _Spans, asked: Span, model: Span | None, documents: Sequence[Document], found: dict[str, str]
) -> str:
    """What the user typed, never a prompt that holds the context."""
    question = None if asked.kind == "llm" else _question_in(asked, spans.settings)
    found["question"] = "root.input" if asked is spans.root else f"input of {_name(asked)}"
    if question is None and model is not None:
        typed = [m.text for m in model.messages if m.role in USER]
        question = typed[-1] if typed else _question_in(model, spans.settings)
        found["question"] = f"last message of {_name(model)}"
        if question and _NUMBERED.search(question):
            raise _RefusedError("question_holds_context", "only the prompt holds the question, among other things")
    if question is None or not question.strip():
        raise _RefusedError("no_question", "neither the root nor a span below it has an input")
    flat = _flat(question)
    held = sum(len(text := _flat(d.text)) >= CONTEXT_CHARS and text in flat for d in documents)
    if held > 1 or (held and _NUMBERED.search(question)):  # a user may quote one passage
        raise _RefusedError("question_holds_context", f"{found['question']} holds the text of a chunk")
    return question


def _chunks(spans: _Spans, asked: Span, model: Span | None, found: dict[str, str]) -> tuple[list[Document], list[Span]]:
    """The passages that the generator saw, in its order, and the spans that they are from."""
    settings = spans.settings
    searches = [s for s in spans.all if s.kind in ("retriever", "reranker") and spans.documents[s.span_id]]
    prompt = [_flat(m.text) for m in _messages(model)] if model and settings.prompt == "follow" else []
    before = _before(spans, searches, model, prompt)
    pool = [d for s in before for d in spans.documents[s.span_id]]
    rerankers = sorted((s for s in before if s.kind == "reranker"), key=lambda s: (s.end or _start(s), s.span_id))
    if rerankers:
        used = rerankers[-1:]
    else:
        with_documents = {s.span_id for s in before}
        used = [s for s in before if not any(a.span_id in with_documents for a in spans.ancestors(s))]
    if not before and settings.tool:
        used = [s for s in spans.all if s.name == settings.tool and spans.documents[s.span_id]]
        pool = [d for s in used for d in spans.documents[s.span_id]]
    lists = [[_with_text(d, pool) for d in spans.documents[s.span_id]] for s in used]
    chosen = _union(lists)
    if not chosen:
        found["chunks"] = "none"
        return [], []
    if not any(d.text.strip() for d in chosen):
        raise _RefusedError(
            "no_chunk_text", f"none of {len(chosen)} documents has a text: log it, or use a jsonl source"
        )
    found["chunks"] = ", ".join(dict.fromkeys(map(_name, used)))
    copies = Counter(_flat(d.text) for documents in lists for d in documents)
    queries = [text for s in (asked, *searches) if (text := _question_in(s, settings)) and text.strip()]
    seen = _in_prompt(chosen, pool, prompt, copies, list(map(_flat, queries)))
    if seen is None:
        found["chunks"] += ", not found in the prompt" if prompt else ""
        return chosen, used
    found["chunks"] += f", {len(seen)} of {len(chosen)} in the order of the prompt of {_name(model)}"
    return seen, used


def _before(spans: _Spans, searches: Sequence[Span], model: Span | None, prompt: Sequence[str]) -> list[Span]:
    """The searches whose documents the answering call can have seen."""
    if model is None or model.start is None:
        return list(searches)
    before = [s for s in searches if (s.end or _start(s)) <= model.start]
    if before or not searches:
        return before
    during = [s for s in searches if _start(s) < (model.end or model.start)]
    if during:
        return during
    texts = [d for s in searches for d in spans.documents[s.span_id]]
    if _in_prompt(texts, texts, prompt, {}, []):
        return list(searches)
    for span in searches:
        above = spans.parent(span)
        if above and above.end and (_start(span) > above.end or (above.start and _start(span) < above.start)):
            raise _RefusedError("clocks_disagree", f"{_name(span)} runs outside the time of its parent")
    return []


def _in_prompt(
    chosen: Sequence[Document],
    pool: Sequence[Document],
    prompt: Sequence[str],
    copies: Mapping[str, int],
    queries: Sequence[str],
) -> list[Document] | None:
    """The passages that stand in the prompt, in its order; None where it can't tell.

    A passage counts in the last message that holds it. The prompt can only tell where at least one stands there
    unchanged: then the application copies texts, and what is missing was left out. But the log may have cut the prompt
    off: what is missing then comes last. Passages without a text or with a short one keep their places where the order
    is that of the search.

    Args:
        chosen: What the prompt should hold; `pool` is everything that was found.
        copies: How often each text was found: a copy in the prompt takes a number too.
        queries: What was asked; a prompt without any of them was cut off, or says nothing of it.
    """
    by_text: dict[str, list[Document]] = defaultdict(list)
    for document in chosen:
        by_text[_flat(document.text)].append(document)
    for document in pool:
        by_text.setdefault(_flat(document.text), [document])
    by_text = {text: same for text, same in by_text.items() if len(text) >= SHORT}
    taken: list[list[tuple[int, int]]] = [[] for _ in prompt]
    places: dict[str, list[tuple[int, int]]] = {}
    longest_first = sorted(by_text, key=lambda t: (-len(t), t))
    for text in longest_first:
        _place(text, text, max(1, copies.get(text, 1)), prompt, taken, places)
    if not places:
        return None
    cut = [text for text in by_text if text not in places and any(_ends_inside(piece, text) for piece in prompt)]
    for text in longest_first:
        if text not in places and len(text) > PREFIX:
            _place(text, text[:PREFIX], 1, prompt, taken, places)
    seen: list[Document] = []
    for _, text, n in sorted((place, text, n) for text, found in places.items() for n, place in enumerate(found)):
        same = by_text[text]
        seen.append(same[min(n, len(same) - 1)])
    if cut or not any(query in piece for query in queries for piece in prompt):
        seen += [d for d in chosen if (text := _flat(d.text)) in by_text and text not in places]
    there = set(map(id, seen))
    short = [d for d in chosen if _flat(d.text) not in by_text]
    kept = [d for d in chosen if id(d) in there or d in short]
    if [id(d) for d in kept if d not in short] == list(map(id, seen)):
        return kept
    return seen + [d for d in short if d.text.strip()]


def _ends_inside(piece: str, text: str) -> bool:
    """Whether a message ends in the middle of a passage."""
    at = piece.rfind(text[:HEAD])
    return at >= 0 and len(piece) - at < len(text) and text.startswith(piece[at:])


def _place(
    text: str,
    wanted: str,
    most: int,
    prompt: Sequence[str],
    taken: list[list[tuple[int, int]]],
    places: dict[str, list[tuple[int, int]]],
) -> None:
    """Note where a text, or what is left of it, stands in the last message that holds it."""
    for n in range(len(prompt) - 1, -1, -1):
        if starts := _free(prompt[n], wanted, taken[n], most):
            places[text] = [(n, start) for start in starts]
            return


def _free(prompt: str, text: str, taken: list[tuple[int, int]], most: int) -> list[int]:
    """Where a text starts in the prompt, outside of longer texts; marks these places as taken."""
    starts: list[int] = []
    at = prompt.find(text)
    while at >= 0 and len(starts) < most:
        end = at + len(text)
        n = bisect_left(taken, (at, end))
        overlaps = (n < len(taken) and taken[n][0] < end) or (n > 0 and taken[n - 1][1] > at)
        if not overlaps:
            taken.insert(n, (at, end))
            starts.append(at)
        at = prompt.find(text, at + 1 if overlaps else end)
    return starts


def _union(lists: Sequence[Sequence[Document]]) -> list[Document]:
    """Documents of several searches: one that an earlier search found is left out, copies within a search stay."""
    union: list[Document] = []
    for documents in lists:
        union += [d for d in documents if not any(_same(d, other) for other in union)]
    return union


def _same(one: Document, other: Document) -> bool:
    if one.id is not None and other.id is not None:
        return one.id == other.id and (one.text == other.text or not (one.text and other.text))
    return bool(one.text) and one.text == other.text


def _with_text(document: Document, pool: Sequence[Document]) -> Document:
    """A reranker may log ids only: text and metadata then come from the retriever."""
    if document.text or document.id is None:
        return document
    source = next((d for d in pool if d.id == document.id and d.text), None)
    return document if source is None else replace(document, text=source.text, metadata=source.metadata)


def _named_chunks(documents: Sequence[Document], settings: SpanSettings) -> list[dict[str, object]]:
    """Chunks with ids that differ: the document's own, one of its metadata, or its position."""
    chunks: list[dict[str, object]] = []
    taken: set[str] = set()
    for n, document in enumerate(documents, 1):
        data = document.metadata
        own = document.id or next((i for key in settings.chunk_id if (i := scalar(data.get(key)))), None) or str(n)
        name, copy = own, 1
        while name in taken:
            copy += 1
            name = f"{own}~{copy}"
        taken.add(name)
        parent = next((i for key in _PARENTS if (i := scalar(data.get(key)))), None)
        chunks.append({"chunk_id": name, "text": document.text, "doc_id": parent, "title": scalar(data.get("title")),
                       "rank": n, "retrieval_score": document.score})  # fmt: skip
    return chunks


def _messages(span: Span) -> tuple[Message, ...]:
    return span.messages or messages_of(span.input) or tuple(Message("", text) for text in strings(span.input))


def _documents(span: Span, settings: SpanSettings) -> tuple[Document, ...]:
    """What a search or the named tool found; ids that only its output has are added."""
    if span.kind not in ("retriever", "reranker") and span.name != settings.tool:
        return ()
    logged = documents_of(span.output)
    if not logged and not span.documents and cut_off(span.output):
        raise _RefusedError("malformed_span", f"the documents of {_name(span)} were cut off when they were logged")
    if not span.documents:
        return logged
    if len(logged) != len(span.documents):
        return span.documents
    pairs = zip(span.documents, logged, strict=True)
    return tuple(replace(d, id=other.id) if d.id is None and d.text == other.text else d for d, other in pairs)


def _completeness(span: Span) -> tuple[bool, bool, str]:
    """Least for the most complete of several states of a span."""
    return span.end is None, span.output is None, repr(span)


def _named_kind(span: Span) -> SpanKind:
    """Few libraries say that a step is a reranker; most name it so."""
    named = "rerank" in span.name.lower() and span.parent_id and span.kind in ("chain", "other", "tool", "retriever")
    return "reranker" if named and (span.documents or documents_of(span.output)) else span.kind


def _start(span: Span) -> datetime:
    return span.start or _OLDEST


def _name(span: Span | None) -> str:
    name = "".join(c if c.isprintable() else "?" for c in span.name[:NAME_CHARS]) if span else ""
    return f"{span.kind} {name!r}" if span and name else f"{span.kind if span else 'span'}"


def _first(spans: Sequence[Span], attribute: str) -> Any:  # noqa: ANN401 - of whatever type the attribute is
    return next((value for s in spans if (value := getattr(s, attribute))), None)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _count(value: int | None) -> int | None:
    return value if value is not None and value >= 0 else None
