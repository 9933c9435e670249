"""Time the nightly tables of a million traces and eight million claims, and bare DuckDB GROUP BYs over the same rows.

    python -m bench.speed.aggregate [--traces 1000000] [--claims 8] [--nights 1 10] [--rounds 3] [--memory 2GB]
                                    [--json FILE]

Scores and claim results are drawn at random and written to Parquet parts of a lake, as by `score_traces`. Every round
runs two kinds of work, each in its own process: `aggregate_nights` with its intervals, and hand-written queries (means
and percentiles of five scores by app and generator; labels of claims, joined to their traces, by app and generator; the
numbers of all nightly tables, one query each, with standard errors over questions). Ratios are computed within a round;
medians over the rounds are printed.

Left out: the tables of method `citations`, which have the same shape with fewer columns, and those of annotations.
"""

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from bench import common
from bench.common import ROOT, Meter, Stages, measured, ratios
from bench.nights import configure
from bench.speed import bare
from tasks.core import schemas
from tasks.patterns import DETECTORS
from tasks.run.build import build_context
from tasks.run.context import Context
from tasks.store.lake import empty

FIRST = date(2026, 11, 1)
PART = 4_000  # traces per part, the default of limits.part_traces
HOT, REPEATED = 2_000, 0.2  # number of frequent questions, and the share of traces that ask one of them
WORDS: Mapping[str, tuple[str | None, ...]] = {
    "app": ("docs", "help", "shop"),
    "generator": ("large", "small"),
    "status": ("judged",) * 17 + ("unjudged", "abstained", "na"),
    "abstained_for": ("judge", "language"),
    "language": ("en",) * 7 + ("de", "ja", None),
    "label": ("supported",) * 7 + ("partially_supported", "unsupported", "contradicted"),
    "pattern": tuple(DETECTORS),
    "diagnosis": ("retrieval", "generator", "prompt", "healthy", "healthy", None),
    "citation_status": (None,),  # for the other method
}
STATUS = ("scored",) * 8 + ("na", "unjudged")
ANY = ("a", "b", "c", "d")
# Columns that are null unless another column has this value.
ONLY = {
    "groundedness_score": ("groundedness_status", "scored"),
    "faithfulness": ("groundedness_status", "scored"),
    "utilization": ("groundedness_status", "scored"),
    "context_relevance": ("context_relevance_status", "scored"),
    "answer_relevance": ("answer_relevance_status", "scored"),
    "answerability": ("answerability_status", "scored"),
    "citation_groundedness": ("citation_status", "scored"),
    "label": ("status", "judged"),
    "abstained_for": ("status", "abstained"),
}


# Drawing --------------------------------------------------------------------------------------------------------------


def drawn(table: schemas.Table, n: int, rng: np.random.Generator, known: Mapping[str, Any]) -> pa.Table:
    """Random rows of a table with all columns of its schema, except partition columns.

    Args:
        known: Given columns, which are not drawn.
    """
    columns = {f.name: known[f.name] if f.name in known else column(f, n, rng) for f in table.stored}
    for name, (status, value) in ONLY.items():
        if name in columns and status in columns:
            columns[name] = pc.if_else(pc.fill_null(pc.equal(columns[status], value), False), columns[name], None)
    if "claims_misused" in columns:
        columns["claims_misused"] = pc.min_element_wise(columns["claims_misused"], columns["claims_judged"])
    return pa.table(columns)


def column(field: "pa.Field[Any]", n: int, rng: np.random.Generator) -> pa.Array:
    """Random values: from `WORDS` for the columns listed there, otherwise by type. Only the former may be null."""
    kind = field.type
    if pa.types.is_string(kind):
        words = WORDS.get(field.name, STATUS if field.name.endswith("_status") else ANY)
        return pa.array(words, kind).take(pa.array(rng.integers(0, len(words), n)))
    if pa.types.is_floating(kind):
        return pa.array((rng.random(n) * (100 if field.name == "groundedness_score" else 1)).round(4))
    if pa.types.is_boolean(kind):
        return pa.array(rng.random(n) < 0.1)
    if pa.types.is_list(kind):
        ends = rng.integers(0, 3, n).cumsum()
        values = column(kind.value_field, int(ends[-1]), rng)
        return pa.ListArray.from_arrays(pa.array([0, *ends], pa.int32()), values).cast(kind)
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([column(f, n, rng) for f in kind], fields=list(kind))
    return pa.array(rng.integers(0, 10, n)).cast(kind)  # times are microseconds after the epoch


def ids(n: int, rng: np.random.Generator) -> pa.Array:
    """Random keys of 32 characters."""
    text = pa.py_buffer(rng.bytes(16 * n).hex().encode())
    return pa.StringArray.from_buffers(n, pa.py_buffer(np.arange(0, 32 * n + 1, 32, dtype=np.int32)), text)


