"""The stages of a night: from source files to published tables and a report, computing only what is missing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from operator import attrgetter
from typing import Any

from flows import alerts
from flows.runtime.run import Runner, Stage, locked, on_record
from tasks.claims.extract import extract_claims
from tasks.core.errors import LeadlineError
from tasks.ingest.ingest import ingest
from tasks.judging import grades, verdicts
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_by
from tasks.publish import publish
from tasks.publish.report.index import Night
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.record import Refused
from tasks.run.result import StageResult
from tasks.run.scopes.scope import ALWAYS
from tasks.scorers import stage_name
from tasks.scoring import alerts as alerting
from tasks.scoring import corrected, nightly, score
from tasks.scoring.grace import score_grace


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run.

    Attributes:
        recipes: Recipes of the run, with one row per app and generator (`sql/report/summary.sql`).
        alerts: Alerts that fired or ended on the run's days, with the recipe's name.
        nights: The report's summary of the last night, by recipe; None without a page.
    """

    stages: tuple[StageResult, ...]
    recipes: tuple[tuple[Context, list[dict[str, Any]]], ...]
    alerts: tuple[tuple[str, dict[str, Any]], ...] = ()
    refused: Refused = field(default_factory=lambda: Refused(0, None, ()))
    nights: tuple[Night | None, ...] = ()


def run(contexts: Sequence[Context], runner: Runner, *, retry_failures: bool = False) -> Outcome:
    """Run the stages in order under the lake's lock, and record the run in `runs` even if it fails.

    Raises:
        LeadlineError: A stage failed. Stored results are kept, and the next run continues from them.
    """
    progress = runner.progress()
    contexts = [replace(ctx, progress=progress) for ctx in contexts]
    main, counted = contexts[0], _counted(contexts)
    with locked(main.lake, f"nightly {main.first}..{main.last}"):
        recipes = [ctx.recipe for ctx in counted]
        with on_record("nightly", contexts, runner, recipes=recipes, publish_failure=True) as record:
            for gpus, steps in groupby(steps_of(contexts, retry_failures=retry_failures), key=attrgetter("gpus")):
                with record.slot(gpus, contexts):
                    for step in steps:
                        record.stage(step.name, step.work, step.ctx, **step.options)
            if announced := alerts.notify_all(contexts, runner.announce):
                record.add(announced)
        after = (_write_metrics(main), _written_back(contexts, runner))
        return Outcome(
            (*record.stages, *filter(None, after)),
            tuple((ctx, publish.summary(ctx)) for ctx in counted),
            tuple(
                (ctx.settings.name, row) for ctx in counted for row in alerting.alerts_on(ctx, *ctx.requested_days())
            ),
            record.refused(),
            tuple(publish.latest_night(ctx, ctx.requested_days()) for ctx in counted),
        )


def _write_metrics(ctx: Context) -> StageResult | None:
    """Write the configured Prometheus metrics. A failure does not fail the night."""
    if ctx.config.report.prometheus is None:
        return None
    from tasks.publish.prometheus import write_metrics  # noqa: PLC0415 - seldom needed

    try:
        write_metrics(publish.warehouse_of(ctx), ctx.config.report.prometheus)
    except LeadlineError as error:
        return StageResult("metrics", notes=(str(error),))
    return None


def _written_back(contexts: Sequence[Context], runner: Runner) -> StageResult | None:
    """Write scores back to stores. None if no source asks for it; then no client of a store is imported."""
    if not any(source.write_back for source in contexts[0].sources):
        return None
    from flows.sources import write_back  # noqa: PLC0415 - imports the clients of all stores

    return write_back.after_night(contexts, runner)


@dataclass(frozen=True, slots=True)
class Step:
    """A stage of a recipe.

    Attributes:
        gpus: Number of GPUs that the model uses. Consecutive steps with the same number share the slot.
    """

    ctx: Context
    name: str
    work: Stage
    options: Mapping[str, Any] = field(default_factory=dict)
    gpus: int = 0


def steps_of(contexts: Sequence[Context], *, retry_failures: bool) -> Iterator[Step]:
    """Yield the stages in order; each stage runs for all recipes before the next stage starts.

    So the models of one stage are freed before those of the next stage are loaded.
    """
    main, several = contexts[0], len(contexts) > 1

    def step(ctx: Context, name: str, work: Stage, gpus: int = 0, **options: Any) -> Step:
        return Step(ctx, f"{ctx.label}: {name}" if several else name, work, options, gpus)

    yield Step(replace(main, days=ALWAYS), "ingest", ingest)
    yield from (step(ctx, "claims", extract_claims, ctx.extractor.gpus) for ctx in contexts)
    yield from (step(ctx, "grace", score_grace) for ctx in contexts)
    yield from (step(ctx, "pairs", plan_pairs) for ctx in contexts)
    judges = [(ctx, judge) for ctx in contexts for judge in ctx.judges]
    for (ctx, judge), after in zip_longest(judges, judges[1:]):
        keep = after is not None and after[1].judge is judge.judge
        for name, work in judging(ctx, judge):
            yield step(ctx, name, work, judge.gpus, stage=judge.stage, retry_failures=retry_failures, keep=keep)
    scorers = [(ctx, scorer) for ctx in contexts for scorer in ctx.scorers]
    for (ctx, scorer), following in zip_longest(scorers, scorers[1:]):
        keep = following is not None and following[1].model is scorer.model
        name = stage_name(scorer)
        yield step(ctx, name, score_by, scorer.gpus, scorer=scorer, retry_failures=retry_failures, keep=keep)
    graders = [(ctx, ctx.grader) for ctx in contexts if ctx.grader]
    for (ctx, grader), later in zip_longest(graders, graders[1:]):
        keep = later is not None and later[1] is grader
        yield step(ctx, grades.STAGE, grades.grade_answers, grader.gpus, retry_failures=retry_failures, keep=keep)
    for name, work in SCORING:
        yield from (step(ctx, name, work) for ctx in contexts)
    yield Step(main, "warehouse", publish.load_warehouse)
    yield Step(main, "report", publish.write_reports, {"others": _counted(contexts)[1:]})


SCORING: tuple[tuple[str, Stage], ...] = (
    ("scores", score.score_traces),
    ("nightly", nightly.aggregate_nights),
    (corrected.STAGE, corrected.correct_nights),
    (alerting.STAGE, alerting.find_alerts),
)


def judging(ctx: Context, judge: CascadeJudge) -> list[tuple[str, Stage]]:
    """The stages of one judge: single pairs and, except for method `citations`, joint pairs."""
    passes: list[tuple[str, Stage]] = [
        (verdicts.SINGLE, verdicts.judge_pairs),
        (verdicts.JOINT, verdicts.judge_joint_pairs),
    ]
    if ctx.settings.method == "citations":
        passes = passes[:1]
    return [(verdicts.stage_name(name, judge.stage), work) for name, work in passes]


def _counted(contexts: Sequence[Context]) -> list[Context]:
    """Contexts without shadows, whose results are only in tables."""
    return [ctx for ctx in contexts if not ctx.shadow]
