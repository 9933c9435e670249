"""Windows of time: how the stores that are asked for the traces of some days divide what they read.

A window is a `SourceFile` whose path ends in its two times. A settled window always has the same fingerprint, so it is
read once. One that may still get traces has another fingerprint in every run: what was read before comes as copies,
which ingestion drops. Left out: what is asked for.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, NamedTuple, Protocol

from pydantic import Field

from tasks.core.config import Settings
from tasks.sources import SourceFile

SETTLED = "settled"


class Windowed(Settings):
    """Settings of every store that is asked for windows of time.

    Attributes:
        grace_minutes: The longest that a trace may take until all of it has arrived; younger ones wait.
        reread_hours: Hours before the first day, and after the end of each, that are read again for what arrived late.
    """

    grace_minutes: Annotated[float, Field(gt=0, le=24 * 60)] = 15
    reread_hours: Annotated[float, Field(ge=0, le=31 * 24)] = 6


class Started(Protocol):
    """Something with a start: a span."""

    @property
    def start(self) -> datetime | None:
        """In UTC, where it is known."""


class Window(NamedTuple):
    """Traces that start at `start` or later, and before `end`; both in UTC."""

    start: datetime
    end: datetime

    def begins(self, spans: Iterable[Started]) -> bool:
        """Whether the first of these spans of a trace starts in the window."""
        first = min((span.start for span in spans if span.start), default=self.start)
        return self.start <= first < self.end

    def holds(self, span: Started) -> bool:
        """Whether a span starts in the window."""
        return self.begins([span])

    def widened(self, minutes: float) -> "Window":
        """The window and some minutes on either side, where traces that cross its edges have their other spans."""
        margin = timedelta(minutes=minutes)
        return Window(self.start - margin, self.end + margin)


def windows(place: str, config: Windowed, start: date, end: date, now: datetime) -> list[SourceFile]:
    """One window for each of the days `start` to `end`, both inclusive, and one for the hours before.

    Args:
        place: What is read, for the names of windows; without credentials.
        now: In UTC. What is younger than `grace_minutes` is in no window.
    """
    first = datetime(start.year, start.month, start.day, tzinfo=UTC)
    reread = timedelta(hours=config.reread_hours)
    last = now - timedelta(minutes=config.grace_minutes)
    days = [first + timedelta(days=n) for n in range((end - start).days + 1)]
    wanted = [Window(first - reread, first)] if reread else []
    wanted += [Window(day, day + timedelta(days=1)) for day in days]
    return [
        SourceFile(
            f"{place} {iso(window.start)}/{iso(min(window.end, last))}",
            SETTLED if window.end + reread <= last else now.isoformat(),
            window.start.date(),
            place,
        )
        for window in wanted
        if window.start < last
    ]


def window_of(file: SourceFile) -> Window:
    """The window that a file of `windows` stands for."""
    start, end = file.path.rpartition(" ")[2].split("/")
    return Window(datetime.fromisoformat(start), datetime.fromisoformat(end))


def iso(at: datetime) -> str:
    """A time as APIs read it: UTC, in milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
