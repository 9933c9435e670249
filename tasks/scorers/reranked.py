"""Chunk relevance by a cross-encoder."""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.core import keys
from tasks.judges.reranker import Reranker
from tasks.scorers.items import Item, Kind, Scored, once
from tasks.text.windows import windows

RULES = 1  # raised when the same scores of windows make another score


@dataclass(frozen=True, slots=True)
class Reranked:
    """A cross-encoder's score of a chunk, that of its best window; see `items.Scorer`.

    Attributes:
        words: Most words of a window.
    """

    reranker: Reranker
    words: int
    kinds: tuple[Kind, ...] = ("context",)
    method: str = "reranker"
    asks: bool = False

    @property
    def version(self) -> str:
        """Hash of the reranker and of how it is shown a long chunk."""
        return keys.version({"reranked": RULES, "reranker": self.reranker.version, "window_words": self.words})

    @property
    def gpus(self) -> int:
        """GPUs that the model holds."""
        return self.reranker.gpus

    @property
    def model(self) -> object:
        """The cross-encoder."""
        return self.reranker

    def shows(self, item: Item) -> tuple[str, ...]:
        """The question and the chunk."""
        return (item.question, *item.passages)

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """Scores, to 4 decimals."""
        return once(items, self.shows, self._ask)

    def close(self) -> None:
        """Free the model."""
        self.reranker.close()

    def _ask(self, items: list[Item]) -> list[Scored]:
        cut = [[text[a:b] for a, b in windows(text, self.words)] for text in (i.passages[0] for i in items)]
        pairs = [(item.question, window) for item, own in zip(items, cut, strict=True) for window in own]
        scores, tokens = self.reranker.score(pairs)
        found: list[Scored] = []
        at = 0
        for own in cut:
            end = at + len(own)
            found.append(Scored(round(float(scores[at:end].max()), 4), tokens_in=int(tokens[at:end].sum())))
            at = end
        return found
