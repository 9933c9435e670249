"""How far two sides agree on labels or grades of the same things, with intervals.

Method: docs/methods.md#judging-the-judges and #noise-and-confidence and #judge-versions-and-backfill.

Claims of one question, and grades of answers to it, are no independent observations: intervals come from leaving out a
whole question (or case of a suite) at a time. Everything is counted in tables: (m, k, k) things of each of m clusters
that side A gave one of k outcomes and side B another. Left out: what the outcomes are and where they come from, and two
judges held against people (`gains.py`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tasks.stats import intervals as statistics
from tasks.stats.intervals import Moves, Numbers

# With more clusters, as many groups of them are left out instead (the delete-a-group jackknife, Kott 2001): the
# interval is as wide, and its cost is bounded.
MOST_LEFT_OUT = 1_000
Counts = npt.NDArray[np.int64]
Measure: TypeAlias = Callable[[Counts], Numbers]  # (m, k, k) tables to a value each; NaN where it is not defined


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its 95% interval; None where it is not defined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two sides give the same labels to the same claims.

    Attributes:
        n: Claims that both gave a label.
        share: Equal labels.
        kappa: Cohen's kappa; no value where all labels are the same one.
        balanced: Mean over the labels in use of 2 · both / (A's + B's): a rare label counts as much as a common one.
        accuracy: Balanced accuracy of A, with B as the truth; no value where B gave one label only.
    """

    n: int
    share: Interval
    kappa: Interval
    balanced: Interval
    accuracy: Interval


def agreement(counts: Counts) -> Agreement:
    """Share of equal labels, Cohen's kappa, balanced agreement and balanced accuracy, with intervals.

    Args:
        counts: (m, k, k) claims of each cluster that A gave the one label and B the other.
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
        counts: (m, k, l) tables of the clusters; empty ones are left out.
        least: The least value that the measure can have; the most is 1.

    Returns:
        Without a value where the measure is not defined, and without ends below two clusters or where it would not be
        defined but for one of them.
    """
    found = moves(counts[counts.any(axis=(1, 2))], measure)
    value = float(found.values[0])
    if math.isnan(value):
        return Interval(None)
    return Interval(value, *(statistics.interval(found, least) or ()))


def moves(counts: Counts, measure: Measure) -> Moves:
    """A measure, and how far it moves without each cluster."""
    whole = counts.sum(axis=0)
    value = measure(whole[None])
    m, sizes = len(counts), counts.sum(axis=(1, 2)).astype(np.float64)
    return Moves(value, measure(whole - counts) - value, sizes, np.zeros(m, np.int64), np.ones(m))


def tally(
    clusters: npt.NDArray[Any], first: Counts, second: Counts, shape: tuple[int, int], n: Counts | None = None
) -> Counts:
    """Things counted by cluster and outcomes.

    Args:
        clusters: (n,) name of the cluster of each.
        first: (n,) place of its outcome under A, from 0.
        second: (n,) under B.
        shape: How many outcomes A and B can give.
        n: (n,) how many things each row stands for; 1 by default.

    Returns:
        (m, *shape), at most `MOST_LEFT_OUT` clusters or groups of them, in an order that does not change.
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
    """(m, 2, 2) tables of one outcome (place 0) against all others together (place 1)."""
    one, rows, columns, all_ = (
        counts[..., at, at], counts[..., at, :].sum(-1), counts[..., at].sum(-1), counts.sum(axis=(-2, -1)),
    )  # fmt: skip
    found: Counts = np.stack([one, rows - one, columns - one, all_ - rows - columns + one], -1).reshape(-1, 2, 2)
    return found


def share(counts: Counts) -> Numbers:
    """(m,) share of the diagonal of (m, k, k) tables."""
    return _ratio(np.trace(counts, axis1=-2, axis2=-1), counts.sum(axis=(-2, -1)))


def kappa(counts: Counts) -> Numbers:
    """(m,) Cohen's kappa; NaN where chance alone agrees always."""
    k = counts.shape[-1]
    return _kappa(counts, 1 - np.eye(k))


def weighted_kappa(counts: Counts) -> Numbers:
    """(m,) Cohen's kappa in which a disagreement counts as the square of its distance, for outcomes in order."""
    place = np.arange(counts.shape[-1], dtype=np.float64)
    return _kappa(counts, (place[:, None] - place) ** 2)


def balanced(counts: Counts) -> Numbers:
    """(m,) mean over the outcomes in use of 2 · both / (A's + B's)."""
    either = counts.sum(axis=-1) + counts.sum(axis=-2)
    each = _ratio(2 * np.diagonal(counts, axis1=-2, axis2=-1), either)
    return _ratio(np.nansum(each, axis=-1), (either > 0).sum(axis=-1))


def balanced_accuracy(counts: Counts) -> Numbers:
    """(m,) mean over the outcomes that B gave of the share that A gave them too; NaN where B gave fewer than two."""
    truth = counts.sum(axis=-2)
    used = (truth > 0).sum(axis=-1)
    recall = np.nansum(_ratio(np.diagonal(counts, axis1=-2, axis2=-1), truth), axis=-1)
    return _ratio(recall, np.where(used > 1, used, 0))


def recall(counts: Counts) -> Numbers:
    """(m,) share of B's first outcome that A gave too; NaN where B gave it nowhere."""
    return _ratio(counts[..., 0, 0], counts[..., 0].sum(axis=-1))


def rank_correlation(counts: Counts) -> Numbers:
    """(m,) Spearman's rank correlation, ties by their mean rank; NaN where a side gives one value only.

    From tables, and not by `scipy.stats.spearmanr` from the values, since the jackknife takes m of them.

    Args:
        counts: (m, k, l) tables; the values of each side ascend along its axis.
    """
    rows, columns = counts.sum(axis=-1), counts.sum(axis=-2)
    # Mean ranks less the mean of all ranks, twice.
    a, b = (2 * of.cumsum(axis=-1) - of - of.sum(axis=-1, keepdims=True) for of in (rows, columns))
    a, b = a.astype(np.float64), b.astype(np.float64)
    both = np.einsum("...ij,...i,...j->...", counts.astype(np.float64), a, b)
    return _ratio(both, np.sqrt((rows * a**2).sum(axis=-1) * (columns * b**2).sum(axis=-1)))


def _kappa(counts: Counts, weights: Numbers) -> Numbers:
    """1 − observed / expected disagreement (Cohen 1968), a disagreement weighing as given."""
    n = counts.sum(axis=(-2, -1))
    observed = (counts * weights).sum(axis=(-2, -1)) * n
    expected = np.einsum("...i,...j,ij->...", counts.sum(axis=-1), counts.sum(axis=-2), weights)
    return 1 - _ratio(observed, expected)


def _ratio(above: npt.NDArray[Any], below: npt.NDArray[Any]) -> Numbers:
    """A quotient, NaN where nothing stands below the line."""
    found: Numbers = np.divide(above, below, out=np.full(np.shape(below), np.nan), where=np.asarray(below) > 0)
    return found
