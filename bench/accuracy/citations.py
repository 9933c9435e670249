"""Citation groundedness per generator on real traces: agreement with people's ranking, and spread.

    python -m bench.accuracy.citations [--judge YAML] [--data DIR] [--runs 5] [--scratch DIR] [--json FILE]

The stages of recipe `configs/recipes/citations.yaml` run over traces that people have labeled (`traces.jsonl` and
`labels.jsonl`). Each run has its own process and lake, so everything is judged again. The table compares each
generator's score with people's labels: the share of completely supported claims among the labeled claims that cite
chunks. There are three spreads: over the runs (the same questions judged again), over random fifths of the questions,
and over groups of five bootstrap draws of all questions. `--scratch` keeps the lakes, and a later run reuses their
verdicts.

Left out: relevance and the report, which the score does not need, and generators whose traces have no chunks.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml
from rich.console import Console
from scipy.stats import kendalltau, spearmanr

from bench import common
from bench.accuracy.labeled import Floats, default_data, load, traces_and_labels
from bench.common import ROOT
from bench.nights import STAGES, configure
from tasks.core import keys
from tasks.core.schemas import TRACE_SCORES, VERDICTS
from tasks.run.build import build_context
from tasks.scoring.nightly import aggregate_nights
from tasks.stats.intervals import interval, means
from tasks.store.lake import Lake

RECIPE = ROOT / "configs/recipes/citations.yaml"
DRAWS = 2_000
RUNS = 5  # the published spread is also over five runs (docs/methods.md#citation-groundedness-two-passes)
SCORE = "citation_groundedness"


@dataclass(frozen=True)
class Number:
    """One number of one generator, by question.

    Attributes:
        totals: (m,) sum of the observations of each question.
        counts: (m,) number of observations of each question, at least 1.
    """

    totals: Floats
    counts: Floats

    @property
    def mean(self) -> float:
        return float(self.totals.sum() / self.counts.sum())

    def of(self, questions: Any) -> Floats:
        """Means over selected questions; (draws, k) indices give (draws,) means."""
        means: Floats = self.totals[questions].sum(axis=-1) / self.counts[questions].sum(axis=-1)
        return means


def ranked(means: Mapping[str, float]) -> list[str]:
    """Names by descending mean, then by name."""
    return sorted(means, key=lambda name: (-means[name], name))


def fifths(number: Number, *seed: str, parts: int = RUNS) -> Floats:
    """(parts,) means over disjoint random parts of the questions of nearly equal size; (m,) if m < parts."""
    order = _rng(*seed).permutation(len(number.totals))
    return np.array([number.of(part) for part in np.array_split(order, min(parts, len(order)))])


def drawn(number: Number, *seed: str, draws: int = DRAWS) -> Floats:
    """(draws,) means over bootstrap draws of m questions."""
    m = len(number.totals)
    return number.of(_rng(*seed).integers(m, size=(draws, m)))


def reach_of(draws: Floats, runs: int = RUNS) -> float:
    """Mean range (highest − lowest) of groups of `runs` draws."""
    groups = draws[: len(draws) // runs * runs].reshape(-1, runs)
    return float(np.ptp(groups, axis=1).mean())


def order_kept(draws: Mapping[str, Floats], order: Sequence[str]) -> float:
    """Share of draws in which every name stays above the next one in `order`."""
    kept = [draws[above] > draws[below] for above, below in pairwise(order)]
    return float(np.all(kept, axis=0).mean())


def _rng(*seed: str) -> np.random.Generator:
    return np.random.default_rng(int(keys.key(*seed), 16))


# Reading --------------------------------------------------------------------------------------------------------------


def of_people(data: Path) -> pl.DataFrame:
    """By trace, `n` labeled claims that cite chunks, `complete` of which people call completely supported."""
    claims = load(data)
    found = pl.DataFrame({"trace_id": claims.clusters, "complete": claims.truth})
    return found.group_by("trace_id", maintain_order=True).agg(pl.sum("complete"), n=pl.len())


def run_stages(data: Path, judge: Path | None, folder: Path) -> dict[str, Any]:
    """Run the stages in this process; returns seconds and counts of verdicts. The lake is kept in `folder`."""
    recipe: Path | dict[str, Any] = RECIPE
    if judge is not None:
        recipe = {**yaml.safe_load(RECIPE.read_text(encoding="utf-8")), "judge": str(judge)}
    days = [date.fromisoformat(t["timestamp"][:10]) for t in traces_and_labels(data)[0]]
    ctx = build_context(configure(folder, data / "traces.jsonl", recipe), min(days), max(days))
    judge_pairs: Any = STAGES["verdicts"]
    begun = time.perf_counter()
    try:
        for name in ("ingest", "claims", "pairs"):
            STAGES[name](ctx)
        done = [judge_pairs(ctx, keep=True), judge_pairs(ctx, stage=2)]
        STAGES["scores"](ctx)
        aggregate_nights(ctx)
    finally:
        ctx.close()
    rounds = [{"computed": r.computed, "reused": r.reused} for r in done]
    return {"seconds": time.perf_counter() - begun, "rounds": rounds, "recipe": ctx.recipe}


def one_run(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run `run_stages` in a process of its own; adds the rows of trace scores and verdicts."""
    options = ["--child", folder, "--data", args.data, *(["--judge", args.judge] if args.judge else [])]
    found: dict[str, Any] = common.child("bench.accuracy.citations", *options)
    lake = Lake(folder / "lake")
    verdicts = lake.frame(VERDICTS, columns=["request_key", "label", "p_supported"])
    found["scores"] = lake.frame(TRACE_SCORES, found["recipe"]).sort("question_id", "trace_id")
    found["verdicts"] = verdicts.unique("request_key", keep="last", maintain_order=True).sort("request_key")
    return found


