"""The judges of a recipe: one, or a cascade of them from cheap to dear.

Left out: which claims go on to the next one (`escalate.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks import judges
from tasks.core import keys
from tasks.core.config import Pairing, Recipe
from tasks.core.types import Judge


@dataclass(frozen=True, slots=True)
class Member:
    """A judge of the recipe.

    Attributes:
        stage: Its place among them, from 1.
        name: Of its file.
        pairing: Which evidence it is shown.
        band: From which p_supported on, and below which, a claim comes here; None for the first, which sees all.
    """

    stage: int
    name: str
    judge: Judge
    pairing: Pairing
    band: tuple[float, float] | None = None

    @property
    def gpus(self) -> int:
        """GPUs that it holds while it judges."""
        return int(getattr(self.judge, "gpus", 0))


def load(recipe: Recipe) -> tuple[Member, ...]:
    """The judges of a recipe, in the order they are asked; no model is loaded.

    Raises:
        ConfigError: A judge's file is wrong.
    """
    first = Member(1, recipe.judge.stem, judges.load(recipe.judge), recipe.pairing)
    later = (
        Member(stage, e.judge.stem, judges.load(e.judge), e.pairing, e.band)
        for stage, e in enumerate(recipe.cascade, start=2)
    )
    return (first, *later)


def version(members: Sequence[Member]) -> str:
    """`judge_version` of the recipe: that of its judge, or a hash of the judges of a cascade and their bands."""
    return members[0].judge.version if len(members) == 1 else keys.version(describe(members))


def describe(members: Sequence[Member]) -> dict[str, object]:
    """What `version` stands for, for the `judges` table."""
    if len(members) == 1:
        return members[0].judge.describe()
    return {"kind": "cascade", "members": [{"judge": m.judge.version, "band": m.band} for m in members]}


def name(members: Sequence[Member]) -> str:
    """What people call them."""
    return " → ".join(m.name for m in members)
