"""Traces from a query of PostgreSQL, SQLite or another database of SQLAlchemy. The config maps the columns."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from tasks.core import keys
from tasks.sources import Source, SourceFile
from tasks.sources.reading.windows import window_of, windows
from tasks.sources.tabular import Tabular, TabularSource
from tasks.sources.tabular.database import Database, InDatabase, parameters
from tasks.sources.tabular.rows import Numbered


def _bounded(query: str) -> str:
    if (found := parameters(query)) != {"start", "end"}:
        others = ", ".join(f":{name}" for name in sorted(found - {"start", "end"}))
        escape = rf"; it has {others} too: write \: for a colon that names nothing" if others else ""
        raise ValueError(f"Should hold :start and :end, the times between which traces are wanted{escape}")
    return query


class Config(Tabular, InDatabase):
    """Settings of a `sql` source; see `InDatabase` and `Tabular` for the common ones.

    Attributes:
        query: Query that returns one row per trace, for traces from `:start` (inclusive) to `:end` (exclusive), in UTC.
    """

    kind: Literal["sql"]
    query: Annotated[str, Field(min_length=1), AfterValidator(_bounded)]

    @model_validator(mode="after")
    def _timed(self) -> Self:
        if self.columns.timestamp is None:
            raise ValueError("Should have `columns.timestamp`, the column that says when a trace was asked")
        return self


def build(config: Config, base: Path) -> Source:  # noqa: ARG001 - a database has no relative path
    """Create the source from its settings.

    Raises:
        UsageError: `dsn_env` is not a variable name.
    """
    return TabularSource(config, QueryStore(config))


class QueryStore:
    """Queries a database by time windows.

    Args:
        now: Returns the current time in UTC.
    """

    def __init__(self, config: Config, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._config = config
        self._database = Database("sql", config.dsn_env)
        self._now = now

    def files(self, start: date, end: date) -> list[SourceFile]:
        """See `RowStore.files`. The files are time windows. After a change of the query, all are read again."""
        place = f"{self._database.name} query {keys.key(self._config.query, size=keys.SHORT_HEX)}"
        return windows(place, self._config, start, end, self._now())

    def rows(self, file: SourceFile) -> Iterator[Numbered]:
        """See `RowStore.rows`."""
        yield from enumerate(self._database.rows(self._config.query, window_of(file)), 1)

    def named(self, file: SourceFile) -> bool:  # noqa: ARG002
        """See `RowStore.named`."""
        return True
