"""How far an order may be followed: worked cases, invariants, and the guarantee in simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tasks.stats.risk import area, auc, curve, latest_cut, least, point, printed, shares

ORDERS = st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=120)
ERRORS = st.floats(0.01, 0.9)
CONFIDENCES = st.floats(0.5, 0.99)


def arrays(rows):
    order, wrong = zip(*rows, strict=True)
    return np.array(order, float), np.array(wrong, bool)


def test_shares_of_the_first_ones_with_equals_in_random_order():
    # One of the two that go first is wrong: half of either, then one of three.
    assert shares(np.array([1, 1, 2]), np.array([True, False, False])) == pytest.approx([1 / 2, 1 / 2, 1 / 3])


def test_with_nothing_wrong_all_of_it_may_go_once_there_is_enough_of_it():
    # The last start is at two thirds. Of n' right ones there, "10% are wrong" has probability 0.9^n', which must not
    # exceed (1 − 0.5) / 3; from there on all budgets are one, and every further right one makes it surer.
    n = least(0.1, 0.5)
    assert n == math.ceil(1.5 * math.log(0.5 / 3) / math.log(0.9)) == 26
    order, wrong = np.arange(n, dtype=float), np.zeros(n, bool)
    assert latest_cut(order, wrong, 0.1, 0.5) == n - 1
    few = 24  # two thirds are 16, and 0.9^16 = 0.185 > 0.167; no earlier start has more, no later one is there
    assert latest_cut(order[:few], wrong[:few], 0.1, 0.5) is None


def test_a_run_of_right_ones_before_wrong_ones_is_cut_behind_it():
    # 60 right, then 60 wrong, at most 20% at 0.5. Starts are at 20, 40 and 80. 0.8^20 = 0.012 and 0.8^40 are below
    # 0.167, so that from 40 on a third and another third may be spent: P(Bin(60 + k, 0.2) ≤ k) has to be ≤ 0.333.
    order = np.arange(120, dtype=float)
    wrong = order >= 60
    allowed = max(k for k in range(60) if stats.binom.cdf(k, 60 + k, 0.2) <= 1 / 3 and 60 + k < 80)
    assert latest_cut(order, wrong, 0.2, 0.5) == 60 + allowed - 1
    assert allowed / (60 + allowed) < 0.2


def test_equals_are_never_parted():
    order = np.repeat([0.0, 1.0], 50)
    wrong = np.r_[np.zeros(50, bool), np.ones(50, bool)]
    assert latest_cut(order, wrong, 0.1, 0.9) == 0.0
    assert latest_cut(np.zeros(100), wrong, 0.1, 0.9) is None  # all or nothing, and half of it is wrong


def test_nothing_at_all_has_no_cut():
    assert latest_cut(np.array([]), np.array([], bool), 0.5, 0.5) is None


@settings(deadline=None)
@given(ORDERS, ERRORS, ERRORS, CONFIDENCES)
def test_a_higher_target_never_goes_less_far(rows, one, other, confidence):
    strict, lax = (latest_cut(*arrays(rows), e, confidence) for e in sorted([one, other]))
    assert strict is None or (lax is not None and lax >= strict)


@settings(deadline=None)
@given(ORDERS, ERRORS, CONFIDENCES, CONFIDENCES)
def test_more_confidence_never_goes_further(rows, error, one, other):
    lax, strict = (latest_cut(*arrays(rows), error, c) for c in sorted([one, other]))
    assert strict is None or (lax is not None and lax >= strict)


@settings(deadline=None)
@given(ORDERS, ERRORS, CONFIDENCES)
def test_what_goes_has_at_most_the_target_wrong_in_the_labels_too(rows, error, confidence):
    order, wrong = arrays(rows)
    cut = latest_cut(order, wrong, error, confidence)
    # P(Bin(n, error) ≤ k) ≤ 0.5 says that the median is above k, and no median is above ⌈n · error⌉.
    if cut is not None:
        assert wrong[order <= cut].sum() <= math.ceil((order <= cut).sum() * error)


@pytest.mark.parametrize("confidence", [0.5, 0.9])
@pytest.mark.parametrize(
    ("last", "error"),
    [(0.25, 0.2), (0.6, 0.2), (0.2, 0.1)],  # from 0 wrong at the front to this share at the end, or the same everywhere
)
def test_the_target_is_met_as_often_as_is_claimed(last, error, confidence):
    rng = np.random.default_rng(0)
    runs, n, broken = 400, 120, 0
    for flat in (False, True):
        for _ in range(runs):
            order = rng.random(n)
            chance = np.full(n, last) if flat else last * order
            cut = latest_cut(order, rng.random(n) < chance, error, confidence)
            # The true share before the cut: `last` where it is the same everywhere, else half of that at the cut.
            broken += cut is not None and (last if flat else last * cut / 2) > error
    # Of 2 · runs tries at most 1 − confidence may fail, up to three standard deviations.
    allowed = (1 - confidence) * 2 * runs
    assert broken <= allowed + 3 * math.sqrt(allowed)


def test_area_and_auc_of_the_best_the_worst_and_no_order():
    wrong = np.array([False, False, True, True])
    order = np.arange(4.0)
    # Shares of wrong ones after 1, 2, 3 and 4: 0, 0, 1/3, 1/2; the other way round 1, 1, 2/3, 1/2.
    assert area(order, wrong) == pytest.approx((1 / 3 + 1 / 2) / 4)
    assert area(-order, wrong) == pytest.approx((1 + 1 + 2 / 3 + 1 / 2) / 4)
    assert area(np.zeros(4), wrong) == pytest.approx(0.5)  # in random order
    assert [auc(o, wrong) for o in (order, -order, np.zeros(4))] == [1.0, 0.0, 0.5]
    assert auc(order, np.ones(4, bool)) is None


def test_a_curve_counts_what_is_not_in_the_order_as_not_sent():
    found = curve(np.array([1.0, 1.0, 2.0]), np.array([False, True, True]), np.arange(3), 6)
    assert [(p.n, p.n_wrong, p.coverage, p.wrong) for p in found.points] == [(2, 1, 1 / 3, 0.5), (3, 2, 0.5, 2 / 3)]
    assert curve(np.array([]), np.array([], bool), np.array([], int), 6).points == ()


def test_the_interval_of_a_cut_is_over_questions():
    """Two of four wrong, by Wilson at n = 3 where each is of a question of its own (0.1253, 0.8747); where each two are of
    one question, one of two at n = 1 (0.0546, 0.9454). One question tells nothing of others."""
    wrong = np.array([True, True, False, False])
    apart, together, alone = (point(wrong, np.array(of), 8) for of in ([0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]))
    assert (apart.n, apart.n_wrong, apart.coverage, apart.wrong) == (4, 2, 0.5, 0.5)
    assert (apart.low, apart.high) == pytest.approx((0.1253, 0.8747), abs=1e-4)
    assert (together.low, together.high) == pytest.approx((0.0546, 0.9454), abs=1e-4)
    assert (alone.low, alone.high) == (0, 1)


@given(st.floats(0, 1))
def test_a_printed_value_passes_exactly_the_thresholds_that_the_value_passes(value):
    (rounded,) = printed(np.array([value]))
    assert rounded == float(f"{rounded:.4f}")  # as it is pasted
    assert rounded <= value + 1e-12
    assert value < rounded + 1e-4 + 1e-12
