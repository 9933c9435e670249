"""The nightly flow: from source files to published tables and a report, computing only what is missing."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import groupby, zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Any

from prefect import Task, flow
from prefect.runtime import flow_run

from flows.alerts import tell
from flows.runtime import prefect as stages
from flows.runtime.gpu import slot
from flows.runtime.progress import watcher
from flows.runtime.retry import patiently
from tasks.core.errors import interruption
from tasks.publish import publish as publishing
from tasks.run.build import build_contexts
from tasks.run.context import Context
from tasks.run.record import Run
from tasks.run.result import StageResult
from tasks.run.scope import ALWAYS
from tasks.scoring import alerts as alerting


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run leaves to tell.

    Attributes:
        recipes: Each recipe of the run, with one row per app and generator (`sql/report/summary.sql`).
        alerts: Those of the run's days, with the recipe's name; the ones that were told on them, or ended.
        refused: The first and the last night of the rows that were refused; None where none was.
    """

    stages: tuple[StageResult, ...]
    recipes: tuple[tuple[Context, list[dict[str, Any]]], ...]
    alerts: tuple[tuple[str, dict[str, Any]], ...] = ()
    refused: tuple[date, date] | None = None


def yesterday() -> date:
    """The last complete day, UTC, when the run was due: one that starts late completes the day it was meant for."""
    due: datetime = flow_run.scheduled_start_time
    return due.astimezone(UTC).date() - timedelta(days=1)


def _name() -> str:
    """What Prefect calls the run."""
    given: Mapping[str, Any] = flow_run.parameters
    first, last = given.get("first"), given.get("last")
    return f"nightly {first or last or yesterday()}..{last or first or yesterday()}"


@flow(name="nightly", flow_run_name=_name, persist_result=False)
def nightly(
    config: str = "configs/nightly.yaml",
    first: date | None = None,
    last: date | None = None,
    retry_failures: bool = False,
) -> Outcome:
    """Complete the days `first` to `last` (yesterday, where none is given)."""
    days = first or last or yesterday(), last or first or yesterday()
    return patiently(lambda: run(Path(config), *days, retry_failures=retry_failures))


def run(config: Path, first: date, last: date, *, retry_failures: bool = False) -> Outcome:
    """The stages in order under the lake's lock, on record in `runs` however they end.

    Raises:
        LeadlineError: See the stages. What was done is kept, and the next run goes on from there.
    """
    contexts = build_contexts(config, first, last, progress=watcher())
    main = contexts[0]
    record = Run("nightly", recipes=[ctx.recipe for ctx in _counted(contexts)])
    holder = f"leadline nightly {first}..{last}, process {os.getpid()}, since {record.started:%H:%M:%S} UTC"
    with main.lake.lock(holder):
        record.start(main)
        try:
            for gpus, steps in groupby(_steps(contexts, retry_failures=retry_failures), key=attrgetter("gpus")):
                with slot(gpus, contexts):
                    for step in steps:
                        record.add(main, replace(step.task(step.ctx, **step.options), stage=step.task.name))
            if told := tell(contexts):
                record.add(main, told)
        except BaseException as error:
            record.fail(main, error)
            if not interruption(error):
                with suppress(Exception):  # the error that is raised matters more
                    publishing.publish_warehouse(main)  # what was refused and why can be queried
            raise
        finally:
            for ctx in contexts:
                ctx.close()
        record.end(main, "completed")
        last_stage = stages.publish_warehouse(main)
        counted = _counted(contexts)
        nights = [day for day in record.refused(main) if day]
        return Outcome(
            (*record.stages, last_stage),
            tuple((ctx, publishing.summary(ctx)) for ctx in counted),
            tuple(
                (ctx.settings.name, row) for ctx in counted for row in alerting.alerts_on(ctx, *ctx.requested_days())
            ),
            (min(nights), max(nights)) if nights else None,
        )


@dataclass(frozen=True, slots=True)
class _Step:
    """A stage of a recipe.

    Attributes:
        gpus: That its model holds while it runs, and until the next one of as many.
    """

    ctx: Context
    task: Task[..., StageResult]
    options: Mapping[str, Any] = field(default_factory=dict)
    gpus: int = 0


def _steps(contexts: Sequence[Context], *, retry_failures: bool) -> Iterator[_Step]:
    """The stages in order: what is a recipe's own, recipe after recipe.

    Stage goes before recipe, so that the models of one stage are gone before those of the next are loaded.
    """
    main, several = contexts[0], len(contexts) > 1

    def each(*tasks: Task[..., StageResult]) -> Iterator[_Step]:
        for task in tasks:
            for ctx in contexts:
                yield _Step(ctx, named(ctx, task), gpus=ctx.extractor.gpus if task is stages.extract_claims else 0)

    def named(ctx: Context, task: Task[..., StageResult]) -> Task[..., StageResult]:
        name = f"{ctx.label}: {task.name}"
        shown = name.replace("{", "{{").replace("}", "}}")  # a run's name is a template
        return task.with_options(name=name, task_run_name=shown) if several else task

    yield _Step(replace(main, days=ALWAYS), stages.ingest)
    yield from each(stages.extract_claims, stages.score_grace, stages.plan_pairs)
    asked = [(ctx, member) for ctx in contexts for member in ctx.judges]
    for (ctx, member), after in zip_longest(asked, asked[1:]):
        options = {
            "stage": member.stage,
            "retry_failures": retry_failures,
            "keep": after is not None and after[1].judge is member.judge,
        }
        for task in stages.looks(member.stage, rounds=ctx.settings.method == "citations"):
            yield _Step(ctx, named(ctx, task), options, member.gpus)
    scored = [(ctx, scorer) for ctx in contexts for scorer in ctx.scorers]
    for (ctx, scorer), next_ in zip_longest(scored, scored[1:]):
        options = {
            "scorer": scorer,
            "retry_failures": retry_failures,
            "keep": next_ is not None and next_[1].model is scorer.model,
        }
        yield _Step(ctx, named(ctx, stages.scoring(scorer)), options, scorer.gpus)
    graded = [(ctx, ctx.grader) for ctx in contexts if ctx.grader]
    for (ctx, grader), following in zip_longest(graded, graded[1:]):
        options = {"retry_failures": retry_failures, "keep": following is not None and following[1] is grader}
        yield _Step(ctx, named(ctx, stages.grade_answers), options, grader.gpus)
    yield from each(stages.score_traces, stages.aggregate_nights, stages.correct_nights, stages.find_alerts)
    yield _Step(main, stages.load_warehouse)
    yield _Step(main, stages.write_reports, {"others": _counted(contexts)[1:]})


def _counted(contexts: Sequence[Context]) -> list[Context]:
    """Those whose numbers count; shadows stand beside them in the tables only."""
    return [ctx for ctx in contexts if not ctx.shadow]
