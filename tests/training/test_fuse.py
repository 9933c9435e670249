"""The fusion: what was planted is found again, no set counts more than another, and a set that is left out stays unseen."""

from collections import Counter

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kit.models import bert
from transformers import BertForSequenceClassification

from bench.accuracy.labeled import Claims
from tasks.core import keys
from tasks.core.config import validate
from tasks.core.types import Request
from tasks.engines.classifier import ClassifierConfig
from tasks.judges.nli import FEATURES, Coefficients, Config, Fusion, Nli
from training import fuse

EVERY = range(len(FEATURES))
# Per unit of the feature; bigrams and missing_names are of no use.
PLANTED = np.array([1.0, 0.6, -0.8, 1.5, 0.0, -1.2, 0.0, -0.7])
SPREAD = np.array([2, 2, 2, 0.5, 1, 1, 1, 1])  # of the features


def claims(truth, chunks=1):
    labels = ["supported" if t else "unsupported" for t in truth]
    owners = np.repeat(np.arange(len(labels)), chunks)
    return Claims(labels, [str(i) for i in range(len(labels))], [], owners, Counter())


def drawn(count, seed, chunks=1, weights=PLANTED, intercept=0.0):
    """A set in which a claim is supported by the odds of its best chunk."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(count * chunks, len(FEATURES))) * SPREAD
    odds = (intercept + table @ weights).reshape(count, chunks).max(axis=1)
    return fuse.Sample(claims(rng.random(count) < 1 / (1 + np.exp(-odds)), chunks), table)


# Fitting --------------------------------------------------------------------------------------------------------------


UNSHRUNK = 1e-6  # next to no penalty: what is planted is found at its own size


def test_planted_weights_are_found_again():
    found = fuse.fit([drawn(4000, 1), drawn(4000, 2)], EVERY, UNSHRUNK)
    # The standard error of a weight is below 0.06 per spread of its feature, here at 8,000 claims: 0.2 is far outside.
    assert np.abs((found.weights - PLANTED) * SPREAD).max() < 0.2


def test_the_chunk_that_supports_a_claim_is_found_among_others():
    # What decides is what is missing: entailment and words, by which chunks are chosen at first, say little of that.
    weights = np.array([0.2, 0.1, -0.6, 0.5, 0.0, -2.0, 0.0, 0.0])
    samples = [drawn(1500, seed, chunks=3, weights=weights) for seed in (1, 2)]
    found = fuse.fit(samples, EVERY, UNSHRUNK)
    # As well as if the right chunks had been known: standard errors are about 0.1 at 3,000 claims.
    assert np.abs((found.weights - weights) * SPREAD).max() < 0.3
    for sample in samples:
        right = fuse.nearest(sample.claims, sample.table @ weights)
        chosen = fuse.nearest(sample.claims, found.odds(sample.table))
        assert (right == chosen).mean() > 0.9  # one in three by chance


def test_features_that_are_not_asked_for_get_no_weight():
    found = fuse.fit([drawn(500, 1)], [FEATURES.index("nearest"), FEATURES.index("overlap")])
    assert {f for f, w in zip(FEATURES, found.weights, strict=True) if w} == {"nearest", "overlap"}


def test_any_features_can_be_weighed():
    """Other ones than the judge's, here a single score of which nothing is log-odds: zero log-odds are between the classes."""
    truth = np.tile([0, 1], 200)
    table = (truth + np.random.default_rng(0).normal(size=400) / 10)[:, None] + 5
    found = fuse.fit([fuse.Sample(claims(truth), table)], [0], UNSHRUNK, start=[1.0], own=())
    assert found.weights.shape == (1,)
    # The classes' means are 5 and 6.
    assert -found.intercept / found.weights[0] == pytest.approx(5.5, abs=0.02)


def test_a_feature_that_never_varies_does_no_harm():
    sample = drawn(500, 1)
    table = sample.table.copy()
    table[:, FEATURES.index("missing_names")] = 3.0
    found = fuse.fit([fuse.Sample(sample.claims, table)], EVERY)
    assert np.isfinite(found.odds(table)).all()
    assert found.weights[FEATURES.index("missing_names")] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("copies", [1, 10])
