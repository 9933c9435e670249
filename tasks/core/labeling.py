"""A claim for a person to label, and the words to choose from."""

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
"""Those of `OF_CLAIMS` that say nothing of the evidence, so that no number is made of them."""
OF_ANSWERS = ("right", "wrong")
SAMPLING = ("random", "misused", "uncertain", "disputed")
"""How a claim comes to be labeled; except for `random`, because of earlier labels or verdicts."""


@dataclass(frozen=True, slots=True)
class Task:
    """One claim to label.

    Attributes:
        sampling: One of `SAMPLING`.
        adjudicated: Reviewers disagree on it: the new label counts over theirs.
        reviewer: Who should label it; None for anybody.
        context: What a person is shown: claim, span, question, answer, chunks and where they come from.
    """

    trace_id: str
    claim_id: str
    sampling: str
    adjudicated: bool
    reviewer: str | None
    context: Mapping[str, Any]

    def line(self) -> dict[str, Any]:
        """The line that it becomes once `label` is filled in (docs/reviews.md), without its context."""
        return {
            "trace_id": self.trace_id,
            "claim_id": self.claim_id,
            "label": None,
            "misused": None,
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
