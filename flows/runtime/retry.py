"""Tries work again where its error may pass by itself: an outage, or a lake that another run holds."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_chain, wait_fixed

T = TypeVar("T")
Log = logging.Logger | logging.LoggerAdapter[logging.Logger]


def retrying(
    work: Callable[[], T], may_pass: Callable[[BaseException], bool], delays_s: Sequence[float], log: Log
) -> T:
    """The result of `work`, which is tried once more after each delay.

    Args:
        may_pass: Which errors are worth another try; any other is raised at once.
        log: Where each wait is announced.

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
