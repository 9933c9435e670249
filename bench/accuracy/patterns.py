"""Measure the detection of failure patterns: precision and recall on written cases, and hits in logs.

    python -m bench.accuracy.patterns [--misses] [--night CONFIG [--hits N]]

`bench/accuracy/patterns.jsonl` contains, for each pattern, claims that show it and near misses. The detectors were
developed on one half of the cases. `--night` applies the detectors to the last results in a config's lake, and prints
the number of claims per pattern, claims per second, and hits to read. Left out: citation drift and dangling citations,
which by definition follow from verdicts and references.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from bench import common
from bench.accuracy.labeled import read_jsonl
from bench.common import ROOT, Meter
from tasks.core.schemas import CLAIM_RESULTS, RUNS
from tasks.judging.claims import cut_claims
from tasks.judging.stored_verdicts import all_verdicts
from tasks.patterns import DETECTORS, Chunk, Claim
from tasks.run.build import build_context
from tasks.run.plan import trace_parts
from tasks.scoring.patterns import find_patterns
from tasks.store.lake import empty

CASES = ROOT / "bench/accuracy/patterns.jsonl"


def cases(half: str | None = None) -> list[dict[str, Any]]:
    """Read the cases, or one half of them."""
    return [row for row in read_jsonl(CASES) if half is None or row["half"] == half]


def detected(case: dict[str, Any]) -> bool:
    """Whether the detector finds the case's pattern in its claim."""
    text = case["claim"]
    claim = Claim(text, text, 0, len(text), label=case["label"], in_part=tuple(case.get("in_part", ())))
    chunks = [Chunk(str(i), chunk) for i, chunk in enumerate(case["chunks"], start=1)]
    return DETECTORS[case["pattern"]](claim, chunks) is not None


def table(rows: Iterable[dict[str, Any]]) -> str:
    """Precision and recall per pattern and half, as Markdown."""
    cases = pl.DataFrame([{k: row[k] for k in ("pattern", "half", "shows")} | {"hit": detected(row)} for row in rows])
    found = cases.group_by("pattern", "half", maintain_order=True).agg(
        pl.len(),
        precision=pl.col("shows").filter("hit").mean(),
        recall=pl.col("hit").filter("shows").mean(),
    )
    lines = ["| pattern | half | cases | precision | recall |", "|---|---|---|---|---|"]
    for *first, precision, recall in found.iter_rows():
        shares = ("n/a" if share is None else f"{share:.2f}" for share in (precision, recall))
        lines.append(f"| {' | '.join(map(str, [*first, *shares]))} |")
    return "\n".join(lines)


def night(config: Path, hits: int) -> None:
    """Counts, speed and hits of the results of the last completed run."""
    ctx = build_context(config, date.min, date.max)
    runs = ctx.lake.frame(RUNS, columns=["status", "started_at", "recipe"]).filter(status="completed")
    if runs.is_empty():
        print(f"{config}: no results yet. Run `leadline nightly` with it first.")
        return
    ctx = replace(ctx, recipe=runs.sort("started_at")["recipe"][-1])
    results = {p.name: p for p in ctx.lake.parts(CLAIM_RESULTS, ctx.recipe)}
    found: defaultdict[str, list[tuple[Mapping[str, Any], Mapping[str, Any], str]]] = defaultdict(list)
    claims, meter = 0, Meter()
    with ctx.queries() as queries:
        for part in trace_parts(ctx):
            if part.name not in results:
                continue
            verdicts, _ = all_verdicts(ctx, queries, part, ctx.judges)
            judged = pa.concat_tables([empty(CLAIM_RESULTS), results[part.name].read()], promote_options="default")
            _, rows = meter.run(find_patterns, ctx, queries, part, cut_claims(ctx, part), judged, verdicts)
            claims += judged.num_rows
            traces = {t["trace_id"]: t for t in part.read().to_pylist()}
            labels = dict(zip(judged["claim_id"].to_pylist(), judged["label"].to_pylist(), strict=True))
            for row in rows.to_pylist():
                found[row["pattern"]].append((row, traces[row["trace_id"]], str(labels[row["claim_id"]])))
    ctx.close()
    print(f"{claims} claims, {claims / meter.wall:,.0f} a second")
    for name in DETECTORS:
        print(f"\n{name}: {len(found[name])}")
        for row, trace, label in random.Random(0).sample(found[name], min(hits, len(found[name]))):
            _show(row, trace, label)


def _show(row: Mapping[str, Any], trace: Mapping[str, Any], label: str) -> None:
    answer = trace["answer"]
    first = min((s["start"] for s in row["answer_spans"]), default=0)
    last = max((s["end"] for s in row["answer_spans"]), default=0)
    spans = " | ".join(answer[s["start"] : s["end"]] for s in row["answer_spans"])
    around = " ".join(answer[max(0, first - 120) : last + 80].split()) if row["answer_spans"] else "the whole claim"
    print(f"- {row['trace_id']} ({label}) «{spans}» in: {around}")
    texts = {c["chunk_id"]: c["text"] for c in trace["chunks"]}
    for place in row["chunk_spans"]:
        passage = " ".join(texts[place["chunk_id"]][place["start"] : place["end"]].split())
        print(f"    [{place['chunk_id']}] {passage[:300]}")


def main() -> None:
    """Print the table, or the hits of a night."""
    parser = common.parser(__doc__)
    parser.add_argument("--misses", action="store_true", help="list the cases of the development half that are wrong")
    parser.add_argument("--night", type=Path, help="a nightly config with results")
    parser.add_argument("--hits", type=int, default=20, help="hits to print of each pattern")
    chosen = parser.parse_args()
    if chosen.night:
        night(chosen.night, chosen.hits)
        return
    print(table(cases()))
    if chosen.misses:
        for case in cases("development"):
            if detected(case) != case["shows"]:
                print(f"- {case['pattern']}, should {'' if case['shows'] else 'not '}be found: {case['claim']}")


if __name__ == "__main__":
    main()
