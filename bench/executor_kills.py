"""Kill Ray workers and a node of a cluster in the middle of a night's work: `python -m bench.executor_kills`.

Each run extracts claims from the sample, plans and judges their pairs with `replay`, and scores answerability, in a new
lake. One worker is killed at a random moment. Printed are the number of runs whose tables equal those of a single
process, and the number of requests that were judged twice, which is at most a shard per lost worker. Options:
`--moments 30 --workers 1 2 4 --nodes 10`.

With `--s3`, the lakes are on a local stand-in for S3, whose requests are counted. `--nights` instead compares whole
nights of `leadline nightly`: on a disk, on the stand-in, and on the stand-in with each number of workers. These nights
score relevance with a tiny random model, since the shipped model takes longer than all other stages together.
"""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from bench.accuracy.labeled import default_data
from bench.common import ROOT, parser
from tasks.claims.extract import extract_claims
from tasks.core.paths import ObjectUrl
from tasks.core.schemas import CLAIMS, PAIRS, RELEVANCE, TABLES, TRACES, VERDICTS
from tasks.core.schemas import Table as Schema
from tasks.executors.ray import LOOPBACK, Config, Ray
from tasks.ingest.ingest import ingest
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_by
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.run.build import build_context, build_contexts
from tasks.run.context import Context
from tasks.store.lake import Lake

SHARD, PART = 16, 10  # requests, traces
EXPERTQA = 50  # traces
BUCKET = "bench"
REQUEST = re.compile(r"(GET|PUT|HEAD|DELETE|POST) (\S+) HTTP")
LEFT_OUT = {"created_at", "tokens_in"}  # depend on the order of requests that share a text
Tables = dict[str, list[str]]


@dataclass(frozen=True)
class Places:
    """Creates lakes on a disk or on the stand-in.

    Attributes:
        log: Log of the stand-in's requests; None on a disk.
    """

    root: Path
    log: Path | None = None

    def lake(self) -> Path | ObjectUrl:
        """Return the location of a new lake."""
        name = uuid.uuid4().hex
        if self.log is None:
            return self.root / "lakes" / name
        return ObjectUrl(f"s3://{BUCKET}/{name}", self.root / "caches" / name)

    def clear(self) -> None:
        """Remove lakes and caches from this disk."""
        for name in ("lakes", "caches"):
            shutil.rmtree(self.root / name, ignore_errors=True)

    def seen(self) -> int:
        """Size of the log in bytes."""
        return self.log.stat().st_size if self.log else 0

    def requests(self, since: int) -> Counter[str]:
        """Count requests by kind, from an offset in the log."""
        if self.log is None:
            return Counter()
        found = REQUEST.findall(self.log.read_bytes()[since:].decode(errors="replace"))
        return Counter("LIST" if "list-type" in path else method for method, path in found)


@contextlib.contextmanager
def stand_in(root: Path) -> Iterator[Path]:
    """Start a stand-in for S3 with a bucket, and set environment variables for it; yields its log."""
    import boto3

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    access = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ.update(access, AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}")
    log = root / "requests.log"
    with log.open("wb") as output:
        command = [sys.executable, str(ROOT / "tests/kit/stores/s3_server.py"), str(port)]
        server = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        for attempt in count():
            try:
                boto3.client("s3").create_bucket(Bucket=BUCKET)
                break
            except Exception:
                if attempt == 30 or server.poll() is not None:
                    raise
                time.sleep(1)
        yield log
    finally:
        server.terminate()
        server.wait()


def configured(root: Path, sources: list[Any], lake: str, executor: dict[str, Any], shard: int, **recipe: Any) -> Path:
    """Write a nightly config with a judge that logs each request, in a new folder."""
    root.mkdir()
    (root / "replay.yaml").write_text(yaml.safe_dump({"kind": "replay", "log": str(root / "judged.log")}))
    config = {
        "lake": lake,
        "lake_cache": str(root / "cache"),
        "warehouse": "leadline.duckdb",
        "report": {"dir": "report", "max_trace_pages": 5},
        "sources": sources,
        "executor": executor,
        "recipe": {"judge": "replay.yaml", **recipe},
        "limits": {"shard_requests": shard, "part_traces": PART},
    }
    (root / "nightly.yaml").write_text(yaml.safe_dump(config))
    return root / "nightly.yaml"


