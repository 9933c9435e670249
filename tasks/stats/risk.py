"""How far an order of labeled things may be followed, so that few enough of them are wrong.

What goes first has the lowest value. A cut is chosen by testing: "of what goes before it, more than `error` is wrong"
has to be refused by an exact binomial test. Cuts are tried from strict to lax in Wiens' fallback procedure (2003), a
fixed sequence with several starts, each with its share of 1 − confidence, where a test that refuses hands its share on.
So all that is refused is refused rightly, with that confidence ("Learn then Test", Angelopoulos et al. 2021; exact
binomial bounds for selective prediction: Geifman & El-Yaniv 2017). Labels are taken as independent, and must have no
say in the order. Left out: where orders come from (`calibration.py`).
"""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from tasks.stats.intervals import interval, mean_of

STARTS = (1 / 6, 1 / 3, 2 / 3)  # of what is ordered; by n alone, or a higher target could send less
DIGITS = 4  # of a threshold, as it is printed and pasted
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Point:
    """One cut of an order.

    Attributes:
        n: What goes before it.
        n_wrong: Of these, wrong ones.
        coverage: n as a share of everything that is labeled.
        wrong: n_wrong / n.
        low: Lower end of its 95% interval over questions; 0 of one question, which shows nothing of others.
        high: Upper end; 1 of one question.
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
        points: From strict to lax, a cut between any two that differ.
        area: Mean share of wrong ones over all cuts (AURC); equals go in random order. Less is better.
    """

    points: tuple[Point, ...]
    area: float


def least(error: float, confidence: float) -> int:
    """How many labels it takes before any target can be met, were all of them right."""
    needed = math.log((1 - confidence) / len(STARTS)) / math.log(1 - error)
    return math.ceil(needed / STARTS[-1])


def latest_cut(order: Floats, wrong: Bools, error: float, confidence: float) -> float | None:
    """The last value of an order up to which at most `error` is wrong, at this confidence; None where there is none.

    Args:
        order: (n,) what goes first has the lowest value. It must not depend on the labels.
        wrong: (n,) what is wrong.
    """
    if not len(order):
        return None
    values, n, k = _cumulated(order, wrong)
    chance = stats.binom.cdf(k, n, error)  # of so few wrong ones, were `error` of them wrong
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
    """Share of wrong ones before each cut of an order.

    Args:
        groups: (n,) which question each is of.
        n: Everything that is labeled, what is not in the order included.
    """
    if not len(order):
        return Curve((), math.nan)
    sent = (order <= value for value in np.unique(order))
    return Curve(tuple(point(wrong[before], groups[before], n) for before in sent), area(order, wrong))


def area(order: npt.NDArray[np.generic], wrong: Bools) -> float:
    """Mean share of wrong ones over all cuts of an order; equals go in random order."""
    return float(np.mean(shares(order, wrong)))


def shares(order: npt.NDArray[np.generic], wrong: Bools) -> Floats:
    """Share of wrong ones among the first 1, 2, … n of an order (n,); equals go in random order."""
    _, n, k = _cumulated(np.asarray(order, np.float64), wrong)
    positions = np.arange(1, len(wrong) + 1)
    found: Floats = np.interp(positions, np.r_[0, n], np.r_[0, k]) / positions
    return found


def auc(order: npt.NDArray[np.generic], wrong: Bools) -> float | None:
    """Probability that a wrong one comes after a right one, 0.5 for equals; None without both."""
    n_wrong = int(wrong.sum())
    if not 0 < n_wrong < len(wrong):
        return None
    ranks = stats.rankdata(order)
    return float((ranks[wrong].sum() - n_wrong * (n_wrong + 1) / 2) / (n_wrong * (len(wrong) - n_wrong)))


def printed(values: Floats) -> Floats:
    """Values as a threshold of `DIGITS` digits distinguishes them: the full value passes it if this one does."""
    scale = 10.0**DIGITS
    rounded: Floats = np.floor(values * scale + 1e-9) / scale
    return rounded


def point(wrong: Bools, groups: Ints, n: int) -> Point:
    """What goes before a cut, of n labeled; at least one.

    Args:
        groups: Which question each is of.
    """
    sent, missed = len(wrong), int(wrong.sum())
    low, high = interval(mean_of(wrong, groups)) or (0.0, 1.0)
    return Point(sent, missed, sent / n, missed / sent, low, high)


def _cumulated(order: Floats, wrong: Bools) -> tuple[Floats, Ints, Ints]:
    """Different values in order; how many come up to each, and how many wrong ones."""
    values, at = np.unique(order, return_inverse=True)
    n = np.bincount(at, minlength=len(values)).cumsum()
    return values, n, np.bincount(at[wrong], minlength=len(values)).cumsum()
