"""The work loop of every stage that runs a model: take an open shard, run the model, store, count.

A kill loses at most the shard in flight. The budget is checked between two shards. A request that could not be made (an
outage) is counted and not stored, so that the next run sends it again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby, islice, takewhile
from typing import Any, Protocol, TypeVar

from tasks.core.budget import Budget
from tasks.core.progress import Progress, tracked
from tasks.core.types import OUTAGE
from tasks.executors import Executor, Job
from tasks.executors.local import Local
from tasks.run.result import StageResult, token_counts

T = TypeVar("T")
R = TypeVar("R")


class Reply(Protocol):
    """What a model gave for one request, with its `TOKENS`."""

    @property
    def failure(self) -> str | None:
        """Why there is no result; `OUTAGE`: the request could not be made."""


ReplyT = TypeVar("ReplyT", bound=Reply)


@dataclass(slots=True)
class WorkLoop:
    """A stage's work in progress.

    Attributes:
        gpus: GPUs that the model holds while it runs.
        stops: Whether the end of the budget ends the work.
        spends: Whether the tokens count against the budget.
        result: What the stage did so far.
        flying: Shards that were taken and have no result yet.
        over: The budget has ended the work.
    """

    progress: Progress
    budget: Budget
    gpus: int
    stops: bool
    spends: bool
    result: StageResult
    flying: list[Job[Any, StageResult]] = field(default_factory=list)
    over: bool = False

    def reuse(self, rows: int) -> None:
        """Counts rows that were already there."""
        self.result += StageResult(self.result.stage, reused=rows)
        self.progress.advance(rows)

    def run(
        self,
        shards: Iterable[list[T]],
        ask: Callable[[list[T]], Sequence[R]],
        store: Callable[[list[T], Sequence[R]], int],
        replies: Callable[[R], Iterable[Any]] = lambda reply: (reply,),
    ) -> None:
        """Works on shards in this process until none is left or the budget ends.

        Args:
            ask: Runs the model on a shard.
            store: Stores what came of a shard, without outages; returns the number of rows made.
            replies: Splits what the model gave for one request, where that is several replies.

        Raises:
            EngineError: The model can't be run. What is stored stays.
        """

        def work(shard: list[T]) -> StageResult:
            given = ask(shard)
            return worked(self.result.stage, [r for one in given for r in replies(one)], store(shard, given))

        jobs = (Job(shard, work) for shard in shards)
        self.map(Local(), takewhile(lambda _: not self.over, jobs))

    def map(self, executor: Executor, jobs: Iterable[Job[T, StageResult]]) -> None:
        """Has an executor work on shards until none is left or the budget ends.

        Args:
            jobs: Exhausted in any case: once the work is `over`, they may count what is reused, and yield no more.

        Raises:
            LeadlineError: See `Executor`.
        """
        taken = self._taken(jobs)
        for job, done in executor.map(taken, self._stop):
            self.flying.remove(job)
            if self.spends:
                self.budget.used += done.tokens_in + done.tokens_out
            self.result += replace(done, gpus=self.gpus)
            self.progress.advance(len(job.shard))
        self.flying.clear()  # what a spent budget left is open
        for _ in taken:
            pass

    def _taken(self, jobs: Iterable[Job[T, StageResult]]) -> Iterator[Job[T, StageResult]]:
        for job in jobs:
            self.flying.append(job)
            yield job

    def _stop(self) -> bool:
        self.over = self.over or (self.stops and self.budget.over())
        return self.over


def worked(stage: str, replies: Sequence[Any], computed: int) -> StageResult:
    """What was done with a shard.

    Args:
        replies: Of the model, with their `TOKENS`.
        computed: Rows that were stored of them.
    """
    lost = sum(reply.failure == OUTAGE for reply in replies)
    return StageResult(stage, computed, lost=lost, **token_counts(replies))


@contextmanager
def work_loop(
    progress: Progress,
    total: int,
    result: StageResult,
    *,
    budget: Budget | None = None,
    gpus: int = 0,
    stops: bool = True,
    spends: bool = True,
    close: Callable[[], Any] | None = None,
) -> Iterator[WorkLoop]:
    """Tracks a stage's work; in the end notes the requests that were lost, and frees the model.

    Args:
        total: Steps of the progress.
        result: What the stage did before.
        budget: See `WorkLoop`; no limit by default.
        close: Frees the model; None leaves it where it is.
    """
    loop = WorkLoop(progress, budget or Budget(), gpus, stops, spends, result)
    with tracked(progress, result.stage, total):
        yield loop
    loop.result = replace(loop.result, notes=(*loop.result.notes, *outage_notes(loop.result.lost)))
    if close:
        close()


def shards(
    requests: Iterable[T],
    size: int,
    *,
    held: int = 0,
    order: Callable[[T], Any] | None = None,
    whole: bool = False,
) -> Iterator[list[T]]:
    """Requests in shards of at most `size`, which are stored between two writes.

    Args:
        held: Requests in memory at once, at least `size`.
        order: Sorts those in memory, so that requests that share a text follow one another and a model reads it once.
        whole: Never part requests that share a text, so that no two workers read it; then a shard may be larger.
    """
    rest = iter(requests)
    while batch := list(islice(rest, max(held, size))):
        if order:
            batch.sort(key=order)
        if order and whole:
            yield from _grouped(batch, size, order)
        else:
            for start in range(0, len(batch), size):
                yield batch[start : start + size]


def _grouped(batch: list[T], size: int, order: Callable[[T], Any]) -> Iterator[list[T]]:
    """Whole groups of equal `order` in shards of at most `size`, unless one group alone is larger."""
    shard: list[T] = []
    for _, same in groupby(batch, key=order):
        group = list(same)
        if shard and len(shard) + len(group) > size:
            yield shard
            shard = []
        shard += group
    if shard:
        yield shard


def answered(shard: Sequence[T], replies: Sequence[ReplyT]) -> list[tuple[T, ReplyT]]:
    """Requests with their replies, without those that could not be made."""
    return [pair for pair in zip(shard, replies, strict=True) if pair[1].failure != OUTAGE]


def outage_notes(lost: int) -> tuple[str, ...]:
    """A note about requests that could not be made."""
    return (f"{lost:,} requests could not be made (outage); the next run makes them again.",) if lost else ()
