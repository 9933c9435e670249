"""A grader that gives every answer the same grades: the minimum that any other grader must beat on a judge suite."""

from collections.abc import Mapping, Sequence
from typing import Literal, Self

from pydantic import model_validator

from tasks.core import keys
from tasks.core.config import Settings
from tasks.core.grades import GRADED, RANGES, Answered, Grade, GradeName, Grader


class Config(Settings):
    """The settings in the grader's file.

    Attributes:
        grades: The value of each grade; null for N/A.
    """

    kind: Literal["constant"] = "constant"
    grades: Mapping[GradeName, int | None]

    @model_validator(mode="after")
    def _in_range(self) -> Self:
        if missing := [name for name in GRADED if name not in self.grades]:
            raise ValueError(f"lacks a value of {', '.join(missing)}; add it under grades")
        for name, value in self.grades.items():
            least, most = RANGES[name]
            if value is not None and not least <= value <= most:
                raise ValueError(f"gives {name} {value}; it is {least} to {most}, or null")
        return self


class Constant(keys.Versioned):
    """See the module. It asks no model."""

    engine, gpus, asks, needs_reference = "none", 0, False, False

    def __init__(self, config: Config) -> None:
        self._config = config

    def describe(self) -> dict[str, object]:
        """The configured grades."""
        return self._config.model_dump()

    def grade(self, answers: Sequence[Answered]) -> list[Mapping[str, Grade]]:
        """The same grades for each answer."""
        given = self._config.grades
        own: Mapping[str, Grade] = {n: Grade("na") if given[n] is None else Grade("scored", given[n]) for n in GRADED}
        return [own] * len(answers)

    def close(self) -> None:
        """Do nothing: there is no model to free."""


def build(config: Config, where: str) -> Grader:  # noqa: ARG001 - the same for every kind
    """The grader of a config."""
    return Constant(config)
