"""Thresholds from labels: which answers may be sent, and which claims may be called supported.

Method: docs/methods.md#the-waterfall-what-is-safe-to-send and #judging-the-judges.

The waterfall's order is also learned: which of the four stages take part, all with the same strictness. To test the
order fairly, each trace is placed by the choices made from the labels of the other folds. Left out: how far an order
may be followed (`risk.py`), and reading labels and scores (`tasks/analysis/calibrate.py`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tasks.core import keys
from tasks.stats.risk import DIGITS, Bools, Curve, Floats, Ints, Point, auc, curve, latest_cut, point, printed

STAGES = ("retrieval", "answerability", "faithfulness", "answer_relevance")
FOLDS = 5
CHOICES = tuple(c for size in range(len(STAGES) + 1) for c in combinations(range(len(STAGES)), size))


@dataclass(frozen=True, slots=True)
class Rule:
    """Thresholds that meet a target.

    Attributes:
        thresholds: Lowest value that passes each of `STAGES`; 0 if a stage would not help.
        expected: What such a rule sends, with each trace placed without its own label.
        fitted: What these thresholds send of the labeled traces. Slightly optimistic, because they were fitted to them.
    """

    thresholds: tuple[float, ...]
    expected: Point
    fitted: Point


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result for one target.

    Attributes:
        n: Labeled traces.
        n_wrong: Wrong ones among them.
        n_missing: Traces that lack a signal; they are stopped under any thresholds.
        rule: None if no thresholds can be shown to meet the target.
        signals: For each of `STAGES`, the probability that a wrong trace has a lower value than a right one; None
            without traces of both kinds.
        curve: Curve of the learned order, with each trace placed without its own label.
        by_retrieval: Curve if only the retrieval signal decides.
        random: Share of wrong traces among those without a missing signal: the result of a random order at any
            coverage.
    """

    error: float
    confidence: float
    n: int
    n_wrong: int
    n_missing: int
    rule: Rule | None
    signals: tuple[float | None, ...]
    curve: Curve
    by_retrieval: Curve
    random: float


@dataclass(frozen=True, slots=True)
class Bands:
    """Ranges in which a judge's probability of support can be trusted.

    Attributes:
        high: From this value on, at most `error` of the claims are not supported; None if that can't be shown.
        low: Below this value, at most `error` of the claims are supported; None if that can't be shown.
        above: Claims from `high` on. Those that people do not call supported are the wrong ones.
        below: Claims below `low` (and `high`). Those that people call supported are the wrong ones.
        n: Claims with a label and a probability.
        n_supported: Supported ones among them.
    """

    n: int
    n_supported: int
    high: float | None
    low: float | None
    above: Point | None
    below: Point | None

    @property
    def abstain(self) -> tuple[float, float] | None:
        """The range between the two, [lo, hi); None if it is empty."""
        low, high = 0.0 if self.low is None else self.low, 1.0 if self.high is None else self.high
        return (low, high) if low < high else None


def calibrate(signals: Floats, wrong: Bools, groups: Sequence[str], error: float, confidence: float) -> Calibration:
    """Find thresholds that send as many traces as possible, with at most a share `error` of wrong ones among them.

    Args:
        signals: (n, 4) values of `STAGES` in [0, 1]; NaN if missing.
        wrong: (n,) whether people called the answer wrong.
        groups: The question of each trace. Traces of one question stay in the same fold.
        error: Maximum share of wrong traces among those sent, in (0, 1).
        confidence: Probability with which the result meets the target, in [0.5, 1).
    """
    whole = ~np.isnan(signals).any(axis=1)
    values, missed = printed(signals[whole]), wrong[whole]
    questions = [groups[i] for i in np.flatnonzero(whole).tolist()]
    n, held, at = len(wrong), _folds(questions), np.unique(questions, return_inverse=True)[1]
    placed = np.empty(len(missed))
    for fold in range(FOLDS):
        own = held == fold
        other = ~own
        if own.any() and other.any():
            placed[own] = places(values[own], values[other], best_stages(values[other], missed[other]))
        else:  # a single question: nothing to learn from
            placed[own] = 1.0
    cut = latest_cut(placed, missed, error, confidence)
    rule = None
    if cut is not None:
        thresholds = _thresholds(values, best_stages(values, missed), cut)
        if (sent := (values >= thresholds).all(axis=1)).any():
            before = placed <= cut
            expected, fitted = (point(missed[of], at[of], n) for of in (before, sent))
            rule = Rule(tuple(thresholds.tolist()), expected, fitted)
    return Calibration(
        error=error,
        confidence=confidence,
        n=n,
        n_wrong=int(wrong.sum()),
        n_missing=n - len(missed),
        rule=rule,
        signals=tuple(auc(-values[:, i], missed) for i in range(len(STAGES))),
        curve=curve(placed, missed, at, n),
        by_retrieval=curve(-values[:, 0], missed, at, n),
        random=float(missed.mean()) if len(missed) else math.nan,
    )


