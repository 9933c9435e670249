"""Scores back to the stores that the traces are from: what is due, and how each store takes it.

`plan.py` compares what the lake says of a trace with what the store last confirmed. One module a store sends the
difference, so that whatever is sent twice is there once. `run.py` sends, and keeps the record `write_backs`. Left out:
reading from stores (`tasks/sources/`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar

from tasks.core import keys

T = TypeVar("T")


class Key(NamedTuple):
    """What tells one score of a store from the others."""

    trace_id: str
    name: str
    chunk_id: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One score of a trace, or one verdict on a chunk, that a store should have.

    Attributes:
        score: None: it applies no longer (N/A, unjudged, abstained), and the store must not show a number.
        timestamp: Of the trace.
        about: Recipe and versions, for whoever reads the score in the store. A change of these alone is not sent.
        store_id: Id that the store gave it before.
    """

    key: Key
    score: float | None
    label: str
    explanation: str
    timestamp: datetime
    environment: str | None = None
    about: dict[str, str] = field(default_factory=dict)
    store_id: str | None = None

    @property
    def content(self) -> str:
        """Hash of what people see."""
        score = "" if self.score is None else repr(self.score)
        return keys.key(score, self.label, self.explanation, size=keys.SHORT_HEX)


@dataclass(frozen=True, slots=True)
class Done:
    """What became of an item.

    Attributes:
        store_id: Id that the store has for it.
        problem: Why the store does not have it, without the text of a trace; None where it does.
        left_out: The store has no place for it.
    """

    item: Item
    store_id: str | None = None
    problem: str | None = None
    left_out: bool = False


class Writer(Protocol):
    """Sends items to one store. A store has each of them once, however often it is sent."""

    def write(self, items: Sequence[Item]) -> Iterator[Done]:
        """Send the items, each of which comes back once.

        Raises:
            SourceError: The store can't be reached, or does not accept the credentials: nothing more is sent.
        """


def batched(items: Iterable[T], most: int) -> Iterator[tuple[T, ...]]:
    """The items in their order, at most so many at once."""
    rest = iter(items)
    while batch := tuple(islice(rest, most)):
        yield batch
