"""One slot for the GPU, so that runs side by side don't load two models onto it.

A run that wants the slot takes the turn first, and gives it back once it has the slot. Otherwise a run that gives the
slot back and takes it again at once would keep others waiting forever. With Prefect, slot and turn are its concurrency
limits (`flows/runtime/prefect.py`; docs/operations.md sets them up); without, they are lock files in the lake.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

SLOT, TURN = "leadline-gpu", "leadline-gpu-turn"


class Closing(Protocol):
    """A context, a judge or a grader: what holds models."""

    def close(self) -> None:
        """Free them."""


class Slots(Protocol):
    """Rights that one run has at a time."""

    def take(self, name: str) -> AbstractContextManager[object]:
        """Hold a right, waiting for it."""

    def holders(self, name: str) -> float:
        """How many runs hold it."""

    def waiting(self) -> None:
        """Say that another run has the GPU."""


class FileSlots:
    """Rights as lock files of a lake; the system frees them when their process ends."""

    def __init__(self, lake: Path) -> None:
        self._lake = lake

    def take(self, name: str) -> FileLock:
        """See `Slots`."""
        return FileLock(self._lake / f".{name}")

    def holders(self, name: str) -> float:
        """See `Slots`."""
        try:
            with FileLock(self._lake / f".{name}", timeout=0):
                return 0
        except Timeout:
            return 1

    def waiting(self) -> None:
        """Nobody reads a log here."""


@contextmanager
def slot(gpus: int, contexts: Iterable[Closing], slots: Callable[[], Slots]) -> Iterator[None]:
    """Hold the slot while the block runs, waiting for it if need be; where no GPU is used, do nothing.

    Args:
        gpus: GPUs that the block's models hold. One slot stands for all GPUs of the machine: an engine takes the first
            ones, whoever else uses them.
        contexts: Owners of models, which are freed before the slot is given back.
        slots: Makes the slots; called only where a GPU is used.
    """
    with ExitStack() as held:
        if gpus:
            rights = slots()
            with rights.take(TURN):
                if rights.holders(SLOT):
                    rights.waiting()
                held.enter_context(rights.take(SLOT))
            for ctx in contexts:
                held.callback(ctx.close)
        yield


class Shared:
    """The slot for a long run, which gives way to others; a context manager around all that uses the GPU.

    Args: see `slot`.
    """

    def __init__(self, gpus: int, contexts: Iterable[Closing], slots: Callable[[], Slots]) -> None:
        self._gpus, self._contexts, self._slots = gpus, tuple(contexts), slots
        self._held = ExitStack()

    def __enter__(self) -> "Shared":
        self._held.enter_context(slot(self._gpus, self._contexts, self._slots))
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def wanted(self) -> bool:
        """Whether another run waits for the slot."""
        return bool(self._gpus) and self._slots().holders(TURN) > 0

    def give_way(self) -> None:
        """Free the models, give the slot back, and take it again after the run that waits for it."""
        self._held.close()
        self._held.enter_context(slot(self._gpus, self._contexts, self._slots))
