"""Agreement of two sides on labels or grades of the same items, with intervals.

Method: docs/methods.md#judging-the-judges and #noise-and-confidence and #judge-versions-and-backfill.

Claims of one question, and grades of answers to it, are not independent, so intervals come from leaving out a whole
question (or case of a suite) at a time. All measures use count tables: (m, k, k) items of each of m clusters, by the
outcome under side A and under side B, of k possible ones. Left out: the meaning and origin of the outcomes, and
comparing two judges with people (`gains.py`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tasks.stats import intervals as statistics
from tasks.stats.intervals import Moves, Numbers

# With more clusters, this many groups of clusters are left out instead (delete-a-group jackknife, Kott 2001). The
# interval is as wide, and its cost is limited.
MOST_LEFT_OUT = 1_000
Counts = npt.NDArray[np.int64]
Measure: TypeAlias = Callable[[Counts], Numbers]  # (m, k, k) tables to one value each; NaN if undefined


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its 95% interval; None if undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two sides on the labels of the same claims.

    Attributes:
        n: Claims with a label from both sides.
        share: Share of equal labels.
        kappa: Cohen's kappa; no value if all labels are the same.
        balanced: Mean over the labels in use of 2 · both / (A's + B's), so that rare and common labels count equally.
        accuracy: Balanced accuracy of A, with B as the truth; no value if B gave one label only.
    """

    n: int
    share: Interval
    kappa: Interval
    balanced: Interval
    accuracy: Interval


def agreement(counts: Counts) -> Agreement:
    """Share of equal labels, Cohen's kappa, balanced agreement and balanced accuracy, with intervals.

    Args:
        counts: (m, k, k) claims of each cluster, by A's label and B's label.
    """
    return Agreement(
        n=int(counts.sum()),
        share=interval(counts, share, 0.0),
        kappa=interval(counts, kappa),
        balanced=interval(counts, balanced, 0.0),
        accuracy=interval(counts, balanced_accuracy, 0.0),
    )


def interval(counts: Counts, measure: Measure, least: float = -1.0) -> Interval:
    """A measure of all clusters together, with its interval.

    Args:
        counts: (m, k, l) tables of the clusters. Empty ones are left out.
        least: Lowest possible value of the measure; the highest is 1.

    Returns:
        An interval without a value if the measure is undefined, and without ends if there are fewer than two clusters
        or if the measure is undefined without one of them.
    """
    found = moves(counts[counts.any(axis=(1, 2))], measure)
    value = float(found.values[0])
    if math.isnan(value):
        return Interval(None)
    return Interval(value, *(statistics.interval(found, least) or ()))


def moves(counts: Counts, measure: Measure) -> Moves:
    """A measure, and its change when each cluster is left out."""
    whole = counts.sum(axis=0)
    value = measure(whole[None])
    m, sizes = len(counts), counts.sum(axis=(1, 2)).astype(np.float64)
    return Moves(value, measure(whole - counts) - value, sizes, np.zeros(m, np.int64), np.ones(m))


def tally(
    clusters: npt.NDArray[Any], first: Counts, second: Counts, shape: tuple[int, int], n: Counts | None = None
) -> Counts:
    """Count items by cluster and outcomes.

    Args:
        clusters: (n,) cluster name of each item.
        first: (n,) index of its outcome under A, from 0.
        second: (n,) index of its outcome under B.
        shape: Number of possible outcomes of A and of B.
        n: (n,) number of items in each row; 1 by default.

    Returns:
        (m, *shape), for at most `MOST_LEFT_OUT` clusters or groups of clusters, in a fixed order.
    """
    if not len(clusters):
        return np.zeros((0, *shape), np.int64)
    _, at = np.unique(clusters, return_inverse=True)
    m = min(int(at.max()) + 1, MOST_LEFT_OUT)
    cell = np.ravel_multi_index((at % m, first, second), (m, *shape))
    weights = None if n is None else n.astype(np.float64)
    found: Counts = np.bincount(cell, weights, m * math.prod(shape)).astype(np.int64).reshape(m, *shape)
    return found


