"""The six grades of a grounded answer, and what a grader is given and gives.

Method: docs/methods.md#grades-of-a-grounded-answer.

Four are graded; positive acceptance and negative rejection follow from the first two.
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
"""Least and most value of each grade; N/A besides."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of an answer.

    Attributes:
        text: As a judge should read it: without references and markup.
        cited: Numbers of the passages that it cites, from 1, in order.
        dangling: References of it that name no passage.
    """

    text: str
    cited: tuple[int, ...] = ()
    dangling: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer to be graded.

    Attributes:
        answer: As it stands.
        passages: Texts of the references or chunks.
        statements: What the answer says, statement by statement.
        reference: An answer by people, which the form with a reference needs; None in production.
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
        status: `scored`; `na`: the grade does not apply; `unparsable`: there is a reply that can't be read as a grade;
            `failed`: there is none. Only `scored` has a value.
        value: 1 to 5, or 0 or 1; not whole where samples were averaged.
        failure: Short machine-readable reason of `unparsable` and `failed`. `types.OUTAGE`: the model could not be
            reached; it is never stored.
        raw: The reply as it came, kept with a failure only.
        tokens_in: Tokens read, those of `tokens_cached` included.
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
    """Gives the grades of `GRADED` to answers (docs/methods.md#grades-of-a-grounded-answer)."""

    @property
    def version(self) -> str:
        """`grader_version`: hash of `describe()`."""

    @property
    def engine(self) -> str:
        """Which engine runs the model; stays out of the version."""

    @property
    def gpus(self) -> int:
        """GPUs that this process holds while it grades."""

    @property
    def asks(self) -> bool:
        """Whether each grade is a request to a language model."""

    @property
    def needs_reference(self) -> bool:
        """Whether it grades by a reference answer, which production logs don't have."""

    def describe(self) -> dict[str, object]:
        """Everything that can change a grade."""

    def grade(self, answers: Sequence[Answered]) -> list[Mapping[str, Grade]]:
        """The grades of each answer by the names of `GRADED`, in order.

        Raises:
            EngineError: The model can't be run (an outage): nothing may be stored for these answers.
        """

    def close(self) -> None:
        """Free the model; a later call loads it again."""


def derived(grades: Mapping[str, Grade]) -> dict[str, Grade]:
    """Positive acceptance and negative rejection: is it right of the answer to claim, or to decline, to have one?

    Answer relevancy shows whether the answer claims to have one (N/A: it declines), completeness whether there is one
    (N/A: there is none). Where there is one, acceptance is 1 for an answer that gives one and 0 for one that
    declines; where there is none, rejection is 1 for an answer that declines and 0 for one that does not.
    """
    claims, there_is = grades["answer_relevancy"], grades["completeness"]
    for of in (claims, there_is):
        if of.status in ("unparsable", "failed"):
            return dict.fromkeys(DERIVED, Grade(of.status, failure=of.failure))
    accepts, exists = claims.status == "scored", there_is.status == "scored"
    right = Grade("scored", float(accepts == exists))
    na = Grade("na")
    return {"positive_acceptance": right if exists else na, "negative_rejection": na if exists else right}
