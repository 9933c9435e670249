"""Shared by the benchmarks: command lines, tables, child processes, timing and ratios."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
Stages = dict[str, dict[str, Any]]  # rows of `measured` by stage, of one round


def parser(doc: str | None, rounds: int | None = None) -> argparse.ArgumentParser:
    """A parser whose help is a module's docstring. With a default for `rounds`, it has --rounds and --json."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if rounds is not None:
        made.add_argument("--rounds", type=int, default=rounds)
        made.add_argument("--json", type=Path, help="write the numbers to this file")
    return made


def save(path: Path | None, result: object) -> None:
    """Write a result as JSON if a file is given."""
    if path:
        path.write_text(json.dumps(result, indent=1), encoding="utf-8")


def table(title: str, columns: Sequence[str], left: Sequence[int] = (0,)) -> Table:
    """An empty table of numbers; columns at `left` are text."""
    made = Table(title=Text(title))
    for i, name in enumerate(columns):
        made.add_column(name, justify="left" if i in left else "right")
    return made


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Format median and range; only the median if all values look the same."""
    if not values:
        return "n/a"
    low, mid, high = (f"{f(values):,.{digits}f}" for f in (min, median, max))
    return mid if low == high else f"{mid} [{low}, {high}]"


# Timing ---------------------------------------------------------------------------------------------------------------


def measured(name: str, work: Callable[[], object]) -> dict[str, Any]:
    """Measure wall and CPU seconds of some work, and the peak of resident memory."""
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    meter = Meter()
    meter.run(work)
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return {"stage": name, **meter.take(), "peak_mb": peak / 1024}


def share_of(name: str, wall: float, cpu: float = 0.0) -> dict[str, Any]:
    """A row like those of `measured`, for a part of a stage's work."""
    return {"stage": f"of it, {name}", "wall": wall, "cpu": cpu, "peak_mb": 0.0}


class Meter:
    """Sums wall and CPU seconds of calls."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def run(self, work: Callable[..., Any], *args: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            return work(*args)
        finally:
            self.wall += time.perf_counter() - wall
            self.cpu += time.process_time() - cpu

    def take(self) -> dict[str, float]:
        """Return the seconds so far and reset them."""
        found = {"wall": self.wall, "cpu": self.cpu}
        self.wall = self.cpu = 0.0
        return found


class Metered:
    """Wraps a judge, gate or the like and times some methods; by default, all of them."""

    def __init__(self, inner: Any, *methods: str, meter: Meter | None = None) -> None:
        self._inner, self._methods, self.meter = inner, methods, meter or Meter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in self._methods or (not self._methods and callable(found)):
            return partial(self.meter.run, found)
        return found


def load_average() -> float:
    """Load average of the last minute. Before a benchmark, it shows the load by other work."""
    return float(Path("/proc/loadavg").read_text().split()[0])


# Rounds ---------------------------------------------------------------------------------------------------------------


def child(module: str, *arguments: object) -> Any:
    """Run a module in a process of its own; returns its last line of output, parsed as JSON."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"python -m {module} ended with {done.returncode}; see its messages above.")
    return json.loads(done.stdout.splitlines()[-1])


def one_round(module: str, *children: Sequence[object]) -> Stages:
    """Run a module's child processes one after another; each prints rows of `measured`."""
    return {row["stage"]: row for arguments in children for row in child(module, "--child", *arguments)}


def medians(rounds: Sequence[Stages]) -> dict[str, dict[str, float]]:
    """Medians of each stage over the rounds."""
    return {stage: {k: median(r[stage][k] for r in rounds) for k in ("wall", "cpu", "peak_mb")} for stage in rounds[0]}


def ratios(
    rounds: Sequence[Mapping[str, Mapping[str, Any]]], key: str, above: str, *below: str, without: str | None = None
) -> list[float]:
    """Ratios of a stage's number to the sum of other stages' numbers, one per round.

    Rounds in which this sum is 0 are left out.

    Args:
        without: A stage whose number is subtracted from that of `above`.
    """
    return [
        (r[above][key] - (r[without][key] if without else 0)) / total
        for r in rounds
        if (total := sum(r[name].get(key, 0) for name in below))
    ]
