"""The backfill flow: past days under another judge or recipe, beside the nightly, newest first, within a budget."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from prefect import Task, flow
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.runtime import prefect as stages
from flows.runtime.gpu import Shared
from flows.runtime.progress import watcher
from flows.runtime.retry import patiently
from flows.summary import tokens
from tasks.core.budget import Budget
from tasks.core.config import Nightly
from tasks.core.errors import BusyError, UsageError
from tasks.core.progress import tracked
from tasks.publish.publish import publish_warehouse
from tasks.run.build import build_contexts
from tasks.run.context import Context
from tasks.run.promotions import Promotion
from tasks.run.record import BACKFILL, Run
from tasks.run.result import StageResult
from tasks.run.variants import Variant, backfill_variants
from tasks.scoring import backfill as backfilling
from tasks.scoring.backfill import Day
from tasks.store.lake import Lake


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a backfill leaves to tell.

    Attributes:
        days: Of the range that have traces, newest first, each with what its stages did; empty for days that the budget
            did not reach.
        spent: What of the budget is spent, if it stopped before its end.
    """

    ctx: Context
    days: tuple[tuple[Day, tuple[StageResult, ...]], ...]
    spent: str | None


@flow(name=BACKFILL, flow_run_name="backfill {first}..{last}", persist_result=False)
def backfill(
    first: date,
    last: date,
    config: str = "configs/nightly.yaml",
    judge: str | None = None,
    recipe: str | None = None,
    app: Sequence[str] = (),
    sample: float = 1.0,
    max_tokens: int | None = None,
    max_minutes: float | None = None,
    retry_failures: bool = False,
) -> Outcome:
    """Complete past days under another judge or recipe; see `leadline backfill --help`."""
    chosen = Path(judge) if judge else None
    ctx = load(Path(config), first, last, judge=chosen, recipe=recipe, apps=app, sample=sample)
    budget = Budget(max_tokens, max_minutes)
    return patiently(lambda: run(replace(ctx, budget=budget, progress=watcher()), retry_failures=retry_failures))


def load(
    config: Path, first: date, last: date, *, judge: Path | None, recipe: str | None, apps: Sequence[str], sample: float
) -> Context:
    """The context of a backfill.

    Raises:
        UsageError: It is not told what to compute.
        ConfigError: A config file is wrong.
    """
    if not 0 < sample <= 1:
        raise UsageError(f"--sample {sample:g} is no share. Give more than 0 and at most 1.")

    def select(found: Nightly, path: Path, known: Sequence[Promotion]) -> Sequence[Variant]:
        return backfill_variants(found, path, known, judge, recipe, apps, sample)

    (ctx,) = build_contexts(config, first, last, writer=BACKFILL, select=select)
    return ctx


def run(ctx: Context, *, retry_failures: bool = False) -> Outcome:
    """The days of the range, newest first, on record in `runs`; published at the end.

    Raises:
        BusyError: Another backfill of this lake is under way.
        LeadlineError: See the stages. What was done is kept, and the next run goes on from there.
    """
    record = Run(BACKFILL, recipes=[ctx.recipe])
    with ctx.lake.lock(f"leadline backfill {ctx.first}..{ctx.last}, process {os.getpid()}"):
        record.start(ctx)
        try:
            outcome = _complete(ctx, record, retry_failures=retry_failures)
        except BaseException as error:
            record.fail(ctx, error)
            raise
        finally:
            ctx.close()
            shutil.rmtree(ctx.scratch, ignore_errors=True)
        record.end(ctx, "completed")
    _publish(ctx)
    return outcome


def _complete(ctx: Context, record: Run, *, retry_failures: bool) -> Outcome:
    """Claims and pairs of the whole range, so that each model is loaded once; then day by day."""
    with Shared(ctx.extractor.gpus, [ctx]) as gpu:
        ahead = _Within(ctx, record, gpu)
        for task in (stages.extract_claims, stages.plan_pairs):
            ahead.run(ctx, task)
    days = backfilling.days(ctx)
    held = max([*(m.gpus for m in ctx.judges), *(s.gpus for s in ctx.scorers), ctx.grader.gpus if ctx.grader else 0])
    with tracked(ctx.progress, BACKFILL, sum(day.pairs for day in days)), Shared(held, [ctx]) as gpu:
        within = _Within(ctx, record, gpu)
        found = tuple((day, _judged(within, day, retry_failures=retry_failures)) for day in days)
    record.add(ctx, replace(stages.correct_nights(ctx), stage=stages.correct_nights.name))
    return Outcome(ctx, found, within.spent or ahead.spent)


