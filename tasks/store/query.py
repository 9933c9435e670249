"""Runs the SELECTs of `sql/` over parts of the lake, over Arrow tables, or over the warehouse.

SQL files are plain SELECTs over relation names with $parameters. A relation is bound to Parquet files or to an Arrow
table. A relation without rows still has the table's columns, and columns missing from older files are null.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TypeAlias

import duckdb
import pyarrow as pa

from tasks.core.errors import DamagedError, LeadlineError, UsageError
from tasks.core.paths import sql_dir
from tasks.core.schemas import TABLES, Table
from tasks.store.lake import Part, check, damaged, empty
from tasks.store.storage import Local

Relation: TypeAlias = Sequence[Part] | Any  # parts of a table, or an Arrow table
_COLUMNS: dict[pa.Schema, str] = {}  # of declared tables, as nulls of their types


@cache
def sql(name: str) -> str:
    """Text of `sql/<name>.sql`."""
    return (sql_dir() / f"{name}.sql").read_text(encoding="utf-8")


def sql_in(*rooms: str) -> list[str]:
    """Names of all SQL files of some folders of `sql/`."""
    return [f"{room}/{path.stem}" for room in rooms for path in sorted((sql_dir() / room).glob("*.sql"))]


def over(text: str, relations: Mapping[str, str]) -> str:
    """A SELECT (one that begins with no WITH) over relations that are SELECTs themselves: one query for a reader."""
    return "WITH " + ",\n".join(f"{name} AS (\n{of}\n)" for name, of in relations.items()) + f"\n{text}"


def connect(database: Path | str, memory_limit: str, scratch: Path) -> duckdb.DuckDBPyConnection:
    """DuckDB with our macros, UTC days and bounded memory: it spills into `scratch`, and fetches no extension."""
    connection = duckdb.connect(
        database,
        config={
            "memory_limit": memory_limit,
            "temp_directory": str(scratch),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
        },
    )
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(sql("macros"))
    return connection


class Queries:
    """A private in-memory DuckDB to run SQL files in; use it as a context manager.

    Starting DuckDB takes longer than most queries, so the last one is kept for the next caller with the same settings.
    """

    _idle: ClassVar[list[tuple[object, duckdb.DuckDBPyConnection]]] = []  # with its settings; at most one

    def __init__(self, memory_limit: str, scratch: Path) -> None:
        self._memory_limit, self._scratch = memory_limit, scratch
        connection = None
        with suppress(IndexError):  # another thread may have been faster
            settings, idle = self._idle.pop()
            connection = idle if settings == self._settings() else None
        self._connection = connection or connect(":memory:", memory_limit, scratch)

    def _settings(self) -> object:
        # One that has spilled needs its directory, which the next run may have removed.
        return self._memory_limit, self._scratch, self._scratch.exists()

    def __enter__(self) -> "Queries":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if error is None:
            self._idle[:] = [(self._settings(), self._connection)]
        else:
            self._connection.close()

    def run(self, name: str, relations: Mapping[str, Relation], params: Mapping[str, object] | None = None) -> pa.Table:
        """Result of `sql/<name>.sql` over the given relations.

        Args:
            relations: Relation name to parts or rows. A name of a declared table may be bound to no parts.
            params: Values of the $parameters; those that the file does not use are left out.

        Raises:
            DamagedError: A part can't be read.
        """
        return self.select(sql(name), relations, params)

    def select(
        self, text: str, relations: Mapping[str, Relation], params: Mapping[str, object] | None = None
    ) -> pa.Table:
        """Result of a SELECT over the given relations; see `run`."""
        try:
            for relation, rows in relations.items():
                bind(self._connection, relation, rows)
            return self._connection.execute(text, used(text, params or {})).to_arrow_table()
        except duckdb.Error:
            find_damage(part for rows in relations.values() if not isinstance(rows, pa.Table) for part in rows)
            raise
        finally:
            for relation, rows in relations.items():
                if isinstance(rows, pa.Table):
                    self._connection.unregister(relation)
                else:
                    self._connection.execute(f'DROP VIEW IF EXISTS "{relation}"')


def used(text: str, params: Mapping[str, object]) -> dict[str, object]:
    """The values of the $parameters that a SELECT uses."""
    return {k: v for k, v in params.items() if re.search(rf"\${k}\b", text)}


def bind(connection: duckdb.DuckDBPyConnection, relation: str, rows: Relation) -> None:
    """Make `relation` readable in `connection`: a view of files, or an Arrow table."""
    if isinstance(rows, pa.Table):
        connection.register(relation, rows)
    else:
        body = declared(connection, TABLES[relation], (p.path for p in rows))
        connection.execute(f'CREATE OR REPLACE TEMP VIEW "{relation}" AS {body}')


def declared(connection: duckdb.DuckDBPyConnection, table: Table, paths: Iterable[Path | str] = ()) -> str:
    """A SELECT of the rows in these files (or patterns) with all columns that the table has today."""
    if table.schema not in _COLUMNS:
        connection.register("_empty", empty(table))
        types = connection.execute("SELECT column_name, column_type FROM (DESCRIBE _empty)").fetchall()
        connection.unregister("_empty")
        _COLUMNS[table.schema] = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in types)
    columns = _COLUMNS[table.schema]
    files = list(paths)
    rows = f" UNION ALL BY NAME FROM {parquet(files)}" if files else ""
    return f"SELECT {columns} WHERE false{rows}"


def parquet(paths: Iterable[Path | str]) -> str:
    """The table function that reads these files (or patterns) together; columns that some of them lack are null."""
    files = ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)
    return f"read_parquet([{files}], hive_partitioning = false, union_by_name = true)"


def find_damage(parts: Iterable[Part]) -> None:
    """Find the part that made DuckDB fail, even if its checksums are right.

    Raises:
        DamagedError: Of the first that is damaged.
    """
    suspects = list(parts)
    check(suspects)
    with duckdb.connect() as connection:  # the other one may be unusable
        for part in suspects:
            with suppress(FileNotFoundError):
                path = part.path
                try:
                    connection.execute(f"SELECT count(COLUMNS(*)) FROM {parquet([path])}")  # noqa: S608 - a quoted path
                except duckdb.Error as error:
                    if path.exists():
                        raise damaged(part.where, f"DuckDB can't read it: {type(error).__name__}") from error


def explain(error: duckdb.Error) -> LeadlineError:
    """DuckDB's complaint about a user's SQL, as an error without a traceback; or what is wrong with a part it names."""
    try:
        named = map(Path, re.findall(r"['\"](/.*?\.parquet)", str(error)))
        find_damage(Part(path.name, path.stem, (), Local(path.parent)) for path in named)
    except DamagedError as found:
        return found
    return UsageError(f"SQL: {str(error).strip()}\nTables and columns are listed in docs/tables.md.")
