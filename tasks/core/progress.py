"""The interface through which a stage reports its progress to a terminal, to Prefect or to nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """Gets a stage's size when it starts, and every step."""

    def start(self, stage: str, total: int | None) -> None:
        """`total` units of work lie ahead; None if that can't be known."""

    def advance(self, steps: int = 1) -> None:
        """Some units are done."""

    def finish(self) -> None:
        """The stage is over, done or not."""


class Silent:
    """Discards all progress."""

    def start(self, stage: str, total: int | None) -> None:
        """Ignored."""

    def advance(self, steps: int = 1) -> None:
        """Ignored."""

    def finish(self) -> None:
        """Ignored."""


class Both:
    """Reports progress to two receivers."""

    def __init__(self, one: Progress, other: Progress) -> None:
        self._watchers = one, other

    def start(self, stage: str, total: int | None) -> None:
        """A stage begins, for both."""
        for watcher in self._watchers:
            watcher.start(stage, total)

    def advance(self, steps: int = 1) -> None:
        """Some units are done, for both."""
        for watcher in self._watchers:
            watcher.advance(steps)

    def finish(self) -> None:
        """The stage is over, for both."""
        for watcher in self._watchers:
            watcher.finish()


@contextmanager
def tracked(progress: Progress, stage: str, total: int | None) -> Iterator[Progress]:
    """A stage's work; `finish` is called however it ends."""
    progress.start(stage, total)
    try:
        yield progress
    finally:
        progress.finish()
