"""The nightly flow: from source files to published tables and a report, computing only what is missing."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any

from prefect import Task, flow

from flows.progress import watcher
from tasks import claims, ingest, judge, publish, score
from tasks.core.errors import LeadlineError
from tasks.stages import publish as publishing
from tasks.stages.context import Context, StageResult, load_all
from tasks.stages.runs import Run


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run leaves to tell.

    Attributes:
        recipes: Each recipe of the run, with one row per app and generator (`sql/summary.sql`).
    """

    stages: tuple[StageResult, ...]
    recipes: tuple[tuple[Context, list[dict[str, Any]]], ...]


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
    contexts = load_all(config, first, last, progress=watcher())
    main = contexts[0]
    record = Run("nightly", recipes=[ctx.recipe for ctx in contexts])
    holder = f"leadline nightly {first}..{last}, process {os.getpid()}, since {record.started:%H:%M:%S} UTC"
    with main.lake.lock(holder):
        record.start(main)
        try:
            for ctx, task, options in _stages(contexts, retry_failures=retry_failures):
                record.add(main, replace(task(ctx, **options), stage=task.name))
        except BaseException as error:
            record.end(main, "failed", str(error) if isinstance(error, LeadlineError) else type(error).__name__)
            with suppress(Exception):  # the error that is raised matters more
                publishing.publish_warehouse(main)  # what was refused and why can be queried
            raise
        finally:
            for ctx in contexts:
                ctx.close()
        record.end(main, "completed")
        last_stage = publish.publish_warehouse(main)
        return Outcome((*record.stages, last_stage), tuple((ctx, publishing.summary(ctx)) for ctx in contexts))


def _stages(
    contexts: Sequence[Context], *, retry_failures: bool
) -> Iterator[tuple[Context, Task[..., StageResult], dict[str, Any]]]:
    """The stages in order, each with its context and options: what is a recipe's own, recipe after recipe.

    Stage goes before recipe, so that the models of one stage are gone before those of the next are loaded.
    """
    main, several = contexts[0], len(contexts) > 1

    def each(*tasks: Task[..., StageResult]) -> Iterator[tuple[Context, Task[..., StageResult], dict[str, Any]]]:
        for task in tasks:
            for ctx in contexts:
                yield ctx, named(ctx, task), {}

    def named(ctx: Context, task: Task[..., StageResult]) -> Task[..., StageResult]:
        name = f"{ctx.settings.name}: {task.name}"
        shown = name.replace("{", "{{").replace("}", "}}")  # a run's name is a template
        return task.with_options(name=name, task_run_name=shown) if several else task

    yield main, ingest.ingest, {}
    yield from each(claims.extract_claims, score.score_grace, claims.plan_pairs)
    asked = [(ctx, member) for ctx in contexts for member in ctx.judges]
    for (ctx, member), after in zip_longest(asked, asked[1:]):
        options = {
            "stage": member.stage,
            "retry_failures": retry_failures,
            "keep": after is not None and after[1].judge is member.judge,
        }
        for task in judge.looks(member.stage, rounds=ctx.settings.method == "citations"):
            yield ctx, named(ctx, task), options
    yield from each(judge.score_relevance, score.score_traces, score.aggregate_nights)
    yield main, publish.load_warehouse, {}
    yield main, publish.write_reports, {"others": contexts[1:]}
