"""A real nightly that is interrupted, at a terminal or as a service, ends at once, says so, and goes on later."""

import contextlib
import fcntl
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import yaml
from conftest import PrefectServer, until
from kit.commands import Running
from kit.killing import KEY_LINE, output_of, start
from kit.worlds import FIRST, World, make_traces, make_world, range_of, read, tables, write
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.runtime.temporary_server import MODULE
from tasks.store.lake import Lake

pytestmark = pytest.mark.slow
# On a machine with a core to spare it takes one to three; five are promised. Prefect's retries alone took 75.
WITHIN_S = 20
DAYS = range_of(FIRST, FIRST)
PAGE = resource.getpagesize()
SHARD = PAGE // KEY_LINE // 2 + 1  # requests: the keys of one shard fit into a page, those of two don't
LIMITS = {"part_traces": 80, "shard_requests": SHARD}
PROGRESS = re.compile(r"nightly 20|[\w -]+: [\d,]+ (of [\d,]+ )?after \d")  # the first word, and lines of long stages
REPORT = "leadline: Interrupted{}. What was stored stays; run the same command again.\n"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the logs, and of all that runs make of them."""
    root = tmp_path_factory.mktemp("interrupted")
    write(root / "logs" / "a.jsonl", make_traces(3, 80, days=1))
    return root


@pytest.fixture(scope="module")
def calm(logs: Path, environment: dict[str, str]) -> dict[str, list[str]]:
    """The tables of a run that was left alone."""
    world = make_world(logs, "calm", limits=LIMITS)
    complete(start(world, environment, "nightly", *DAYS), world)
    assert len(world.log.read_text().split()) > 3 * SHARD
    return tables(world.warehouse)


@pytest.fixture(scope="module")
def without_server(environment: dict[str, str]) -> dict[str, str]:
    """No server is configured: the command starts one, on a database that is there."""
    return {name: value for name, value in environment.items() if name != "PREFECT_API_URL"}


@pytest.fixture
def stuck() -> Iterator[Callable[[Path], None]]:
    """Makes a replay judge wait for ever at its second shard: its log is a pipe that holds the keys of one."""
    opened: list[int] = []

    def stick(judge: Path) -> None:
        pipe = judge.with_suffix(".pipe")
        os.mkfifo(pipe)
        opened.append(os.open(pipe, os.O_RDWR))
        size = fcntl.fcntl(opened[-1], fcntl.F_SETPIPE_SZ, 2 * PAGE)
        os.write(opened[-1], bytes(size - PAGE))
        change(judge, log=str(pipe))

    yield stick
    for descriptor in opened:
        os.close(descriptor)


def change(judge: Path, **settings: str) -> None:
    """Overwrite settings of a judge that do not change its version."""
    judge.write_text(yaml.safe_dump(yaml.safe_load(judge.read_text()) | settings))


def shards(world: World) -> int:
    """Shards of verdicts that are stored."""
    return len(list((world.lake / "verdicts").rglob("*.parquet")))


@dataclass(frozen=True)
class Ended:
    """How a run ended, and what it printed on both channels besides its progress."""

    code: int
    printed: str


def interrupt(run: Running | subprocess.Popen[bytes], world: World, when: Callable[[], object], *signals: int) -> Ended:
    """Send a run signals at a moment of its work, and see that it ends with all that it has started."""
    until(lambda: when() or run.poll() is not None)
    its = psutil.Process(run.pid).children(recursive=True)
    begun = time.monotonic()
    for number in signals:
        os.killpg(run.pid, number)
    code = run.wait()
    assert time.monotonic() - begun < WITHIN_S
    assert psutil.wait_procs(its, timeout=WITHIN_S)[1] == []
    for writer in ("run", "backfill"):
        with Lake(world.lake, writer=writer).lock("a test"):  # or it raises BusyError
            pass
    lines = output_of(world).read_text().splitlines(keepends=True)
    output_of(world).unlink()
    return Ended(code, "".join(line for line in lines if not PROGRESS.match(line)))


def complete(run: Running, world: World) -> None:
    """Wait for a run that is left alone."""
    assert run.wait() == 0, output_of(world).read_text()
    output_of(world).unlink()


def statuses(world: World) -> Counter[str]:
    return Counter(row["status"] for row in read(world.warehouse, "FROM runs"))


def interrupted_while_judging(
    logs: Path, name: str, environment: dict[str, str], stuck: Callable[[Path], None]
) -> World:
    """A world whose first nightly got a Ctrl+C at its second shard of verdicts; its judge waits no more."""
    world = make_world(logs, name, limits=LIMITS)
    judge = world.out / "replay.yaml"
    stuck(judge)
    run = start(world, environment, "nightly", *DAYS)
    ended = interrupt(run, world, lambda: shards(world), signal.SIGINT)
    assert ended == Ended(130, REPORT.format(" in stage verdicts"))
    assert shards(world) == 1
    change(judge, log=str(world.log))
    return world


def test_with_a_server(
    logs: Path,
    calm: dict[str, list[str]],
    environment: dict[str, str],
    prefect_server: PrefectServer,
    stuck: Callable[[Path], None],
) -> None:
    world = interrupted_while_judging(logs, "with", environment, stuck)
    run = start(world, environment, "nightly", *DAYS)
    ended = interrupt(run, world, (world.out / "report").exists, signal.SIGTERM)
    assert ended == Ended(143, REPORT.format(""))  # Prefect has left the stage when it passes the signal on

    complete(start(world, environment, "nightly", *DAYS), world)
    assert tables(world.warehouse) == calm
    assert statuses(world) == {"interrupted": 2, "completed": 1}
    assert states(prefect_server, world) == {"CRASHED": 2, "COMPLETED": 1}

    other = world.out / "other.yaml"
    other.write_text(yaml.safe_dump({"kind": "replay", "seed": 1}))
    stuck(other)
    before = shards(world)
    options = ("backfill", *DAYS, "--judge", other)
    ended = interrupt(start(world, environment, *options), world, lambda: shards(world) > before, signal.SIGINT)
    assert ended == Ended(130, REPORT.format(" in stage verdicts"))
    change(other, log=str(world.log))
    complete(start(world, environment, *options), world)
    assert statuses(world) == {"interrupted": 3, "completed": 2}


def states(server: PrefectServer, world: World) -> Counter[str]:
    """What Prefect shows of the runs of a config."""
    with temporary_settings({PREFECT_API_URL: server.url}), get_client(sync_client=True) as client:
        runs = [run for run in client.read_flow_runs() if run.parameters.get("config") == str(world.config)]
    return Counter(str(run.state_type and run.state_type.value) for run in runs)


def test_with_a_temporary_server(
    logs: Path, calm: dict[str, list[str]], without_server: dict[str, str], stuck: Callable[[Path], None]
) -> None:
    world = interrupted_while_judging(logs, "without", without_server, stuck)
    run = start(world, without_server, "nightly", *DAYS)
    ended = interrupt(run, world, (world.out / "report").exists, signal.SIGINT, signal.SIGINT)
    assert ended == Ended(130, REPORT.format(" in stage report"))

    run = start(world, without_server, "nightly", *DAYS)
    until(lambda: servers(run.pid) or run.poll() is not None)
    its = servers(run.pid)
    complete(run, world)
    assert len(its) == 1
    assert psutil.wait_procs(its, timeout=WITHIN_S)[1] == []
    assert tables(world.warehouse) == calm
    assert statuses(world) == {"interrupted": 2, "completed": 1}


def test_workers_of_ray_end_with_the_run(
    logs: Path, without_prefect: dict[str, str], stuck: Callable[[Path], None]
) -> None:
    """Ray handles SIGTERM in its own way, unless it is kept from it."""
    world = make_world(logs, "ray", limits=LIMITS, executor={"kind": "ray", "workers": 1})
    stuck(world.out / "replay.yaml")
    run = start(world, without_prefect, "nightly", "--no-prefect", *DAYS)
    ended = interrupt(run, world, lambda: shards(world), signal.SIGTERM)  # and Ray's processes are gone
    assert ended == Ended(143, REPORT.format(" in stage verdicts"))
    assert shards(world) == 1


def servers(run: int) -> list[psutil.Process]:
    """Temporary servers of a process."""
    return [p for p in psutil.Process(run).children() if MODULE in p.cmdline()]


@pytest.fixture
def judging(
    logs: Path, without_server: dict[str, str], stuck: Callable[[Path], None], request: pytest.FixtureRequest
) -> Iterator[tuple[World, Running, psutil.Process]]:
    """A nightly in the middle of judging, and its temporary server."""
    world = make_world(logs, request.node.name, limits=LIMITS)
    stuck(world.out / "replay.yaml")
    run = start(world, without_server, "nightly", *DAYS)
    until(lambda: shards(world) or run.poll() is not None)
    (server,) = servers(run.pid)
    yield world, run, server
    run.kill()
    with contextlib.suppress(psutil.NoSuchProcess):
        server.kill()


def test_the_server_ends_too(judging: tuple[World, Running, psutil.Process]) -> None:
    """Systemd stops all processes of a service: Prefect goes on asking a server that is gone."""
    world, run, server = judging
    server.terminate()
    assert interrupt(run, world, lambda: True, signal.SIGTERM) == Ended(143, REPORT.format(""))


def test_a_killed_run_leaves_no_server(judging: tuple[World, Running, psutil.Process]) -> None:
    _, run, server = judging
    run.kill()
    assert run.wait() == -signal.SIGKILL
    assert psutil.wait_procs([server], timeout=WITHIN_S)[1] == []


def test_while_the_server_starts(logs: Path, without_server: dict[str, str]) -> None:
    """From nothing, as it is installed: most of it is not imported yet."""
    world = make_world(logs, "starting", limits=LIMITS)
    command = [Path(sys.executable).with_name("leadline"), "nightly", "--config", world.config, *DAYS]
    with output_of(world).open("wb") as out:
        run = subprocess.Popen(command, env=without_server, stdout=out, stderr=out, start_new_session=True)
    ended = interrupt(run, world, lambda: servers(run.pid), signal.SIGINT)
    assert ended == Ended(130, REPORT.format(""))
