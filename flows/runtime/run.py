"""The run of a verb: under the lake's lock, recorded in `runs` even if it fails, and published at the end."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Protocol, TypeVar

from flows import command
from flows.options import uses_prefect
from flows.runtime.gpu import Closing, FileSlots, Shared, Slots, slot
from flows.runtime.retry import retrying
from tasks.core.errors import LeadlineError, interruption
from tasks.core.progress import Progress
from tasks.publish.publish import publish_results, publish_warehouse
from tasks.run.context import Context
from tasks.run.record import BACKFILL, Record, Refused
from tasks.run.result import StageResult
from tasks.store import backup
from tasks.store.lake import Lake

Stage = Callable[..., StageResult]
T = TypeVar("T")
DELAYS_S = (5.0, 30.0)  # seconds before each retry of a stage after a temporary error
LOG = logging.getLogger("leadline")


class Runner(Protocol):
    """Runs stages: `Local` without Prefect, `flows.runtime.prefect.Prefect` as tasks of a flow."""

    @property
    def announce(self) -> "Callable[..., None] | None":
        """Function that announces an alert; None without Prefect."""

    def stage(self, name: str, work: Stage, *args: Any, **options: Any) -> StageResult:
        """Run a stage, with retries after temporary errors."""

    def progress(self) -> Progress:
        """Create a display of progress."""

    def slots(self, lake: Lake) -> Slots:
        """Return the slots that control access to the GPU."""


@dataclass(frozen=True)
class Local:
    """Runs stages in this process, without Prefect.

    Attributes:
        delays_s: Seconds to wait before each retry of a stage.
        prefect_slots: Whether to use Prefect's concurrency limits for the GPU instead of lock files.
    """

    delays_s: Sequence[float] = ()
    prefect_slots: bool = field(default_factory=uses_prefect)
    announce: None = None

    def stage(self, name: str, work: Stage, *args: Any, **options: Any) -> StageResult:
        """See `Runner`."""
        return retrying(lambda: timed(name, work, *args, **options), may_pass, self.delays_s, LOG)

    def progress(self) -> Progress:
        """A bar in a terminal, lines anywhere else."""
        from flows.runtime.progress import bar_or_lines  # noqa: PLC0415 - imports rich

        return bar_or_lines()

    def slots(self, lake: Lake) -> Slots:
        """See `Runner`."""
        if not self.prefect_slots:
            return FileSlots(lake.home)
        from flows.runtime.temporary_server import quiet  # noqa: PLC0415

        quiet()
        from flows.runtime.prefect import PrefectSlots  # noqa: PLC0415 - takes seconds to import

        return PrefectSlots()


def may_pass(error: BaseException) -> bool:
    """Whether an error is temporary, so that the same work may succeed later."""
    return isinstance(error, LeadlineError) and error.transient


def timed(name: str, work: Stage, *args: Any, **options: Any) -> StageResult:
    """Run a stage; returns its result with name and seconds.

    Raises:
        KeyboardInterrupt: A signal was received, even if a library raised another error because of it.
    """
    begun = perf_counter()
    with command.in_stage(name):
        try:
            result = work(*args, **options)
        except Exception as error:
            if signal := interruption(error):
                raise signal from None
            raise
    return replace(result, stage=name, seconds=perf_counter() - begun)


@dataclass
class Run:
    """A run in progress. The record uses its first context."""

    contexts: Sequence[Context]
    runner: Runner
    record: Record

    @property
    def main(self) -> Context:
        """The first context."""
        return self.contexts[0]

    @property
    def stages(self) -> list[StageResult]:
        """Results so far."""
        return self.record.stages

    def stage(self, name: str, work: Stage, *args: Any, **options: Any) -> StageResult:
        """Run a stage and record its result."""
        return self.add(self.runner.stage(name, work, *args, **options))

    def stage_with(self, name: str, work: Callable[[], tuple[StageResult, T]]) -> T:
        """Run a stage that also returns other data. Record the stage's result and return the other data."""
        rest: list[T] = []

        def stage() -> StageResult:
            result, more = work()
            rest.append(more)
            return result

        self.stage(name, stage)
        return rest[-1]

    def add(self, result: StageResult) -> StageResult:
        """Record a result."""
        self.record.add(self.main, result)
        return result

    def slot(self, gpus: int, closing: Iterable[Closing]) -> AbstractContextManager[None]:
        """Hold the GPU while models that need it are loaded; see `flows.runtime.gpu.slot`."""
        return slot(gpus, closing, lambda: self.runner.slots(self.main.lake))

    def shared(self, gpus: int, closing: Iterable[Closing]) -> Shared:
        """Hold the GPU, and let other runs use it in between; see `flows.runtime.gpu.Shared`."""
        return Shared(gpus, closing, lambda: self.runner.slots(self.main.lake))

    def refused(self) -> Refused:
        """The rows that this run refused."""
        return self.record.refused(self.main)


def locked(lake: Lake, doing: str, *, wait: bool = False, restoring: bool = False) -> AbstractContextManager[None]:
    """Acquire the lake's lock.

    Args:
        doing: The verb with its days. Other runs show it in their error message while this run holds the lock.
        wait: Whether to wait for the lock.
        restoring: Whether to allow a lake whose restore was interrupted.

    Raises:
        BusyError: Another run holds the lock.
    """
    holder = f"leadline {doing}, process {os.getpid()}, since {datetime.now(UTC):%H:%M:%S} UTC"
    return lake.lock(holder, wait=wait, restoring=restoring)


@contextmanager
def locked_whole(lake: Lake, doing: str, *, restoring: bool = False) -> Iterator[None]:
    """Acquire the locks of all writers of the lake and of the backup, so that nothing else reads or replaces files."""
    with locked(lake, doing, restoring=restoring), ExitStack() as locks:
        for writer in (BACKFILL, backup.WRITER):
            locks.enter_context(locked(Lake(lake.root, writer=writer), doing, restoring=restoring))
        yield


@contextmanager
def on_record(
    flow: str,
    contexts: Sequence[Context],
    runner: Runner | None = None,
    *,
    recipes: Sequence[str] = (),
    publish: bool = True,
    publish_failure: bool = False,
) -> Iterator[Run]:
    """Record a run and free its models at the end. The caller must hold the lake's lock.

    Args:
        flow: The verb, as stored in `runs`.
        recipes: Hashes of the recipes; by default, those of all contexts.
        publish: Whether to publish the warehouse when the run completes.
        publish_failure: Whether to publish the warehouse after a failure too, so that refused rows can be queried.
    """
    runner = runner or Local()
    run = Run(contexts, runner, Record(flow, recipes=recipes or [ctx.recipe for ctx in contexts]))
    run.record.start(run.main)
    try:
        yield run
    except BaseException as error:
        run.record.fail(run.main, error)
        if publish_failure and not interruption(error):
            with suppress(Exception):  # the original error is more important
                publish_warehouse(run.main)
        raise
    finally:
        for ctx in contexts:
            ctx.close()
    run.record.end(run.main, "completed")
    if publish:
        run.stages.append(runner.stage("publish", publish_results, run.main))
