"""What is tried again by itself, and what it leaves to a person: stages, and runs of deployments."""

import logging

import pytest

from flows.runtime.prefect import FLOW_DELAYS_S, patiently
from flows.runtime.run import DELAYS_S, Local
from tasks.core.errors import BusyError, ConfigError, ConnectionLostError, DataError, EngineError
from tasks.run.result import StageResult

LOST = ConnectionLostError("s3://logs: no answer. Try later.")
BUSY = BusyError("lake: locked by another run. Wait until it ends.")
STAYS = [
    DataError("bad"), EngineError("no model"), ConfigError("a.yaml", "lake", "is missing", "Add it."), ValueError("a bug"),
]  # fmt: skip
AT_ONCE = (0.0, 0.0, 0.0)


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As inside a run of a deployment."""
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", "nightly/nightly")


class Work:
    """Raises these errors one after the other, then returns."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> StageResult:
        """A stage, or a flow's work."""
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return StageResult("work", computed=3)


@pytest.mark.parametrize("error", [LOST, BUSY])
def test_what_may_pass_is_tried_three_times_more(scheduled: None, error: Exception) -> None:
    work = Work(error, error, error)
    assert patiently(work, AT_ONCE).computed == 3
    assert work.calls == 4


def test_what_stays_is_given_up(scheduled: None) -> None:
    work = Work(*[LOST] * 9)
    with pytest.raises(ConnectionLostError) as caught:
        patiently(work, AT_ONCE)
    assert caught.value is LOST  # the same as without retries around it
    assert work.calls == 4


@pytest.mark.parametrize("error", STAYS)
def test_a_mistake_or_a_bug_fails_at_once(scheduled: None, error: Exception) -> None:
    work = Work(error)
    with pytest.raises(type(error)):
        patiently(work, AT_ONCE)
    assert work.calls == 1


def test_a_person_at_a_terminal_sees_the_error_at_once() -> None:
    work = Work(BUSY)
    with pytest.raises(BusyError):
        patiently(work, AT_ONCE)
    assert work.calls == 1


def test_each_wait_is_logged_with_its_reason(
    scheduled: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("prefect"), "propagate", True)
    assert patiently(Work(LOST), AT_ONCE).computed == 3
    assert [r.getMessage() for r in caplog.records] == [f"{LOST} Trying again in 0 seconds."]


def test_the_waits_outlast_a_run_that_holds_the_lake_for_an_hour() -> None:
    # A retention run that is due while a nightly works, or the other way round, is to find the lake free at some time.
    assert sum(FLOW_DELAYS_S) > 3600


def test_a_stage_without_prefect_is_tried_twice_more() -> None:
    runner = Local(AT_ONCE[: len(DELAYS_S)], prefect_slots=False)
    work = Work(LOST, LOST)
    result = runner.stage("a stage", work)
    assert (result.stage, result.computed, work.calls) == ("a stage", 3, 3)
    with pytest.raises(ConnectionLostError):
        runner.stage("a stage", Work(LOST, LOST, LOST))


@pytest.mark.parametrize("error", [*STAYS, BUSY])
def test_a_stage_without_prefect_fails_at_once_where_nothing_may_pass(error: Exception) -> None:
    work = Work(error)
    with pytest.raises(type(error)):
        Local(AT_ONCE, prefect_slots=False).stage("a stage", work)
    assert work.calls == 1


def test_a_signal_that_a_library_has_made_an_error_of_is_a_signal_again() -> None:
    def stage() -> StageResult:
        raise RuntimeError("Query interrupted") from KeyboardInterrupt()  # as DuckDB does

    with pytest.raises(KeyboardInterrupt):
        Local(AT_ONCE, prefect_slots=False).stage("a stage", stage)
