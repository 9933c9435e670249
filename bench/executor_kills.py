"""Kill workers of Ray, and a node of a cluster, in the middle of judging: `python -m bench.executor_kills`.

Each run judges the sample's single pairs by `replay`, in a new lake, and loses one worker at a random moment. Printed:
runs whose verdicts are those of one process, and requests that were judged twice, which may be a shard for each worker
that is lost. `--moments 30 --workers 1 2 4 --nodes`.
"""

import contextlib
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from bench.common import ROOT, parser
from tasks.claims.extract import extract_claims
from tasks.core.schemas import VERDICTS
from tasks.executors.ray import LOOPBACK, Config, Ray
from tasks.ingest.ingest import ingest
from tasks.judging.pairs import plan_pairs
from tasks.judging.verdicts import judge_pairs
from tasks.run.build import build_context
from tasks.run.context import Context
from tasks.store.lake import Lake

SHARD = 16  # requests


def planned(root: Path) -> Context:
    """The sample with its pairs planned."""
    (root / "replay.yaml").write_text(yaml.safe_dump({"kind": "replay", "log": str(root / "judged.log")}))
    config = {
        "lake": "lake",
        "warehouse": "leadline.duckdb",
        "report": {"dir": "report"},
        "sources": [str(ROOT / "configs/sources/sample.yaml")],
        "recipe": {"judge": "replay.yaml"},
        "limits": {"shard_requests": SHARD},
    }
    (root / "nightly.yaml").write_text(yaml.safe_dump(config))
    ctx = build_context(root / "nightly.yaml", date(2026, 11, 1), date(2026, 11, 3))
    for stage in (ingest, extract_claims, plan_pairs):
        stage(ctx)
    return ctx


def judge(ctx: Context, root: Path) -> tuple[list[tuple[Any, ...]], Counter[str], float]:
    """The verdicts of a run in a copy of the lake, how often each request was judged, and the seconds."""
    log, lake = root / "judged.log", root / "again"
    log.unlink(missing_ok=True)
    shutil.rmtree(lake, ignore_errors=True)
    shutil.copytree(ctx.lake.root, lake)
    began = time.monotonic()
    judge_pairs(replace(ctx, lake=Lake(lake)), keep=True)
    seconds = time.monotonic() - began
    columns = ["request_key", "label", "failure", "p_supported", "p_contradicted"]
    rows = [row for part in Lake(lake).parts(VERDICTS) for row in part.frame(columns).iter_rows()]
    return sorted(rows, key=str), Counter(log.read_text().split()), seconds


def campaign(ctx: Context, root: Path, executor: Ray, lose: Callable[[], None], moments: int) -> dict[str, Any]:
    """Runs that lose something at random moments."""
    alone, asked, _ = judge(ctx, root)
    on_ray = replace(ctx, executor=executor)
    judge(on_ray, root)  # starts the workers
    same, _, calm = judge(on_ray, root)
    assert same == alone
    equal, twice, worst, seconds = 0, 0, 0, []
    for _ in range(moments):
        killer = threading.Timer(random.uniform(0, calm), lose)
        killer.start()
        found, counted, took = judge(on_ray, root)
        killer.join()
        equal += found == alone and set(counted) == set(asked)
        extra = sum(counted.values()) - len(counted)
        twice, worst = twice + (extra > 0), max(worst, extra)
        seconds.append(took)
    executor.close()
    return {"equal": equal, "twice": twice, "worst": worst, "calm": calm, "seconds": sum(seconds) / moments}


def main() -> None:
    """Run the campaigns and print a table."""
    options = parser(__doc__)
    options.add_argument("--moments", type=int, default=30)
    options.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    options.add_argument("--nodes", action="store_true", help="also lose a node of a cluster of two")
    arguments = options.parse_args()
    os.environ[LOOPBACK] = "0"
    os.environ["RAY_memory_monitor_refresh_ms"] = "0"  # noqa: SIM112 - Ray spells it so
    import ray
    from ray.cluster_utils import Cluster

    table = Table(
        "lost", "workers", "runs", "equal", "judged any twice", "most requests twice", "s calm", "s with loss"
    )
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        ctx = planned(root)

        def row(lost: str, workers: int, runs: int, found: dict[str, Any]) -> None:
            figures = (f"{found['calm']:.1f}", f"{found['seconds']:.1f}")
            table.add_row(lost, *map(str, (workers, runs, found["equal"], found["twice"], found["worst"])), *figures)
            print(lost, workers, runs, found, flush=True)

        if arguments.workers:
            ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False)
        for workers in arguments.workers:
            executor = Ray(Config(workers=workers, cpus=0.5))

            def kill(executor: Ray = executor) -> None:
                pids = executor.pids
                with contextlib.suppress(ProcessLookupError):  # it is being replaced
                    if pids:
                        os.kill(random.choice(pids), signal.SIGKILL)

            row("a worker", workers, arguments.moments, campaign(ctx, root, executor, kill, arguments.moments))
        ray.shutdown()
        if arguments.nodes:
            cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
            doomed = cluster.add_node(num_cpus=1)
            cluster.add_node(num_cpus=1)
            ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
            executor = Ray(Config(address=cluster.address, workers=2, cpus=1))
            lost = campaign(ctx, root, executor, lambda: cluster.remove_node(doomed, allow_graceful=False), 1)
            row("a node of two", 2, 1, lost)
            ray.shutdown()
            cluster.shutdown()
    Console().print(table)


if __name__ == "__main__":
    main()
