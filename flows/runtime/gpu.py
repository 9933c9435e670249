"""One slot for the GPU, so that concurrent runs don't load two models at the same time.

A run that wants the slot first acquires the turn, and releases the turn once it has the slot. Without the turn, a run
that releases the slot and acquires it again at once could keep others waiting forever. With Prefect, slot and turn are
concurrency limits (`flows/runtime/prefect.py`; docs/operations.md explains the setup). Without Prefect, they are lock
files in the lake.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

SLOT, TURN = "leadline-gpu", "leadline-gpu-turn"


class Closing(Protocol):
    """An owner of models: a context, a judge or a grader."""

    def close(self) -> None:
        """Free the models."""


class Slots(Protocol):
    """Named rights, each held by at most one run at a time."""

    def take(self, name: str) -> AbstractContextManager[object]:
        """Wait for a right and hold it."""

    def holders(self, name: str) -> float:
        """Number of runs that hold a right."""

    def waiting(self) -> None:
        """Report that another run has the GPU."""


class FileSlots:
    """Rights as lock files in a lake. The operating system releases them when the process ends."""

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
        """Do nothing, since there is no log."""


@contextmanager
def slot(gpus: int, contexts: Iterable[Closing], slots: Callable[[], Slots]) -> Iterator[None]:
    """Wait for the slot and hold it while the block runs. Do nothing if the block uses no GPU.

    Args:
        gpus: Number of GPUs that the block's models use. One slot covers all GPUs of the machine, because every engine
            uses the first GPUs.
        contexts: Owners of models, which are freed before the slot is released.
        slots: Creates the slots; called only if a GPU is used.
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
    """The slot for a long run that lets others run in between. A context manager around all use of the GPU.

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
        """Free the models, release the slot, and acquire it again after the waiting run."""
        self._held.close()
        self._held.enter_context(slot(self._gpus, self._contexts, self._slots))
