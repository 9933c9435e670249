"""Review tasks (a claim to label or an answer to grade), and the allowed labels and grades."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OF_CLAIMS: Mapping[str, str] = {
    "supported": "The chunks say all of it",
    "partially_supported": "They say a part of it, and nothing against the rest",
    "unsupported": "It is not in the chunks",
    "contradicted": "The chunks say otherwise",
    "cant_tell": "It can't be decided",
    "not_a_claim": "It states nothing that a source could support",
}
"""Labels of a claim, by all chunks of its trace, each with its meaning for a person."""
UNDECIDED = ("cant_tell", "not_a_claim")
"""Labels in `OF_CLAIMS` that say nothing about the evidence and are left out of all numbers."""
OF_ANSWERS = ("right", "wrong")
OF_GRADES: Mapping[str, str] = {
    "answer_relevancy": "1 to 5: how well it keeps to the question; n/a if it declines",
    "completeness": "1 to 5: how much of what the chunks say on the question it has; n/a if they say nothing on it",
    "faithfulness": "1 if every statement cites a chunk and agrees with it, else 0; n/a if it only declines",
    "usefulness": "1 if it declines and adds something helpful, else 0; n/a if it does not decline, or adds nothing",
}
"""Grades that reviewers give, each with its values. The other two grades are derived from them."""
SAMPLING = ("random", "misused", "uncertain", "disputed")
"""Reasons to select a claim. All but `random` depend on earlier labels or verdicts."""


@dataclass(frozen=True, slots=True)
class Task:
    """One claim to label, or one grade to give.

    Attributes:
        claim_id: None for a grade.
        sampling: One of `SAMPLING`.
        adjudicated: Reviewers disagree on it: the new label counts over theirs.
        reviewer: Who should label it; None for anybody.
        context: What a person is shown: claim and span, or values of the grade; question, answer, chunks and where
            they come from.
        grade: One of `OF_GRADES`; None for a claim.
    """

    trace_id: str
    claim_id: str | None
    sampling: str
    adjudicated: bool
    reviewer: str | None
    context: Mapping[str, Any]
    grade: str | None = None

    def line(self) -> dict[str, Any]:
        """The line that it becomes once `label`, or `value`, is filled in (docs/reviews.md), without its context.

        A grade's line has no value yet, since null would mean that the grade does not apply.
        """
        own = {"claim_id": self.claim_id, "misused": None} if self.grade is None else {"grade": self.grade}
        return {
            "trace_id": self.trace_id,
            **own,
            "label": None,
            "comment": None,
            "reviewer": self.reviewer,
            "sampling": self.sampling,
            **({"adjudicated": True} if self.adjudicated else {}),
        }

    @property
    def pieces(self) -> tuple[str, str, str]:
        """The answer: before the claim's place, that place, and after it."""
        answer, (start, end) = self.context["answer"], self.context["span"]
        return answer[:start], answer[start:end], answer[end:]
