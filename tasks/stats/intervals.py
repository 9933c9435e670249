"""95% intervals over questions of every number that has ends, and means corrected by people's labels.

Method: docs/methods.md#noise-and-confidence.

One procedure for all of them: it takes a number, how far it moves when each question is left out, and the ends of its
scale. Left out: how numbers that are no means move (`jackknife.py`), and differences (`comparison.py`).
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import scipy

LEVEL = 0.95
Z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
SAME = 1e-9  # share of the largest possible variance below which what is left is rounding
Numbers = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Moves:
    """Numbers, g of them, and how far each moves when one of its questions is left out; n questions, or kinds of them.

    Attributes:
        values: (g,) the numbers.
        moves: (n,) the number without the question, minus the number; NaN where it is not defined without it.
        sizes: (n,) how much the question weighs: the observations that it has in the number, more than 0.
        of: (n,) the place of the number that it belongs to.
        times: (n,) how many questions are like this one.
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
        counts: (n,) their number; questions without any are left out.
        of: (n,) which mean each belongs to; all to one by default.
        times: (n,) how many questions have these sums; one by default.
        groups: How many means there are.
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

    Wilson's interval, of as many yes-or-no answers as give the number the precision that it has: their variance is
    the number's own, by the jackknife. The quantile lies between the normal one, which is right where nearly all values
    are at the two ends (the variance then follows from the mean), and Student's t, which is right where they are not.

    Where no question moves the number, nothing is known of how questions differ: as large a share of them as Wilson's
    interval of 0 has may then be different, and lie at either end.

    Args:
        found: The questions may stand in any order.
        least: The lower end of the scale; (g,) or one for all.
        most: The upper end.

    Returns:
        (g,) lower and upper ends, within the scale, around the number. NaN where it is not defined, below two
        questions, and where it would not be defined but for one of them.
    """
    known = _known(found)
    width = np.asarray(most) - np.asarray(least)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip((found.values - least) / width, 0.0, 1.0)
        n = known.effective * (known.m - 1) / known.m
        # The largest variance that there can be: all values at the ends, and all answers to a question alike.
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
    """(g,) half the width of 95% intervals of numbers without ends, by Student's t; NaN where there is none."""
    known = _known(found)
    with np.errstate(invalid="ignore"):
        half: Numbers = np.where(known.m > 1, known.t * np.sqrt(known.variance), np.nan)
    return half


@dataclass(frozen=True, slots=True)
class _Known:
    """The errors of g numbers, estimated from their questions; (g,) each.

    Attributes:
        m: Questions.
        effective: As how many they count, where some weigh more than others (Kish).
        variance: Of the number, by the jackknife.
        t: Quantile of Student's t. Its degrees of freedom are one less than the mean of m and `effective`, or fewer
            where a few questions make most of the variance: as the scatter of the squared moves has it (Satterthwaite).
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
    """The interval of one number; None where there is none."""
    low, high = (float(ends[0]) for ends in intervals(found, least, most))
    return None if math.isnan(low) else (low, high)


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean by a judge's labels, corrected by people's.

    Attributes:
        raw: The mean by the judge's labels.
        rectifier: What people's labels change in the reviewed observations, on average.
        mean: raw + rectifier, cut at the ends of the scale, as the next ones.
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

    The interval is put together from those of its two parts (Zou & Donner 2008, doi:10.1002/sim.3095): how far an end
    lies from the sum follows from how far the parts' ends lie from the parts, and from how the two go together over
    questions that are in both. Where all of the night is reviewed, and nothing else, it is that of people's own mean.

    Args:
        totals: (m,) sum of the observations of each question by the judge's labels; 0 where there is none.
        counts: (m,) their number.
        changes: (m,) sum over the question's reviewed observations of people's minus the judge's value; 0 where there
            is none.
        reviewed: (m,) their number.
        top: Where the scale of an observation ends; it begins at 0.

    Returns:
        None where fewer than two questions have observations, or reviewed ones.
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
    """How two numbers go together over questions.

    Args:
        first: (m,) questions that are in the first number.
        a: How far each of these moves it.
        second: (m,) those in the second number, which `b` is of.
    """
    x, y = np.zeros(len(first)), np.zeros(len(second))
    x[first], y[second] = a, b
    size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size > 0 else 0.0
