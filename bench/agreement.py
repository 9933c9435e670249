"""How well does a judge agree with people, claim by claim?

    python -m bench.agreement [--judge configs/judges/X.yaml] [--data PATH …] [--json]

A claim counts as supported if the judge calls it supported by any of its chunks; people's partially supported counts as
not supported. Intervals are 95% bootstrap intervals over traces (over equal sets of chunks in files of claims). Without
`--data`, the development sets and the held-out tenth of the authored documents are measured.

The tables also show the judge's parts and baselines. With an entailment judge on several sets, rows marked `other sets`
are fitted to the other sets only (weights and threshold): the fusion's honest number. `as configured` is what ships; on
sets that it was fitted to, that is in sample. On a single set, the baselines are fitted out of fold on its own claims.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rich.console import Console
from sklearn.metrics import roc_auc_score

from bench import common
from bench.common import ROOT
from bench.fit_similarity import best_threshold, folds
from bench.labeled import Claims, Floats, Ints, load_all
from tasks import judges
from tasks.core.types import Judge
from tasks.judges.nli import FEATURES, SURFACE, Nli
from training import fuse

JUDGE = ROOT / "configs/judges/nli.yaml"
SIMILARITY = ROOT / "configs/judges/similarity.yaml"
DRAWS = 1000
PARTS = {
    "fusion": tuple(FEATURES[i] for i in fuse.FUSED),
    "windows": ("windows",),
    "nearest sentences": ("nearest",),
    "all but the model": SURFACE,
    "overlap + numbers": ("overlap", "missing_numbers"),
}
Interval = tuple[float, float, float]  # estimate, low, high
Row = dict[str, Interval]


def agreement(truth: Ints, predicted: Ints, scores: Floats, clusters: list[str]) -> Row:
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
    positive, predicted_positive = weight[truth == 1].sum(), weight[predicted == 1].sum()
    if not 0 < positive < total:
        return np.nan, np.nan, np.nan
    chance = (positive * predicted_positive + (total - positive) * (total - predicted_positive)) / total**2
    agreed = (both + neither) / total
    kappa = (agreed - chance) / (1 - chance) if chance < 1 else 0.0
    accuracy = (both / positive + neither / (total - positive)) / 2
    return float(accuracy), float(kappa), float(roc_auc_score(truth, scores, sample_weight=weight))


def judged(claims: Claims, judge: Judge) -> tuple[Row, dict[str, float]]:
    """Agreement of the judge on the claims that it labels, and the cost of judging."""
    judge.judge(claims.requests[:1])  # loads the model, which is not timed
    began = time.perf_counter()
    verdicts = judge.judge(claims.requests)
    seconds = time.perf_counter() - began
    yes = np.array([v.label == "supported" for v in verdicts], dtype=float)
    labeled = np.array([v.label not in {None, "abstained"} for v in verdicts], dtype=float)
    scores = [y if v.p_supported is None else v.p_supported for v, y in zip(verdicts, yes, strict=True)]
    score, label, known = claims.best(np.array(scores)), claims.best(yes) > 0, claims.best(labeled) > 0
    cost = {
        "claims": len(label),
        "unanswered": int((~known).sum()),
        "pairs": len(verdicts),
        "seconds": round(seconds, 2),
        "tokens_in": sum(v.tokens_in for v in verdicts),
    }
    clusters = np.array(claims.clusters)[known].tolist()
    return agreement(claims.truth[known], label[known].astype(np.int64), score[known], clusters), cost


def fused(samples: Mapping[str, fuse.Sample], name: str, features: tuple[str, ...]) -> Row:
    """Agreement on one set of a fusion of some features that was fitted to the other sets."""
    fit = fuse.left_out(samples, name, [FEATURES.index(f) for f in features])
    claims = samples[name].claims
    return by_odds(claims, fit.odds(samples[name].table))


def by_odds(claims: Claims, odds: Floats) -> Row:
    """Agreement of log-odds by request, supported from 0 on."""
    best = claims.best(odds)
    return agreement(claims.truth, (best >= 0).astype(np.int64), best, claims.clusters)


def out_of_fold(claims: Claims, scores: Floats) -> Row:
    """Agreement of a score whose threshold was chosen on the other folds of the same claims."""
    best = claims.best(scores)
    label = np.zeros(len(best), dtype=np.int64)
    for train, test in folds(claims, seed=0):
        label[test] = best[test] >= best_threshold(claims.truth[train], best[train])
    return agreement(claims.truth, label, best, claims.clusters)


def compare(sets: Mapping[str, Claims], path: Path) -> tuple[dict[str, dict[str, Row]], dict[str, dict[str, float]]]:
    """Agreement of the judge, its parts and the baselines, per set; and the cost of judging."""
    judge, plain = judges.load(path), judges.load(SIMILARITY)
    rows: dict[str, dict[str, Row]] = {}
    costs: dict[str, dict[str, float]] = {}
    for name, claims in sets.items():
        row, costs[name] = judged(claims, judge)
        rows[name] = {f"{path.stem} as configured": row}
        if path != SIMILARITY:
            rows[name]["similarity as configured"], _ = judged(claims, plain)
    reader = judge if isinstance(judge, Nli) else None
    samples = {n: fuse.sample(c, reader, fuse.CACHE) for n, c in sets.items()} if reader is not None else {}
    for name, sample in samples.items():
        rows[name]["the model alone"] = by_odds(sample.claims, sample.table[:, fuse.OWN].mean(axis=1))
        for label, features in PARTS.items() if len(samples) > 1 else ():
            rows[name][f"{label}, other sets"] = fused(samples, name, features)
        rows[name]["overlap, own folds"] = out_of_fold(sample.claims, sample.table[:, FEATURES.index("overlap")])
    judge.close()
    plain.close()
    return rows, costs


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--judge", type=Path, default=JUDGE, help="the judge's config")
    sets_help = "folders of traces and labels, folders of authored documents, or files of claims"
    parser.add_argument("--data", type=Path, nargs="*", help=sets_help)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    args = parser.parse_args()
    sets = load_all(args.data)
    rows, costs = compare(sets, args.judge.resolve())
    if args.json:
        left_out = {name: claims.skipped for name, claims in sets.items()}
        print(json.dumps({"agreement": rows, "cost": costs, "left_out": left_out}, indent=2))
        return
    console = Console(width=120)
    for name, claims in sets.items():
        title = f"{name}: {len(claims.labels)} claims, {int(claims.truth.sum())} supported"
        out = common.table(title, ("judge", "balanced accuracy", "Cohen's kappa", "AUC"))
        for label, row in rows[name].items():
            out.add_row(label, *(f"{x:.3f} [{low:.3f}, {high:.3f}]" for x, low, high in row.values()))
        console.print(out)
        console.print(f"left out: {dict(claims.skipped)}; {costs[name]}")


if __name__ == "__main__":
    main()
