"""Executors: run shards one at a time in this process, or in parallel on workers. Each module is one kind.

`executor.kind` in the nightly config selects the executor. An executor gets shards with their `Work` and depends on no
judge or table. `tasks/run/work.py` creates shards and tracks the budget and the progress.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

from tasks.core.plugins import configured

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Work(Protocol[T, R_co]):
    """The work to do on a shard. For workers in other processes, it is pickled and loads its model there."""

    @property
    def gpus(self) -> int:
        """Number of GPUs that the model uses."""

    def check(self) -> None:
        """Raise a LeadlineError if this machine lacks a requirement of the work. Each worker calls it once."""

    def stored(self, shard: list[T]) -> R_co | None:
        """Return the result of a shard that a worker stored before it died; None if the shard is not stored."""

    def __call__(self, shard: list[T]) -> R_co:
        """Run the model on a shard and store the result once.

        Raises:
            LeadlineError: The model can't be run, or the result can't be stored.
        """

    def set_aside(self, shard: list[T], failure: str) -> R_co:
        """Handle a shard that killed several workers: store failures, or leave the shard to the next run."""


@dataclass(frozen=True, slots=True, eq=False)
class Job(Generic[T, R]):
    """A shard and its work."""

    shard: list[T]
    work: Callable[[list[T]], R]


class Executor(Protocol):
    """Runs shards: `for job, result in executor.map(jobs, stop)`."""

    @property
    def workers(self) -> int:
        """Maximum number of shards that run at the same time."""

    @property
    def elsewhere(self) -> bool:
        """Whether other processes store the results."""

    def map(self, jobs: Iterable[Job[T, R]], stop: Callable[[], bool]) -> Iterator[tuple[Job[T, R], R]]:
        """Run shards, and yield each job with its result as soon as the result is stored.

        Args:
            jobs: Consumed one at a time, when a worker is or will soon be free.
            stop: Called before each shard. If it returns true, no further shard is started.

        Raises:
            LeadlineError: The work can't be done. Stored results are kept.
        """

    def close(self) -> None:
        """Stop the workers, which frees their models."""


def load(settings: Mapping[str, object], where: object, prefix: str = "executor") -> Executor:
    """Return the executor that a nightly config selects. Workers start with the first shard.

    Raises:
        ConfigError: The kind is unknown, a key is wrong, or a package is missing.
    """
    module, config = configured(sys.modules[__name__], settings, "executor", where, prefix)
    build: Any = module.build
    return cast("Executor", build(config, where))
