"""The similarity judge: features, labels, tokens, and verdicts that do not depend on what is judged beside them."""

import numpy as np
import pytest
from kit.root import ROOT

from tasks import judges
from tasks.core import keys
from tasks.core.config import validate
from tasks.core.errors import ConfigError
from tasks.core.types import Request
from tasks.judges._base import label_of
from tasks.judges.similarity import FEATURES, Coefficients, Config, Similarity, Thresholds

SHIPPED = ROOT / "configs/judges/similarity.yaml"
ORDER = "Order #4521 was canceled by the customer on March 14, 2024."


def request(premise, hypothesis):
    return Request(keys.request_key(premise, hypothesis), premise, hypothesis)


def config(**changes):
    weights = {"cosine": 2.0, "overlap": 2.0, "bigrams": 0, "missing_numbers": -1, "missing_names": 0}
    values = {"intercept": -2.0, "coefficients": Coefficients(**weights), "thresholds": Thresholds(supported=0.5)}
    return Config(**{**values, **changes})


@pytest.fixture(scope="module")
def judge():
    made = Similarity(config())
    yield made
    made.close()


@pytest.fixture(scope="module")
def shipped():
    made = judges.load(SHIPPED)
    yield made
    made.close()


def with_model_of(judge, **changes):
    """Another judge, with an empty memory of vectors, that shares the loaded model."""
    made = Similarity(config(**changes))
    made._embedder._loaded = judge._embedder._load()
    return made


def test_identical_text_has_the_highest_features(judge):
    table, _ = judge.features([request(ORDER, ORDER)])
    # A text shares everything with itself and lacks nothing of its own.
    assert dict(zip(FEATURES, table[0], strict=True)) == {
        "cosine": pytest.approx(1, abs=1e-5),
        "overlap": 1,
        "bigrams": 1,
        "missing_numbers": 0,
        "missing_names": 0,
    }


def test_the_nearest_window_counts(judge):
    filler = " ".join(f"Sentence {i} of the manual tells how to clean the printer." for i in range(20))
    alone, beside = judge.features([request(ORDER, ORDER), request(f"{filler} {ORDER}", ORDER)])[0][:, 0]
    whole = with_model_of(judge, window_words=10_000).features([request(f"{filler} {ORDER}", ORDER)])[0][0, 0]
    assert alone >= beside > whole


def test_blank_evidence_or_claim_has_no_similarity(judge):
    table, tokens = judge.features([request("", "A claim."), request("Evidence.", ""), request("", "")])
    assert not table[:, FEATURES.index("cosine")].any()
    assert tokens[2] == 0


def test_methods_examples_that_similarity_can_see(shipped):
    # docs/methods.md#labels: the first row is supported, "Cancellations spiked in Q1" does not support the second.
    requests = [
        request(ORDER, "The customer canceled on 2024-03-14."),
        request("Cancellations spiked in Q1.", "The customer canceled in March."),
    ]
    good, bad = shipped.judge(requests)
    assert good.p_supported > bad.p_supported
    assert bad.label == "unsupported"


def test_a_missing_number_lowers_p(shipped):
    premise = "Revenue rose by 14% to 1,000 million dollars in 2023."
    same, other = shipped.judge(
        [request(premise, "Revenue rose by 14% in 2023."), request(premise, "Revenue rose by 15% in 2023.")]
    )
    assert same.p_supported > other.p_supported


def test_contradicted_is_never_the_label(shipped):
    (verdict,) = shipped.judge([request(ORDER, "The customer did not cancel.")])
    assert verdict.p_contradicted is None
    assert verdict.label != "contradicted"


def test_verdicts_do_not_depend_on_what_is_judged_beside_them(judge):
    texts = [ORDER, "Cats sleep.", "The customer canceled on 2024-03-14.", "x " * 300, "日本語のテキスト。"]
    requests = [request(p, h) for p in texts for h in texts]
    together = with_model_of(judge).judge(requests)
    backwards = with_model_of(judge).judge(requests[::-1])[::-1]
    alone = [with_model_of(judge).judge([r])[0] for r in requests]
    plain = [(v.key, v.label, v.p_supported) for v in together]
    assert plain == [(v.key, v.label, v.p_supported) for v in backwards]
    assert plain == [(v.key, v.label, v.p_supported) for v in alone]


def test_tokens_count_each_text_once_and_sum_to_what_was_read(judge):
    own = with_model_of(judge)
    requests = [request("one two", "three"), request("one two", "four"), request("four", "three")]
    # "one two" is 4 tokens with the two special ones, "three" and "four" 3 each; the last request reads nothing new.
    assert [v.tokens_in for v in own.judge(requests)] == [7, 3, 0]
    assert [v.tokens_in for v in own.judge(requests)] == [0, 0, 0]


def test_labels_are_read_off_the_rounded_p(judge):
    made = with_model_of(judge, thresholds=Thresholds(supported=0.8, partially_supported=0.6), abstain=(0.55, 0.6))
    bands = (0.8, 0.6, (0.55, 0.6))
    assert [label_of(p, *bands) for p in (0.8, 0.7999, 0.6, 0.5999, 0.55, 0.5499, 0.0)] == [
        *("supported", "partially_supported", "partially_supported"),
        *("abstained", "abstained", "unsupported", "unsupported"),
    ]
    for verdict in made.judge([request(ORDER, ORDER), request(ORDER, "Cats sleep.")]):
        assert verdict.label == label_of(verdict.p_supported, *bands)
        assert verdict.p_supported == round(verdict.p_supported, 4)


def test_p_is_the_logistic_of_the_weighted_features(judge):
    asked = request(ORDER, "The customer canceled order 4522 in Paris.")
    row = judge.features([asked])[0][0]
    weights = config().coefficients.model_dump()
    odds = -2.0 + sum(weights[f] * x for f, x in zip(FEATURES, row, strict=True))
    (verdict,) = judge.judge([asked])
    assert verdict.p_supported == pytest.approx(1 / (1 + np.exp(-odds)), abs=5.1e-5)


def test_version_sees_what_changes_a_verdict_and_nothing_else():
    def version(**changes):
        return Similarity(config(**changes)).version

    embedder = config().embedder
    assert version() == version(embedder=embedder.model_copy(update={"threads": 1, "batch_tokens": 64}))
    changed = [
        version(intercept=-1.0),
        version(thresholds=Thresholds(supported=0.6)),
        version(window_words=50),
        version(abstain=(0.4, 0.5)),
        version(embedder=embedder.model_copy(update={"max_tokens": 128})),
    ]
    assert len({version(), *changed}) == len(changed) + 1


def test_no_requests_give_no_verdicts(judge):
    assert judge.judge([]) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"thresholds": {"supported": 0.5, "partially_supported": 0.6}},
        {"abstain": [0.6, 0.5]},
        {"coefficients": {"cosine": 1.0}},
        {"thresholds": {"supported": 1.5}},
    ],
)
def test_config_mistakes_are_config_errors(changes):
    data = config().model_dump()
    with pytest.raises(ConfigError, match=r"judge\.yaml"):
        validate(Config, {**data, **changes}, "judge.yaml")
