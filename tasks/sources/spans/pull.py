"""Sources that read a store of spans: from its HTTP API, in time windows, or from its export files.

`reading` contains requests, windows and files; `assembly.py` builds traces from the spans.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Protocol, Self, TypeAlias

import tenacity
from pydantic import Field, model_validator

from tasks.core.config import WriteBack
from tasks.core.errors import SourceError
from tasks.core.types import Feedback
from tasks.sources import Batch, Reject, SourceFile
from tasks.sources.reading import exports, http
from tasks.sources.reading.values import mapping, number, scalar
from tasks.sources.reading.windows import Window, Windowed, window_of, windows
from tasks.sources.spans.piles import batches, first, traces
from tasks.sources.spans.span import Assembled, Span, SpanSettings

_ALWAYS = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

Record: TypeAlias = dict[str, Any]


class Pulled(Windowed):
    """Settings that all sources with an HTTP API or export files share.

    Attributes:
        url: URL of the server, without user, password or key: these come from environment variables.
        paths: Export files to read instead of a server: globs or URLs. `{date}` stands for each requested day.
        storage_options: Options for fsspec to open `paths`. No secrets.
        timeout_s: Seconds to wait for the server.
        feedback: Names of the scores that are user ratings. Other scores are ignored.
        spans: How to build traces from spans.
        write_back: Scores to write back to the server. The default is none.
    """

    url: str | None = None
    paths: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)
    storage_options: dict[str, object] = Field(default_factory=dict)
    timeout_s: Annotated[float, Field(gt=0)] = 60
    feedback: list[str] = Field(default=["user-feedback", "user_feedback", "user-score", "user_score"])
    spans: SpanSettings = SpanSettings()
    write_back: WriteBack | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.url is None) == (not self.paths):
            raise ValueError("Should have either `url`, for a server, or `paths`, for export files")
        if self.write_back and self.url is None:
            raise ValueError("Should have `url` where it has `write_back`: scores can't be written to export files")
        return self


class MalformedError(Exception):
    """A record doesn't contain valid spans. The message contains keys and types, never a text."""


class Store(Protocol):
    """The part of a source that depends on the store."""

    @property
    def place(self) -> str:
        """Name of the project on the server, for the names of windows. Contains no credentials."""

    def client(self, sleep: Callable[[float], None]) -> http.Client:
        """Create a client for the server.

        Raises:
            UsageError: The environment variable for a secret is not set.
        """

    def pull(self, client: http.Client, window: Window) -> Iterator[Record | Reject]:
        """Request the records of the traces or spans that start in the window.

        Raises:
            SourceError: The server can't be read to the end of the window.
        """

    def ratings(self) -> dict[str, Feedback]:
        """Return user feedback by trace id, if it is not part of the records.

        Raises:
            SourceError: A file can't be read.
        """

    def spans(self, record: Record) -> Iterable[Span]:
        """Return the spans of a record from the server or an export.

        Raises:
            MalformedError: The record is invalid.
        """