def test_a_set_does_not_count_more_for_being_large(copies):
    # Two sets that say the reverse of each other: with equal weight neither wins, so nothing is learned from the one
    # feature that they have. By the number of claims the larger one would win.
    table = np.zeros((200, len(FEATURES)))
    table[:, 0] = np.random.default_rng(0).normal(size=200)
    truth = table[:, 0] > 0
    small = fuse.Sample(claims(truth), table)
    large = fuse.Sample(claims(np.tile(~truth, copies)), np.tile(table, (copies, 1)))
    assert abs(fuse.fit([small, large], EVERY).weights[0]) < 1e-3
    assert fuse.fit([large], EVERY).weights[0] < -0.5


def test_a_set_that_is_repeated_leaves_the_decision_where_it_was():
    first, second = drawn(600, 1), drawn(600, 2, weights=PLANTED[::-1].copy())
    tenfold = fuse.Sample(claims(np.tile(second.claims.truth, 10)), np.tile(second.table, (10, 1)))
    one, other = fuse.fit([first, second], EVERY), fuse.fit([first, tenfold], EVERY)
    # Only the penalty's pull differs, which is next to nothing at this size.
    assert other.weights == pytest.approx(one.weights, abs=0.03)
    assert other.intercept == pytest.approx(one.intercept, abs=0.03)


@pytest.mark.parametrize("shares", [(0.9, 0.9), (0.2, 0.2), (0.95, 0.4)])
def test_an_ordinary_pair_keeps_the_label_that_the_model_gives(shares):
    samples = []
    for i, share in enumerate(shares):
        rng = np.random.default_rng(i)
        truth = rng.random(400) < share
        table = rng.normal(size=(400, len(FEATURES))) + 3 + 0.5 * truth[:, None]
        samples.append(fuse.Sample(claims(truth), table))
    found = fuse.fit(samples, EVERY)
    # Ordinary: the mean of both classes of both sets, each weighing the same. There the fit says what the model says.
    ordinary = np.mean([s.table[s.claims.truth == t].mean(axis=0) for s in samples for t in (0, 1)], axis=0)
    ordinary[fuse.OWN] = 0
    assert found.odds(ordinary[None, :])[0] == pytest.approx(0, abs=1e-9)


def test_the_penalty_shrinks_corrections_more_than_the_model():
    loose, tight = (drawn(2000, 1) for _ in range(2))
    free = fuse.fit([loose], EVERY)
    few = fuse.fit([tight], fuse.OWN)
    assert 0 < free.weights[FEATURES.index("overlap")] < PLANTED[FEATURES.index("overlap")]
    assert (few.weights[fuse.OWN] > 0).all()


@given(st.lists(st.booleans(), min_size=2, max_size=50).filter(lambda t: 0 < sum(t) < len(t)))
def test_both_classes_of_a_set_weigh_one_half(truth):
    found = fuse._balance(np.array(truth, dtype=np.int64))
    assert found[np.array(truth)].sum() == pytest.approx(0.5)
    assert found[~np.array(truth)].sum() == pytest.approx(0.5)


def test_the_left_out_set_is_never_seen():
    samples = {name: drawn(300, seed) for seed, name in enumerate(("one", "two", "three"))}
    found = fuse.left_out(samples, "two", EVERY)
    turned = fuse.Sample(claims(1 - samples["two"].claims.truth), -3 * samples["two"].table)
    again = fuse.left_out(samples | {"two": turned}, "two", EVERY)
    assert again.intercept == found.intercept
    assert (again.weights == found.weights).all()
    # Which it would show if it were.
    assert (fuse.left_out(samples | {"two": turned}, "one", EVERY).weights != found.weights).any()


