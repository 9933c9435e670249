"""`leadline backfill`: judge past days with another judge or recipe, newest first, within a budget.

It can run at the same time as a nightly.
"""

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from flows.console import emit, note, print_lines, table
from flows.nightly.run import SCORING, judging
from flows.nightly.summary import tokens
from flows.options import (
    Apps,
    Config,
    Form,
    NoPrefect,
    Output,
    RetryFailures,
    day_option,
    days_or_yesterday,
    optional,
    uses_prefect,
)
from flows.runtime.gpu import Shared
from flows.runtime.run import DELAYS_S, Local, Run, Runner, Stage, locked, on_record
from flows.runtime.temporary_server import flows_with
from tasks.claims.extract import extract_claims
from tasks.core.budget import Budget
from tasks.core.config import Nightly, given_file
from tasks.core.errors import BusyError, UsageError
from tasks.core.paths import CONFIG
from tasks.core.progress import tracked
from tasks.judging import grades
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_relevance
from tasks.publish.publish import publish_results
from tasks.run.build import build_contexts
from tasks.run.context import Context
from tasks.run.record import BACKFILL
from tasks.run.result import StageResult
from tasks.run.scopes.promotions import Promotion
from tasks.run.scopes.variants import Variant, backfill_variants
from tasks.scoring import backfill as backfilling
from tasks.scoring import corrected
from tasks.scoring.backfill import Day
from tasks.scoring.grace import score_grace
from tasks.store.lake import Lake


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a backfill.

    Attributes:
        days: Days of the range that have traces, newest first, with the results of their stages. Days that the budget
        did
            not reach have no results.
        spent: Which part of the budget is spent, if the budget stopped the backfill; else None.
    """

    ctx: Context
    days: tuple[tuple[Day, tuple[StageResult, ...]], ...]
    spent: str | None


def load(
    config: Path, first: date, last: date, *, judge: Path | None, recipe: str | None, apps: Sequence[str], sample: float
) -> Context:
    """Build the context of a backfill.

    Raises:
        UsageError: The recipe or the judge is missing or ambiguous, or `sample` is out of range.
        ConfigError: A config file is wrong.
    """
    if not 0 < sample <= 1:
        raise UsageError(f"--sample {sample:g} is not a valid share. Give more than 0 and at most 1.")

    def select(found: Nightly, path: Path, known: Sequence[Promotion]) -> Sequence[Variant]:
        file = judge and given_file(judge, "judges", config)
        return backfill_variants(found, path, known, file, recipe, apps, sample)

    (ctx,) = build_contexts(config, first, last, writer=BACKFILL, select=select)
    return ctx


def run(ctx: Context, runner: Runner, *, retry_failures: bool = False) -> Outcome:
    """Complete the days of the range, newest first, record the run in `runs`, and publish the results.

    Raises:
        BusyError: Another backfill of this lake is running.
        LeadlineError: A stage failed. Stored results are kept, and the next run continues from them.
    """
    ctx = replace(ctx, progress=runner.progress())
    with locked(ctx.lake, f"backfill {ctx.first}..{ctx.last}"):
        try:
            with on_record(BACKFILL, [ctx], runner, publish=False) as record:
                outcome = _complete(ctx, record, retry_failures=retry_failures)
        finally:
            shutil.rmtree(ctx.scratch, ignore_errors=True)
    _publish(ctx, runner)
    return outcome


def _complete(ctx: Context, record: Run, *, retry_failures: bool) -> Outcome:
    """Compute claims and pairs of the whole range, so that models are loaded once, then the other stages by day."""
    with record.shared(ctx.extractor.gpus, [ctx]) as gpu:
        ahead = _Within(ctx, record, gpu)
        ahead.run(ctx, "claims", extract_claims)
        ahead.run(ctx, "pairs", plan_pairs)
    days = backfilling.days(ctx)
    held = max([*(m.gpus for m in ctx.judges), *(s.gpus for s in ctx.scorers), ctx.grader.gpus if ctx.grader else 0])
    with tracked(ctx.progress, BACKFILL, sum(day.pairs for day in days)), record.shared(held, [ctx]) as gpu:
        within = _Within(ctx, record, gpu)
        found = tuple((day, _judged(within, day, retry_failures=retry_failures)) for day in days)
    record.stage(corrected.STAGE, corrected.correct_nights, ctx)
    return Outcome(ctx, found, within.spent or ahead.spent)


def _judged(within: "_Within", day: Day, *, retry_failures: bool) -> tuple[StageResult, ...]:
    """Run the stages of a day, as far as the budget allows."""
    stages = _stages(day.ctx, retry_failures=retry_failures)
    return tuple(result for name, work, options in stages for result in within.run(day.ctx, name, work, **options))


class _Within:
    """Runs stages within a budget. Between shards, they release the GPU if another run waits for it.

    Attributes:
        spent: Which part of the budget was spent before a stage could start; None if the budget sufficed so far.
    """

    def __init__(self, ctx: Context, record: Run, gpu: Shared) -> None:
        self.spent: str | None = None
        self._ctx, self._record, self._gpu = ctx, record, gpu
        ctx.budget.wanted = gpu.wanted

    def run(self, ctx: Context, name: str, work: Stage, **options: object) -> list[StageResult]:
        """Run a stage until it is complete or the budget is spent, and resume it each time it has released the GPU."""
        done: list[StageResult] = []
        budget, begun = ctx.budget, True
        while begun and not self._over():
            budget.gave_way = False
            done.append(self._record.stage(name, work, ctx, **options))
            begun = budget.gave_way
            if begun and budget.spent is None:
                self._gpu.give_way()
        return done

    def _over(self) -> bool:
        self.spent = self.spent or self._ctx.budget.spent
        return self.spent is not None


def _stages(ctx: Context, *, retry_failures: bool) -> Iterator[tuple[str, Stage, dict[str, Any]]]:
    """Stages of a day. Judge and grader stay loaded across days if no other model needs the GPU."""
    scorers, grader = any(s.gpus for s in ctx.scorers), ctx.grader.gpus if ctx.grader else 0
    only = len({member.judge.version for member in ctx.judges}) == 1 and not scorers and not grader
    alone = not grader or not (scorers or any(member.gpus for member in ctx.judges))
    yield "grace", score_grace, {}
    for judge in ctx.judges:
        for name, work in judging(ctx, judge):
            yield name, work, {"stage": judge.stage, "retry_failures": retry_failures, "keep": only}
    yield "relevance", score_relevance, {"retry_failures": retry_failures}
    if ctx.grader:
        yield grades.STAGE, grades.grade_answers, {"retry_failures": retry_failures, "keep": alone}
    for name, work in SCORING[:2]:  # backfills raise no alerts, and correct nights once at the end
        yield name, work, {}


def _publish(ctx: Context, runner: Runner) -> None:
    """Publish the warehouse, after waiting for the nightly to release the lake's lock."""
    main = replace(ctx, lake=Lake(ctx.config.lake))
    doing = f"backfill {ctx.first}..{ctx.last} (publishing)"
    try:
        with locked(main.lake, doing):
            result = runner.stage("publish", publish_results, main)
    except BusyError as busy:
        note(f"Waiting to publish: {busy}")
        with locked(main.lake, doing, wait=True):
            result = runner.stage("publish", publish_results, main)
    for text in result.notes:
        note(text)


