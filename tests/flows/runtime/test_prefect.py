"""Task shells on a real Prefect server: what is retried, what is told, and that no text leaves the process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.worlds import FIRST, make_world
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_LOCAL_STORAGE_PATH,
    PREFECT_LOGGING_TO_API_ENABLED,
    temporary_settings,
)  # fmt: skip

from flows.nightly.run import steps_of
from flows.runtime.prefect import Prefect
from flows.runtime.run import DELAYS_S
from tasks.core.errors import ConnectionLostError, DataError, EngineError
from tasks.run.build import build_contexts
from tasks.run.result import StageResult

AT_ONCE = (0, 0)
SECRET = "What the user asked is nobody's business"


@pytest.fixture
def storage(prefect_server: Any, tmp_path: Path) -> Iterator[Path]:
    """Where Prefect would keep results."""
    settings = {
        PREFECT_API_URL: prefect_server.url,
        PREFECT_LOCAL_STORAGE_PATH: tmp_path / "results",
        PREFECT_LOGGING_TO_API_ENABLED: False,
    }
    with temporary_settings(settings):
        yield tmp_path / "results"


def run(stage: Callable[..., StageResult], *args: object, **options: object) -> tuple[Any, list[Any]]:
    """What a stage gives or raises inside a flow, and its task runs as the server knows them."""
    runner = Prefect(delays_s=AT_ONCE)
    seen: dict[str, Any] = {}

    @flow(persist_result=False)
    def nightly() -> None:
        from prefect.runtime import flow_run  # noqa: PLC0415

        seen["id"] = flow_run.id
        try:
            seen["result"] = runner.stage("a stage", stage, *args, **options)
        except Exception as error:
            seen["result"] = error

    nightly()
    with get_client(sync_client=True) as client:
        runs = client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[seen["id"]])))
    return seen["result"], runs


class Stage:
    """Raises these errors one after the other, then does its work."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls: list[tuple[tuple[object, ...], dict[str, object]]] = []

    def __call__(self, *args: object, **options: object) -> StageResult:
        """A stage."""
        self.calls.append((args, options))
        if self.errors:
            raise self.errors.pop(0)
        return StageResult("a stage", computed=3, notes=("fine",))


def test_a_signal_that_a_library_has_made_an_error_of_is_a_signal_again(storage: Path) -> None:
    def stage() -> StageResult:
        """A stage."""
        raise RuntimeError("Query interrupted") from KeyboardInterrupt()  # as DuckDB does

    with pytest.raises(KeyboardInterrupt):
        run(stage)


def test_a_stage_gets_its_arguments_and_its_result_carries_the_time(storage: Path) -> None:
    stage = Stage()
    context = object()
    found, runs = run(stage, context, retry_failures=True)
    assert stage.calls == [((context,), {"retry_failures": True})]
    assert found.seconds > 0
    assert (found.stage, found.computed, found.notes) == ("a stage", 3, ("fine",))
    assert [(r.name, r.state_name) for r in runs] == [("a stage", "Completed")]


@pytest.mark.parametrize("lost", [1, 2])
def test_an_outage_that_may_pass_is_tried_again(storage: Path, lost: int) -> None:
    stage = Stage(*[ConnectionLostError("s3://logs: no answer. Try later.")] * lost)
    found, runs = run(stage)
    assert found.computed == 3
    assert len(stage.calls) == lost + 1
    assert [(r.run_count, r.state_name) for r in runs] == [(lost + 1, "Completed")]


def test_an_outage_that_stays_is_given_up(storage: Path) -> None:
    stage = Stage(*[ConnectionLostError("s3://logs: no answer. Try later.")] * 9)
    found, runs = run(stage)
    assert isinstance(found, ConnectionLostError)  # the same error as without Prefect around
    assert len(stage.calls) == 1 + len(AT_ONCE)
    assert [r.state_name for r in runs] == ["Failed"]


@pytest.mark.parametrize("error", [DataError("bad"), EngineError("no model"), ValueError("a bug"), KeyError("x")])
def test_a_mistake_or_a_bug_fails_at_once(storage: Path, error: Exception) -> None:
    stage = Stage(error)
    found, runs = run(stage)
    assert found is error
    assert len(stage.calls) == 1
    assert [(r.run_count, r.state_name) for r in runs] == [(1, "Failed")]


def test_neither_arguments_nor_results_leave_the_process(storage: Path) -> None:
    stage = Stage()
    _, runs = run(stage, SECRET, {"question": SECRET})
    _, again = run(stage, SECRET, {"question": SECRET})
    assert len(stage.calls) == 2  # no result of the first run was taken for that of the second
    assert all(SECRET not in r.model_dump_json() for r in [*runs, *again])
    assert not storage.exists() or not [p for p in storage.rglob("*") if p.is_file()]


def test_every_stage_is_a_task_under_its_own_name(tmp_path: Path) -> None:
    (ctx,) = build_contexts(make_world(tmp_path).config, FIRST, FIRST)
    tasks = [Prefect().task(step.name, step.work) for step in steps_of([ctx], retry_failures=False)]
    assert len({t.name for t in tasks}) == len(tasks) > 10
    assert all(t.description and t.retries == len(DELAYS_S) == 2 and t.persist_result is False for t in tasks)
