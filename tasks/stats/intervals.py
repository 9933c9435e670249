"""95% intervals, over questions, of numbers on a bounded scale, and means corrected by people's labels.

Method: docs/methods.md#noise-and-confidence.

All of them use one procedure, which needs the number, its change when each question is left out, and the ends of its
scale. Left out: the changes of numbers that are not means (`jackknife.py`), and differences (`comparison.py`).
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import scipy

LEVEL = 0.95
Z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
SAME = 1e-9  # share of the largest possible variance below which a variance is rounding error
Numbers = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Moves:
    """g numbers, and the change of each when one of its n questions (or kinds of equal questions) is left out.

    Attributes:
        values: (g,) the numbers.
        moves: (n,) the number without the question, minus the number; NaN if undefined without it.
        sizes: (n,) weight of the question: its observations in the number, more than 0.
        of: (n,) index of its number.
        times: (n,) count of equal questions.
    """

    values: Numbers
    moves: Numbers
    sizes: Numbers
    of: Ints
    times: Numbers


def total(values: Numbers, of: Ints, groups: int) -> Numbers:
    """(groups,) sums of the values (n,) by the group `of` each (n,)."""
    return np.asarray(np.bincount(of, values, groups), np.float64)


def means(
    totals: Numbers, counts: Numbers, of: Ints | None = None, times: Numbers | None = None, groups: int = 1
) -> Moves:
    """Means over all observations of several questions, Σ totals / Σ counts.

    Args:
        totals: (n,) sum of the observations of each question, in any order.
        counts: (n,) number of observations. Questions without any are left out.
        of: (n,) index of the mean of each question; one mean by default.
        times: (n,) count of questions with these sums; one by default.
        groups: Number of means.
    """
    some = counts > 0
    t, c = totals[some], counts[some]
    k = np.ones_like(c) if times is None else times[some]
    of = np.zeros(len(t), np.int64) if of is None else of[some]
    whole, count = (total(k * x, of, groups) for x in (t, c))
    value = np.divide(whole, count, out=np.full(groups, np.nan), where=count > 0)
    rest = count[of] - c
    moves = np.divide(value[of] * c - t, rest, out=np.full(len(c), np.nan), where=rest > 0)
    return Moves(value, moves, c, of, k)


def mean_of(values: Numbers | npt.NDArray[np.bool_], questions: Ints) -> Moves:
    """The mean of single observations (n,), from the question of each (n,)."""
    groups = int(questions.max(initial=-1)) + 1
    return means(total(values.astype(np.float64), questions, groups), total(np.ones(len(values)), questions, groups))


def intervals(found: Moves, least: Numbers | float = 0.0, most: Numbers | float = 1.0) -> tuple[Numbers, Numbers]:
    """95% intervals of numbers that lie between two ends.

    Wilson's interval, for as many yes-or-no answers as would give the number its precision: their variance is the
    number's own, by the jackknife. The quantile lies between the normal one, which is right if nearly all values are at
    the two ends (the variance then follows from the mean), and that of Student's t, which is right otherwise.

    If no question moves the number, nothing is known about differences between questions. Then a share of questions as
    large as the upper end of Wilson's interval of 0 may differ, and lie at either end of the scale.

    Args:
        found: The numbers, with questions in any order.
        least: Lower end of the scale; (g,) or one for all.
        most: Upper end of the scale.

    Returns:
        (g,) lower and upper ends, within the scale, around the number. NaN if the number is undefined, with fewer than
        two questions, or if the number is undefined without one of them.
    """
    known = _known(found)
    width = np.asarray(most) - np.asarray(least)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip((found.values - least) / width, 0.0, 1.0)
        n = known.effective * (known.m - 1) / known.m
        # The largest possible variance: all values at the ends, and equal answers to each question.
        design = known.variance / width**2 / (share * (1 - share) / n)
        varies = (share * (1 - share) > 0) & (design > SAME)
        at_ends = np.minimum(design, 1.0)
        q = at_ends * Z + (1 - at_ends) * known.t
        a = q**2 * design / n
        middle = (share + a / 2) / (1 + a)
        half = np.sqrt(share * (1 - share) * a + a**2 / 4) / (1 + a)
        unseen = Z**2 / (n + Z**2)
        low = np.where(varies, middle - half, share * (1 - unseen))
        high = np.where(varies, middle + half, share + (1 - share) * unseen)
        low, high = (least + np.clip(x, 0.0, 1.0) * width for x in (low, high))
    none = ~(known.m > 1) | np.isnan(known.variance) | np.isnan(found.values)
    return np.where(none, np.nan, low), np.where(none, np.nan, high)


def halves(found: Moves) -> Numbers:
    """(g,) half the width of 95% intervals of unbounded numbers, by Student's t; NaN if there is none."""
    known = _known(found)
    with np.errstate(invalid="ignore"):
        half: Numbers = np.where(known.m > 1, known.t * np.sqrt(known.variance), np.nan)
    return half


