"""Progress where it can be seen: a bar in a terminal, Prefect progress artifacts and the run's log anywhere else."""

import logging
import re
import sys
import time
from contextlib import suppress
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.exceptions import MissingContextError
from prefect.logging import get_logger, get_run_logger
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from tasks.core.progress import Progress as Watcher

EVERY_S = 5.0  # artifacts are rows in Prefect's database


def watcher() -> Watcher:
    """The kind of progress that fits where this process runs."""
    return Bar() if sys.stderr.isatty() else Artifact()


def logger() -> "logging.Logger | logging.LoggerAdapter[logging.Logger]":
    """The log of the flow run; outside of one, Prefect's for this process."""
    try:
        return get_run_logger()
    except MissingContextError:
        return get_logger("leadline")


class Bar:
    """A bar per stage on standard error."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description:>14}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task: TaskID | None = None

    def start(self, stage: str, total: int | None) -> None:
        """Show a bar, unless there is nothing to do."""
        if total != 0:
            self._bar.start()
            self._task = self._bar.add_task(stage, total=total)

    def advance(self, steps: int = 1) -> None:
        """Move the bar."""
        if self._task is not None:
            self._bar.advance(self._task, steps)

    def finish(self) -> None:
        """Leave the bar where it is."""
        self._task = None
        self._bar.stop()


class Artifact:
    """A Prefect progress artifact per stage, updated every few seconds."""

    def __init__(self) -> None:
        self._id: UUID | None = None
        self._total = self._done = 0
        self._shown = 0.0

    def start(self, stage: str, total: int | None) -> None:
        """Create the artifact, unless there is nothing to do."""
        self._total, self._done, self._shown = total or 0, 0, time.monotonic()
        if self._total:
            key = re.sub(r"[^a-z0-9]+", "-", stage)
            with suppress(Exception):  # the work goes on when nobody can be told of it
                created = create_progress_artifact(0.0, key=key, description=f"{stage}: {self._total} to do")
                self._id = created if isinstance(created, UUID) else None

    def advance(self, steps: int = 1) -> None:
        """Count, and now and then say so."""
        self._done += steps
        if time.monotonic() - self._shown > EVERY_S:
            self._show(100.0 * min(self._done / self._total, 1.0) if self._total else 0.0)

    def finish(self) -> None:
        """Say how far it came."""
        if self._id and self._total:
            self._show(100.0 * min(self._done / self._total, 1.0))
        self._id = None

    def _show(self, percent: float) -> None:
        self._shown = time.monotonic()
        if self._id:
            try:
                update_progress_artifact(self._id, percent)
            except Exception:  # as above; not asked again in this stage
                self._id = None
