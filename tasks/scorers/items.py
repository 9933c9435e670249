"""The input and output of scorers, and one request for items that look the same to the model."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

from tasks.core import keys

Kind = Literal["answer", "context", "answerability"]


@dataclass(frozen=True, slots=True)
class Item:
    """One score to be made.

    Attributes:
        kind: `answer` is its relevance to the question, `context` that of one chunk, `answerability` whether the chunks
            answer it.
        chunk_id: The chunk of kind `context`; None otherwise.
        passages: Text of that chunk; of the other kinds, the texts of all chunks of the trace.
    """

    trace_id: str
    kind: Kind
    chunk_id: str | None
    question: str
    answer: str
    passages: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str | None]:
        """What identifies it among the scores of a part."""
        return (self.trace_id, self.kind, self.chunk_id)

    @property
    def blank(self) -> bool:
        """Whether there is nothing in what is to be scored."""
        return not (self.answer if self.kind == "answer" else "".join(self.passages)).strip()


@dataclass(frozen=True, slots=True)
class Scored:
    """What came of an item.

    Attributes:
        score: In [0, 1]; None on failure.
        failure: Why there is no score; None otherwise. `types.OUTAGE`: the request could not be made.
        tokens_in: Tokens read, those of `tokens_cached` included.
    """

    score: float | None
    failure: str | None = None
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0


class Scorer(keys.Versioned):
    """Scores one kind, or several by one model; see `tasks.scorers`. The defaults are of a scorer without a model.

    Attributes:
        version: `scorer_version`: hash of what can change a score.
        kinds: What it scores.
        method: Name of the method.
        asks: Whether each score is a request to a language model.
        model: What `close` frees; the same object for scorers that share a language model.
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
        """Which engine runs its model."""
        return "none"

    @property
    def gpus(self) -> int:
        """GPUs that it holds while it scores."""
        return 0

    def shows(self, item: Item) -> tuple[str, ...]:
        """The texts of an item that its model reads, in an order of the scorer's."""
        return (item.question, *item.passages)

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """The scores of items of its kinds, in order, to 4 decimals.

        Raises:
            EngineError: The model can't be run; nothing is kept.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Free its model; a later call loads it again."""


class Runner(Protocol):
    """What runs the model of a scorer."""

    @property
    def engine(self) -> str:
        """Which engine runs it."""

    @property
    def gpus(self) -> int:
        """GPUs that the model holds here."""

    def close(self) -> None:
        """Free the model."""


class ModelScorer(Scorer):
    """A scorer with a model of its own, which reads no blank text, and equal texts once."""

    def __init__(self, runner: Runner, model: object) -> None:
        self._runner, self.model = runner, model

    @property
    def engine(self) -> str:
        """Which engine runs the model."""
        return self._runner.engine

    @property
    def gpus(self) -> int:
        """GPUs that the model holds here."""
        return self._runner.gpus

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """See `Scorer`."""
        return once(items, self._shown, self._request)

    def close(self) -> None:
        """Free the model; a later call loads it again."""
        self._runner.close()

    def _shown(self, item: Item) -> Hashable:
        """What decides the score of an item."""
        return self.shows(item)

    def _request(self, items: list[Item]) -> list[Scored]:
        raise NotImplementedError


def once(
    items: Sequence[Item], shown: Callable[[Item], Hashable], request: Callable[[list[Item]], list[Scored]]
) -> list[Scored]:
    """The scores of items in order; one request for those that look the same to the model, none for blank ones.

    A blank text has nothing to do with any question: it scores 0. Tokens count where they were paid for.

    Args:
        shown: What the model sees of an item. Requests are in the order of their passages, so that those that share
            them follow one another, and a prefix cache reads them once.
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
