"""Compares two sides: differences with interval and significance, and signal to noise.

Method: docs/methods.md#noise-and-confidence.

A difference is always B − A. Traces of one question are not independent, so observations are summed by question, and
whole questions are left out, or exchanged, at a time. Left out: labels (`agreement.py`), and the origin of the numbers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from tasks.core import keys
from tasks.stats.intervals import LEVEL, Ints, Numbers, interval, means

PERMUTATIONS = 4_999
# Up to this number, clusters are exchanged. Above it, the permutation distribution equals its normal limit, within the
# random error of PERMUTATIONS permutations.
MOST_PERMUTED = 1_000
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Estimate:
    """Difference of two sides in one number.

    Attributes:
        n_a: Observations of side A: traces, or questions if questions are paired.
        n_b: Observations of side B; the same ones if paired.
        questions: Number of clusters; if not paired, of the smaller side.
        a: Mean of side A; None without observations, as for `b` and `difference`.
        difference: B − A.
        low: Lower end of its 95% interval; None with fewer than two clusters on a side, as for `high` and `p`.
        high: Upper end.
        p: Two-sided p-value of "there is no difference".
    """

    n_a: int
    n_b: int
    questions: int
    a: float | None = None
    b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


@dataclass(frozen=True, slots=True)
class Sums:
    """Observations summed by cluster, (m,) each, in a fixed order.

    Attributes:
        totals: Sum of the observations.
        counts: Number of observations, at least 1.
        squares: Sum of their squares.
    """

    totals: Numbers
    counts: Numbers
    squares: Numbers

    @property
    def mean(self) -> float:
        """Mean over all observations, of which there must be at least one."""
        return float(self.totals.sum() / self.counts.sum())


@dataclass(frozen=True, slots=True)
class Overlap:
    """Observations measured both ways, summed by cluster and aligned with a side's clusters.

    Attributes:
        totals: (m,) sum of new − old.
        counts: (m,) number of observations; 0 in clusters that were measured only one way.
    """

    totals: Numbers
    counts: Numbers


def paired(totals_a: Numbers, totals_b: Numbers, counts: Numbers, width: float, *seed: str) -> Estimate:
    """The mean difference over observations that both sides have.

    The interval is that of a mean between −width and width. The p-value comes from the paired permutation test: whole
    clusters exchange sides, in all ways if there are at most PERMUTATIONS, otherwise in as many random ways.

    Args:
        totals_a: (m,) sum of A's observations in each cluster.
        totals_b: (m,) sum of B's observations of the same items.
        counts: (m,) number of observations, at least 1 each.
        width: Width of an observation's scale.
        seed: Seed of the permutations: the same arguments give the same p-value.
    """
    m, n = len(counts), int(counts.sum())
    if m == 0:
        return Estimate(0, 0, 0)
    change = totals_b - totals_a
    a, b = float(totals_a.sum() / n), float(totals_b.sum() / n)
    low, high = interval(means(change, counts), -width, width) or (None, None)
    return Estimate(n, n, m, a, b, float(change.sum() / n), low, high, _exchange_p(totals_a, totals_b, seed))


def unpaired(a: Sums, b: Sums, scale: tuple[float, float], *seed: str) -> Estimate:
    """The difference of two means over different observations.

    The interval combines those of the two means (Newcombe 1998; Zou & Donner 2008, doi:10.1002/sim.3095). For the
    p-value, clusters change sides, and the statistic is the difference divided by its standard error, which is valid if
    the sides have different variances (Janssen 1997). Above `MOST_PERMUTED` clusters: Welch's t on cluster-robust
    errors.

    Args:
        scale: Lowest and highest possible value of an observation.
        seed: Seed of the permutations: the same arguments give the same p-value.
    """
    m_a, m_b = len(a.counts), len(b.counts)
    n_a, n_b = int(a.counts.sum()), int(b.counts.sum())
    known = Estimate(n_a, n_b, min(m_a, m_b), a.mean if m_a else None, b.mean if m_b else None)
    if known.a is None or known.b is None:
        return known
    difference = known.b - known.a
    of_a, of_b = (interval(means(side.totals, side.counts), *scale) for side in (a, b))
    if of_a is None or of_b is None:
        return replace(known, difference=difference)
    low = difference - math.hypot(known.b - of_b[0], of_a[1] - known.a)
    high = difference + math.hypot(of_b[1] - known.b, known.a - of_a[0])
    if m_a + m_b <= MOST_PERMUTED:
        p = _shuffle_p(a, b, seed)
    else:
        error, df = _welch([(float(_variance(s.totals, s.counts)), len(s.counts)) for s in (a, b)])
        p = float(2 * special.stdtr(df, -abs(difference) / error)) if error > 0 else _flat(difference)
    return replace(known, difference=difference, low=low, high=high, p=p)


def product_change(before: Sums, after: Sums, overlap: Overlap, place: str) -> Estimate:
    """The change between two periods without the shift caused by a new way of measuring.

    The earlier period was measured the old way, the later one the new way, and `overlap` both ways. With the shift
    J = mean of new − old in `overlap`, the estimate is mean(after) − (mean(before) + J), the difference estimator; the
    total change is the estimate plus J. The error is linearized for each cluster, so that a cluster in both a mean and
    J counts once. Interval and p-value are Welch's t.

    Args:
        overlap: Aligned with the clusters of `before` or `after`, or from a different period.
        place: `before`, `after` or `elsewhere`: the clusters of `overlap`.

    Returns:
        `a` is the mean of the earlier period and `b` that of the later one, both in the new way; if the overlap is in
        the later period, both in the old way.
    """
    shift = float(overlap.totals.sum() / overlap.counts.sum())
    linear_shift = (overlap.totals - shift * overlap.counts) / overlap.counts.sum()
    parts = {
        "before": -(before.totals - before.mean * before.counts) / before.counts.sum(),
        "after": (after.totals - after.mean * after.counts) / after.counts.sum(),
    }
    parts[place] = parts[place] - linear_shift if place in parts else -linear_shift[overlap.counts > 0]
    a, b = (before.mean, after.mean - shift) if place == "after" else (before.mean + shift, after.mean)
    n_a, n_b = int(before.counts.sum()), int(after.counts.sum())
    m = min(len(p) for p in parts.values())
    if m < 2:
        return Estimate(n_a, n_b, m, a, b, b - a)
    variances = [(float(p @ p) * len(p) / (len(p) - 1), len(p)) for p in parts.values()]
    error, df = _welch(variances)
    if error == 0:
        return Estimate(n_a, n_b, m, a, b, b - a, b - a, b - a, _flat(b - a))
    half = float(special.stdtrit(df, 0.5 + LEVEL / 2)) * error
    p = float(2 * special.stdtr(df, -abs(b - a) / error))
    return Estimate(n_a, n_b, m, a, b, b - a, b - a - half, b - a + half, p)


def repeat_variance(sums: Sums) -> float | None:
    """Variance of an observation within its cluster; None if no cluster has two observations."""
    several = sums.counts > 1
    spare = float((sums.counts[several] - 1).sum())
    if spare == 0:
        return None
    within = sums.squares[several] - sums.totals[several] ** 2 / sums.counts[several]
    return max(0.0, float(within.sum()) / spare)


def spread(variance_a: float | None, n_a: float, variance_b: float | None, n_b: float) -> float | None:
    """Standard deviation of the difference of the means of identical runs, from the variances of one observation."""
    if variance_a is None or variance_b is None or not n_a or not n_b:
        return None
    return math.sqrt(variance_a / n_a + variance_b / n_b)


def signal_to_noise(difference: float | None, noise: float | None) -> float | None:
    """|difference| / noise; None if either is unknown, or if identical runs do not differ."""
    return None if difference is None or not noise else abs(difference) / noise


def _variance(totals: Numbers, counts: Numbers) -> Numbers:
    """Cluster-robust variance of Σ totals / Σ counts along the last axis; at least two clusters."""
    m = totals.shape[-1]
    n = counts.sum(axis=-1, keepdims=True)
    left = totals - totals.sum(axis=-1, keepdims=True) / n * counts
    found: Numbers = m / (m - 1) * (left**2).sum(axis=-1) / n[..., 0] ** 2
    return found


def _welch(parts: list[tuple[float, int]]) -> tuple[float, float]:
    """Standard error of a sum of independent estimates, and its degrees of freedom (Welch–Satterthwaite)."""
    whole = sum(v for v, _ in parts)
    below = sum(v**2 / (m - 1) for v, m in parts)
    return math.sqrt(whole), whole**2 / below if below > 0 else math.inf


def _flat(difference: float) -> float:
    """The p-value if nothing varies."""
    return 1.0 if difference == 0 else 0.0


def _exchange_p(totals_a: Numbers, totals_b: Numbers, seed: tuple[str, ...]) -> float | None:
    m = len(totals_a)
    if m < 2:
        return None
    change = totals_b - totals_a
    size = math.sqrt(float(change @ change))
    if size == 0:
        return 1.0
    if m > MOST_PERMUTED:
        return float(2 * special.ndtr(-abs(float(change.sum())) / size))

    def moved(a: Numbers, b: Numbers, axis: int) -> Numbers:
        found: Numbers = np.abs((b - a).sum(axis=axis))
        return found

    return permutation_p((totals_a, totals_b), moved, "samples", 500, "exchange", *seed)


def _shuffle_p(a: Sums, b: Sums, seed: tuple[str, ...]) -> float:
    totals, counts = np.concatenate([a.totals, b.totals]), np.concatenate([a.counts, b.counts])

    def studentized(i: Ints, j: Ints, axis: int = -1) -> Numbers:  # noqa: ARG001 - always the last axis
        t_a, n_a, t_b, n_b = totals[i], counts[i], totals[j], counts[j]
        difference = t_b.sum(axis=-1) / n_b.sum(axis=-1) - t_a.sum(axis=-1) / n_a.sum(axis=-1)
        error = np.sqrt(_variance(t_a, n_a) + _variance(t_b, n_b))
        found: Numbers = np.abs(difference) / np.maximum(error, TINY)
        return found

    sides = np.arange(len(a.counts)), len(a.counts) + np.arange(len(b.counts))
    return permutation_p(sides, studentized, "independent", 500, "shuffle", *seed)


def permutation_p(
    sides: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    statistic: Callable[..., Numbers],
    kind: Literal["samples", "independent"],
    batch: int,
    *seed: str,
) -> float:
    """p-value of a permutation test: how often permuted sides give a statistic at least as large.

    Args:
        sides: The two samples, or the indices of their observations.
        statistic: A function of both, along an axis; larger means further from "no difference".
        kind: Whether pairs exchange sides (`samples`) or observations change sides (`independent`).
        batch: Number of permutations computed together.
        seed: Seed of the permutations: the same arguments give the same p-value.
    """
    found = stats.permutation_test(
        sides,
        statistic,
        permutation_type=kind,
        alternative="greater",
        vectorized=True,
        n_resamples=PERMUTATIONS,
        batch=batch,
        rng=np.random.default_rng(int(keys.key(*seed), 16)),
    )
    return float(found.pvalue)
