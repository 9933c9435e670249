"""A grader's grades as examples for a language-model grader (docs/methods.md#judging-the-judges)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache

import polars as pl
import pyarrow as pa

from tasks.core.grades import Answered, Grade
from tasks.core.schemas import CLAIMS, GRADES, REDACTIONS, REVIEWS, TRACES
from tasks.distill.examples import Examples, Row
from tasks.engines.generator import Example, Prompt
from tasks.graders.llm import Llm
from tasks.judging.grades import CLAIM_COLUMNS, answered
from tasks.judging.relevance import COLUMNS
from tasks.run.redacted import unredacted
from tasks.store.lake import empty


class Grades(Examples[Llm]):
    """The examples of one grader. Each grade has its own form of prompt."""

    provenance = ("trace_id", "extractor_version", "question_id", "status", "value", "request_key")

    def _verdicts(self) -> pa.Table:
        relations = {
            "grades": self._of_days(GRADES, self.teacher),
            "traces": self._of_days(TRACES),
            "redactions": self.lake.parts(REDACTIONS),
            "reviewed_grades": self.queries.run("views/reviewed_grades", {"reviews": self.lake.parts(REVIEWS)}),
        }
        return self.queries.run("distill/grades", relations, {"apps": list(self.wanted.apps)})

    def _forms(self, row: Row) -> Sequence[str]:
        return [row["grade"]]

    def _example(self, form: str, row: Row) -> Example:
        if self.student.needs_reference and not row["referenced"]:
            return Example(problem="no_reference")
        return self.student.example(form, Grade(row["status"], row["value"], explanation=row["explanation"]))

    def _answer(self, row: Row) -> str:
        return "na" if row["value"] is None else f"{row['value']:g}"

    def _prompts(self, day: date, rows: Mapping[int, Row]) -> Callable[[int, str], Prompt]:
        answers = self._answers(day, {(row["trace_id"], row["extractor_version"]) for row in rows.values()})

        @lru_cache(maxsize=1)  # grades of one trace are adjacent
        def prompts(key: tuple[str, str]) -> dict[str, list[Prompt]]:
            return {str(grade): found for grade, found in self.student.prompts([answers[key]]).items()}

        def prompt(place: int, form: str) -> Prompt:
            (found,) = prompts((rows[place]["trace_id"], rows[place]["extractor_version"]))[form]
            return found

        return prompt

    def _answers(self, day: date, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], Answered]:
        """The grader's inputs on a day, by trace and extractor."""
        found: dict[tuple[str, str], Answered] = {}
        for part in self.lake.parts(TRACES, str(day)):
            traces = pl.DataFrame(unredacted(part, part.read([*COLUMNS, "reference_answer"]))).filter(
                pl.col("trace_id").is_in([trace for trace, _ in wanted])
            )
            here = set(traces["trace_id"])
            for extractor in sorted({version for trace, version in wanted if trace in here}):
                cut = self.lake.find(CLAIMS, part.name, extractor, part.partition[-1])
                rows = pl.DataFrame(cut.read(CLAIM_COLUMNS) if cut else empty(CLAIMS).select(CLAIM_COLUMNS))
                claims = rows.rows_by_key("trace_id", named=True, include_key=True)
                for trace in traces.iter_rows(named=True):
                    if (trace["trace_id"], extractor) in wanted:
                        found[trace["trace_id"], extractor] = answered(trace, claims.get(trace["trace_id"], []))
        return found
