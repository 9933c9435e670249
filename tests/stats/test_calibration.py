"""Thresholds of the waterfall and bands of a judge: worked cases, invariants, and the guarantee in simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tasks.stats.calibration import bands, best_stages, calibrate
from tasks.stats.risk import printed

N = 120
RETRIEVAL, ANSWERABILITY, FAITHFULNESS, RELEVANCE = range(4)


def ids(n):
    return [f"q{i}" for i in range(n)]


def drawn(rng, n, areas, base):
    """Signals of which each tells wrong from right with its area under the ROC curve, independently."""
    wrong = rng.random(n) < base
    shift = math.sqrt(2) * stats.norm.ppf(areas)
    return stats.norm.cdf(rng.normal(size=(n, 4)) + np.where(wrong[:, None], 0, shift)), wrong


def test_a_perfect_signal_sends_all_that_is_right_and_the_others_stay_out():
    rng = np.random.default_rng(0)
    wrong = np.arange(N) % 4 == 0  # a quarter
    signals = rng.random((N, 4))
    signals[:, FAITHFULNESS] = np.where(wrong, 0.1, 0.9)
    found = calibrate(signals, wrong, ids(N), 0.05, 0.5)
    assert found.rule is not None
    assert found.rule.thresholds == (0.0, 0.0, 0.9, 0.0)
    assert (found.rule.fitted.coverage, found.rule.fitted.n_wrong) == (0.75, 0)
    assert (found.rule.expected.coverage, found.rule.expected.n_wrong) == (0.75, 0)
    assert found.signals[FAITHFULNESS] == 1.0
    assert found.random == 0.25


def test_two_signals_that_see_different_mistakes_are_both_used():
    rng = np.random.default_rng(1)
    kind = np.arange(300) % 3  # right, badly retrieved, badly told
    signals = rng.random((300, 4)) * 0.4 + 0.6
    signals[kind == 1, RETRIEVAL] = rng.random(100) * 0.4
    signals[kind == 2, FAITHFULNESS] = rng.random(100) * 0.4
    assert best_stages(signals, kind > 0) == (RETRIEVAL, FAITHFULNESS)
    found = calibrate(signals, kind > 0, ids(300), 0.1, 0.9)
    assert found.rule is not None
    retrieval, answerability, faithfulness, relevance = found.rule.thresholds
    assert min(retrieval, faithfulness) > 0.3
    assert (answerability, relevance) == (0.0, 0.0)
    assert found.curve.area < found.by_retrieval.area < found.random


def test_where_everything_is_wrong_nothing_is_sent():
    found = calibrate(np.random.default_rng(0).random((N, 4)), np.ones(N, bool), ids(N), 0.3, 0.5)
    assert found.rule is None
    assert found.signals == (None,) * 4


def test_where_nothing_is_wrong_all_is_sent():
    found = calibrate(np.random.default_rng(0).random((N, 4)), np.zeros(N, bool), ids(N), 0.1, 0.9)
    assert found.rule is not None
    assert found.rule.thresholds == (0.0,) * 4
    assert found.rule.fitted.n == N


def test_a_missing_signal_stops_a_trace_whatever_the_thresholds():
    rng = np.random.default_rng(0)
    signals = rng.random((N, 4))
    signals[::3, ANSWERABILITY] = np.nan
    found = calibrate(signals, np.zeros(N, bool), ids(N), 0.1, 0.5)
    assert found.n_missing == N // 3
    assert found.rule is not None
    assert found.rule.fitted.coverage == pytest.approx(2 / 3)
    signals[:] = np.nan
    assert calibrate(signals, np.zeros(N, bool), ids(N), 0.1, 0.5).rule is None


def test_neither_the_order_of_traces_nor_their_count_of_one_question_matters():
    signals, wrong = drawn(np.random.default_rng(3), N, (0.7, 0.5, 0.8, 0.6), 0.3)
    there = calibrate(signals, wrong, ids(N), 0.2, 0.5)
    back = calibrate(signals[::-1], wrong[::-1], ids(N)[::-1], 0.2, 0.5)
    assert there == back
    # A question that was asked only once over and over teaches nothing of others.
    assert calibrate(signals, wrong, ["q"] * N, 0.2, 0.5).rule is None


cases = st.integers(0, 10_000).map(lambda seed: drawn(np.random.default_rng(seed), 90, (0.7, 0.5, 0.8, 0.6), 0.25))


@settings(max_examples=15, deadline=None)
@given(cases, st.floats(0.05, 0.4), st.floats(0.05, 0.4), st.floats(0.5, 0.9))
def test_invariants(case, one, other, confidence):
    signals, wrong = case
    strict, lax = (calibrate(signals, wrong, ids(90), e, confidence) for e in sorted([one, other]))
    for found in (strict, lax):
        if found.rule is not None:
            # Who is sent passes each threshold as it is pasted, and that is all the rule says.
            pasted = np.array([float(f"{t:.4f}") for t in found.rule.thresholds])
            sent = (signals >= pasted).all(axis=1)
            assert (found.rule.fitted.n, found.rule.fitted.n_wrong) == (sent.sum(), wrong[sent].sum())
    # Who bears more mistakes never sends less.
    if strict.rule is not None:
        assert lax.rule is not None
        assert lax.rule.expected.n >= strict.rule.expected.n
        assert lax.rule.fitted.n >= strict.rule.fitted.n


@pytest.mark.parametrize("confidence", [0.5, 0.9])
@pytest.mark.parametrize(
    ("areas", "base"),
    [
        ((0.65, 0.55, 0.8, 0.5), 0.3),
        # The trap: no signal tells anything, and a few more are wrong than may be. Sending anybody breaks the target, and
        # whoever picks thresholds on the labels that he counts on finds some that seem to meet it.
        ((0.5, 0.5, 0.5, 0.5), 0.22),
    ],
)
def test_the_target_is_met_on_new_traces_as_often_as_is_claimed(areas, base, confidence):
    rng = np.random.default_rng(0)
    new, truth = drawn(rng, 20_000, areas, base)
    runs, broken, sent = 60, 0, []
    for _ in range(runs):
        signals, wrong = drawn(rng, 100, areas, base)
        rule = calibrate(signals, wrong, ids(100), 0.2, confidence).rule
        passes = np.zeros(len(truth), bool) if rule is None else (new >= np.array(rule.thresholds)).all(axis=1)
        broken += bool(passes.any()) and truth[passes].mean() > 0.2
        sent.append(passes.mean())
    allowed = (1 - confidence) * runs
    assert broken <= allowed + 3 * math.sqrt(allowed)
    if confidence == 0.5 and max(areas) > 0.7:
        assert np.mean(sent) > 0.3  # it is no guarantee by sending nothing


# A judge's bands --------------------------------------------------------------------------------------------------------


def test_bands_of_a_judge_that_is_unsure_in_the_middle():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    supported = np.where(p > 0.7, True, np.where(p < 0.3, False, rng.random(1000) < 0.5))
    found = bands(p, supported, ids(1000), 0.1, 0.9)
    assert found.high is not None
    assert found.low is not None
    # Above h, half of the claims in (h, 0.7) are not supported: at most 0.1 in all where (0.7 − h) / 2 ≤ 0.1 (1 − h),
    # h = 0.625; below l likewise l = 0.375. A confidence of 0.9 asks for a little more.
    assert 0.625 < found.high < 0.69
    assert 0.31 < found.low < 0.375
    assert found.abstain == (found.low, found.high)
    assert found.above is not None
    assert found.below is not None
    assert found.above.n == (p >= found.high).sum()
    assert found.above.n_wrong == (~supported[p >= found.high]).sum()
    assert found.below.n == (p < found.low).sum()
    assert found.below.n_wrong == supported[p < found.low].sum()


def test_a_judge_that_is_always_right_abstains_never():
    p = np.r_[np.full(100, 0.2), np.full(100, 0.9)]
    found = bands(p, p > 0.5, ids(200), 0.05, 0.9)
    assert (found.low, found.high, found.abstain) == (0.9, 0.9, None)
    assert found.above is not None
    assert found.below is not None
    assert found.above.n + found.below.n == found.n


def test_a_judge_that_knows_nothing_may_call_nothing_anything():
    rng = np.random.default_rng(0)
    found = bands(rng.random(300), rng.random(300) < 0.5, ids(300), 0.1, 0.9)
    assert (found.low, found.high, found.above, found.below) == (None, None, None, None)
    assert found.abstain == (0.0, 1.0)


def test_where_all_may_be_called_unsupported_all_of_it_lies_below():
    p = np.full(100, 0.25)
    found = bands(p, np.zeros(100, bool), ids(100), 0.1, 0.9)
    assert found.high is None
    assert found.below is not None
    assert found.below.n == 100
    assert found.low is not None
    assert found.low > 0.25


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=80), st.floats(0.05, 0.6))
def test_bands_never_overlap(rows, error):
    p, supported = (np.array(column) for column in zip(*rows, strict=True))
    found = bands(p, supported.astype(bool), ids(len(p)), error, 0.5)
    counted = sum(point.n for point in (found.above, found.below) if point)
    assert counted <= found.n
    if found.abstain and found.high is not None and found.low is not None:
        low, high = found.abstain
        assert counted + ((printed(p) >= low) & (printed(p) < high)).sum() == found.n
