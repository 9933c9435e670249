"""How numbers that are no means move when a question is left out: as if they were computed again without it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.stats.intervals import Numbers
from tasks.stats.jackknife import macro, share_of_repeats

COUNT = st.integers(0, 2)
ROWS = st.lists(st.lists(st.tuples(COUNT, COUNT, COUNT), min_size=3, max_size=3), min_size=2, max_size=6)


def mean_over_sources(counts: Numbers) -> float:
    """Mean of above / below over the sources that have support; counts are (questions, sources, 3)."""
    above, below, support = counts.sum(axis=0).T
    some = (below > 0) & (support > 0)
    return float((above[some] / below[some]).mean()) if some.any() else math.nan


@given(ROWS)
def test_macro_moves_as_if_it_were_computed_without_the_question(rows: list[list[tuple[int, int, int]]]) -> None:
    counts = np.array(rows, np.float64)
    m, sources, _ = counts.shape
    above, below, support = counts.reshape(-1, 3).T
    question, source = np.divmod(np.arange(m * sources), sources)
    found = macro(above, below, support, source, question, np.ones(m))
    value = mean_over_sources(counts)
    assert found.values == pytest.approx([value], nan_ok=True)
    without = [mean_over_sources(np.delete(counts, i, axis=0)) for i in range(m)]
    assert found.values + found.moves == pytest.approx(
        [x if value == value else math.nan for x in without], nan_ok=True
    )


def test_macro_of_nothing() -> None:
    none, at = np.array([]), np.array([], np.int64)
    assert np.isnan(macro(none, none, none, at, at, np.ones(2)).values[0])


def share(n: Numbers, mean: Numbers, variance: Numbers) -> tuple[float, float]:
    low, high = share_of_repeats(n, mean, variance, np.zeros(len(n), np.int64), 1)
    return float(low[0]), float(high[0])


def test_three_questions_by_hand() -> None:
    """Two answers each, with means 0, 1 and 2 and variance 1: M = 2 · (1 + 0 + 1) / 2 = 2, W = 1, n0 = 2.

    Without the first or the last question M = 2 · (¼ + ¼) / 1 = 1, without the second 2 · (1 + 1) / 1 = 4: the logarithm
    of M / W is 0, 0 and ln 4, two thirds of its largest apart. Squares add up to ⅔ ln² 4, the variance is ⅔ of that, so
    the standard error is ⅔ ln 4 = 0.92420. Kurtosis of three values is 3/2, and 6 / ½ = 12 degrees of freedom are more
    than the 2 that three questions give: t = 4.30265. ln 2 ± 3.97651 are M / W from 0.0375 to 106.68, and
    1 / (1 + max(0, M / W − 1) / 2) lies between 0.018575 and 1.
    """
    found = share(np.full(3, 2.0), np.arange(3.0), np.ones(3))
    assert found == pytest.approx((0.018575, 1), abs=1e-5)


@given(st.lists(st.tuples(st.integers(2, 4), st.integers(0, 20), st.integers(1, 9)), min_size=3, max_size=12))
def test_the_share_lies_in_its_interval(questions: list[tuple[int, int, int]]) -> None:
    n, mean, variance = np.array(questions, np.float64).T
    low, high = share(n, mean, variance)
    k, whole = len(n), n.sum()
    w = float(((n - 1) * variance).sum() / (whole - k))
    grand = (n * mean).sum() / whole
    m = float((n * (mean - grand) ** 2).sum() / (k - 1))
    between = max(0.0, (m - w) / ((whole - (n**2).sum() / whole) / (k - 1)))
    if not math.isnan(low):
        assert 0 <= low <= w / (w + between) + 1e-9
        assert w / (w + between) - 1e-9 <= high <= 1


def test_the_unit_of_the_scores_has_no_say() -> None:
    n, mean, variance = np.array([2.0, 3, 2, 4]), np.array([0.3, 0.8, 0.5, 0.6]), np.array([0.01, 0.02, 0.005, 0.03])
    assert share(n, 100 * mean, 100**2 * variance) == pytest.approx(share(n, mean, variance), abs=1e-9)


@pytest.mark.parametrize(
    ("mean", "variance"),
    [([1.0, 2], [1.0, 1]), ([1.0, 2, 3], [0.0, 0, 0]), ([2.0, 2, 2], [1.0, 1, 1]), ([1.0, 2, 3], [0.0, 5, 0])],
    ids=["two questions", "repeats all alike", "questions all alike", "one question alone has repeats that differ"],
)
def test_where_it_can_t_be_reported_there_is_none(mean: list[float], variance: list[float]) -> None:
    found = share(np.full(len(mean), 2.0), np.array(mean), np.array(variance))
    assert np.isnan(found).all()
