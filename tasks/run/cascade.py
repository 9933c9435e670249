"""The judges of a recipe: one, or a cascade of them from cheap to dear.

Left out: which claims go on to the next one (`escalate.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tasks import judges
from tasks.core import keys
from tasks.core.config import Pairing, Recipe
from tasks.core.types import Judge


@dataclass(frozen=True, slots=True)
class Member:
    """A judge of the recipe, or a round of it.

    Attributes:
        stage: Its place among them, from 1; of a recipe with rounds, the round.
        name: Of its file.
        pairing: Which evidence it is shown.
        band: From which p_supported on, and below which, a claim comes here; None for the first, which sees all, and
            for rounds.
    """

    stage: int
    name: str
    judge: Judge
    pairing: Pairing
    band: tuple[float, float] | None = None

    @property
    def gpus(self) -> int:
        """GPUs that it holds while it judges."""
        return self.judge.gpus

    @property
    def languages(self) -> list[str] | None:
        """The languages that it reads; None for all."""
        return None if self.judge.languages is None else sorted(self.judge.languages)


def load(recipe: Recipe, opened: dict[Path, Judge] | None = None) -> tuple[Member, ...]:
    """The judges of a recipe, in the order they are asked; no model is loaded.

    The two rounds of method `citations` are two members with one judge.

    Args:
        opened: Judges of other recipes by the paths of their files, which it shares; those that it opens are added.

    Raises:
        ConfigError: A judge's file is wrong.
    """
    known = {} if opened is None else opened

    def judge(path: Path) -> Judge:
        if path not in known:
            known[path] = judges.load(path)
        return known[path]

    first = Member(1, recipe.judge.stem, judge(recipe.judge), recipe.pairing)
    if recipe.method == "citations":
        return (first, replace(first, stage=2))
    later = (
        Member(stage, e.judge.stem, judge(e.judge), e.pairing, e.band)
        for stage, e in enumerate(recipe.cascade, start=2)
    )
    return (first, *later)


def version(members: Sequence[Member]) -> str:
    """`judge_version` of the recipe: that of its judge, or a hash of the judges of a cascade and their bands."""
    return keys.version(describe(members)) if is_cascade(members) else members[0].judge.version


def describe(members: Sequence[Member]) -> dict[str, object]:
    """What `version` stands for, for the `judges` table."""
    if not is_cascade(members):
        return members[0].judge.describe()
    return {"kind": "cascade", "members": [{"judge": m.judge.version, "band": m.band} for m in members]}


def readers(members: Sequence[Member]) -> list[dict[str, object]]:
    """The languages of each judge, for the scoring SQL."""
    return [{"stage": m.stage, "languages": m.languages} for m in members]


def name(members: Sequence[Member]) -> str:
    """What people call them."""
    return " → ".join(m.name for m in members) if is_cascade(members) else members[0].name


def is_cascade(members: Sequence[Member]) -> bool:
    """Whether they are several judges, and not the rounds of one."""
    return any(m.band is not None for m in members)