def one_against_rest(counts: Counts, at: int) -> Counts:
    """(m, 2, 2) tables of one outcome (place 0) against all others (place 1)."""
    one, rows, columns, all_ = (
        counts[..., at, at], counts[..., at, :].sum(-1), counts[..., at].sum(-1), counts.sum(axis=(-2, -1)),
    )  # fmt: skip
    found: Counts = np.stack([one, rows - one, columns - one, all_ - rows - columns + one], -1).reshape(-1, 2, 2)
    return found


def share(counts: Counts) -> Numbers:
    """(m,) share of the diagonal of (m, k, k) tables."""
    return _ratio(np.trace(counts, axis1=-2, axis2=-1), counts.sum(axis=(-2, -1)))


def kappa(counts: Counts) -> Numbers:
    """(m,) Cohen's kappa; NaN if chance alone always agrees."""
    k = counts.shape[-1]
    return _kappa(counts, 1 - np.eye(k))


def weighted_kappa(counts: Counts) -> Numbers:
    """(m,) Cohen's kappa for ordered outcomes: a disagreement counts as the square of its distance."""
    place = np.arange(counts.shape[-1], dtype=np.float64)
    return _kappa(counts, (place[:, None] - place) ** 2)


def balanced(counts: Counts) -> Numbers:
    """(m,) mean over the outcomes in use of 2 · both / (A's + B's)."""
    either = counts.sum(axis=-1) + counts.sum(axis=-2)
    each = _ratio(2 * np.diagonal(counts, axis1=-2, axis2=-1), either)
    return _ratio(np.nansum(each, axis=-1), (either > 0).sum(axis=-1))


def balanced_accuracy(counts: Counts) -> Numbers:
    """(m,) mean over B's outcomes of the share that A also gave; NaN if B gave fewer than two outcomes."""
    truth = counts.sum(axis=-2)
    used = (truth > 0).sum(axis=-1)
    recall = np.nansum(_ratio(np.diagonal(counts, axis1=-2, axis2=-1), truth), axis=-1)
    return _ratio(recall, np.where(used > 1, used, 0))


def recall(counts: Counts) -> Numbers:
    """(m,) share of B's items with the first outcome that A gave it too; NaN if B has none."""
    return _ratio(counts[..., 0, 0], counts[..., 0].sum(axis=-1))


def rank_correlation(counts: Counts) -> Numbers:
    """(m,) Spearman's rank correlation, with mean ranks for ties; NaN if a side has one value only.

    It is computed from tables, not with `scipy.stats.spearmanr` from values, because the jackknife needs m
    correlations.

    Args:
        counts: (m, k, l) tables. The values of each side ascend along its axis.
    """
    rows, columns = counts.sum(axis=-1), counts.sum(axis=-2)
    # Twice the mean ranks minus the mean of all ranks.
    a, b = (2 * of.cumsum(axis=-1) - of - of.sum(axis=-1, keepdims=True) for of in (rows, columns))
    a, b = a.astype(np.float64), b.astype(np.float64)
    both = np.einsum("...ij,...i,...j->...", counts.astype(np.float64), a, b)
    return _ratio(both, np.sqrt((rows * a**2).sum(axis=-1) * (columns * b**2).sum(axis=-1)))


def _kappa(counts: Counts, weights: Numbers) -> Numbers:
    """1 − observed / expected disagreement (Cohen 1968), with the given weights of disagreements."""
    n = counts.sum(axis=(-2, -1))
    observed = (counts * weights).sum(axis=(-2, -1)) * n
    expected = np.einsum("...i,...j,ij->...", counts.sum(axis=-1), counts.sum(axis=-2), weights)
    return 1 - _ratio(observed, expected)


def _ratio(above: npt.NDArray[Any], below: npt.NDArray[Any]) -> Numbers:
    """A quotient; NaN if the denominator is 0."""
    found: Numbers = np.divide(above, below, out=np.full(np.shape(below), np.nan), where=np.asarray(below) > 0)
    return found
