"""Grades: gives answers the six grades that they lack, with the recipe's grader.

Method: docs/methods.md#grades-of-a-grounded-answer.

A part of `traces` has one part of `grades` for each grader and extractor, since the extractor decides which statements
a grader sees. Left out: how a grade is given (`tasks/graders`).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa

from tasks import graders
from tasks.core.grades import GRADED, GRADES, RANGES, Answered, Grade, Grader, derived
from tasks.core.schemas import GRADES as TABLE
from tasks.core.types import OUTAGE
from tasks.extractors import visible
from tasks.judging.claims import covered, cut_segments, has_claims, planned_scopes
from tasks.judging.open_parts import OpenPart
from tasks.judging.relevance import COLUMNS, TRACES_AT_ONCE
from tasks.run.context import Context
from tasks.run.part_work import by_part
from tasks.run.plan import trace_parts
from tasks.run.redacted import unredacted
from tasks.run.result import TOKENS, StageResult
from tasks.run.scopes import scope
from tasks.run.work import shards, work_loop
from tasks.store.lake import Part

STAGE = "grades"
CLAIM_COLUMNS = ["trace_id", "kind", "hypothesis", "cited_chunk_ids", "dangling_citations"]


def grade_answers(ctx: Context, *, retry_failures: bool = False, keep: bool = False) -> StageResult:
    """Grade the answers of the run's days that lack a grade; returns rows of `grades` made and reused.

    Args:
        retry_failures: Grade failed and unreadable answers again; other grades stay as they are.
        keep: Leave the model loaded, because the next stage uses the same grader.

    Raises:
        EngineError: The model can't be run. Stored grades stay.
    """
    grader = ctx.grader
    if grader is None:
        return StageResult(STAGE)
    parts = [_open_part(ctx, grader, part, retry_failures=retry_failures) for part in trace_parts(ctx)]
    done = StageResult(STAGE, reused=sum(part.reused for part in parts))
    if not ctx.executor.elsewhere:
        return _grade(ctx, grader, parts, done, keep=keep)
    todo = [part.source for part in parts if part.missing]
    done = by_part(ctx, todo, partial(_grade_part, retry_failures=retry_failures), done, gpus=grader.gpus)
    if grader.gpus and not keep:
        ctx.executor.close()
    return done


def _grade_part(ctx: Context, part: Part, *, retry_failures: bool) -> StageResult:
    """Grade a part in a worker."""
    if ctx.grader is None:
        return StageResult(STAGE)
    part_of = _open_part(ctx, ctx.grader, part, retry_failures=retry_failures)
    return replace(_grade(ctx, ctx.grader, [part_of], StageResult(STAGE), keep=True), notes=())


def _grade(ctx: Context, grader: Grader, parts: Sequence[OpenPart], done: StageResult, *, keep: bool) -> StageResult:
    with work_loop(
        ctx.progress,
        sum(len(part.traces) for part in parts),
        done,
        budget=ctx.budget,
        gpus=grader.gpus,
        close=None if keep else grader.close,
    ) as loop:
        for part in parts:
            loop.run(
                shards(_answers(ctx, part), max(1, ctx.config.limits.shard_requests // len(GRADED))),
                lambda shard: grader.grade([answered for _, answered in shard]),
                partial(_store, ctx, grader, part, _stored_grades(part)),
                lambda grades: grades.values(),
            )
    return loop.result


def open_answers(ctx: Context) -> Iterator[tuple[str, Answered]]:
    """The answers to grade, with the ids of their traces."""
    if ctx.grader:
        for part in trace_parts(ctx):
            yield from _answers(ctx, _open_part(ctx, ctx.grader, part, retry_failures=False))


def grades_of(ctx: Context, part: Part) -> Part | None:
    """The part of `grades` for a part of `traces`; None if it does not exist or the recipe has no grader."""
    if ctx.grader is None:
        return None
    return ctx.lake.find(TABLE, name_of(ctx, part), ctx.grader.version, part.partition[-1])


def name_of(ctx: Context, part: Part) -> str:
    """Name of the part of `grades` for a part of `traces`; it contains the extractor, which makes the statements."""
    return f"{part.name}-{ctx.extractor.version}"


def _open_part(ctx: Context, grader: Grader, part: Part, *, retry_failures: bool) -> OpenPart:
    """The stored and the missing grades of a part."""
    failures = {status: pl.col("status") == status for status in ("failed", "unparsable")}
    found = OpenPart(ctx.lake, part, TABLE, name_of(ctx, part), grader.version, ["trace_id", "grade"], failures)
    if not has_claims(ctx, part):  # an outage may have delayed it
        existing = grades_of(ctx, part)
        found.reused = existing.rows() if existing else 0
        return found

    def expected() -> tuple[pl.DataFrame, str]:
        traces = pl.DataFrame(covered(ctx, part, unredacted(part, part.read(["trace_id"]))))
        keys = traces.join(pl.DataFrame({"grade": GRADES}), how="cross")
        return keys, scope.token(planned_scopes(ctx, part))

    return found.read(expected, retry_failures=retry_failures)


def _store(
    ctx: Context,
    grader: Grader,
    part: OpenPart,
    stored: Mapping[str, Mapping[str, Grade]],
    shard: list[tuple[str, Answered]],
    given: Sequence[Mapping[str, Grade]],
) -> int:
    new = {
        (trace, name): grade
        for (trace, _), its in zip(shard, given, strict=True)
        for name, grade in _six(its, stored.get(trace, {})).items()
        if (trace, name) in part.missing and grade.failure != OUTAGE
    }
    if new:
        fields = ("status", "value", "failure", "explanation", "raw", *TOKENS)
        columns = {
            "trace_id": [trace for trace, _ in new],
            "extractor_version": [ctx.extractor.version] * len(new),
            "grade": [name for _, name in new],
            "engine": [grader.engine] * len(new),
            **{name: [getattr(grade, name) for grade in new.values()] for name in fields},
        }
        part.add(pa.Table.from_pydict(columns, TABLE.stored))
    return len(new)


def _six(given: Mapping[str, Grade], stored: Mapping[str, Grade]) -> dict[str, Grade]:
    """The six grades of an answer. Stored grades win, and the derived grades follow from the result."""
    grades: dict[str, Grade] = {name: stored.get(name) or _checked(name, given[name]) for name in GRADED}
    return {**grades, **derived(grades)}


def _checked(name: str, grade: Grade) -> Grade:
    """The grade, or a failure if it is invalid: a scored grade, and only that, needs a value in its range."""
    least, most = RANGES[name]
    scored, failed = grade.status == "scored", grade.status in ("unparsable", "failed")
    fits = least <= grade.value <= most if grade.value is not None else not scored
    if fits and scored == (grade.value is not None) and failed == (grade.failure is not None):
        return grade
    raw = grade.raw or f"{grade.status} {grade.value}"
    return replace(grade, status="failed", value=None, failure=grade.failure or "invalid_grade", raw=raw)


def _stored_grades(part: OpenPart) -> Mapping[str, Mapping[str, Grade]]:
    """Stored grades of traces with missing grades, by trace id."""
    found: defaultdict[str, dict[str, Grade]] = defaultdict(dict)
    if part.rows is not None:
        mine = pl.col("trace_id").is_in(part.traces) & pl.col("grade").is_in(GRADED)
        columns = ("trace_id", "grade", "status", "value", "failure")
        for trace, name, *grade in pl.DataFrame(part.rows).filter(mine).select(columns).iter_rows():
            found[trace][name] = Grade(*grade)
    return found


def _answers(ctx: Context, part: OpenPart) -> Iterator[tuple[str, Answered]]:
    """Each trace with missing grades, and its answer as input for a grader."""
    if not part.missing:
        return
    claims: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for claim in pl.DataFrame(cut_segments(ctx, part.source, CLAIM_COLUMNS)).iter_rows(named=True):
        claims[claim["trace_id"]].append(claim)
    traces = pl.DataFrame(part.source.read(COLUMNS)).filter(pl.col("trace_id").is_in(part.traces))
    for trace in traces.iter_rows(named=True, buffer_size=TRACES_AT_ONCE):
        yield trace["trace_id"], answered(trace, claims[trace["trace_id"]])


def answered(trace: Mapping[str, Any], claims: Sequence[Mapping[str, Any]]) -> Answered:
    """A trace's answer as input for a grader.

    Args:
        trace: With `COLUMNS`, and with `reference_answer` if the grader may see it.
        claims: Everything that was cut from the answer, with `CLAIM_COLUMNS`.
    """
    numbers = {chunk["chunk_id"]: n for n, chunk in enumerate(trace["chunks"], start=1)}
    statements = (
        graders.statement(claim["hypothesis"], claim["cited_chunk_ids"], claim["dangling_citations"], numbers)
        for claim in claims
        if claim["kind"] in graders.STATED
    )
    return Answered(
        trace["question"],
        visible(trace["answer"]),
        tuple(chunk["text"] for chunk in trace["chunks"]),
        tuple(statements),
        trace.get("reference_answer"),
    )
