"""Intervals over clusters: they cover what they should, and repeats of one question don't pass for news."""

import numpy as np
import pytest

from tasks.core import statistics
from tasks.core.statistics import mean_interval

SIMULATIONS = 400
# Of 400 intervals with true coverage p, 3.5 standard errors are 3.8 points at p = 0.95.
NOISE = 0.038


def plain(values: np.ndarray) -> tuple[float, float]:
    """The interval as if every value were of a question of its own."""
    found = mean_interval(values, np.ones(len(values)), "plain")
    assert found is not None
    return found


def clustered(rng: np.random.Generator, questions: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums and counts of answers whose question moves them three times as much as chance does; their mean is 50."""
    n = rng.integers(1, 6, questions).astype(float)
    return n * (50 + 15 * rng.standard_normal(questions)) + np.sqrt(n) * 5 * rng.standard_normal(questions), n


def coverage(questions: int) -> float:
    rng = np.random.default_rng(questions)
    found = [mean_interval(*clustered(rng, questions), str(i)) for i in range(SIMULATIONS)]
    return float(np.mean([f is not None and f[0] <= 50 <= f[1] for f in found]))


@pytest.mark.parametrize("questions", [20, 60])
def test_the_interval_covers_the_mean_as_often_as_it_says(questions: int) -> None:
    """Nominal 95%; a ratio of two sums over 20 clusters may cost 2 points (the weights vary too), chance `NOISE`."""
    assert 0.93 - NOISE < coverage(questions) < 0.95 + NOISE


def test_above_the_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MOST_RESAMPLED", 100)
    assert 0.94 - NOISE < coverage(200) < 0.95 + NOISE


def test_both_ways_agree_where_both_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each end of 1,000 resamples has a standard error of about 4% of the half-width; 4 of them are 16%."""
    totals, n = clustered(np.random.default_rng(3), 1_000)
    drawn = mean_interval(totals, n, "seed")
    monkeypatch.setattr(statistics, "MOST_RESAMPLED", 0)
    normal = mean_interval(totals, n, "seed")
    assert drawn is not None
    assert normal is not None
    assert drawn == pytest.approx(normal, abs=0.16 * (normal[1] - normal[0]) / 2)


@pytest.mark.parametrize("questions", [200, 2_000])
def test_answers_that_repeat_each_other_widen_it(questions: int) -> None:
    """Four equal answers to each question say no more than one: √4 = 2 times as wide as if they were four questions'."""
    values = np.random.default_rng(1).uniform(0, 100, questions)
    found = mean_interval(4 * values, np.full(questions, 4.0), "clustered")
    low, high = plain(np.repeat(values, 4))
    assert found is not None
    assert (found[1] - found[0]) / (high - low) == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize("questions", [200, 2_000])
def test_repeats_that_don_t_resemble_each_other_change_nothing(questions: int) -> None:
    values = np.random.default_rng(2).uniform(0, 100, (questions, 2))
    found = mean_interval(values.sum(axis=1), np.full(questions, 2.0), "clustered")
    low, high = plain(values.ravel())
    assert found is not None
    # The correlation of 200 pairs of independent numbers has a standard error of 0.07, which moves the width by half.
    assert (found[1] - found[0]) / (high - low) == pytest.approx(1, rel=0.2)


def test_without_repeats_it_is_the_plain_interval_by_hand() -> None:
    """Above the limit: mean ± 1.96 standard errors. 0 and 1 in turn: variance 1/4 · n/(n − 1)."""
    n = 5_000
    half = 1.959964 * (0.25 * n / (n - 1) / n) ** 0.5
    assert plain(np.arange(n) % 2 * 1.0) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)


def test_the_same_data_and_seed_give_the_same_interval() -> None:
    totals, n = clustered(np.random.default_rng(4), 50)
    assert mean_interval(totals, n, "a", "b") == mean_interval(totals, n, "a", "b")
    assert mean_interval(totals, n, "a", "b") != mean_interval(totals, n, "ab")


def test_below_two_questions_there_is_none() -> None:
    assert mean_interval(np.array([]), np.array([]), "s") is None
    assert mean_interval(np.array([300.0]), np.array([4.0]), "s") is None


def test_it_stays_within_the_data() -> None:
    assert mean_interval(np.array([100.0, 200.0]), np.array([1.0, 2.0]), "s") == (100, 100)
    assert mean_interval(np.array([20.0, 80.0]), np.ones(2), "s") == (20, 80)
