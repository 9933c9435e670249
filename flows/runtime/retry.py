"""Retry work after temporary errors, such as an outage or a locked lake."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_chain, wait_fixed

T = TypeVar("T")
Log = logging.Logger | logging.LoggerAdapter[logging.Logger]


def retrying(
    work: Callable[[], T], may_pass: Callable[[BaseException], bool], delays_s: Sequence[float], log: Log
) -> T:
    """Return the result of `work`, retrying once after each delay.

    Args:
        may_pass: Whether an error is worth a retry. Other errors are raised at once.
        log: Logger that announces each wait.

    Raises:
        Exception: The last error of `work`.
    """
    if not delays_s:
        return work()
    tries = Retrying(
        retry=retry_if_exception(may_pass),
        stop=stop_after_attempt(1 + len(delays_s)),
        wait=wait_chain(*map(wait_fixed, delays_s)),
        before_sleep=lambda state: _announce(state, log),
        reraise=True,
    )
    return tries(work)


def _announce(state: RetryCallState, log: Log) -> None:
    error: Any = state.outcome and state.outcome.exception()
    log.warning("%s Trying again in %.0f seconds.", error, state.upcoming_sleep)
