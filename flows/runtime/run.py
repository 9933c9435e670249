"""A run of a verb: under the lake's lock, on record in `runs` however it ends, and published after."""

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
DELAYS_S = (5.0, 30.0)  # before a stage is tried again after an error that may pass
LOG = logging.getLogger("leadline")


class Runner(Protocol):
    """How stages run: `Local` in this process alone, `flows.runtime.prefect.Prefect` as tasks of a flow."""

    @property
    def announce(self) -> "Callable[..., None] | None":
        """Shows an alert to people; None where nobody would see it."""

    def stage(self, name: str, work: Stage, *args: Any, **options: Any) -> StageResult:
        """Run a stage, again where its error may pass."""

    def progress(self) -> Progress:
        """What shows the progress of stages."""

    def slots(self, lake: Lake) -> Slots:
        """Who may use the GPU."""


@dataclass(frozen=True)
class Local:
    """Stages in this process, without Prefect.

    Attributes:
        delays_s: Seconds to wait before each retry of a stage.
        prefect_slots: Ask Prefect's concurrency limits for the GPU, not the lake's lock files.
    """

    delays_s: Sequence[float] = ()
    prefect_slots: bool = field(default_factory=uses_prefect)
    announce: None = None

    def stage(self, name: str, work: Stage, *args: Any, **options: Any) -> StageResult:
        """See `Runner`."""
        return retrying(lambda: timed(name, work, *args, **options), may_pass, self.delays_s, LOG)

    def progress(self) -> Progress:
        """A bar in a terminal, lines anywhere else."""
        from flows.runtime.progress import bar_or_lines  # noqa: PLC0415 - rich's bars

        return bar_or_lines()

    def slots(self, lake: Lake) -> Slots:
        """See `Runner`."""
        if not self.prefect_slots:
            return FileSlots(lake.home)
        from flows.runtime.temporary_server import quiet  # noqa: PLC0415

        quiet()
        from flows.runtime.prefect import PrefectSlots  # noqa: PLC0415 - seconds

        return PrefectSlots()


def may_pass(error: BaseException) -> bool:
    """Whether the same work may succeed later. A mistake or a bug stays."""
    return isinstance(error, LeadlineError) and error.transient


def timed(name: str, work: Stage, *args: Any, **options: Any) -> StageResult:
    """The result of a stage under its name, with its seconds.

    Raises:
        KeyboardInterrupt: A signal came, even if a library made another error of it.
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
    """A run in progress. The first context stands for it on record."""

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
        """Run a stage and put its result on record."""
        return self.add(self.runner.stage(name, work, *args, **options))

    def stage_with(self, name: str, work: Callable[[], tuple[StageResult, T]]) -> T:
        """Run a stage that gives more than its result, put the result on record, and return the rest."""
        rest: list[T] = []

        def stage() -> StageResult:
            result, more = work()
            rest.append(more)
            return result

        self.stage(name, stage)
        return rest[-1]

    def add(self, result: StageResult) -> StageResult:
        """Put a result on record."""
        self.record.add(self.main, result)
        return result

    def slot(self, gpus: int, closing: Iterable[Closing]) -> AbstractContextManager[None]:
        """Hold the GPU while models that need it are loaded; see `flows.runtime.gpu.slot`."""
        return slot(gpus, closing, lambda: self.runner.slots(self.main.lake))

    def shared(self, gpus: int, closing: Iterable[Closing]) -> Shared:
        """Hold the GPU, and give way to other runs now and then; see `flows.runtime.gpu.Shared`."""
        return Shared(gpus, closing, lambda: self.runner.slots(self.main.lake))

    def refused(self) -> Refused:
        """The rows that this run refused."""
        return self.record.refused(self.main)


def locked(lake: Lake, doing: str, *, wait: bool = False, restoring: bool = False) -> AbstractContextManager[None]:
    """The lake's lock; another run's message says who has it.

    Args:
        doing: The verb, with its days.
        wait: Wait for it.
        restoring: Also where a restore was broken off.

    Raises:
        BusyError: Another run has it.
    """
    holder = f"leadline {doing}, process {os.getpid()}, since {datetime.now(UTC):%H:%M:%S} UTC"
    return lake.lock(holder, wait=wait, restoring=restoring)


@contextmanager
def locked_whole(lake: Lake, doing: str, *, restoring: bool = False) -> Iterator[None]:
    """The locks of all that write the lake, and of its backup, see `locked`: no file is read or replaced meanwhile."""
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
    """Put a run on record, whose caller holds the lake's lock. Models are freed at its end.

    Args:
        flow: The verb, as `runs` names it.
        recipes: Hashes; those of all contexts by default.
        publish: Publish the warehouse when the run is completed.
        publish_failure: Publish it after a failure too, so that refused rows can be queried.
    """
    runner = runner or Local()
    run = Run(contexts, runner, Record(flow, recipes=recipes or [ctx.recipe for ctx in contexts]))
    run.record.start(run.main)
    try:
        yield run
    except BaseException as error:
        run.record.fail(run.main, error)
        if publish_failure and not interruption(error):
            with suppress(Exception):  # the error that is raised matters more
                publish_warehouse(run.main)
        raise
    finally:
        for ctx in contexts:
            ctx.close()
    run.record.end(run.main, "completed")
    if publish:
        run.stages.append(runner.stage("publish", publish_results, run.main))
