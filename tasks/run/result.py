"""Results of stages, and token sums."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

TOKENS = ("tokens_in", "tokens_cached", "tokens_out")


def token_counts(replies: Iterable[Any]) -> dict[str, Any]:
    """Sum the attributes in `TOKENS` over replies or results, by name."""
    counted = list(replies)
    return {name: sum(getattr(reply, name) for reply in counted) for name in TOKENS}


@dataclass(frozen=True, slots=True)
class StageResult:
    """Counts, cost and notes of a stage. Results of the same stage can be added.

    Attributes:
        computed: Rows computed, in the stage's own unit (traces, claims, pairs, verdicts, …).
        reused: Rows that were already stored.
        lost: Requests that failed because of an outage; nothing is stored for them.
        tokens_in: Tokens that models read, including `tokens_cached`.
        tokens_cached: Tokens that came from a prefix cache.
        judge: `judge_version` of the verdicts, or for stage `ask` the version of the model; None for other stages.
        gpus: Number of GPUs used.
        notes: Messages for the user, without trace text.
    """

    stage: str
    computed: int = 0
    reused: int = 0
    lost: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    judge: str | None = None
    gpus: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def __add__(self, other: "StageResult") -> "StageResult":
        """Add two results, keeping the stage and judge of this one."""
        return replace(
            self,
            computed=self.computed + other.computed,
            reused=self.reused + other.reused,
            lost=self.lost + other.lost,
            gpus=max(self.gpus, other.gpus),
            seconds=self.seconds + other.seconds,
            notes=(*self.notes, *other.notes),
            **token_counts((self, other)),
        )
