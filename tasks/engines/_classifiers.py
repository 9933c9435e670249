"""Settings of classifiers, and which of a model's classes mean supported and contradicted.

Left out: turning a pair into token ids (`_encoder`), and what the probabilities mean for a claim.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tasks.core.errors import EngineError
from tasks.engines import _models

WHAT = "classifier"
FIELDS = ("{premise}", "{hypothesis}")
DTYPES = {
    "transformers_cpu": ("float32", "bfloat16"),
    "onnx_cpu": ("float32", "int8"),
    "vllm_offline": ("float32", "bfloat16", "float16"),
}
ClassName = Literal["supported", "contradicted", "neutral"]
NAMES: dict[str, frozenset[str]] = {
    "supported": frozenset({"entailment", "entail", "entails", "entailed", "supported", "supports", "support",
                            "consistent"}),
    "contradicted": frozenset({"contradiction", "contradict", "contradicts", "contradicted", "contradictory",
                               "refuted", "refutes", "refute"}),
    "neutral": frozenset({"neutral", "not_entailment", "not_entailed", "non_entailment", "no_entailment",
                          "unsupported", "not_supported", "not_enough_info", "nei", "inconsistent", "hallucinated"}),
}  # fmt: skip


class CrossEncoderConfig(_models.ModelConfig):
    """Settings of a model that reads two texts together, for classifiers and rerankers.

    Attributes:
        trust_remote_code: Run Python code that comes with the model.
        batch_tokens: Tokens in one forward pass.
        threads: CPU threads, process-wide; None keeps the engine's default (not for vllm_offline).
        gpu_memory_share: Share of a GPU's memory that vllm_offline takes; None keeps vLLM's default.
        tensor_parallel: GPUs that vllm_offline splits the model across.
    """

    engine: str
    dtype: str
    max_tokens: int
    trust_remote_code: bool = False
    batch_tokens: Annotated[int, Field(ge=64)] = 4096
    threads: Annotated[int, Field(ge=1)] | None = None
    gpu_memory_share: Annotated[float, Field(gt=0, le=1)] | None = None
    tensor_parallel: Annotated[int, Field(ge=1)] = 1

    @property
    def gpus(self) -> int:
        """GPUs that the model uses: 0 with an engine for CPUs, or on a machine without GPUs."""
        return _models.gpus_held(self.tensor_parallel) if self.engine == "vllm_offline" else 0


class ClassifierConfig(CrossEncoderConfig):
    """Settings of a classifier.

    Attributes:
        engine: `transformers_cpu`; `onnx_cpu`, which is faster on CPUs; or `vllm_offline`, for GPUs.
        dtype: Number format of the computation. `int8` needs onnx_cpu, `float16` vllm_offline.
        max_tokens: Tokens read of a pair, with special tokens. The premise is truncated to fit, never the hypothesis.
        template: Text with `{premise}` and `{hypothesis}`, for models that read a single text. None encodes the pair in
            the tokenizer's own way.
        token_types: `zero`, or `model` for the tokenizer's own (transformers_cpu only).
        labels: Class numbers of `supported` and, if the model has them, `contradicted` and `neutral`; None reads the
            class names in the model's configuration.
        batch_tokens: Tokens in one forward pass (onnx_cpu always reads one pair at a time).
    """

    engine: Literal["transformers_cpu", "onnx_cpu", "vllm_offline"] = "transformers_cpu"
    dtype: Literal["float32", "bfloat16", "float16", "int8"] = "float32"
    max_tokens: Annotated[int, Field(ge=16)] = 320
    template: str | None = None
    token_types: Literal["zero", "model"] = "zero"  # noqa: S105 - pieces of text
    labels: dict[ClassName, Annotated[int, Field(ge=0)]] | None = None

    @property
    def own_types(self) -> bool:
        """Whether the tokenizer's own token types are used."""
        return self.token_types == "model"  # noqa: S105 - pieces of text

    @model_validator(mode="after")
    def _runs(self) -> Self:
        if self.dtype not in DTYPES[self.engine]:
            able = " or ".join(engine for engine, known in DTYPES.items() if self.dtype in known)
            known = ", ".join(DTYPES[self.engine])
            raise ValueError(f"asks {self.engine} for dtype {self.dtype}; it knows {known}, or use {able}")
        if self.own_types and (self.engine != "transformers_cpu" or self.template is not None):
            raise ValueError(
                "asks for token_types 'model', which engine transformers_cpu gives, and to pairs without a template; "
                "use it so, or 'zero'"
            )
        if self.engine == "vllm_offline" and self.threads is not None:
            raise ValueError("sets threads, which vllm_offline does not read; remove it")
        if self.engine != "vllm_offline" and (self.gpu_memory_share is not None or self.tensor_parallel != 1):
            raise ValueError(
                f"sets gpu_memory_share or tensor_parallel, which {self.engine} does not read; "
                "remove them, or use engine vllm_offline"
            )
        return self

    @model_validator(mode="after")
    def _read(self) -> Self:
        if self.template is not None and any(self.template.count(field) != 1 for field in FIELDS):
            raise ValueError("has a template without {premise} and {hypothesis} exactly once each; correct it")
        classes = list((self.labels or {}).values())
        if self.labels is not None and ("supported" not in self.labels or len(set(classes)) < len(classes)):
            raise ValueError("has labels without 'supported' or with one class twice; name each class once")
        return self


