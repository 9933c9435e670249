"""Rerankers: cross-encoders that score how well a passage answers a question.

The score is the sigmoid of the logit of a model with one class, or the probability of the second of two classes. The
models run as classifiers: on the CPU with transformers, on GPUs with vLLM. Left out: rerankers that generate text, and
cutting passages into windows. torch and vLLM are imported on first use.
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

RULES = 1  # raised when the same pair gives a different score
WHAT = "reranker"


class RerankerConfig(CrossEncoderConfig):
    """Settings of a cross-encoder.

    Attributes:
        engine: `transformers_cpu`, or `vllm_offline` for GPUs.
        dtype: Number format of the computation; `float16` needs vllm_offline.
        max_tokens: Tokens read of question and passage together, with special tokens; the longer one is truncated.
    """

    engine: Literal["transformers_cpu", "vllm_offline"] = "transformers_cpu"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    max_tokens: Annotated[int, Field(ge=16)] = 512

    @property
    def classifier(self) -> ClassifierConfig:
        """The same model as settings of a classifier."""
        return ClassifierConfig(**self.model_dump())

    @model_validator(mode="after")
    def _runs(self) -> Self:
        _ = self.classifier  # ClassifierConfig validates the engine
        return self


class Reranker(Versioned):
    """A cross-encoder, loaded on first use. Not thread-safe."""

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
        """Everything that can change a score, to be hashed into a version.

        Raises:
            EngineError: The model's files are missing.
        """
        return {"encoder": self._encoder.describe(), "reranker": RULES}

    def score(self, pairs: Sequence[tuple[str, str]]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Scores in [0, 1] of (question, passage) pairs, and tokens read for each pair, both (pairs,).

        Raises:
            EngineError: The model can't be loaded, fails to run, or has more than two classes.
        """
        if not pairs:
            return np.zeros(0), np.zeros(0, np.int64)
        classes = self._encoder.model_config.num_labels
        if classes > 2:
            raise EngineError(
                f"{WHAT} {self._config.model!r} has {classes} classes, so it can't score relevance. "
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
    """Puts the question first, as in the training of cross-encoders, and uses the tokenizer's own token types."""

    def encode(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]] | None]:
        """Token ids of each (question, passage), and their token types if the model has several.

        Raises:
            EngineError: The model needs token types, and its engine supports none.
        """
        typed = getattr(self.model_config, "type_vocab_size", 0) > 1
        if typed and self._config.engine == "vllm_offline":
            raise EngineError(
                f"{WHAT} {self._config.model!r} separates question and passage by token types, which vllm_offline "
                "does not support. Use engine transformers_cpu, or a model without them, such as an XLM-RoBERTa."
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