@dataclass(frozen=True, slots=True)
class _Known:
    """The errors of g numbers, estimated from their questions, (g,) each.

    Attributes:
        m: Number of questions.
        effective: Effective number of questions, given their weights (Kish).
        variance: Variance of the number, by the jackknife.
        t: Quantile of Student's t. Its degrees of freedom are the mean of m and `effective`, minus one, or fewer if a
            few questions cause most of the variance, as estimated from the scatter of the squared moves
            (Satterthwaite).
    """

    m: Numbers
    effective: Numbers
    variance: Numbers
    t: Numbers


def _known(found: Moves) -> _Known:
    def added(of_each: Numbers) -> Numbers:
        return total(found.times * of_each, found.of, len(found.values))

    with np.errstate(invalid="ignore", divide="ignore"):
        m = added(np.ones_like(found.moves))
        squared = (found.moves - (added(found.moves) / m)[found.of]) ** 2
        squares = added(squared)
        effective = added(found.sizes) ** 2 / added(found.sizes**2)
        scatter = m * added(squared**2) / squares**2 - 1
        plain = (m + effective) / 2 - 1
        freedom = np.where(scatter > 0, np.minimum(plain, 2 * m / scatter), plain)
        t = scipy.special.stdtrit(np.maximum(freedom, 1.0), 0.5 + LEVEL / 2)
        return _Known(m, effective, (m - 1) / m * squares, t)


def interval(found: Moves, least: float = 0.0, most: float = 1.0) -> tuple[float, float] | None:
    """The interval of one number; None if there is none."""
    low, high = (float(ends[0]) for ends in intervals(found, least, most))
    return None if math.isnan(low) else (low, high)


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean of a judge's labels, corrected by people's labels.

    Attributes:
        raw: Mean of the judge's labels.
        rectifier: Mean change from the judge's to people's labels, in the reviewed observations.
        mean: raw + rectifier, limited to the scale, as are `low` and `high`.
        low: Lower end of the 95% interval of `mean`.
        high: Upper end.
    """

    raw: float
    rectifier: float
    mean: float
    low: float
    high: float


def corrected_mean(
    totals: Numbers, counts: Numbers, changes: Numbers, reviewed: Numbers, top: float
) -> Corrected | None:
    """Prediction-powered mean, and its interval over questions.

    Method: docs/methods.md#noise-and-confidence; Angelopoulos et al. 2023, λ = 1.

    The interval combines those of the two parts (Zou & Donner 2008, doi:10.1002/sim.3095): the distance of an end from
    the sum follows from the distances of the parts' ends and from the correlation of the parts over questions in both.
    If exactly the night's observations are reviewed, it is the interval of people's own mean.

    Args:
        totals: (m,) sum of each question's observations by the judge's labels; 0 without observations.
        counts: (m,) number of observations.
        changes: (m,) sum of people's minus the judge's values over the question's reviewed observations; 0 without any.
        reviewed: (m,) number of reviewed observations.
        top: Upper end of an observation's scale, which begins at 0.

    Returns:
        None if fewer than two questions have observations, or reviewed ones.
    """
    night, change = means(totals, counts), means(changes, reviewed)
    of_night, of_change = interval(night, 0.0, top), interval(change, -top, top)
    if of_night is None or of_change is None:
        return None
    raw, rectifier = float(night.values[0]), float(change.values[0])
    mean = raw + rectifier
    if np.array_equal(counts, reviewed):
        low, high = interval(means(totals + changes, counts), 0.0, top) or (mean, mean)
    else:
        alike = _correlation(counts > 0, night.moves, reviewed > 0, change.moves)
        low, high = (
            mean + sign * math.sqrt(max(0.0, x**2 + y**2 + 2 * alike * x * y))
            for sign, x, y in (
                (-1, raw - of_night[0], rectifier - of_change[0]),
                (1, of_night[1] - raw, of_change[1] - rectifier),
            )
        )
    return Corrected(raw, rectifier, *(min(max(x, 0.0), top) for x in (mean, low, high)))


def _correlation(first: npt.NDArray[np.bool_], a: Numbers, second: npt.NDArray[np.bool_], b: Numbers) -> float:
    """Correlation of two numbers over questions.

    Args:
        first: (m,) whether each question is in the first number.
        a: Change of the first number without each of its questions.
        second: (m,) whether each question is in the second number.
        b: Change of the second number without each of its questions.
    """
    x, y = np.zeros(len(first)), np.zeros(len(second))
    x[first], y[second] = a, b
    size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size > 0 else 0.0
