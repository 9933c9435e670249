"""Distillation examples: a teacher's verdicts as training data for a student (docs/methods.md#judging-the-judges).

The student gets the same input as the teacher, in the student's own prompts. Texts are read only for the chosen
examples, one day at a time. The subclasses are in `verdicts.py` and `grades.py`.
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import polars as pl
import pyarrow as pa

from tasks.core.schemas import Table
from tasks.distill.selection import Candidate
from tasks.engines.generator import Example, Prompt
from tasks.graders import llm as grader
from tasks.judges import llm as judge
from tasks.run.scopes.scope import DateRange
from tasks.store.lake import Lake, Part
from tasks.store.query import Queries

Row: TypeAlias = Mapping[str, Any]
Student = TypeVar("Student", judge.Llm, grader.Llm)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Selects verdicts of a teacher.

    Attributes:
        days: Days of the traces.
        apps: Applications of the traces; empty for all.
        min_confidence: Smallest confidence of a verdict. If it is above 0, verdicts without confidence are left out.
    """

    days: DateRange = field(default_factory=DateRange)
    apps: tuple[str, ...] = ()
    min_confidence: float = 0.0


@dataclass
class Examples(ABC, Generic[Student]):
    """The examples of one teacher for one student.

    Attributes:
        teacher: Version of the teacher.
        seen: Number of verdicts by form of the student's prompts.
        left_out: Number of verdicts that can't be used as examples, by form and reason.
    """

    lake: Lake
    queries: Queries
    student: Student
    teacher: str
    wanted: Wanted
    seen: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, Counter[str]] = field(default_factory=dict)
    _judged: pl.DataFrame = field(init=False)
    provenance: ClassVar[tuple[str, ...]]  # columns to keep with each example

    def candidates(self) -> Iterator[Candidate]:
        """Yield possible examples, ordered by day and trace. The counts are complete at the end."""
        self._judged = pl.DataFrame(self._verdicts())
        self.seen.update(dict.fromkeys(self.student.forms, 0))
        self.left_out = {form: Counter() for form in self.student.forms}
        for place, row in enumerate(self._judged.iter_rows(named=True)):
            for form in self._forms(row):
                self.seen[form] += 1
                example = Example(problem=row["reason"]) if row["reason"] else self._example(form, row)
                if example.problem is not None:
                    self.left_out[form][example.problem] += 1
                else:
                    answer = self._answer(row)
                    yield Candidate(form, row["request_key"], row["question_id"], answer, example.reply, place)

    def written(self, chosen: Sequence[Candidate]) -> Iterator[tuple[Candidate, Prompt, Row]]:
        """Yield examples with prompt and provenance, in the order of their places."""
        by_place: defaultdict[int, list[Candidate]] = defaultdict(list)
        for example in chosen:
            by_place[example.place].append(example)
        rows = {place: self._judged.row(place, named=True) for place in sorted(by_place)}
        for day, places in groupby(rows, key=lambda place: rows[place]["date"]):
            of_day = {place: rows[place] for place in places}
            prompt = self._prompts(day, of_day)
            for place, row in of_day.items():
                provenance = {"date": str(day), **{name: row[name] for name in self.provenance}}
                for example in by_place[place]:
                    yield example, prompt(place, example.form), provenance

    @abstractmethod
    def _verdicts(self) -> pa.Table:
        """The teacher's verdicts, ordered by `date`; `reason` is null for usable ones."""

    @abstractmethod
    def _forms(self, row: Row) -> Sequence[str]:
        """Forms of the student's prompts for which a verdict can be an example."""

    @abstractmethod
    def _example(self, form: str, row: Row) -> Example:
        """The reply that the student should learn."""

    @abstractmethod
    def _answer(self, row: Row) -> str:
        """The label or grade by which examples are balanced."""

    @abstractmethod
    def _prompts(self, day: date, rows: Mapping[int, Row]) -> Callable[[int, str], Prompt]:
        """Return a function from place and form to the prompt; `rows` are the chosen rows of a day, by place."""

    def _of_days(self, table: Table, *partition: str) -> list[Part]:
        return [p for p in self.lake.parts(table, *partition) if p.date in self.wanted.days]
