"""A run that is killed again and again ends with the tables of one that was left alone, and pays for nothing twice."""

import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from worlds import FIRST, WHEN, World, make_traces, make_world, range_of, read, tables, unbalanced, write

from tasks.core.schemas import RELEVANCE, RUNS, VERDICTS
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
        for base in (self._world.lake, self._world.out / "report"):
            self.seen.update(re.sub(r"\.[0-9a-f]{8}\.tmp$", ".tmp", name) for name in _files(base, str(base)))
        self.seen.update(n for n in os.listdir(self._world.out) if n == "leadline.duckdb")
        if self._world.log.exists():
            self.seen.add(f"shard {self._world.log.stat().st_size // (KEY_LINE * SHARD)}")
        return len(self.seen)


def _files(path: str | Path, base: str) -> Iterator[str]:
    """Files below a directory that is being written; not the lock, the gates' own files and the records of runs."""
    try:
        entries = list(os.scandir(path))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in {".gates", ".scratch", "runs"}:
                yield from _files(entry.path, base)
        elif not entry.name.startswith(".lock"):
            yield entry.path.removeprefix(base)


def start(world: World, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    days = range_of(FIRST, FIRST + timedelta(days=1))
    command = [sys.executable, "-m", "flows", "nightly", "--config", str(world.config), *days]
    with (world.out / "output").open("ab") as output:
        return subprocess.Popen(command, env=dict(env), stdout=output, stderr=output)


def follow(run: "subprocess.Popen[bytes]", watch: Watch, kill_at: int | None = None) -> int:
    """Watch a run to its end; kill it when that much has been seen. Returns its exit status."""
    while run.poll() is None:
        if watch.look() >= (kill_at or sys.maxsize):
            run.send_signal(signal.SIGKILL)
            return run.wait(30)
    watch.look()
    return run.returncode


def paid(world: World) -> list[str]:
    return world.log.read_text().split() if world.log.exists() else []


def in_flight(world: World) -> set[str]:
    """Requests that the judge was asked and whose verdicts are not in the lake."""
    kept = {k for part in Lake(world.lake).parts(VERDICTS) for k in part.read(["request_key"])["request_key"].to_pylist()}
    return set(paid(world)) - kept


@pytest.mark.slow
def test_twenty_kills_change_nothing_and_pay_nothing_twice(logs: Path, environment: dict[str, str]) -> None:
    settings = {"limits": {"part_traces": PART, "shard_requests": SHARD}, "gates": {"max_quarantined_share": 0.1}}
    calm = make_world(logs, "calm", judge={"shares": SHARES}, **settings)
    whole = Watch(calm)
    assert follow(start(calm, environment), whole) == 0, (calm.out / "output").read_text()

    world = make_world(logs, "killed", judge={"shares": SHARES}, **settings)
    watch = Watch(world)
    rng = random.Random(20)
    moments = sorted(rng.sample(range(1, len(whole.seen)), KILLS))
    lost: set[str] = set()
    ended_first = 0
    while moments:
        before = watch.look()
        moment = moments.pop(0)
        status = follow(start(world, environment), watch, max(moment, before + 1))
        if status == 0:  # it was done before that moment came: draw another one
            ended_first += 1
            assert ended_first < KILLS, "runs end before they can be killed"
            moments.append(rng.randrange(1, len(whole.seen)))
            continue
        assert status == -signal.SIGKILL, (world.out / "output").read_text()
        flying = in_flight(world)
        assert len(flying) <= SHARD
        lost |= flying
        if world.warehouse.exists():  # whatever is published is whole
            read(world.warehouse, "SELECT count(*) FROM trace_scores")
    assert follow(start(world, environment), watch) == 0, (world.out / "output").read_text()

    expected, found = tables(calm.warehouse, LEFT_OUT), tables(world.warehouse, LEFT_OUT)
    for name, rows in expected.items():
        assert found[name] == rows, f"{name} differs"
        assert rows, f"{name} is empty, so that nothing was compared"

    times = Counter(paid(world))
    twice = {key for key, n in times.items() if n > 1}
    assert twice <= lost  # nothing but what was in flight when a kill came
    assert sum(times.values()) - len(times) <= KILLS * SHARD
    assert set(times) == set(paid(calm))
    assert len(paid(calm)) == len(set(paid(calm)))
    assert not read(world.warehouse, "SELECT request_key FROM verdicts GROUP BY ALL HAVING count(*) > 1")

    # 80 traces and one copy; cut, without a zone, conflicting and blank are four refused lines.
    (total,) = read(world.warehouse, "SELECT sum(rows)::INT AS r, sum(ingested)::INT AS i, sum(known)::INT AS k FROM sources")
    assert total == {"r": TRACES + 5, "i": TRACES, "k": 1}
    assert not unbalanced(world.warehouse)
    assert len(found["traces"]) == TRACES
    assert len(found["quarantine"]) == 4
    statuses = Counter(r["status"] for r in read(world.warehouse, "FROM runs"))
    assert statuses == {"interrupted": KILLS, "completed": ended_first + 1}
    assert not [p for p in world.lake.rglob("*.tmp") if ".warehouse" not in str(p)]
    assert RELEVANCE.name in LEFT_OUT
    assert len(Lake(world.lake).parts(RUNS)) == KILLS + ended_first + 1
    (world.out / "covered").write_text("\n".join(sorted(watch.seen)))
