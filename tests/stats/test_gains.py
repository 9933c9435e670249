"""Two judges against people: which is nearer, by hand and in simulation."""

import numpy as np
import pytest

from tasks.stats.agreement import Counts, balanced_accuracy, kappa, tally
from tasks.stats.gains import gain

RIGHT, SWAPPED = [[1, 0], [0, 1]], [[0, 1], [1, 0]]  # a supported and an unsupported claim, by judge and by people


def test_one_that_is_always_right_against_one_that_never_is() -> None:
    """Exchanged in k of 4 questions the difference is (4 − 2k) / 4: as far from 0 as 1 only for k = 0 and 4, 2 of 16."""
    found = gain(np.array([SWAPPED] * 4), np.array([RIGHT] * 4), balanced_accuracy, 0.0)
    assert (found.a.value, found.b.value, found.difference.value) == (0, 1, 1)
    assert found.p == pytest.approx(2 / 16)
    # All questions agree, so n = 3: of what lies between −1 and 1 the share z² / (3 + z²) may be otherwise.
    unseen = 1.959964**2 / (3 + 1.959964**2)
    assert (found.difference.low, found.difference.high) == pytest.approx((1 - 2 * unseen, 1), abs=1e-6)


def test_a_judge_and_itself() -> None:
    counts = np.array([RIGHT, SWAPPED, RIGHT])
    found = gain(counts, counts, kappa, -1.0)
    assert (found.difference.value, found.p) == (0, 1)
    # Three questions of two claims, n = 2: a question that was not drawn might differ by as much as 2 either way.
    unseen = 1.959964**2 / (2 + 1.959964**2)
    assert (found.difference.low, found.difference.high) == pytest.approx((-2 * unseen, 2 * unseen), abs=1e-6)


def test_without_two_labels_or_two_questions() -> None:
    """People who say one thing only leave no balance to be found; one question says nothing of others."""
    one_label = np.array([[[3, 0], [1, 0]]] * 3)
    assert gain(one_label, one_label, balanced_accuracy, 0.0).difference.value is None
    found = gain(np.array([SWAPPED]), np.array([RIGHT]), balanced_accuracy, 0.0)
    assert (found.difference.value, found.difference.low, found.p) == (1, None, None)


def two_judges(rng: np.random.Generator, right_a: float, right_b: float) -> tuple[Counts, Counts]:
    """Eleven questions of eight claims, some harder than others for both."""
    at = np.repeat(np.arange(11), 8)
    truth = rng.integers(0, 2, 88)
    hard = rng.normal(0, 0.15, 11)[at]
    given = [np.where(rng.random(88) < right + hard, truth, 1 - truth) for right in (right_a, right_b)]
    first, second = (tally(at, s, truth, (2, 2)) for s in given)
    return first, second


def test_without_a_difference_it_is_seldom_found() -> None:
    """Of 60 comparisons 3 have p < 0.05 by chance, and more than 9 once in two thousand; as many intervals miss 0."""
    rng = np.random.default_rng(6)
    found = [gain(*two_judges(rng, 0.75, 0.75), balanced_accuracy, 0.0, str(i)) for i in range(60)]
    assert sum(g.p is not None and g.p < 0.05 for g in found) <= 9
    assert sum(g.difference.low <= 0 <= g.difference.high for g in found) >= 51


def test_a_difference_is_found() -> None:
    """0.95 against 0.65 on 88 claims: about five standard errors of √(0.95·0.05/88 + 0.65·0.35/88) = 0.06."""
    found = gain(*two_judges(np.random.default_rng(7), 0.65, 0.95), balanced_accuracy, 0.0)
    assert found.difference.low > 0
    assert found.p < 0.01