class PulledSource:
    """Reads the traces of a store from its server or its exports.

    Args:
        base: Directory for relative `paths`.
        now: Returns the current time in UTC.
        sleep: Waits a number of seconds.
    """

    def __init__(
        self,
        config: Pulled,
        base: Path,
        store: Store,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = tenacity.sleep,
    ) -> None:
        self._config = config
        self._base = base
        self._store = store
        self._now = now
        self._sleep = sleep

    @property
    def write_back(self) -> WriteBack | None:
        """See `tasks.sources.Source.write_back`."""
        return self._config.write_back

    def files(self, start: date, end: date) -> list[SourceFile]:
        """See `tasks.sources.Source.files`. The files are time windows of the server, or one entry per path."""
        config = self._config
        if config.paths:
            return exports.find(config.paths, self._base, config.storage_options, start, end)
        return windows(self._store.place, config, start, end, self._now())

    def read(self, file: SourceFile) -> Iterator[Batch]:
        """See `tasks.sources.Source.read`."""
        return batches(traces(self.spans(file), self.settings, self._window(file).begins))

    @property
    def settings(self) -> SpanSettings:
        """See `SpanSource.settings`."""
        return self._config.spans

    @property
    def config(self) -> Pulled:
        """The settings of the source."""
        return self._config

    @property
    def store(self) -> Store:
        """The store to read."""
        return self._store

    def client(self) -> http.Client:
        """Create a client for the store's server; see `Store.client`."""
        return self._store.client(self._sleep)

    def spans(self, file: SourceFile) -> Iterator[Span | Reject]:
        """See `SpanSource.spans`."""
        config, given = self._config, self._store.ratings()
        if config.paths:
            yield from self._spans(exports.read(file.path, self._base, config.storage_options), given)
            return
        with self._store.client(self._sleep) as client:
            records = self._store.pull(client, window_of(file).widened(config.grace_minutes))
            yield from self._spans(records, given)

    def traces(self, file: SourceFile, most: int) -> Iterator[Assembled]:
        """See `SpanSource.traces`."""
        window = self._window(file)
        return traces(first(self.spans(file), most, window.holds), self.settings, window.begins)

    def _window(self, file: SourceFile) -> Window:
        return Window(*_ALWAYS) if self._config.paths else window_of(file)

    def _spans(self, records: Iterable[Record | Reject], given: Mapping[str, Feedback]) -> Iterator[Span | Reject]:
        """Yield the spans of the records, with the feedback `given` by trace id."""
        for record in records:
            if isinstance(record, Reject):
                yield record
                continue
            try:
                spans = list(self._store.spans(record))
            except MalformedError as error:
                yield malformed(record, str(error))
                continue
            for span in spans:
                yield replace(span, feedback=given[span.trace_id]) if span.trace_id in given else span


def malformed(record: Record, detail: str) -> Reject:
    """Return a reject for a malformed record, with the trace id if there is one. The line number is set later."""
    about = [record, mapping(record.get("trace_info")), mapping(record.get("info"))]
    found = (scalar(one.get(key)) for one in about for key in ("trace_id", "traceId"))
    raw = b"" if not record else json.dumps(record, default=str).encode(errors="replace")
    return Reject(0, next(filter(None, found), None), "malformed_span", detail, raw)


def rating(value: object, comment: object = None) -> Feedback | None:
    """Return a user's rating as feedback; None without a numeric score and a comment."""
    score = float(value) if isinstance(value, bool) else number(value)
    text = comment if isinstance(comment, str) and comment else None
    return None if score is None and text is None else Feedback(score, text)


def listed(page: Record, key: str, kind: str, *, may_miss: bool = False) -> list[Any]:
    """Return the list of records of a page.

    Args:
        may_miss: Whether the server omits an empty list.

    Raises:
        SourceError: The page has no list under `key`.
    """
    found = page.get(key, [] if may_miss else None)
    if not isinstance(found, list):
        raise SourceError(
            f"{kind} source: the server answers without a list `{key}`. Check `url`, and the version of the server."
        )
    return found


def pages(ask: Callable[[str | None], Record], cursor_of: Callable[[Record], object], kind: str) -> Iterator[Record]:
    """Yield all pages of a result. An empty page may still have a cursor.

    Args:
        ask: Requests the page at a cursor; None requests the first page.
        cursor_of: Returns the cursor of the next page.

    Raises:
        SourceError: The server repeated a cursor, so reading would never end.
    """
    cursor, seen = None, set()
    while True:
        page = ask(cursor)
        yield page
        cursor = scalar(cursor_of(page))
        if cursor is None:
            return
        if cursor in seen:
            raise SourceError(f"{kind} source: the server gives the same cursor twice. Report it to those who run it.")
        seen.add(cursor)


def objects(records: Iterable[Any]) -> Iterator[Record | Reject]:
    """Yield the records of a page, and a reject for each record that is not an object."""
    for record in records:
        yield record if isinstance(record, dict) else malformed({}, f"a record is `{type(record).__name__}`")
