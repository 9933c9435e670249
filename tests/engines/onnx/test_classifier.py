"""The ONNX engine against transformers on tiny random models, and what makes a resumed run store equal numbers."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from tasks.core.errors import EngineError
from tasks.engines.classifier import ClassifierConfig, Encoder, Labels, open_classifier
from tasks.engines.onnx import _graph
from tasks.engines.onnx import classifier as onnx_cpu
from tasks.engines.onnx.classifier import OnnxClassifier, write_graph

for needed in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(needed)

WORDS = ["the", "order", "customer", "canceled", "apples", "were", "associated", "with", "lower", "cholesterol"]
WORDS += ["in", "march", "not", "because", "of", "pricing"]
MAX_TOKENS = 48
PAIRS = [
    (" ".join(WORDS[i % 7 : 3 + i % 13] * (1 + i % 5)), " ".join(WORDS[i % 11 : 12 + i % 4])) for i in range(24)
] + [("the", "order"), (" ".join(WORDS * 20), "apples were lower")]  # the shortest, and one cut at max_tokens


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A BERT and a RoBERTa classifier with random weights, large enough that pairs get different probabilities."""
    tokenizers, transformers, torch = (pytest.importorskip(n) for n in ("tokenizers", "transformers", "torch"))
    torch.manual_seed(7)
    common = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    common |= {"max_position_embeddings": 64, "num_labels": 3, "vocab_size": 40, "initializer_range": 0.5}
    common |= {"id2label": {0: "entailment", 1: "neutral", 2: "contradiction"}}
    made = {}
    for name, first, last, family in (("bert", "[CLS]", "[SEP]", "Bert"), ("roberta", "<s>", "</s>", "Roberta")):
        folder = tmp_path_factory.mktemp(name)
        vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", first, last, *WORDS])}
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        pair = [f"{first} $A {last} $B:1 {last}:1", f"{first} $A {last} {last} $B {last}"][family == "Roberta"]
        ends = [(first, vocabulary[first]), (last, vocabulary[last])]
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing(f"{first} $A {last}", pair, ends)
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token=first, sep_token=last
        ).save_pretrained(folder)
        config = getattr(transformers, f"{family}Config")(**common, pad_token_id=0)
        getattr(transformers, f"{family}ForSequenceClassification")(config).save_pretrained(folder)
        made[name] = folder
    return made


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(shared_cache, monkeypatch):
    """One cache for all tests that don't name their own: an export takes seconds."""
    monkeypatch.setenv(onnx_cpu.CACHE_VARIABLE, str(shared_cache))
    return shared_cache


def config(folder, **settings):
    settings = {"engine": "onnx_cpu", "max_tokens": MAX_TOKENS, "threads": 1} | settings
    return ClassifierConfig(model=str(folder), **settings)


def made(folder, **settings):
    return OnnxClassifier(config(folder, **settings))


