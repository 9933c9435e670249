"""Relevance and answerability by a language model's rating. A reply that can't be read is a failure, never a score."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.core import keys
from tasks.core.errors import ConfigError
from tasks.judges.rater_model import RaterModel, Rating
from tasks.scorers.items import Item, Kind, Scored, once

RULES = 1  # raised when the same ratings make another score
NOT_APPLICABLE = "not_applicable"
RATINGS: dict[Kind, str] = {
    "answer": "answer_relevance",
    "context": "context_relevance",
    "answerability": "answerable",
}
PROMPTS: dict[Kind, str] = {"answer": "relevance", "context": "chunk_relevance", "answerability": "answerability"}
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
    given = list(rater.prompt.output["properties"])
    if RATINGS[kind] not in given:
        raise ConfigError(
            path,
            "prompt",
            f"asks for {', '.join(given)} and for no rating {RATINGS[kind]}",
            f"Name a prompt that does, such as configs/prompts/{PROMPTS[kind]}/v1.md.",
        )
