"""Distillation examples: a teacher's verdicts to train a language model on (docs/methods.md#judging-the-judges).

The student sees the same input as the teacher did, in its own prompts. Texts are read for the chosen examples only, a
day at a time. What each kind of judgment adds is in `verdicts.py` and `grades.py`.
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
    """Which verdicts of a teacher to use.

    Attributes:
        days: Of the traces.
        apps: Applications that answered; empty for all.
        min_confidence: Least confidence of a verdict; above 0, verdicts without one are left out.
    """

    days: DateRange = field(default_factory=DateRange)
    apps: tuple[str, ...] = ()
    min_confidence: float = 0.0


@dataclass
class Examples(ABC, Generic[Student]):
    """The examples of one teacher for one student.

    Attributes:
        teacher: Its version.
        seen: By form of the student's prompts, how many verdicts of the teacher there are.
        left_out: By form and reason, how many of them are no example.
    """

    lake: Lake
    queries: Queries
    student: Student
    teacher: str
    wanted: Wanted
    seen: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, Counter[str]] = field(default_factory=dict)
    _judged: pl.DataFrame = field(init=False)
    provenance: ClassVar[tuple[str, ...]]  # columns that an example keeps beside its texts

    def candidates(self) -> Iterator[Candidate]:
        """Possible examples, in the order of day and trace; afterwards the counts are complete."""
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
        """The prompts of examples with their provenance, in the order of their places."""
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
        """The teacher's verdicts, ordered by `date`; `reason` is null where one can be an example."""

    @abstractmethod
    def _forms(self, row: Row) -> Sequence[str]:
        """The forms of prompts that a judgment can be an example for."""

    @abstractmethod
    def _example(self, form: str, row: Row) -> Example:
        """The reply that the student should learn."""

    @abstractmethod
    def _answer(self, row: Row) -> str:
        """What is balanced: a label, or a grade."""

    @abstractmethod
    def _prompts(self, day: date, rows: Mapping[int, Row]) -> Callable[[int, str], Prompt]:
        """A function from place and form to the prompt, for the chosen rows of a day by place."""

    def _of_days(self, table: Table, *partition: str) -> list[Part]:
        return [p for p in self.lake.parts(table, *partition) if p.date in self.wanted.days]
