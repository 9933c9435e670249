"""What a scheduled run tries again by itself, and what it leaves to a person."""

import logging

import pytest

from flows.runtime import retry
from flows.runtime.retry import patiently
from tasks.core.errors import BusyError, ConfigError, ConnectionLostError, DataError, EngineError

LOST = ConnectionLostError("s3://logs: no answer. Try later.")
BUSY = BusyError("lake: locked by another run. Wait until it ends.")


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As inside a run of a deployment, which does not wait."""
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", "nightly/nightly")
    monkeypatch.setattr(retry, "DELAYS_S", (0.0, 0.0, 0.0))


class Work:
    """Raises these errors one after the other, then returns."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        """A flow's work."""
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.mark.parametrize("error", [LOST, BUSY])
def test_what_may_pass_is_tried_three_times_more(scheduled: None, error: Exception) -> None:
    work = Work(error, error, error)
    assert patiently(work) == "done"
    assert work.calls == 4


def test_what_stays_is_given_up(scheduled: None) -> None:
    work = Work(*[LOST] * 9)
    with pytest.raises(ConnectionLostError) as caught:
        patiently(work)
    assert caught.value is LOST  # the same as without retries around it
    assert work.calls == 4


@pytest.mark.parametrize(
    "error",
    [DataError("bad"), EngineError("no model"), ConfigError("a.yaml", "lake", "is missing", "Add it."), ValueError("a bug")],
)  # fmt: skip
def test_a_mistake_or_a_bug_fails_at_once(scheduled: None, error: Exception) -> None:
    work = Work(error)
    with pytest.raises(type(error)):
        patiently(work)
    assert work.calls == 1


def test_a_person_at_a_terminal_sees_the_error_at_once() -> None:
    work = Work(BUSY)
    with pytest.raises(BusyError):
        patiently(work)
    assert work.calls == 1


def test_each_wait_is_told_with_its_reason(
    scheduled: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("prefect"), "propagate", True)
    assert patiently(Work(LOST)) == "done"
    assert [r.getMessage() for r in caplog.records] == [f"{LOST} Trying again in 0 minutes."]


def test_the_waits_outlast_a_run_that_holds_the_lake_for_an_hour() -> None:
    # A retention run that is due while a nightly works, or the other way round, is to find the lake free at some time.
    assert sum(retry.DELAYS_S) > 3600