def content(lake: Lake, tables: Sequence[Schema], leave_out: Mapping[str, set[str]] | None = None) -> Tables:
    """Read the sorted rows of some tables, without the columns to leave out."""
    lake.storage.refresh()
    left = leave_out or {}
    frames = {t.name: lake.frame(t).drop({*LEFT_OUT, *left.get(t.name, ())}, strict=False) for t in tables}
    return {name: sorted(map(repr, frame.iter_rows())) for name, frame in frames.items()}


# Whole nights ---------------------------------------------------------------------------------------------------------


def night(places: Places, root: Path, sources: list[Any], executor: dict[str, Any], days: Sequence[date]) -> list[Any]:
    """Run `leadline nightly` on a new lake; returns tables, requests and seconds."""
    from flows.nightly.run import run as complete
    from flows.runtime.run import Local

    sys.path.insert(0, str(ROOT / "tests"))
    from kit.models import bert
    from kit.worlds import DIFFERING

    lake = places.lake()
    model = bert.base(places.root / "bert", spread=0.5)
    relevance = {"model": str(model), "max_tokens": 96, "threads": 1}
    config = configured(root, sources, str(lake), executor, 256, relevance=relevance)
    began, since = time.monotonic(), places.seen()
    complete(build_contexts(config, *days), Local(prefect_slots=False))
    seconds = time.monotonic() - began
    found = content(Lake(lake), [table for table in TABLES.values() if table.name != "runs"], DIFFERING)
    return [found, places.requests(since), seconds]


def nights(places: Places, workers: list[int]) -> None:
    """Compare whole nights of the sample and of real traces with those of one process and a lake on a disk."""
    sources: dict[str, list[Any]] = {"sample": [str(ROOT / "configs/sources/sample.yaml")]}
    if default_data().exists():
        lines = (default_data() / "traces.jsonl").read_text().splitlines(keepends=True)[:EXPERTQA]
        (places.root / "expertqa.jsonl").write_text("".join(lines))
        sources["ExpertQA"] = [{"kind": "jsonl", "paths": [str(places.root / "expertqa.jsonl")]}]
    table = Table("night", "lake", "workers", "rows", "tables that differ", "requests", "s")
    for name, its in sources.items():
        days = date(2026, 11, 1), date(2026, 11, 3 if name == "sample" else 14)
        ways: list[tuple[Places, int]] = [(Places(places.root), 0), (places, 0), *((places, n) for n in workers)]
        alone: Tables = {}
        for way, n in ways:
            executor = {"kind": "ray", "workers": n, "cpus": 0.5} if n else {"kind": "local"}
            root = places.root / f"{name}-{'s3' if way.log else 'disk'}-{n}"
            found, asked, seconds = night(way, root, its, executor, days)
            alone = alone or found
            differ = [table for table in alone if found[table] != alone[table]]
            lake = "stand-in" if way.log else "disk"
            row = (name, lake, str(n or "none"), f"{sum(map(len, found.values())):,}", ", ".join(differ) or "none")
            table.add_row(*row, shown(asked), f"{seconds:.0f}")
            print(*row, shown(asked), f"{seconds:.0f}", flush=True)
    Console().print(table)


def shown(requests: Counter[str]) -> str:
    """Format requests by kind."""
    return f"{sum(requests.values()):,}: {json.dumps(dict(sorted(requests.items())))}" if requests else ""


# Kills ----------------------------------------------------------------------------------------------------------------


def run(ctx: Context, places: Places) -> tuple[Tables, Counter[str], float]:
    """Run the stages in a new lake; returns tables, how often each request was judged, and seconds."""
    log = ctx.path.parent / "judged.log"
    log.unlink(missing_ok=True)
    places.clear()
    lake = Lake(places.lake())
    for part in ctx.lake.parts(TRACES):
        lake.write(TRACES, part.name, part.read(), *part.partition)
    ctx = replace(ctx, lake=lake)
    began = time.monotonic()
    extract_claims(ctx)
    plan_pairs(ctx)
    judge_pairs(ctx, keep=True)
    judge_joint_pairs(ctx, keep=True)
    score_by(ctx, scorer=next(scorer for scorer in ctx.scorers if scorer.model is None), keep=True)
    seconds = time.monotonic() - began
    return content(lake, [CLAIMS, PAIRS, RELEVANCE, VERDICTS]), Counter(log.read_text().split()), seconds


