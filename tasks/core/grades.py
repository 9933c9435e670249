"""The six grades of a grounded answer, and the input and output types of a grader.

Method: docs/methods.md#grades-of-a-grounded-answer.

A grader gives four of them. Positive acceptance and negative rejection are derived from answer relevancy and
completeness.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

GradeName = Literal["answer_relevancy", "completeness", "faithfulness", "usefulness"]
Status = Literal["scored", "na", "unparsable", "failed"]
GRADED: tuple[GradeName, ...] = get_args(GradeName)
DERIVED = ("positive_acceptance", "negative_rejection")
GRADES: tuple[str, ...] = (*GRADED, *DERIVED)
RANGES: Mapping[str, tuple[int, int]] = {
    "answer_relevancy": (1, 5),
    "completeness": (1, 5),
    "faithfulness": (0, 1),
    "usefulness": (0, 1),
    "positive_acceptance": (0, 1),
    "negative_rejection": (0, 1),
}
"""Minimum and maximum value of each grade. A grade may also be N/A."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of an answer.

    Attributes:
        text: Text for the judge, without references and markup.
        cited: Numbers of the cited passages, from 1, in order.
        dangling: Number of references to passages that do not exist.
    """

    text: str
    cited: tuple[int, ...] = ()
    dangling: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer to be graded.

    Attributes:
        answer: Original text, with references and markup.
        passages: Texts of the references or chunks.
        statements: Statements of the answer, in order.
        reference: Answer written by a person, for graders that need a reference; None in production.
    """

    question: str
    answer: str
    passages: tuple[str, ...]
    statements: tuple[Statement, ...]
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Grade:
    """One grade of one answer.

    Attributes:
        status: `scored`; `na`: the grade does not apply; `unparsable`: the reply can't be parsed as a grade; `failed`:
            there is no reply. Only `scored` has a value.
        value: Within the range in `RANGES`. An average of several samples may be fractional.
        failure: Short machine-readable reason for `unparsable` and `failed`. `types.OUTAGE`: the model could not be
            reached. Such a grade is never stored.
        raw: Original reply, kept only for a failure.
        tokens_in: Tokens read, including `tokens_cached`.
    """

    status: Status
    value: float | None = None
    failure: str | None = None
    explanation: str | None = None
    raw: str | None = None
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0


class Grader(Protocol):
    """Grades answers with the grades in `GRADED` (docs/methods.md#grades-of-a-grounded-answer)."""

    @property
    def version(self) -> str:
        """`grader_version`: hash of `describe()`."""

    @property
    def engine(self) -> str:
        """The engine that runs the model; not part of the version."""

    @property
    def gpus(self) -> int:
        """Number of GPUs that this process uses while grading."""

    @property
    def asks(self) -> bool:
        """Whether each grade is a request to a language model."""

    @property
    def needs_reference(self) -> bool:
        """Whether the grader needs a reference answer, which production logs don't have."""

    def describe(self) -> dict[str, object]:
        """Everything that can change a grade."""

    def grade(self, answers: Sequence[Answered]) -> list[Mapping[str, Grade]]:
        """Return the grades of each answer in order, keyed by the names in `GRADED`.

        Raises:
            EngineError: The model can't be run (an outage). Nothing may be stored for these answers.
        """

    def close(self) -> None:
        """Free the model; a later call loads it again."""


def derived(grades: Mapping[str, Grade]) -> dict[str, Grade]:
    """Derive positive acceptance and negative rejection: was it right to answer, or to decline?

    Answer relevancy is N/A if the response declines to answer. Completeness is N/A if the passages contain no answer.
    If they contain one, acceptance is 1 for a response that answers and 0 for one that declines. If they contain none,
    rejection is 1 for a response that declines and 0 for one that answers. The other grade is N/A.
    """
    claims, there_is = grades["answer_relevancy"], grades["completeness"]
    for of in (claims, there_is):
        if of.status in ("unparsable", "failed"):
            return dict.fromkeys(DERIVED, Grade(of.status, failure=of.failure))
    accepts, exists = claims.status == "scored", there_is.status == "scored"
    right = Grade("scored", float(accepts == exists))
    na = Grade("na")
    return {"positive_acceptance": right if exists else na, "negative_rejection": na if exists else right}
