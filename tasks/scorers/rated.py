"""Relevance and answerability as rated by a language model. An unreadable reply is a failure, never a score."""

from pathlib import Path

from tasks.core.errors import ConfigError
from tasks.judges.rater_model import RaterModel, Rating
from tasks.scorers.items import Item, Kind, ModelScorer, Scored

RULES = 1  # raised when the same ratings give a different score
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


class Rated(ModelScorer):
    """A language model's rating, scaled to [0, 1]."""

    method = "rated"
    asks = True

    def __init__(self, kind: Kind, rater: RaterModel) -> None:
        super().__init__(rater, rater.generator)
        self.kinds = (kind,)
        self._kind, self._rater = kind, rater

    def describe(self) -> dict[str, object]:
        """The rater model, and which rating is used."""
        return {"rated": RULES, "rating": RATINGS[self._kind], "rater": self._rater.version}

    def shows(self, item: Item) -> tuple[str, ...]:
        """The question, the answer if it is rated, and the chunk or chunks."""
        return (item.question, *((item.answer,) if self._kind == "answer" else ()), *item.passages)

    def _request(self, items: list[Item]) -> list[Scored]:
        inputs = [{"passages": i.passages, "question": i.question, "answer": i.answer} for i in items]
        found: list[Scored] = []
        for ratings in self._rater.rate(inputs):
            score = share(ratings.values.get(RATINGS[self._kind]))
            failure = ratings.failure or (NOT_APPLICABLE if score is None else None)
            found.append(Scored(score, failure, ratings.tokens_in, ratings.tokens_cached, ratings.tokens_out))
        return found


def share(rating: Rating) -> float | None:
    """A rating scaled to [0, 1]: 1 to 5 as 0 to 1, no as 0, yes as 1; None if it does not apply."""
    if rating is None or isinstance(rating, bool):
        return None if rating is None else float(rating)
    return round((rating - 1) / 4, 4)


def check_rating(rater: RaterModel, kind: Kind, path: Path) -> None:
    """Refuse a rater model whose prompt does not ask for the required rating.

    Raises:
        ConfigError: The rating is missing.
    """
    given = list(rater.prompt.output["properties"])
    if RATINGS[kind] not in given:
        raise ConfigError(
            path,
            "prompt",
            f"asks for {', '.join(given)} and for no rating {RATINGS[kind]}",
            f"Name a prompt that does, such as configs/prompts/{PROMPTS[kind]}/v1.md.",
        )
