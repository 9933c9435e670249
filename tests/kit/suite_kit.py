"""Suites of test cases by hand, and judges that know what is wanted, for the tests of `leadline metaeval`."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks.analysis.metaeval.suite import Suite
from tasks.core.grades import GRADED, RANGES, Answered, Grade

Corruption = Callable[[int, str, Grade], Grade]  # of the n-th reply, from 0, of a grade


def line(
    answer: str = "Tea is hot [1].",
    wanted: Sequence[str] = ("==5", "==5", "==1", "==None"),
    **changes: Any,
) -> dict[str, Any]:
    """A case in the public form; `wanted` are the conditions in the order of the grades."""
    return {
        "input": "How hot is tea?",
        "actual_output": answer,
        "expected_output": "Tea is hot [1].",
        "references": ["Tea is hot.", "Coffee is black."],
        "conditions": {f"{grade}_condition": one for grade, one in zip(GRADED, wanted, strict=True)},
        "metadata": {"test_type": "perfect", "goal": "Full marks."},
        **changes,
    }


def write_suite(path: Path, lines: Iterable[Mapping[str, Any] | str]) -> Path:
    """A suite's file; a line that is text stands there as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = (row if isinstance(row, str) else json.dumps(row) for row in lines)
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return path


@dataclass
class Knowing:
    """A judge that knows the suite and gives grades that fulfil every condition; `corrupt` changes its replies.

    Attributes:
        at_most: Of several values that fulfil a condition, give the largest instead of the smallest.
        asked: Every answer that it was asked about.
    """

    suite: Suite
    corrupt: Corruption = lambda n, name, grade: grade
    at_most: bool = True
    version: str = "00000000000000aa"
    judge: str | None = None
    needs_reference: bool = False
    engine: str = "none"
    gpus: int = 0
    asks: bool = False
    asked: list[Answered] = field(default_factory=list)

    def describe(self) -> dict[str, object]:
        return {"kind": "knowing", **({} if self.judge is None else {"judge": self.judge})}

    def grade(self, answers: Sequence[Answered]) -> list[Mapping[str, Grade]]:
        wanted = {(c.question, c.answer, c.references): c.conditions for c in self.suite.cases}
        found = []
        for answered in answers:
            conditions = wanted[answered.question, answered.answer, answered.passages]
            given = {name: self._right(name, conditions[name].fulfilled_by(name)) for name in GRADED}
            found.append({name: self.corrupt(len(self.asked), name, grade) for name, grade in given.items()})
            self.asked.append(answered)
        return found

    def close(self) -> None:
        pass

    def _right(self, name: str, values: Sequence[float | None]) -> Grade:
        value = values[-1 if self.at_most else 0]
        return Grade("na") if value is None else Grade("scored", value)


def full_marks(n: int, name: str, grade: Grade) -> Grade:
    """Always 5, and 1 of 0 and 1."""
    return Grade("scored", RANGES[name][1])


def swapped(n: int, name: str, grade: Grade) -> Grade:
    """0 and 1 are swapped, and 1 and 5; what lies between stays."""
    least, most = RANGES[name]
    other = {least: most, most: least}
    return grade if grade.value is None else Grade("scored", other.get(int(grade.value), grade.value))


def every_tenth_lost(n: int, name: str, grade: Grade) -> Grade:
    """One reply in ten can't be read, of each grade in turn another case's."""
    lost = (n + 3 * list(RANGES).index(name)) % 10 == 0
    return Grade("unparsable", failure="unparsable", raw="I would say") if lost else grade
