"""The judges of a recipe: a single judge, or a cascade from cheap to expensive.

Left out: which claims the next judge gets (`tasks/judging/escalate.py`).
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
        stage: Position in the cascade, from 1. For method `citations`, the number of the pass.
        path: The judge's file.
        pairing: How evidence is selected for this judge.
        band: This judge gets claims with `band[0]` <= p_supported < `band[1]`. None for the first judge, which gets
            all claims, and for passes.
    """

    stage: int
    path: Path
    judge: Judge
    pairing: Pairing
    band: tuple[float, float] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path of the file; the receiving process loads the model."""
        return _opened, (self.stage, self.path, self.version, self.pairing, self.band)

    @property
    def name(self) -> str:
        """The name of the judge's file."""
        return self.path.stem

    @property
    def version(self) -> str:
        """`judge_version`."""
        return self.judge.version

    @property
    def gpus(self) -> int:
        """Number of GPUs that the model uses."""
        return self.judge.gpus

    @property
    def languages(self) -> list[str] | None:
        """Languages that the judge reads; None for all."""
        return None if self.judge.languages is None else sorted(self.judge.languages)

    def close(self) -> None:
        """Free the model."""
        self.judge.close()


_open = cache(judges.load)  # a worker gets the same judge with every shard


def _opened(stage: int, path: Path, version: str, pairing: Pairing, band: tuple[float, float] | None) -> CascadeJudge:
    """Open a judge that was sent by another process.

    Raises:
        ConfigError: The judge's file is missing or wrong on this machine.
        EngineError: The judge has another version on this machine.
    """
    judge = CascadeJudge(stage, path, _open(path), pairing, band)
    if judge.version != version:
        raise EngineError(
            f"{path}: is judge {judge.version} here, but {version} where the run was started. "
            "Give all machines the same judge's file, prompts, weights and Leadline."
        )
    return judge


def load(recipe: Recipe, opened: dict[Path, Judge] | None = None) -> tuple[CascadeJudge, ...]:
    """Return the judges of a recipe in order, without loading a model. Method `citations` has one judge in two passes.

    Args:
        opened: Judges of other recipes by path, to be shared. New judges are added.

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
    """`judge_version` of the recipe: the judge's version, or a hash of the versions and bands of a cascade."""
    return keys.version(describe(cascade)) if is_cascade(cascade) else cascade[0].version


def describe(cascade: Sequence[CascadeJudge]) -> dict[str, object]:
    """The definition that `version` identifies, for the `judges` table."""
    if not is_cascade(cascade):
        return cascade[0].judge.describe()
    return {"kind": "cascade", "judges": [{"judge": judge.version, "band": judge.band} for judge in cascade]}


def readers(cascade: Sequence[CascadeJudge]) -> list[dict[str, object]]:
    """The languages of each judge, for the scoring SQL."""
    return [{"stage": judge.stage, "languages": judge.languages} for judge in cascade]


def name(cascade: Sequence[CascadeJudge]) -> str:
    """Display name of the judge or cascade."""
    return " → ".join(judge.name for judge in cascade) if is_cascade(cascade) else cascade[0].name


def is_cascade(cascade: Sequence[CascadeJudge]) -> bool:
    """Whether the stages are several judges, not two passes of one judge."""
    return any(judge.band is not None for judge in cascade)
