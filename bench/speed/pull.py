"""Pull a day's traces from a stand-in for Phoenix into the lake: traces/s, peak memory, and kills.

    python -m bench.speed.pull [--traces 25000 50000 100000] [--rounds 1] [--json FILE]

The stand-in replies like a Phoenix server, with up to 1,000 spans per page, from prepared files. A trace has 3 spans
with 5 documents of 120 words, which its prompt repeats: about 10 kB of JSON. Each pull runs in its own process:
`ingest` of one night into an empty lake, and bare requests of the same pages whose JSON is only decoded. Finally, the
largest day is pulled again and killed twice: after half of the pages, and when the first part is staged.
"""

import argparse
import itertools
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from rich.console import Console

from bench import common
from bench.common import ROOT, Stages, measured
from bench.speed import generate

DAY = date(2025, 11, 1)
PROJECT = "bench"
SPANS = 3  # spans per trace
PAGE = 999  # spans per page, so that pages contain whole traces


def spans_of(line: bytes, at: datetime) -> Iterator[dict[str, Any]]:
    """Spans of a generated trace, as in Phoenix's replies."""
    trace = msgspec.json.decode(line)
    name, question, answer, chunks = (trace[key] for key in ("trace_id", "question", "answer", "chunks"))
    prompt = "\n\n".join([*(f"[{c['rank']}] {c['text']}" for c in chunks), question])
    document = "retrieval.documents.{}.document.{}".format
    found = {document(n, "id"): chunk["chunk_id"] for n, chunk in enumerate(chunks)}
    found |= {document(n, "content"): chunk["text"] for n, chunk in enumerate(chunks)}
    messages = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": prompt,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
    }
    steps = (
        ("answer", "CHAIN", {"input.value": question, "output.value": answer}),
        ("search", "RETRIEVER", {"input.value": question, **found}),
        ("chat", "LLM", {"llm.model_name": trace["generator"], **messages}),
    )
    for n, (step, kind, attributes) in enumerate(steps):
        yield {
            "context": {"trace_id": name, "span_id": f"{name}-{n}"},
            "parent_id": f"{name}-0" if n else None,
            "name": step,
            "span_kind": kind,
            "start_time": (at + timedelta(milliseconds=n)).isoformat(),
            "end_time": (at + timedelta(milliseconds=n + 1 if n else SPANS)).isoformat(),
            "status_code": "OK",
            "attributes": attributes,
        }


