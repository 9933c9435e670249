"""What the report asks of whoever holds the tables. It knows no database."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

from tasks.core.paths import sql_dir


class Reader(Protocol):
    """Runs a SELECT over the tables of `tasks.core.schemas`, which go by their own names."""

    def rows(self, sql: str, params: Mapping[str, object]) -> list[dict[str, Any]]:
        """The rows of `sql` in order, its $parameters bound to `params`; exactly those it names are given."""


@cache
def _text(name: str) -> str:
    return (sql_dir() / "report" / f"{name}.sql").read_text(encoding="utf-8")


def select(reader: Reader, name: str, **params: object) -> list[dict[str, Any]]:
    """The rows of `sql/report/<name>.sql`."""
    return reader.rows(_text(name), params)
