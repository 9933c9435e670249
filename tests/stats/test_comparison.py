"""Differences of two sides: what must hold whatever the data, and, in simulation, how often interval and p are right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tasks.stats.comparison import (
    Overlap,
    Sums,
    paired,
    product_change,
    repeat_variance,
    signal_to_noise,
    spread,
    unpaired,
)
from tasks.stats.intervals import Numbers

CLUSTERS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300), st.integers(1, 3)), min_size=2, max_size=9)


def sums(values: list[list[float]]) -> Sums:
    """Clusters of observations."""
    return Sums(
        np.array([sum(v) for v in values], np.float64),
        np.array([len(v) for v in values], np.float64),
        np.array([sum(x * x for x in v) for v in values], np.float64),
    )


def arrays(clusters: list[tuple[int, int, int]]) -> tuple[Numbers, Numbers, Numbers]:
    a, b, n = np.array(clusters, np.float64).T
    return a, b, n


@settings(max_examples=25, deadline=None)
@given(CLUSTERS)
def test_a_side_does_not_differ_from_itself(clusters: list[tuple[int, int, int]]) -> None:
    a, _, n = arrays(clusters)
    found = paired(a, a, n, 300, "seed")
    assert (found.difference, found.p) == (0, 1)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0 < found.high  # a question that was not drawn might differ
    same = Sums(a, n, a**2)
    assert unpaired(same, same, (0, 300), "seed").difference == 0
    assert unpaired(same, same, (0, 300), "seed").p == pytest.approx(1)


@settings(max_examples=25, deadline=None)
@given(CLUSTERS)
def test_the_other_way_round_is_the_same_with_the_other_sign(clusters: list[tuple[int, int, int]]) -> None:
    a, b, n = arrays(clusters)
    there, back = paired(a, b, n, 300, "seed"), paired(b, a, n, 300, "seed")
    assert None not in (there.difference, there.low, there.high)
    assert (back.difference, back.low, back.high) == pytest.approx(
        (-(there.difference or 0), -(there.high or 0), -(there.low or 0)), abs=1e-9
    )
    assert back.p == pytest.approx(there.p)


def test_few_pairs_are_exchanged_in_every_way() -> None:
    """Four questions that all rise by 1, 2, 3 and 4: of the 2⁴ exchanges only none and all reach |10|, so p = 2/16."""
    found = paired(np.zeros(4), np.array([1.0, 2, 3, 4]), np.ones(4), 100, "seed")
    assert (found.difference, found.p) == (2.5, 2 / 16)


def test_two_samples_change_sides_in_every_way() -> None:
    """1, 2, 3 against 11, 12, 13: of the 6-over-3 = 20 ways, the one that is and its mirror image are furthest apart."""
    found = unpaired(sums([[1], [2], [3]]), sums([[11], [12], [13]]), (0, 100), "seed")
    assert (found.n_a, found.n_b, found.a, found.b, found.difference) == (3, 3, 2, 12, 10)
    assert found.p == pytest.approx(2 / 20)


def test_too_little_has_no_interval_and_nothing_no_mean() -> None:
    one = paired(np.array([1.0]), np.array([3.0]), np.array([1.0]), 100, "seed")
    assert (one.difference, one.low, one.p) == (2, None, None)
    none = paired(np.array([]), np.array([]), np.array([]), 100, "seed")
    assert (none.n_a, none.a, none.difference) == (0, None, None)
    lone = unpaired(sums([[1]]), sums([[3], [5]]), (0, 100), "seed")
    assert (lone.difference, lone.low, lone.p) == (3, None, None)
    empty = unpaired(sums([]), sums([[3], [5]]), (0, 100), "seed")
    assert (empty.a, empty.b, empty.difference) == (None, 4, None)


def test_sides_that_do_not_vary() -> None:
    """1, 1 against 2, 2: of the 4-over-2 = 6 ways, the one that is and its mirror image are furthest apart."""
    flat = unpaired(sums([[1], [1]]), sums([[2], [2]]), (0, 2), "seed")
    assert flat.p == pytest.approx(2 / 6)
    assert unpaired(sums([[1], [1]]), sums([[1], [1]]), (0, 2), "seed").p == 1


def test_the_ends_of_two_samples_by_hand() -> None:
    """4 of 5 against 1 of 5: Wilson at n = 4 is (0.337, 0.969) and, mirrored, (0.031, 0.663).

    The difference −0.6 reaches down to −0.6 − √((0.2 − 0.031)² + (0.969 − 0.8)²) = −0.839, and up to
    −0.6 + √((0.663 − 0.2)² + (0.8 − 0.337)²) = 0.055.
    """
    found = unpaired(sums([[1], [1], [1], [1], [0]]), sums([[1], [0], [0], [0], [0]]), (0, 1), "seed")
    assert (found.low, found.high) == pytest.approx((-0.839, 0.055), abs=0.001)


@pytest.mark.parametrize("m", [700, 1_500])
def test_many_clusters_agree_with_the_limit(m: int) -> None:
    """With one observation each, the paired test is near the t test, and the unpaired one near Welch's."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(50, 1, m), rng.normal(50.08, 1.5, m)
    ones = np.ones(m)
    by_pairs, t = paired(a, b, ones, 100, "seed"), stats.ttest_rel(b, a)
    assert by_pairs.p == pytest.approx(t.pvalue, abs=0.02)
    assert (by_pairs.low, by_pairs.high) == pytest.approx(t.confidence_interval(), abs=0.02)
    apart, welch = (
        unpaired(Sums(a, ones, a**2), Sums(b, ones, b**2), (0, 100), "s"),
        stats.ttest_ind(b, a, equal_var=False),
    )
    assert apart.p == pytest.approx(welch.pvalue, abs=0.02)
    assert (apart.low, apart.high) == pytest.approx(welch.confidence_interval(), abs=0.02)


