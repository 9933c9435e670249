"""The pipeline around a judge that costs nothing: traces/s, CPU and peak memory per stage, beside bare equivalents.

    python -m bench.pipeline [--traces 10000 100000] [--rounds 3] [--json FILE]

Every round runs, one after another and each in a process of its own: a bare polars NDJSON→Parquet copy of the
generated file, the pipeline's stages on it, and one bare DuckDB GROUP BY over the trace scores that came out. Ratios
are taken inside a round; medians over the rounds are printed. The judge draws verdicts of every label, abstentions and
failures from request keys (`replay`); the embedder returns a constant: what is left is Leadline's own work.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from bench import common
from bench.common import Metered
from bench.generate import write

DAY = date(2026, 11, 1)
CONFIG = """
lake: lake
warehouse: leadline.duckdb
report: {{dir: report, max_trace_pages: 100}}
sources: [{{kind: jsonl, paths: ["{source}"]}}]
recipe: {{judge: judge.yaml}}
limits: {{shard_requests: 20000}}
"""
JUDGE = """
kind: replay
shares:
  {supported: 0.55, partially_supported: 0.15, unsupported: 0.15, contradicted: 0.05, abstained: 0.05, failure: 0.05}
"""
BARE_AGGREGATE = """
    SELECT app, generator, count(*),
        {numbers}
    FROM read_parquet('{files}') GROUP BY app, generator
"""
SCORES = ("groundedness_score", "faithfulness", "utilization", "answer_relevance", "context_relevance")


class FreeEmbedder:
    """Has the embedder's interface, reads nothing."""

    version = "free"

    def embed(self, texts: Sequence[str]) -> Any:
        import numpy as np

        from tasks.engines.transformers_cpu import Embedded

        vectors = np.zeros((len(texts), 2), np.float32)
        vectors[:, 0] = 1
        return Embedded(vectors, np.zeros(len(texts), np.int64))

    def close(self) -> None:
        """Nothing to free."""


class MeteredGates:
    """The gates, with the wall seconds of each of their calls noted."""

    def __init__(self, gates: Any) -> None:
        self._gates = gates
        self.seconds: list[float] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._gates, name)

        def call(*args: Any) -> Any:
            start = time.perf_counter()
            try:
                return method(*args)
            finally:
                self.seconds.append(time.perf_counter() - start)

        return call


