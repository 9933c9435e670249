"""Citation groundedness per generator on real traces: does it rank them as people do, and how far does it scatter?

    python -m bench.citations [--judge YAML] [--data DIR] [--runs 5] [--scratch DIR] [--json FILE]

The stages of recipe `configs/recipes/citations.yaml` run over traces that people have labeled (`traces.jsonl` and
`labels.jsonl`), each run in a process and a lake of its own, so that every verdict is made again. Beside the score of
each generator stands the share of its claims that people call completely supported, of those with such a label that
cite chunks. Three spreads: over the runs (the same questions judged again), over random fifths of the questions, and
over five bootstrap draws of as many questions. With `--scratch` the lakes are kept, and verdicts in them are not made
again.

Left out: relevance and the report, which the score doesn't need; generators whose traces have no chunks, to which it
doesn't apply.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rich.console import Console
from scipy.stats import kendalltau, spearmanr

from bench import common
from bench.common import ROOT
from bench.labeled import Floats, default_data, load, read_jsonl
from tasks.core import keys
from tasks.stats.intervals import interval, means

RECIPE = ROOT / "configs/recipes/citations.yaml"
DRAWS = 2_000
RUNS = 5  # as many as the published spread is over (docs/methods.md#citation-groundedness-two-passes)
SCORE = "citation_groundedness"


@dataclass(frozen=True)
class Number:
    """One number of one generator, question by question.

    Attributes:
        totals: (m,) sum of what was counted or measured in each question.
        counts: (m,) how many there were of it, at least 1.
    """

    totals: Floats
    counts: Floats

    @property
    def mean(self) -> float:
        return float(self.totals.sum() / self.counts.sum())

    def of(self, questions: Any) -> Floats:
        """Means over drawn questions; (draws, k) indices give (draws,) means."""
        means: Floats = self.totals[questions].sum(axis=-1) / self.counts[questions].sum(axis=-1)
        return means


def ranked(means: Mapping[str, float]) -> list[str]:
    """Names, the highest number first; of equal ones the first name."""
    return sorted(means, key=lambda name: (-means[name], name))


def fifths(number: Number, *seed: str, parts: int = RUNS) -> Floats:
    """Means over disjoint random parts of the questions, sizes differing by one at most; (parts,), or (m,) if fewer."""
    order = _rng(*seed).permutation(len(number.totals))
    return np.array([number.of(part) for part in np.array_split(order, min(parts, len(order)))])


def drawn(number: Number, *seed: str, draws: int = DRAWS) -> Floats:
    """Means over bootstrap draws of as many questions; (draws,)."""
    m = len(number.totals)
    return number.of(_rng(*seed).integers(m, size=(draws, m)))


def reach_of(draws: Floats, runs: int = RUNS) -> float:
    """Highest − lowest of so many draws, on average."""
    groups = draws[: len(draws) // runs * runs].reshape(-1, runs)
    return float(np.ptp(groups, axis=1).mean())


def order_kept(draws: Mapping[str, Floats], order: Sequence[str]) -> float:
    """Share of draws in which every name stays above the next one in `order`."""
    kept = [draws[above] > draws[below] for above, below in pairwise(order)]
    return float(np.all(kept, axis=0).mean())


def _rng(*seed: str) -> np.random.Generator:
    return np.random.default_rng(int(keys.key(*seed), 16))


# Reading --------------------------------------------------------------------------------------------------------------


def of_people(data: Path, generators: Mapping[str, str]) -> dict[str, dict[str, tuple[int, int]]]:
    """Per generator and trace: claims called completely supported, and labeled claims that cite chunks."""
    claims = load(data)
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for trace, complete in zip(claims.clusters, claims.truth.tolist(), strict=True):
        own = found.setdefault(generators[trace], {})
        yes, n = own.get(trace, (0, 0))
        own[trace] = yes + complete, n + 1
    return found


def number(rows: Sequence[tuple[float, int]]) -> Number:
    totals, counts = np.array(rows, dtype=float).T
    return Number(totals, counts)


def run_stages(data: Path, judge: Path | None, folder: Path) -> dict[str, Any]:
    """The stages, in this process; what they took. The lake stays in `folder`."""
    from tasks.claims import extract as claims
    from tasks.ingest import ingest
    from tasks.judging import pairs, verdicts
    from tasks.run.build import build_context
    from tasks.scoring import nightly, score

    recipe: Path | dict[str, Any] = RECIPE
    if judge is not None:
        recipe = {**yaml.safe_load(RECIPE.read_text(encoding="utf-8")), "judge": str(judge)}
    days = [date.fromisoformat(t["timestamp"][:10]) for t in read_jsonl(data / "traces.jsonl")]
    config = {
        "lake": str(folder / "lake"),
        "warehouse": str(folder / "leadline.duckdb"),
        "report": {"dir": str(folder / "report")},
        "sources": [{"kind": "jsonl", "paths": [str(data / "traces.jsonl")]}],
        "recipes": [str(recipe) if isinstance(recipe, Path) else recipe],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nightly.yaml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    ctx = build_context(folder / "nightly.yaml", min(days), max(days))
    stages: list[Callable[..., Any]] = [
        ingest.ingest,
        claims.extract_claims,
        pairs.plan_pairs,
        partial(verdicts.judge_pairs, keep=True),
        partial(verdicts.judge_pairs, stage=2),
        score.score_traces,
        nightly.aggregate_nights,
    ]
    begun = time.perf_counter()
    try:
        done = [stage(ctx) for stage in stages]
    finally:
        ctx.close()
    rounds = [{"computed": r.computed, "reused": r.reused} for r in done[3:5]]
    return {"seconds": time.perf_counter() - begun, "rounds": rounds, "recipe": ctx.recipe}


def one_run(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """`run_stages` in a process of its own, with the rows that it left: scores by trace, verdicts by request."""
    from tasks.core.schemas import TRACE_SCORES, VERDICTS
    from tasks.store.lake import Lake

    options = ["--child", folder, "--data", args.data, *(["--judge", args.judge] if args.judge else [])]
    found: dict[str, Any] = common.child("bench.citations", *options)
    lake = Lake(folder / "lake")
    scores = [r for p in lake.parts(TRACE_SCORES, found["recipe"]) for r in p.read().to_pylist()]
    verdicts = [r for p in lake.parts(VERDICTS) for r in p.read(["request_key", "label", "p_supported"]).to_pylist()]
    found["scores"] = {r["trace_id"]: r for r in scores}
    found["verdicts"] = {r["request_key"]: (r["label"], r["p_supported"]) for r in verdicts}
    return found


# Measuring ------------------------------------------------------------------------------------------------------------


def measure(runs: Sequence[Mapping[str, Any]], people: Mapping[str, Mapping[str, tuple[int, int]]]) -> dict[str, Any]:
    """Everything that is shown; generators with the highest score first, those without any last."""
    scores = runs[0]["scores"]
    traces: dict[str, list[dict[str, Any]]] = {}
    for row in scores.values():
        traces.setdefault(row["generator"], []).append(row)
    judged = {g: _scored(rows) for g, rows in traces.items() if any(r[SCORE] is not None for r in rows)}
    labeled = {g: number(list(people[g].values())) for g in judged}
    order = ranked({g: n.mean for g, n in judged.items()})
    of_people_ = ranked({g: n.mean for g, n in labeled.items()})
    draws = {g: drawn(judged[g], g) for g in order}
    rows = [_row(g, traces[g], judged[g], labeled[g], draws[g], of_people_, runs) for g in order]
    rows += [{"generator": g, "traces": len(traces[g]), "status": "na"} for g in sorted(set(traces) - set(order))]
    means = [[n[g].mean for g in order] for n in (judged, labeled)]
    both = [
        (scores[t][SCORE], yes / n)
        for own in people.values()
        for t, (yes, n) in own.items()
        if scores[t][SCORE] is not None
    ]
    return {
        "generators": rows,
        "of_generators": correlation(*means),
        "of_traces": correlation(*zip(*both, strict=True)),
        "order_kept": order_kept(draws, order),
        "runs": [{k: r[k] for k in ("seconds", "rounds")} for r in runs],
        "same_verdicts": all(r["verdicts"] == runs[0]["verdicts"] for r in runs),
        "same_scores": all(
            {t: s[SCORE] for t, s in r["scores"].items()} == {t: s[SCORE] for t, s in scores.items()} for r in runs
        ),
    }


def correlation(a: Sequence[float], b: Sequence[float]) -> dict[str, float]:
    """Kendall's tau-b with its p-value, Spearman's rho, and how many are compared."""
    tau = kendalltau(a, b)
    return {"n": len(a), "tau": float(tau.statistic), "p": float(tau.pvalue), "rho": float(spearmanr(a, b).statistic)}


def _scored(rows: Sequence[Mapping[str, Any]]) -> Number:
    """Citation groundedness by question, in an order that does not change."""
    found: dict[str, tuple[float, int]] = {}
    for r in sorted(rows, key=lambda r: (r["question_id"], r["trace_id"])):
        if r[SCORE] is not None:
            total, n = found.get(r["question_id"], (0.0, 0))
            found[r["question_id"]] = total + r[SCORE], n + 1
    return number(list(found.values()))


def _row(
    generator: str,
    traces: Sequence[Mapping[str, Any]],
    judged: Number,
    labeled: Number,
    draws: Floats,
    order_of_people: Sequence[str],
    runs: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    cited, true = (
        sum(r[c] or 0 for r in traces) for c in ("segments_cited_judged", "segments_cited_true")
    )  # null where N/A
    again = [_scored([s for s in r["scores"].values() if s["generator"] == generator]).mean for r in runs]
    parts = fifths(judged, generator)
    return {
        "generator": generator,
        "status": "scored",
        "traces": len(traces),
        "na": sum(r["citation_status"] == "na" for r in traces),
        "questions": len(judged.totals),
        SCORE: judged.mean,
        "interval": interval(means(judged.totals, judged.counts)),
        "segments_cited_true": true / cited if cited else None,
        "people": labeled.mean,
        "people_interval": interval(means(labeled.totals, labeled.counts)),
        "people_claims": int(labeled.counts.sum()),
        "people_rank": order_of_people.index(generator) + 1,
        "range_of_runs": max(again) - min(again),
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
    asked = " + ".join(str(sum(x.values())) for x in found["runs"][0]["rounds"])
    console.print(f"The order of all generators is kept in {found['order_kept']:.0%} of {DRAWS:,} bootstrap draws.")
    console.print(f"{asked} requests a run; verdicts the same in all runs: {found['same_verdicts']}, scores: ", end="")
    console.print(f"{found['same_scores']}. Seconds: {seconds}.")


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
    for name in ("traces.jsonl", "labels.jsonl"):
        if not (args.data / name).exists():
            raise SystemExit(
                f"{args.data / name} does not exist. Name labeled traces with --data, or set LEADLINE_SHARED."
            )
    args.data, args.judge = args.data.resolve(), args.judge and args.judge.resolve()
    if args.child:
        print(json.dumps(run_stages(args.data, args.judge, args.child)))
        return
    generators = {t["trace_id"]: t["generator"] for t in read_jsonl(args.data / "traces.jsonl")}
    people = of_people(args.data, generators)
    with tempfile.TemporaryDirectory(prefix="leadline-citations-") as made:
        scratch = (args.scratch or Path(made)).resolve() / (args.judge.stem if args.judge else "recipe")
        found = measure([one_run(args, scratch / f"run-{i}") for i in range(1, args.runs + 1)], people)
    common.save(args.json, found)
    show(found)


if __name__ == "__main__":
    main()
