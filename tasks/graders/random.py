"""A grader that draws grades by lot: what a judge that knows nothing reaches on a judge suite.

The lot is a hash of the answer and the grade's name, so that the same answer always draws the same grades.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from tasks.core import keys
from tasks.core.config import Settings
from tasks.core.grades import GRADED, RANGES, Answered, Grade, Grader

RULES = 1  # raised when the same answer draws other grades


class Config(Settings):
    """The whole of its file.

    Attributes:
        seed: Another one draws other grades.
    """

    kind: Literal["random"] = "random"
    seed: int = 0


class Random(keys.Versioned):
    """See the module; no model is asked. Every value of a grade's range is as likely as N/A."""

    engine, gpus, asks, needs_reference = "none", 0, False, False

    def __init__(self, config: Config) -> None:
        self._seed = config.seed

    def describe(self) -> dict[str, object]:
        """The seed, and how it draws."""
        return {"kind": "random", "rules": RULES, "seed": self._seed}

    def grade(self, answers: Sequence[Answered]) -> list[Mapping[str, Grade]]:
        """Grades by lot for each answer, in order."""
        return [{name: self._drawn(name, keys.key(*_parts(answer))) for name in GRADED} for answer in answers]

    def close(self) -> None:
        """No model to free."""

    def _drawn(self, name: str, answer: str) -> Grade:
        least, most = RANGES[name]
        lot = int(keys.key(self._seed, name, answer), 16) % (most - least + 2)
        return Grade("na") if lot == 0 else Grade("scored", least + lot - 1)


def _parts(answer: Answered) -> list[str | int]:
    """What makes it this answer; neither how it was cut nor whether there is a reference."""
    return [answer.question, answer.answer, *answer.passages]


def build(config: Config, where: str) -> Grader:  # noqa: ARG001 - the same for every kind
    """The grader of a config."""
    return Random(config)
