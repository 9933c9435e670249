"""Chunk relevance by a reranker: a cross-encoder scores how relevant a passage is to a question.

A config file of kind `reranker` names the model (`tasks/engines/reranker.py`); a recipe's `context_relevance` names the
file. Method: docs/methods.md#scores-of-one-trace.
"""

from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal

from tasks.core.config import Settings, load_yaml, validate
from tasks.engines.reranker import Reranker, RerankerConfig
from tasks.scorers.items import Item, ModelScorer, Scored
from tasks.text.windows import windows

RULES = 1  # raised when the same scores of windows give a different score


class Config(Settings):
    """The settings in a reranker's file. Paths are relative to the file.

    Attributes:
        model: The cross-encoder and its engine.
    """

    kind: Literal["reranker"]
    model: RerankerConfig


def load(path: Path) -> Reranker:
    """The reranker that a YAML file describes. The first call loads its model.

    Raises:
        ConfigError: The file or one of its keys is wrong.
    """
    config = validate(Config, load_yaml(path), path)
    return Reranker(config.model.relative_to(path.resolve().parent))


class Reranked(ModelScorer):
    """A cross-encoder's score for a chunk: that of its best window.

    Args:
        words: Maximum words of a window.
    """

    kinds = ("context",)
    method = "reranker"

    def __init__(self, reranker: Reranker, words: int) -> None:
        super().__init__(reranker, reranker)
        self._reranker, self._words = reranker, words

    def describe(self) -> dict[str, object]:
        """The reranker, and how long chunks are split."""
        return {"reranked": RULES, "reranker": self._reranker.version, "window_words": self._words}

    def _request(self, items: list[Item]) -> list[Scored]:
        cut = [[text[a:b] for a, b in windows(text, self._words)] for text in (i.passages[0] for i in items)]
        pairs = [(item.question, window) for item, own in zip(items, cut, strict=True) for window in own]
        scores, tokens = self._reranker.score(pairs)
        ends = accumulate(map(len, cut), initial=0)
        return [Scored(round(float(scores[a:b].max()), 4), tokens_in=int(tokens[a:b].sum())) for a, b in pairwise(ends)]
