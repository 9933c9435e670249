"""How a stage becomes a Prefect task: named, timed, retried when an outage may pass, and nothing of it persisted.

Prefect sees stage names, days and counts. Contexts, traces and results stay in this process: no parameter is hashed,
cached or stored.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from prefect import Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun

from tasks.claims import extract
from tasks.core.errors import LeadlineError, interruption
from tasks.ingest import ingest as ingesting
from tasks.judging import grades, pairs, relevance, verdicts
from tasks.publish import publish
from tasks.run.result import StageResult
from tasks.scorers import Scorer, stage_name
from tasks.scoring import alerts, corrected, grace, nightly, score

RETRIES = 2
DELAYS_S: list[float] = [5, 30]


def shell(name: str, stage: Callable[..., StageResult], delays_s: Sequence[float] = DELAYS_S) -> Task[..., StageResult]:
    """A Prefect task around a stage; its result carries the seconds that it took. Retries wait for `delays_s`."""

    def run(*args: Any, **kwargs: Any) -> StageResult:
        start = time.perf_counter()
        try:
            result = stage(*args, **kwargs)
        except Exception as error:
            if signal := interruption(error):
                raise signal from None
            raise
        return replace(result, seconds=time.perf_counter() - start)

    return Task(
        run,
        name=name,
        task_run_name=name,
        description=(stage.__doc__ or "").strip().splitlines()[0],
        retries=RETRIES,
        retry_delay_seconds=list(delays_s),
        retry_condition_fn=_may_pass,
        cache_policy=NO_CACHE,
        persist_result=False,
    )


def _may_pass(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Only what says of itself that it may pass is tried again; a mistake or a bug fails at once."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, LeadlineError) and error.transient


ingest = shell("ingest", ingesting.ingest)
extract_claims = shell("claims", extract.extract_claims)
plan_pairs = shell("pairs", pairs.plan_pairs)
score_grace = shell("grace", grace.score_grace)
score_traces = shell("scores", score.score_traces)
aggregate_nights = shell("nightly", nightly.aggregate_nights)
correct_nights = shell(corrected.STAGE, corrected.correct_nights)
find_alerts = shell(alerts.STAGE, alerts.find_alerts)
load_warehouse = shell("warehouse", publish.load_warehouse)
write_reports = shell("report", publish.write_reports)
publish_warehouse = shell("publish", publish.publish_warehouse)
judge_pairs = shell(verdicts.SINGLE, verdicts.judge_pairs)
judge_joint_pairs = shell(verdicts.JOINT, verdicts.judge_joint_pairs)
score_relevance = shell("relevance", relevance.score_relevance)
score_by = shell("relevance", relevance.score_by)
grade_answers = shell(grades.STAGE, grades.grade_answers)


def looks(stage: int, *, rounds: bool = False) -> list[Task[..., StageResult]]:
    """First and joint pairs of one judge of the recipe, from 1, under names of their own; to be called with it.

    Args:
        rounds: It is a round, which has no joint pairs.
    """
    named = ((verdicts.SINGLE, judge_pairs), (verdicts.JOINT, judge_joint_pairs))[: 1 if rounds else 2]
    names = [(verdicts.stage_name(name, stage), task) for name, task in named]
    return [task.with_options(name=name, task_run_name=name) for name, task in names]


def scoring(scorer: Scorer) -> Task[..., StageResult]:
    """The scores of one scorer of the recipe, under a name of their own; to be called with it."""
    name = stage_name(scorer)
    return score_by.with_options(name=name, task_run_name=name)
