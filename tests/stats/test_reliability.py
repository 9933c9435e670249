"""Krippendorff's alpha: the worked examples of its author, and what it is where all agree or nobody can."""

import numpy as np
import pytest

from tasks.stats.agreement import interval, share
from tasks.stats.reliability import alpha, coincidences


def of(*reviewers: str) -> tuple[list[int], list[list[str]], list[str]]:
    """Clusters, labels and the words, from a row of each reviewer; a dot is no label."""
    given = [[label for label in unit if label != "."] for unit in zip(*reviewers, strict=True)]
    return list(range(len(given))), given, sorted({label for unit in given for label in unit})


def found(*reviewers: str) -> float:
    return float(alpha(coincidences(*of(*reviewers)).sum(axis=0)[None])[0])


def test_krippendorffs_examples() -> None:
    """Krippendorff 2011, sections A to C: two observers with two and with five labels, four with gaps."""
    assert found("0100000010", "1110010000") == pytest.approx(0.095, abs=0.0005)
    assert found("aabbdcccedda", "babbbccceddd") == pytest.approx(0.692, abs=0.0005)
    four = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
    assert found(*four) == pytest.approx(0.743, abs=0.0005)


def test_all_agree_or_all_say_the_same() -> None:
    assert found("abab", "abab", "abab") == 1
    assert np.isnan(found("aaaa", "aaaa"))  # nobody could have disagreed
    assert np.isnan(found("ab..", "..ab"))  # no thing has two labels


def test_a_thing_with_one_label_says_nothing() -> None:
    assert found("aabb.", "abbb.") == found("aabba", "abbb.")


def test_the_share_of_equal_pairs() -> None:
    """Three reviewers: all the same on the first thing, 1 of 3 pairs on the second; two on the third, who differ.

    Weighted by labels: (3 · 1 + 3 · 1/3 + 2 · 0) / 8.
    """
    clusters, given, labels = of("aaa", "aab", "ab.")
    tables = coincidences(clusters, given, labels)
    assert tables.sum(axis=(1, 2)) == pytest.approx([3, 3, 2])
    assert interval(tables, share, 0.0).value == pytest.approx(4 / 8)


def test_things_of_one_question_are_left_out_together() -> None:
    clusters = ["q", "q", "r", "s"]
    tables = coincidences(clusters, [["a", "a"], ["a", "b"], ["b", "b"], ["a", "a"]], ["a", "b"])
    assert tables.shape == (3, 2, 2)
    assert tables[0].tolist() == [[2, 1], [1, 0]]
    value = interval(tables, alpha)
    assert value.low is not None
    assert value.high is not None
    assert value.value is not None
    assert value.low <= value.value <= value.high
