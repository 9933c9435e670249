"""Cost of a night by length of history: a run with nothing to do, a night of ten traces, and a rebuild.

    python -m bench.speed.history [--nights 1 10 100 400] [--traces 20] [--rounds 3]
                                  [--lakes FOLDER] [--json FILE]

For each number of nights, `leadline nightly` builds a lake with that many days, judged by `replay`, which costs
nothing. Each round then runs `leadline nightly` on the last day again, with nothing to do; on one more day with ten
traces; and `leadline rebuild`. Each command runs in its own process, without Prefect. Ratios are relative to the
smallest history of the same round. `--lakes` keeps the lakes in a folder and reuses existing ones: 400 nights take half
an hour to build.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from bench import common
from bench.common import ROOT, Stages
from bench.nights import configure
from bench.speed.generate import traces
from bench.speed.pipeline import JUDGE

FIRST = date(2025, 6, 1)
RUNS = ("nothing to do", "ten traces", "rebuild")


def day_of(day: date, n: int) -> Iterator[bytes]:
    """`n` traces of a day, with the same questions and chunks every day but different answers."""
    start = datetime(day.year, day.month, day.day, 8, tzinfo=UTC)
    for i, line in enumerate(traces(n)):
        trace = msgspec.json.decode(line)
        trace["trace_id"], trace["timestamp"] = f"{day}-{i}", (start + timedelta(minutes=i)).isoformat()
        trace["answer"] = trace["answer"].replace(" [", f" of {day} [")
        yield msgspec.json.encode(trace) + b"\n"


def add(folder: Path, day: date, n: int) -> None:
    """Write a day's file to the folder of logs."""
    path = folder / "logs" / f"{day}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(day_of(day, n)))


def leadline(name: str, *arguments: str) -> dict[str, Any]:
    """Run a command; returns wall and CPU seconds and peak resident memory.

    Raises:
        SystemExit: The command failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "flows", *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    with process:
        errors = process.stderr.read().decode() if process.stderr else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"leadline {' '.join(arguments)} ended with {process.returncode}: {errors[-2000:]}")
    cpu = usage.ru_utime + usage.ru_stime
    return {"stage": name, "wall": time.perf_counter() - begun, "cpu": cpu, "peak_mb": usage.ru_maxrss / 1024}


def build(folder: Path, nights: int, n: int) -> dict[str, Any]:
    """Build a lake of nights with `n` traces each; returns the cost."""
    days = [FIRST + timedelta(days=i) for i in range(nights)]
    for day in days:
        add(folder, day, n)
    report = {"dir": "report", "max_trace_pages": 20}
    configure(folder, "logs/*.jsonl", {"judge": "judge.yaml"}, {"judge.yaml": JUDGE}, report=report)
    return nightly("all nights", folder, days[0], days[-1])


def nightly(name: str, folder: Path, first: date, last: date) -> dict[str, Any]:
    """Run `leadline nightly` on these days."""
    config = str(folder / "nightly.yaml")
    return leadline(name, "nightly", "-c", config, "--no-prefect", "--from", str(first), "--to", str(last))


def one_round(built: Path, nights: int) -> Stages:
    """Do the three runs on a copy of the lake."""
    last = FIRST + timedelta(days=nights - 1)
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name:
        folder = Path(name) / "copy"
        shutil.copytree(built, folder)
        nightly("first look at the copy", folder, last, last)  # not counted: copied files have new modification times
        found = [nightly(RUNS[0], folder, last, last)]
        add(folder, last + timedelta(days=1), 10)
        found.append(nightly(RUNS[1], folder, last + timedelta(days=1), last + timedelta(days=1)))
        found.append(leadline(RUNS[2], "rebuild", "-c", str(folder / "nightly.yaml")))
    return {row["stage"]: row for row in found}


def show(results: Mapping[int, Sequence[Stages]], built: Mapping[int, Mapping[str, Any]]) -> None:
    least = min(results)
    columns = ("nights", "run", "seconds", "CPU s", "peak MB", f"CPU / that after {least}")
    table = common.table(f"median of {len(results[least])} rounds", columns, left=(1,))
    for nights, rounds in results.items():
        if took := built.get(nights):
            numbers = (f"{took['wall']:.1f}", f"{took['cpu']:.1f}", f"{took['peak_mb']:,.0f}")
            table.add_row(str(nights), "all nights", *numbers, "")
        for run, m in common.medians(rounds).items():
            against = common.spread(
                [r[run]["cpu"] / f[run]["cpu"] for r, f in zip(rounds, results[least], strict=True)], 2
            )
            table.add_row(str(nights), run, f"{m['wall']:.1f}", f"{m['cpu']:.1f}", f"{m['peak_mb']:,.0f}", against)
    Console(width=110).print(table)


def main() -> None:
    parser = common.parser(__doc__, rounds=3)
    parser.add_argument("--nights", type=int, nargs="+", default=[1, 10, 100, 400])
    parser.add_argument("--traces", type=int, default=20, help="traces a night")
    parser.add_argument("--lakes", type=Path, help="keep the lakes in this folder; use those that are there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name:
        folders = {nights: (args.lakes or Path(name)) / str(nights) for nights in args.nights}
        built = {n: build(folder, n, args.traces) for n, folder in folders.items() if not folder.exists()}
        results: dict[int, list[Stages]] = {nights: [] for nights in folders}
        for _ in range(args.rounds):
            for nights, folder in folders.items():
                results[nights].append(one_round(folder, nights))
    common.save(args.json, {"built": built, "rounds": results})
    show(results, built)


if __name__ == "__main__":
    main()
