"""Jackknife for numbers that are not plain means: their change when a question is left out, for their intervals.

Left out: means (`intervals.py`) and measures of agreement (`agreement.py`).
"""

import numpy as np

from tasks.stats.intervals import SAME, Ints, Moves, Numbers, halves, total


def macro(above: Numbers, below: Numbers, support: Numbers, source: Ints, question: Ints, sizes: Numbers) -> Moves:
    """The mean of quotients Σ above / Σ below of each source, over the sources with support and a quotient.

    Args:
        above: (n,) numerator for each question and source.
        below: (n,) denominator for each.
        support: (n,) traces for which the source is right.
        source: (n,) index of the source.
        question: (n,) index of the question. No pair of question and source occurs twice.
        sizes: (m,) weight of each question; `question` contains indices of it.

    Returns:
        One number; NaN if there is no such source.
    """

    def quotients(a: Numbers, b: Numbers, s: Numbers) -> tuple[Numbers, Numbers]:
        counts = (b > 0) & (s > 0)
        return np.divide(a, b, out=np.zeros_like(a), where=counts), counts.astype(np.float64)

    groups = int(source.max(initial=-1)) + 1
    whole = [total(x, source, groups) for x in (above, below, support)]
    before, counted = quotients(*whole)
    after, counts = quotients(*(w[source] - x for w, x in zip(whole, (above, below, support), strict=True)))
    m = len(sizes)
    rest = before.sum() + total(after - before[source], question, m)
    n = counted.sum() + total(counts - counted[source], question, m)
    value = np.divide(before.sum(), counted.sum(), out=np.full(1, np.nan), where=counted.sum() > 0)
    moves = np.divide(rest, n, out=np.full(m, np.nan), where=n > 0) - value
    return Moves(value, moves, sizes, np.zeros(m, np.int64), np.ones(m))


def share_of_repeats(n: Numbers, mean: Numbers, variance: Numbers, of: Ints, groups: int) -> tuple[Numbers, Numbers]:
    """95% intervals of the share of the variance that comes from repeats, W / (W + B).

    Method: docs/methods.md#scores-of-one-trace.

    The share follows from the ratio M / W of the mean squares between and within questions. The logarithm of that ratio
    is unbounded, and its jackknife is valid for values that are not normal (Arvesen & Schmitz 1970,
    doi:10.2307/2528740).

    Args:
        n: (m,) answers to each question, at least two.
        mean: (m,) mean of each question.
        variance: (m,) sample variance of each question.
        of: (m,) index of each question's share.

    Returns:
        (groups,) lower and upper ends. NaN with fewer than three questions; if answers to the same question are all
        equal, or the means of questions are; and if either would be the case without one question.
    """

    def log_ratio(k: Numbers, count: Numbers, within: Numbers, first: Numbers, second: Numbers) -> Numbers:
        between = second - first**2 / count
        some = SAME * (within + second)
        defined = (k > 1) & (within > some) & (between > some)
        return np.log(np.where(defined, between / (k - 1) / (within / (count - k)), np.nan))

    with np.errstate(invalid="ignore", divide="ignore"):
        apart = mean - (total(n * mean, of, groups) / total(n, of, groups))[of]
        parts = (np.ones_like(n), n, (n - 1) * variance, n * apart, n * apart**2)
        whole = [total(part, of, groups) for part in parts]
        value = log_ratio(*whole)
        without = log_ratio(*(w[of] - part for w, part in zip(whole, parts, strict=True)))
        k, count = whole[:2]
        n0 = (count - total(n**2, of, groups) / count) / (k - 1)
        half = halves(Moves(value, without - value[of], n, of, np.ones_like(n)))
        low, high = (1 / (1 + np.maximum(0.0, np.exp(x) - 1) / n0) for x in (value + half, value - half))
    return low, high
