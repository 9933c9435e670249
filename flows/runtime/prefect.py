"""Run stages as Prefect tasks with names, times and retries, without persisting results.

Prefect gets stage names, days and counts. Contexts, traces and results stay in this process: parameters are not hashed,
cached or stored.
"""

import logging
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any, TypeVar
from uuid import UUID

from prefect import Task
from prefect.artifacts import create_markdown_artifact, create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State, TaskRun
from prefect.concurrency.sync import concurrency
from prefect.events import emit_event
from prefect.exceptions import MissingContextError
from prefect.logging import get_logger, get_run_logger
from prefect.runtime import deployment

from flows.runtime.gpu import SLOT, TURN
from flows.runtime.progress import Bar, Lines
from flows.runtime.retry import retrying
from flows.runtime.run import DELAYS_S, Stage, may_pass, timed
from flows.runtime.temporary_server import ensure_server
from tasks.core.errors import BusyError
from tasks.core.progress import Both, Progress
from tasks.run.result import StageResult
from tasks.store.lake import Lake

T = TypeVar("T")
LEASE_S = 300.0  # seconds until the slot of a dead run is free again
EVERY_S = 5.0  # seconds between updates of an artifact, each a row in Prefect's database
FLOW_DELAYS_S = (300.0, 900.0, 3600.0)


def logger() -> "logging.Logger | logging.LoggerAdapter[logging.Logger]":
    """The logger of the flow run or, outside of a flow, of this process."""
    try:
        return get_run_logger()
    except MissingContextError:
        return get_logger("leadline")


def patiently(work: Callable[[], T], delays_s: Sequence[float] = FLOW_DELAYS_S) -> T:
    """Return the result of `work`. In a run of a deployment, temporary errors are retried.

    This replaces Prefect's retries of flows, which can't select errors. Runs from a terminal fail at once.

    Raises:
        Exception: The last error of `work`.
    """
    return retrying(
        work, lambda e: may_pass(e) or isinstance(e, BusyError), delays_s if deployment.id else (), logger()
    )


class PrefectSlots:
    """Rights as concurrency limits of Prefect. If a limit is not set up, runs don't wait and don't fail.

    Args:
        names: Names of the limits, if they differ from those in docs/operations.md.
    """

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self.names = names or {SLOT: SLOT, TURN: TURN}
        ensure_server()

    def take(self, name: str) -> AbstractContextManager[object]:
        """Hold a limit's slot. If the server does not respond, the run continues without the limit."""
        held = ExitStack()
        try:
            limit = concurrency(self.names[name], lease_duration=LEASE_S, raise_on_lease_renewal_failure=False)
            held.enter_context(limit)
        except Exception as error:
            logger().warning("Continuing without the limit %s (%s).", self.names[name], type(error).__name__)
        return held

    def holders(self, name: str) -> float:
        """Number of active slots of a limit; 0 if the limit does not exist or the server does not respond."""
        try:
            with get_client(sync_client=True) as client:
                return client.read_global_concurrency_limit_by_name(self.names[name]).active_slots
        except Exception:
            return 0

    def waiting(self) -> None:
        """Log that another run has the GPU."""
        logger().info("Waiting for the GPU: another run holds the limit %s.", self.names[SLOT])


class Artifact:
    """A Prefect progress artifact per stage, updated every few seconds.

    Args:
        every_s: Seconds between two updates.
        clock: Returns the time in seconds.
        create: Creates an artifact.
        update: Updates an artifact's percentage.
    """

    def __init__(
        self,
        every_s: float = EVERY_S,
        clock: Callable[[], float] = time.monotonic,
        create: Callable[..., Any] = create_progress_artifact,
        update: Callable[[UUID, float], Any] = update_progress_artifact,
    ) -> None:
        self._every_s, self._clock, self._create, self._update = every_s, clock, create, update
        self._id: UUID | None = None
        self._total = self._done = 0
        self._shown = 0.0

    def start(self, stage: str, total: int | None) -> None:
        """Create the artifact, unless there is nothing to do."""
        self._total, self._done, self._shown = total or 0, 0, self._clock()
        if self._total:
            key = re.sub(r"[^a-z0-9]+", "-", stage)
            with suppress(Exception):  # the artifact is optional
                created = self._create(0.0, key=key, description=f"{stage}: {self._total} to do")
                self._id = created if isinstance(created, UUID) else None

    def advance(self, steps: int = 1) -> None:
        """Count steps, and update the artifact every `every_s` seconds."""
        self._done += steps
        if self._clock() - self._shown > self._every_s:
            self._show()

    def finish(self) -> None:
        """Update the artifact for the last time."""
        if self._total:
            self._show()
        self._id = None

    def _show(self) -> None:
        self._shown = self._clock()
        if self._id:
            try:
                self._update(self._id, 100.0 * min(self._done / self._total, 1.0))
            except Exception:  # no more updates in this stage
                self._id = None


class Prefect:
    """Runs stages as tasks of the current flow.

    Args:
        delays_s: Seconds to wait before each retry of a stage.
        slots: Access to the GPU; concurrency limits of Prefect by default.
    """

    def __init__(self, delays_s: Sequence[float] = DELAYS_S, slots: PrefectSlots | None = None) -> None:
        self._delays_s, self._slots = delays_s, slots

    def task(self, name: str, work: Stage) -> Task[..., StageResult]:
        """Make a task of a stage."""
        return Task(
            lambda *args, **options: timed(name, work, *args, **options),
            name=name,
            task_run_name=name.replace("{", "{{").replace("}", "}}"),  # Prefect treats a run's name as a template
            description=(work.__doc__ or "").strip().partition("\n")[0],
            retries=len(self._delays_s),
            retry_delay_seconds=list(self._delays_s),
            retry_condition_fn=_may_pass,
            cache_policy=NO_CACHE,
            persist_result=False,
        )

    def stage(self, name: str, work: Stage, *args: Any, **options: Any) -> StageResult:
        """See `Runner`."""
        result: StageResult = self.task(name, work)(*args, **options)
        return result

    def progress(self) -> Progress:
        """A bar in a terminal; artifacts and lines anywhere else."""
        return Bar() if sys.stderr.isatty() else Both(Artifact(), Lines())

    def slots(self, lake: Lake) -> PrefectSlots:  # noqa: ARG002 - one GPU for all lakes of the server
        """See `Runner`."""
        self._slots = self._slots or PrefectSlots()
        return self._slots

    def announce(self, key: str, title: str, markdown: str, payload: Mapping[str, Any]) -> None:
        """Create an artifact and an event for an alert."""
        create_markdown_artifact(markdown, key=f"alert-{key}", description=title)
        emit_event(
            "leadline.alert.fired",
            resource={"prefect.resource.id": f"leadline.alert.{key}", "prefect.resource.name": title},
            payload=dict(payload),
        )


def _may_pass(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """`may_pass` with the signature that Prefect needs."""
    return may_pass(state.result(raise_on_failure=False))
