"""Conditions on grades, in the syntax of the public GroUSE suite (docs/methods.md#judging-the-judges).

Left out: the cases (`suite.py`), and pass rates (`pass_rates.py`).
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
        value: The value to compare with. None means N/A and is valid only with `==`.
    """

    operator: str
    value: float | None

    def __str__(self) -> str:
        return f"{self.operator}{'None' if self.value is None else f'{self.value:g}'}"

    def holds(self, grade: float | None) -> bool:
        """Whether a grade meets the condition. N/A (None) meets only `==None`, and no other grade does."""
        if grade is None or self.value is None:
            return grade is self.value
        if grade == self.value:
            return "=" in self.operator
        return self.operator[0] == ("<" if grade < self.value else ">")

    def fulfilled_by(self, grade: str) -> tuple[float | None, ...]:
        """Possible values of a grade that meet the condition."""
        return tuple(v for v in possible(grade) if self.holds(v))


NA = Condition("==", None)
RIGHT, WRONG = Condition("==", 1), Condition("==", 0)


def parse(text: str) -> Condition:
    """Parse a condition such as `==5`, `<4`, `>=3` or `==None`.

    Raises:
        ValueError: The text is not a condition. The message explains the syntax and does not quote the text.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None or (found["value"] == "None" and found["operator"] != "=="):
        raise ValueError("Write one of == < <= > >= and a number, or ==None for N/A.")
    return Condition(found["operator"], None if found["value"] == "None" else float(found["value"]))


def possible(grade: str) -> tuple[float | None, ...]:
    """Possible values of a grade, N/A first."""
    least, most = RANGES[grade]
    return (None, *map(float, range(least, most + 1)))


def of_derived(answer_relevancy: Condition, completeness: Condition) -> dict[str, Condition]:
    """Derive the conditions of positive acceptance and negative rejection from those of the first two grades.

    `==None` for answer relevancy means that the answer declines. `==None` for completeness means that the chunks
    contain no answer. Every other condition means the opposite, since N/A does not meet it. The rules are those of
    `grades.derived`.
    """
    accepts, exists = answer_relevancy != NA, completeness != NA
    right = RIGHT if accepts == exists else WRONG
    return {"positive_acceptance": right if exists else NA, "negative_rejection": NA if exists else right}


def chance(conditions: Mapping[str, Condition]) -> dict[str, float]:
    """Probability that random grades meet each condition.

    Judged grades are drawn uniformly from their possible values, including N/A. Derived grades follow from them.

    Args:
        conditions: Conditions of all six grades.
    """
    found: dict[str, float] = {g: len(conditions[g].fulfilled_by(g)) / len(possible(g)) for g in GRADED}
    first, second = GRADED[:2]
    drawn = [derived({first: _grade(a), second: _grade(b)}) for a, b in product(possible(first), possible(second))]
    for grade in DERIVED:
        held = sum(conditions[grade].holds(one[grade].value) for one in drawn)
        found[grade] = held / len(drawn)
    return found


def chance_of_all(conditions: Mapping[str, Condition]) -> float:
    """Probability that random grades meet all conditions.

    Grades that meet the first two conditions are N/A exactly where they should be, so the derived grades meet theirs.
    """
    found = 1.0
    for grade in GRADED:
        found *= len(conditions[grade].fulfilled_by(grade)) / len(possible(grade))
    return found


def _grade(value: float | None) -> Grade:
    return Grade("na") if value is None else Grade("scored", value)
