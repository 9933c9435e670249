"""Publish: the lake into the warehouse, the nights into the report, and the warehouse to where people query it."""

import shutil
from datetime import date
from typing import Any

from tasks import report
from tasks.core import keys
from tasks.core.progress import tracked
from tasks.core.schemas import NIGHTLY_GROUNDEDNESS, TRACE_SCORES
from tasks.stages.context import Context, StageResult
from tasks.store.lake import Lake
from tasks.store.query import sql
from tasks.store.warehouse import Reader, Warehouse

MARK = ".inputs"  # beside a night's pages: what they were made from


def warehouse_of(ctx: Context) -> Warehouse:
    """The warehouse that the config names."""
    return Warehouse(ctx.lake, ctx.config.warehouse, ctx.config.limits.memory_limit)


def load_warehouse(ctx: Context) -> StageResult:
    """Load what has changed in the lake; returns partitions loaded."""
    return StageResult("warehouse", computed=warehouse_of(ctx).load())


def write_reports(ctx: Context) -> StageResult:
    """The report of every night of the run's days whose numbers, or those of a night before it, have changed."""
    days = [date.fromisoformat(d) for d in ctx.lake.values(NIGHTLY_GROUNDEDNESS, ctx.recipe)]
    wanted = [d for d in days if ctx.covers(d)]
    out = ctx.config.report.dir
    computed = 0
    with tracked(ctx.progress, "report", len(wanted)), warehouse_of(ctx).connect() as connection:
        for night in wanted:
            token = _token(ctx, [d for d in days if d <= night])
            mark = out / str(night) / MARK
            if not (mark.exists() and mark.read_text() == token):
                report.build(Reader(connection), out, night, ctx.recipe, ctx.config.report.max_trace_pages)
                mark.write_text(token)
                computed += 1
            ctx.progress.advance()
    return StageResult("report", computed=computed, reused=len(wanted) - computed)


def publish_warehouse(ctx: Context) -> StageResult:
    """Load what came last (the run's own record) and put the warehouse where people query it."""
    warehouse = warehouse_of(ctx)
    changed = warehouse.load()
    warehouse.publish()
    shutil.rmtree(ctx.scratch, ignore_errors=True)
    return StageResult("publish", computed=changed)


def summary(ctx: Context) -> list[dict[str, Any]]:
    """The run's days as one row per app and generator (`sql/summary.sql`)."""
    params = {"recipe": ctx.recipe, "first": ctx.first, "last": ctx.last}
    with warehouse_of(ctx).connect() as connection:
        return Reader(connection).rows(sql("summary"), params)


def rebuild(lake: Lake, warehouse: Warehouse) -> int:
    """Make the warehouse again from nothing but the lake; returns partitions loaded."""
    loaded = warehouse.load(rebuild=True)
    warehouse.publish()
    shutil.rmtree(lake.hidden("scratch"), ignore_errors=True)
    return loaded


def _token(ctx: Context, days: list[date]) -> str:
    inputs = [[str(d), p.inputs()] for d in days for p in ctx.lake.parts(NIGHTLY_GROUNDEDNESS, ctx.recipe, str(d))]
    rows = [p.rows() for p in ctx.lake.parts(TRACE_SCORES, ctx.recipe, str(days[-1]))]
    return keys.version([ctx.recipe, ctx.config.report.max_trace_pages, inputs, rows])
