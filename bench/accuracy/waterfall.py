"""Measure how many real traces the waterfall would send and how many of those are wrong, with cross-fitted thresholds.

    python -m bench.accuracy.waterfall [--judge configs/judges/X.yaml] [--data DIR] [--keep DIR] [--splits 20]
        [--json FILE]

The stages of a night judge the traces. People's labels are read as by `leadline calibrate --labels`, for traces that
have chunks. An answer is wrong if one of its labeled claims is unsupported. The questions are split into halves by a
hash: thresholds are calibrated on one half and measured on the other, in both directions and for several splits.
`--keep` keeps the lake, so the next run reuses its verdicts.
"""

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bench import common
from bench.accuracy.labeled import SUPPORT, default_data, traces_and_labels
from bench.common import ROOT, spread
from bench.nights import STAGES as NIGHT
from bench.nights import configure
from tasks.analysis.calibrate import Traces, labeled
from tasks.core import keys
from tasks.review.load import read
from tasks.run.build import build_context
from tasks.stats.calibration import STAGES, best_stages, calibrate, places
from tasks.stats.risk import area, auc, latest_cut, printed

JUDGE = ROOT / "configs/judges/nli.yaml"
TARGETS = (0.1, 0.2, 0.3, 0.4)
CONFIDENCES = (0.5, 0.9)
Halves = Iterator[tuple[Traces, Traces]]


def night(data: Path, judge: Path, folder: Path) -> Traces:
    """Score the traces with this judge and return the labeled ones. Stored verdicts are reused."""
    rows, labels = traces_and_labels(data)
    days = sorted(row["timestamp"][:10] for row in rows)
    shown = {row["trace_id"] for row in rows if row["chunks"]}
    recipe = {"extractor": {"kind": "sentences", "citation_style": "numeric"}, "judge": str(judge.resolve())}
    path = configure(folder, data.resolve() / "traces.jsonl", recipe)
    reviews = folder / "reviews.jsonl"
    given = (review(row) for row in labels if row["trace_id"] in shown)
    reviews.write_text("".join(json.dumps(row) + "\n" for row in given if row), encoding="utf-8")
    first, last = date.fromisoformat(days[0]), date.fromisoformat(days[-1])
    ctx = build_context(path, first, last, today=last)
    with ctx.lake.lock("bench.accuracy.waterfall"):
        for stage in NIGHT.values():
            stage(ctx)
    ctx.close()
    with ctx.queries() as queries:
        found = read(ctx, queries, reviews)
        reasons = dict(Counter(found.refused["reason"].to_pylist()))
        print(f"{found.reviews.num_rows} labels of claims; left out: {reasons or 'none'}", file=sys.stderr)
        traces, _ = labeled(ctx, queries, first, last, found.reviews)
    return traces


def review(row: dict[str, Any]) -> dict[str, Any] | None:
    """Convert a label to a line of `leadline review import`; None for an unusable label."""
    label = SUPPORT.get(row["support"])
    return None if label is None else {"trace_id": row["trace_id"], "claim": row["claim"].strip(), "label": label}


def pick(traces: Traces, which: Sequence[int]) -> Traces:
    """Select traces by index."""
    return Traces(
        ids=tuple(traces.ids[i] for i in which),
        questions=tuple(traces.questions[i] for i in which),
        signals=traces.signals[list(which)],
        wrong=traces.wrong[list(which)],
        picked=0,
        undecided=0,
    )


