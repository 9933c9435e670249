"""GRACE: whether answers cite the sources that are annotated as right. It uses no judge.

Method: docs/methods.md#grace-citations-as-classification.

It only needs the claims, so it runs before any model. SQL computes trace rows for each part and nightly tables for each
day, and computes both again when the annotations, and so their `inputs` token, have changed.
"""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core import keys
from tasks.core.progress import tracked
from tasks.core.schemas import (
    NIGHTLY_GRACE,
    NIGHTLY_GRACE_CONFUSION,
    NIGHTLY_GRACE_SOURCES,
    TRACE_GRACE,
    TRACES,
)
from tasks.judging.claims import cut_segments, has_claims, planned_scopes
from tasks.run.annotations import of_traces
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.run.redacted import redacted_traces, unredacted, with_redacted
from tasks.run.result import StageResult
from tasks.run.scopes import scope
from tasks.run.scopes.scope import ALL, Scope
from tasks.scoring.intervals import of_grace
from tasks.store.lake import Part
from tasks.store.query import Queries, Relation

NIGHTLY = (NIGHTLY_GRACE_SOURCES, NIGHTLY_GRACE, NIGHTLY_GRACE_CONFUSION)  # the second table reads the first
COLUMNS = [
    "date",
    "trace_id",
    "app",
    "generator",
    "gold_chunk_ids",
    "chunks.list.element.chunk_id",
    "chunks.list.element.doc_id",
]
ANNOTATIONS = pa.schema([("trace_id", pa.string()), ("gold_ids", TRACES.schema.field("gold_chunk_ids").type)])


def score_grace(ctx: Context) -> StageResult:
    """Compute outcomes and nightly tables for the run's days; returns traces computed and reused.

    Notes name unusable annotations.
    """
    computed = reused = 0
    parts = [part for part in trace_parts(ctx) if has_claims(ctx, part)]
    with tracked(ctx.progress, "grace", len(parts)), ctx.queries() as queries:
        for part in parts:
            scopes = [*planned_scopes(ctx, part), ctx.scope]
            token = "|".join(filter(None, (ctx.annotations.version, scope.token(scopes))))
            existing = ctx.lake.find(TRACE_GRACE, part.name, ctx.recipe, part.partition[-1])
            if existing and existing.inputs() == token:
                reused += existing.rows()
            else:
                rows = _outcomes(ctx, queries, part, scopes)
                where = (ctx.recipe, part.partition[-1])
                rows = with_redacted(ctx.lake, TRACE_GRACE, part.name, rows, part, *where)
                ctx.lake.write(TRACE_GRACE, part.name, rows, *where, inputs=token)
                computed += rows.num_rows
            ctx.progress.advance()
        for day in sorted({part.partition[-1] for part in parts}):
            _night(ctx, queries, day)
    return StageResult("grace", computed=computed, reused=reused, notes=ctx.annotations.notes)


def _outcomes(ctx: Context, queries: Queries, part: Part, scopes: Sequence[Scope]) -> pa.Table:
    traces = part.read(COLUMNS)
    gold = traces.schema.get_field_index("gold_chunk_ids")  # unknown if the trace's text is gone
    unknown = pc.is_in(traces["trace_id"], redacted_traces(part))
    hidden = pc.if_else(unknown, pa.scalar(None, traces.schema.field(gold).type), traces["gold_chunk_ids"])
    traces = traces.set_column(gold, "gold_chunk_ids", hidden)
    if ALL not in scopes:
        traces = traces.filter(scope.mask(scopes, traces))
    found: list[dict[str, object]] = []
    if ctx.annotations.gold:  # otherwise questions are not needed
        questions = unredacted(part, part.read(["trace_id", "question"]))
        found = of_traces(ctx.annotations, pl.DataFrame(questions).select("trace_id", "question").iter_rows())
    relations: dict[str, Relation] = {
        "traces": traces,
        "claims": cut_segments(ctx, part),
        "annotations": pa.Table.from_pylist(found, schema=ANNOTATIONS),
    }
    params = {"recipe": ctx.recipe, "grace_source": ctx.settings.grace.source}
    return queries.run("scoring/trace_grace", relations, params)


def _night(ctx: Context, queries: Queries, day: str) -> None:
    outcomes = ctx.lake.parts(TRACE_GRACE, ctx.recipe, day)
    token = keys.version([[p.name, p.inputs()] for p in outcomes])
    if ctx.lake.has(NIGHTLY, "night", ctx.recipe, day, inputs=token):
        return
    traces = ctx.lake.parts(TRACES, day)
    sums = queries.run("sums/grace_sums", {TRACE_GRACE.name: outcomes, TRACES.name: traces})
    of_night, of_sources = of_grace(sums)
    sources = queries.run("nightly/nightly_grace_sources", {"grace_sums": sums, "intervals": of_sources})
    known: dict[str, Relation] = {TRACE_GRACE.name: outcomes, NIGHTLY_GRACE_SOURCES.name: sources}
    rows = (
        sources,
        queries.run("nightly/nightly_grace", {**known, "intervals": of_night}),
        queries.run("nightly/nightly_grace_confusion", known),
    )
    for table, made in zip(NIGHTLY, rows, strict=True):
        ctx.lake.write(table, "night", made, ctx.recipe, day, inputs=token)
