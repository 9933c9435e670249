"""Load the lake into the warehouse, write the report, and publish the warehouse and the DuckLake for queries."""

import os
import shutil
from collections.abc import Callable, Collection, Sequence
from datetime import date
from typing import Any

import numpy as np

from tasks.core import keys
from tasks.core.errors import LeadlineError, UsageError, interruption
from tasks.core.progress import tracked
from tasks.core.schemas import (
    CLAIM_PATTERNS,
    CLAIM_RESULTS,
    CLAIMS,
    CURRENT_RECIPES,
    FEEDBACK,
    GRADES,
    JUDGES,
    NIGHTLY_CORRECTED,
    NIGHTLY_GRACE,
    NIGHTLY_RELEVANCE,
    NIGHTLY_SLICES,
    NIGHTLY_WATERFALL,
    PAIRS,
    RECIPES,
    RELEVANCE,
    TABLES,
    TRACE_SCORES,
    TRACES,
)
from tasks.privacy.retention import REDACTED
from tasks.publish.report import index, site
from tasks.publish.report.index import TREND
from tasks.run.context import Context
from tasks.run.result import StageResult
from tasks.scoring.alerts import alerts_on
from tasks.stats.intervals import interval, means
from tasks.store.ducklake import DuckLake
from tasks.store.lake import Lake
from tasks.store.query import bind, sql
from tasks.store.warehouse import Reader, Warehouse

MARK = ".inputs"  # file beside a night's pages: hash of their inputs
OF_A_NIGHT = (TRACES, FEEDBACK, PAIRS, RELEVANCE, GRADES)  # the report reads one night of these lake tables
# Tables and columns to publish in the DuckLake. Columns that redaction empties and tables that it deletes rows from are
# left out, because old snapshots would keep the texts.
SHARED = {
    table: [name for name in table.schema.names if name not in REDACTED.get(table, {})]
    for table in (
        *(table for table in TABLES.values() if table.name.startswith("nightly_") and table is not NIGHTLY_SLICES),
        *(TRACE_SCORES, CLAIMS, CLAIM_RESULTS, CLAIM_PATTERNS, CURRENT_RECIPES, RECIPES, JUDGES),
    )
}
NIGHTS = NIGHTLY_RELEVANCE  # every recipe fills this table, so its partitions are the available nights


def warehouse_of(ctx: Context) -> Warehouse:
    """The warehouse of a config."""
    return Warehouse(ctx.lake, ctx.config.warehouse, ctx.config.limits.memory_limit)


def load_warehouse(ctx: Context) -> StageResult:
    """Load changes of the lake into the warehouse; returns the number of partitions loaded."""
    return StageResult("warehouse", computed=warehouse_of(ctx).load())


def write_reports(
    ctx: Context, *, others: Sequence[Context] = (), build: Callable[..., object] = site.build
) -> StageResult:
    """Write the report of each night in the run's days if its inputs changed, including earlier nights in its trends.

    Args:
        others: Contexts of the run's other recipes. Their pages are linked from those of the first.
        build: See `site.build`.
    """
    contexts = (ctx, *others)
    days = sorted({date.fromisoformat(d) for c in contexts for d in ctx.lake.values(NIGHTS, c.recipe)})
    wanted = [d for d in days if any(c.covers(d) for c in contexts)]
    out = ctx.config.report.dir
    computed, watched = 0, ctx.config.alerts.model_dump(include={"numbers", "least_nights", "least_traces"})
    with tracked(ctx.progress, "report", len(wanted)), warehouse_of(ctx).connect() as connection:
        reader = Reader(connection)
        for night in wanted:
            shown = [d for d in days if night - TREND <= d <= night]
            first, *beside = [c for c in contexts if c.covers(night)]
            refused = site.refused(reader, night)
            token = keys.version([refused, watched, *(_token(c, shown) for c in (first, *beside))])
            mark = out / str(night) / MARK
            if not (mark.exists() and mark.read_text() == token):
                for table in OF_A_NIGHT:  # so that the report opens only files of this night
                    bind(connection, table.name, ctx.lake.parts(table, days=(night, night)))
                report = ctx.config.report
                build(
                    reader,
                    out,
                    night,
                    first.recipe,
                    report.max_trace_pages,
                    {c.label: c.recipe for c in beside},
                    refused,
                    ctx.config.alerts,
                    ctx.config_option,
                    report.max_explorer_traces,
                )
                mark.write_text(token)
                computed += 1
            ctx.progress.advance()
    return StageResult("report", computed=computed, reused=len(wanted) - computed)