# Measuring ------------------------------------------------------------------------------------------------------------


def measure(runs: Sequence[Mapping[str, Any]], people: pl.DataFrame) -> dict[str, Any]:
    """Compute the figures. Generators are ordered by descending score; those without a score come last."""
    scores = runs[0]["scores"].join(people, on="trace_id", how="left", maintain_order="left")
    traces = {str(name): rows for (name,), rows in scores.group_by("generator", maintain_order=True)}
    judged = {name: _scored(rows) for name, rows in traces.items() if rows[SCORE].count()}
    labeled = {name: _number(traces[name].drop_nulls("n").select("complete", "n")) for name in judged}
    order, people_order = (ranked({name: n.mean for name, n in of.items()}) for of in (judged, labeled))
    draws = {name: drawn(judged[name], name) for name in order}
    rows = []
    for name in order:
        again = [_scored(r["scores"].filter(generator=name)).mean for r in runs]
        rank = people_order.index(name) + 1
        rows.append(_row(name, traces[name], judged[name], labeled[name], draws[name]))
        rows[-1] |= {"people_rank": rank, "range_of_runs": max(again) - min(again)}
    rows += [{"generator": g, "traces": len(traces[g]), "status": "na"} for g in sorted(set(traces) - set(order))]
    both = scores.drop_nulls([SCORE, "n"])
    values = [r["scores"].sort("trace_id").select("trace_id", SCORE) for r in runs]
    return {
        "generators": rows,
        "of_generators": correlation(*([of[name].mean for name in order] for of in (judged, labeled))),
        "of_traces": correlation(both[SCORE], both["complete"] / both["n"]),
        "order_kept": order_kept(draws, order),
        "runs": [{k: r[k] for k in ("seconds", "rounds")} for r in runs],
        "same_verdicts": all(r["verdicts"].equals(runs[0]["verdicts"]) for r in runs),
        "same_scores": all(v.equals(values[0]) for v in values),
    }


def correlation(a: Sequence[float] | pl.Series, b: Sequence[float] | pl.Series) -> dict[str, float]:
    """Kendall's tau-b with its p-value, Spearman's rho, and the number of pairs of values."""
    tau = kendalltau(a, b)
    return {"n": len(a), "tau": float(tau.statistic), "p": float(tau.pvalue), "rho": float(spearmanr(a, b).statistic)}


def _scored(traces: pl.DataFrame) -> Number:
    """Citation groundedness by question."""
    scored = traces.drop_nulls(SCORE).group_by("question_id", maintain_order=True)
    return _number(scored.agg(pl.sum(SCORE), n=pl.len()).select(SCORE, "n"))


