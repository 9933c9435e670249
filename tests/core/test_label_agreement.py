"""How far two judges agree on claims: by hand, and what must hold whatever they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from tasks.core.agreement import agreement

MATRICES = st.lists(st.lists(st.integers(0, 9), min_size=9, max_size=9), min_size=1, max_size=5)


def test_by_hand() -> None:
    """35 of 50 are equal. By chance (25·30 + 25·20) / 50² = 0.5 would be: κ = (0.7 − 0.5) / 0.5 = 0.4. Of the first
    label 2·20 / (25 + 30) agree, of the second 2·15 / (25 + 20); the third is in no use.
    """
    found = agreement(np.array([[[20, 5, 0], [10, 15, 0], [0, 0, 0]]]))
    assert (found.n, found.share.value) == (50, 0.7)
    assert found.kappa.value == pytest.approx(0.4)
    assert found.balanced.value == pytest.approx((40 / 55 + 30 / 45) / 2)
    assert found.kappa.low is None  # one question: no interval


@settings(deadline=None)
@given(MATRICES)
def test_what_always_holds(rows: list[list[int]]) -> None:
    counts = np.array(rows).reshape(-1, 3, 3)
    found, back = agreement(counts), agreement(counts.transpose(0, 2, 1))
    for one, other in zip(
        (found.share, found.kappa, found.balanced), (back.share, back.kappa, back.balanced), strict=True
    ):
        assert one.value == (None if other.value is None else pytest.approx(other.value))
        if one.value is not None and one.low is not None and one.high is not None:
            assert one.low <= one.value <= one.high <= 1
    total = counts.sum(axis=0)
    said = [(i, j) for i in range(3) for j in range(3) for _ in range(total[i, j])]
    if len({label for pair in said for label in pair}) > 1:
        first, second = zip(*said, strict=True)
        assert found.kappa.value == pytest.approx(cohen_kappa_score(first, second))


def test_with_itself() -> None:
    counts = np.array([np.diag([3, 1]), np.diag([2, 4])])
    found = agreement(counts)
    assert [v.value for v in (found.share, found.kappa, found.balanced)] == [1, 1, 1]
    assert (found.kappa.low, found.kappa.high) == (1, 1)


def test_what_is_not_defined_is_none() -> None:
    assert agreement(np.zeros((2, 3, 3), np.int64)).share.value is None
    one_label = agreement(np.array([[[5, 0], [0, 0]], [[4, 0], [0, 0]]]))
    assert (one_label.share.value, one_label.kappa.value) == (1, None)
    only_here = agreement(np.array([[[5, 0], [0, 0]], [[4, 0], [0, 3]]]))  # without the second question κ is undefined
    assert (only_here.kappa.value, only_here.kappa.low) == (1, None)
