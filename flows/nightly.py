"""The nightly flow: from source files to published tables and a report, computing only what is missing."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from prefect import flow

from flows.progress import watcher
from tasks import claims, ingest, judge, publish, score
from tasks.core.errors import LeadlineError
from tasks.stages import publish as publishing
from tasks.stages.context import Context, StageResult, load
from tasks.stages.runs import Run


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run leaves to tell.

    Attributes:
        rows: One row per app and generator (`sql/summary.sql`).
    """

    stages: tuple[StageResult, ...]
    rows: list[dict[str, Any]]
    context: Context


def yesterday() -> date:
    """The last complete day, UTC."""
    return datetime.now(UTC).date() - timedelta(days=1)


@flow(name="nightly", flow_run_name="nightly {first}..{last}", persist_result=False)
def nightly(
    config: str = "configs/nightly.yaml",
    first: date | None = None,
    last: date | None = None,
    retry_failures: bool = False,
) -> Outcome:
    """Complete the days `first` to `last` (yesterday, where none is given)."""
    return run(Path(config), first or last or yesterday(), last or first or yesterday(), retry_failures=retry_failures)


def run(config: Path, first: date, last: date, *, retry_failures: bool = False) -> Outcome:
    """The stages in order under the lake's lock, on record in `runs` however they end.

    Raises:
        LeadlineError: See the stages. What was done is kept, and the next run goes on from there.
    """
    ctx = load(config, first, last, progress=watcher())
    record = Run("nightly")
    with ctx.lake.lock(f"leadline nightly {first}..{last}, process {os.getpid()}, since {record.started:%H:%M:%S} UTC"):
        record.start(ctx)
        stages: list[tuple[Callable[..., StageResult], dict[str, Any]]] = [
            (ingest.ingest, {}),
            (claims.extract_claims, {}),
            (claims.plan_pairs, {}),
            *(
                (task, {"stage": member.stage, "retry_failures": retry_failures})
                for member in ctx.judges
                for task in judge.looks(member.stage)
            ),
            (judge.score_relevance, {}),
            (score.score_traces, {}),
            (score.aggregate_nights, {}),
            (publish.load_warehouse, {}),
            (publish.write_reports, {}),
        ]
        try:
            for stage, options in stages:
                record.add(ctx, stage(ctx, **options))
        except BaseException as error:
            record.end(ctx, "failed", str(error) if isinstance(error, LeadlineError) else type(error).__name__)
            with suppress(Exception):  # the error that is raised matters more
                publishing.publish_warehouse(ctx)  # what was refused and why can be queried
            raise
        finally:
            ctx.close()
        record.end(ctx, "completed")
        last_stage = publish.publish_warehouse(ctx)
        return Outcome((*record.stages, last_stage), publishing.summary(ctx), ctx)
