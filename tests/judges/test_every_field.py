"""Every field of a judge's file is either in its version or can't change a verdict: none is forgotten.

The two lists of each judge must name all fields that there are, so that a new one has to be put into one of them.
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
import yaml
from kit.root import ROOT
from kit.rule_generator import MODEL
from pydantic import BaseModel

from tasks.core.config import validate
from tasks.core.grades import GRADED
from tasks.engines.generator import Generator
from tasks.graders import entailment as entailment_grader
from tasks.graders import llm as llm_grader
from tasks.judges import llm, nli

PROMPTS = ROOT / "configs" / "prompts"
Version = Callable[[dict[str, Any]], str]


def leaves(model: type[BaseModel], above: str = "") -> Iterator[str]:
    """Dotted names of the fields of a config and of those inside it."""
    for name, field in model.model_fields.items():
        candidates = [field.annotation, *get_args(field.annotation)]
        nested = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        if nested:
            yield from leaves(nested[0], f"{above}{name}.")
        else:
            yield above + name


def changed(settings: dict[str, Any], name: str, value: object, **more: object) -> dict[str, Any]:
    """The settings with another value at a dotted name, and what else that value needs."""
    made = copy.deepcopy(settings)
    for field, its in {name: value, **more}.items():
        *above, last = field.split(".")
        at = made
        for step in above:
            at = at.setdefault(step, {})
        at[last] = its
    return made


LLM = {
    "kind": "llm",
    "model": MODEL,
    "explain": "on_failure",
    "prompt": str(PROMPTS / "entailment/v1.md"),
    "explained_prompt": str(PROMPTS / "entailment_explained/v1.md"),
}
LLM_COUNTS: dict[str, Any] = {
    "model.model": "org/other",
    "model.revision": "1" * 40,
    "model.dtype": "bfloat16",
    "model.max_tokens": 4096,
    "model.temperature": 0.5,
    "model.thinking": False,
    "model.offline.quantization": "fp8",
    "explain": "always",
    "abstain_below": 0.5,
    "max_reply_tokens": 129,
    "max_explained_tokens": 300,
}
LLM_DRAWN: dict[str, Any] = {"model.seed": 1, "model.top_p": 0.5, "samples": 2}
LLM_THOUGHT: dict[str, Any] = {"model.thinking_tokens": 512, "model.offline.reasoning_parser": "deepseek_r1"}
LLM_SAME: dict[str, Any] = {
    "model.offline.tensor_parallel": 4,
    "model.offline.gpu_memory_share": 0.5,
    "model.offline.max_sequences": 9,
    "model.offline.batch_tokens": 512,
    "model.offline.prefix_caching": False,
    "model.offline.batch_invariant": True,  # the last digits, as another GPU would
    "model.offline.trust_remote_code": True,  # the code itself is pinned: by the revision, or hashed with the files
}
LLM_NONCE: dict[str, Any] = {"model.server.nonce": True}
LLM_SERVED: dict[str, Any] = {
    "model.server.urls": ["http://b/v1", "http://c/v1"],
    "model.server.served_name": "mine",
    "model.server.api_key_env": "KEY",
    "model.server.concurrency": 3,
    "model.server.timeout_s": 7,
    "model.server.retries": 1,
}
# The kind picks the module; of prompts the bytes count, and not where they lie (test_llm.py); the engine below.
LLM_ELSEWHERE = {"kind", "languages", "prompt", "explained_prompt", "model.engine"}


def llm_version(settings: dict[str, Any]) -> str:
    made = validate(llm.Config, settings, "judge.yaml")
    return llm.Llm(made, Generator(made.model)).version


def test_no_field_of_a_language_model_is_forgotten() -> None:
    named = [LLM_COUNTS, LLM_DRAWN, LLM_THOUGHT, LLM_SAME, LLM_SERVED, LLM_NONCE]
    assert set().union(*named, LLM_ELSEWHERE) == set(leaves(llm.Config))


@pytest.mark.parametrize(("name", "value"), LLM_COUNTS.items())
def test_what_can_change_a_verdict_makes_another_version(name: str, value: object) -> None:
    assert llm_version(changed(LLM, name, value)) != llm_version(LLM)


@pytest.mark.parametrize(("name", "value"), LLM_DRAWN.items())
def test_so_does_what_is_drawn_with(name: str, value: object) -> None:
    drawn = changed(LLM, "model.temperature", 0.5)
    assert llm_version(changed(drawn, name, value)) != llm_version(drawn)


@pytest.mark.parametrize(("name", "value"), LLM_THOUGHT.items())
def test_so_does_how_it_thinks(name: str, value: object) -> None:
    thinks = changed(LLM, "model.thinking", True, **{"model.offline.reasoning_parser": "qwen3"})
    assert llm_version(changed(thinks, name, value)) != llm_version(thinks)


@pytest.mark.parametrize(("name", "value"), LLM_SAME.items())
def test_how_many_gpus_and_how_full_they_are_make_none(name: str, value: object) -> None:
    assert llm_version(changed(LLM, name, value)) == llm_version(LLM)


@pytest.mark.parametrize(("name", "value"), LLM_SERVED.items())
def test_nor_do_another_engine_and_where_it_is(name: str, value: object) -> None:
    served = changed(LLM, "model.engine", "openai_server", **{"model.server.urls": ["http://a/v1"]})
    assert llm_version(served) == llm_version(LLM)
    assert llm_version(changed(served, name, value)) == llm_version(LLM)


@pytest.mark.parametrize(("name", "value"), LLM_NONCE.items())
def test_what_a_reply_must_repeat_is_part_of_it(name: str, value: object) -> None:
    served = changed(LLM, "model.engine", "openai_server", **{"model.server.urls": ["http://a/v1"]})
    assert llm_version(changed(served, name, value)) != llm_version(LLM)


# The entailment model that comes with Leadline, in float32, which every engine computes in.
NLI = yaml.safe_load((ROOT / "configs/judges/nli.yaml").read_text(encoding="utf-8"))
NLI["classifier"] |= {"engine": "transformers_cpu", "dtype": "float32"}
NLI_COUNTS: dict[str, Any] = {
    "classifier.max_tokens": 256,
    "classifier.dtype": "bfloat16",
    "classifier.labels": {"supported": 1},
    "classifier.template": "{premise} So: {hypothesis}",
    "classifier.token_types": "model",
    "window_words": 100,
    "nearest_sentences": 2,
    "fusion.intercept": 9.0,
    **{f"fusion.coefficients.{name}": 9.0 for name in nli.Coefficients.model_fields},
    "thresholds.supported": 0.6,
    "thresholds.contradicted": 0.9,
    "thresholds.partially_supported": 0.4,
    "abstain": [0.4, 0.5],
}
NLI_SAME: dict[str, Any] = {
    "classifier.engine": "onnx_cpu",
    "classifier.batch_tokens": 1024,
    "classifier.threads": 1,
    "classifier.trust_remote_code": True,
}
NLI_ON_GPU: dict[str, Any] = {"classifier.gpu_memory_share": 0.5, "classifier.tensor_parallel": 2}
HUB = "org/model"


def nli_version(settings: dict[str, Any]) -> str:
    made = nli.build(validate(nli.Config, settings, "judge.yaml"), "judge.yaml")
    return made.version


def test_no_field_of_an_entailment_judge_is_forgotten() -> None:
    model = {"classifier.model", "classifier.revision"}
    assert {"kind", "languages", *NLI_COUNTS, *NLI_SAME, *NLI_ON_GPU, *model} == set(leaves(nli.Config))


@pytest.mark.parametrize(("name", "value"), NLI_COUNTS.items())
def test_what_can_change_a_verdict_makes_another_entailment_judge(name: str, value: object) -> None:
    assert nli_version(changed(NLI, name, value)) != nli_version(NLI)


@pytest.mark.parametrize(("name", "value"), NLI_SAME.items())
def test_how_it_is_run_makes_none(name: str, value: object) -> None:
    assert nli_version(changed(NLI, name, value)) == nli_version(NLI)


@pytest.mark.parametrize(("name", "value"), NLI_ON_GPU.items())
def test_nor_do_the_gpus_that_it_is_run_on(name: str, value: object) -> None:
    assert nli_version(changed(NLI, name, value, **{"classifier.engine": "vllm_offline"})) == nli_version(NLI)


def test_another_model_and_another_revision_make_another_judge() -> None:
    hub = changed(NLI, "classifier.model", HUB, **{"classifier.revision": "0" * 40})
    other = changed(hub, "classifier.revision", "1" * 40)
    assert len({nli_version(settings) for settings in (NLI, hub, other)}) == 3


# The two kinds of grader with a model: the one asks a language model, the other a judge of claims.
GRADER_LLM = {"kind": "llm", "model": MODEL, "prompts": {n: str(PROMPTS / "grades" / n / "v1.md") for n in GRADED}}
GRADER_LLM_COUNTS = {n: v for n, v in LLM_COUNTS.items() if n.startswith("model.")} | {"max_reply_tokens": 129}
GRADER_ENTAILMENT = {"kind": "entailment", "judge": str(ROOT / "configs/judges/nli.yaml")}
GRADER_ENTAILMENT_COUNTS: dict[str, Any] = {
    "judge": str(ROOT / "configs/judges/replay.yaml"),
    "embedder.max_tokens": 128,
    "reference": "if_given",
    "support.supported": 0.6,
    "support.repeated": None,
    "support.contradicted": None,
    "support.slips": False,
    "relevance.statement": 0.5,
    "relevance.passage": 0.5,
    "relevance.useful": 0.5,
    "completeness.aspect": 0.6,
    "completeness.covered": 0.6,
    "completeness.touched": 0.5,
    "completeness.answerable": 0.5,
}
GRADER_ENTAILMENT_SAME: dict[str, Any] = {
    "embedder.batch_tokens": 1024,
    "embedder.threads": 1,
    "embedder.cached_vectors": 7,
}


def grader_version(settings: dict[str, Any]) -> str:
    if settings["kind"] == "llm":
        made = validate(llm_grader.Config, settings, "grader.yaml")
        return llm_grader.Llm(made, Generator(made.model), "grader.yaml").version
    return entailment_grader.build(validate(entailment_grader.Config, settings, "grader.yaml"), "g.yaml").version


def test_no_field_of_a_grader_is_forgotten() -> None:
    named = [*LLM_COUNTS, *LLM_DRAWN, *LLM_THOUGHT, *LLM_SAME, *LLM_SERVED, *LLM_NONCE]
    model = {n for n in named if n.startswith("model.")}
    known = {"kind", "prompts", "samples", "model.engine", *model, *GRADER_LLM_COUNTS}  # prompts: graders/test_llm.py
    assert known == set(leaves(llm_grader.Config))
    models = {"kind", "embedder.model", "embedder.revision"}  # as with the judges' embedders above
    assert {*models, *GRADER_ENTAILMENT_COUNTS, *GRADER_ENTAILMENT_SAME} == set(leaves(entailment_grader.Config))


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [(GRADER_LLM, *of) for of in GRADER_LLM_COUNTS.items()]
    + [(changed(GRADER_LLM, "model.temperature", 0.5), *of) for of in LLM_DRAWN.items()]
    + [(GRADER_ENTAILMENT, *of) for of in GRADER_ENTAILMENT_COUNTS.items()],
)
def test_what_can_change_a_grade_makes_another_grader(settings: dict[str, Any], name: str, value: object) -> None:
    assert grader_version(changed(settings, name, value)) != grader_version(settings)


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [(GRADER_LLM, *of) for of in LLM_SAME.items()]
    + [(GRADER_ENTAILMENT, *of) for of in GRADER_ENTAILMENT_SAME.items()],
)
def test_how_a_grader_is_run_makes_none(settings: dict[str, Any], name: str, value: object) -> None:
    assert grader_version(changed(settings, name, value)) == grader_version(settings)
