"""A grader that draws random grades: the result of a judge without knowledge on a judge suite.

The draw is a hash of the answer and the grade's name, so the same answer always gets the same grades.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from tasks.core import keys
from tasks.core.config import Settings
from tasks.core.grades import GRADED, RANGES, Answered, Grade, Grader

RULES = 1  # raised when the same answer gets different grades


class Config(Settings):
    """The settings in the grader's file.

    Attributes:
        seed: A different seed draws different grades.
    """

    kind: Literal["random"] = "random"
    seed: int = 0


class Random(keys.Versioned):
    """See the module. It asks no model. N/A is as likely as each value of a grade's range."""

    engine, gpus, asks, needs_reference = "none", 0, False, False

    def __init__(self, config: Config) -> None:
        self._seed = config.seed

    def describe(self) -> dict[str, object]:
        """The seed and the version of the rules."""
        return {"kind": "random", "rules": RULES, "seed": self._seed}

    def grade(self, answers: Sequence[Answered]) -> list[Mapping[str, Grade]]:
        """Random grades for each answer, in order."""
        return [{name: self._drawn(name, keys.key(*_parts(answer))) for name in GRADED} for answer in answers]

    def close(self) -> None:
        """Do nothing: there is no model to free."""

    def _drawn(self, name: str, answer: str) -> Grade:
        least, most = RANGES[name]
        lot = int(keys.key(self._seed, name, answer), 16) % (most - least + 2)
        return Grade("na") if lot == 0 else Grade("scored", least + lot - 1)


def _parts(answer: Answered) -> list[str | int]:
    """The texts that identify an answer, without its statements and its reference."""
    return [answer.question, answer.answer, *answer.passages]


def build(config: Config, where: str) -> Grader:  # noqa: ARG001 - the same for every kind
    """The grader of a config."""
    return Random(config)
