"""Traces of a query: PostgreSQL, SQLite, or another database that SQLAlchemy speaks; the config names the columns."""

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
    """Settings of a `sql` source; see `InDatabase` and `Tabular` for those that it shares.

    Attributes:
        query: One row a trace, for traces from `:start` on and before `:end`, in UTC.
    """

    kind: Literal["sql"]
    query: Annotated[str, Field(min_length=1), AfterValidator(_bounded)]

    @model_validator(mode="after")
    def _timed(self) -> Self:
        if self.columns.timestamp is None:
            raise ValueError("Should have `columns.timestamp`, the column that says when a trace was asked")
        return self


def build(config: Config, base: Path) -> Source:  # noqa: ARG001 - a database is no file of the config's directory
    """The source that the settings describe.

    Raises:
        UsageError: `dsn_env` is no name of a variable.
    """
    return TabularSource(config, QueryStore(config))


class QueryStore:
    """Asks a database for windows of time.

    Args:
        now: The time in UTC.
    """

    def __init__(self, config: Config, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._config = config
        self._database = Database("sql", config.dsn_env)
        self._now = now

    def files(self, start: date, end: date) -> list[SourceFile]:
        """See `RowStore.files`: windows. Another query is another place, and is read from the start."""
        place = f"{self._database.name} query {keys.key(self._config.query, size=keys.SHORT_HEX)}"
        return windows(place, self._config, start, end, self._now())

    def rows(self, file: SourceFile) -> Iterator[Numbered]:
        """See `RowStore.rows`."""
        yield from enumerate(self._database.rows(self._config.query, window_of(file)), 1)

    def named(self, file: SourceFile) -> bool:  # noqa: ARG002
        """See `RowStore.named`."""
        return True