@given(st.lists(st.lists(st.floats(-9, 9), min_size=1, max_size=5), min_size=1, max_size=20), st.randoms())
def test_the_nearest_request_has_its_claims_highest_score(scores, rng):
    rows = [(i, s) for i, own in enumerate(scores) for s in own]
    rng.shuffle(rows)  # requests need not stand claim after claim
    owners, flat = np.array([i for i, _ in rows]), np.array([s for _, s in rows])
    made = Claims(["supported"] * len(scores), [], [], owners, Counter())
    found = fuse.nearest(made, flat)
    assert (owners[found] == np.arange(len(scores))).all()
    assert flat[found].tolist() == [max(own) for own in scores]


def test_odds_are_the_intercept_and_the_weighed_features():
    fit = fuse.Fit(0.5, np.array([1.0, 0, 0, 2.0, 0, 0, 0, -1.0]))
    # 0.5 + 1 * 3 + 2 * 0.25 - 1 * 2 = 2
    assert fit.odds(np.array([[3.0, 9, 9, 0.25, 9, 9, 9, 2.0]])).tolist() == [2.0]


# Features, kept -------------------------------------------------------------------------------------------------------


class Counting(Nli):
    """The judge as it is; counts how often features are computed."""

    computed = 0

    def features(self, requests):
        Counting.computed += 1
        return super().features(requests)


def judge(model, **changes):
    return Counting(Config(classifier=ClassifierConfig(model=str(model), max_tokens=64), **changes))


def test_features_are_computed_once_per_model_and_requests(tmp_path):
    folder = bert.base(tmp_path / "model")
    torch.manual_seed(0)
    names = {0: "entailment", 1: "neutral", 2: "contradiction"}
    BertForSequenceClassification.from_pretrained(folder, id2label=names).save_pretrained(folder)
    texts = [(p.premise, p.hypothesis) for p in bert.pairs(3)]
    requests = [Request(keys.request_key(*pair), *pair) for pair in texts]
    made = Claims(["supported"] * 3, ["a"] * 3, requests, np.arange(3), Counter())
    first = judge(folder)
    sample = fuse.sample(made, first, tmp_path / "cache")
    assert sample.table == pytest.approx(first.features(requests))
    before = Counting.computed
    again = fuse.sample(made, first, tmp_path / "cache")
    # What weighs the features, and what is made of them, does not change them.
    fusion = Fusion(intercept=1.0, coefficients=Coefficients(windows=1.0, overlap=1.0))
    fuse.sample(made, judge(folder, fusion=fusion, abstain=(0.4, 0.6)), tmp_path / "cache")
    assert Counting.computed == before
    assert (again.table == sample.table).all()
    fewer = Claims(["supported"] * 2, ["a"] * 2, requests[:2], np.arange(2), Counter())
    assert (fuse.sample(fewer, first, tmp_path / "cache").table == sample.table[:2]).all()
    fuse.sample(made, judge(folder, window_words=20), tmp_path / "cache")
    fuse.sample(made, judge(folder, nearest_sentences=1), tmp_path / "cache")
    assert Counting.computed == before + 3
    first.close()


# The file ------------------------------------------------------------------------------------------------------------


def test_the_config_holds_the_fit_and_is_one_of_the_judge():
    samples = {"one": drawn(50, 1), "two": drawn(70, 2)}
    fit = fuse.Fit(-1.25, np.array([0.5, 0.25, 2.0, 1.0, 0.0, 0.0, -0.125, 0.00004]))
    text = fuse.yaml_text(samples, fit)
    config = validate(Config, yaml.safe_load(text), "nli.yaml")
    assert (config.classifier.engine, config.classifier.dtype) == ("onnx_cpu", "int8")
    assert config.languages == ("en",)
    assert config.fusion.intercept == -1.25
    found = config.fusion.coefficients.model_dump(exclude_defaults=True)
    assert found == {"windows": 0.5, "nearest": 0.25}  # what is fused
    assert config.thresholds.contradicted == fuse.CONTRADICTED
    assert "120 claims in 2 sets (one, two)" in " ".join(text.replace("#", " ").split())
