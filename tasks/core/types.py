"""Rows that are handled one at a time, and the trace format as it is read.

The Arrow schemas of the tables stand in `schemas.py`; these are their counterparts where a row needs behaviour.
The structs of the trace format leave out defaults when they are encoded, so that a field that is added to the format
later does not change the content hash of traces that do without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta, Struct

Label = Literal["supported", "partially_supported", "unsupported", "contradicted", "abstained"]
LABELS: tuple[Label, ...] = ("supported", "partially_supported", "unsupported", "contradicted", "abstained")

Id = Annotated[str, Meta(min_length=1, max_length=512)]


class Chunk(Struct, frozen=True, gc=False, omit_defaults=True):
    """One retrieved passage."""

    chunk_id: Id
    text: str
    doc_id: str | None = None
    title: str | None = None
    rank: int | None = None
    retrieval_score: float | None = None


class Citation(Struct, frozen=True, gc=False, omit_defaults=True):
    """A reference that the application logged as structure: `answer[start:end]` cites `chunk_ids`."""

    start: Annotated[int, Meta(ge=0)]
    end: Annotated[int, Meta(ge=0)]
    chunk_ids: tuple[str, ...]


class Feedback(Struct, frozen=True, gc=False, omit_defaults=True):
    """What the user said of the answer."""

    score: float | None = None
    comment: str | None = None


class Trace(Struct, frozen=True, gc=False, omit_defaults=True):
    """One answered question, in Leadline's trace format (METHODS section 1)."""

    trace_id: Id
    timestamp: Annotated[datetime, Meta(tz=True)]
    app: Id
    generator: Id
    question: str
    answer: str
    chunks: tuple[Chunk, ...] = ()
    environment: str | None = None
    session: str | None = None
    prompt_version: str | None = None
    retriever: str | None = None
    latency_ms: Annotated[float, Meta(ge=0)] | None = None
    tokens_in: Annotated[int, Meta(ge=0)] | None = None
    tokens_out: Annotated[int, Meta(ge=0)] | None = None
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    reference_answer: str | None = None
    gold_chunk_ids: tuple[str, ...] | None = None
    citations: tuple[Citation, ...] | None = None
    feedback: Feedback | None = None
    repeat: Annotated[int, Meta(ge=0)] | None = None


@dataclass(frozen=True, slots=True)
class ClaimDraft:
    """A claim as an extractor cuts it.

    Attributes:
        start: First character of the claim in the answer (characters, not bytes).
        end: One past the last; `answer[start:end]` is the claim's text.
        cited_chunk_ids: Chunks of the trace that the covering references name, in order, without repeats.
        dangling: References that name no chunk of the trace, as written.
    """

    start: int
    end: int
    cited_chunk_ids: tuple[str, ...] = ()
    dangling: tuple[str, ...] = ()


class Extractor(Protocol):
    """Cuts an answer into claims. Pure: the same trace gives the same claims."""

    @property
    def version(self) -> str:
        """Hash of everything that can change the claims."""

    def extract(self, answer: str, chunks: Sequence[Chunk], citations: Sequence[Citation] | None) -> list[ClaimDraft]:
        """The claims of one answer, in order of their spans, never overlapping."""

    def hypothesis(self, claim: str) -> str:
        """A claim as a judge should read it: without references and markup."""


@dataclass(frozen=True, slots=True)
class Request:
    """One judgement to make. `key` is `keys.request_key(premise, hypothesis)`."""

    key: str
    premise: str
    hypothesis: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of one request: exactly one of `label` and `failure` is set.

    Attributes:
        p_supported: Probability in [0, 1] that the premise entails the hypothesis; None if the judge gives none.
        p_contradicted: Probability in [0, 1] that it says otherwise; None if the judge can't tell.
        failure: Short machine-readable reason (`unparsable`, `truncated`, `too_long`, …).
        raw: The reply as it came, kept with a failure only.
    """

    key: str
    label: Label | None = None
    failure: str | None = None
    p_supported: float | None = None
    p_contradicted: float | None = None
    explanation: str | None = None
    raw: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0


class Judge(Protocol):
    """Answers "does the premise entail the hypothesis?" for requests (METHODS section 3)."""

    @property
    def version(self) -> str:
        """`judge_version`: hash of model, revision, prompt, sampling, output schema and parser."""

    @property
    def engine(self) -> str:
        """Which engine runs the model; stays out of the version."""

    def describe(self) -> dict[str, object]:
        """Everything that is hashed into the version, for the `judges` table."""

    def judge(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict per request, in the same order.

        Raises:
            EngineError: The model can't be run (an outage): nothing may be stored for these requests.
        """

    def close(self) -> None:
        """Free the model."""
