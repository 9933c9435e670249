"""How far a judge agrees with people: the measures as scikit-learn has them, honest intervals, claims by their best chunk."""

from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, roc_auc_score

from bench.accuracy import agreement
from bench.accuracy.labeled import Claims
from tasks.core import keys
from tasks.core.types import Request, Verdict
from tasks.judges.replay import Config, ReplayJudge

pytestmark = pytest.mark.slow
MEASURES = ("balanced_accuracy", "kappa", "auc")
ROW = st.tuples(st.integers(0, 1), st.integers(0, 1), st.floats(0, 1), st.integers(0, 4))
BOTH = st.lists(ROW, min_size=2, max_size=60).filter(lambda rows: {r[0] for r in rows} == {0, 1})


def columns(rows):
    truth, predicted, scores, weights = map(np.array, zip(*rows, strict=True))
    return truth, predicted, scores, weights.astype(float)


def drawn(count, seed=0):
    """Truth, labels that are right three times in four, and scores that go with them."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, count)
    predicted = np.where(rng.random(count) < 0.75, truth, 1 - truth)
    return truth, predicted, predicted + rng.normal(size=count)


# Measures -------------------------------------------------------------------------------------------------------------


@given(BOTH)
def test_the_measures_are_those_of_scikit_learn(rows):
    truth, predicted, scores, _ = columns(rows)
    found = agreement._measures(truth, predicted, scores, np.ones((1, len(truth))))[0]
    expected = (
        balanced_accuracy_score(truth, predicted),
        cohen_kappa_score(truth, predicted),
        roc_auc_score(truth, scores),
    )
    assert found == pytest.approx(expected)


@given(BOTH)
def test_a_weight_counts_a_claim_so_many_times(rows):
    truth, predicted, scores, weights = columns(rows)
    found = agreement._measures(truth, predicted, scores, weights[None])[0]
    again = np.repeat(np.arange(len(truth)), weights.astype(int))
    if len(set(truth[again].tolist())) < 2:
        assert np.isnan(found).all()  # one class alone has no measures
    else:
        expected = agreement._measures(truth[again], predicted[again], scores[again], np.ones((1, len(again))))[0]
        assert found == pytest.approx(expected)


def test_what_agreement_reports_are_these_measures():
    truth, predicted, scores = drawn(300)
    found = agreement.agreement(truth, predicted, scores, [str(i) for i in range(300)])
    expected = (
        balanced_accuracy_score(truth, predicted),
        cohen_kappa_score(truth, predicted),
        roc_auc_score(truth, scores),
    )
    assert tuple(found) == MEASURES
    assert [row[0] for row in found.values()] == pytest.approx(expected)
    assert all(low < estimate < high for estimate, low, high in found.values())


def test_perfect_agreement_is_certain():
    truth = np.array([0, 1] * 20)
    found = agreement.agreement(truth, truth, truth.astype(float), [str(i) for i in range(40)])
    assert found == dict.fromkeys(MEASURES, (1.0, 1.0, 1.0))


# Intervals ------------------------------------------------------------------------------------------------------------


def test_claims_that_belong_together_count_as_one_draw():
    # Ten copies of every claim tell nothing new: where each ten belong together the interval stays as it was, where they
    # are taken for independent it shrinks by about the root of ten.
    truth, predicted, scores = drawn(100)
    names = [f"{i:03d}" for i in range(100)]
    once = agreement.agreement(truth, predicted, scores, names)
    copies = [np.tile(x, 10) for x in (truth, predicted, scores)]
    together = agreement.agreement(*copies, names * 10)
    apart = agreement.agreement(*copies, [f"{i:04d}" for i in range(1000)])
    for measure in MEASURES:
        assert together[measure] == pytest.approx(once[measure])
        width, narrow = once[measure][2] - once[measure][1], apart[measure][2] - apart[measure][1]
        assert width / narrow == pytest.approx(10**0.5, rel=0.2)


def test_an_interval_is_as_wide_as_theory_has_it():
    truth, predicted, scores = drawn(400)
    estimate, low, high = agreement.agreement(truth, predicted, scores, [str(i) for i in range(400)])[
        "balanced_accuracy"
    ]
    found, rejected = predicted[truth == 1].mean(), 1 - predicted[truth == 0].mean()
    variance = found * (1 - found) / (truth == 1).sum() + rejected * (1 - rejected) / (truth == 0).sum()
    # Half the sum of two shares, each binomial; 1.96 standard deviations on either side.
    assert high - low == pytest.approx(2 * 1.96 * variance**0.5 / 2, rel=0.1)
    assert (low + high) / 2 == pytest.approx(estimate, abs=0.01)


def test_draws_that_lack_a_class_are_left_out():
    # One supported claim in ten: a third of the draws have none of it, and nothing to say.
    truth = np.array([1] + [0] * 9)
    found = agreement.agreement(truth, truth, truth.astype(float), [str(i) for i in range(10)])
    assert found == dict.fromkeys(MEASURES, (1.0, 1.0, 1.0))


@pytest.fixture
def few_draws(monkeypatch):
    """For what is not about intervals: they take nearly all the time."""
    monkeypatch.setattr(agreement, "DRAWS", 20)


# Judges ---------------------------------------------------------------------------------------------------------------


def recorded(tmp_path, *found):
    """Claims `(label of people, verdicts by chunk)`, and a judge that gives these verdicts."""
    requests, owners, verdicts = [], [], []
    for i, (_, predicted) in enumerate(found):
        for k, fields in enumerate(predicted):
            key = keys.request_key(f"chunk {k}", f"claim {i}")
            requests.append(Request(key, f"chunk {k}", f"claim {i}"))
            owners.append(i)
            verdicts.append(Verdict(key, tokens_in=5, **fields))
    (tmp_path / "records.jsonl").write_bytes(b"\n".join(msgspec.json.encode(v) for v in verdicts))
    labels = [label for label, _ in found]
    claims = Claims(labels, [str(i) for i in range(len(labels))], requests, np.array(owners), Counter())
    return claims, ReplayJudge(Config(records="records.jsonl"), tmp_path)


def verdict(label, p=None):
    return {"label": label, "p_supported": p}


NO, YES, UNSURE, FAILED = (
    verdict("unsupported", 0.2),
    verdict("supported", 0.9),
    verdict("abstained", 0.5),
    {"failure": "too_long"},
)


def test_a_claim_is_supported_if_the_judge_says_so_of_any_chunk(tmp_path, few_draws):
    claims, judge = recorded(
        tmp_path,
        ("supported", [NO, YES]),
        ("unsupported", [NO, NO]),
        ("supported", [FAILED, YES]),
        ("partially_supported", [verdict("partially_supported", 0.4), verdict("contradicted", 0.1)]),
        ("supported", [UNSURE, NO]),  # one chunk does not say it, the other is not read: not supported
    )
    row, cost = agreement.judged(claims, judge)
    # Found: two of three supported claims, both of the others.
    assert row["balanced_accuracy"][0] == pytest.approx((2 / 3 + 1) / 2)
    # Best p by claim: 0.9, 0.2, 0.9, 0.4, 0.5; every supported one is above every other.
    assert row["auc"][0] == 1
    assert (cost["claims"], cost["unanswered"], cost["pairs"], cost["tokens_in"]) == (5, 0, 10, 50)


def test_claims_that_the_judge_leaves_unanswered_are_counted_and_not_measured(tmp_path, few_draws):
    claims, judge = recorded(
        tmp_path,
        ("supported", [YES]),
        ("unsupported", [NO]),
        ("supported", [UNSURE, FAILED]),
        ("unsupported", [FAILED]),
        ("unsupported", [UNSURE, UNSURE]),
    )
    row, cost = agreement.judged(claims, judge)
    assert cost["unanswered"] == 3
    assert row["balanced_accuracy"][0] == row["kappa"][0] == 1


def test_a_judge_without_probabilities_is_ranked_by_its_labels(tmp_path, few_draws):
    claims, judge = recorded(
        tmp_path,
        ("supported", [verdict("supported")]),
        ("supported", [verdict("unsupported")]),
        ("unsupported", [verdict("unsupported"), verdict("contradicted")]),
    )
    # One of two pairs in the right order, the other tied: (1 + 1/2) / 2.
    assert agreement.judged(claims, judge)[0]["auc"][0] == 0.75


def test_a_cascade_asks_the_second_judge_where_the_first_is_uncertain_or_gives_no_label(tmp_path):
    pairs = [  # by the first judge, by the second, and who decides
        (verdict("unsupported", 0.45), YES, 2),  # the band begins here
        (verdict("supported", 0.55), NO, 1),  # and ends before
        (NO, YES, 1),
        (FAILED, YES, 2),
        (verdict("abstained", 0.9), NO, 2),
        (verdict("supported", 0.5), FAILED, 1),
        (verdict("supported"), NO, 1),  # no probability, and a label
    ]
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    claims, first = recorded(tmp_path / "1", *(("supported", [one]) for one, _, _ in pairs))
    _, second = recorded(tmp_path / "2", *(("supported", [two]) for _, two, _ in pairs))
    found = agreement.Cascade(first, second, (0.45, 0.55)).judge(claims.requests)
    by = {1: first.judge(claims.requests), 2: second.judge(claims.requests)}
    assert [v.label for v in found] == [by[who][i].label for i, (_, _, who) in enumerate(pairs)]
    assert [v.tokens_in for v in found] == [0 if who == 1 else 5 for _, _, who in pairs]  # the second one's alone


def test_the_cost_of_replies_of_which_some_can_not_be_used(tmp_path, few_draws):
    claims, judge = recorded(tmp_path, ("supported", [YES, FAILED]), ("unsupported", [NO, NO]))
    cost = agreement.judged(claims, judge)[1] | {"seconds": 0.5, "tokens_cached": 5, "tokens_out": 10}
    # Three labels of four pairs; 20 tokens read, 5 of them from the cache, and 10 written: 25 in half a second.
    assert agreement.cost_columns(cost) == ("4", "75.0", "0.5", "20", "25", "50")
    assert agreement.cost_columns(cost | {"seconds": 0.0})[-1] == ""  # seconds are rounded


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--claims", "0"], "--claims 0 is not a valid number of claims"),
        (["--band", "0.6", "0.4"], "--band 0.6 0.4 is no range of p_supported"),
        (["--first", "configs/judges/nli.yaml"], "have the same name"),
        (["--judge", "configs/judges/none.yaml"], "configs/judges/none.yaml"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message, tmp_path, monkeypatch, capsys):
    data = tmp_path / "claims.jsonl"
    data.write_text('{"claim": "Tea is hot.", "chunks": ["Tea is hot."], "label": "supported"}\n', encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["agreement", *options, "--data", str(data)])
    with pytest.raises(SystemExit) as ended:
        agreement.main()
    assert message in f"{ended.value} {capsys.readouterr().err}"
