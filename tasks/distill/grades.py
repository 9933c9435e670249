"""A grader's grades as lessons for a grader by a language model (METHODS section 10).

What the student would be shown is put together as it was for the teacher (`grades.py`), and what it would be asked by
the student itself. Texts are read for the lessons that are kept, a part at a time.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tasks.core.grades import Answered, Grade
from tasks.core.schemas import CLAIMS, GRADES, REDACTIONS, REVIEWS, TRACES, Table
from tasks.distill.selection import Candidate
from tasks.distill.verdicts import Wanted, by_day
from tasks.engines.generator import Prompt
from tasks.graders.llm import Llm
from tasks.judging.grades import CLAIM_COLUMNS, answered
from tasks.judging.relevance import COLUMNS
from tasks.run.redacted import unredacted
from tasks.store.lake import Lake, Part, empty
from tasks.store.query import Queries

PROVENANCE = ("trace_id", "extractor_version", "question_id", "status", "value")


@dataclass(slots=True)
class Grades:
    """The lessons of one grader.

    Attributes:
        seen: By grade, how many of it the teacher gave.
        left_out: By grade and reason, how many of them are no lesson.
    """

    lake: Lake
    queries: Queries
    student: Llm
    teacher: str
    wanted: Wanted
    seen: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, Counter[str]] = field(default_factory=dict)
    _grades: pa.Table = field(init=False)

    def candidates(self) -> Iterator[Candidate]:
        """What can be a lesson, in the order of day, trace and grade."""
        self._grades = self.queries.run("distill/grades", self._relations(), {"apps": list(self.wanted.apps)})
        self.left_out = {look: Counter() for look in self.student.forms}
        self.seen.update(dict.fromkeys(self.student.forms, 0))
        columns = ("reason", "referenced", "grade", "status", "value", "explanation", "question_id", "shown")
        for place, (reason, referenced, look, status, value, explanation, question, shown) in enumerate(
            zip(*(self._grades[c].to_pylist() for c in columns), strict=True)
        ):
            self.seen[look] += 1
            if reason is not None:
                self.left_out[look][reason] += 1
                continue
            if self.student.needs_reference and not referenced:
                self.left_out[look]["no_reference"] += 1
                continue
            lesson = self.student.example(look, Grade(status, value, explanation=explanation))
            if lesson.problem is not None:
                self.left_out[look][lesson.problem] += 1
            else:
                answer = "na" if value is None else f"{value:g}"
                yield Candidate(look, shown, question, answer, lesson.reply, place)

    def written(self, chosen: Sequence[Candidate]) -> Iterator[tuple[Candidate, Prompt, Mapping[str, object]]]:
        """The prompts of lessons, with where each comes from, in the order of their places."""
        for day, rows, lessons in by_day(self._grades, chosen):
            answers = self._answers(day, {(row["trace_id"], row["extractor_version"]) for row in rows.values()})
            prompts = lru_cache(maxsize=1)(self._prompts)  # a trace's grades follow one another
            for place, row in rows.items():
                for lesson in lessons[place]:
                    (prompt,) = prompts(answers[row["trace_id"], row["extractor_version"]])[lesson.look]
                    where = {"date": str(day), **{name: row[name] for name in PROVENANCE}, "request_key": row["shown"]}
                    yield lesson, prompt, where

    def _prompts(self, answered: Answered) -> dict[str, list[Prompt]]:
        return {str(grade): its for grade, its in self.student.prompts([answered]).items()}

    def _answers(self, day: date, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], Answered]:
        """Answers of a day as a grader is given them, by trace and extractor."""
        found: dict[tuple[str, str], Answered] = {}
        for part in self.lake.parts(TRACES, str(day)):
            traces = unredacted(part, part.read([*COLUMNS, "reference_answer"])).to_pylist()
            here = {row["trace_id"] for row in traces}
            for extractor in sorted({version for trace, version in wanted if trace in here}):
                claims = self._claims(part, extractor)
                for row in traces:
                    if (row["trace_id"], extractor) in wanted:
                        found[row["trace_id"], extractor] = answered(row, claims[row["trace_id"]])
        return found

    def _claims(self, part: Part, extractor: str) -> Mapping[str, list[dict[str, Any]]]:
        there = self.lake.find(CLAIMS, part.name, extractor, part.partition[-1])
        found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for claim in (there.read(CLAIM_COLUMNS) if there else empty(CLAIMS)).to_pylist():
            found[claim["trace_id"]].append(claim)
        return found

    def _relations(self) -> dict[str, Any]:
        people = self.queries.run("views/reviewed_grades", {"reviews": self.lake.parts(REVIEWS)})
        return {
            "grades": self._of_days(GRADES, self.teacher),
            "traces": self._of_days(TRACES),
            "redactions": self.lake.parts(REDACTIONS),
            "reviewed_grades": people,
        }

    def _of_days(self, table: Table, *partition: str) -> list[Part]:
        return [p for p in self.lake.parts(table, *partition) if p.date in self.wanted.days]
