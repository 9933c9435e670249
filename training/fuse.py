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

from bench.accuracy.labeled import Claims, Floats, Ints
from tasks.core import keys
from tasks.engines.classifier import ClassifierConfig
from tasks.judges.nli import FEATURES, Config, Nli
from tasks.judges.similarity import Similarity
from tasks.text.nearest import COUNT

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "configs/judges/nli.yaml"
CACHE = ROOT / "training/work/features"
EMBEDDED = "package:tasks.models.entailment"
OWN = [FEATURES.index(name) for name in ("windows", "nearest")]  # the model's log-odds
FUSED = OWN  # no other feature helps on sets that the fusion was not fitted to
MEASURED_ONLY = {"assistant"}  # sets that nothing is fitted to
CONTRADICTED = 0.45  # of p_contradicted, from where on a claim that is not supported counts as contradicted
ROUNDS = 4  # of choosing each claim's best chunk and fitting again; the choice settles after two
LEAST_SPREAD = 1e-9
PENALTY = 1.0  # on squared weights of the corrections, per standard deviation, against a mean loss
FREE = 30  # how much less the weight of the model's own log-odds is shrunk: next to not at all
# Before anything is fitted, the best chunk is the one that the model and the words speak for.
START = tuple(0.25 if i in OWN else float(f == "overlap") for i, f in enumerate(FEATURES))
# What decides a judge's features. The rest of its description is how they are weighed, and what is made of that.
DESCRIBED = ("rules", "classifier", "embedder", "stop_words", "window_words", "nearest_sentences")


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


def fit(
    samples: Iterable[Sample],
    columns: Sequence[int],
    penalty: float = PENALTY,
    start: Sequence[float] = START,
    own: Sequence[int] = OWN,
) -> Fit:
    """The fusion of the given features; the others get weight 0.

    Args:
        start: Weights by which each claim's best chunk is chosen at first (features,).
        own: Features that are log-odds already: their zero stays where it is, and their weight is hardly shrunk.
    """
    sets = list(samples)
    found = Fit(0.0, np.zeros(len(start)))
    scores = [s.table @ np.array(start) for s in sets]
    for _ in range(ROUNDS):
        rows = np.vstack([s.table[nearest(s.claims, score)][:, columns] for s, score in zip(sets, scores, strict=True)])
        truth = np.concatenate([s.claims.truth for s in sets])
        weight = np.concatenate([_balance(s.claims.truth) for s in sets]) * len(truth) / len(sets)
        mean = np.average(rows, axis=0, weights=weight)
        spread = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=weight))
        spread = np.where(spread > LEAST_SPREAD, spread, 1)  # a feature that never varies says nothing
        # The model's own log-odds stay as they are: zero is where it changes its mind.
        kept = np.isin(columns, own)
        mean, spread = np.where(kept, 0, mean), np.where(kept, spread / FREE, spread)
        model = LogisticRegression(C=1 / penalty, fit_intercept=False)
        model.fit((rows - mean) / spread, truth, sample_weight=weight / weight.sum())
        weights = np.zeros(len(start))
        weights[list(columns)] = model.coef_[0] / spread
        found = Fit(float(-(model.coef_[0] / spread) @ mean), weights)
        scores = [found.odds(s.table) for s in sets]
    return found


def left_out(
    samples: Mapping[str, Sample],
    name: str,
    columns: Sequence[int],
    penalty: float = PENALTY,
    start: Sequence[float] = START,
    own: Sequence[int] = OWN,
) -> Fit:
    """The fusion fitted to all sets but one, for measuring on that one; the arguments are those of `fit`."""
    return fit([s for n, s in samples.items() if n not in {name, *MEASURED_ONLY}], columns, penalty, start, own)


def nearest(claims: Claims, scores: Floats) -> Ints:
    """Index of the request with the highest score, for each claim (claims,)."""
    order = np.argsort(scores, kind="stable")
    found = np.zeros(len(claims.labels), dtype=np.int64)
    found[claims.owners[order]] = order  # the last of a claim's requests in order of score is its best one
    return found


def unfitted() -> Nli:
    """The embedded judge when its features are wanted, not its verdicts."""
    classifier = ClassifierConfig(model=EMBEDDED, engine="onnx_cpu", dtype="int8")
    return Nli(Config(classifier=classifier, nearest_sentences=COUNT))


def sample(claims: Claims, judge: Nli | Similarity, cache: Path) -> Sample:
    """A set with its features, which are kept in `cache` per model and requests."""
    description = judge.describe()
    parts = {k: description[k] for k in DESCRIBED if k in description}
    file = cache / f"{keys.version(parts)}-{keys.key(*(r.key for r in claims.requests), size=16)}.npy"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        found = judge.features(claims.requests)
        np.save(file, found[0] if isinstance(found, tuple) else found)
    return Sample(claims, np.load(file))


def _balance(truth: Ints) -> Floats:
    """Weights that sum to 1 over a set, half of it on each class."""
    share = truth.mean()
    weight: Floats = np.where(truth == 1, 0.5 / share, 0.5 / (1 - share)) / len(truth)
    return weight


HEADER = """\
# Entailment by a small cross-encoder that comes with Leadline (22 million parameters), on the CPU: it reads windows of
# the evidence, and by themselves the sentences nearest to the claim. Its card: tasks/models/entailment/README.md.
# Engines transformers_cpu and vllm_offline read its weights in float32.
#
"""
FITTED = """\
# Fitted by `python -m training fuse --write` to labels of {claims:,} claims in {sets} sets
# ({names}),
# each set weighing the same, and in it supported claims as much as the others. How far it agrees with people on sets
# that it was not fitted to: bench/README.md.
"""


def yaml_text(samples: Mapping[str, Sample], found: Fit) -> str:
    """The judge's config file with the fusion that was found."""
    claims = sum(len(s.claims.labels) for s in samples.values())
    head = HEADER + FITTED.format(claims=claims, sets=len(samples), names=", ".join(samples))
    weights = "".join(f"    {FEATURES[i]}: {found.weights[i]:.4f}\n" for i in FUSED)
    return (
        f"{head}kind: nli\n"
        "classifier:\n"
        "  engine: onnx_cpu\n"
        "  model: package:tasks.models.entailment\n"
        "  dtype: int8\n"
        "  max_tokens: 320\n"
        "window_words: 200 # longer evidence is read in windows; the one that most entails the claim counts\n"
        f"nearest_sentences: {COUNT} # read by themselves too: those that share most with the claim\n"
        "fusion:\n"
        f"  intercept: {found.intercept:.4f}\n"
        f"  coefficients: # of the model's log-odds of entailment\n{weights}"
        "thresholds:\n"
        "  supported: 0.5\n"
        f"  contradicted: {CONTRADICTED}\n"
        "  partially_supported: null # a band of p_supported below says next to nothing\n"
        "languages: [en] # what it was trained on; claims in others are abstained from\n"
        "abstain: null # or [lo, hi]: p_supported in between is answered with `abstained`\n"
    )
