"""Corrected means: their intervals cover what people would have found, and no more of it than they say."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from tasks.stats.intervals import corrected_mean, interval, means

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
        labeled = first[: self.reviewed] if self.shared else second
        seen = np.array([[(people - judge).sum(), len(judge)] for judge, people in labeled])
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
    found = [corrected_mean(*world.draw(rng), 100) for _ in range(SIMULATIONS)]
    return float(np.mean([f is not None and f.low <= TRUTH <= f.high for f in found]))


@pytest.mark.parametrize(
    "world",
    [
        World(200, 40),
        World(60, 5),
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
    found = corrected_mean(*World(200, 4_000).draw(np.random.default_rng(1)), 100)
    assert found is not None
    assert found.raw == pytest.approx(62, abs=4)
    assert found.rectifier == pytest.approx(-2, abs=0.6)  # standard error √(0.3² · 17² + 8.5²) / √4000 = 0.16
    assert found.mean == found.raw + found.rectifier


def test_where_all_is_reviewed_it_is_the_interval_of_what_people_found() -> None:
    """The judge cancels out: what is left is the mean of people's values, with its own interval."""
    rng = np.random.default_rng(5)
    people, judge, one = rng.uniform(0, 100, 50), rng.uniform(0, 100, 50), np.ones(50)
    found = corrected_mean(judge, one, people - judge, one, 100)
    assert found is not None
    assert found.mean == pytest.approx(people.mean())
    assert (found.low, found.high) == pytest.approx(interval(means(people, one), 0, 100))


def test_by_hand() -> None:
    """Two questions each, apart. The night: 40 and 60, whose interval is (3.693, 96.307) (`test_statistics.py`).

    The reviewed: −30 and −10, on a scale from −100 to 100 the share 0.4 with moves ∓0.05. Variance ½ · 2 · 0.05² = 0.0025,
    n = 1, design effect 0.0025 / 0.24 = 0.010417; q = 0.010417 z + 0.989583 · 12.7062 = 12.5943, a = q² · 0.010417 =
    1.65225; the middle is (0.4 + a / 2) / (1 + a) = 0.46230, half √(0.24 a + a² / 4) / (1 + a) = 0.39165: from −85.87 to
    70.79. The sum, 30, reaches down by √(46.307² + 65.87²) and up by √(46.307² + 90.79²): both beyond the scale.
    """
    found = corrected_mean(
        np.array([40.0, 60, 0, 0]),
        np.array([1.0, 1, 0, 0]),
        np.array([0.0, 0, -30, -10]),
        np.array([0.0, 0, 1, 1]),
        100,
    )
    assert found is not None
    assert (found.raw, found.rectifier, found.mean) == (50, -20, 30)
    assert (found.low, found.high) == (0, 100)
    changes = interval(means(np.array([-30.0, -10]), np.ones(2)), -100, 100)
    assert changes == pytest.approx((-85.87, 70.79), abs=0.01)


def test_parts_that_are_apart_add_as_squares() -> None:
    """How far the ends lie from the sum: the root of the squares of how far they lie from the parts."""
    rng = np.random.default_rng(7)
    night, change, zeros, ones = rng.uniform(20, 60, 40), rng.uniform(-20, 10, 40), np.zeros(40), np.ones(40)
    found = corrected_mean(np.r_[night, zeros], np.r_[ones, zeros], np.r_[zeros, change], np.r_[zeros, ones], 100)
    parts = interval(means(night, ones), 0, 100), interval(means(change, ones), -100, 100)
    assert found is not None
    assert None not in parts
    down, up = (
        math.hypot(*(abs(part[i] - x.mean()) for part, x in zip(parts, (night, change), strict=True) if part))
        for i in (0, 1)
    )
    assert (found.low, found.high) == pytest.approx((found.mean - down, found.mean + up))


def test_answers_that_repeat_each_other_widen_it() -> None:
    """Four equal answers to each question say no more than one."""
    rng = np.random.default_rng(6)
    totals, changes, one = rng.uniform(0, 100, 400), rng.uniform(-50, 0, 400), np.ones(400)
    seen = np.arange(400) < 200
    once = corrected_mean(totals, one, changes * seen, one * seen, 100)
    again = corrected_mean(4 * totals, 4 * one, 4 * changes * seen, 4 * one * seen, 100)
    assert once is not None
    assert again is not None
    assert (again.low, again.high) == pytest.approx((once.low, once.high))


def test_a_judge_that_was_right_each_time_may_still_err_elsewhere() -> None:
    """A thousand questions without a change: of changes between −100 and 100 the share z² / (999 + z²) may be otherwise.

    The interval of the judge's mean alone (0 and 100 in turn) is 50 ∓ 3.1; with ∓0.38 · 1 it is hardly wider.
    """
    values, ones, zeros = np.arange(1000) % 2 * 100.0, np.ones(1000), np.zeros(1000)
    found = corrected_mean(np.r_[values, zeros], np.r_[ones, zeros], np.zeros(2000), np.r_[zeros, ones], 100)
    alone = interval(means(values, ones), 0, 100)
    assert found is not None
    assert alone is not None
    unseen = 100 * 1.959964**2 / (999 + 1.959964**2)
    assert found.high - 50 == pytest.approx(math.hypot(alone[1] - 50, unseen))
    assert found.high - 50 < 1.02 * (alone[1] - 50)


@pytest.mark.parametrize(
    ("counts", "reviewed"), [([1, 0, 0], [0, 1, 1]), ([1, 1, 0], [0, 0, 3]), ([0, 0, 0], [1, 1, 1])]
)
def test_below_two_questions_on_either_side_there_is_none(counts: list[float], reviewed: list[float]) -> None:
    zeros = np.zeros(3)
    assert corrected_mean(zeros, np.array(counts, float), zeros, np.array(reviewed, float), 100) is None
