"""Inputs and outputs of scorers. Items that look the same to the model share one request."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

from tasks.core import keys

Kind = Literal["answer", "context", "answerability"]


@dataclass(frozen=True, slots=True)
class Item:
    """One score to compute.

    Attributes:
        kind: `answer` is the answer's relevance to the question, `context` a chunk's relevance to it, `answerability`
            whether the chunks answer it.
        chunk_id: The chunk of kind `context`; None for other kinds.
        passages: The text of that chunk; for other kinds, the texts of all chunks of the trace.
    """

    trace_id: str
    kind: Kind
    chunk_id: str | None
    question: str
    answer: str
    passages: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str | None]:
        """Identifies the item among the scores of a part."""
        return (self.trace_id, self.kind, self.chunk_id)

    @property
    def blank(self) -> bool:
        """Whether the text to score is blank."""
        return not (self.answer if self.kind == "answer" else "".join(self.passages)).strip()


@dataclass(frozen=True, slots=True)
class Scored:
    """The result for an item.

    Attributes:
        score: In [0, 1]; None after a failure.
        failure: Why there is no score; None otherwise. `types.OUTAGE` if the request could not be made.
        tokens_in: Tokens read, including `tokens_cached`.
    """

    score: float | None
    failure: str | None = None
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0


class Scorer(keys.Versioned):
    """Scores one or several kinds with one model; see `tasks.scorers`. The defaults are for scorers without a model.

    Attributes:
        version: `scorer_version`: hash of everything that can change a score.
        kinds: The kinds that it scores.
        method: Name of the method.
        asks: Whether each score is a request to a language model.
        model: The object that `close` frees. Scorers with the same language model share it.
        earlier_questions: See `Recipe`.
    """

    kinds: tuple[Kind, ...]
    method: str
    asks: bool = False
    model: object = None
    earlier_questions: int = 0

    @cached_property
    def version(self) -> str:
        """See `Versioned.version`."""
        own = keys.version(self.describe())
        return keys.version([own, {"earlier_questions": self.earlier_questions}]) if self.earlier_questions else own

    @property
    def engine(self) -> str:
        """The engine of its model."""
        return "none"

    @property
    def gpus(self) -> int:
        """GPUs that it uses for scoring."""
        return 0

    def shows(self, item: Item) -> tuple[str, ...]:
        """The texts of an item that the model reads, in the scorer's order."""
        return (item.question, *item.passages)

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """The scores of items of its kinds, in order, to 4 decimals.

        Raises:
            EngineError: The model can't be run; no scores are returned.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Free its model; a later call loads it again."""


class Runner(Protocol):
    """An object that runs a scorer's model."""

    @property
    def engine(self) -> str:
        """The model's engine."""

    @property
    def gpus(self) -> int:
        """GPUs that the model uses on this machine."""

    def close(self) -> None:
        """Free the model."""


class ModelScorer(Scorer):
    """A scorer with its own model, which reads no blank texts, and equal texts once."""

    def __init__(self, runner: Runner, model: object) -> None:
        self._runner, self.model = runner, model

    @property
    def engine(self) -> str:
        """The model's engine."""
        return self._runner.engine

    @property
    def gpus(self) -> int:
        """GPUs that the model uses on this machine."""
        return self._runner.gpus

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """See `Scorer`."""
        return once(items, self._shown, self._request)

    def close(self) -> None:
        """Free the model; a later call loads it again."""
        self._runner.close()

    def _shown(self, item: Item) -> Hashable:
        """Everything that decides the score of an item."""
        return self.shows(item)

    def _request(self, items: list[Item]) -> list[Scored]:
        raise NotImplementedError


def once(
    items: Sequence[Item], shown: Callable[[Item], Hashable], request: Callable[[list[Item]], list[Scored]]
) -> list[Scored]:
    """The scores of items in order, with one request for items that look the same to the model.

    A blank text is not sent and scores 0, because it is about no question. Only the first of equal items has tokens.

    Args:
        shown: Returns what the model sees of an item. Requests are sorted by passages, so that a prefix cache reads
            shared passages once.
    """
    first: dict[Hashable, int] = {}
    for i, item in enumerate(items):
        if not item.blank:
            first.setdefault(shown(item), i)
    order = sorted(first.values(), key=lambda i: items[i].passages)
    found = dict(zip(order, request([items[i] for i in order]), strict=True))
    return [
        Scored(0.0)
        if item.blank
        else found[i]
        if i in found
        else replace(found[first[shown(item)]], tokens_in=0, tokens_cached=0, tokens_out=0)
        for i, item in enumerate(items)
    ]