def _number(totals_and_counts: pl.DataFrame) -> Number:
    totals, counts = totals_and_counts.to_numpy().astype(float).T
    return Number(totals, counts)


def _row(generator: str, traces: pl.DataFrame, judged: Number, labeled: Number, draws: Floats) -> dict[str, Any]:
    cited, true = traces["segments_cited_judged"].sum(), traces["segments_cited_true"].sum()  # null if N/A
    parts = fifths(judged, generator)
    return {
        "generator": generator,
        "status": "scored",
        "traces": len(traces),
        "na": traces.filter(citation_status="na").height,
        "questions": len(judged.totals),
        SCORE: judged.mean,
        "interval": interval(means(judged.totals, judged.counts)),
        "segments_cited_true": true / cited if cited else None,
        "people": labeled.mean,
        "people_interval": interval(means(labeled.totals, labeled.counts)),
        "people_claims": int(labeled.counts.sum()),
        "fifths": parts.tolist(),
        "range_of_fifths": float(np.ptp(parts)),
        "range_of_draws": reach_of(draws),
    }


# Showing --------------------------------------------------------------------------------------------------------------


def show(found: Mapping[str, Any]) -> None:
    console = Console(width=150)
    columns = (
        *("rank", "generator", "traces (N/A)", "score", "cited segments true", "people", "claims", "their rank"),
        *("range of runs", "of fifths", "of draws"),
    )
    table = common.table(f"{SCORE}, {len(found['runs'])} runs", columns, left=(1,))
    for i, r in enumerate(found["generators"], 1):
        if r["status"] == "na":
            table.add_row("N/A", r["generator"], f"{r['traces']} ({r['traces']})")
            continue
        table.add_row(
            *(f"{i}", r["generator"], f"{r['traces']} ({r['na']})", _interval(r[SCORE], r["interval"])),
            *(f"{r['segments_cited_true']:.3f}", _interval(r["people"], r["people_interval"])),
            *(f"{r['people_claims']}", f"{r['people_rank']}"),
            *(f"{r[k]:.3f}" for k in ("range_of_runs", "range_of_fifths", "range_of_draws")),
        )
    console.print(table)
    for what in ("generators", "traces"):
        c = found[f"of_{what}"]
        console.print(f"{c['n']} {what}: Kendall {c['tau']:.2f} (p = {c['p']:.2g}), Spearman {c['rho']:.2f}")
    seconds = ", ".join(
        f"{r['seconds']:.0f}" + (" (verdicts reused)" if any(x["reused"] for x in r["rounds"]) else "")
        for r in found["runs"]
    )
    requests = " + ".join(str(sum(x.values())) for x in found["runs"][0]["rounds"])
    console.print(f"The order of all generators is kept in {found['order_kept']:.0%} of {DRAWS:,} bootstrap draws.")
    same = f"verdicts the same in all runs: {found['same_verdicts']}, scores: {found['same_scores']}"
    console.print(f"{requests} requests a run; {same}. Seconds: {seconds}.")


def _interval(mean: float, ends: tuple[float, float] | None) -> str:
    return f"{mean:.3f} [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else f"{mean:.3f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--judge", type=Path, help="a judge's file instead of the recipe's")
    parser.add_argument("--data", type=Path, default=default_data(), help="folder of traces.jsonl and labels.jsonl")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--scratch", type=Path, help="keep the lakes here")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    traces_and_labels(args.data)  # check that both files exist
    args.data, args.judge = args.data.resolve(), args.judge and args.judge.resolve()
    if args.child:
        print(json.dumps(run_stages(args.data, args.judge, args.child)))
        return
    people = of_people(args.data)
    with tempfile.TemporaryDirectory(prefix="leadline-citations-") as made:
        scratch = (args.scratch or Path(made)).resolve() / (args.judge.stem if args.judge else "recipe")
        found = measure([one_run(args, scratch / f"run-{i}") for i in range(1, args.runs + 1)], people)
    common.save(args.json, found)
    show(found)


if __name__ == "__main__":
    main()
