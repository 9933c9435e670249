"""Runs that are killed at chosen moments of their work, and what they had paid for by then."""

import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kit.commands import Running
from kit.worlds import World, read
from tasks.core.schemas import VERDICTS
from tasks.store.lake import Lake

SHARD = 8  # requests judged between two writes: what a kill may cost
KEY_LINE = 33  # a key of 32 characters and a newline


class Watch:
    """What has come to be below a world's directory: files under stable names, and shards that the judge was asked."""

    def __init__(self, world: World, log: Path | None = None) -> None:
        self._world = world
        self._log = log or world.log
        self.seen: set[str] = set()

    def look(self) -> int:
        """Look once more; returns how much has been seen so far."""
        self.seen.update(re.sub(r"\.[0-9a-f]{8}\.([a-z-]*tmp)$", r".\1", name) for name in _files(self._world.out))
        if self._log.exists():
            self.seen.add(f"shard {self._log.stat().st_size // (KEY_LINE * SHARD)}")
        return len(self.seen)


def _files(path: str | Path) -> Iterator[str]:
    """Files below a directory that is being written; not the lock, the gates' own files and the records of runs."""
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in {".gates", ".scratch", ".gates-backfill", ".scratch-backfill", "runs"}:
                        yield from _files(entry.path)
                elif not entry.name.startswith(".lock"):
                    yield entry.path
    except FileNotFoundError:  # it was removed just now
        return


def start(world: World, env: Mapping[str, str], verb: str, *args: object) -> Running:
    """A command that goes on by itself."""
    output = output_of(world)
    return Running((verb, "--config", world.config, *args), env, output, output, Path.cwd())


def output_of(world: World) -> Path:
    """What its commands printed."""
    return world.config.with_suffix(".output")


def follow(run: Running, watch: Watch, kill_at: int = sys.maxsize) -> int:
    """Watch a run to its end; kill it when that much has been seen. Returns its exit status."""
    while (status := run.poll()) is None:
        if watch.look() >= kill_at:
            run.kill()
            return run.wait(30)
        time.sleep(0.03)  # leaves the cores to the run
    watch.look()
    return status


def paid(log: Path) -> list[str]:
    """Every request that a judge was paid for."""
    return log.read_text().split() if log.exists() else []


def in_flight(world: World, log: Path, judge: str | None = None) -> set[str]:
    """Requests that a judge was asked and whose verdicts are not in the lake."""
    kept: set[str] = set()
    for part in Lake(world.lake).parts(VERDICTS, *([judge] if judge else [])):
        kept.update(part.read(["request_key"])["request_key"].to_pylist())
    return set(paid(log)) - kept


def kill_at(
    moments: list[int],
    world: World,
    env: Mapping[str, str],
    verb: str,
    *args: object,
    log: Path | None = None,
    judge: str | None = None,
) -> tuple[int, set[str]]:
    """Kill runs at the given moments of their work, then let one end.

    Args:
        log: Of the judge that they ask; the world's own by default.
        judge: Its version; any by default.

    Returns:
        Kills that hit (a run that ended before its moment ends the night), and the requests that were in flight.
    """
    log = log or world.log
    watch = Watch(world, log)
    lost: set[str] = set()
    for kills, moment in enumerate([*moments, sys.maxsize]):
        status = follow(start(world, env, verb, *args), watch, max(moment, watch.look() + 1))
        if status == 0:
            return kills, lost
        assert status == -signal.SIGKILL, output_of(world).read_text()
        flying = in_flight(world, log, judge)
        assert len(flying) <= SHARD
        lost |= flying
        if world.warehouse.exists():  # whatever is published is whole
            read(world.warehouse, "SELECT count(*) FROM trace_scores")
    raise AssertionError("unreachable")


def check_record(runs: Sequence[Mapping[str, Any]], kills: int) -> None:
    """Check the rows of `runs`, in order of their start: all are there, and nothing was left to do after a completed one.

    Several may be completed, because a kill also comes between the record of a run and its exit.
    """
    assert len(runs) == kills + 1
    assert runs[-1]["status"] == "completed"
    first = [run["status"] for run in runs].index("completed")
    assert {run["verdicts_computed"] for run in runs[first + 1 :]} <= {0}
