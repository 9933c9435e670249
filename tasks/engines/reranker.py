"""Rerankers: cross-encoders that score how well a passage answers a question.

A model with one class gives a logit, whose sigmoid is the score; of two classes, the second one's probability is. They
run as classifiers do: on the CPU by transformers, on GPUs by vLLM. Left out: rerankers that generate text, and cutting
passages into windows. torch and vLLM are imported on first use.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tasks.core.errors import EngineError
from tasks.core.keys import Versioned
from tasks.engines._classifiers import ClassifierConfig, CrossEncoderConfig
from tasks.engines._encoder import Encoder
from tasks.engines.classifier import Classifier, open_classifier

RULES = 1  # raised when the way from a pair to its score changes
WHAT = "reranker"


class RerankerConfig(CrossEncoderConfig):
    """Which cross-encoder, and how it runs.

    Attributes:
        engine: `transformers_cpu`, or `vllm_offline` for GPUs.
        dtype: Numbers it computes in; `float16` with vllm_offline only.
        max_tokens: Tokens read of a question and a passage together, special ones included; the longer is cut to fit.
    """

    engine: Literal["transformers_cpu", "vllm_offline"] = "transformers_cpu"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    max_tokens: Annotated[int, Field(ge=16)] = 512

    @property
    def classifier(self) -> ClassifierConfig:
        """The classifier that it runs as."""
        return ClassifierConfig(**self.model_dump())

    @model_validator(mode="after")
    def _runs(self) -> Self:
        _ = self.classifier  # which knows what its engines can do
        return self


class Reranker(Versioned):
    """A cross-encoder, loaded on first use. Not for use from several threads at once."""

    def __init__(self, config: RerankerConfig) -> None:
        self._config = config
        self._encoder = _Encoder(config.classifier)
        self._runner: Classifier | None = None

    @property
    def engine(self) -> str:
        """Which engine runs the model."""
        return self._config.engine

    @property
    def gpus(self) -> int:
        """GPUs that the model holds."""
        return self._config.gpus

    def describe(self) -> dict[str, object]:
        """Everything that decides a score, to be hashed into a version; not how it is run.

        Raises:
            EngineError: The model's files are not there.
        """
        return {"encoder": self._encoder.describe(), "reranker": RULES}

    def score(self, pairs: Sequence[tuple[str, str]]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Scores in [0, 1] of (question, passage) pairs, and the tokens that were read of each, both (pairs,).

        Raises:
            EngineError: The model can't be loaded or fails to run, or it has more classes than two.
        """
        if not pairs:
            return np.zeros(0), np.zeros(0, np.int64)
        classes = self._encoder.model_config.num_labels
        if classes > 2:
            raise EngineError(
                f"{WHAT} {self._config.model!r} has {classes} classes, which are no measure of relevance. "
                "Give a cross-encoder with one or two."
            )
        if self._runner is None:
            self._runner = open_classifier(self._config.classifier, self._encoder)
        logits, tokens = self._runner.logits(pairs)
        odds = logits[:, 0] if classes == 1 else logits[:, 1] - logits[:, 0]
        return 1 / (1 + np.exp(-np.clip(odds, -700, 700))), tokens  # beyond 700, exp overflows

    def close(self) -> None:
        """Free the model; a later call loads it again."""
        if self._runner is not None:
            self._runner.close()


class _Encoder(Encoder):
    """The question goes first, as cross-encoders are trained, and token types are the tokenizer's own."""

    def encode(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]] | None]:
        """Token ids of each (question, passage), and their token types where the model knows several.

        Raises:
            EngineError: The model reads token types, and its engine gives none.
        """
        typed = getattr(self.model_config, "type_vocab_size", 0) > 1
        if typed and self._config.engine == "vllm_offline":
            raise EngineError(
                f"{WHAT} {self._config.model!r} separates question and passage by token types, which vllm_offline "
                "does not give it. Use engine transformers_cpu, or a model without them, such as an XLM-RoBERTa."
            )
        encoded = self.tokenizer(
            [self._plain(question) for question, _ in pairs],
            [self._plain(passage) for _, passage in pairs],
            truncation="longest_first",
            max_length=self._config.max_tokens,
            return_token_type_ids=typed,
            return_attention_mask=False,
            verbose=False,
        )
        return encoded["input_ids"], encoded["token_type_ids"] if typed else None