def clustered(rng: np.random.Generator, m: int, mean: float = 0.0, sd: float = 1.0) -> Sums:
    """Questions with one to three answers each, which share the question's own level; skewed."""
    level = rng.normal(0, sd, m)
    return sums([list(mean + q + sd * (rng.exponential(1, rng.integers(1, 4)) - 1)) for q in level])


@pytest.mark.slow
def test_in_simulation_interval_and_p_hold_what_they_say() -> None:
    """No true difference, 150 times. A 95% interval must hold 0 in 143 of them, ± 2.7 (binomial): at least 134 is three
    standard deviations below. p is uniform: below 0.05 in 7.5 ± 2.7, and Kolmogorov–Smirnov finds nothing at 0.001.
    """
    rng = np.random.default_rng(11)
    for pairs in (True, False):
        held, p = 0, []
        for i in range(150):
            x = clustered(rng, 14, 50)
            y = clustered(rng, 14) if pairs else clustered(rng, 20, 50, 2)
            if pairs:  # the same number of observations, each moved by something with mean 0
                found = paired(x.totals, x.totals + y.totals / y.counts * x.counts, x.counts, 100, str(i))
            else:
                found = unpaired(x, y, (0, 100), str(i))
            assert found.low is not None
            assert found.high is not None
            held += found.low <= 0 <= found.high
            p.append(found.p or 0.0)
        assert held >= 134
        assert sum(v < 0.05 for v in p) <= 16
        assert stats.kstest(p, "uniform").pvalue > 0.001


def test_the_shift_of_the_judge_is_taken_out() -> None:
    """Before, the old judge gave 40 and 60, and the new one would give 10 less. After, the new one gives 30 and 50.

    All of the change of −10 is the judge's, none the product's.
    """
    before, after = sums([[40], [60]]), sums([[30], [50]])
    overlap = Overlap(np.array([-10.0, -10.0]), np.ones(2))
    found = product_change(before, after, overlap, "before")
    assert (found.a, found.b, found.difference) == (40, 40, 0)
    half = product_change(before, after, Overlap(np.array([-10.0, 0.0]), np.array([1.0, 0.0])), "before")
    assert half.difference == 0
    elsewhere = product_change(before, after, Overlap(np.array([-10.0, -10.0, -10.0]), np.ones(3)), "elsewhere")
    assert elsewhere.difference == 0
    later = product_change(before, after, overlap, "after")  # the old judge would give 40 and 60 after
    assert (later.a, later.b, later.difference) == (50, 50, 0)


def test_with_everything_judged_by_both_it_is_the_difference_under_the_new_judge() -> None:
    """Then mean(before, old) + mean(new − old) is mean(before, new); the error is that of Welch's test on the new ones."""
    rng = np.random.default_rng(5)
    old, new, after = rng.normal(50, 9, 30), rng.normal(42, 7, 30), rng.normal(45, 8, 40)
    found = product_change(
        Sums(old, np.ones(30), old**2), Sums(after, np.ones(40), after**2), Overlap(new - old, np.ones(30)), "before"
    )
    welch = stats.ttest_ind(after, new, equal_var=False)
    assert found.difference == pytest.approx(after.mean() - new.mean())
    assert (found.low, found.high) == pytest.approx(welch.confidence_interval())
    assert found.p == pytest.approx(welch.pvalue)


def test_in_simulation_the_products_change_is_covered() -> None:
    """A product that changed by 3 and a judge that shifted by −8, a third of the days judged by both: 95% of 400 times
    is 380 ± 4.4, so at least 363.
    """
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        before, after = clustered(rng, 60, 50, 5), clustered(rng, 50, 50 + 3 - 8, 5)
        both = rng.random(60) < 1 / 3
        counts = np.where(both, before.counts, 0.0)
        moved = np.where(both, counts * (-8 + rng.normal(0, 4, 60)), 0.0)
        found = product_change(before, after, Overlap(moved, counts), "before")
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 3 <= found.high
    assert held >= 363


def test_the_noise_of_repeats() -> None:
    """(1, 3) varies by 2 around its mean with 1 spare, (4, 4, 7) by 6 with 2: 8 / 3. A question asked once adds nothing."""
    assert repeat_variance(sums([[1, 3], [4, 4, 7], [100]])) == pytest.approx(8 / 3)
    assert repeat_variance(sums([[1], [2]])) is None


def test_signal_to_noise() -> None:
    assert spread(4.0, 50, 9.0, 100) == pytest.approx((4 / 50 + 9 / 100) ** 0.5)
    assert spread(None, 50, 9.0, 100) is None
    assert signal_to_noise(-3, 1.5) == 2
    assert signal_to_noise(-3, 0.0) is None  # a judge that repeats itself: there is nothing to divide by
    assert signal_to_noise(-3, None) is None
    assert signal_to_noise(None, 1.0) is None
