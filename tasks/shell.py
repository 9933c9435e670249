"""How a stage becomes a Prefect task: named, timed, retried when an outage may pass, and nothing of it persisted.

Prefect sees stage names, days and counts. Contexts, traces and results stay in this process: no parameter is hashed,
cached or stored.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from prefect import Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun

from tasks.core.errors import LeadlineError, interruption
from tasks.stages.context import StageResult

RETRIES = 2
DELAYS_S: list[float] = [5, 30]


def shell(name: str, stage: Callable[..., StageResult]) -> Task[..., StageResult]:
    """A Prefect task around a stage; its result carries the seconds that it took."""

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
        retry_delay_seconds=DELAYS_S,
        retry_condition_fn=_may_pass,
        cache_policy=NO_CACHE,
        persist_result=False,
    )


def _may_pass(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Only what says of itself that it may pass is tried again; a mistake or a bug fails at once."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, LeadlineError) and error.transient
