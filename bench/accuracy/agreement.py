"""Measure how well a judge agrees with people, claim by claim.

    python -m bench.accuracy.agreement [--judge configs/judges/X.yaml] [--data PATH …] [--claims N]
                              [--first configs/judges/Y.yaml] [--band LOW HIGH] [--json]

A claim counts as supported if the judge finds it supported by any of its chunks. People's label partially supported
counts as not supported. Intervals are 95% bootstrap intervals over traces; in files of claims, over claims with the
same chunks. Without `--data`, the development sets and the held-out tenth of the authored documents are measured.

The judge is compared with `similarity`. Both are used as configured, so the numbers are in-sample on sets that they
were fitted to. `python -m training report` measures the embedded judge and its parts on sets that its fusion was not
fitted to.

`--first` also measures a cascade: pairs on which the first judge is uncertain are sent to the judge.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console

from bench import common
from bench.accuracy.labeled import Claims, Floats, Ints, load_all
from bench.common import ROOT
from tasks import judges
from tasks.core.errors import LeadlineError
from tasks.core.types import Judge, Request, Verdict

JUDGE = ROOT / "configs/judges/nli.yaml"
BAND = (0.45, 0.55)
SIMILARITY = ROOT / "configs/judges/similarity.yaml"
DRAWS = 1000
Interval = tuple[float, float, float]  # estimate, low, high
Row = dict[str, Interval]
Cost = dict[str, float]


class Cascade:
    """Two judges as one: the second judges the pairs on which the first is uncertain or gives no label.

    In contrast, the cascade of a night decides by claim, and its judges can have different pairs.
    """

    def __init__(self, first: Judge, second: Judge, band: tuple[float, float]) -> None:
        self._first, self._second, self._band = first, second, band

    def judge(self, requests: Sequence[Request]) -> list[Verdict]:
        """Return the second judge's verdict if it has a label, else the first's. Tokens are only the second judge's."""
        found = [replace(v, tokens_in=0, tokens_cached=0, tokens_out=0) for v in self._first.judge(requests)]
        sent = [i for i, v in enumerate(found) if self._uncertain(v)]
        for i, verdict in zip(sent, self._second.judge([requests[i] for i in sent]), strict=True):
            if verdict.label is not None:
                found[i] = verdict
        return found

    def _uncertain(self, verdict: Verdict) -> bool:
        low, high = self._band
        p = verdict.p_supported
        return verdict.label in {None, "abstained"} or (p is not None and low <= p < high)


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
    """The three measures (draws, 3), given weights of claims per draw (draws, claims).

    NaN if a draw lacks one of the two classes.
    """
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(scores[order]) > 0])  # start of each group of equal scores
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
        below = negative.cumsum(axis=1) - negative / 2  # negatives with a lower score, and half of the ties
        area = (positive * below).sum(axis=1) / (p * (n - p))
    found: Floats = np.where(((p > 0) & (p < n))[:, None], np.column_stack([accuracy, kappa, area]), np.nan)
    return found


def judged(claims: Claims, judge: Judge | Cascade) -> tuple[Row, Cost]:
    """Measure agreement on the claims that the judge labels, and the cost of judging."""
    judge.judge(claims.requests[:1])  # load the model, which is not timed
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
        "failed": sum(v.failure is not None for v in verdicts),
        "seconds": round(seconds, 2),
        **{name: sum(getattr(v, name) for v in verdicts) for name in ("tokens_in", "tokens_cached", "tokens_out")},
    }
    clusters = np.array(claims.clusters)[known].tolist()
    return agreement(claims.truth[known], label[known].astype(np.int64), score[known], clusters), cost


def compare(
    sets: Mapping[str, Claims], path: Path, first: Path | None = None, band: tuple[float, float] = BAND
) -> tuple[dict[str, dict[str, Row]], dict[str, dict[str, Cost]]]:
    """Agreement and cost per set, of the judge, the baseline, the first judge and the cascade."""
    loaded = {p: judges.load(p) for p in dict.fromkeys([path, SIMILARITY, *([first] if first else [])])}
    measured: dict[str, Judge | Cascade] = {p.stem: judge for p, judge in loaded.items()}
    if first is not None:
        label = f"{first.stem}, in [{band[0]:g}, {band[1]:g}) {path.stem}"
        measured[label] = Cascade(loaded[first], loaded[path], band)
    found = {name: {label: judged(claims, j) for label, j in measured.items()} for name, claims in sets.items()}
    rows = {name: {label: row for label, (row, _) in by.items()} for name, by in found.items()}
    costs = {name: {label: cost for label, (_, cost) in by.items()} for name, by in found.items()}
    for judge in loaded.values():
        judge.close()
    return rows, costs


def cost_columns(cost: Cost) -> tuple[str, ...]:
    """Cells: pairs, percent with a label, seconds, tokens read, percent from the cache, tokens computed per second."""
    computed = cost["tokens_in"] - cost["tokens_cached"] + cost["tokens_out"]
    return (
        f"{cost['pairs']:,}",
        f"{100 * (1 - cost['failed'] / cost['pairs']):.1f}",
        f"{cost['seconds']:,.1f}",
        f"{cost['tokens_in']:,}",
        f"{100 * cost['tokens_cached'] / cost['tokens_in']:.0f}" if cost["tokens_in"] else "",
        f"{computed / cost['seconds']:,.0f}" if computed and cost["seconds"] else "",
    )


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--judge", type=Path, default=JUDGE, help="the judge's config")
    sets_help = "folders of traces and labels, folders of authored documents, or files of claims"
    parser.add_argument("--data", type=Path, nargs="*", help=sets_help)
    parser.add_argument("--claims", type=int, help="most claims of a set, drawn at random; default: all")
    parser.add_argument("--first", type=Path, help="config of a cheaper judge: measures the cascade of both, too")
    parser.add_argument("--band", type=float, nargs=2, default=BAND, help="p_supported of the first that goes on")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    args = parser.parse_args()
    if args.claims is not None and args.claims < 1:
        parser.error(f"--claims {args.claims} is not a valid number of claims. Give 1 or more.")
    low, high = args.band
    if not 0 <= low < high <= 1:
        parser.error(f"--band {low:g} {high:g} is no range of p_supported. Give 0 <= LOW < HIGH <= 1.")
    judge, first = args.judge.resolve(), args.first and args.first.resolve()
    if first and first.stem == judge.stem:
        parser.error(f"--first {args.first} and --judge {args.judge} have the same name. Rename one.")
    sets = {name: claims.drawn(args.claims) for name, claims in load_all(args.data).items()}
    try:
        rows, costs = compare(sets, judge, first, (low, high))
    except LeadlineError as error:
        raise SystemExit(f"agreement: {error}") from None
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
        out = common.table(f"{name}: cost", ("judge", "pairs", "% judged", "s", "tokens read", "% cached", "tokens/s"))
        for label, cost in costs[name].items():
            out.add_row(label, *cost_columns(cost))
        console.print(out)
        unanswered = {label: cost["unanswered"] for label, cost in costs[name].items() if cost["unanswered"]}
        console.print(f"left out: {dict(claims.skipped)}; unanswered: {unanswered}")


if __name__ == "__main__":
    main()
