"""How the report reads tables. It knows no database."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Protocol

from tasks.store.query import sql


class Reader(Protocol):
    """Runs a SELECT over the tables of `tasks.core.schemas`, which go by their own names."""

    def rows(self, sql: str, params: Mapping[str, object]) -> list[dict[str, Any]]:
        """The rows of `sql` in order, its $parameters bound to `params`; exactly those it names are given."""


def select(reader: Reader, name: str, **params: object) -> list[dict[str, Any]]:
    """The rows of `sql/report/<name>.sql`."""
    return reader.rows(sql(f"report/{name}"), params)


def by_generator(rows: Sequence[Mapping[str, Any]], column: str) -> list[dict[str, Any]]:
    """One entry per app and generator, in which rows must be ordered, with its rows by the value of a column."""
    groups = groupby(rows, key=lambda r: (r["app"], r["generator"]))
    return [{"app": a, "generator": g, "by": {r[column]: r for r in own}} for (a, g), own in groups]
