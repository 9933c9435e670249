"""Time windows, into which a store's requests for the traces of some days are divided.

A window is a `SourceFile` whose path ends in its two times. A settled window always has the same fingerprint, so it is
read once. A window that may still receive traces has another fingerprint in every run, so it is read again; ingestion
drops the copies.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, NamedTuple, Protocol

from pydantic import Field

from tasks.core.config import Settings
from tasks.sources import SourceFile

SETTLED = "settled"


class Windowed(Settings):
    """Settings that all sources with time windows share.

    Attributes:
        grace_minutes: Minutes until a trace has arrived completely. Younger traces are left to a later run.
        reread_hours: For traces that arrive late: hours before the first day that are read again, and hours after
            the end of a day during which its window is read again.
    """

    grace_minutes: Annotated[float, Field(gt=0, le=24 * 60)] = 15
    reread_hours: Annotated[float, Field(ge=0, le=31 * 24)] = 6


class Started(Protocol):
    """A span or another object with a start."""

    @property
    def start(self) -> datetime | None:
        """Start in UTC; None if unknown."""


class Window(NamedTuple):
    """Time range from `start` to before `end`, in UTC."""

    start: datetime
    end: datetime

    def begins(self, spans: Iterable[Started]) -> bool:
        """Whether the trace of these spans starts in the window."""
        first = min((span.start for span in spans if span.start), default=self.start)
        return self.start <= first < self.end

    def holds(self, span: Started) -> bool:
        """Whether a span starts in the window."""
        return self.begins([span])

    def widened(self, minutes: float) -> "Window":
        """Return the window extended on both sides, to include all spans of traces that cross its edges."""
        margin = timedelta(minutes=minutes)
        return Window(self.start - margin, self.end + margin)


def windows(place: str, config: Windowed, start: date, end: date, now: datetime) -> list[SourceFile]:
    """Return a window for each day from `start` to `end`, both inclusive, and one for the hours before.

    Args:
        place: Name of the store, for the names of windows. Contains no credentials.
        now: Current time in UTC. Windows end `grace_minutes` before it.
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
    """Return the window of a file from `windows`."""
    start, end = file.path.rpartition(" ")[2].split("/")
    return Window(datetime.fromisoformat(start), datetime.fromisoformat(end))


def iso(at: datetime) -> str:
    """Format a time for APIs: UTC, in milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
