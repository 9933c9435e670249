"""Rerankers: tiny cross-encoders with random weights; scores are sigmoids of what transformers says by itself."""

import contextlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
import yaml
from conftest import in_process
from kit.models.classifiers import make
from kit.root import ROOT
from pydantic import ValidationError

from tasks.core.errors import ConfigError, EngineError
from tasks.engines.reranker import Reranker, RerankerConfig
from tasks.scorers import reranked

PAIRS = [
    ("Did the customer cancel?", "The customer canceled the order on March 14, 2024."),
    ("Did the customer cancel?", "Apples lower cholesterol."),
    ("What lowers cholesterol?", "Apples lower cholesterol."),
    ("no", "x"),
]


def config(folder: str | Path, **options: object) -> RerankerConfig:
    return RerankerConfig(model=str(folder), **{"max_tokens": 100, **options})  # type: ignore[arg-type]


def by_transformers(folder: str, typed: bool = True) -> np.ndarray:
    """Logits of (question, passage), one pair at a time, as the library's own pipeline makes them."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        return np.array([
            model(**tokenizer(q, p, return_tensors="pt", return_token_type_ids=typed)).logits[0].numpy()
            for q, p in PAIRS
        ])  # fmt: skip


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A BERT with one class, which tells question and passage by token types."""
    return make(tmp_path_factory.mktemp("one"), "bert", ("relevance",))


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make(tmp_path_factory.mktemp("roberta"), "roberta", ("relevance",))


def test_one_class_is_a_logit(one: str) -> None:
    scores, tokens = Reranker(config(one)).score(PAIRS)
    logits = by_transformers(one)[:, 0]
    assert scores == pytest.approx(1 / (1 + np.exp(-logits.astype(float))), abs=1e-6)
    assert len(set(scores.round(4))) > 1
    assert tokens.min() > 3


def test_of_two_classes_the_second_one_counts(tmp_path: Path) -> None:
    folder = make(tmp_path / "two", "roberta", ("LABEL_0", "LABEL_1"))
    scores, _ = Reranker(config(folder)).score(PAIRS)
    logits = by_transformers(folder, typed=False).astype(float)
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert scores == pytest.approx(softmax[:, 1], abs=1e-6)


def test_a_score_depends_on_its_pair_alone(one: str) -> None:
    own = Reranker(config(one))
    together, _ = own.score(PAIRS)
    assert [float(own.score([pair])[0][0]) for pair in PAIRS] == together.tolist()  # to the last bit
    assert own.score([])[0].shape == (0,)


def test_too_long_is_cut_whichever_is_longer(one: str) -> None:
    own = Reranker(config(one, max_tokens=32))
    scores, tokens = own.score([("why " * 300, "Apples."), ("Why?", "apples " * 300), ("why " * 300, "apples " * 300)])
    assert tokens.tolist() == [32, 32, 32]
    assert np.isfinite(scores).all()


def test_more_classes_do_not_tell_relevance(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="has 3 classes, so it can't score relevance"):
        Reranker(config(make(tmp_path / "nli", "roberta"))).score(PAIRS)


def test_what_an_engine_can_not_do_is_refused(one: str) -> None:
    with pytest.raises(ValidationError, match="asks transformers_cpu for dtype float16"):
        config(one, dtype="float16")
    with pytest.raises(
        EngineError, match=r"token types, which vllm_offline does not support\. Use engine transformers_cpu"
    ):
        Reranker(config(one, engine="vllm_offline")).score(PAIRS)


def test_the_engine_is_not_in_the_version_and_the_weights_are(one: str, roberta: str) -> None:
    first = Reranker(config(one)).describe()
    assert Reranker(config(one, engine="vllm_offline", batch_tokens=128)).describe() == first
    assert Reranker(config(one, max_tokens=64)).describe() != first
    assert Reranker(config(roberta)).describe() != first


def test_a_file_names_the_model_and_a_mistake_in_it_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(yaml.safe_dump({"kind": "reranker", "model": {"model": "some/model"}}))
    with pytest.raises(ConfigError, match=r"r\.yaml: model is .* names the hub model 'some/model' without a revision"):
        reranked.load(file)
    for path in sorted((ROOT / "configs" / "judges").glob("reranker-*.yaml")):
        assert len(reranked.load(path).version) == 16  # pinned: no file of the model is needed for it


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed: make .venv/vllm")
def test_vllm_gives_the_scores_of_transformers(roberta: str) -> None:
    own = Reranker(config(roberta, engine="vllm_offline"))
    with in_process(), contextlib.closing(own):
        found, tokens = own.score(PAIRS)
    expected, counted = Reranker(config(roberta)).score(PAIRS)
    assert np.abs(found - expected).max() < 1e-3
    assert tokens.tolist() == counted.tolist()