def campaign(
    ctx: Context, places: Places, executor: Ray, lose: Callable[[], None], moments: int, before: Callable[[], None]
) -> dict[str, Any]:
    """Run repeatedly and call `lose` at a random moment of each run. `before` replaces what was lost before."""
    before()
    alone, judged, _ = run(ctx, places)
    on_ray = replace(ctx, executor=executor)
    run(on_ray, places)  # start the workers
    since = places.seen()
    same, _, calm = run(on_ray, places)
    requests = places.requests(since)
    assert same == alone
    equal, twice, worst, seconds = 0, 0, 0, []
    for _ in range(moments):
        before()
        killer = threading.Timer(random.uniform(0, calm), lose)
        killer.start()
        found, counted, took = run(on_ray, places)
        killer.join()
        equal += found == alone and set(counted) == set(judged)
        extra = sum(counted.values()) - len(counted)
        twice, worst = twice + (extra > 0), max(worst, extra)
        seconds.append(took)
    executor.close()
    mean = sum(seconds) / moments
    return {"equal": equal, "twice": twice, "worst": worst, "calm": calm, "seconds": mean, "requests": shown(requests)}


def kills(places: Places, workers: list[int], moments: int, nodes: int) -> None:
    """Run the campaigns and print a table."""
    import ray
    from ray.cluster_utils import Cluster

    columns = ("lost", "workers", "runs", "equal", "judged any twice", "most requests twice", "s calm", "s with loss")
    table = Table(*columns, "requests of a calm run")
    days = date(2026, 11, 1), date(2026, 11, 3)
    source = str(ROOT / "configs/sources/sample.yaml")
    ctx = build_context(configured(places.root / "kills", [source], "lake", {"kind": "local"}, SHARD), *days)
    ingest(ctx)

    def row(lost: str, workers: int, runs: int, found: dict[str, Any]) -> None:
        figures = (f"{found['calm']:.1f}", f"{found['seconds']:.1f}", found["requests"])
        table.add_row(lost, *map(str, (workers, runs, found["equal"], found["twice"], found["worst"])), *figures)
        print(lost, workers, runs, found, flush=True)

    for number in workers:
        executor = Ray(Config(workers=number, cpus=0.5))

        def kill(executor: Ray = executor) -> None:
            pids = executor.pids
            with contextlib.suppress(ProcessLookupError):  # the worker is being replaced
                if pids:
                    os.kill(random.choice(pids), signal.SIGKILL)

        row("a worker", number, moments, campaign(ctx, places, executor, kill, moments, lambda: None))
    ray.shutdown()
    if nodes:
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        cluster.add_node(num_cpus=1)
        doomed: list[Any] = []

        def add() -> None:
            if not doomed:
                doomed.append(cluster.add_node(num_cpus=1))

        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
        executor = Ray(Config(address=cluster.address, workers=2, cpus=1))
        lose = lambda: cluster.remove_node(doomed.pop(), allow_graceful=False)  # noqa: E731
        row("a node of two", 2, nodes, campaign(ctx, places, executor, lose, nodes, add))
        ray.shutdown()
        cluster.shutdown()
    Console().print(table)


def main() -> None:
    """Run the selected benchmark."""
    options = parser(__doc__)
    options.add_argument("--moments", type=int, default=30)
    options.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    options.add_argument("--nodes", type=int, default=0, help="how often to lose a node of a cluster of two, too")
    options.add_argument("--s3", action="store_true", help="lakes on a stand-in for S3")
    options.add_argument("--nights", action="store_true", help="compare whole nights, and kill nothing")
    arguments = options.parse_args()
    os.environ[LOOPBACK] = "0"
    os.environ["RAY_memory_monitor_refresh_ms"] = "0"  # noqa: SIM112 - the name that Ray uses
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        root = Path(folder)
        places = Places(root, stack.enter_context(stand_in(root)) if arguments.s3 or arguments.nights else None)
        if arguments.workers:
            import ray

            ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False)
        if arguments.nights:
            nights(places, arguments.workers)
        else:
            kills(places, arguments.workers if arguments.moments else [], arguments.moments, arguments.nodes)


if __name__ == "__main__":
    main()
