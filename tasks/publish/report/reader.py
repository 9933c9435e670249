"""Read tables for the report, independent of the database."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Protocol

from tasks.store.query import sql


class Reader(Protocol):
    """Runs SELECTs over the tables of `tasks.core.schemas`, under their own names."""

    def rows(self, sql: str, params: Mapping[str, object]) -> list[dict[str, Any]]:
        """Return the rows of `sql` in order. `params` must contain exactly the $parameters of `sql`."""


def select(reader: Reader, name: str, **params: object) -> list[dict[str, Any]]:
    """Return the rows of `sql/report/<name>.sql`."""
    return reader.rows(sql(f"report/{name}"), params)


def by_generator(rows: Sequence[Mapping[str, Any]], column: str) -> list[dict[str, Any]]:
    """Group sorted rows by app and generator; each group has its rows by the value of a column."""
    groups = groupby(rows, key=lambda r: (r["app"], r["generator"]))
    return [{"app": a, "generator": g, "by": {r[column]: r for r in own}} for (a, g), own in groups]
