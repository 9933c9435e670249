"""The one interval of all numbers: by hand, what must hold whatever the data, and what nobody can know.

How often it holds the truth is simulated in `tests/bench/test_intervals.py`.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tasks.stats.intervals import Moves, Numbers, halves, interval, intervals, mean_of, means

Z = 1.959964
SUMS = st.lists(st.tuples(st.integers(0, 10), st.integers(1, 4)), min_size=2, max_size=30)


def wilson(k: int, m: int, n: float) -> tuple[float, float]:
    """The textbook interval of the share k / m, as if it were of n observations."""
    p = k / m
    middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return middle - half, middle + half


def arrays(sums: list[tuple[int, int]]) -> tuple[Numbers, Numbers]:
    """Totals and counts of questions whose observations lie between 0 and 1."""
    tenths, counts = np.array(sums, np.float64).T
    return tenths / 10 * counts, counts


def of(totals: Numbers, counts: Numbers) -> tuple[float, float]:
    found = interval(means(totals, counts))
    assert found is not None
    return found


@given(st.integers(2, 60), st.integers(0, 60))
def test_of_a_share_it_is_wilsons_of_one_question_fewer(m: int, k: int) -> None:
    """One answer to each question, yes or no: the jackknife gives the variance p (1 − p) / (m − 1)."""
    k = min(k, m)
    low, high = of(np.arange(m) < k, np.ones(m))
    assert (low, high) == pytest.approx(wilson(k, m, m - 1), abs=1e-6)


def test_known_values() -> None:
    """Wilson at n = 4: of 2 in 5, (0.4 + z²/8) / (1 + z²/4) = 0.44899 ∓ 0.34637; of 5 in 5, from 4 / (4 + z²) on."""
    assert of(np.array([1.0, 1, 0, 0, 0]), np.ones(5)) == pytest.approx((0.10262, 0.79536), abs=1e-5)
    assert of(np.ones(5), np.ones(5)) == pytest.approx((4 / (4 + Z**2), 1), abs=1e-6)


def test_by_hand() -> None:
    """40 and 60 of 100: share ½, moves ∓0.1, variance ½ · 2 · 0.1² = 0.01, n = 1, so the design effect is 0.04.

    With one degree of freedom t = 12.7062; q = 0.04 z + 0.96 t = 12.2764, a = 0.04 q² = 6.0284. The middle stays ½, and
    half = √(a / 4 + a² / 4) / (1 + a) = 0.46307.
    """
    found = interval(means(np.array([40.0, 60.0]), np.ones(2)), 0.0, 100.0)
    assert found == pytest.approx((3.693, 96.307), abs=1e-3)


def test_values_close_together_have_students_interval() -> None:
    """Twenty values near 50 of 100 have 0.01% of the largest variance: what is left is mean ± t standard errors.

    Their kurtosis is near 3, which leaves 2 · 20 / 2 = 20 degrees of freedom and more: no fewer than 19.
    """
    values = 50 + stats.norm.ppf((np.arange(20) + 0.5) / 20) / 2
    t = stats.ttest_1samp(values, 0).confidence_interval()
    assert interval(means(values, np.ones(20)), 0.0, 100.0) == pytest.approx((t.low, t.high), abs=0.002)


def test_one_that_is_far_off_counts_as_what_is_known_least() -> None:
    """Of 30 values one lies far off and makes all of the variance: its squared moves scatter by m − 2 + 1 / (m − 1).

    Moves are those of one 1 among zeros: κ = (m³ − 3m² + 3m) / (m (m − 1)) ≈ m − 2, so that the degrees of freedom
    are 2 m / (κ − 1) = 2.22, and not 29.
    """
    m = 30
    values = np.where(np.arange(m) == 0, 50.5, 50.0)
    kurtosis = (m**2 - 3 * m + 3) / (m - 1)
    half = stats.t.ppf(0.975, 2 * m / (kurtosis - 1)) * values.std(ddof=1) / math.sqrt(m)
    found = interval(means(values, np.ones(m)), 0.0, 100.0)
    assert found is not None
    assert found[1] - found[0] == pytest.approx(2 * half, rel=0.002)


def test_all_alike_inside_the_scale() -> None:
    """Five times grade 4 of 1 to 5: a share u = z² / (4 + z²) = 0.4899 might be anything, so (4 − 3u, 4 + u)."""
    u = Z**2 / (4 + Z**2)
    assert interval(means(4 * np.ones(5), np.ones(5)), 1.0, 5.0) == pytest.approx((4 - 3 * u, 4 + u), abs=1e-6)


@given(SUMS)
def test_it_lies_around_the_mean_and_within_the_scale(sums: list[tuple[int, int]]) -> None:
    totals, counts = arrays(sums)
    low, high = of(totals, counts)
    assert 0 <= low <= totals.sum() / counts.sum() + 1e-12
    assert totals.sum() / counts.sum() - 1e-12 <= high <= 1
    assert low < high


@given(SUMS, st.randoms())
def test_the_order_of_questions_has_no_say(sums: list[tuple[int, int]], random: object) -> None:
    shuffled = sorted(sums, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert of(*arrays(shuffled)) == pytest.approx(of(*arrays(sums)), abs=1e-9)


@given(SUMS)
def test_no_instead_of_yes_mirrors_it(sums: list[tuple[int, int]]) -> None:
    totals, counts = arrays(sums)
    low, high = of(totals, counts)
    assert of(counts - totals, counts) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(SUMS, st.integers(2, 5))
def test_answers_that_repeat_each_other_say_nothing_new(sums: list[tuple[int, int]], times: int) -> None:
    totals, counts = arrays(sums)
    assert of(times * totals, times * counts) == pytest.approx(of(totals, counts), abs=1e-9)


@given(SUMS)
def test_questions_that_are_alike_may_be_given_once(sums: list[tuple[int, int]]) -> None:
    totals, counts = arrays(sums)
    times = np.arange(len(sums)) % 3 + 1.0
    once = interval(means(totals, counts, times=times))
    each = times.astype(int)
    assert once == pytest.approx(of(np.repeat(totals, each), np.repeat(counts, each)), abs=1e-9)


@given(SUMS)
def test_twice_the_questions_narrow_it(sums: list[tuple[int, int]]) -> None:
    totals, counts = arrays(sums)
    (low, high), (lower, higher) = of(np.tile(totals, 2), np.tile(counts, 2)), of(totals, counts)
    assert high - low < higher - lower


@given(st.lists(SUMS, min_size=1, max_size=4))
def test_several_at_once_are_as_each_by_itself(groups: list[list[tuple[int, int]]]) -> None:
    parts = [arrays(sums) for sums in groups]
    totals, counts = (np.concatenate(x) for x in zip(*parts, strict=True))
    at = np.repeat(np.arange(len(groups)), [len(g) for g in groups])
    tops = np.arange(len(groups)) + 1.0
    low, high = intervals(means(totals * tops[at], counts, at, None, len(groups)), 0.0, tops)
    for i, part in enumerate(parts):
        assert (low[i] / tops[i], high[i] / tops[i]) == pytest.approx(of(*part), abs=1e-9)


def test_a_million_questions() -> None:
    """Half yes, half no: ½ ± z · ½ / √1,000,000, to seven digits."""
    yes = np.arange(1_000_000) % 2 * 1.0
    half = Z / 2 / 1000
    assert of(yes, np.ones_like(yes)) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-7)


def test_a_question_that_was_asked_most_decides_most() -> None:
    """All say yes, but 96 of 100 answers are to one of five questions: as if there were 100² / (96² + 4) = 1.08."""
    k = 100**2 / (96**2 + 4)
    n = k * 4 / 5
    counts = np.array([96.0, 1, 1, 1, 1])
    assert of(counts, counts) == pytest.approx((n / (n + Z**2), 1), abs=1e-6)


def test_below_two_questions_there_is_none() -> None:
    assert interval(means(np.array([]), np.array([]))) is None
    assert interval(means(np.array([3.0]), np.array([4.0]))) is None
    assert interval(means(np.array([3.0, 0.0]), np.array([4.0, 0.0]))) is None  # the second one has no observation
    low, _ = intervals(means(np.array([1.0, 1, 0]), np.ones(3), np.array([0, 1, 1]), None, 3))
    assert np.isnan(low).tolist() == [True, False, True]  # the last one has no question


def test_where_it_rests_on_one_question_there_is_none() -> None:
    one, three = np.ones(1), np.ones(3)
    resting = Moves(one / 2, np.array([0.1, -0.1, np.nan]), three, np.zeros(3, np.int64), three)
    assert interval(resting) is None
    assert np.isnan(halves(resting))


def test_two_and_three_questions_say_little_and_nothing_absurd() -> None:
    """Wilson of 1 in 2 at n = 1, and of 3 in 3 at n = 2; two values between the ends leave nearly everything open."""
    assert of(np.array([1.0, 0.0]), np.ones(2)) == pytest.approx(wilson(1, 2, 1), abs=1e-6)
    assert of(np.ones(3), np.ones(3)) == pytest.approx((2 / (2 + Z**2), 1), abs=1e-6)
    low, high = of(np.array([0.5, 1.0]), np.ones(2))
    assert low < 0.05
    assert high > 0.95


def test_single_observations_by_their_questions() -> None:
    yes, asked = np.array([True, False, True, True]), np.array([0, 0, 2, 1])
    assert interval(mean_of(yes, asked)) == of(np.array([1.0, 1, 1]), np.array([2.0, 1, 1]))


def test_without_ends_it_is_students() -> None:
    """Mean ± t standard errors of the five values, whose kurtosis leaves all four degrees of freedom."""
    values = np.array([-3.0, -1, 0, 1, 3])
    (half,) = halves(means(values, np.ones(5)))
    assert half == pytest.approx(stats.t.ppf(0.975, 4) * values.std(ddof=1) / math.sqrt(5))