def _judged(within: "_Within", day: Day, *, retry_failures: bool) -> tuple[StageResult, ...]:
    """What the stages of a day did, as far as the budget went."""
    stages = _stages(day.ctx, retry_failures=retry_failures)
    return tuple(result for task, options in stages for result in within.run(day.ctx, task, **options))


class _Within:
    """Stages within a budget, on record; between two shards they give way to a run that wants the GPU.

    Attributes:
        spent: What of the budget was spent when a stage would have begun.
    """

    def __init__(self, ctx: Context, record: Run, gpu: Shared) -> None:
        self.spent: str | None = None
        self._ctx, self._record, self._gpu = ctx, record, gpu
        ctx.budget.wanted = gpu.wanted

    def run(self, ctx: Context, task: Task[..., StageResult], **options: object) -> list[StageResult]:
        """A stage, as often as it takes: what is done stays done, and after giving way it goes on."""
        done: list[StageResult] = []
        budget, begun = ctx.budget, True
        while begun and not self._over():
            budget.gave_way = False
            done.append(replace(task(ctx, **options), stage=task.name))
            self._record.add(self._ctx, done[-1])
            begun = budget.gave_way
            if begun and budget.spent is None:
                self._gpu.give_way()
        return done

    def _over(self) -> bool:
        self.spent = self.spent or self._ctx.budget.spent
        return self.spent is not None


def _stages(ctx: Context, *, retry_failures: bool) -> Iterator[tuple[Task[..., StageResult], dict[str, Any]]]:
    """The stages of a day. Judge and grader stay loaded from one day to the next where no other model needs the GPU."""
    scorers, grader = any(s.gpus for s in ctx.scorers), ctx.grader.gpus if ctx.grader else 0
    only = len({member.judge.version for member in ctx.judges}) == 1 and not scorers and not grader
    alone = not grader or not (scorers or any(member.gpus for member in ctx.judges))
    yield stages.score_grace, {}
    for member in ctx.judges:
        for task in stages.looks(member.stage, rounds=ctx.settings.method == "citations"):
            yield task, {"stage": member.stage, "retry_failures": retry_failures, "keep": only}
    yield stages.score_relevance, {"retry_failures": retry_failures}
    if ctx.grader:
        yield stages.grade_answers, {"retry_failures": retry_failures, "keep": alone}
    yield stages.score_traces, {}
    yield stages.aggregate_nights, {}


def _publish(ctx: Context) -> None:
    """Load and publish the warehouse, once the nightly is done with it."""
    main = replace(ctx, lake=Lake(ctx.config.lake))
    holder = f"leadline backfill {ctx.first}..{ctx.last} (publishing), process {os.getpid()}"
    try:
        with main.lake.lock(holder):
            publish_warehouse(main)
    except BusyError as busy:
        Console(stderr=True).print(f"[yellow]note[/yellow] Waiting to publish: {escape(str(busy))}", highlight=False)
        with main.lake.lock(holder, wait=True):
            publish_warehouse(main)


def show(outcome: Outcome) -> None:
    """Print what was done, day by day, and what is left."""
    ctx, console = outcome.ctx, Console()
    title = f"Backfill {ctx.first} to {ctx.last}, {escape(ctx.label)} by {escape(ctx.judges[0].name)}"
    table = Table(title=title, title_style="bold", title_justify="left", box=box.SIMPLE)
    for name in ("day", "verdicts", "reused", "tokens", "seconds", ""):
        table.add_column(name, justify="left" if name in ("day", "") else "right")
    for day, stages in outcome.days:
        judged = [s for s in stages if s.judge]
        total = StageResult(
            "day",
            tokens_in=sum(s.tokens_in for s in stages),
            tokens_cached=sum(s.tokens_cached for s in stages),
            tokens_out=sum(s.tokens_out for s in stages),
        )
        computed, reused = sum(s.computed for s in judged), sum(s.reused for s in judged)
        seconds = f"{sum(s.seconds for s in stages):.1f}"
        state = "complete" if day.done else "begun" if stages else "not begun"
        table.add_row(str(day.date), f"{computed:,}", f"{reused:,}", tokens(total), seconds, state)
    console.print(table)
    for note in dict.fromkeys(note for _, stages in outcome.days for s in stages for note in s.notes):
        console.print(f"[yellow]note[/yellow] {escape(note)}", highlight=False)
    left = sum(not day.done for day, _ in outcome.days)
    if outcome.spent:
        console.print(f"Stopped: {outcome.spent}. {left} days are left: run the same command again.", highlight=False)
    if not outcome.days:
        sys.stderr.write(f"leadline: no traces from {ctx.first} to {ctx.last} are in the lake. Nothing to do.\n")
    console.print(f"recipe {ctx.recipe}, judge {ctx.judge_version}", highlight=False)
