"""Traces from spans: the one assembly that every store of spans uses.

Each store's module converts its records to `Span`, and this module builds traces from them. The question is the root's
input, and the answer is the root's output. The chunks are the documents that retrievers returned before the model call
that wrote the answer. If the prompt of that call was logged, only chunks that occur in it are kept, in the prompt's
order. An error in the spans of a trace rejects only that trace. `texts.py` parses inputs and outputs.
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from tasks.core.types import Trace
from tasks.sources import Reject
from tasks.sources.reading.rejects import checked, reject
from tasks.sources.spans.chunks import chunks_of, named_chunks
from tasks.sources.spans.prompt import flat
from tasks.sources.spans.span import Assembled, Found, RefusedError, Span, SpanSettings, name_of
from tasks.sources.spans.texts import USER, Document
from tasks.sources.spans.tree import Spans, answer_in, question_in

CONTEXT_CHARS = 20  # a chunk of this length or more in a question shows that the question is a prompt
UNKNOWN = "unknown"

_NUMBERED = re.compile(r"^\s*(\[1\]|context\b.*:\s*$|documents?\b.*:\s*$)", re.IGNORECASE | re.MULTILINE)


def assemble(spans: Sequence[Span], settings: SpanSettings, line: int = 1) -> Assembled:
    """Build a trace from its spans, or return a reject. Invalid spans never raise an error.

    Args:
        spans: All spans of one trace in any order, at least one.
        line: Number of the trace in its file or day, from 1.
    """
    found = Found()
    start = min((s.start for s in spans if s.start), default=None)
    trace_id = spans[0].trace_id.encode(errors="replace").decode()
    about = msgspec.json.encode({"trace_id": trace_id, "timestamp": start, "spans": len(spans)})
    try:
        raw = msgspec.json.encode(_fields(Spans(spans, settings), found))
    except RefusedError as refused:
        outcome: Trace | Reject = reject(line, about, refused.reason, str(refused))
    except RecursionError:
        outcome = reject(line, about, "malformed_span", "an input or output is nested too deeply")
    except UnicodeEncodeError:
        outcome = reject(line, about, "invalid_utf8", "half a surrogate pair in a text")
    except ValueError:  # Python converts no integer of more than 4,300 digits
        outcome = reject(line, about, "malformed_span", "a number is too long")
    else:
        outcome = checked(line, raw)
    trace, refused_as = (None, outcome) if isinstance(outcome, Reject) else (outcome, None)
    return Assembled(line, trace, refused_as, found)


def _fields(spans: Spans, found: Found) -> dict[str, object]:
    """Return the trace as builtins. Records in `found` where each field was found."""
    settings, root = spans.settings, spans.root
    if root.start is None:
        raise RefusedError("bad_timestamp", "the root has no start")
    if root.kind in ("retriever", "reranker", "embedding"):
        raise RefusedError("no_answer", f"the trace is of a {root.kind} only")
    asked = _asked(spans)
    answer, model = _answer(spans, asked, found)
    documents, used = chunks_of(spans, asked, model, found)
    question = _question(spans, asked, model, documents, found)
    calls = [s for s in ([model] if model else []) + spans.all if s.model]
    generator = calls[0].model if calls else settings.generator or UNKNOWN
    found.take("generator", f"model of {name_of(calls[0])}" if calls else "settings", *calls[:1])
    if not _first([root, asked, *spans.all], "session"):
        found.missed["session"] = "no_session"
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
        "chunks": named_chunks(documents, settings.chunk_id, found),
        "environment": _first(near, "environment"),
        "session": _first(near, "session"),
        "prompt_version": _first(near, "prompt_version"),
        "retriever": "+".join(dict.fromkeys(s.name for s in used if s.name)) or None,
        "latency_ms": latency if latency is not None and latency >= 0 else None,
        "tokens_in": _count(model.tokens_in if model else None),
        "tokens_out": _count(model.tokens_out if model else None),
        "cost": _cost(spans),
        "tags": root.tags or asked.tags,
        "feedback": _first(near, "feedback"),
    }


def _asked(spans: Spans) -> Span:
    """Return the span with the question: the root, or the first span below with a question and a model call inside."""
    for span in spans.below(spans.root):
        if span is spans.root or span.kind in ("chain", "agent", "other"):
            asks = span is spans.root or any(s.kind == "llm" for s in spans.below(span))
            if asks and question_in(span, spans.settings):
                return span
    return spans.root


def _answer(spans: Spans, asked: Span, found: Found) -> tuple[str, Span | None]:
    """Return the answer and the model call that wrote it."""
    calls = [s for s in spans.all if s.kind == "llm"]
    for holder in (spans.root, asked):
        text = answer_in(holder, spans.settings)
        if text is not None and text.strip():
            found.take("answer", "root.output" if holder is spans.root else f"output of {name_of(holder)}", holder)
            written = [s for s in calls if (answer_in(s, spans.settings) or "").strip() == text.strip()]
            wrote = written or calls
            return text, wrote[-1] if wrote else None
    outer = [s for s in calls if not any(a.kind == "llm" for a in spans.ancestors(s))]
    if not outer:
        raise RefusedError("no_answer", "neither the root nor a call of a model has an output")
    if spans.root.error:
        raise RefusedError("no_answer", "the root failed")
    inner = [s for s in spans.below(outer[-1]) if s.kind == "llm"]
    written = [s for s in inner if (answer_in(s, spans.settings) or "").strip()]
    if not written:
        problem = "failed" if outer[-1].error else "has no output"
        raise RefusedError("no_answer", f"the last call of a model {problem}")
    found.take("answer", f"output of {name_of(written[-1])}", written[-1])
    return answer_in(written[-1], spans.settings) or "", written[-1]


def _question(spans: Spans, asked: Span, model: Span | None, documents: Sequence[Document], found: Found) -> str:
    """Return what the user typed, never a prompt with the context in it."""
    question = None if asked.kind == "llm" else question_in(asked, spans.settings)
    where, holder = "root.input" if asked is spans.root else f"input of {name_of(asked)}", asked
    if question is None and model is not None:
        typed = [m.text for m in model.messages if m.role in USER]
        question = typed[-1] if typed else question_in(model, spans.settings)
        where, holder = f"last message of {name_of(model)}", model
        if question and _NUMBERED.search(question):
            raise RefusedError("question_holds_context", "only the prompt holds the question, among other things")
    if question is None or not question.strip():
        raise RefusedError("no_question", "neither the root nor a span below it has an input")
    asked_flat = flat(question)
    held = sum(len(text := flat(d.text)) >= CONTEXT_CHARS and text in asked_flat for d in documents)
    if held > 1 or (held and _NUMBERED.search(question)):  # a user may quote a single passage
        raise RefusedError("question_holds_context", f"{where} holds the text of a chunk")
    found.take("question", where, holder)
    return question


def _first(spans: Sequence[Span], attribute: str) -> Any:  # noqa: ANN401 - any attribute's type
    return next((value for s in spans if (value := getattr(s, attribute))), None)


def _cost(spans: Spans) -> float | None:
    """Return the total cost of the steps. A step's nonzero cost already includes the steps below it."""
    known = [s for s in spans.all if s.cost is not None and s.cost >= 0]
    return sum(s.cost or 0 for s in known if not any(a.cost for a in spans.ancestors(s))) if known else None


def _count(value: int | None) -> int | None:
    return value if value is not None and value >= 0 else None
