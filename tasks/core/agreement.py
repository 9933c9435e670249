"""How far two judges give the same labels to the same claims, with intervals over questions (METHODS sections 11, 14).

Claims of one question are no independent observations: the jackknife leaves out a whole question at a time.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from tasks.core.statistics import LEVEL, Numbers

Counts = npt.NDArray[np.int64]


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
    """

    n: int
    share: Interval
    kappa: Interval
    balanced: Interval


def agreement(counts: Counts) -> Agreement:
    """Share of equal labels, Cohen's kappa and balanced agreement, with jackknife intervals over clusters.

    Args:
        counts: (m, k, k) claims of each cluster that A gave the one label and B the other.
    """
    total = counts.sum(axis=0)
    n = int(total.sum())
    if n == 0:
        nothing = Interval(None)
        return Agreement(0, nothing, nothing, nothing)
    without = total - counts
    without = without[without.sum(axis=(1, 2)) > 0]
    share, kappa, balanced = (_jackknife(f(total[None])[0], f(without), low) for f, low in PARTS)
    return Agreement(n, share, kappa, balanced)


def _share(counts: Counts) -> Numbers:
    """(m,) share of the diagonal of (m, k, k) matrices."""
    found: Numbers = np.trace(counts, axis1=-2, axis2=-1) / counts.sum(axis=(-2, -1))
    return found


def _kappa(counts: Counts) -> Numbers:
    """(m,) Cohen's kappa; NaN, which no caller gets to see, where chance alone agrees always."""
    n = counts.sum(axis=(-2, -1))
    chance = (counts.sum(axis=-1) * counts.sum(axis=-2)).sum(axis=-1) / n**2
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Numbers = np.where(chance < 1, (_share(counts) - chance) / (1 - chance), np.nan)
    return found


def _balanced(counts: Counts) -> Numbers:
    """(m,) mean over the labels in use of 2 · both / (A's + B's)."""
    both = np.diagonal(counts, axis1=-2, axis2=-1)
    either = counts.sum(axis=-1) + counts.sum(axis=-2)
    each = np.divide(2 * both, either, out=np.zeros(both.shape), where=either > 0)
    found: Numbers = each.sum(axis=-1) / (either > 0).sum(axis=-1)
    return found


def _jackknife(value: float, without: Numbers, least: float) -> Interval:
    """A value with an interval from what it is without each cluster in turn, by Student's t."""
    if math.isnan(value):
        return Interval(None)
    m = len(without)
    if m < 2 or bool(np.isnan(without).any()):
        return Interval(float(value))
    error = math.sqrt((m - 1) / m * float(((without - without.mean()) ** 2).sum()))
    half = float(special.stdtrit(m - 1, 0.5 + LEVEL / 2)) * error
    return Interval(float(value), max(least, float(value) - half), min(1.0, float(value) + half))


PARTS = ((_share, 0.0), (_kappa, -1.0), (_balanced, 0.0))  # each with the least value it can have
