"""A run that is killed again and again ends with the tables of one that was left alone, and pays for nothing twice."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from worlds import FIRST, WHEN, World, make_traces, make_world, range_of, read, tables, unbalanced, write

from tasks.core.schemas import VERDICTS
from tasks.store.lake import Lake

KILLS = 20
TRACES = 80
PART, SHARD = 10, 8
KEY_LINE = 33  # a key of 32 characters and a newline
SHARES = {
    "supported": 0.4, "partially_supported": 0.1, "unsupported": 0.3, "contradicted": 0.1, "abstained": 0.05,
    "failure": 0.05,
}  # fmt: skip
# Tokens that were paid for: texts that the process has read before cost nothing, and a restarted one forgets them.
LEFT_OUT = {**WHEN, "relevance": {"tokens_in"}}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Five files of two days: bad lines, a copy and a conflicting duplicate across files, traces without context."""
    rows = make_traces(7, TRACES, days=2)
    parts: list[list[object]] = [list(rows[i::5]) for i in range(5)]
    parts[1].insert(3, b'{"trace_id": "cut')
    parts[2].append({**rows[0], "answer": "Another answer under the same id [1]."})
    parts[3] += [rows[1], {**rows[2], "trace_id": "no-zone", "timestamp": "2026-11-01T10:00:00"}]
    parts[4].append({**rows[5], "trace_id": "blank", "question": " "})
    for i, lines in enumerate(parts):
        write(tmp_path / "logs" / f"{i}.jsonl", lines)  # type: ignore[arg-type]
    return tmp_path


class Watch:
    """What has come to be below a world's directory: files under stable names, and shards that the judge was asked."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.seen: set[str] = set()

    def look(self) -> int:
        """Look once more; returns how much has been seen so far."""
        self.seen.update(re.sub(r"\.[0-9a-f]{8}\.tmp$", ".tmp", name) for name in _files(self._world.out))
        if self._world.log.exists():
            self.seen.add(f"shard {self._world.log.stat().st_size // (KEY_LINE * SHARD)}")
        return len(self.seen)


def _files(path: str | Path) -> Iterator[str]:
    """Files below a directory that is being written; not the lock, the gates' own files and the records of runs."""
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in {".gates", ".scratch", "runs"}:
                        yield from _files(entry.path)
                elif not entry.name.startswith(".lock"):
                    yield entry.path
    except FileNotFoundError:  # it was removed just now
        return


def start(world: World, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    days = range_of(FIRST, FIRST + timedelta(days=1))
    command = [sys.executable, "-m", "flows", "nightly", "--config", str(world.config), *days]
    with output_of(world).open("ab") as output:
        return subprocess.Popen(command, env=dict(env), stdout=output, stderr=output)


def output_of(world: World) -> Path:
    return world.config.with_suffix(".output")


def follow(run: "subprocess.Popen[bytes]", watch: Watch, kill_at: int = sys.maxsize) -> int:
    """Watch a run to its end; kill it when that much has been seen. Returns its exit status."""
    while run.poll() is None:
        if watch.look() >= kill_at:
            run.send_signal(signal.SIGKILL)
            return run.wait(30)
        time.sleep(0.001)  # leaves a core to the run
    watch.look()
    return run.returncode


def paid(world: World) -> list[str]:
    return world.log.read_text().split() if world.log.exists() else []


def in_flight(world: World) -> set[str]:
    """Requests that the judge was asked and whose verdicts are not in the lake."""
    kept: set[str] = set()
    for part in Lake(world.lake).parts(VERDICTS):
        kept.update(part.read(["request_key"])["request_key"].to_pylist())
    return set(paid(world)) - kept


def kill_at(moments: list[int], world: World, env: Mapping[str, str]) -> tuple[int, set[str]]:
    """Kill runs at the given moments of one night's work, then let one end.

    Returns:
        Kills that hit (a run that ended before its moment ends the night), and the requests that were in flight.
    """
    watch = Watch(world)
    lost: set[str] = set()
    for kills, moment in enumerate([*moments, sys.maxsize]):
        status = follow(start(world, env), watch, max(moment, watch.look() + 1))
        if status == 0:
            return kills, lost
        assert status == -signal.SIGKILL, output_of(world).read_text()
        flying = in_flight(world)
        assert len(flying) <= SHARD
        lost |= flying
        if world.warehouse.exists():  # whatever is published is whole
            read(world.warehouse, "SELECT count(*) FROM trace_scores")
    raise AssertionError("unreachable")


@pytest.mark.slow
def test_twenty_kills_change_nothing_and_pay_nothing_twice(logs: Path, environment: dict[str, str]) -> None:
    settings = {"limits": {"part_traces": PART, "shard_requests": SHARD}, "gates": {"max_quarantined_share": 0.1}}
    calm = make_world(logs, "calm", judge={"shares": SHARES}, **settings)
    whole = Watch(calm)
    assert follow(start(calm, environment), whole) == 0, output_of(calm).read_text()
    expected = tables(calm.warehouse, LEFT_OUT)
    # Every comparison compares something, but for what only another verb and another method fill.
    assert {name for name, rows in expected.items() if not rows} == {"judge_noise", "nightly_citations"}
    assert len(paid(calm)) == len(set(paid(calm)))
    # One copy; four lines are refused: cut off, without a zone, in conflict, blank.
    assert count(calm) == {"r": TRACES + 5, "i": TRACES, "k": 1, "q": 4}

    rng = random.Random(20)
    hits = nights = 0
    while hits < KILLS:
        nights += 1
        assert nights < 5, "runs end before they can be killed"
        world = make_world(logs, f"killed-{nights}", judge={"shares": SHARES}, **settings)
        moments = sorted(rng.sample(range(1, len(whole.seen)), KILLS - hits))
        kills, lost = kill_at(moments, world, environment)
        hits += kills

        found = tables(world.warehouse, LEFT_OUT)
        for name, rows in expected.items():
            assert found[name] == rows, f"{name} differs"
        times = Counter(paid(world))
        assert set(times) == set(paid(calm))
        assert {key for key, n in times.items() if n > 1} <= lost  # only what was in flight when a kill came
        assert times.total() - len(times) <= kills * SHARD
        assert not read(world.warehouse, "SELECT request_key FROM verdicts GROUP BY ALL HAVING count(*) > 1")
        assert count(world) == count(calm)
        assert not unbalanced(world.warehouse)
        statuses = Counter(r["status"] for r in read(world.warehouse, "FROM runs"))
        assert statuses == {"interrupted": kills, "completed": 1}
        assert not list(world.lake.rglob("*.tmp"))


def count(world: World) -> dict[str, int]:
    """Rows in and rows out."""
    sql = "SELECT sum(rows)::INT AS r, sum(ingested)::INT AS i, sum(known)::INT AS k, sum(quarantined)::INT AS q"
    (total,) = read(world.warehouse, f"{sql} FROM sources")
    counts = "SELECT (SELECT count(*) FROM traces) AS i, (SELECT count(*) FROM quarantine) AS q"
    (held,) = read(world.warehouse, counts)
    assert held == {k: total[k] for k in ("i", "q")}
    return total
