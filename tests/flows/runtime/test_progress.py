"""Progress: a bar on standard error, or Prefect artifacts, and never a reason for a run to stop."""

import io
import sys
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from prefect import flow
from prefect.artifacts import update_progress_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.exceptions import PrefectException
from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_TO_API_ENABLED, temporary_settings

from flows.runtime.prefect import Artifact, Prefect
from flows.runtime.progress import Bar, Lines, bar_or_lines
from tasks.core.progress import Both, Silent, tracked


@pytest.fixture
def server(prefect_server: Any) -> Iterator[None]:
    with temporary_settings({PREFECT_API_URL: prefect_server.url, PREFECT_LOGGING_TO_API_ENABLED: False}):
        yield


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_and_anything_else_artifacts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert isinstance(Prefect().progress(), Bar)
    assert isinstance(bar_or_lines(), Bar)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(Prefect().progress(), Both)
    assert isinstance(bar_or_lines(), Lines)


def test_a_bar_shows_stage_and_steps_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Bar()
    for stage, total in (("claims", 4), ("verdicts", None)):
        with tracked(bar, stage, total) as reported:
            reported.advance(3)
            reported.advance()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "claims" in shown.err
    assert "4/4" in shown.err
    assert "verdicts" in shown.err


def test_a_stage_without_work_shows_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with tracked(Bar(), "claims", 0) as reported:
        reported.advance()
    assert "claims" not in capsys.readouterr().err


def test_a_stage_that_fails_leaves_its_bar_and_the_next_begins_anew(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Bar()

    def fails() -> None:
        with tracked(bar, "verdicts", 4) as reported:
            reported.advance()
            raise ValueError("down")

    with pytest.raises(ValueError, match="down"):
        fails()
    with tracked(bar, "scores", 2) as reported:
        reported.advance(2)
    shown = capsys.readouterr().err
    assert "1/4" in shown
    assert "2/2" in shown


def test_each_stage_has_one_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar that is over is drawn no more; while it runs, each drawing takes the place of the one before."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    bar = Bar()
    for stage in ("ingest", "claims", "pairs"):
        with tracked(bar, stage, 1) as reported:
            reported.advance()
    drawn = terminal.getvalue()
    after = drawn[drawn.index("claims") :]
    assert "ingest" not in after
    assert "claims" not in drawn[drawn.index("pairs") :]


def test_a_log_gets_lines_of_long_stages_only() -> None:
    written: list[str] = []
    clock = iter([100.0, 130.0, 7360.0])
    lines = Lines(written.append, lambda: next(clock))
    with tracked(lines, "verdicts", 1412) as reported:
        reported.advance(300)
        lines.write()
        reported.advance(1100)
        lines.write()
    assert written == ["verdicts: 300 of 1,412 after 30.0 s\n", "verdicts: 1,400 of 1,412 after 2 h 1 min\n"]


def test_a_stage_that_is_over_writes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line comes at once here; the thread of a stage ends with it."""
    monkeypatch.setattr("flows.runtime.progress.FIRST_S", 0.0)
    said = threading.Event()
    with tracked(Lines(lambda _: said.set()), "verdicts", None):
        assert said.wait(60)
        (beating,) = [t for t in threading.enumerate() if t.name == "heartbeat"]
    beating.join(60)
    assert not beating.is_alive()


def artifacts(*stages: tuple[str, int | None, int], watched: Artifact | None = None) -> list[tuple[str, str, float]]:
    """Key, description and last percentage of the artifacts that these stages (name, total, steps) leave in a flow."""
    seen: dict[str, Any] = {}

    @flow(persist_result=False)
    def nightly() -> None:
        from prefect.runtime import flow_run  # noqa: PLC0415

        seen["id"] = flow_run.id
        shown = watched or Artifact()
        for stage, total, steps in stages:
            with tracked(shown, stage, total) as reported:
                for _ in range(steps):
                    reported.advance()

    nightly()
    with get_client(sync_client=True) as client:
        wanted = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[seen["id"]]))
        found = client.read_artifacts(artifact_filter=wanted)
    return sorted((a.key or "", a.description or "", float(a.data)) for a in found)  # type: ignore[arg-type]


def test_an_artifact_per_stage_says_how_far_it_came(server: None) -> None:
    found = artifacts(("claims", 4, 4), ("joint pairs", 8, 2), ("scores", 0, 0), ("ingest", None, 5), ("report", 2, 3))
    assert found == [
        ("claims", "claims: 4 to do", 100.0),
        ("joint-pairs", "joint pairs: 8 to do", 25.0),  # a key may hold no space
        ("report", "report: 2 to do", 100.0),  # more steps than promised are still all of them
    ]


def test_it_is_updated_now_and_then_and_not_at_every_step(server: None) -> None:
    clock = iter(range(10_000))  # a second at each reading, and at most two readings per update
    updates: list[float] = []

    def update(artifact: Any, percent: float) -> None:
        updates.append(percent)
        update_progress_artifact(artifact, percent)

    artifacts(("verdicts", 100, 100), watched=Artifact(clock=lambda: float(next(clock)), update=update))
    assert updates == sorted(updates)
    assert updates[-1] == 100.0
    assert 10 <= len(updates) <= 20  # 100 steps at a second each, and at least five between two updates


@pytest.mark.parametrize("error", [PrefectException("no answer"), httpx.ConnectError("connection refused")])
def test_a_server_that_is_gone_stops_no_run(server: None, error: Exception) -> None:
    def gone(*_: object, **__: object) -> None:
        raise error

    lost = Artifact(every_s=0.0, update=gone)
    assert artifacts(("claims", 4, 4), watched=lost) == [("claims", "claims: 4 to do", 0.0)]
    assert artifacts(("claims", 4, 4), watched=Artifact(every_s=0.0, create=gone)) == []


def test_nobody_watching() -> None:
    with tracked(Silent(), "claims", 3) as reported:
        reported.advance(3)
