"""What the measurements share: command line, tables, child processes, and judges whose seconds are counted."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A command line whose help is a module's docstring, as it stands."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def save(path: Path | None, result: object) -> None:
    """Write a result as JSON, if a file is given."""
    if path:
        path.write_text(json.dumps(result, indent=1), encoding="utf-8")


def table(title: str, columns: Sequence[str], left: Sequence[int] = (0,)) -> Table:
    """An empty table of numbers; the columns at `left` hold text."""
    made = Table(title=Text(title))
    for i, name in enumerate(columns):
        made.add_column(name, justify="left" if i in left else "right")
    return made


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Median and range; the median alone where all values print the same."""
    low, mid, high = (f"{f(values):,.{digits}f}" for f in (min, median, max))
    return mid if low == high else f"{mid} [{low}, {high}]"


def child(module: str, *arguments: object) -> Any:
    """The last line, as JSON, of a module that runs in a process of its own."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"python -m {module} ended with {done.returncode}; its messages stand above.")
    return json.loads(done.stdout.splitlines()[-1])


class Meter:
    """Wall and CPU seconds of all calls that it ran."""

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
        """The seconds so far; counting starts again."""
        found = {"wall": self.wall, "cpu": self.cpu}
        self.wall = self.cpu = 0.0
        return found


class Metered:
    """A judge whose own seconds are counted apart from the pipeline's."""

    def __init__(self, judge: Any, meter: Meter | None = None) -> None:
        self._judge, self.meter = judge, meter or Meter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._judge, name)

    def judge(self, requests: Sequence[Any]) -> Any:
        return self.meter.run(self._judge.judge, requests)
