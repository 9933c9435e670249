"""Write scores back to the stores that the traces came from.

`plan.py` compares the scores in the lake with those that the store last confirmed. Each store has a module that sends
the difference idempotently. `run.py` runs the process and records it in `write_backs`. Left out: reading from stores
(`tasks/sources/`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar

from tasks.core import keys

T = TypeVar("T")


class Key(NamedTuple):
    """Identifies a score in a store."""

    trace_id: str
    name: str
    chunk_id: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """The score of a trace, or the verdict on a chunk, that a store should have.

    Attributes:
        score: The score. None if it does not apply (N/A, unjudged, abstained); the store must then show no number.
        timestamp: Timestamp of the trace.
        about: Recipe and versions, for people who see the score in the store. A change of only these is not sent.
        store_id: Id of the score in the store, if it was sent before.
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
        """Hash of score, label and explanation."""
        score = "" if self.score is None else repr(self.score)
        return keys.key(score, self.label, self.explanation, size=keys.SHORT_HEX)


@dataclass(frozen=True, slots=True)
class Done:
    """The result of sending an item.

    Attributes:
        store_id: Id of the item in the store.
        problem: Why the store refused the item, without text of a trace; None if it did not.
        left_out: Whether the store has no place for the item.
    """

    item: Item
    store_id: str | None = None
    problem: str | None = None
    left_out: bool = False


class Writer(Protocol):
    """Sends items to one store. Sending is idempotent."""

    def write(self, items: Sequence[Item]) -> Iterator[Done]:
        """Send items; yields one result per item.

        Raises:
            SourceError: The store can't be reached or does not accept the credentials. No further items are sent.
        """


def batched(items: Iterable[T], most: int) -> Iterator[tuple[T, ...]]:
    """Split items into batches of at most `most`, in order."""
    rest = iter(items)
    while batch := tuple(islice(rest, most)):
        yield batch