def measured(name: str, work: Callable[[], object]) -> dict[str, Any]:
    """Wall and CPU seconds of some work, and the peak of the process's resident memory while it ran."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return {"stage": name, "wall": wall, "cpu": cpu, "peak_mb": peak / 1024}


def run_pipeline(source: Path, folder: Path) -> list[dict[str, Any]]:
    from tasks import scorers
    from tasks.claims import extract as claims
    from tasks.ingest import ingest
    from tasks.judging import pairs, relevance, verdicts
    from tasks.publish import publish
    from tasks.run.build import build_context
    from tasks.scoring import nightly, score

    config = folder / "nightly.yaml"
    config.write_text(CONFIG.format(source=source))
    (folder / "judge.yaml").write_text(JUDGE)
    ctx = build_context(config, DAY, DAY)
    gates: Any = MeteredGates(ctx.gates)
    judge = Metered(ctx.judges[0].judge)
    embedder: Any = FreeEmbedder()
    own = scorers.load(ctx.settings, embedder)
    ctx = replace(ctx, embedder=embedder, gates=gates, scorers=own, judges=(replace(ctx.judges[0], judge=judge),))
    stages: list[tuple[str, Callable[[Any], object]]] = [
        ("ingest", ingest.ingest),
        ("claims", claims.extract_claims),
        ("pairs", pairs.plan_pairs),
        ("verdicts", verdicts.judge_pairs),
        ("joint pairs", verdicts.judge_joint_pairs),
        ("relevance", relevance.score_relevance),
        ("scores", score.score_traces),
        ("nightly", nightly.aggregate_nights),
        ("warehouse", publish.load_warehouse),
        ("report", publish.write_reports),
        ("publish", publish.publish_warehouse),
    ]
    # What every run pays once, whatever its size: imports, and Great Expectations' first validation.
    fixed = measured("imports", lambda: __import__("great_expectations.expectations"))
    rows = [fixed]
    for name, stage in stages:
        rows.append(measured(name, lambda stage=stage: stage(ctx)))
        if name == "ingest":
            rows.append({"stage": "of it, the gate", "wall": sum(gates.seconds), "cpu": 0.0, "peak_mb": 0.0})
    return [*rows, {"stage": "of it, the judge", "wall": judge.meter.cpu, "cpu": judge.meter.cpu, "peak_mb": 0.0}]


def run_copy(source: Path, folder: Path) -> list[dict[str, Any]]:
    import polars as pl

    def copy() -> None:
        pl.scan_ndjson(source).sink_parquet(folder / "copy.parquet", compression="zstd", compression_level=1)

    return [measured("bare copy", copy)]


def run_aggregate(source: Path, folder: Path) -> list[dict[str, Any]]:  # noqa: ARG001 - one signature for all
    import duckdb

    one = "avg({0}), stddev_samp({0}), count({0}), quantile_cont({0}, [0.05, 0.25, 0.5, 0.75, 0.95])"
    query = BARE_AGGREGATE.format(
        numbers=",\n        ".join(one.format(s) for s in SCORES),
        files=folder / "lake" / "trace_scores" / "*" / "*" / "*.parquet",
    )
    return [measured("bare aggregate", lambda: duckdb.connect().execute(query).fetchall())]


RUNS = {"copy": run_copy, "pipeline": run_pipeline, "aggregate": run_aggregate}


def one_round(source: Path) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        rows = [r for what in RUNS for r in common.child("bench.pipeline", "--child", what, source, folder)]
    return {r["stage"]: r for r in rows}


def medians(rounds: list[dict[str, dict[str, Any]]]) -> dict[str, dict[str, float]]:
    return {stage: {k: median(r[stage][k] for r in rounds) for k in ("wall", "cpu", "peak_mb")} for stage in rounds[0]}


def ratio(rounds: list[dict[str, dict[str, Any]]], stages: list[str], bare: str) -> float:
    """Median over the rounds of stages (those with a minus taken away) over the bare equivalent."""

    def wall(found: dict[str, dict[str, Any]]) -> float:
        return sum(-found[s[1:]]["wall"] if s.startswith("-") else found[s]["wall"] for s in stages)

    return median(wall(found) / found[bare]["wall"] for found in rounds)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--traces", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=3, metavar=("WHAT", "SOURCE", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        what, source, folder = args.child
        print(json.dumps(RUNS[what](Path(source), Path(folder))))
        return
    results: dict[int, list[dict[str, dict[str, Any]]]] = {}
    for n in args.traces:
        source = write(Path(tempfile.gettempdir()) / f"leadline-bench-{n}.jsonl", n)
        results[n] = [one_round(source) for _ in range(args.rounds)]
    common.save(args.json, results)
    show(results)


def show(results: dict[int, list[dict[str, dict[str, Any]]]]) -> None:
    console = Console(width=110)
    for n, rounds in results.items():
        columns = ("stage", "seconds", "traces/s", "CPU ms/trace", "peak MB")
        table = common.table(f"{n:,} traces, median of {len(rounds)} rounds", columns)
        found = medians(rounds)
        for stage, m in found.items():
            per_trace = 1000 * m["cpu"] / n
            rate = f"{n / m['wall']:,.0f}" if m["wall"] else ""
            table.add_row(stage, f"{m['wall']:.2f}", rate, f"{per_trace:.3f}", f"{m['peak_mb']:,.0f}")
        console.print(table)
        own = [
            s for s in found if not s.startswith("bare") and s not in {"imports", "of it, the judge", "of it, the gate"}
        ]
        total = median(sum(r[s]["cpu"] for s in own) - r["of it, the judge"]["cpu"] for r in rounds)
        console.print(
            f"ingest / bare copy {ratio(rounds, ['ingest'], 'bare copy'):.2f}× "
            f"({ratio(rounds, ['ingest', '-of it, the gate'], 'bare copy'):.2f}× without the gate), "
            f"nightly / bare aggregate {ratio(rounds, ['nightly'], 'bare aggregate'):.2f}×, "
            f"CPU without the judge {1000 * total / n:.3f} ms per trace, "
            f"peak {max(found[s]['peak_mb'] for s in own):,.0f} MB"
        )


if __name__ == "__main__":
    main()
