"""Judges, graders, writers and the extractor of facts with a small real model in real vLLM on the CPU, loaded once.

It is too small for what it says to be right: that it can be read, and where it leads, is what is tested.
"""

import contextlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import in_process
from kit.root import ROOT

from tasks.core import keys
from tasks.core.config import validate
from tasks.core.types import Answer, Chunk, Request
from tasks.engines.generator import Generator, GeneratorConfig, Offline, open_generator
from tasks.extractors import load
from tasks.extractors.atomic import GIVES, Atomic
from tasks.judges import generate, llm, rater_model

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed"),
]
PROMPTS = ROOT / "configs" / "prompts"
INPUTS = [
    {"question": f"How hot is {x}?", "answer": f"{x} is hot.", "passages": [f"{x}: 90 °C."]} for x in ("Tea", "Milk")
]


@pytest.fixture(scope="module")
def model(smollm2: Path) -> GeneratorConfig:
    offline = Offline(batch_tokens=256)  # it tries a full batch out when it loads
    return GeneratorConfig(model=str(smollm2), dtype="float32", max_tokens=1280, temperature=1, offline=offline)


@pytest.fixture(scope="module")
def vllm(model: GeneratorConfig) -> Iterator[Generator]:
    with in_process(), contextlib.closing(open_generator(model)) as made:
        yield made


def short(name: str, folder: Path) -> Path:
    """The released prompt with shorter texts: two cores write some hundred tokens a second."""
    text = (PROMPTS / name / "v1.md").read_text(encoding="utf-8")
    path = folder / f"{name}.md"
    path.write_text(re.sub(r"maxLength: \d+", "maxLength: 20", text))
    return path


def writer(name: str, folder: Path, model: GeneratorConfig, vllm: Generator, most: int) -> generate.Writer:
    settings = {"kind": "generate", "model": model, "prompt": short(name, folder), "most": most}
    gives = GIVES if name == "facts" else ("answer",)
    return generate.Writer(validate(generate.Config, settings, "w"), vllm, "w.yaml", gives)


def test_verdicts_on_claims(tmp_path: Path, model: GeneratorConfig, vllm: Generator) -> None:
    settings = {
        "kind": "llm",
        "model": model,
        "prompt": PROMPTS / "entailment" / "v1.md",
        "explained_prompt": short("entailment_explained", tmp_path),
        "explain": "on_failure",
    }
    judge = llm.Llm(validate(llm.Config, settings, "j"), vllm, "j.yaml")
    claims = ["Tea is hot.", "Tea is cold.", "Milk is white.", "long " * 3000]
    asked = [Request(keys.request_key("Tea is hot.", claim), "Tea is hot.", claim) for claim in claims]
    found, again = judge.judge(asked), judge.judge(asked[::-1])[::-1]
    assert [v.key for v in found] == [r.key for r in asked]
    for v in found[:-1]:
        assert v.label in llm.CHOICES
        assert v.passages == (() if v.label == "unsupported" else (1,))  # there is one passage
        assert v.p_supported is not None
        assert v.p_contradicted is not None
        assert 0 <= v.p_supported + v.p_contradicted <= 1 + 1e-6
        assert v.tokens_in > 0
        assert v.tokens_out > 0
        assert len(v.explanation or "") <= 20  # of those that it did not find supported at first
    assert (found[-1].label, found[-1].failure) == (None, "too_long")
    assert [(v.label, v.failure) for v in found] == [(v.label, v.failure) for v in again]  # whatever the order


def test_facts_of_an_answer(tmp_path: Path, model: GeneratorConfig, vllm: Generator) -> None:
    sentences = load({"kind": "sentences"}, "x")
    extractor = Atomic(sentences, writer("facts", tmp_path, model, vllm, most=2), "v")
    text = "Tea is hot and wet [1]. It is not cold. Milk is white, and it comes from cows [2]."
    answers = [Answer("What is tea?", text, (Chunk("a", ""), Chunk("b", ""))), Answer("And?", "")]
    found, nothing = extractor.extract_many(answers)
    spans = [(c.start, c.end, c.cited_chunk_ids) for c in found.claims]
    assert list(dict.fromkeys(spans)) == [
        (c.start, c.end, c.cited_chunk_ids) for c in sentences.extract(answers[0]).claims
    ]
    assert 3 <= len(spans) <= 6
    facts = [c.text for c in found.claims if c.text is not None]
    assert facts
    assert all(0 < len(fact) <= 20 for fact in facts)
    assert found.unbroken == len(spans) - len(facts)
    assert found.tokens_in > 3 * 100  # three prompts
    assert found.tokens_out > 3
    assert nothing.claims == []


def test_questions_of_an_answer(tmp_path: Path, model: GeneratorConfig, vllm: Generator) -> None:
    found = writer("questions", tmp_path, model, vllm, most=3).write(INPUTS)
    assert [w.failure for w in found] == [None, None]
    assert all(0 < len(w.texts) <= 3 for w in found)  # the schema asks for three; a blank one is no question


def test_grades(model: GeneratorConfig, vllm: Generator) -> None:
    settings = {"kind": "rater_model", "model": model, "prompt": PROMPTS / "relevance" / "v1.md", "samples": 3}
    grading = rater_model.RaterModel(
        validate(rater_model.Config, settings, "g"), vllm, "g.yaml", ("question", "answer", "passages")
    )
    found = grading.rate(INPUTS)
    assert [g.failure for g in found] == [None, None]
    for grades in found:
        assert set(grades.values) == {"context_relevance", "answer_relevance"}
        assert all(1 <= grade <= 5 for grade in grades.values.values())


def test_grades_that_may_not_apply(tmp_path: Path, model: GeneratorConfig, vllm: Generator) -> None:
    """Among 16 draws of each, at temperature 1, the model says null and something else."""
    (tmp_path / "p.md").write_text(
        "---\ninputs: [question]\noutput:\n  type: object\n  properties:\n"
        "    n: {type: [integer, 'null'], minimum: 1, maximum: 5}\n    b: {type: [boolean, 'null']}\n"
        "  required: [n, b]\n  additionalProperties: false\n---\n# System\nS\n# User\n{{ question }}\n"
    )
    settings = {"kind": "rater_model", "model": model, "prompt": tmp_path / "p.md"}
    grading = rater_model.RaterModel(validate(rater_model.Config, settings, "g"), vllm, "g.yaml", ("question",))
    found = grading.rate([{"question": f"Is {n} a number?"} for n in range(16)])
    assert [g.failure for g in found] == [None] * 16
    assert {g.values["n"] for g in found} <= {1, 2, 3, 4, 5, None}
    assert {g.values["b"] for g in found} <= {True, False, None}
    assert len({g.values["n"] for g in found}) > 1
