"""Answerability by words: the share of the question's content words that its chunks have.

Method: docs/methods.md#the-waterfall-what-is-safe-to-send.

A baseline without a model. It only compares words: chunks with the question's words need not answer it, and chunks that
answer it may use other words. Tuned to English.
"""

from collections.abc import Sequence

from tasks.scorers.items import Item, Scored, Scorer
from tasks.text.words import coverage, distinct, stem, stems_of

RULES = 1  # raised when the same texts get a different score, even by the stemming in `tasks.text.words`
NO_WORDS = "no_content_words"


class Coverage(Scorer):
    """See the module. A question of stop words only ("Why is it?") has no score."""

    kinds = ("answerability",)
    method = "coverage"

    def describe(self) -> dict[str, object]:
        """The version of the rules."""
        return {"coverage": RULES}

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """Shares, to 4 decimals."""
        return [_covered(item) for item in items]


def _covered(item: Item) -> Scored:
    question = stems_of(item.question)
    if not question:
        return Scored(None, NO_WORDS)
    # Include stop words: "keep" is one, and a question may ask where something is "kept".
    chunks = map(stem, set[str]().union(*map(distinct, item.passages)))
    return Scored(round(coverage(question, frozenset(chunks)), 4))
