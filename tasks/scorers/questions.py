"""Answer relevance by question regeneration: a model writes questions that the answer would answer.

A reply that can't be read is a failure, never a score.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tasks.core import keys
from tasks.engines.transformers_cpu import Embedder
from tasks.judges.generate import Writer
from tasks.judges.regeneration import regenerated
from tasks.scorers.items import Item, Kind, Scored, once

RULES = 1  # raised when the same replies make another score
NO_QUESTIONS = "no_questions"


@dataclass(frozen=True, slots=True)
class Questions:
    """Question regeneration; see `items.Scorer` and `tasks.judges.regeneration`."""

    writer: Writer
    embedder: Embedder
    kinds: tuple[Kind, ...] = ("answer",)
    method: str = "questions"
    asks: bool = True

    @property
    def version(self) -> str:
        """Hash of the writer and the embedding model."""
        return keys.version({"questions": RULES, "writer": self.writer.version, "embedder": self.embedder.version})

    @property
    def gpus(self) -> int:
        """GPUs that the writer's model holds here."""
        return self.writer.gpus

    @property
    def model(self) -> object:
        """The language model."""
        return self.writer.generator

    def shows(self, item: Item) -> tuple[str, ...]:
        """The answer: the model that writes is not shown the question."""
        return (item.answer,)

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """Mean cosines, to 4 decimals."""
        return once(items, lambda i: (i.question, i.answer), self._ask)

    def close(self) -> None:
        """Free the model that writes; the recipe closes the embedding model."""
        self.writer.close()

    def _ask(self, items: list[Item]) -> list[Scored]:
        if not items:
            return []
        # The writer sees the answer alone: one request serves an answer to several questions.
        answers = list(dict.fromkeys(i.answer for i in items))
        written = dict(zip(answers, self.writer.write([{"answer": a} for a in answers]), strict=True))
        texts = [written[i.answer].texts for i in items]
        cosines = regenerated(self.embedder, [i.question for i in items], texts)
        found: list[Scored] = []
        for item, cosine in zip(items, cosines, strict=True):
            own = written[item.answer]
            failure = own.failure or (None if own.texts else NO_QUESTIONS)
            tokens = (own.tokens_in + cosine.tokens_in, own.tokens_cached, own.tokens_out)
            found.append(Scored(cosine.score, failure, *tokens))
            written[item.answer] = replace(own, tokens_in=0, tokens_cached=0, tokens_out=0)
        return found
