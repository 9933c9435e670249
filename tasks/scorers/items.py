"""What a scorer is given and gives, and one request for what looks the same to the model."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

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


class Scorer(Protocol):
    """Scores one kind, or several by one model; see `tasks.scorers`."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What it scores."""

    @property
    def method(self) -> str:
        """Name of the method."""

    @property
    def version(self) -> str:
        """`scorer_version`: hash of what can change a score."""

    @property
    def gpus(self) -> int:
        """GPUs that it holds while it scores."""

    @property
    def model(self) -> object:
        """What `close` frees; the same object for scorers that ask the same language model."""

    @property
    def asks(self) -> bool:
        """Whether each score is a request to a language model."""

    def shows(self, item: Item) -> tuple[str, ...]:
        """The texts of an item that its model reads, in an order of the scorer's."""

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """The scores of items of its kinds, in order.

        Raises:
            EngineError: The model can't be run; nothing is kept.
        """

    def close(self) -> None:
        """Free its model; a later call loads it again."""


def once(
    items: Sequence[Item], shown: Callable[[Item], Hashable], ask: Callable[[list[Item]], list[Scored]]
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
    found = dict(zip(order, ask([items[i] for i in order]), strict=True))
    return [
        Scored(0.0)
        if item.blank
        else found[i]
        if i in found
        else replace(found[first[shown(item)]], tokens_in=0, tokens_cached=0, tokens_out=0)
        for i, item in enumerate(items)
    ]
