"""Progress of stages on standard error: a bar in a terminal, occasional lines in a log.

`flows/runtime/prefect.py` shows it on Prefect's page.
"""

import sys
import threading
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

from tasks.core.progress import Progress as Watcher
from tasks.publish.report.text import duration

FIRST_S, LONGEST_S = 30.0, 600.0  # seconds between lines of a stage; each wait is twice the previous one


def bar_or_lines() -> Watcher:
    """Bars in a terminal, lines anywhere else."""
    return Bar() if sys.stderr.isatty() else Lines()


class Bar:
    """A progress bar per stage, which stays visible after the stage."""

    def __init__(self) -> None:
        self._bar: Progress | None = None  # one per stage, since restarting a display would repeat earlier bars
        self._task: TaskID | None = None

    def start(self, stage: str, total: int | None) -> None:
        """Show a bar, unless there is nothing to do."""
        if total != 0:
            self._bar = Progress(
                TextColumn("{task.description:>14}"),
                BarColumn(),
                MofNCompleteColumn(table_column=Column(min_width=13, justify="right")),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task(stage, total=total)

    def advance(self, steps: int = 1) -> None:
        """Move the bar."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, steps)

    def finish(self) -> None:
        """Leave the bar where it is."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = None


class Lines:
    """Lines at growing intervals while a long stage runs; none for a short stage.

    Args:
        write: Writes a line.
        clock: Returns the time in seconds.
    """

    def __init__(
        self, write: Callable[[str], object] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._clock = write or sys.stderr.write, clock
        self._over = threading.Event()
        self._stage, self._total, self._done, self._begun = "", 0, 0, 0.0

    def start(self, stage: str, total: int | None) -> None:
        """Start the clock."""
        self._stage, self._total, self._done, self._begun = stage, total or 0, 0, self._clock()
        self._over = threading.Event()
        threading.Thread(target=self._beat, args=(self._over,), name="heartbeat", daemon=True).start()

    def advance(self, steps: int = 1) -> None:
        """Count."""
        self._done += steps

    def finish(self) -> None:
        """Stop writing."""
        self._over.set()

    def write(self) -> None:
        """Write the stage's progress."""
        of = f" of {self._total:,}" if self._total else ""
        self._write(f"{self._stage}: {self._done:,}{of} after {duration(self._clock() - self._begun)}\n")

    def _beat(self, over: threading.Event) -> None:
        wait_s = FIRST_S
        while not over.wait(wait_s):
            self.write()
            wait_s = min(2 * wait_s, LONGEST_S)
