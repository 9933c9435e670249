"""Progress of stages as bars on standard error; `flows/runtime/prefect.py` shows it on Prefect's page."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from tasks.core.progress import Progress as Watcher
from tasks.core.progress import Silent


def bar_or_silent() -> Watcher:
    """Bars in a terminal, nothing anywhere else."""
    return Bar() if sys.stderr.isatty() else Silent()


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
