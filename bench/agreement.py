"""How well does a judge agree with people, claim by claim?

    python -m bench.agreement [--judge configs/judges/X.yaml] [--data PATH …] [--json]

A claim counts as supported if the judge calls it supported by any of its chunks; people's partially supported counts as
not supported. Intervals are 95% bootstrap intervals over traces (over equal sets of chunks in files of claims). Without
`--data`, the development sets and the held-out tenth of the authored documents are measured.

Beside the judge stands `similarity`. Both are measured as configured: on sets that they were fitted to, in sample. The
embedded judge on sets that its fusion was not fitted to, with its parts: `python -m training report`.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rich.console import Console

from bench import common
from bench.common import ROOT
from bench.labeled import Claims, Floats, Ints, load_all
from tasks import judges
from tasks.core.types import Judge

JUDGE = ROOT / "configs/judges/nli.yaml"
SIMILARITY = ROOT / "configs/judges/similarity.yaml"
DRAWS = 1000
Interval = tuple[float, float, float]  # estimate, low, high
Row = dict[str, Interval]


def agreement(truth: Ints, predicted: Ints, scores: Floats, clusters: list[str]) -> Row:
    """Balanced accuracy, Cohen's kappa and AUC, each with its interval."""
    _, cluster = np.unique(clusters, return_inverse=True)
    rng = np.random.default_rng(0)
    size = int(cluster.max()) + 1
    draws = [np.ones(len(truth))]
    draws += [np.bincount(rng.integers(size, size=size), minlength=size)[cluster].astype(float) for _ in range(DRAWS)]
    rows = _measures(truth, predicted, scores, np.array(draws))
    low, high = np.nanquantile(rows[1:], [0.025, 0.975], axis=0)
    names = ("balanced_accuracy", "kappa", "auc")
    return {n: (float(rows[0, i]), float(low[i]), float(high[i])) for i, n in enumerate(names)}


def _measures(truth: Ints, predicted: Ints, scores: Floats, weights: Floats) -> Floats:
    """The three measures (draws, 3) of claims weighted by each draw (draws, claims).

    NaN where a draw lacks one of the two classes.
    """
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(scores[order]) > 0])  # of equal scores
    positive, negative = (
        np.add.reduceat((weights * (truth == t))[:, order], starts, axis=1).astype(np.float64) for t in (1, 0)
    )
    n, p = weights.sum(axis=1), positive.sum(axis=1)
    both, neither = (weights @ ((truth == t) & (predicted == t)) for t in (1, 0))
    called = weights @ predicted
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = (p * called + (n - p) * (n - called)) / n**2
        kappa = np.where(chance < 1, ((both + neither) / n - chance) / (1 - chance), 0.0)
        accuracy = (both / p + neither / (n - p)) / 2
        below = negative.cumsum(axis=1) - negative / 2  # others with a lower score, and half of those with the same
        area = (positive * below).sum(axis=1) / (p * (n - p))
    found: Floats = np.where(((p > 0) & (p < n))[:, None], np.column_stack([accuracy, kappa, area]), np.nan)
    return found


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


def compare(sets: Mapping[str, Claims], path: Path) -> tuple[dict[str, dict[str, Row]], dict[str, dict[str, float]]]:
    """Agreement of the judge and of the baseline, per set; and the cost of judging."""
    judge, plain = judges.load(path), judges.load(SIMILARITY)
    rows: dict[str, dict[str, Row]] = {}
    costs: dict[str, dict[str, float]] = {}
    for name, claims in sets.items():
        row, costs[name] = judged(claims, judge)
        rows[name] = {path.stem: row}
        if path != SIMILARITY:
            rows[name][SIMILARITY.stem], _ = judged(claims, plain)
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
