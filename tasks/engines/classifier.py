"""Classifiers of (premise, hypothesis) pairs: their interface, and a function that opens one.

All engines get the same token ids from `Encoder`. So a model's verdicts hardly depend on the engine, and its version
does not depend on it at all. Left out: choosing which part of a long premise to read (callers make windows; beyond
`max_tokens` the premise is truncated), and what the probabilities mean. This module never imports torch.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tasks.engines._classifiers import ClassifierConfig, Labels
from tasks.engines._encoder import Encoder

__all__ = ["ENGINES", "Classified", "Classifier", "ClassifierConfig", "Encoder", "Labels", "open_classifier", "softmax"]
ENGINES = {
    "onnx_cpu": ("tasks.engines.onnx.classifier", "OnnxClassifier"),
    "transformers_cpu": ("tasks.engines.transformers_cpu", "TransformersClassifier"),
    "vllm_offline": ("tasks.engines.vllm.classifier", "VllmClassifier"),
}


@dataclass(frozen=True, slots=True)
class Classified:
    """The result of one call to `Classifier.classify`.

    Attributes:
        probabilities: Probability of each class of the model, float64, (pairs, classes); rows sum to 1.
        tokens: Tokens that the model read for each pair, with special tokens, int64, (pairs,).
    """

    probabilities: npt.NDArray[np.float64]
    tokens: npt.NDArray[np.int64]


class Classifier:
    """A classifier of (premise, hypothesis) pairs, loaded on first use. Not thread-safe.

    Every method but `close` raises EngineError if the model can't be loaded or run. Engines override `logits`.
    """

    def __init__(self, config: ClassifierConfig, encoder: Encoder | None = None) -> None:
        self._config = config
        self._encoder = encoder or Encoder(config)

    @property
    def labels(self) -> Labels:
        """The meaning of the classes."""
        return self._encoder.labels

    def describe(self) -> dict[str, object]:
        """Everything that can change a pair's probabilities, to be hashed into a version."""
        return self._encoder.describe()

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text on its own, without special tokens."""
        return self._encoder.count(texts)

    def room(self) -> int:
        """Tokens left for premise and hypothesis together. A hypothesis must be shorter."""
        return self._encoder.room()

    def classify(self, pairs: Sequence[tuple[str, str]]) -> Classified:
        """Probabilities of (premise, hypothesis) pairs, in their order.

        Raises:
            EngineError: The model can't be loaded or fails to run, or a hypothesis leaves no room for a premise.
        """
        found, tokens = self.logits(pairs)
        for i, row in enumerate(found):
            found[i] = softmax(row)
        return Classified(found, tokens)

    def logits(self, pairs: Sequence[tuple[str, str]]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Logits of each class, (pairs, classes), and tokens read for each pair, (pairs,).

        Raises:
            EngineError: See `classify`.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Free the model; a later call loads it again."""


def open_classifier(config: ClassifierConfig, encoder: Encoder | None = None) -> Classifier:
    """The classifier that a config describes. Nothing is loaded before its first use."""
    module, name = ENGINES[config.engine]
    made: Classifier = getattr(importlib.import_module(module), name)(config, encoder)
    return made


def softmax(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Probabilities of logits (classes,). One pair at a time, so that no bit depends on other pairs."""
    weights = np.exp(logits - logits.max())
    probabilities: npt.NDArray[np.float64] = weights / weights.sum()
    return probabilities
