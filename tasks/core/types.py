"""Types of single rows, and the trace format.

The Arrow schemas of the tables are in `schemas/`. The structs of the trace format omit default values when encoded, so
a new field does not change the content hash of traces without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, Protocol, get_args

import msgspec
from msgspec import Meta, Struct

Label = Literal["supported", "partially_supported", "unsupported", "contradicted", "abstained"]
OUTAGE = "outage"
LABELS: tuple[Label, ...] = get_args(Label)

Kind = Literal["claim", "heading", "lead-in", "greeting", "pointer", "question", "refusal", "reasoning"]
KINDS: tuple[Kind, ...] = get_args(Kind)

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
    """The user's feedback on the answer."""

    score: float | None = None
    comment: str | None = None


class Trace(Struct, frozen=True, gc=False, omit_defaults=True):
    """One answered question, in Leadline's trace format (docs/methods.md#trace)."""

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
    cost: Annotated[float, Meta(ge=0)] | None = None
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    reference_answer: str | None = None
    gold_chunk_ids: tuple[str, ...] | None = None
    citations: tuple[Citation, ...] | None = None
    feedback: Feedback | None = None
    repeat: Annotated[int, Meta(ge=0)] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is to be cut into claims. How it is cut does not depend on the texts of the chunks.

    Attributes:
        first: Number that references give the first chunk, where other answers of the application show it.
    """

    question: str
    text: str
    chunks: Sequence[Chunk] = ()
    citations: Sequence[Citation] | None = None
    first: int | None = None


@dataclass(frozen=True, slots=True)
class ClaimDraft:
    """A claim as an extractor cuts it, or what else it cuts from an answer.

    Attributes:
        start: First character in the answer (characters, not bytes).
        end: One past the last.
        cited_chunk_ids: Chunks of the trace that the covering references name, in order, without repeats.
        dangling: References that name no chunk of the trace, as written.
        kind: Only a `claim` is judged.
        context: What it is read with: lead-in and term of an item, head and label of a cell, question of a "yes".
        hypothesis: What a judge reads: the claim without references and markup, behind its context.
        language: ISO 639 code; None where it is unknown.
        text: The claim in words of its own; None where `answer[start:end]` is the claim.
    """

    start: int
    end: int
    cited_chunk_ids: tuple[str, ...] = ()
    dangling: tuple[str, ...] = ()
    kind: Kind = "claim"
    context: str = ""
    hypothesis: str = ""
    language: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """The claims of one answer, with the tokens used.

    Attributes:
        claims: In order of their spans, with what is no claim. Spans don't overlap, but several claims may share one.
        language: ISO 639 code of the answer; None where it is unknown.
        renumbered: Whether the references number the chunks from another start than the ranks do.
        unbroken: Claims that a model should have broken into facts and did not; each stands as it is in the answer.
        outage: The model could not be reached for some of the requests. The claims must not be stored.
        tokens_in: Tokens that a model read, those of `tokens_cached` included.
    """

    claims: Sequence[ClaimDraft]
    language: str | None = None
    renumbered: bool = False
    unbroken: int = 0
    outage: bool = False
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0


class Extractor(Protocol):
    """Cuts answers into claims (docs/methods.md#claims)."""

    @property
    def version(self) -> str:
        """Hash of everything that can change the claims."""

    @property
    def modelless(self) -> "Extractor":
        """The same extractor without its model, to count the work ahead; itself if it uses no model."""

    @property
    def engine(self) -> str:
        """Which engine runs its model."""

    @property
    def gpus(self) -> int:
        """GPUs that this process holds while it runs a model; none without a model."""

    def extract_many(self, answers: Sequence[Answer]) -> list[Extraction]:
        """The claims of each answer, in order.

        Raises:
            EngineError: A model is needed and can't be run: nothing may be stored for these answers.
        """

    def close(self) -> None:
        """Free the model, where there is one."""


@dataclass(frozen=True, slots=True)
class Request:
    """One judgment to make.

    Attributes:
        key: Hash of exactly what the judge reads (`keys.request_keys`).
        premise: The evidence as one text.
        passages: Texts that were joined to the premise; empty if the premise is a single passage.
    """

    key: str
    premise: str
    hypothesis: str
    passages: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        """The passages one by one, at least one."""
        return self.passages or (self.premise,)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's answer to one request: exactly one of `label` and `failure` is set.

    Attributes:
        p_supported: Probability in [0, 1] that the premise entails the hypothesis; None if the judge gives none.
        p_contradicted: Probability in [0, 1] that it says otherwise; None if the judge gives none.
        passages: Numbers, from 1, of the passages that decide the label, the deciding one first; empty where the judge
            names none.
        failure: Short machine-readable reason (`unparsable`, `truncated`, `too_long`, …). `OUTAGE`: the model could not
            be reached; it is never stored, so the next run repeats the request.
        raw: The reply as it came, kept with a failure only.
        tokens_in: Tokens of what was read, those of `tokens_cached` included.
        tokens_cached: Tokens that the model did not read, thanks to a prefix cache.
    """

    key: str
    label: Label | None = None
    failure: str | None = None
    p_supported: float | None = None
    p_contradicted: float | None = None
    passages: tuple[int, ...] = ()
    explanation: str | None = None
    raw: str | None = None
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0


class Judge(Protocol):
    """Answers "does the premise entail the hypothesis?" for requests (docs/methods.md#labels)."""

    @property
    def version(self) -> str:
        """`judge_version`: hash of model, revision, prompt, sampling, output schema and parser."""

    @property
    def engine(self) -> str:
        """Which engine runs the model; stays out of the version."""

    @property
    def gpus(self) -> int:
        """GPUs that this process holds while it judges: none on CPUs, and none where a server has them."""

    @property
    def languages(self) -> tuple[str, ...] | None:
        """ISO 639 codes of the languages that it reads; None for all. Claims in others are not sent."""

    def describe(self) -> dict[str, object]:
        """Everything that is hashed into the version, for the `judges` table."""

    def judge(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict per request, in the same order.

        Raises:
            EngineError: The model can't be run (an outage): nothing may be stored for these requests.
        """

    def close(self) -> None:
        """Free the model."""
