"""How well does a judge agree with people, claim by claim?

    python -m bench.agreement [--judge configs/judges/X.yaml] [--data DIR_OR_FILE] [--json]

A claim counts as supported if the judge says so of any of its chunks; people's partially supported counts as not
supported. Intervals are 95% bootstrap intervals over traces (over equal sets of chunks in files of claims). The
similarity judge was fitted to the ExpertQA development traces: there, its `cross-fitted` row is the honest one (fitted
anew five times, each claim judged by the fit that never saw its trace; threshold included), and the shipped row is in
sample. Plain cosine and plain word overlap, with thresholds chosen the same way, stand beside as what a judge has to
beat.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score

from bench.fit_similarity import best_threshold, cross_fit, folds, unfitted
from bench.labelled import Claims, Floats, Ints, default_data, load
from tasks import judges
from tasks.core.types import Judge
from tasks.judges.similarity import FEATURES, Similarity

JUDGE = Path(__file__).resolve().parents[1] / "configs/judges/similarity.yaml"
DRAWS = 1000
Interval = tuple[float, float, float]  # estimate, low, high


def agreement(truth: Ints, predicted: Ints, scores: Floats, clusters: list[str]) -> dict[str, Interval]:
    """Balanced accuracy, Cohen's kappa and AUC, each with its interval."""
    _, cluster = np.unique(clusters, return_inverse=True)
    rng = np.random.default_rng(0)
    size = int(cluster.max()) + 1
    draws = [np.ones(len(truth))]
    draws += [np.bincount(rng.integers(size, size=size), minlength=size)[cluster].astype(float) for _ in range(DRAWS)]
    rows = np.array([_measures(truth, predicted, scores, weight) for weight in draws])
    low, high = np.nanquantile(rows[1:], [0.025, 0.975], axis=0)
    names = ("balanced_accuracy", "kappa", "auc")
    return {n: (float(rows[0, i]), float(low[i]), float(high[i])) for i, n in enumerate(names)}


def _measures(truth: Ints, predicted: Ints, scores: Floats, weight: Floats) -> tuple[float, float, float]:
    """The three measures of weighted claims; NaN where a sample lacks one of the two classes."""
    total = weight.sum()
    both = weight[(truth == 1) & (predicted == 1)].sum()
    neither = weight[(truth == 0) & (predicted == 0)].sum()
    positive, said = weight[truth == 1].sum(), weight[predicted == 1].sum()
    if not 0 < positive < total:
        return np.nan, np.nan, np.nan
    chance = (positive * said + (total - positive) * (total - said)) / total**2
    agreed = (both + neither) / total
    kappa = (agreed - chance) / (1 - chance) if chance < 1 else 0.0
    accuracy = (both / positive + neither / (total - positive)) / 2
    return float(accuracy), float(kappa), float(roc_auc_score(truth, scores, sample_weight=weight))


def judged(claims: Claims, judge: Judge) -> tuple[Ints, Floats, dict[str, float]]:
    """What the judge says of each claim: label (1, 0, or -1 where it gave none), score, and what that took."""
    judge.judge(claims.requests[:1])  # loads the model: not part of the time taken
    began = time.perf_counter()
    verdicts = judge.judge(claims.requests)
    seconds = time.perf_counter() - began
    yes = np.array([v.label == "supported" for v in verdicts], dtype=float)
    said = np.array([v.label not in {None, "abstained"} for v in verdicts], dtype=float)
    given = [v.p_supported for v in verdicts]
    score = claims.best(np.array([y if p is None else p for p, y in zip(given, yes, strict=True)]))
    label = np.where(claims.best(yes) > 0, 1, np.where(claims.best(said) > 0, 0, -1))
    tokens = sum(v.tokens_in for v in verdicts)
    return label, score, {"pairs": len(verdicts), "seconds": round(seconds, 2), "tokens_in": tokens}


def out_of_fold(claims: Claims, scores: Floats) -> Ints:
    """Labels of a plain score, each by a threshold chosen on the other folds."""
    label = np.zeros(len(scores), dtype=np.int64)
    for train, test in folds(claims, seed=0):
        label[test] = scores[test] >= best_threshold(claims.truth[train], scores[train])
    return label


def compare(claims: Claims, path: Path) -> tuple[dict[str, dict[str, Interval]], dict[str, float]]:
    """Agreement of the judge and of what stands beside it, and what judging took."""
    judge = judges.load(path)
    label, score, cost = judged(claims, judge)
    truth, told = claims.truth, label >= 0
    cost["claims"], cost["unanswered"] = len(truth), int((~told).sum())
    clusters = [c for c, t in zip(claims.clusters, told, strict=True) if t]
    rows = {f"{path.stem} (as configured)": agreement(truth[told], label[told], score[told], clusters)}
    # What the judge has embedded, it remembers.
    table, _ = (judge if isinstance(judge, Similarity) else unfitted()).features(claims.requests)
    judge.close()
    if isinstance(judge, Similarity):
        p, out = cross_fit(claims, table, range(len(FEATURES)), seed=0)
        rows[f"{path.stem} (cross-fitted on these claims)"] = agreement(truth, out, p, claims.clusters)
    for name in ("cosine", "overlap"):
        plain = claims.best(table[:, FEATURES.index(name)])
        rows[f"plain {name}"] = agreement(truth, out_of_fold(claims, plain), plain, claims.clusters)
    return rows, cost


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", type=Path, default=JUDGE, help="the judge's config")
    parser.add_argument(
        "--data", type=Path, default=default_data(), help="folder of traces and labels, or claims.jsonl"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args()
    claims = load(args.data)
    rows, cost = compare(claims, args.judge)
    if args.json:
        print(json.dumps({"data": args.data.name, "left_out": claims.skipped, **cost, "agreement": rows}, indent=2))
        return
    title = f"{args.data.name}: {len(claims.labels)} claims, {int(claims.truth.sum())} supported"
    out = Table("judge", "balanced accuracy", "Cohen's kappa", "AUC", title=title)
    for name, row in rows.items():
        out.add_row(name, *(f"{x:.3f} [{low:.3f}, {high:.3f}]" for x, low, high in row.values()))
    console = Console(width=120)
    console.print(out)
    console.print(f"left out: {dict(claims.skipped)}; {cost}")


if __name__ == "__main__":
    main()
