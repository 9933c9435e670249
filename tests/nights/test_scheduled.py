"""The way of docs/operations.md, to its end: a server, the deployments, a worker, and a run that nobody started."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import WITHIN_S, until
from kit.root import ROOT
from kit.worlds import World, make_world, read, trace, write
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule
from prefect.client.schemas.sorting import FlowRunSort
from prefect.settings import PREFECT_API_URL, temporary_settings

from tasks.core.types import LABELS

pytestmark = pytest.mark.slow
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
SOON_S, EVERY_S = 8, 60  # should the scheduler miss the first time, there is a second


def commands(step: int) -> list[list[str]]:
    """The commands of a step of the page, with this environment's programs."""
    text = re.search(rf"^\*\*{step}\. .*?```sh\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    assert text
    programs = Path(sys.executable).parent
    return [shlex.split(line.replace(".venv/bin", str(programs))) for line in text[1].splitlines()]


@pytest.fixture(scope="module")
def client(prefect_server: Any) -> Iterator[SyncPrefectClient]:
    with temporary_settings({PREFECT_API_URL: prefect_server.url}), get_client(sync_client=True) as client:
        yield client


@pytest.fixture(scope="module")
def deployed(client: SyncPrefectClient, environment: dict[str, str]) -> dict[str, Any]:
    """The deployments of prefect.yaml, as the page has them put on the server."""
    for command in commands(3):
        output = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, timeout=WITHIN_S, check=False)
        assert output.returncode == 0, output.stdout.decode() + output.stderr.decode()
    flows = {f.id: f.name for f in client.read_flows()}
    return {f"{flows[d.flow_id]}/{d.name}": d for d in client.read_deployments()}


@pytest.fixture
def worker(environment: dict[str, str], tmp_path: Path) -> Iterator[Path]:
    """A worker, and where it writes; it is gone at the end with all that it has started."""
    (command,) = commands(4)
    log = tmp_path / "worker.log"
    env = {**environment, "PREFECT_WORKER_QUERY_SECONDS": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=env, cwd=tmp_path, stdout=out, stderr=out, start_new_session=True)
    try:
        yield log
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Traces of yesterday and today: the run may be due after midnight."""
    now = datetime.now(UTC)
    logs = [
        trace(f"{days}-{i}", timestamp=(now - timedelta(days=days)).isoformat()) for days in (0, 1) for i in range(3)
    ]
    write(tmp_path / "logs" / "a.jsonl", logs)
    return make_world(
        tmp_path, judge={"shares": {"supported": 1.0} | dict.fromkeys(LABELS[1:], 0.0) | {"failure": 0.0}}
    )


def test_the_page_shows_what_prefect_yaml_schedules(deployed: dict[str, Any]) -> None:
    reported = {
        m[1]: (m[2], m[3]) for m in re.finditer(r"^\| `(\w+/\w+)` \| ([^|]+?) \| ([^|]+?) \|$", PAGE, re.MULTILINE)
    }
    assert set(reported) == set(deployed)
    # minute, hour and day of the week as the page has them in words
    expected = {
        "nightly/nightly": ("30 2 * * *", True, "daily, 02:30 UTC"),
        "backfill/backfill": ("30 4 * * *", False, "paused; daily, 04:30 UTC"),
        "retention/retention": ("30 6 * * 0", True, "Sundays, 06:30 UTC"),
    }
    for name, (cron, active, words) in expected.items():
        (schedule,) = deployed[name].schedules
        assert isinstance(schedule.schedule, CronSchedule)
        assert (schedule.schedule.cron, schedule.schedule.timezone, schedule.active) == (cron, "UTC", active)
        assert reported[name][0].startswith(words)
        assert deployed[name].global_concurrency_limit.limit == 1


def test_a_scheduled_night_runs_by_itself(
    client: SyncPrefectClient, deployed: dict[str, Any], worker: Path, world: World
) -> None:
    nightly = deployed["nightly/nightly"]
    due = IntervalSchedule(
        interval=timedelta(seconds=EVERY_S), anchor_date=datetime.now(UTC) + timedelta(seconds=SOON_S)
    )
    client.delete_deployment_schedule(nightly.id, nightly.schedules[0].id)
    parameters = DeploymentUpdate(parameters={"config": str(world.config)})
    client.update_deployment(nightly.id, parameters)
    client.create_deployment_schedules(nightly.id, [(due, True)])
    try:
        run = until(lambda: ended(client, nightly.id))
    except AssertionError as late:
        raise AssertionError(f"{late}\n{worker.read_text()[-5_000:]}") from None
    finally:
        client.update_deployment(nightly.id, DeploymentUpdate(paused=True))
    assert run.state is not None
    assert run.state.is_completed(), worker.read_text()[-5_000:]
    assert run.auto_scheduled  # by the server's scheduler
    assert run.expected_start_time is not None
    day = run.expected_start_time.astimezone(UTC).date() - timedelta(days=1)
    assert run.name == f"nightly {day}..{day}"

    rows = read(world.warehouse, "FROM runs ORDER BY started_at")
    assert rows[0]["flow"] == "nightly"
    assert (rows[0]["status"], rows[0]["from_date"], rows[0]["to_date"]) == ("completed", day, day)
    assert rows[0]["traces_ingested"] == 6
    scored = f"SELECT n, n_scored FROM nightly_groundedness WHERE date = DATE '{day}'"
    assert read(world.warehouse, scored) == [{"n": 3, "n_scored": 3}]


def ended(client: SyncPrefectClient, deployment: Any) -> FlowRun | None:
    """The first run of a deployment that has ended."""
    of = DeploymentFilter(id=DeploymentFilterId(any_=[deployment]))
    runs = client.read_flow_runs(deployment_filter=of, sort=FlowRunSort.EXPECTED_START_TIME_ASC)
    return next((r for r in runs if r.state and r.state.is_final()), None)
