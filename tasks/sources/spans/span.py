"""What a span is, whatever store it is from; and how spans become traces: the settings, and the outcome."""

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
    """One step of a trace, with the names of its store's attributes taken off.

    Attributes:
        input: Text, or any JSON value that holds one; JSON that is written as text will do.
        output: The same. A retriever's or tool's output may hold documents.
        documents: What a retriever found or a reranker kept, in its order.
        messages: The prompt of a call of a model.
        cost: In US dollars; of this step, or with those below it.
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
    cost: float | None = None
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
class Found:
    """Where the fields of a trace were found, for people who look at a source.

    Fields are those of a trace; and `ids`, of its chunks, and `prompt`, for chunks that stand in a prompt.

    Attributes:
        where: Of each field, such as `{"question": "root.input"}`. Names of spans, never their text.
        spans: Ids of the spans that each field is from.
        missed: Why a field is not there that a trace can do without, such as `{"chunks": "no_retriever"}`.
    """

    where: dict[str, str] = field(default_factory=dict)
    spans: dict[str, tuple[str, ...]] = field(default_factory=dict)
    missed: dict[str, str] = field(default_factory=dict)

    def take(self, name: str, where: str, *spans: Span) -> None:
        """Note where a field was found."""
        self.where[name] = where
        self.spans[name] = tuple(s.span_id for s in spans)


@dataclass(frozen=True, slots=True)
class Assembled:
    """A trace, or why there is none.

    Attributes:
        line: Number of the trace in its file or day, from 1.
        found: Where its fields were found, as far as the spans were read.
    """

    line: int
    trace: Trace | None = None
    reject: Reject | None = None
    found: Found = field(default_factory=Found)


@runtime_checkable
class SpanSource(Protocol):
    """A source that makes its traces of spans: what people who look at it see beside them."""

    @property
    def settings(self) -> SpanSettings:
        """How its spans become traces."""

    def spans(self, file: SourceFile) -> Iterator[Span | Reject]:
        """The spans of one file, in any order, and rejects of what is none.

        Raises:
            SourceError: The file can't be read to its end.
        """

    def traces(self, file: SourceFile, most: int) -> Iterator[Assembled]:
        """Traces of one file, and where their fields were found, without reading all of a large file.

        Args:
            most: Traces, rejects of traces included.

        Raises:
            SourceError: The file can't be read.
        """


class RefusedError(Exception):
    """The spans are no trace; the message holds no text of them."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason: Reason = reason


def name_of(span: Span | None) -> str:
    """Kind and name of a span, for messages; never more than the beginning of a name."""
    name = shown(span.name) if span else ""
    return f"{span.kind} {name!r}" if span and name else f"{span.kind if span else 'span'}"


def start_of(span: Span) -> datetime:
    """When a span starts; one without a start comes first."""
    return span.start or _OLDEST