def show(outcome: Outcome, form: str = "table", output: Path | None = None) -> None:
    """Print what was done by day, and what is left."""
    ctx = outcome.ctx
    days = []
    for day, stages in outcome.days:
        verdicts, total = (sum(some, StageResult("day")) for some in ([s for s in stages if s.judge], stages))
        state = "complete" if day.done else "begun" if stages else "not begun"
        days.append((str(day.date), verdicts, total, state))
    result = {
        "first": ctx.first,
        "last": ctx.last,
        "recipe": ctx.recipe,
        "judge_version": ctx.judge_version,
        "days": [
            {"date": date, "verdicts": verdicts.computed, "reused": verdicts.reused, "total": total, "state": state}
            for date, verdicts, total, state in days
        ],
        "spent": outcome.spent,
    }
    emit(form, output, partial(_draw, outcome, days), [result])


def _draw(outcome: Outcome, days: Sequence[tuple[str, StageResult, StageResult, str]], out: Console) -> None:
    ctx = outcome.ctx
    rows = [
        (date, f"{verdicts.computed:,}", f"{verdicts.reused:,}", tokens(total), f"{total.seconds:.1f}", state)
        for date, verdicts, total, state in days
    ]
    title = f"Backfill {ctx.first} to {ctx.last}, {ctx.label} by {ctx.judges[0].name}"
    numbers = ("verdicts", "reused", "tokens", "seconds")
    out.print(table(title, ("day", *numbers, ""), rows, numbers))
    for text in dict.fromkeys(text for _, _, total, _ in days for text in total.notes):
        note(text, out)
    left = sum(not day.done for day, _ in outcome.days)
    if outcome.spent:
        print_lines(f"Stopped: {outcome.spent}. {left} days are left: run the same command again.", out=out)
    if not outcome.days:
        sys.stderr.write(f"leadline: no traces from {ctx.first} to {ctx.last} are in the lake. Nothing to do.\n")
    print_lines(f"recipe {ctx.recipe}, judge {ctx.judge_version}", out=out)


def command(
    *,
    judge: Annotated[
        Path | None, optional("The judge's file or name; by default the recipe's own judge.", "--judge", metavar="FILE")
    ] = None,
    recipe: Annotated[
        str | None, optional("Name of a recipe of the config, or a recipe's file.", "--recipe", metavar="RECIPE")
    ] = None,
    apps: Apps = None,
    start: Annotated[datetime, day_option("--from", "First day of a range.")],
    end: Annotated[datetime, day_option("--to", "Last day of a range.")],
    sample: Annotated[float, typer.Option("--sample", help="Share of the traces, the same traces each time.")] = 1.0,
    max_tokens: Annotated[int | None, optional("Stop after so many tokens.", "--max-tokens", min=1)] = None,
    max_minutes: Annotated[float | None, optional("Stop after so many minutes.", "--max-minutes", min=0)] = None,
    retry_failures: RetryFailures = False,
    no_prefect: NoPrefect = False,
    form: Form = "table",
    output: Output = None,
    config: Config = CONFIG,
) -> None:
    """Judge past days by another judge or recipe, newest first, beside the nightly.

    Example: leadline backfill --judge nli --from 2026-11-01 --to 2026-11-03
    """
    first, last = days_or_yesterday(None, start, end)
    build = partial(load, config, first, last, judge=judge, recipe=recipe, apps=apps or (), sample=sample)
    if uses_prefect(no_prefect=no_prefect):
        outcome = flows_with(lambda: (build(),)).backfill(
            first, last, str(config), str(judge) if judge else None, recipe, apps or (), sample, max_tokens,
            max_minutes, retry_failures,
        )  # fmt: skip
    else:
        ctx = replace(build(), budget=Budget(max_tokens, max_minutes))
        outcome = run(ctx, Local(DELAYS_S, prefect_slots=False), retry_failures=retry_failures)
    show(outcome, form, output)
