"""The judges of a recipe: one, or a cascade of them from cheap to expensive.

Left out: which claims go on to the next one (`tasks/judging/escalate.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tasks import judges
from tasks.core import keys
from tasks.core.config import Pairing, Recipe
from tasks.core.errors import EngineError
from tasks.core.types import Judge


@dataclass(frozen=True, slots=True)
class CascadeJudge:
    """A judge of a recipe, or one pass of it.

    Attributes:
        stage: Its place among them, from 1; of method `citations`, the pass.
        path: Its file.
        pairing: Which evidence it is shown.
        band: p_supported from `band[0]` up to, but not including, `band[1]` sends a claim here; None for the first
            judge, which sees all claims, and for passes.
    """

    stage: int
    path: Path
    judge: Judge
    pairing: Pairing
    band: tuple[float, float] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process goes its file; the model is loaded there."""
        return _opened, (self.stage, self.path, self.version, self.pairing, self.band)

    @property
    def name(self) -> str:
        """What people call it."""
        return self.path.stem

    @property
    def version(self) -> str:
        """`judge_version`."""
        return self.judge.version

    @property
    def gpus(self) -> int:
        """GPUs that it holds while it judges."""
        return self.judge.gpus

    @property
    def languages(self) -> list[str] | None:
        """The languages that it reads; None for all."""
        return None if self.judge.languages is None else sorted(self.judge.languages)

    def close(self) -> None:
        """Free the model."""
        self.judge.close()


_open = cache(judges.load)  # of a worker, which is sent the same judge with every shard


def _opened(stage: int, path: Path, version: str, pairing: Pairing, band: tuple[float, float] | None) -> CascadeJudge:
    """A judge that another process has sent.

    Raises:
        ConfigError: Its file is not here, or wrong.
        EngineError: It is another version here.
    """
    judge = CascadeJudge(stage, path, _open(path), pairing, band)
    if judge.version != version:
        raise EngineError(
            f"{path}: is judge {judge.version} here, but {version} where the run was started. "
            "Give all machines the same judge's file, prompts, weights and Leadline."
        )
    return judge


def load(recipe: Recipe, opened: dict[Path, Judge] | None = None) -> tuple[CascadeJudge, ...]:
    """The judges of a recipe, in their order; no model is loaded. Method `citations` has one judge in two passes.

    Args:
        opened: Judges of other recipes by the paths of their files, to be shared; new ones are added.

    Raises:
        ConfigError: A judge's file is wrong.
    """
    shared = {} if opened is None else opened

    def judge(path: Path) -> Judge:
        if path not in shared:
            shared[path] = judges.load(path)
        return shared[path]

    first = CascadeJudge(1, recipe.judge, judge(recipe.judge), recipe.pairing)
    if recipe.method == "citations":
        return (first, replace(first, stage=2))
    later = (
        CascadeJudge(stage, e.judge, judge(e.judge), e.pairing, e.band)
        for stage, e in enumerate(recipe.cascade, start=2)
    )
    return (first, *later)


def version(cascade: Sequence[CascadeJudge]) -> str:
    """`judge_version` of the recipe: that of its judge, or a hash of the judges of a cascade and their bands."""
    return keys.version(describe(cascade)) if is_cascade(cascade) else cascade[0].version


def describe(cascade: Sequence[CascadeJudge]) -> dict[str, object]:
    """What `version` stands for, for the `judges` table."""
    if not is_cascade(cascade):
        return cascade[0].judge.describe()
    return {"kind": "cascade", "judges": [{"judge": judge.version, "band": judge.band} for judge in cascade]}


def readers(cascade: Sequence[CascadeJudge]) -> list[dict[str, object]]:
    """The languages of each judge, for the scoring SQL."""
    return [{"stage": judge.stage, "languages": judge.languages} for judge in cascade]


def name(cascade: Sequence[CascadeJudge]) -> str:
    """What people call them."""
    return " → ".join(judge.name for judge in cascade) if is_cascade(cascade) else cascade[0].name


def is_cascade(cascade: Sequence[CascadeJudge]) -> bool:
    """Whether they are several judges, and not two passes of one."""
    return any(judge.band is not None for judge in cascade)
