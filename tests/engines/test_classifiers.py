"""Classification through transformers: the model's own numbers, and the same ones whatever shares the batch."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from kit.models.classifiers import FAMILIES, NAMES, PAIRS, make

from tasks.core.errors import EngineError
from tasks.engines.classifier import ClassifierConfig, Labels
from tasks.engines.transformers_cpu import TransformersClassifier

TEMPLATE = "{premise}</s>{hypothesis}"
# Several of a padded length and one alone: 25, 26 and 27 tokens share a batch, and so on.
MANY = [*PAIRS, *[("apples lower blood pressure " * n, "the customer canceled") for n in range(1, 20)]]
REMOTE = '''
import torch
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

class CountConfig(PretrainedConfig):
    model_type = "count"

class CountClassifier(PreTrainedModel):
    """Logits are the sum of the ids and the number of tokens, in hundreds."""
    config_class = CountConfig

    def __init__(self, config):
        super().__init__(config)
        self.scale = torch.nn.Parameter(torch.ones(1))
        self.post_init()

    def forward(self, input_ids, attention_mask):
        summed = (input_ids * attention_mask).sum(dim=1)
        logits = torch.stack([summed, attention_mask.sum(dim=1)], dim=1) / 100 * self.scale
        return SequenceClassifierOutput(logits=logits)
'''


def classifier(folder, **options):
    return TransformersClassifier(ClassifierConfig(model=str(folder), **{"max_tokens": 100, **options}))


def reference(folder, pairs, dtype=torch.float32, *, types):
    """Probabilities by transformers alone, one pair at a time and not padded."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=dtype).eval()
    rows = []
    for pair in pairs:
        cut = {"truncation": "only_first", "max_length": 100}
        inputs = tokenizer(*pair, return_tensors="pt", return_token_type_ids=types, **cut)  # none are zeros
        with torch.inference_mode():
            rows.append(torch.softmax(model(**inputs).logits.double(), dim=-1)[0].numpy())
    return np.array(rows)


@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_model_on_its_own(tiny, family):
    own = classifier(tiny(family))
    found = own.classify(PAIRS)
    assert np.abs(found.probabilities - reference(tiny(family), PAIRS, types=False)).max() < 1e-5
    assert found.probabilities.dtype == np.float64
    assert found.probabilities.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert found.tokens.tolist() == [len(ids) for ids in own._encoder.ids(PAIRS)]
    assert own.labels == Labels(supported=NAMES.index("entailment"), contradicted=NAMES.index("contradiction"))
    # Else the comparisons here would compare nothing.
    assert np.ptp(found.probabilities, axis=0).max() > 0.2


def test_reads_token_types_where_asked_to(tiny):
    folder = tiny("bert")
    found = classifier(folder, token_types="model").classify(PAIRS).probabilities
    assert np.abs(found - reference(folder, PAIRS, types=True)).max() < 1e-5
    assert np.abs(found - classifier(folder).classify(PAIRS).probabilities).max() > 1e-3


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_probabilities_do_not_depend_on_what_is_classified_beside_a_pair(tiny, family, dtype):
    own = classifier(tiny(family), dtype=dtype)
    together = own.classify(MANY)
    small = classifier(tiny(family), dtype=dtype, batch_tokens=64)
    small._model = own._model
    turned = small.classify(MANY[::-1])
    alone = np.vstack([own.classify([pair]).probabilities for pair in MANY])
    assert np.array_equal(together.probabilities, alone)
    assert np.array_equal(together.probabilities, turned.probabilities[::-1])
    assert np.array_equal(together.tokens, turned.tokens[::-1])


def test_token_types_stay_with_their_pair(tiny):
    own = classifier(tiny("bert"), token_types="model")
    together = own.classify(MANY).probabilities
    assert np.array_equal(together, np.vstack([own.classify([pair]).probabilities for pair in MANY]))


