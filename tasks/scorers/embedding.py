"""Relevance by embedding: question against answer, and question against each chunk.

A chunk gets the score of its most relevant window. A longer answer is compared by the mean of its windows' vectors,
because all of it should be about the question. Cosines below 0 count as 0.
"""

from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise

import numpy as np
import numpy.typing as npt

from tasks.engines.transformers_cpu import Embedder
from tasks.scorers.items import Item, Kind, Scored, Scorer
from tasks.text.windows import windows

Vectors = npt.NDArray[np.float32]
BOTH: tuple[Kind, ...] = ("answer", "context")


class Embedding(Scorer):
    """See the module. The embedding model belongs to the recipe, which closes it.

    Args:
        words: Maximum words of a window.
    """

    method = "embedding"

    def __init__(self, kinds: tuple[Kind, ...], embedder: Embedder, words: int) -> None:
        self.kinds, self.model = kinds, embedder
        self._embedder, self._words = embedder, words

    def describe(self) -> dict[str, object]:
        """The embedding model, and how long texts are split."""
        own = {"embedder": self._embedder.version, "window_words": self._words}
        return own if self.kinds == BOTH else {**own, "kinds": self.kinds}

    def shows(self, item: Item) -> tuple[str, ...]:
        """The question, and the answer or the chunk."""
        return (item.question, item.answer if item.kind == "answer" else item.passages[0])

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """Cosines to 4 decimals. A question is embedded once for adjacent items of a trace."""
        traces = [list(group) for _, group in groupby(items, lambda item: item.trace_id)]
        texts = [text for trace in traces for text in (trace[0].question, *(self.shows(item)[1] for item in trace))]
        cut = [[text[a:b] for a, b in windows(text, self._words)] for text in texts]
        embedded = self._embedder.embed([window for own in cut for window in own])
        spans = pairwise(accumulate(map(len, cut), initial=0))
        found: list[Scored] = []
        for trace in traces:
            counted, end = next(spans)  # the tokens of a question count for the first item of a trace
            mean = embedded.vectors[counted:end].mean(axis=0)
            question = mean / (np.linalg.norm(mean) or 1.0)
            for item in trace:
                start, end = next(spans)
                relevance = answer_relevance if item.kind == "answer" else chunk_relevance
                tokens = int(embedded.tokens[counted:end].sum())
                found.append(Scored(relevance(question, embedded.vectors[start:end]), tokens_in=tokens))
                counted = end
        return found


def answer_relevance(question: Vectors, answer: Vectors) -> float:
    """Cosine of the question (d,) and the mean of the answer's windows (n, d), in [0, 1], to 4 decimals."""
    mean = answer.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    return round(max(0.0, float(question @ mean) / norm), 4) if norm else 0.0


def chunk_relevance(question: Vectors, chunk: Vectors) -> float:
    """Highest cosine of the question (d,) and a window of the chunk (n, d), in [0, 1], to 4 decimals."""
    return round(max(0.0, float((chunk @ question).max())), 4)