@dataclass(frozen=True, slots=True)
class Labels:
    """Class numbers of a model. Other classes are ignored.

    Attributes:
        supported: The class of premises that entail the hypothesis.
        contradicted: The class of premises that contradict it; None if the model has no such class.
    """

    supported: int
    contradicted: int | None


def labels_of(
    id2label: Mapping[int, str], num_labels: int, override: Mapping[ClassName, int] | None, what: str
) -> Labels:
    """Find the class numbers by name, because the order of classes differs between models.

    Args:
        id2label: The model's own class names.
        override: The config's `labels`, which replace the model's names.
        what: The model, for messages.

    Raises:
        EngineError: The names are unknown, or the number of classes does not match.
    """
    if num_labels < 2:
        raise EngineError(f"{what} has one class, a score and no probability. Give a model with two or more classes.")
    if override is not None:
        if (top := max(override.values())) >= num_labels:
            raise EngineError(f"{what} has classes 0 to {num_labels - 1}, labels names class {top}. Correct labels.")
        return Labels(override["supported"], override.get("contradicted"))
    found = {i: _meaning(str(id2label.get(i, ""))) for i in range(num_labels)}
    by_name = {name: [i for i, meant in found.items() if meant == name] for name in NAMES}
    if None in found.values() or len(by_name["supported"]) != 1 or len(by_name["contradicted"]) > 1:
        names = ", ".join(repr(str(id2label.get(i, "")))[:40] for i in list(found)[:5])
        raise EngineError(
            f"{what} calls its {num_labels} classes {names}, none of which clearly means 'supported'. "
            "Name them in the config, as in `labels: {supported: 0, contradicted: 2}`."
        )
    return Labels(by_name["supported"][0], next(iter(by_name["contradicted"]), None))


def load_error(config: ClassifierConfig, error: Exception) -> EngineError:
    """One error message for the many errors of the libraries."""
    if "trust_remote_code" in str(error) and not config.trust_remote_code:
        return EngineError(
            f"{WHAT} {config.model!r} comes with Python code of its own. Read it, and if you trust it set "
            "trust_remote_code to true."
        )
    return _models.load_error(config, WHAT, error)


def _meaning(name: str) -> str | None:
    """The entry of `NAMES` that a model's class name means; None if it means none."""
    word = re.sub(r"[^a-z]+", "_", name.lower()).strip("_")
    return next((meaning for meaning, words in NAMES.items() if word in words), None)