def test_bfloat16_is_near_float32_and_not_it(tiny):
    exact = classifier(tiny("bert")).classify(PAIRS).probabilities
    rough = classifier(tiny("bert"), dtype="bfloat16").classify(PAIRS).probabilities
    # 8 bits of mantissa: an error of 2**-9 at each of some ten steps, on logits of order 1.
    assert 0 < np.abs(exact - rough).max() < 0.1


def test_a_template_is_read_as_one_text(tiny):
    folder = tiny("roberta")
    found = classifier(folder, template=TEMPLATE).classify([("Apples.", "No.")]).probabilities
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = torch.softmax(model(**tokenizer("Apples.</s>No.", return_tensors="pt")).logits, dim=-1).numpy()
    assert np.abs(found - expected).max() < 1e-5


def test_no_pairs_keep_their_shape(tiny):
    found = classifier(tiny("bert")).classify([])
    assert found.probabilities.shape == (0, 3)
    assert found.tokens.shape == (0,)


def test_close_frees_the_model_and_a_later_call_loads_it_again(tiny):
    own = classifier(tiny("bert"))
    before = own.classify(PAIRS[:1]).probabilities
    own.close()
    assert own._model is None
    assert np.array_equal(own.classify(PAIRS[:1]).probabilities, before)


@pytest.fixture
def counting(tiny, tmp_path, monkeypatch):
    """Folder of a model that comes with code of its own."""
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    folder = tmp_path / "count"
    shutil.copytree(tiny("bert"), folder, ignore=shutil.ignore_patterns("config.json", "*.safetensors"))
    (folder / "modeling_count.py").write_text(REMOTE)
    code = {"AutoConfig": "modeling_count.CountConfig"}
    code["AutoModelForSequenceClassification"] = "modeling_count.CountClassifier"
    config = {"model_type": "count", "auto_map": code, "id2label": {"0": "hallucinated", "1": "consistent"}}
    (folder / "config.json").write_text(json.dumps(config))
    from safetensors.torch import save_file  # noqa: PLC0415

    save_file({"scale": torch.ones(1)}, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_a_model_with_code_of_its_own_runs_where_it_is_trusted(counting):
    own = classifier(counting, trust_remote_code=True)
    found = own.classify(MANY)
    ids = own._encoder.ids(MANY)
    odds = np.array([(sum(row) - len(row)) / 100 for row in ids])  # difference of the two logits
    assert found.probabilities[:, 0] == pytest.approx(1 / (1 + np.exp(-odds)), abs=1e-5)
    assert own.labels == Labels(supported=1, contradicted=None)


def test_a_model_with_code_of_its_own_is_refused_where_it_is_not_trusted(counting):
    with pytest.raises(EngineError, match="comes with Python code of its own"):
        classifier(counting).classify(PAIRS)


def test_a_model_that_was_never_trained_to_classify_is_an_error(tiny, tmp_path):
    folder = tmp_path / "base"
    shutil.copytree(tiny("bert"), folder)
    transformers.BertModel.from_pretrained(folder).save_pretrained(folder)
    with pytest.raises(EngineError, match=r"lacks weights, 'classifier\.bias' among them"):
        classifier(folder, labels={"supported": 0}).classify(PAIRS)


def test_a_tokenizer_of_another_model_is_an_error_that_holds_no_text(tmp_path):
    folder = make(tmp_path / "small", "bert", vocab_size=20)
    with pytest.raises(
        EngineError, match=r"failed on 1 texts of \d+ tokens \(IndexError\)\. .* the tokenizer"
    ) as raised:
        classifier(folder).classify([("pricing", "secret")])
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "tokenizer.json"])
def test_broken_files_are_an_engine_error(tiny, tmp_path, file):
    folder = tmp_path / "broken"
    shutil.copytree(tiny("bert"), folder)
    (folder / file).write_bytes(b"not a model")
    with pytest.raises(EngineError, match=f"classifier '{Path(folder)}' can't be loaded .* Give a folder"):
        classifier(folder).classify(PAIRS)