def write(folder: Path, n: int) -> int:
    """Write the pages of `n` traces, one file per page, unless they exist; returns the number of pages."""
    step = timedelta(seconds=86_000 / n)
    start = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC)
    count = -(-n * SPANS // PAGE)
    if not (folder / f"{count - 1}.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        spans = (span for i, line in enumerate(generate.traces(n)) for span in spans_of(line, start + i * step))
        for number, page in enumerate(iter(lambda: list(itertools.islice(spans, PAGE)), [])):
            cursor = str(number + 1) if number + 1 < count else None
            (folder / f"{number}.json").write_bytes(msgspec.json.encode({"data": page, "next_cursor": cursor}))
    return count


@dataclass
class StandIn:
    """The running server: its URL, and the numbers of the requested pages."""

    url: str = ""
    pages: list[int] = field(default_factory=list)


@contextmanager
def serving(folder: Path) -> Iterator[StandIn]:
    """Run the stand-in in a thread of this process."""
    sys.path.insert(0, str(ROOT / "tests"))
    from kit.stores.server import Asked, Reply, serve

    state = StandIn()

    def answer(asked: Asked) -> Reply:
        if not asked.path.endswith("/spans"):
            return Reply({"data": [], "next_cursor": None})  # no feedback
        page = int(asked.params.get("cursor", ["0"])[0])
        state.pages.append(page)
        return Reply((folder / f"{page}.json").read_bytes())

    with serve(answer) as server:
        state.url = server.url
        yield state


# Children ------------------------------------------------------------------------------------------------------------


def run_bare(url: str, folder: Path) -> list[dict[str, Any]]:  # noqa: ARG001 - same signature as the others
    import httpx

    def ask() -> None:
        with httpx.Client() as client:
            cursor: str | None = "0"
            while cursor:
                reply = client.get(f"{url}/v1/projects/{PROJECT}/spans", params={"cursor": cursor})
                cursor = msgspec.json.decode(reply.content)["next_cursor"]

    return [measured("bare requests", ask)]


def run_pull(url: str, folder: Path) -> list[dict[str, Any]]:
    from bench.nights import configure
    from tasks.ingest.ingest import ingest
    from tasks.run.build import build_context

    source = {"kind": "phoenix", "url": url, "project": PROJECT, "reread_hours": 0}
    config = configure(folder, "", {"judge": "judge.yaml"}, {"judge.yaml": {"kind": "replay"}}, sources=[source])
    ctx = build_context(config, DAY, DAY)
    imports = measured("imports", lambda: __import__("great_expectations.expectations"))
    return [imports, measured("ingest", lambda: ingest(ctx))]


RUNS = {"bare": run_bare, "pull": run_pull}


# The rounds and the kills --------------------------------------------------------------------------------------------


def counted(lake: Path) -> tuple[int, int, int]:
    """Rows of `traces`, distinct ids, and rows of `quarantine` in a lake."""
    import duckdb

    sql = f"SELECT count(*), count(DISTINCT trace_id) FROM read_parquet('{lake}/traces/*/*.parquet')"
    rows, ids = duckdb.sql(sql).fetchall()[0]
    refused = list(lake.glob("quarantine/**/*.parquet"))
    bad = sum(duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall()[0][0] for path in refused)
    return rows, ids, bad


def one_round(pages: Path, n: int) -> Stages:
    with serving(pages) as server, tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        found = common.one_round("bench.speed.pull", *((what, server.url, folder) for what in RUNS))
        assert counted(Path(folder) / "lake") == (n, n, 0)
        return found


def kills(pages: Path, count: int, n: int) -> dict[str, Any]:
    """Run twice with a kill and once to the end, on one lake."""
    with serving(pages) as server, tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        lake = Path(folder) / "lake"
        moments: Mapping[str, Callable[[], bool]] = {
            "after half of the pages": lambda: len(server.pages) > count // 2,
            "when the first part was staged": lambda: any(lake.glob(".staging*/**/*.parquet")),
        }
        runs = []
        for name, moment in moments.items():
            server.pages.clear()
            killed_until(moment, server.url, folder)
            assert not any(lake.glob("traces/**/*.parquet"))
            runs.append({"run": f"killed {name}", "pages": len(server.pages), "rows": 0})
        server.pages.clear()
        ended = common.one_round("bench.speed.pull", ("pull", server.url, folder))["ingest"]
        rows, ids, bad = counted(lake)
        runs.append({"run": "ended", "pages": len(server.pages), "rows": rows})
        return {"traces": n, "runs": runs, "ids": ids, "quarantined": bad, "seconds": ended["wall"]}


def killed_until(moment: Callable[[], bool], url: str, folder: str) -> None:
    command = [sys.executable, "-m", "bench.speed.pull", "--child", "pull", url, folder]
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    while not moment():
        assert run.poll() is None, "it ended before it could be killed"
        time.sleep(0.005)
    run.send_signal(signal.SIGKILL)
    run.wait()


def show(results: Mapping[int, Sequence[Stages]], killed: Mapping[str, Any]) -> None:
    console = Console(width=110)
    columns = ("traces", "seconds", "traces/s", "CPU ms/trace", "peak MB", "bare requests: seconds", "ingest / bare")
    table = common.table("pull of a day, medians", columns, left=())
    for n, rounds in results.items():
        found = common.medians(rounds)
        mine, bare = found["ingest"], found["bare requests"]
        ratio = median(common.ratios(rounds, "cpu", "ingest", "bare requests"))
        numbers = (mine["wall"], n / mine["wall"], 1000 * mine["cpu"] / n, mine["peak_mb"], bare["wall"], ratio)
        table.add_row(f"{n:,}", *(f"{x:,.{d}f}" for x, d in zip(numbers, (1, 0, 2, 0, 1, 1), strict=True)))
    console.print(table)
    table = common.table(f"kills, {killed['traces']:,} traces", ("run", "pages asked for", "rows in the lake"))
    for run in killed["runs"]:
        table.add_row(run["run"], f"{run['pages']:,}", f"{run['rows']:,}")
    console.print(table)
    console.print(f"{killed['ids']:,} ids, {killed['quarantined']:,} rows refused, {killed['seconds']:.1f} s")


def main() -> None:
    parser = common.parser(__doc__, rounds=1)
    parser.add_argument("--traces", type=int, nargs="+", default=[25_000, 50_000, 100_000])
    parser.add_argument("--child", nargs=3, metavar=("WHAT", "URL", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        what, url, folder = args.child
        print(json.dumps(RUNS[what](url, Path(folder))))
        return
    places = {n: Path(tempfile.gettempdir()) / f"leadline-bench-pages-{n}" for n in args.traces}
    counts = {n: write(folder, n) for n, folder in places.items()}
    results = {n: [one_round(folder, n) for _ in range(args.rounds)] for n, folder in places.items()}
    most = max(places)
    killed = kills(places[most], counts[most], most)
    common.save(args.json, {"rounds": results, "kills": killed})
    show(results, killed)


if __name__ == "__main__":
    main()
