"""Measure the pipeline without the cost of a judge: traces/s, CPU and peak memory per stage, and bare equivalents.

    python -m bench.speed.pipeline [--traces 10000 100000] [--rounds 3] [--json FILE]

Every round runs, one after another and each in its own process: a bare polars copy of the generated file from NDJSON to
Parquet, the pipeline's stages on this file, and bare DuckDB queries over the resulting trace scores and claim results:
means and percentiles of five scores ("bare aggregate"), and the numbers of all nightly tables ("bare tables"). Ratios
are computed within a round; medians over the rounds are printed. The judge draws verdicts of every label, abstentions
and failures from hashes of requests (`replay`), and the embedder returns a constant, so only Leadline's own work is
measured. Finally, the size of each table in bytes is printed.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from bench import common
from bench.common import Metered, Stages, measured, ratios
from bench.speed import bare
from bench.speed.generate import write

DAY = date(2026, 11, 1)
JUDGE = {
    "kind": "replay",
    "shares": {
        "supported": 0.55,
        "partially_supported": 0.15,
        "unsupported": 0.15,
        "contradicted": 0.05,
        "abstained": 0.05,
        "failure": 0.05,
    },
}
FILES = "files of "
GATED = ("ingest", "nightly")  # stages after which Great Expectations validates


def run_pipeline(source: Path, folder: Path) -> list[dict[str, Any]]:
    from bench.nights import STAGES, configure, without_embedding
    from tasks.publish import publish
    from tasks.run.build import build_context
    from tasks.scoring.nightly import aggregate_nights

    report = {"dir": "report", "max_trace_pages": 100}
    limits = {"shard_requests": 20_000}
    models = {"judge.yaml": JUDGE}
    config = configure(folder, source, {"judge": "judge.yaml"}, models, report=report, limits=limits)
    ctx = build_context(config, DAY, DAY)
    gates: Any = Metered(ctx.gates)
    judge = Metered(ctx.judges[0].judge, "judge")
    ctx = without_embedding(ctx, gates=gates, judges=(replace(ctx.judges[0], judge=judge),))
    stages: dict[str, Callable[[Any], object]] = {
        **STAGES,
        "nightly": aggregate_nights,
        "warehouse": publish.load_warehouse,
        "report": publish.write_reports,
        "publish": publish.publish_warehouse,
    }
    # One-time costs of every run: imports, and Great Expectations' first validation.
    rows = [measured("imports", lambda: __import__("great_expectations.expectations"))]
    for name, stage in stages.items():
        gates.meter.take()
        rows.append(measured(name, lambda stage=stage: stage(ctx)))
        if name in GATED:
            rows.append(common.share_of(f"the gate of {name}", **gates.meter.take()))
    return [*rows, common.share_of("the judge", judge.meter.cpu, judge.meter.cpu), *files_of(folder / "lake")]


def files_of(lake: Path) -> list[dict[str, Any]]:
    """Bytes of each table of a lake, of the index and of the warehouse, as rows like those of `measured`."""
    sizes = {
        table.name: sum(path.stat().st_size for path in table.rglob("*") if path.is_file())
        for table in sorted(lake.iterdir())
        if table.is_dir()
    }
    return [common.share_of(f"{FILES}{name}", 0.0) | {"peak_mb": size / 1e6} for name, size in sizes.items()]


def run_copy(source: Path, folder: Path) -> list[dict[str, Any]]:
    import polars as pl

    def copy() -> None:
        pl.scan_ndjson(source).sink_parquet(folder / "copy.parquet", compression="zstd", compression_level=1)

    return [measured("bare copy", copy)]


def run_aggregate(source: Path, folder: Path) -> list[dict[str, Any]]:  # noqa: ARG001 - same signature as the others
    queries = {"bare aggregate": bare.scores, "bare tables": bare.tables}
    return [measured(name, lambda run=run: run(folder / "lake")) for name, run in queries.items()]


RUNS = {"copy": run_copy, "pipeline": run_pipeline, "aggregate": run_aggregate}


def one_round(source: Path) -> Stages:
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        return common.one_round("bench.speed.pipeline", *((what, source, folder) for what in RUNS))


def show(results: Mapping[int, Sequence[Stages]]) -> None:
    console = Console(width=110)
    for n, rounds in results.items():
        columns = ("stage", "seconds", "traces/s", "CPU ms/trace", "peak MB")
        table = common.table(f"{n:,} traces, median of {len(rounds)} rounds", columns)
        found = common.medians(rounds)
        sizes = {stage: found.pop(stage)["peak_mb"] for stage in list(found) if FILES in stage}
        for stage, m in found.items():
            rate = f"{n / m['wall']:,.0f}" if m["wall"] else ""
            table.add_row(stage, f"{m['wall']:.2f}", rate, f"{1000 * m['cpu'] / n:.3f}", f"{m['peak_mb']:,.0f}")
        console.print(table)
        own = [s for s in found if not s.startswith(("bare", "imports", "of it"))]
        total = median(sum(r[s]["cpu"] for s in own) - r["of it, the judge"]["cpu"] for r in rounds)
        for stage, below in (("ingest", "bare copy"), ("nightly", "bare aggregate"), ("nightly", "bare tables")):
            gate = f"of it, the gate of {stage}"
            seconds, cpu = (
                [median(ratios(rounds, key, stage, below, without=without)) for without in (None, gate)]
                for key in ("wall", "cpu")
            )
            console.print(
                f"{stage} / {below}: {seconds[0]:.2f}× ({seconds[1]:.2f}× without the gate), "
                f"CPU {cpu[0]:.2f}× ({cpu[1]:.2f}×)"
            )
        console.print(
            f"CPU without the judge {1000 * total / n:.3f} ms per trace, "
            f"peak {max(found[s]['peak_mb'] for s in own):,.0f} MB"
        )
        shown = (f"{stage.rpartition(' ')[2]} {1e6 * mb / n:,.0f}" for stage, mb in sizes.items() if mb >= 0.01)
        console.print(f"bytes per trace: {', '.join(shown)}")


def main() -> None:
    parser = common.parser(__doc__, rounds=3)
    parser.add_argument("--traces", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--child", nargs=3, metavar=("WHAT", "SOURCE", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        what, source, folder = args.child
        print(json.dumps(RUNS[what](Path(source), Path(folder))))
        return
    results: dict[int, list[Stages]] = {}
    for n in args.traces:
        source = write(Path(tempfile.gettempdir()) / f"leadline-bench-{n}.jsonl", n)
        results[n] = [one_round(source) for _ in range(args.rounds)]
    common.save(args.json, results)
    show(results)


if __name__ == "__main__":
    main()
