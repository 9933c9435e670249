"""How far an order of labeled items can be followed before too many of them are wrong.

Items with the lowest values come first. A cut is tested: an exact binomial test must reject "more than `error` of the
items before it are wrong". Cuts are tested from strict to lenient with Wiens' fallback procedure (2003), a fixed
sequence with several starts, each with its share of 1 − confidence; a test that rejects passes its share on. So all
rejections are right with this confidence ("Learn then Test", Angelopoulos et al. 2021; exact binomial bounds for
selective
prediction: Geifman & El-Yaniv 2017). Labels are assumed to be independent, and must not influence the order. Left out:
where orders come from (`calibration.py`).
"""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from tasks.stats.intervals import interval, mean_of

STARTS = (1 / 6, 1 / 3, 2 / 3)  # shares of the order; if fixed by n alone, a higher target could send less
DIGITS = 4  # digits of a threshold as users see and paste it
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Point:
    """One cut of an order.

    Attributes:
        n: Items before the cut.
        n_wrong: Wrong ones among them.
        coverage: n as a share of all labeled items.
        wrong: n_wrong / n.
        low: Lower end of its 95% interval over questions; 0 for a single question, which says nothing about others.
        high: Upper end; 1 for a single question.
    """

    n: int
    n_wrong: int
    coverage: float
    wrong: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Curve:
    """Coverage against risk.

    Attributes:
        points: From strict to lenient, with a cut between any two different values.
        area: Mean share of wrong items over all cuts (AURC), with equal values in random order. Lower is better.
    """

    points: tuple[Point, ...]
    area: float


def least(error: float, confidence: float) -> int:
    """Minimum number of labels, all of them right, with which any target can be met."""
    needed = math.log((1 - confidence) / len(STARTS)) / math.log(1 - error)
    return math.ceil(needed / STARTS[-1])


def latest_cut(order: Floats, wrong: Bools, error: float, confidence: float) -> float | None:
    """The last value of an order up to which at most a share `error` is wrong, at this confidence; None without one.

    Args:
        order: (n,) values to sort by, lowest first. They must not depend on the labels.
        wrong: (n,) whether each item is wrong.
    """
    if not len(order):
        return None
    values, n, k = _cumulated(order, wrong)
    chance = stats.binom.cdf(k, n, error)  # of so few wrong items if a share `error` were wrong
    starts = Counter(int(np.searchsorted(n, math.ceil(share * len(order)))) for share in STARTS)
    budget, found = 0.0, None
    for at, p in enumerate(chance):
        budget += (1 - confidence) * starts[at] / len(STARTS)
        if budget and p <= budget:
            found = float(values[at])
        else:
            budget = 0.0
    return found


def curve(order: Floats, wrong: Bools, groups: Ints, n: int) -> Curve:
    """Share of wrong items before each cut of an order.

    Args:
        groups: (n,) question of each item.
        n: Number of all labeled items, including those not in the order.
    """
    if not len(order):
        return Curve((), math.nan)
    sent = (order <= value for value in np.unique(order))
    return Curve(tuple(point(wrong[before], groups[before], n) for before in sent), area(order, wrong))


def area(order: npt.NDArray[np.generic], wrong: Bools) -> float:
    """Mean share of wrong items over all cuts of an order, with equal values in random order."""
    return float(np.mean(shares(order, wrong)))


def shares(order: npt.NDArray[np.generic], wrong: Bools) -> Floats:
    """Share of wrong items among the first 1, 2, … n of an order (n,), with equal values in random order."""
    _, n, k = _cumulated(np.asarray(order, np.float64), wrong)
    positions = np.arange(1, len(wrong) + 1)
    found: Floats = np.interp(positions, np.r_[0, n], np.r_[0, k]) / positions
    return found


def auc(order: npt.NDArray[np.generic], wrong: Bools) -> float | None:
    """Probability that a wrong item comes after a right one, 0.5 for equal values; None unless there are both."""
    n_wrong = int(wrong.sum())
    if not 0 < n_wrong < len(wrong):
        return None
    ranks = stats.rankdata(order)
    return float((ranks[wrong].sum() - n_wrong * (n_wrong + 1) / 2) / (n_wrong * (len(wrong) - n_wrong)))


def printed(values: Floats) -> Floats:
    """Round values down to `DIGITS` digits. A value passes a threshold of that length if its rounded value does."""
    scale = 10.0**DIGITS
    rounded: Floats = np.floor(values * scale + 1e-9) / scale
    return rounded


def point(wrong: Bools, groups: Ints, n: int) -> Point:
    """The cut after the given items, of n labeled items. There must be at least one item.

    Args:
        groups: Question of each item.
    """
    sent, missed = len(wrong), int(wrong.sum())
    low, high = interval(mean_of(wrong, groups)) or (0.0, 1.0)
    return Point(sent, missed, sent / n, missed / sent, low, high)


def _cumulated(order: Floats, wrong: Bools) -> tuple[Floats, Ints, Ints]:
    """Distinct values in order, with the number of items up to each, and of wrong ones."""
    values, at = np.unique(order, return_inverse=True)
    n = np.bincount(at, minlength=len(values)).cumsum()
    return values, n, np.bincount(at[wrong], minlength=len(values)).cumsum()
