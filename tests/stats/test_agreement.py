"""How far two sides agree: by hand, on published examples, and what must hold whatever they say."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score

from tasks.stats import agreement as core
from tasks.stats.agreement import MOST_LEFT_OUT, Counts, agreement, interval, one_against_rest, tally

MATRICES = st.lists(st.lists(st.integers(0, 9), min_size=9, max_size=9), min_size=1, max_size=5)
MEASURES = ((core.share, 0.0), (core.kappa, -1.0), (core.weighted_kappa, -1.0), (core.balanced_accuracy, 0.0))


def of(table: list[list[int]]) -> Counts:
    return np.array([table])


def ratings(table: Counts) -> tuple[list[int], list[int]]:
    """What A and what B said of each thing of a table."""
    k, m = table.shape
    pairs = [(i, j) for i in range(k) for j in range(m) for _ in range(table[i, j])]
    return [i for i, _ in pairs], [j for _, j in pairs]


def test_by_hand() -> None:
    """35 of 50 are equal. By chance (25·30 + 25·20) / 50² = 0.5 would be: κ = (0.7 − 0.5) / 0.5 = 0.4. Of the first
    label 2·20 / (25 + 30) agree, of the second 2·15 / (25 + 20); the third is in no use. B gave the first to 30, of
    which A gave it to 20, and the second to 20, of which A gave it to 15.
    """
    found = agreement(np.array([[[20, 5, 0], [10, 15, 0], [0, 0, 0]]]))
    assert (found.n, found.share.value) == (50, 0.7)
    assert found.kappa.value == pytest.approx(0.4)
    assert found.balanced.value == pytest.approx((40 / 55 + 30 / 45) / 2)
    assert found.accuracy.value == pytest.approx((20 / 30 + 15 / 20) / 2)
    assert found.kappa.low is None  # one question: no interval


def test_kappa_of_cohens_own_example() -> None:
    """Two clinicians, 200 patients, three diagnoses (Cohen 1960, Educational and Psychological Measurement 20, p. 37–46):
    0.70 agree, 0.5·0.6 + 0.3·0.3 + 0.2·0.1 = 0.41 by chance, κ = 0.29 / 0.59 = 0.492.
    """
    assert interval(of([[88, 14, 18], [10, 40, 10], [2, 6, 12]]), core.kappa).value == pytest.approx(0.492, abs=5e-4)


def test_weighted_kappa_by_hand() -> None:
    """Off by one: 2 of 10; by two: 1, which weighs 4: together 6. By chance, with margins 3 3 4 on both sides, off by one
    (9 + 9 + 12 + 12) / 10 and by two 4 · (12 + 12) / 10: 13.8. κ = 1 − 6 / 13.8.
    """
    assert interval(of([[2, 1, 0], [0, 2, 1], [1, 0, 3]]), core.weighted_kappa).value == pytest.approx(1 - 6 / 13.8)


def test_rank_correlation_of_a_published_example() -> None:
    """Ten people's IQ and hours of television: ρ = 1 − 6 · 194 / (10 · 99) = −29/165
    (en.wikipedia.org/wiki/Spearman's_rank_correlation_coefficient, "Example").
    """
    iq = [86, 97, 99, 100, 101, 103, 106, 110, 112, 113]
    hours = [2, 20, 28, 27, 50, 29, 7, 17, 6, 12]
    first, second = (np.unique(v, return_inverse=True)[1] for v in (iq, hours))
    counts = tally(np.arange(10), first, second, (10, 10))
    assert interval(counts, core.rank_correlation).value == pytest.approx(-29 / 165)


@settings(deadline=None, max_examples=40)
@given(MATRICES)
def test_what_always_holds(rows: list[list[int]]) -> None:
    counts = np.array(rows).reshape(-1, 3, 3)
    found, back = agreement(counts), agreement(counts.transpose(0, 2, 1))
    for one, other in zip(
        (found.share, found.kappa, found.balanced), (back.share, back.kappa, back.balanced), strict=True
    ):
        assert one.value == (None if other.value is None else pytest.approx(other.value))
    for measure, least in MEASURES:
        found_one = interval(counts, measure, least)
        if found_one.value is not None and found_one.low is not None and found_one.high is not None:
            assert least <= found_one.low <= found_one.value + 1e-12
            assert found_one.value - 1e-12 <= found_one.high <= 1
    first, second = ratings(counts.sum(axis=0))
    if len({*first, *second}) > 1:
        assert found.kappa.value == pytest.approx(cohen_kappa_score(first, second))
        weighted = interval(counts, core.weighted_kappa).value
        assert weighted == pytest.approx(cohen_kappa_score(first, second, labels=[0, 1, 2], weights="quadratic"))
    if len({*second}) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of labels that A alone gave
            assert found.accuracy.value == pytest.approx(balanced_accuracy_score(second, first))


@settings(deadline=None)
@given(MATRICES)
def test_ranks_are_those_of_scipy(rows: list[list[int]]) -> None:
    first, second = ratings(np.array(rows).reshape(-1, 3, 3).sum(axis=0))
    assume(len({*first}) > 1)
    assume(len({*second}) > 1)
    counts = tally(np.zeros(len(first)), np.array(first), np.array(second), (3, 3))
    found = interval(counts, core.rank_correlation).value
    assert found == pytest.approx(stats.spearmanr(first, second).statistic)


def test_with_itself() -> None:
    counts = np.array([np.diag([3, 1]), np.diag([2, 4])])
    found = agreement(counts)
    assert [v.value for v in (found.share, found.kappa, found.balanced, found.accuracy)] == [1, 1, 1, 1]
    # Two questions of 4 and 6 claims count as 100 / 52 = 1.923, so n = 0.962: from −1 on, 2 n / (n + z²) remain for sure.
    n = 100 / 52 / 2
    assert (found.kappa.low, found.kappa.high) == pytest.approx((2 * n / (n + 1.959964**2) - 1, 1), abs=1e-6)
    assert interval(counts, core.rank_correlation).high == 1


def test_what_is_not_defined_is_none() -> None:
    assert agreement(np.zeros((2, 3, 3), np.int64)).share.value is None
    one_label = agreement(np.array([[[5, 0], [0, 0]], [[4, 0], [0, 0]]]))
    assert (one_label.share.value, one_label.kappa.value, one_label.accuracy.value) == (1, None, None)
    only_here = agreement(np.array([[[5, 0], [0, 0]], [[4, 0], [0, 3]]]))  # without the second question κ is undefined
    assert (only_here.kappa.value, only_here.kappa.low) == (1, None)
    constant = of([[3, 2], [0, 0]])  # A says one thing only
    assert interval(constant, core.rank_correlation).value is None


def test_one_label_against_the_rest() -> None:
    """Of [[5, 1, 0], [2, 4, 1], [0, 0, 3]] label 1: both 4, A alone 2 + 1, B alone 1 + 0, neither 5 + 0 + 0 + 3."""
    counts = of([[5, 1, 0], [2, 4, 1], [0, 0, 3]])
    assert one_against_rest(counts, 1).tolist() == [[[4, 3], [1, 8]]]
    assert interval(one_against_rest(counts, 1), core.recall).value == pytest.approx(4 / 5)


def test_counting_by_cluster() -> None:
    """Clusters in order of their names; a row stands for as many things as it says."""
    first, second = np.array([0, 1, 1]), np.array([0, 0, 1])
    counts = tally(np.array(["b", "a", "b"]), first, second, (2, 2), np.array([1, 2, 3]))
    assert counts.tolist() == [[[0, 0], [2, 0]], [[1, 0], [0, 3]]]
    assert tally(np.array([], str), first[:0], second[:0], (2, 3)).shape == (0, 2, 3)


def labels(questions: int, rng: np.random.Generator) -> tuple[Counts, Counts, Counts]:
    """Three claims of each question. A repeats B's label of a claim with a chance that is the question's own, 0.8 on average,
    and else draws one as B does. So κ is 0.8 over all questions; A gives a label that B gave in 0.8 + 0.2 · (its frequency)
    of cases, and the mean of that over four labels is 0.85.
    """
    shares = [0.6, 0.2, 0.1, 0.1]
    at = np.repeat(np.arange(questions), 3)
    truth, other = (rng.choice(4, len(at), p=shares) for _ in range(2))
    return at, np.where(rng.random(len(at)) < rng.beta(4, 1, questions)[at], truth, other), truth


@pytest.mark.parametrize("questions", [5, 15, 60])
def test_intervals_hold_what_is_true_as_often_as_they_say(questions: int) -> None:
    """Nominal 95%, of 300 samples each. Three standard errors of a coverage of 92% are 4.7 points.

    Five questions may lack all but one label, or have a label in one question alone: then there is no interval.
    """
    rng = np.random.default_rng(questions)
    held: dict[str, list[bool]] = {"kappa": [], "accuracy": []}
    for _ in range(300):
        found = agreement(tally(*labels(questions, rng), (4, 4)))
        for name, one, true in (("kappa", found.kappa, 0.8), ("accuracy", found.accuracy, 0.85)):
            if one.low is not None and one.high is not None:
                held[name].append(one.low <= true <= one.high)
    assert min(len(h) for h in held.values()) >= 280
    assert all(np.mean(h) > 0.92 - 0.047 for h in held.values())


def test_intervals_of_rank_correlations_hold_it_too() -> None:
    """Grades of 1 to 5 by two graders, the second off by a normal error; the truth is that of a large sample."""
    rng = np.random.default_rng(4)

    def grades(n: int) -> Counts:
        first = rng.choice(5, n, p=[0.2, 0.1, 0.1, 0.2, 0.4])
        return tally(np.arange(n), np.clip(np.rint(first + rng.normal(0, 1, n)), 0, 4).astype(np.int64), first, (5, 5))

    for measure in (core.rank_correlation, core.weighted_kappa):
        true = float(measure(grades(300_000).sum(axis=0)[None])[0])
        found = [interval(grades(50), measure) for _ in range(300)]
        held = sum(i.low <= true <= i.high for i in found if i.low is not None and i.high is not None)
        assert held >= 270


def test_many_questions_are_left_out_in_groups() -> None:
    """The interval of 5,000 questions rests on 1,000 groups of them, and is about as wide as that of each by itself."""
    at, first, second = labels(5000, np.random.default_rng(5))
    grouped = tally(at, first, second, (4, 4))
    alone = np.zeros((5000, 4, 4), np.int64)
    np.add.at(alone, (at, first, second), 1)
    assert len(grouped) == MOST_LEFT_OUT
    wide, plain = (interval(c, core.kappa) for c in (grouped, alone))
    assert wide.value == pytest.approx(plain.value)
    assert wide.high - wide.value == pytest.approx(plain.high - plain.value, rel=0.1)
