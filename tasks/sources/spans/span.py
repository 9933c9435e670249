"""The data types of span sources: spans, settings, and assembled traces."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import Field

from tasks.core.config import Settings
from tasks.core.types import Feedback, Trace
from tasks.sources import Reason, Reject, SourceFile
from tasks.sources.reading.rejects import shown
from tasks.sources.spans.texts import Document, Message, SpanKind

_OLDEST = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Span:
    """One step of a trace, independent of the store.

    Attributes:
        input: A text, or a JSON value (also as JSON text) that contains one.
        output: A text or JSON value like `input`. The output of a retriever or tool may contain documents.
        documents: Documents that a retriever found or a reranker kept, in its order.
        messages: The prompt of a model call.
        cost: Cost in US dollars, with or without the steps below this one.
        tags: Labels. Only those of the root, or of the span with the question, are used.
        feedback: User rating of this span or its trace.
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
    cost: float | None = None
    prompt_version: str | None = None
    session: str | None = None
    app: str | None = None
    environment: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    feedback: Feedback | None = None


class SpanSettings(Settings):
    """How to build traces from spans: settings that all span sources share.

    Attributes:
        app: Name of the application. The default is the name in the spans.
        generator: Name of the model, used if no span names one.
        root: Name of the span with the question and the answer. The default is the span without a parent.
        question: Keys of the question in the root's input, tried before the usual ones.
        answer: Keys of the answer in the root's output, tried before the usual ones.
        kinds: Kinds of spans by span name, for spans that were logged with a wrong kind or none.
        tool: Name of the tool whose output contains the chunks, used if no retriever has any.
        chunk_id: Metadata keys for a document's id, tried in this order if the document has no id of its own.
        prompt: `follow`: if the prompt was logged, the chunks are the documents in it, in its order. `ignore`: the
            chunks are the documents that the retrievers found.
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
class Found:
    """Where the fields of a trace were found, to help users check a source's settings.

    The keys are fields of a trace, `ids` for the ids of its chunks, and `prompt` if the chunks follow a prompt.

    Attributes:
        where: Place of each field, such as `{"question": "root.input"}`. Contains names of spans, never their text.
        spans: Ids of the spans of each field.
        missed: Why an optional field is missing, such as `{"chunks": "no_retriever"}`.
    """

    where: dict[str, str] = field(default_factory=dict)
    spans: dict[str, tuple[str, ...]] = field(default_factory=dict)
    missed: dict[str, str] = field(default_factory=dict)

    def take(self, name: str, where: str, *spans: Span) -> None:
        """Record where a field was found."""
        self.where[name] = where
        self.spans[name] = tuple(s.span_id for s in spans)


@dataclass(frozen=True, slots=True)
class Assembled:
    """A trace, or a reject if there is none.

    Attributes:
        line: Number of the trace in its file or day, from 1.
        found: Where the fields were found; for a reject, the fields up to the error.
    """

    line: int
    trace: Trace | None = None
    reject: Reject | None = None
    found: Found = field(default_factory=Found)


@runtime_checkable
class SpanSource(Protocol):
    """A source that builds traces from spans. Its methods let users inspect the spans and settings."""

    @property
    def settings(self) -> SpanSettings:
        """How to build traces from its spans."""

    def spans(self, file: SourceFile) -> Iterator[Span | Reject]:
        """Yield the spans of one file in any order, and rejects of malformed spans.

        Raises:
            SourceError: The file can't be read to its end.
        """

    def traces(self, file: SourceFile, most: int) -> Iterator[Assembled]:
        """Return some traces of one file, without reading a large file to the end.

        Args:
            most: Number of traces, including rejected ones.

        Raises:
            SourceError: The file can't be read.
        """


class RefusedError(Exception):
    """The spans can't be a trace. The message contains no text of the spans."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason: Reason = reason


def name_of(span: Span | None) -> str:
    """Return the kind and name of a span for messages. Long names are shortened."""
    name = shown(span.name) if span else ""
    return f"{span.kind} {name!r}" if span and name else f"{span.kind if span else 'span'}"


def start_of(span: Span) -> datetime:
    """Return the start of a span, as a sort key. A span without a start sorts first."""
    return span.start or _OLDEST
