"""What a stage did, and sums of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

TOKENS = ("tokens_in", "tokens_cached", "tokens_out")


def token_counts(replies: Iterable[Any]) -> dict[str, Any]:
    """Sums of `TOKENS`, by their names, over whatever has these attributes."""
    counted = list(replies)
    return {name: sum(getattr(reply, name) for reply in counted) for name in TOKENS}


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a stage did. Results of one stage add up.

    Attributes:
        computed: Rows made, in the stage's own unit (traces, claims, pairs, verdicts, …).
        reused: Rows that were already there.
        lost: Requests that could not be made; nothing of them is stored.
        tokens_in: Tokens that models read, including `tokens_cached`.
        tokens_cached: Tokens that a prefix cache saved them from reading.
        judge: `judge_version` of the verdicts, or the version of the model that `ask` asked; None for other stages.
        gpus: GPUs that it held.
        notes: Messages for people, without trace text.
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
        """Both results under the stage and judge of this one."""
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