def bands(p_supported: Floats, supported: Bools, groups: Sequence[str], error: float, confidence: float) -> Bands:
    """Find the ranges in which at most a share `error` of the claims called supported, or called unsupported, is wrong.

    Each of the two ranges holds with `confidence` separately.

    Args:
        p_supported: (n,) the judge's probability.
        supported: (n,) whether people call the claim supported; partial support does not count.
        groups: The question of each claim.
    """
    p, n, at = printed(p_supported), len(supported), np.unique(groups, return_inverse=True)[1]
    high = latest_cut(-p, ~supported, error, confidence)
    last = latest_cut(p, supported, error, confidence)
    above = p >= math.inf if high is None else p >= -high
    low = None
    if last is not None:  # that claim is still in the lower range
        further = p[p > last]
        low = float(further.min()) if len(further) else min(1.0, round(last + 10**-DIGITS, DIGITS))
    below = p < -math.inf if low is None else (p < low) & ~above
    return Bands(
        n=n,
        n_supported=int(supported.sum()),
        high=None if high is None else float(-high),
        low=low,
        above=point(~supported[above], at[above], n) if above.any() else None,
        below=point(supported[below], at[below], n) if below.any() else None,
    )


def best_stages(values: Floats, wrong: Bools) -> tuple[int, ...]:
    """The stages that, with the same strictness each, give the largest area under the ROC curve; ties go to the fewest.

    That area uses all labels equally. The area under the coverage–risk curve depends on the first few, and a separate
    strictness for each stage would be more to fit; both generalize worse.
    """

    def worth(stages: Sequence[int]) -> tuple[float, int]:
        found = auc(-_steps(values, values, stages), wrong)
        return (0.5 if found is None else found), -len(stages)

    return max(CHOICES, key=worth)


def places(values: Floats, known: Floats, stages: Sequence[int]) -> Floats:
    """Share of the known traces sent by the strictest step that sends each trace (n,)."""
    sent = np.sort(_steps(known, known, stages))
    return 1 - np.searchsorted(sent, _steps(values, known, stages), side="left") / len(known)


def _steps(values: Floats, known: Floats, stages: Sequence[int]) -> Ints:
    """Strictness steps that each trace passes (n,). Step k requires the k-th lowest known value of each stage."""
    passed: Ints = np.full(len(values), len(known), np.int64)
    for stage in stages:
        passed = np.minimum(passed, np.searchsorted(np.sort(known[:, stage]), values[:, stage], side="right"))
    at_least: Ints = np.maximum(passed, 1)  # step 0 requires nothing
    return at_least


def _thresholds(values: Floats, stages: Sequence[int], share: float) -> Floats:
    """Thresholds of the most lenient step that sends at most this share of the traces; all 1 if there is none."""
    passed = _steps(values, values, stages)
    step = next((k for k in range(len(values)) if (passed > k).mean() <= share + 1e-12), None)
    if step is None:
        return np.ones(len(STAGES))
    found = np.zeros(len(STAGES))
    if step:
        found[list(stages)] = np.sort(values[:, list(stages)], axis=0)[step]
    return found


def _folds(groups: Sequence[str]) -> Ints:
    """Fold of each trace, by its group. Folds differ by at most one group, and do not depend on the order of traces."""
    shuffled = sorted(set(groups), key=lambda g: keys.key("calibrate", g))
    fold = {group: at % FOLDS for at, group in enumerate(shuffled)}
    return np.array([fold[g] for g in groups], np.int64)
