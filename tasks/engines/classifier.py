"""Classifiers of (premise, hypothesis) pairs: what they are asked, what they answer, and how one is opened.

All engines get the same token ids from one `Encoder`, so that a model's verdicts hardly depend on where it runs, and
its version not at all. Left out: choosing which part of a long premise is read (callers know what a window should
be; beyond `max_tokens` the premise is truncated), and what the probabilities mean. torch is never imported here.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tasks.engines.shared.classifiers import WHAT, ClassifierConfig, Labels, labels_of
from tasks.engines.shared.encoder import HASHED_FILES, Encoder

__all__ = [
    "HASHED_FILES",
    "WHAT",
    "Classified",
    "Classifier",
    "ClassifierConfig",
    "Encoder",
    "Labels",
    "labels_of",
    "open_classifier",
    "softmax",
]
ENGINES = {
    "onnx_cpu": "OnnxClassifier",
    "transformers_cpu": "TransformersClassifier",
    "vllm_offline": "VllmClassifier",
}


@dataclass(frozen=True, slots=True)
class Classified:
    """What one call to `Classifier.classify` gives.

    Attributes:
        probabilities: Of each class of the model, float64, (pairs, classes); rows sum to 1.
        tokens: Tokens that the model read of each pair, special ones included, int64, (pairs,).
    """

    probabilities: npt.NDArray[np.float64]
    tokens: npt.NDArray[np.int64]


class Classifier(Protocol):
    """A classifier of (premise, hypothesis) pairs, loaded on first use. Not for use from several threads at once.

    Every method but `close` raises EngineError where the model can't be loaded or run.
    """

    @property
    def labels(self) -> Labels:
        """Which class says what."""

    def describe(self) -> dict[str, object]:
        """Everything that decides a pair's probabilities, to be hashed into a version; not how it is run."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text by itself, without special ones."""

    def room(self) -> int:
        """Tokens that are left for premise and hypothesis together. A hypothesis has to be shorter than that."""

    def classify(self, pairs: Sequence[tuple[str, str]]) -> Classified:
        """Probabilities of (premise, hypothesis) pairs, in their order."""

    def close(self) -> None:
        """Free the model; a later call loads it again."""


def open_classifier(config: ClassifierConfig) -> Classifier:
    """The classifier that a config describes; nothing is loaded before it is used."""
    module = importlib.import_module(f"tasks.engines.{config.engine}")
    made: Classifier = getattr(module, ENGINES[config.engine])(config)
    return made


def softmax(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Probabilities of logits (classes,): one pair at a time, so that no bit depends on the pairs beside it."""
    weights = np.exp(logits - logits.max())
    probabilities: npt.NDArray[np.float64] = weights / weights.sum()
    return probabilities