def by_transformers(folder):
    """Probabilities of PAIRS and token counts, each pair alone, through nothing of Leadline's."""
    torch, transformers = (pytest.importorskip(name) for name in ("torch", "transformers"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    rows, counts = [], []
    for premise, hypothesis in PAIRS:
        ids = tokenizer(premise, hypothesis, truncation="only_first", max_length=MAX_TOKENS)["input_ids"]
        with torch.inference_mode():
            rows.append(model(input_ids=torch.tensor([ids])).logits.double().softmax(-1)[0].numpy())
        counts.append(len(ids))
    return np.array(rows), counts


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_float32_equals_transformers(folders, name):
    expected, counts = by_transformers(folders[name])
    assert expected.std(axis=0).min() > 0.05  # or anything would pass
    found = made(folders[name]).classify(PAIRS)
    assert np.abs(found.probabilities - expected).max() < 1e-4
    assert found.tokens.tolist() == counts
    assert max(counts) == MAX_TOKENS


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_int8_stays_close_to_transformers(folders, name):
    # Activations of range 8 standard deviations in 255 steps are off by 8 / 255 / √12 = 0.9%, weights of range ±3 in
    # 254 steps by 0.7%: a product by 1.1%, and what passes 12 products by 1.1% · √12 = 4% of its spread. Logits here
    # spread by about 1 and a probability moves by a quarter of the difference of two: √2 · 4% / 4 = 1.4% is typical,
    # and seven times that more than the worst of 78. A scale gone wrong is off by far more.
    expected, _ = by_transformers(folders[name])
    found = made(folders[name], dtype="int8").classify(PAIRS).probabilities
    assert np.abs(found - expected).mean() < 0.02
    assert np.abs(found - expected).max() < 0.1
    assert np.abs(found - expected).max() > 1e-4  # it is int8 that ran
    assert found.sum(axis=1) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_pair_does_not_depend_on_what_is_classified_beside_it(folders, dtype):
    own = made(folders["bert"], dtype=dtype)
    together = own.classify(PAIRS).probabilities
    alone = np.vstack([own.classify([pair]).probabilities for pair in PAIRS])
    reversed_ = own.classify(PAIRS[::-1]).probabilities[::-1]
    threads = made(folders["bert"], dtype=dtype, threads=2).classify(PAIRS * 3).probabilities
    assert np.array_equal(together, alone)
    assert np.array_equal(together, reversed_)
    assert np.array_equal(np.vstack([together] * 3), threads)


def test_no_pairs_keep_their_shape(folders):
    found = made(folders["bert"]).classify([])
    assert found.probabilities.shape == (0, 3)
    assert found.tokens.shape == (0,)


def test_is_the_classifier_that_the_config_names(folders):
    own = open_classifier(config(folders["bert"], dtype="int8"))
    assert isinstance(own, OnnxClassifier)
    assert own.labels == Labels(supported=0, contradicted=2)
    assert own.count(["the order", ""]) == [2, 0]
    assert own.room() == MAX_TOKENS - 3  # [CLS] premise [SEP] hypothesis [SEP]


def test_close_frees_and_a_later_call_loads_again(folders):
    own = made(folders["bert"], dtype="int8")
    before = own.classify(PAIRS).probabilities
    own.close()
    assert own._session is None
    assert np.array_equal(own.classify(PAIRS).probabilities, before)


def test_description_is_other_engines_own_but_for_int8(folders):
    own = config(folders["bert"])
    assert OnnxClassifier(own).describe() == Encoder(own).describe()
    assert made(folders["bert"], threads=2).describe() == made(folders["bert"]).describe()
    quantized = made(folders["bert"], dtype="int8").describe()
    assert quantized == {**Encoder(own).describe(), "dtype": "int8", "quantization": _graph.SCHEME}


@pytest.fixture
def own_cache(folders, tmp_path, monkeypatch):
    """A cache with one graph, the int8 one of BERT, and its probabilities of PAIRS."""
    expected = made(folders["bert"], dtype="int8").classify(PAIRS).probabilities
    full = onnx_cpu._cached(config(folders["bert"], dtype="int8"))
    monkeypatch.setenv(onnx_cpu.CACHE_VARIABLE, str(tmp_path / "cache"))
    own = onnx_cpu._cached(config(folders["bert"], dtype="int8"))
    own.parent.mkdir(parents=True)
    shutil.copy(full, own)
    return own, expected


def test_cached_graph_is_used_again(folders, own_cache, tmp_path, monkeypatch):
    copied = tmp_path / "elsewhere"
    shutil.copytree(folders["bert"], copied)

    def export(*_):
        raise AssertionError("exported")

    monkeypatch.setattr(_graph, "_export", export)
    found = made(copied, dtype="int8").classify(PAIRS).probabilities  # weights count, not paths
    assert np.array_equal(found, own_cache[1])
    with pytest.raises(AssertionError, match="exported"):
        made(folders["bert"], dtype="float32").classify(PAIRS)
    with pytest.raises(AssertionError, match="exported"):
        made(folders["roberta"], dtype="int8").classify(PAIRS)


@pytest.mark.parametrize("kept", [0, 0.5])
def test_broken_cached_graph_is_made_anew(folders, own_cache, kept):
    graph, expected = own_cache
    whole = graph.read_bytes()
    graph.write_bytes(whole[: int(kept * len(whole))])
    assert np.array_equal(made(folders["bert"], dtype="int8").classify(PAIRS).probabilities, expected)
    assert graph.stat().st_size == len(whole)


@pytest.mark.slow
def test_two_processes_with_an_empty_cache_agree_and_say_nothing(folders, tmp_path):
    code = (
        "import sys\n"
        "from tasks.engines.classifier import ClassifierConfig\n"
        "from tasks.engines.onnx.classifier import OnnxClassifier\n"
        "assert not {'torch', 'transformers', 'onnx', 'onnxruntime'} & set(sys.modules)\n"
        f"own = ClassifierConfig(model={str(folders['bert'])!r}, engine='onnx_cpu', dtype='int8', max_tokens=48)\n"
        f"print(OnnxClassifier(own).classify({PAIRS[:3]!r}).probabilities.tobytes().hex())\n"
    )
    env = {"PATH": "", "LEADLINE_CACHE": str(tmp_path), "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [subprocess.Popen([sys.executable, "-c", code], env=env, **pipes) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in both]
    here = made(folders["bert"], dtype="int8").classify(PAIRS[:3]).probabilities.tobytes().hex()
    assert outputs == [(f"{here}\n", "")] * 2
    (graph,) = tmp_path.rglob("*.onnx")
    assert list(graph.parent.iterdir()) == [graph]  # nothing half-written is left


@pytest.fixture(scope="module")
def ready(folders, tmp_path_factory):
    graph = tmp_path_factory.mktemp("ready") / onnx_cpu.READY
    write_graph(config(folders["bert"], dtype="int8"), graph)
    return graph


@pytest.fixture
def packed(folders, ready, tmp_path):
    """A model's folder that comes with its int8 graph."""
    folder = tmp_path / "packed"
    shutil.copytree(folders["bert"], folder)
    shutil.copy(ready, folder)
    return folder


def test_graph_beside_the_weights_is_taken(folders, packed, tmp_path, monkeypatch):
    own = made(folders["bert"], dtype="int8")
    expected = own.classify(PAIRS).probabilities
    monkeypatch.setenv(onnx_cpu.CACHE_VARIABLE, str(tmp_path / "unused"))
    shipped = made(packed, dtype="int8")
    assert np.array_equal(shipped.classify(PAIRS).probabilities, expected)
    assert not (tmp_path / "unused").exists()
    # The file decides the numbers, so it decides the version.
    assert shipped.describe()["quantization"] != own.describe()["quantization"]
    assert made(packed).describe() == made(folders["bert"]).describe()


def test_graph_of_other_weights_is_refused(folders, packed):
    shutil.copy(folders["roberta"] / "model.safetensors", packed)
    with pytest.raises(EngineError, match=r"model\.int8\.onnx was not made from the weights beside it\. Delete it"):
        made(packed, dtype="int8").classify(PAIRS)


def test_broken_graph_beside_the_weights_is_an_engine_error(packed):
    (packed / onnx_cpu.READY).write_bytes(b"not a graph")
    with pytest.raises(EngineError, match=r"model\.int8\.onnx can't be loaded .*Delete it"):
        made(packed, dtype="int8").classify(PAIRS)


@pytest.mark.parametrize("package", ["onnxruntime", "onnx", "onnxscript"])
def test_missing_package_says_what_to_install(folders, tmp_path, monkeypatch, package):
    monkeypatch.setenv(onnx_cpu.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setitem(sys.modules, package, None)  # what Python does with a package that is not there
    with pytest.raises(EngineError, match=rf"needs the package '{package}'. Run: pip install 'leadline\[onnx\]'"):
        made(folders["bert"]).classify(PAIRS)


def test_cache_that_cannot_be_written_is_an_engine_error(folders, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(onnx_cpu.CACHE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(EngineError, match=r"can't be kept in .*Name another folder in LEADLINE_CACHE"):
        made(folders["bert"]).classify(PAIRS)
    with pytest.raises(EngineError, match=r"can't be written to .*Name another place"):
        write_graph(config(folders["bert"]), tmp_path / "file" / "model.onnx")


def test_broken_weights_are_an_engine_error(folders, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(folders["bert"], folder)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(EngineError, match="can't be loaded"):
        made(folder).classify(PAIRS)


def test_model_that_does_not_export_names_the_other_engine(folders, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")

    def export(*_, **__):
        raise RuntimeError("no symbolic shape\nand much more")

    monkeypatch.setenv(onnx_cpu.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(torch.onnx, "export", export)
    with pytest.raises(EngineError, match=r"exported to ONNX \(RuntimeError: no symbolic shape\)\. Use engine transf"):
        made(folders["bert"]).classify(PAIRS)


def test_graph_that_answers_otherwise_than_the_model_is_never_kept(folders, tmp_path, monkeypatch):
    right = _graph.run
    monkeypatch.setenv(onnx_cpu.CACHE_VARIABLE, str(tmp_path))
    # Right on the length that it was exported with, wrong on others: what a misread shape looks like.
    monkeypatch.setattr(_graph, "run", lambda session, ids: right(session, ids) + (len(ids) > 40))
    with pytest.raises(EngineError, match="differs from the model's logits by 1"):
        made(folders["bert"]).classify(PAIRS)
    assert list(tmp_path.rglob("*.onnx")) == []


def test_failing_run_reports_lengths_and_no_text(folders):
    class Broken:
        def run(self, *_):
            raise RuntimeError("the order customer")

    own = made(folders["bert"])
    own._session = Broken()
    with pytest.raises(EngineError, match=r"a pair of 5 tokens \(RuntimeError\)") as caught:
        own.classify([("the", "order")])
    assert "customer" not in str(caught.value)


@pytest.mark.skipif(not _graph._vnni(), reason="without VNNI there is one way only")
def test_processors_with_and_without_vnni_instructions_agree(folders, ready):
    ids = Encoder(config(folders["bert"])).ids(PAIRS)
    fast, precise = (_graph.session(ready, vnni=vnni) for vnni in (True, False))
    assert all(np.array_equal(_graph.run(fast, pair), _graph.run(precise, pair)) for pair in ids)
