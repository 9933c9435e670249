"""A judge's verdicts as lessons for a language-model judge (METHODS section 10).

Verdicts are found in the lake by the judge's version, under whatever recipes it judged. What the student would be shown
is put together as it was for the teacher (`evidence.py`), and what it would be asked by the student itself. Texts are
read for the lessons that are kept, a part at a time.
"""

from collections import ChainMap, Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.schemas import CLAIM_RESULTS, CLAIMS, PAIRS, RECIPES, REDACTIONS, REVIEWS, TRACES, VERDICTS, Table
from tasks.core.types import Request, Verdict
from tasks.distill.selection import Candidate
from tasks.engines.generator import Prompt
from tasks.judges.llm import Llm
from tasks.judging.evidence import passages, premise
from tasks.judging.pairs import trace_texts
from tasks.run.scope import DateRange
from tasks.store.lake import Lake, Part, empty
from tasks.store.query import Queries

PROVENANCE = ("date", "trace_id", "claim_id", "recipe", "request_key", "question_id", "label", "confidence")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which of a teacher's judgements are asked for.

    Attributes:
        days: Of the traces.
        apps: Applications that answered; empty for all.
        min_confidence: Least confidence of a verdict; above 0, those that come without one are left out.
    """

    days: DateRange = field(default_factory=DateRange)
    apps: tuple[str, ...] = ()
    min_confidence: float = 0.0


@dataclass(slots=True)
class Verdicts:
    """The lessons of one judge.

    Attributes:
        seen: By the student's look, how many looks of the teacher with a verdict there are.
        left_out: By the student's look and reason, how many of them are no lesson.
    """

    lake: Lake
    queries: Queries
    student: Llm
    teacher: str
    wanted: Wanted
    seen: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, Counter[str]] = field(default_factory=dict)
    _looks: pa.Table = field(init=False)

    def candidates(self) -> Iterator[Candidate]:
        """What can be a lesson, in the order of day, trace and claim."""
        self._looks = self.queries.run(
            "distill/verdicts",
            self._relations(),
            {
                "judge_version": self.teacher,
                "apps": list(self.wanted.apps),
                "min_confidence": self.wanted.min_confidence,
            },
        )
        reasons = {r["values"]: r["counts"] for r in pc.value_counts(self._looks["reason"]).to_pylist()}
        reasons.pop(None, None)
        for look in self.student.forms:
            self.seen[look] = self._looks.num_rows
            self.left_out[look] = Counter(reasons)
        columns = ("reason", "request_key", "question_id", "label", "shown", "passages", "explanation")
        for place, (reason, key, question, label, shown, named, explanation) in enumerate(
            zip(*(self._looks[c].to_pylist() for c in columns), strict=True)
        ):
            if reason is not None:
                continue
            verdict = Verdict(key, label, passages=tuple(named), explanation=explanation)
            for look in self.student.forms:
                lesson = self.student.example(look, shown, verdict)
                if lesson.problem is not None:
                    self.left_out[look][lesson.problem] += 1
                else:
                    yield Candidate(look, key, question, label, lesson.reply, place)

    def written(self, chosen: Sequence[Candidate]) -> Iterator[tuple[Candidate, Prompt, Mapping[str, object]]]:
        """The prompts of lessons, with where each comes from, in the order of their places."""
        for day, rows, lessons in by_day(self._looks, chosen):
            requests = self._requests(day, rows)
            for place, row in rows.items():
                for lesson in lessons[place]:
                    (prompt,) = self.student.prompts(lesson.look, [requests[place]])
                    yield lesson, prompt, {name: _plain(row[name]) for name in PROVENANCE}

    def _requests(self, day: date, rows: Mapping[int, Mapping[str, Any]]) -> dict[int, Request]:
        """What the teacher was asked in the looks of a day."""
        found: dict[int, Request] = {}
        for part in self.lake.parts(TRACES, str(day)):
            here = set(part.read(["trace_id"])["trace_id"].to_pylist())
            mine = {place: row for place, row in rows.items() if row["trace_id"] in here}
            if not mine:
                continue
            texts = trace_texts(part)
            said = {version: self._said(part, version) for version in {r["extractor_version"] for r in mine.values()}}
            for place, row in mine.items():
                claims = said[row["extractor_version"]]
                evidence = [(e["chunk_id"], e["start"], e["end"]) for e in row["evidence"]]
                # The second pass of method `citations` shows claims of the answer, which go by their ids.
                shown = passages(evidence, ChainMap(texts[row["trace_id"]], claims))
                found[place] = Request(
                    row["request_key"], premise(shown), claims[row["claim_id"]], shown if len(shown) > 1 else ()
                )
        return found

    def _said(self, part: Part, extractor: str) -> dict[str, str]:
        claims = self.lake.find(CLAIMS, part.name, extractor, part.partition[-1])
        rows = claims.read(["claim_id", "hypothesis"]) if claims else empty(CLAIMS)
        return dict(zip(rows["claim_id"].to_pylist(), rows["hypothesis"].to_pylist(), strict=True))

    def _relations(self) -> dict[str, Any]:
        recipes = [row for part in self.lake.parts(RECIPES) for row in part.read().to_pylist()]
        mine = [r for r in recipes if self.teacher in (r["judge_version"], *(r["judge_versions"] or ()))]
        return {
            "pairs": [p for r in mine for p in self._of_days(PAIRS, r["recipe"])],
            "recipes": self.lake.parts(RECIPES),
            "verdicts": self.lake.parts(VERDICTS, self.teacher),
            "traces": self._of_days(TRACES),
            "redactions": self.lake.parts(REDACTIONS),
            "reviewed_claims": self._reviewed(mine),
        }

    def _reviewed(self, recipes: Sequence[Mapping[str, Any]]) -> pa.Table:
        """What people said of the claims that the teacher judged."""
        reviews = self.lake.parts(REVIEWS)
        days = {day for part in reviews for day in part.read(["date"])["date"].to_pylist()}
        versions = sorted({r["extractor_version"] for r in recipes})
        return self.queries.run(
            "views/reviewed_claims",
            {
                "reviews": reviews,
                "claims": [p for v in versions for p in self._of_days(CLAIMS, v) if p.date in days],
                "claim_results": [
                    p for r in recipes for p in self._of_days(CLAIM_RESULTS, r["recipe"]) if p.date in days
                ],
            },
        )

    def _of_days(self, table: Table, *partition: str) -> list[Part]:
        return [p for p in self.lake.parts(table, *partition) if p.date in self.wanted.days]


def by_day(
    judged: pa.Table, chosen: Sequence[Candidate]
) -> Iterator[tuple[date, Mapping[int, dict[str, Any]], Mapping[int, list[Candidate]]]]:
    """Lessons day by day: the rows of their places in order, and the lessons of each, as several looks may share one.

    Args:
        judged: What the teacher judged, ordered by its `date`; places are its row numbers.
    """
    lessons: defaultdict[int, list[Candidate]] = defaultdict(list)
    for lesson in chosen:
        lessons[lesson.place].append(lesson)
    rows = {place: judged.slice(place, 1).to_pylist()[0] for place in sorted(lessons)}
    for day, places in groupby(rows, key=lambda place: rows[place]["date"]):
        yield day, {place: rows[place] for place in places}, lessons


def _plain(value: object) -> object:
    return str(value) if isinstance(value, date) else value
