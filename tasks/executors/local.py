"""The default executor `local`: runs shards one at a time in this process."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from tasks.core.config import Settings
from tasks.executors import Job, R, T


class Config(Settings):
    """The settings of `executor`."""

    kind: Literal["local"] = "local"


class Local:
    """Runs shards in this process."""

    workers = 1
    elsewhere = False

    def map(self, jobs: Iterable[Job[T, R]], stop: Callable[[], bool]) -> Iterator[tuple[Job[T, R], R]]:
        """See `Executor`."""
        for job in jobs:
            if stop():
                return
            yield job, job.work(job.shard)

    def close(self) -> None:
        """Do nothing: the judge frees its own model."""


def build(_config: Config, _where: object) -> Local:
    """Return the executor."""
    return Local()