def write(ctx: Context, traces: int, claims: int) -> None:
    """Write parts of random traces and claims, spread over the context's days."""
    rng = np.random.default_rng(0)
    hot, days = ids(HOT, rng), ctx.requested_days()
    for day in days:
        ctx.lake.write(schemas.TRACES, "drawn", empty(schemas.TRACES), str(day))  # a night needs a part of traces
        left = traces // len(days)
        for i, begin in enumerate(range(0, left, PART)):
            n = min(PART, left - begin)
            trace_ids, own = ids(n, rng), ids(n, rng)
            questions = pc.if_else(pa.array(rng.random(n) < REPEATED), hot.take(pa.array(rng.integers(0, HOT, n))), own)
            owner = trace_ids.take(pa.array(np.sort(rng.integers(0, n, n * claims))))
            known = {"trace_id": trace_ids, "question_id": questions, "judge_version": pa.repeat(ctx.judge_version, n)}
            whole = {"trace_id": owner, "claim_id": ids(len(owner), rng)}
            shows = rng.random(len(owner)) < 0.05  # 5% of claims show a pattern
            some = {name: values.filter(pa.array(shows)) for name, values in whole.items()}
            shown = drawn(schemas.CLAIM_PATTERNS, int(shows.sum()), rng, some)
            whole["judge_version"] = pa.repeat(ctx.judge_version, len(owner))
            whole["patterns"] = pa.ListArray.from_arrays(
                pa.array(np.append(0, shows.cumsum()), pa.int32()), shown["pattern"].combine_chunks()
            )
            for table, rows in (
                (schemas.TRACE_SCORES, drawn(schemas.TRACE_SCORES, n, rng, known)),
                (schemas.CLAIM_RESULTS, drawn(schemas.CLAIM_RESULTS, len(owner), rng, whole)),
                (schemas.CLAIM_PATTERNS, shown),
            ):
                ctx.lake.write(table, f"drawn-{i:05d}", rows, ctx.recipe, str(day))


# Measuring ------------------------------------------------------------------------------------------------------------


def context(folder: Path, nights: int, memory: str = "2GB", overlay: Path | None = None) -> Context:
    recipe = {"judge": str(ROOT / "configs/judges/replay.yaml")}
    config = configure(folder, "none/*.jsonl", recipe, limits={"memory_limit": memory})
    return build_context(config, FIRST, FIRST + timedelta(days=nights - 1), overlay=overlay)


def run_nightly(folder: Path, nights: int, memory: str) -> list[dict[str, Any]]:
    from tasks.scoring import intervals, nightly
    from tasks.store.query import Queries

    meters: defaultdict[str, Meter] = defaultdict(Meter)
    run, of_means, of_repeats = Queries.run, intervals.of_means, intervals.of_repeats
    inside = meters["the intervals themselves"]
    Queries.run = lambda self, name, *a: meters[name].run(run, self, name, *a)  # type: ignore[method-assign]
    intervals.of_means = lambda *a: inside.run(of_means, *a)
    nightly.of_repeats = lambda *a: inside.run(of_repeats, *a)  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory(prefix="leadline-nights-") as overlay:
        ctx = context(folder, nights, memory, Path(overlay))
        found = [measured("nightly tables", lambda: nightly.aggregate_nights(ctx))]
    return found + [common.share_of(name, meter.wall) for name, meter in meters.items()]


BARE: dict[str, Callable[..., None]] = {
    "bare scores": bare.scores,
    "bare claims": bare.claims,
    "bare tables": bare.tables,
}


def rounds_of(args: argparse.Namespace, nights: int) -> list[Stages]:
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        write(context(Path(folder), nights), args.traces, args.claims)
        options = (folder, "--nights", nights, "--memory", args.memory)
        children = [(what, *options) for what in ("nightly tables", *BARE)]
        return [common.one_round("bench.speed.aggregate", *children) for _ in range(args.rounds)]


def medians_of_ratios(rounds: Sequence[Stages], key: str) -> dict[str, float]:
    """Median ratios of the nightly tables to both bare queries together, and to the bare tables."""
    compared = {"bare scores and claims": ("bare scores", "bare claims"), "bare tables": ("bare tables",)}
    return {name: median(ratios(rounds, key, "nightly tables", *below)) for name, below in compared.items()}


def show(args: argparse.Namespace, results: Mapping[int, Sequence[Stages]]) -> None:
    console = Console(width=110)
    for nights, rounds in results.items():
        size = f"{args.traces:,} traces and {args.traces * args.claims:,} claims"
        title = f"{size} in {nights} nights, memory_limit {args.memory}, median of {len(rounds)} rounds"
        table = common.table(title, ("what", "seconds", "CPU seconds", "peak MB"))
        for stage, m in common.medians(rounds).items():
            wall, cpu, peak = m.values()
            table.add_row(stage, f"{wall:.2f}", f"{cpu:.2f}" if cpu else "", f"{peak:,.0f}" if peak else "")
        console.print(table)
        for key, name in (("wall", "seconds"), ("cpu", "CPU")):
            shown = ", ".join(f"{what} {value:.1f}×" for what, value in medians_of_ratios(rounds, key).items())
            console.print(f"nightly tables to, in {name}: {shown}")


def main() -> None:
    parser = common.parser(__doc__, rounds=3)
    parser.add_argument("--traces", type=int, default=1_000_000)
    parser.add_argument("--claims", type=int, default=8, help="of a trace, on average")
    parser.add_argument("--nights", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--memory", default="2GB", help="limits.memory_limit")
    parser.add_argument("--child", nargs=2, metavar=("WHAT", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        what, folder = args.child[0], Path(args.child[1])
        query = BARE.get(what)
        if query:
            rows = [measured(what, lambda: query(folder / "lake", "date, app, generator"))]
        else:
            rows = run_nightly(folder, args.nights[0], args.memory)
        print(json.dumps(rows))
        return
    results = {nights: rounds_of(args, nights) for nights in args.nights}
    common.save(args.json, results)
    show(args, results)


if __name__ == "__main__":
    main()
