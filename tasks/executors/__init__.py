"""Executors: where shards run, one after the other here or several at a time. Each module is one kind.

`executor.kind` in the nightly config names it. An executor knows no judge and no table. It gets shards with their
`Work`. Left out: what a shard is, the budget and the progress (`tasks/run/work.py`).
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
    """What a shard needs done. For workers in other processes, it is pickled and loads its model there."""

    @property
    def gpus(self) -> int:
        """GPUs that its model holds."""

    def check(self) -> None:
        """Raises a LeadlineError if this machine lacks what the work needs; each worker calls it once."""

    def stored(self, shard: list[T]) -> R_co | None:
        """The result of a shard that is stored already, by a worker that died before it could report."""

    def __call__(self, shard: list[T]) -> R_co:
        """Runs the model on a shard and stores the result, once.

        Raises:
            LeadlineError: The model can't be run, or the result can't be stored.
        """

    def set_aside(self, shard: list[T], failure: str) -> R_co:
        """What becomes of a shard that kills every worker: failures are stored, or it is left to the next run."""


@dataclass(frozen=True, slots=True, eq=False)
class Job(Generic[T, R]):
    """A shard with its work."""

    shard: list[T]
    work: Callable[[list[T]], R]


class Executor(Protocol):
    """Runs shards: `for job, result in executor.map(jobs, stop)`."""

    @property
    def workers(self) -> int:
        """How many shards run at the same time."""

    @property
    def elsewhere(self) -> bool:
        """Whether other processes than this one store the results."""

    def map(self, jobs: Iterable[Job[T, R]], stop: Callable[[], bool]) -> Iterator[tuple[Job[T, R], R]]:
        """Runs shards, and yields each with its result as soon as it is stored.

        Args:
            jobs: Taken one by one, when a worker is free or soon will be.
            stop: Asked before each shard; once true, those that are worked on are the last.

        Raises:
            LeadlineError: The work can't be done. What is stored stays.
        """

    def close(self) -> None:
        """Ends the workers, which frees their models."""


def load(settings: Mapping[str, object], where: object, prefix: str = "executor") -> Executor:
    """The executor that a nightly config names; nothing is started before it gets its first shard.

    Raises:
        ConfigError: Its kind is unknown, a key is wrong, or a package is missing.
    """
    module, config = configured(sys.modules[__name__], settings, "executor", where, prefix)
    build: Any = module.build
    return cast("Executor", build(config, where))
