"""Relevance by embedding: question against answer, and question against each chunk.

A chunk is as relevant as its most relevant window. An answer that is longer than a window counts by the mean of its
windows' vectors: all of it should be about the question. Cosines below 0 count as 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tasks.core import keys
from tasks.engines.transformers_cpu import Embedder
from tasks.scorers.items import Item, Kind, Scored
from tasks.text.windows import windows

Vectors = npt.NDArray[np.float32]
BOTH: tuple[Kind, ...] = ("answer", "context")


@dataclass(frozen=True, slots=True)
class Embedding:
    """The scorer; see `items.Scorer`. The embedding model is the recipe's, which closes it.

    Attributes:
        words: Most words of a window.
    """

    kinds: tuple[Kind, ...]
    embedder: Embedder
    words: int
    method: str = "embedding"
    gpus: int = 0
    asks: bool = False

    @property
    def version(self) -> str:
        """Hash of the embedding model and of how it is shown a long text."""
        own = {"embedder": self.embedder.version, "window_words": self.words}
        return keys.version(own if self.kinds == BOTH else {**own, "kinds": self.kinds})

    @property
    def model(self) -> object:
        """The embedding model."""
        return self.embedder

    def shows(self, item: Item) -> tuple[str, ...]:
        """The question, and the answer or the chunk."""
        return (item.question, item.answer if item.kind == "answer" else item.passages[0])

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """Cosines, to 4 decimals; a question is embedded once for the items of a trace that follow one another."""
        texts: list[str] = []
        spans: list[tuple[int, int, int]] = []  # first text of the question, first and one past the last of the item
        before: str | None = None
        first = 0
        for item in items:
            if item.trace_id != before:
                before, first = item.trace_id, len(texts)
                texts += self._cut(item.question)
            start = len(texts)
            texts += self._cut(self.shows(item)[1])
            spans.append((first, start, len(texts)))
        embedded = self.embedder.embed(texts)
        found: list[Scored] = []
        question: Vectors = embedded.vectors[:0]
        counted = 0  # texts whose tokens are counted
        for item, (first, start, end) in zip(items, spans, strict=True):
            if first >= counted:
                mean = embedded.vectors[first:start].mean(axis=0)
                question = mean / (np.linalg.norm(mean) or 1.0)
            relevance = answer_relevance if item.kind == "answer" else chunk_relevance
            tokens = int(embedded.tokens[counted:end].sum())
            found.append(Scored(relevance(question, embedded.vectors[start:end]), tokens_in=tokens))
            counted = end
        return found

    def close(self) -> None:
        """Nothing: the recipe closes the embedding model."""

    def _cut(self, text: str) -> list[str]:
        return [text[a:b] for a, b in windows(text, self.words)]


def answer_relevance(question: Vectors, answer: Vectors) -> float:
    """Cosine of the question (d,) and the mean of the answer's windows (n, d), in [0, 1], to 4 decimals."""
    mean = answer.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    return round(max(0.0, float(question @ mean) / norm), 4) if norm else 0.0


def chunk_relevance(question: Vectors, chunk: Vectors) -> float:
    """Highest cosine of the question (d,) and a window of the chunk (n, d), in [0, 1], to 4 decimals."""
    return round(max(0.0, float((chunk @ question).max())), 4)