def halves(traces: Traces, splits: int) -> Halves:
    """Yield calibration and measurement halves by question, in both directions."""
    for split in range(splits):
        order = sorted(set(traces.questions), key=lambda q: keys.key("waterfall", str(split), q))
        first = set(order[: len(order) // 2])
        a = [i for i, q in enumerate(traces.questions) if q in first]
        b = [i for i, q in enumerate(traces.questions) if q not in first]
        yield pick(traces, a), pick(traces, b)
        yield pick(traces, b), pick(traces, a)


def areas(traces: Traces, splits: int) -> list[dict[str, float]]:
    """AURC on the measurement half: of the waterfall, of retrieval alone, and at random."""
    rows = []
    for known, new in halves(traces, splits):
        (seen, seen_wrong), (values, wrong) = whole(known), whole(new)
        placed = places(values, seen, best_stages(seen, seen_wrong))
        one = {"waterfall": area(placed, wrong), "retrieval": area(-values[:, 0], wrong), "random": wrong.mean()}
        rows.append({name: float(value) for name, value in one.items()})
    return rows


def whole(traces: Traces) -> tuple[Any, Any]:
    """Signals and labels of traces without missing signals."""
    there = ~np.isnan(traces.signals).any(axis=1)
    return printed(traces.signals[there]), traces.wrong[there]


def measured(traces: Traces, splits: int, target: float, confidence: float) -> dict[str, list[tuple[float, float]]]:
    """(coverage, share wrong) on the measurement half, by procedure; the share is NaN if nothing is sent."""
    found: dict[str, list[tuple[float, float]]] = {"waterfall": [], "retrieval": [], "unguarded": []}
    for known, new in halves(traces, splits):
        rule = calibrate(known.signals, known.wrong, known.questions, target, confidence).rule
        passes = np.zeros(len(new.ids), bool)
        found["waterfall"].append(_sent(new, passes if rule is None else (new.signals >= rule.thresholds).all(axis=1)))
        values, wrong = whole(known)
        cut = latest_cut(-values[:, 0], wrong, target, confidence)
        found["retrieval"].append(_sent(new, passes if cut is None else new.signals[:, 0] >= -cut))
        found["unguarded"].append(_unguarded(known, new, target))
    return found


def _unguarded(known: Traces, new: Traces, target: float) -> tuple[float, float]:
    """The most permissive cut that meets the target on the same labels that chose the order, without a margin."""
    (seen, seen_wrong), (values, wrong) = whole(known), whole(new)
    stages = best_stages(seen, seen_wrong)
    own = places(seen, seen, stages)
    met = [c for c in np.unique(own) if seen_wrong[own <= c].mean() <= target]
    passes = places(values, seen, stages) <= (max(met) if met else -1)
    return float(passes.sum() / len(new.ids)), float(wrong[passes].mean()) if passes.any() else float("nan")


def _sent(new: Traces, passes: Any) -> tuple[float, float]:
    return float(passes.mean()), float(new.wrong[passes].mean()) if passes.any() else float("nan")


def show(traces: Traces, splits: int) -> dict[str, Any]:
    """Print the tables; returns the numbers."""
    console, n = Console(width=130), len(traces.ids)
    values, wrong = whole(traces)
    console.print(f"{n} labeled traces, {traces.wrong.sum()} wrong ({traces.wrong.mean():.1%}); {len(wrong)} have all")
    console.print(f"signals; {len(set(traces.questions))} questions; {splits} splits, both ways round")
    signals = {s: auc(-values[:, i], wrong) for i, s in enumerate(STAGES)}
    missing = {s: int(np.isnan(traces.signals[:, i]).sum()) for i, s in enumerate(STAGES)}
    table = common.table("signals", ("signal", "area under ROC for wrong", "missing"))
    for stage in STAGES:
        table.add_row(stage, f"{signals[stage]:.3f}", str(missing[stage]))
    console.print(table)
    by_area = areas(traces, splits)
    curves = {name: spread([row[name] for row in by_area], 3) for name in ("waterfall", "retrieval", "random")}
    better = sum(row["waterfall"] < row["retrieval"] for row in by_area) / len(by_area)
    console.print("AURC: " + "; ".join(f"{name} {text}" for name, text in curves.items()) + f"; better {better:.0%}")
    columns = ("target", "confidence", "by", "sends", "coverage", "wrong among those sent", "above the target")
    table = common.table("measured on the other half", columns, left=(2,))
    rows = []
    for target in TARGETS:
        for confidence in CONFIDENCES:
            for name, runs in measured(traces, splits, target, confidence).items():
                risks = [risk for coverage, risk in runs if coverage]
                row: dict[str, Any] = {
                    "target": target,
                    "confidence": confidence,
                    "by": name,
                    "sends": len(risks) / len(runs),
                    "coverage": spread([coverage for coverage, _ in runs], 3),
                    "wrong": spread(risks, 3),
                    "above": sum(risk > target for risk in risks) / len(runs),
                }
                rows.append(row)
                share = [f"{target:.0%}", f"{confidence:g}", name, f"{row['sends']:.0%}"]
                table.add_row(*share, row["coverage"], row["wrong"], f"{row['above']:.0%}")
    console.print(table)
    return {"signals": signals, "missing": missing, "aurc": curves, "better": better, "measured": rows}


def main() -> None:
    """Judge, calibrate, measure, print."""
    parser = common.parser(__doc__)
    parser.add_argument("--judge", type=Path, default=JUDGE, help="the judge's config")
    parser.add_argument("--data", type=Path, default=default_data(), help="a folder with traces.jsonl and labels.jsonl")
    parser.add_argument("--keep", type=Path, help="keep the lake here, or use the one that is there")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--json", type=Path, help="write the numbers too")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        traces = night(args.data, args.judge, args.keep or Path(scratch))
    common.save(args.json, show(traces, args.splits))


if __name__ == "__main__":
    main()
