"""Tries a scheduled flow again when what stopped it may pass: an outage that lasts, a lake that another run holds.

Prefect can retry a flow, but not choose the errors. A task that meets an outage is tried again by `flows/runtime/shell.py`
within the minute; this comes after that. Where a person waits at a terminal, the error is theirs to see at once.
"""

from collections.abc import Callable
from typing import TypeVar

from prefect.runtime import deployment
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_chain, wait_fixed

from flows.runtime.progress import logger
from tasks.core.errors import BusyError, LeadlineError

T = TypeVar("T")
DELAYS_S = (300.0, 900.0, 3600.0)


def patiently(work: Callable[[], T]) -> T:
    """What `work` returns; inside a run of a deployment it is tried up to three times more.

    Raises:
        Exception: The last one of `work`; at once where it will not pass by itself.
    """
    if not deployment.id:
        return work()
    tries = Retrying(
        retry=retry_if_exception(_may_pass),
        stop=stop_after_attempt(1 + len(DELAYS_S)),
        wait=wait_chain(*map(wait_fixed, DELAYS_S)),
        before_sleep=_tell,
        reraise=True,
    )
    return tries(work)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, LeadlineError) and (error.transient or isinstance(error, BusyError))


def _tell(state: RetryCallState) -> None:
    error = state.outcome and state.outcome.exception()
    logger().warning("%s Trying again in %.0f minutes.", error, state.upcoming_sleep / 60)
