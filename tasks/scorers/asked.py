"""Scores that models give: ratings, questions that an answer would answer, and a reranker's (METHODS section 4).

A reply that can't be read is a failure, never a score. What a model could not be asked (an outage) comes back as such.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tasks.core import keys
from tasks.core.errors import ConfigError
from tasks.engines.transformers_cpu import Embedder
from tasks.judges.generate import Writer
from tasks.judges.rater_model import RaterModel, Rating
from tasks.judges.regeneration import regenerated
from tasks.judges.reranker import Reranker
from tasks.scorers.items import Item, Kind, Scored, once
from tasks.text.windows import windows

RULES = 1  # raised when the same replies, or the same scores of windows, make another score
NO_QUESTIONS = "no_questions"
NOT_APPLICABLE = "not_applicable"
RATINGS: dict[Kind, str] = {
    "answer": "answer_relevance",
    "context": "context_relevance",
    "answerability": "answerable",
}
GIVES: dict[Kind, tuple[str, ...]] = {
    "answer": ("passages", "question", "answer"),
    "context": ("passages", "question"),
    "answerability": ("passages", "question"),
}


@dataclass(frozen=True, slots=True)
class Rated:
    """A language model's rating; see `items.Scorer`."""

    kind: Kind
    rater: RaterModel
    method: str = "rated"
    asks: bool = True

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The one kind."""
        return (self.kind,)

    @property
    def version(self) -> str:
        """Hash of the rater model and of which rating counts."""
        return keys.version({"rated": RULES, "rating": RATINGS[self.kind], "rater": self.rater.version})

    @property
    def gpus(self) -> int:
        """GPUs that the model holds here."""
        return self.rater.gpus

    @property
    def model(self) -> object:
        """The language model."""
        return self.rater.generator

    def shows(self, item: Item) -> tuple[str, ...]:
        """The question, the answer where it is rated, and the chunk or chunks."""
        return (item.question, *((item.answer,) if self.kind == "answer" else ()), *item.passages)

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """Ratings as shares of the scale, to 4 decimals."""
        return once(items, self.shows, self._ask)

    def close(self) -> None:
        """Free the model."""
        self.rater.close()

    def _ask(self, items: list[Item]) -> list[Scored]:
        inputs = [{"passages": i.passages, "question": i.question, "answer": i.answer} for i in items]
        found: list[Scored] = []
        for ratings in self.rater.rate(inputs):
            score = share(ratings.values.get(RATINGS[self.kind]))
            failure = ratings.failure or (NOT_APPLICABLE if score is None else None)
            found.append(Scored(score, failure, ratings.tokens_in, ratings.tokens_cached, ratings.tokens_out))
        return found


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
        # The writer sees the answer alone, and so is asked once about an answer to several questions.
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


def share(rating: Rating) -> float | None:
    """A rating as a share of its scale: 1 to 5 as 0 to 1, no as 0 and yes as 1; None where it does not apply."""
    if rating is None or isinstance(rating, bool):
        return None if rating is None else float(rating)
    return round((rating - 1) / 4, 4)


def check_rating(rater: RaterModel, kind: Kind, path: Path) -> None:
    """Refuse a rater model whose prompt does not ask for the rating that is needed.

    Raises:
        ConfigError: It does not.
    """
    asked = list(rater.prompt.output["properties"])
    if RATINGS[kind] not in asked:
        known = {
            "answer": "relevance",
            "context": "chunk_relevance",
            "answerability": "answerability",
        }[kind]
        raise ConfigError(
            path,
            "prompt",
            f"asks for {', '.join(asked)} and for no rating {RATINGS[kind]}",
            f"Name a prompt that does, such as configs/prompts/{known}/v1.md.",
        )
