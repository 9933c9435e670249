"""Corrected means: their intervals cover what people would have found, and no more of it than they say."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import t as student

from tasks.core.statistics import corrected_mean

SIMULATIONS = 500
# Of 500 intervals with true coverage p, 3.5 standard errors are 3.4 points at p = 0.95.
NOISE = 0.034
TRUTH = 60.0  # what people find on average, over all questions that could be asked


@dataclass(frozen=True)
class World:
    """Answers to questions that repeat, a judge that is wrong in level and by chance, and people who are right.

    Attributes:
        night: Questions of the night.
        reviewed: Questions of which answers are reviewed.
        shared: The reviewed questions are of the same night.
        shrinks: Share of an answer's distance from the mean that the judge does not see.
    """

    night: int
    reviewed: int
    shared: bool = False
    shrinks: float = 0.3

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The arguments of `corrected_mean`."""
        first, second = self._answers(rng, self.night), self._answers(rng, self.reviewed)
        night = np.array([[judge.sum(), len(judge)] for judge, _ in first])
        labelled = first[: self.reviewed] if self.shared else second
        seen = np.array([[(people - judge).sum(), len(judge)] for judge, people in labelled])
        blank = np.zeros((self.reviewed if not self.shared else self.night - self.reviewed, 2))
        if self.shared:
            return night[:, 0], night[:, 1], *np.concatenate([seen, blank]).T
        both = np.concatenate([night, blank]), np.concatenate([np.zeros((self.night, 2)), seen])
        return both[0][:, 0], both[0][:, 1], both[1][:, 0], both[1][:, 1]

    def _answers(self, rng: np.random.Generator, questions: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of each question one to four answers, which resemble each other, by the judge and by people."""
        found = []
        for n in rng.integers(1, 5, questions):
            people = TRUTH + 15 * rng.standard_normal() + 8 * rng.standard_normal(n)
            judge = 20 + (1 - self.shrinks) * people + 6 * rng.standard_normal() + 6 * rng.standard_normal(n)
            found.append((judge, people))
        return found


def coverage(world: World) -> float:
    rng = np.random.default_rng(world.night + world.reviewed)
    found = [corrected_mean(*world.draw(rng)) for _ in range(SIMULATIONS)]
    return float(np.mean([f is not None and f.low <= TRUTH <= f.high for f in found]))


@pytest.mark.parametrize(
    "world",
    [
        World(200, 40),
        World(60, 15),
        World(30, 200),
        World(80, 40, shared=True),
        World(40, 40, shared=True),
        World(80, 40, shared=True, shrinks=0.8),
    ],
)
def test_the_interval_covers_what_people_find_as_often_as_it_says(world: World) -> None:
    """Nominal 95%, though the judge is off by 2 to 28 points; a ratio of sums over few clusters may cost 2 points."""
    assert 0.93 - NOISE < coverage(world) < 0.95 + NOISE


def test_what_the_judge_alone_says_does_not() -> None:
    """The judge's mean is 20 + 0.7 · 60 = 62 with a standard error near 17 / √200; corrected by 2, it is 60."""
    found = corrected_mean(*World(200, 4_000).draw(np.random.default_rng(1)))
    assert found is not None
    assert found.raw == pytest.approx(62, abs=4)
    assert found.rectifier == pytest.approx(-2, abs=0.6)  # standard error √(0.3² · 17² + 8.5²) / √4000 = 0.16
    assert found.mean == found.raw + found.rectifier


def test_where_all_is_reviewed_it_is_the_interval_of_what_people_found() -> None:
    """The judge cancels out: what is left is the mean of people's values ± t standard errors over questions."""
    rng = np.random.default_rng(5)
    people, judge, one = rng.uniform(0, 100, 50), rng.uniform(0, 100, 50), np.ones(50)
    found = corrected_mean(judge, one, people - judge, one)
    assert found is not None
    error = people.std(ddof=1) / math.sqrt(50)
    assert found.mean == pytest.approx(people.mean())
    # The degrees of freedom are between those of one sample and of two.
    half = found.high - found.mean
    assert student.ppf(0.975, 98) * error - 1e-9 <= half <= student.ppf(0.975, 49) * error + 1e-9


def test_by_hand() -> None:
    """Two questions each. The night: 40 and 60, mean 50, deviations ∓10 / 2 · √2: variance 2 · 5² · 2 = 100.

    The reviewed, others: −30 and −10, rectifier −20, variance 100 again. Together 200, with 200² / (100² + 100²) = 2
    degrees of freedom, of which t is 4.3027.
    """
    found = corrected_mean(
        np.array([40.0, 60, 0, 0]), np.array([1.0, 1, 0, 0]), np.array([0.0, 0, -30, -10]), np.array([0.0, 0, 1, 1])
    )
    assert found is not None
    assert (found.raw, found.rectifier, found.mean) == (50, -20, 30)
    assert found.high - 30 == pytest.approx(4.302653 * math.sqrt(200), rel=1e-6)
    assert 30 - found.low == pytest.approx(found.high - 30)


def test_answers_that_repeat_each_other_widen_it() -> None:
    """Four equal answers to each question say no more than one; 50 times as many questions leave t out of it."""
    rng = np.random.default_rng(6)
    totals, changes, one = rng.uniform(0, 100, 400), rng.uniform(-50, 0, 400), np.ones(400)
    once = corrected_mean(totals, one, changes, one)
    again = corrected_mean(4 * totals, 4 * one, 4 * changes, 4 * one)
    assert once is not None
    assert again is not None
    assert (again.low, again.high) == pytest.approx((once.low, once.high))


def test_a_judge_that_is_always_right_widens_nothing() -> None:
    """The rectifier is 0 without any variance: the interval is that of the judge's mean, by hand (0 and 1 in turn)."""
    values, one = np.arange(1000) % 2 * 1.0, np.ones(1000)
    found = corrected_mean(values, one, np.zeros(1000), one)
    assert found is not None
    half = student.ppf(0.975, 999) * math.sqrt(0.25 / 999)
    assert (found.low, found.high) == pytest.approx((0.5 - half, 0.5 + half))


def test_no_spread_no_width() -> None:
    two = np.ones(2)
    found = corrected_mean(100 * two, two, -10 * two, two)
    assert found is not None
    assert (found.low, found.mean, found.high) == (90, 90, 90)


@pytest.mark.parametrize(
    ("counts", "reviewed"), [([1, 0, 0], [0, 1, 1]), ([1, 1, 0], [0, 0, 3]), ([0, 0, 0], [1, 1, 1])]
)
def test_below_two_questions_on_either_side_there_is_none(counts: list[float], reviewed: list[float]) -> None:
    zeros = np.zeros(3)
    assert corrected_mean(zeros, np.array(counts, float), zeros, np.array(reviewed, float)) is None
