"""The work loop of every stage that runs a model: take an open shard, run the model, store, count.

If the process is killed, only unfinished shards are lost. The budget is checked between shards. A request that failed
because of an outage is counted and not stored, so the next run sends it again.
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
    """A model's reply to one request, with its `TOKENS`."""

    @property
    def failure(self) -> str | None:
        """Why there is no result; None if there is one. `OUTAGE`: the request could not be made."""


ReplyT = TypeVar("ReplyT", bound=Reply)


@dataclass(slots=True)
class WorkLoop:
    """A stage's work in progress.

    Attributes:
        gpus: Number of GPUs that the model uses.
        stops: Whether the work stops when the budget is spent.
        spends: Whether tokens count against the budget.
        result: The stage's result so far.
        flying: Shards in progress.
        over: Whether the work was stopped by the budget.
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
        """Count rows that were already stored."""
        self.result += StageResult(self.result.stage, reused=rows)
        self.progress.advance(rows)

    def run(
        self,
        shards: Iterable[list[T]],
        ask: Callable[[list[T]], Sequence[R]],
        store: Callable[[list[T], Sequence[R]], int],
        replies: Callable[[R], Iterable[Any]] = lambda reply: (reply,),
    ) -> None:
        """Work on shards in this process until none is left or the budget is spent.

        Args:
            ask: Runs the model on a shard.
            store: Stores the results of a shard except outages; returns the number of rows stored.
            replies: Splits the model's output for one request into replies, if there are several.

        Raises:
            EngineError: The model can't be run. Stored results are kept.
        """

        def work(shard: list[T]) -> StageResult:
            given = ask(shard)
            return worked(self.result.stage, [r for one in given for r in replies(one)], store(shard, given))

        jobs = (Job(shard, work) for shard in shards)
        self.map(Local(), takewhile(lambda _: not self.over, jobs))

    def map(self, executor: Executor, jobs: Iterable[Job[T, StageResult]]) -> None:
        """Work on shards with an executor until none is left or the budget is spent.

        Args:
            jobs: Always consumed to the end. Once the work is `over`, the iterable may still count reused rows, but
                should yield no more jobs.

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
        self.flying.clear()  # shards left over by a spent budget
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
    """Return the result of one shard.

    Args:
        replies: The model's replies, with their `TOKENS`.
        computed: Number of rows stored.
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
    """Track a stage's work. At the end, add a note on lost requests and free the model.

    Args:
        total: Number of progress steps.
        result: The stage's result so far.
        budget: The budget; unlimited by default.
        close: Frees the model; None keeps it loaded.
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
    """Split requests into shards of at most `size`. Each shard is written at once.

    Args:
        held: Number of requests to hold in memory and sort together, at least `size`.
        order: Sort key. Requests that share a text should be adjacent, so a model's prefix cache holds the text.
        whole: Keep requests with equal sort keys in one shard, so only one worker reads their text. Such a shard may be
            larger than `size`.
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
    """Split a batch into shards of whole groups with equal `order`. Only a larger group exceeds `size`."""
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
    """Pair requests with their replies, without outages."""
    return [pair for pair in zip(shard, replies, strict=True) if pair[1].failure != OUTAGE]


def outage_notes(lost: int) -> tuple[str, ...]:
    """A note on requests lost to an outage; empty without any."""
    return (f"{lost:,} requests could not be made (outage); the next run makes them again.",) if lost else ()
