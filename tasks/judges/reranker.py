"""Rerankers: a cross-encoder scores how relevant a passage is to a question (docs/methods.md#scores-of-one-trace).

A config file of kind `reranker` names the model. A recipe's `context_relevance` names the file. Left out: how the model
runs (`tasks/engines/reranker.py`), and cutting chunks into windows.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from tasks.core import keys
from tasks.core.config import Settings, load_yaml, validate
from tasks.engines import reranker as engine
from tasks.engines.reranker import RerankerConfig


class Config(Settings):
    """The whole of a reranker's file. Paths are relative to the file.

    Attributes:
        model: The cross-encoder, and the engine that runs it.
    """

    kind: Literal["reranker"]
    model: RerankerConfig


class Reranker:
    """See the module."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._engine = engine.Reranker(config.model)

    @property
    def version(self) -> str:
        """Hash of what decides a score.

        Raises:
            EngineError: The model's files are not there.
        """
        return keys.version(self._engine.describe())

    @property
    def gpus(self) -> int:
        """GPUs that the model holds."""
        return self._config.model.gpus

    def score(self, pairs: Sequence[tuple[str, str]]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Scores in [0, 1] of (question, passage) pairs, and the tokens that were read of each, both (pairs,).

        Raises:
            EngineError: The model can't be loaded or run.
        """
        return self._engine.score(pairs)

    def close(self) -> None:
        """Free the model; a later call loads it again."""
        self._engine.close()


def load(path: Path) -> Reranker:
    """The reranker that a YAML file describes; its model is not loaded before the first call.

    Raises:
        ConfigError: The file or one of its keys is wrong.
    """
    config = validate(Config, load_yaml(path), path)
    return Reranker(config.model_copy(update={"model": config.model.relative_to(path.resolve().parent)}))