def publish_warehouse(ctx: Context) -> StageResult:
    """Load the last changes (the run record) and publish the warehouse."""
    warehouse = warehouse_of(ctx)
    changed = warehouse.load()
    warehouse.publish()
    shutil.rmtree(ctx.scratch, ignore_errors=True)
    return StageResult("publish", computed=changed)


def publish_results(ctx: Context) -> StageResult:
    """Publish the warehouse and, if configured, the DuckLake. A failure of the DuckLake becomes a note."""
    result = publish_warehouse(ctx)
    if not ctx.config.ducklake:
        return result
    try:
        return result + StageResult("publish", computed=publish_ducklake(ctx))
    except LeadlineError as error:
        if interruption(error):
            raise
        place = ctx.config.warehouse
        note = f"Not published in the DuckLake: {error} The results are in {place}; the next run publishes them."
        return result + StageResult("publish", notes=(note,))


def publish_ducklake(ctx: Context) -> int:
    """Publish changed partitions of the warehouse in the DuckLake; returns the number of partitions replaced.

    Raises:
        LeadlineError: See `DuckLake.publish`.
    """
    settings = ctx.config.ducklake
    assert settings  # noqa: S101 - for the type checker
    address = os.environ.get(settings.dsn_env, "").strip()
    if not address:
        raise UsageError(
            f"{ctx.path}: `ducklake.dsn_env` names ${settings.dsn_env}, which is not set. Set it where Leadline runs."
        )
    place = DuckLake(settings.dsn_env, address, settings.data_path, settings.schema_name)
    with warehouse_of(ctx).connect() as connection:
        return place.publish(connection, keys.version([ctx.lake.salt()]), SHARED)


def summary(ctx: Context) -> list[dict[str, Any]]:
    """Summarize the run's days: a row of `sql/report/summary.sql` per app and generator, with an interval."""
    days = ctx.requested_days()
    params = {"recipe": ctx.recipe, "first": min(days, default=None), "last": max(days, default=None)}
    with warehouse_of(ctx).connect() as connection:
        rows = Reader(connection).rows(sql("report/summary"), params)
    rows = [row for row in rows if ctx.scope.takes(row["app"])]  # other apps may have rows of a shadow or a backfill
    most = 1.0 if ctx.settings.method == "citations" else 100.0
    for row in rows:
        total, n = (np.array(row.pop(name) or [], np.float64) for name in ("total", "n"))
        row["low"], row["high"] = interval(means(total, n), 0.0, most) or (None, None)
    return rows


def latest_night(ctx: Context, days: Collection[date]) -> index.Night | None:
    """The summary of the latest of these nights that has a page, with its opening lines; None if no night has one."""
    wanted = {str(day) for day in days}
    known = index.summaries(ctx.config.report.dir)
    return next((n for n in known if n["recipe"] == ctx.recipe and n["date"] in wanted), None)


def rebuild(lake: Lake, warehouse: Warehouse) -> int:
    """Rebuild the warehouse from the lake; returns the number of partitions loaded."""
    loaded = warehouse.load(rebuild=True)
    warehouse.publish()
    shutil.rmtree(lake.hidden("scratch"), ignore_errors=True)
    return loaded


def _token(ctx: Context, days: list[date]) -> str:
    inputs = [[str(d), p.inputs()] for d in days for p in ctx.lake.parts(NIGHTS, ctx.recipe, str(d))]
    for table in (NIGHTLY_GRACE, NIGHTLY_WATERFALL, NIGHTLY_CORRECTED):
        inputs += [[p.inputs()] for p in ctx.lake.parts(table, ctx.recipe, str(days[-1]))]
    inputs += [[p.name] for p in ctx.lake.parts(FEEDBACK, str(days[-1]))]
    inputs += [[r["alert_id"], r["status"], str(r["change"]), str(r["until"])] for r in alerts_on(ctx, days[-1])]
    rows = [p.rows() for p in ctx.lake.parts(TRACE_SCORES, ctx.recipe, str(days[-1]))]
    return keys.version([ctx.recipe, ctx.config.report.model_dump(exclude={"dir", "prometheus"}), inputs, rows])
