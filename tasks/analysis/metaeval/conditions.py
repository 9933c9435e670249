"""Conditions on grades, as the public GroUSE suite writes them (docs/methods.md#judging-the-judges).

Left out: the cases (`suite.py`), and what is made of grades that do or don't (`pass_rates.py`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from tasks.core.grades import DERIVED, GRADED, RANGES, Grade, derived

_WRITTEN = re.compile(r"\s*(?P<operator>==|<=|>=|<|>)\s*(?P<value>None|-?\d+(?:\.\d+)?)\s*")


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a grade with a value.

    Attributes:
        operator: `==`, `<`, `<=`, `>` or `>=`.
        value: None stands for N/A, and for nothing else than `==`.
    """

    operator: str
    value: float | None

    def __str__(self) -> str:
        return f"{self.operator}{'None' if self.value is None else f'{self.value:g}'}"

    def holds(self, grade: float | None) -> bool:
        """Whether a grade fulfils it. N/A (None) fulfils `==None` alone, and nothing else fulfils that."""
        if grade is None or self.value is None:
            return grade is self.value
        if grade == self.value:
            return "=" in self.operator
        return self.operator[0] == ("<" if grade < self.value else ">")

    def fulfilled_by(self, grade: str) -> tuple[float | None, ...]:
        """The possible values of a grade that fulfil it."""
        return tuple(v for v in possible(grade) if self.holds(v))


NA = Condition("==", None)
RIGHT, WRONG = Condition("==", 1), Condition("==", 0)


def parse(text: str) -> Condition:
    """The condition that is written as `==5`, `<4`, `>=3`, `==None`, ….

    Raises:
        ValueError: It is none; the message shows how one is written, and not what was found.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None or (found["value"] == "None" and found["operator"] != "=="):
        raise ValueError("Write one of == < <= > >= and a number, or ==None for N/A.")
    return Condition(found["operator"], None if found["value"] == "None" else float(found["value"]))


def possible(grade: str) -> tuple[float | None, ...]:
    """The values that a grade can have, N/A first."""
    least, most = RANGES[grade]
    return (None, *map(float, range(least, most + 1)))


def of_derived(answer_relevancy: Condition, completeness: Condition) -> dict[str, Condition]:
    """The conditions of positive acceptance and negative rejection, which follow from those of the first two grades.

    `==None` of answer relevancy means that the answer declines, `==None` of completeness that there is no answer;
    every other condition means the contrary, since N/A does not fulfil it. What follows is as in `grades.derived`.
    """
    accepts, exists = answer_relevancy != NA, completeness != NA
    right = RIGHT if accepts == exists else WRONG
    return {"positive_acceptance": right if exists else NA, "negative_rejection": NA if exists else right}


def chance(conditions: Mapping[str, Condition]) -> dict[str, float]:
    """How probable it is that grades drawn at random fulfil each condition.

    A grade that is judged is drawn evenly among its possible values, N/A among them; the derived ones follow from what
    is drawn.

    Args:
        conditions: Of all six grades.
    """
    found: dict[str, float] = {g: len(conditions[g].fulfilled_by(g)) / len(possible(g)) for g in GRADED}
    first, second = GRADED[:2]
    drawn = [derived({first: _grade(a), second: _grade(b)}) for a, b in product(possible(first), possible(second))]
    for grade in DERIVED:
        held = sum(conditions[grade].holds(one[grade].value) for one in drawn)
        found[grade] = held / len(drawn)
    return found


def chance_of_all(conditions: Mapping[str, Condition]) -> float:
    """How probable it is that grades drawn at random fulfil all of them.

    Grades that fulfil the first two are N/A where they should be, and so fulfil the derived ones as well.
    """
    found = 1.0
    for grade in GRADED:
        found *= len(conditions[grade].fulfilled_by(grade)) / len(possible(grade))
    return found


def _grade(value: float | None) -> Grade:
    return Grade("na") if value is None else Grade("scored", value)
