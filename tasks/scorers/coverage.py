"""Answerability by words: the share of the question's content words that its chunks have.

Method: docs/methods.md#the-waterfall-what-is-safe-to-send.

A baseline without a model. It compares words only: a chunk that has the words of the
question need not answer it, and one that answers it may use others. Tuned to English.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.core import keys
from tasks.scorers.items import Item, Kind, Scored
from tasks.text.words import WORD, coverage, stem, stems_of

RULES = 1  # raised when the same texts get another score, also where the stemming of `tasks.text.words` changes
NO_WORDS = "no_content_words"


@dataclass(frozen=True, slots=True)
class Coverage:
    """The scorer; see `items.Scorer`."""

    kinds: tuple[Kind, ...] = ("answerability",)
    method: str = "coverage"
    gpus: int = 0
    model: object = None
    asks: bool = False

    @property
    def version(self) -> str:
        """Hash of the rules."""
        return keys.version({"coverage": RULES})

    def shows(self, item: Item) -> tuple[str, ...]:
        """The question and the chunks."""
        return (item.question, *item.passages)

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """Shares, to 4 decimals; a question of stop words alone ("Why is it?") has none."""
        return [_covered(item) for item in items]

    def close(self) -> None:
        """Nothing is held."""


def _covered(item: Item) -> Scored:
    question = stems_of(item.question)
    if not question:
        return Scored(None, NO_WORDS)
    # Stop words too: "keep" is one, and the question may be where something is "kept".
    chunks = {stem(word) for passage in item.passages for word in set(WORD.findall(passage.casefold()))}
    return Scored(round(coverage(question, frozenset(chunks)), 4))
