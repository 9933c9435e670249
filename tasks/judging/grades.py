"""Grades: give answers that have none yet the six grades, by the recipe's grader (METHODS section 9).

The grades of a part of `traces` are one part of `grades` for each grader and extractor: what an answer says, statement
by statement, is what the recipe's extractor cut. The part is written again after every shard, so that a kill loses at
most the shard in flight, and says in its `inputs` token what is still open: grades that were not given yet or could not
be asked for (an outage), and failures. Left out: how a grade is given (`tasks/graders`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tasks import graders
from tasks.core.grades import GRADED, GRADES, RANGES, Answered, Grade, Grader, Statement, derived
from tasks.core.progress import tracked
from tasks.core.schemas import GRADES as TABLE
from tasks.core.types import OUTAGE
from tasks.extractors import visible
from tasks.judging import relevance
from tasks.judging.pairs import covered, cut_parts, has_claims, planned_for
from tasks.judging.relevance import COLUMNS, TRACES_AT_ONCE
from tasks.judging.verdicts import outage_notes
from tasks.run import scope
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.run.redacted import unredacted
from tasks.run.result import StageResult
from tasks.store.lake import Part

STAGE = "grades"
CLAIM_COLUMNS = ["trace_id", "kind", "hypothesis", "cited_chunk_ids", "dangling_citations"]
GOOD = ("scored", "na")
KEY = ("trace_id", "grade")
Key = tuple[str, str]


class State(relevance.State, frozen=True, omit_defaults=True):
    """What is open in a part of `grades`, as its `inputs` token has it; `failed` and `unparsable` are apart.

    Attributes:
        unparsable: Grades whose reply can't be read as one.
    """

    unparsable: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """What is still to be done on a part.

    Attributes:
        known: Rows that stay.
        missing: Grades that are to be given.
        scopes: Which traces they are of.
        seen: The file that `known` is from.
    """

    part: Part
    known: pa.Table | None
    missing: Collection[Key]
    scopes: str
    seen: tuple[int, int] | None = None

    @property
    def traces(self) -> set[str]:
        """Those that are to be graded."""
        return {trace for trace, _ in self.missing}


def grade_answers(ctx: Context, *, retry_failures: bool = False, keep: bool = False) -> StageResult:
    """Grade the answers of the run's days that lack a grade; returns rows of `grades` made and reused.

    Args:
        retry_failures: Grade again what failed or could not be read; grades that are there stay as they are.
        keep: Leave the model where it is: the next stage asks the same grader.

    Raises:
        EngineError: The model can't be run. The grades that are stored stay.
    """
    done = StageResult(STAGE)
    if ctx.grader is None:
        return done
    work: list[Work] = []
    for part in trace_parts(ctx):
        todo, reused = _todo(ctx, part, retry_failures=retry_failures)
        done = replace(done, reused=done.reused + reused)
        if todo is not None:
            work.append(todo)
    with tracked(ctx.progress, STAGE, sum(len(w.traces) for w in work)):
        for todo in work:
            done = _grade(ctx, ctx.grader, todo, done)
    if not keep:
        ctx.grader.close()
    return replace(done, notes=outage_notes(done.lost))


def open_answers(ctx: Context) -> Iterator[tuple[str, Answered]]:
    """What would be graded, with the ids of the traces."""
    for part in trace_parts(ctx):
        todo, _ = _todo(ctx, part, retry_failures=False)
        if todo is not None:
            yield from _answers(ctx, todo)


def grades_of(ctx: Context, part: Part) -> Part | None:
    """The part of `grades` of a part of `traces`, if the recipe names a grader and it is there."""
    if ctx.grader is None:
        return None
    return ctx.lake.find(TABLE, name_of(ctx, part), ctx.grader.version, part.partition[-1])


def name_of(ctx: Context, part: Part) -> str:
    """What the part of `grades` of a part of `traces` is called; another extractor gives a grader other statements."""
    return f"{part.name}-{ctx.extractor.version}"


def _todo(ctx: Context, part: Part, *, retry_failures: bool) -> tuple[Work | None, int]:
    """What is to be done on a part, or None where nothing is; and how many grades are there."""
    existing = grades_of(ctx, part)
    seen = existing.stamp() if existing else None
    state = msgspec.json.decode(existing.inputs() or "{}", type=State) if existing else State()
    failures = state.failed or state.unparsable
    done = existing and not (state.open or state.scopes or (retry_failures and failures))
    if done or not has_claims(ctx, part):  # an outage may have kept the answers from being cut
        return None, existing.rows() if existing else 0
    scopes = scope.token(planned_for(ctx, part))
    traces = covered(ctx, part, unredacted(part, part.read(["trace_id"])))["trace_id"].to_pylist()
    missing = {(trace, grade) for trace in traces for grade in GRADES}
    known = existing.read() if existing else None
    if known is not None:
        good = pc.is_in(known["status"], pa.array(GOOD)).to_pylist()
        again = [
            retry_failures and not ok and key in missing
            for key, ok in zip(relevance.keys_of(known, KEY), good, strict=True)
        ]
        known = known.filter(pc.invert(pa.array(again, pa.bool_())))
        missing.difference_update(relevance.keys_of(known, KEY))
    return (Work(part, known, missing, scopes, seen) if missing else None), known.num_rows if known is not None else 0


def _grade(ctx: Context, grader: Grader, work: Work, done: StageResult) -> StageResult:
    rows, seen = work.known, work.seen
    left, stood = set(work.missing), _stood(work)
    answers = _answers(ctx, work)
    while shard := list(islice(answers, max(1, ctx.config.limits.shard_requests // len(GRADED)))):
        if ctx.budget.over():
            break  # the next run goes on
        given = grader.grade([answered for _, answered in shard])
        new = {
            (trace, name): grade
            for (trace, _), its in zip(shard, given, strict=True)
            for name, grade in _of_answer(its, stood.get(trace, {})).items()
            if (trace, name) in left and grade.failure != OUTAGE
        }
        asked = [grade for its in given for grade in its.values()]
        left.difference_update(new)
        done = replace(
            done,
            computed=done.computed + len(new),
            lost=done.lost + sum(grade.failure == OUTAGE for grade in asked),
            tokens_in=done.tokens_in + sum(g.tokens_in for g in asked),
            tokens_cached=done.tokens_cached + sum(g.tokens_cached for g in asked),
            tokens_out=done.tokens_out + sum(g.tokens_out for g in asked),
            gpus=grader.gpus,
        )
        ctx.budget.used += sum(g.tokens_in + g.tokens_out for g in asked)
        if new:
            rows = relevance.appended(rows, _rows(ctx, grader, new))
            rows, seen = _write(ctx, grader, work, rows, left, seen)
        ctx.progress.advance(len(shard))
    return done


def _write(
    ctx: Context, grader: Grader, work: Work, rows: pa.Table, left: set[Key], seen: tuple[int, int] | None
) -> tuple[pa.Table, tuple[int, int]]:
    """Put the part in the place of the one that was there; returns its rows and stamp. What is done leaves `left`."""
    where = (grader.version, work.part.partition[-1])
    name = name_of(ctx, work.part)
    with ctx.lake.alone():
        there = ctx.lake.find(TABLE, name, *where)
        if there and there.stamp() != seen:  # a nightly and a backfill may grade the same traces
            rows = relevance.with_others(rows, there, KEY)
            left.difference_update(relevance.keys_of(rows, KEY))
        counts = {c["values"]: c["counts"] for c in pc.value_counts(rows["status"]).to_pylist()}
        state = State(
            open=len(left), failed=counts.get("failed", 0), unparsable=counts.get("unparsable", 0), scopes=work.scopes
        )
        return rows, ctx.lake.write(TABLE, name, rows, *where, inputs=state.token).stamp()


def _of_answer(given: Mapping[str, Grade], stood: Mapping[str, Grade]) -> dict[str, Grade]:
    """The six grades of an answer. Those that stood before stay, and the derived ones follow from what counts."""
    grades: dict[str, Grade] = {name: stood.get(name) or _checked(name, given[name]) for name in GRADED}
    return {**grades, **derived(grades)}


def _checked(name: str, grade: Grade) -> Grade:
    """The grade, or a failure in its place: a value is there, and in its range, exactly where it is scored."""
    least, most = RANGES[name]
    scored, failed = grade.status == "scored", grade.status in ("unparsable", "failed")
    fits = least <= grade.value <= most if grade.value is not None else not scored
    if fits and scored == (grade.value is not None) and failed == (grade.failure is not None):
        return grade
    raw = grade.raw or f"{grade.status} {grade.value}"
    return replace(grade, status="failed", value=None, failure=grade.failure or "invalid_grade", raw=raw)


def _stood(work: Work) -> Mapping[str, Mapping[str, Grade]]:
    """By trace, the grades that stay of those of which others are to be given."""
    found: defaultdict[str, dict[str, Grade]] = defaultdict(dict)
    if work.known is not None:
        rows = work.known.filter(pc.is_in(work.known["trace_id"], pa.array(sorted(work.traces), pa.string())))
        for row in rows.to_pylist():
            if row["grade"] in GRADED:
                found[row["trace_id"]][row["grade"]] = Grade(row["status"], row["value"], row["failure"])
    return found


def _answers(ctx: Context, work: Work) -> Iterator[tuple[str, Answered]]:
    """Each trace with its answer as a grader is given it."""
    wanted = pa.array(sorted(work.traces), pa.string())
    claims: defaultdict[str, list[Mapping[str, object]]] = defaultdict(list)
    for claim in cut_parts(ctx, work.part, CLAIM_COLUMNS).to_pylist():
        claims[claim["trace_id"]].append(claim)
    traces = work.part.read(COLUMNS)
    for batch in traces.filter(pc.is_in(traces["trace_id"], wanted)).to_batches(max_chunksize=TRACES_AT_ONCE):
        for trace in batch.to_pylist():
            yield trace["trace_id"], answered(trace, claims[trace["trace_id"]])


def answered(trace: Mapping[str, Any], claims: Sequence[Mapping[str, object]]) -> Answered:
    """A trace's answer as a grader is given it.

    Args:
        trace: With `COLUMNS`, and `reference_answer` where that is to be shown.
        claims: What was cut from it, with `CLAIM_COLUMNS`.
    """
    numbers = {chunk["chunk_id"]: n for n, chunk in enumerate(trace["chunks"], start=1)}
    return Answered(
        trace["question"],
        visible(trace["answer"]),
        tuple(chunk["text"] for chunk in trace["chunks"]),
        tuple(_statement(claim, numbers) for claim in claims if claim["kind"] in graders.STATED),
        trace.get("reference_answer"),
    )


def _statement(claim: Mapping[str, object], numbers: Mapping[str, int]) -> Statement:
    """A claim as a grader is given it.

    Args:
        claim: With `CLAIM_COLUMNS`.
        numbers: Of the trace's chunks, from 1, by their ids.
    """
    cited: Sequence[str] = claim["cited_chunk_ids"]  # type: ignore[assignment]
    dangling: Sequence[str] = claim["dangling_citations"]  # type: ignore[assignment]
    return Statement(str(claim["hypothesis"]), tuple(sorted(numbers[c] for c in cited)), len(dangling))


def _rows(ctx: Context, grader: Grader, grades: Mapping[Key, Grade]) -> pa.Table:
    found = list(grades.values())
    columns: dict[str, list[object]] = {
        "trace_id": [trace for trace, _ in grades],
        "extractor_version": [ctx.extractor.version] * len(found),
        "grade": [name for _, name in grades],
        "status": [g.status for g in found],
        "value": [g.value for g in found],
        "failure": [g.failure for g in found],
        "explanation": [g.explanation for g in found],
        "raw": [g.raw for g in found],
        "tokens_in": [g.tokens_in for g in found],
        "tokens_cached": [g.tokens_cached for g in found],
        "tokens_out": [g.tokens_out for g in found],
        "engine": [grader.engine] * len(found),
    }
    return pa.table({n: pa.array(c, TABLE.schema.field(n).type) for n, c in columns.items()})
