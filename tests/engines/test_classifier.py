"""What all classifiers share: the config, the reading of class names, and how a pair becomes token ids."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.core import keys
from tasks.core.config import validate
from tasks.core.errors import ConfigError, EngineError
from tasks.engines._classifiers import labels_of
from tasks.engines.classifier import ClassifierConfig, Encoder, Labels, open_classifier

FAMILIES = ("bert", "roberta", "modernbert", "deberta")
TEMPLATE = "{premise}</s>{hypothesis}"  # as MiniCheck's RoBERTa reads a pair


def encoder(folder, **options):
    return Encoder(ClassifierConfig(model=folder, **{"max_tokens": 64, **options}))


def plain(own, text):
    """Ids of a text by the tokenizer itself, without special tokens."""
    return own.tokenizer(text, add_special_tokens=False)["input_ids"]


# The config


@pytest.mark.parametrize(
    ("given", "key", "words"),
    [
        ({"dtype": "int8"}, "", "transformers_cpu for dtype int8; it knows float32, bfloat16, or use onnx_cpu"),
        ({"engine": "onnx_cpu", "dtype": "bfloat16"}, "", "or use transformers_cpu or vllm_offline"),
        ({"dtype": "float16"}, "", "or use vllm_offline"),
        ({"dtype": "int4"}, "dtype", "'float32', 'bfloat16', 'float16' or 'int8'"),
        ({"template": "{premise}"}, "", "once each"),
        ({"template": "{premise} {hypothesis} {premise}"}, "", "once each"),
        ({"labels": {"contradicted": 0}}, "", "without 'supported'"),
        ({"labels": {"supported": 0, "contradicted": 0}}, "", "one class"),
        ({"labels": {"supported": -1}}, "labels.supported", "greater than or equal to 0"),
        ({"engine": "vllm_offline", "token_types": "model"}, "", "'zero'"),
        ({"token_types": "model", "template": TEMPLATE}, "", "'zero'"),
        ({"gpu_memory_share": 0.5}, "", "use engine vllm_offline"),
        ({"tensor_parallel": 2}, "", "use engine vllm_offline"),
        ({"engine": "vllm_offline", "threads": 2}, "", "threads"),
        ({"max_tokens": 8}, "max_tokens", "16"),
    ],
)
def test_what_no_engine_can_do_is_a_config_error(given, key, words):
    with pytest.raises(ConfigError, match=words) as raised:
        validate(ClassifierConfig, {"model": "./nli", **given}, "judge.yaml", "classifier")
    assert str(raised.value).startswith(f"judge.yaml: classifier{'.' * bool(key)}{key} is ")


def test_every_engine_knows_float32_and_its_own_keys():
    for engine in ("transformers_cpu", "onnx_cpu", "vllm_offline"):
        ClassifierConfig(model="./nli", engine=engine)
    ClassifierConfig(model="./nli", engine="onnx_cpu", dtype="int8", threads=1)
    ClassifierConfig(model="./nli", engine="vllm_offline", dtype="float16", gpu_memory_share=0.5, tensor_parallel=2)


def test_hub_model_needs_a_commit_and_a_relative_folder_is_relative_to_the_file():
    with pytest.raises(ConfigError, match="pin a commit hash"):
        validate(ClassifierConfig, {"model": "a/b"}, "judge.yaml")
    assert ClassifierConfig(model="a/b", revision="0" * 40).on_hub
    assert ClassifierConfig(model="../nli").relative_to(Path("/etc/configs")).model == "/etc/nli"


# The names of classes: published models order them in every way.


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["contradiction", "entailment", "neutral"], Labels(1, 0)),  # cross-encoder/nli-*
        (["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], Labels(2, 0)),  # roberta-large-mnli
        (["entailment", "neutral", "contradiction"], Labels(0, 2)),  # MoritzLaurer's DeBERTa
        (["entailment", "not_entailment"], Labels(0, None)),  # MoritzLaurer's two-class models
        (["hallucinated", "consistent"], Labels(1, None)),  # HHEM
        (["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"], Labels(0, 1)),  # FEVER
    ],
)
def test_classes_are_found_by_name(names, expected):
    assert labels_of(dict(enumerate(names)), len(names), None, "classifier 'x'") == expected


@pytest.mark.parametrize(
    "names",
    [
        ["LABEL_0", "LABEL_1", "LABEL_2"],
        ["entailment", "LABEL_1", "neutral"],  # class 1 may be the contradiction
        ["entailment", "entailed"],
        ["neutral", "contradiction"],
        ["toxic", "safe"],
    ],
)
def test_names_that_do_not_tell_ask_for_labels(names):
    with pytest.raises(EngineError, match=r"classifier 'x' calls its \d classes .* `labels: \{supported: 0"):
        labels_of(dict(enumerate(names)), len(names), None, "classifier 'x'")


def test_labels_of_the_config_go_first():
    names = dict(enumerate(["entailment", "neutral", "contradiction"]))
    assert labels_of(names, 3, {"supported": 2, "contradicted": 1}, "x") == Labels(2, 1)
    assert labels_of({0: "LABEL_0", 1: "LABEL_1"}, 2, {"supported": 1}, "x") == Labels(1, None)
    with pytest.raises(EngineError, match="classes 0 to 1, labels names class 2"):
        labels_of({0: "no", 1: "yes"}, 2, {"supported": 2}, "x")


def test_a_model_with_one_class_gives_no_probability():
    with pytest.raises(EngineError, match="a score and no probability"):
        labels_of({0: "entailment"}, 1, {"supported": 0}, "x")


# From pairs to token ids


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pair_that_fits_is_encoded_as_the_tokenizer_does(tiny, family):
    own = encoder(tiny(family))
    expected = own.tokenizer("Apples lower cholesterol.", "The customer canceled.")["input_ids"]
    assert own.ids([("Apples lower cholesterol.", "The customer canceled.")]) == [expected]
    counts = own.count(["Apples lower cholesterol.", "The customer canceled."])
    assert sum(counts) == len(expected) - (own.tokenizer.num_special_tokens_to_add(pair=True))


@pytest.mark.parametrize("family", FAMILIES)
def test_token_types_are_given_only_where_asked_for(tiny, family):
    pair = ("Apples.", "No.")
    ids, types = encoder(tiny(family)).encode([pair])
    assert types is None
    again, types = encoder(tiny(family), token_types="model").encode([pair]) if family == "bert" else (ids, None)
    assert again == ids
    if types:  # [CLS] premise [SEP] are 0, hypothesis [SEP] are 1
        first = len(plain(encoder(tiny(family)), "Apples.")) + 2
        assert types == [[0] * first + [1] * (len(ids[0]) - first)]


@pytest.mark.parametrize("family", ["roberta", "modernbert", "deberta"])
def test_token_types_of_a_model_that_has_none_are_an_error(tiny, family):
    with pytest.raises(EngineError, match="has no token types"):
        encoder(tiny(family), token_types="model").encode([("a", "b")])


@pytest.mark.parametrize(
    "template", [None, TEMPLATE, "Given: {premise}\nIs it true? {hypothesis} !", "{hypothesis}: {premise}"]
)
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_only_the_premise_is_cut_and_only_as_far_as_needed(tiny, family, template):
    own = encoder(tiny(family), template=template, max_tokens=100)
    hypothesis = "Eating apples can reduce blood pressure."
    premise = "Order 2024 was canceled on March 14. " * 20
    (ids,) = own.ids([(premise, hypothesis)])
    # A cut inside a word may leave one token of room; the pair encoding cuts tokens and leaves none.
    assert 100 - len(ids) in ((0,) if template is None else (0, 1, 2))
    text = own.tokenizer.decode(ids).replace(" ", "").lower()
    assert hypothesis.replace(" ", "").lower() in text
    assert premise.replace(" ", "")[:20].lower() in text


@settings(max_examples=150, deadline=None)
@given(
    premise=st.text(max_size=200),
    hypothesis=st.text(min_size=1, max_size=40),
    template=st.sampled_from([None, TEMPLATE]),
)
def test_any_texts_fit_and_the_hypothesis_is_whole(shared_encoders, premise, hypothesis, template):
    own = shared_encoders[template]
    if own.count([hypothesis])[0] >= own.room() - 4:
        return
    (ids,) = own.ids([(premise, hypothesis)])
    assert len(ids) <= 64
    # Byte pairs are the text itself, so reading them back shows what was kept.
    special = set(own.tokenizer.all_special_ids)
    ends = [i for i, token in enumerate(ids) if token in special]
    assert len(ends) == (4 if template is None else 3)  # <s> a </s></s> b </s>, or <s> a </s> b </s>
    assert own.tokenizer.decode(ids[ends[-2] + 1 : ends[-1]]) == own._plain(hypothesis)
    assert own._plain(premise).startswith(own.tokenizer.decode(ids[1 : ends[1]]).rstrip("\ufffd"))


@pytest.fixture(scope="module")
def shared_encoders(tiny):
    return {template: encoder(tiny("roberta"), template=template) for template in (None, TEMPLATE)}


def test_room_is_what_both_texts_may_take_together(tiny):
    own = encoder(tiny("bert"))
    assert own.room() == 64 - 3  # [CLS] and twice [SEP]
    hypothesis = "x x x"
    fits, cut = "x " * (own.room() - 3), "x " * (own.room() - 2)
    assert [len(ids) for ids in own.ids([(fits, hypothesis), (cut, hypothesis)])] == [64, 64]
    assert own.ids([(fits, hypothesis)]) == own.ids([(cut, hypothesis)])
    assert encoder(tiny("roberta"), template=TEMPLATE).room() == 64 - 3  # <s>, </s> of the template, </s>


@pytest.mark.parametrize("template", [None, TEMPLATE])
def test_a_hypothesis_without_room_for_a_premise_is_an_error_without_its_text(tiny, template):
    own = encoder(tiny("roberta"), template=template)
    with pytest.raises(EngineError, match=r"a hypothesis has \d+ tokens.*room for 6[01]") as raised:
        own.ids([("short", "x"), ("short", "secret " * 30)])
    assert "secret" not in str(raised.value)


def test_a_template_that_fills_max_tokens_is_an_error(tiny):
    own = encoder(tiny("roberta"), max_tokens=16, template="word " * 20 + TEMPLATE)
    with pytest.raises(EngineError, match="max_tokens is 16, of which special tokens and template leave -"):
        own.ids([("a", "b")])


def test_special_tokens_spelled_out_in_a_text_are_text(tiny):
    own = encoder(tiny("bert"))
    sep = own.tokenizer.sep_token_id
    (ids,) = own.ids([("One [SEP] two [CLS] three", "[SEP]")])
    assert ids.count(sep) == 2
    assert ids.count(own.tokenizer.cls_token_id) == 1
    own = encoder(tiny("roberta"), template=TEMPLATE)
    (ids,) = own.ids([("One </s> two", "Three <pad>")])
    assert ids.count(own.tokenizer.sep_token_id) == 2  # that of the template, and the last one
    assert own.tokenizer.pad_token_id not in ids


def test_a_template_is_filled_in_once(tiny):
    own = encoder(tiny("roberta"), template="{premise} ### {hypothesis} {}")
    (ids,) = own.ids([("say {hypothesis} and {premise} {0}", "yes")])
    assert own.tokenizer.decode(ids, skip_special_tokens=True) == "say {hypothesis} and {premise} {0} ### yes {}"


def test_a_template_gives_the_ids_of_the_whole_text(tiny):
    own = encoder(tiny("roberta"), template=TEMPLATE)
    assert own.ids([("Apples.", "No.")]) == [own.tokenizer("Apples.</s>No.")["input_ids"]]


def test_no_pairs_give_no_ids(tiny):
    assert encoder(tiny("bert")).encode([]) == ([], None)
    assert encoder(tiny("bert"), token_types="model").encode([]) == ([], [])
    assert encoder(tiny("bert")).count([]) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_max_tokens_beyond_the_model_are_an_error(tiny, family):
    # RoBERTa declares 130 positions, of which two are never used.
    assert encoder(tiny(family), max_tokens=128).room() > 100
    with pytest.raises(EngineError, match="reads 128 tokens, max_tokens is 129"):
        encoder(tiny(family), max_tokens=129).room()


# Versions and opening


def version(folder, **options):
    return keys.version(open_classifier(ClassifierConfig(model=str(folder), **options)).describe())


def test_version_sees_what_decides_the_numbers_and_not_how_they_are_made(tiny):
    folder = tiny("bert")
    first = version(folder)
    assert first == version(folder, engine="vllm_offline", gpu_memory_share=0.5, tensor_parallel=2)
    assert first == version(folder, threads=1, batch_tokens=64)
    others = [
        version(folder, dtype="bfloat16"),
        version(folder, max_tokens=100),
        version(folder, template=TEMPLATE),
        version(folder, token_types="model"),
        version(folder, labels={"supported": 0}),
    ]
    assert len({first, *others}) == 6


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json", "modeling.py", "spm.model"])
def test_version_is_that_of_the_files_not_of_their_place(tiny, tmp_path, file):
    copy, changed = tmp_path / "copy", tmp_path / "changed"
    shutil.copytree(tiny("bert"), copy)
    shutil.copytree(tiny("bert"), changed)
    with (changed / file).open("ab") as out:
        out.write(b"\n")
    assert version(copy) == version(tiny("bert"))
    assert version(changed) != version(copy)


def test_version_of_a_hub_model_is_its_commit():
    def of(digit):
        return keys.version(open_classifier(ClassifierConfig(model="a/b", revision=digit * 40)).describe())

    assert of("0") == of("0") != of("1")


@pytest.mark.parametrize("engine", ["transformers_cpu", "vllm_offline"])
def test_opening_loads_nothing_and_a_missing_model_is_an_error_on_first_use(engine):
    own = open_classifier(ClassifierConfig(model="/no/such/folder", engine=engine))
    for use in (
        own.describe,
        own.room,
        lambda: own.labels,
        lambda: own.count(["x"]),
        lambda: own.classify([("a", "b")]),
    ):
        with pytest.raises(EngineError, match="classifier '/no/such/folder' is not a folder"):
            use()
    own.close()


def test_importing_the_interface_does_not_import_torch():
    code = (
        "import sys, tasks.engines.classifier, tasks.engines.transformers_cpu, tasks.engines.vllm.classifier\n"
        "print({'torch', 'transformers', 'vllm', 'onnxruntime'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
