"""The warehouse: a DuckDB file derived from the lake, worked on in private and published by an atomic rename.

DuckDB lets one process write or many read. So the nightly loads into a private file, partition by partition, each in
one transaction, and then puts a copy in the published one's place: whoever has the old file open keeps reading it, and
whoever opens it next reads the new one. Tables that hold the texts and every single pair (`traces`, `pairs`,
`verdicts`, `relevance`, `grades`) and `feedback` are not copied: they are views of the lake.
"""

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from tasks.core import keys
from tasks.core.errors import LeadlineError, UsageError
from tasks.core.paths import sql_dir
from tasks.core.schemas import FEEDBACK, GRADES, PAIRS, RELEVANCE, TABLES, TRACES, VERDICTS, Table
from tasks.store.lake import Lake, Part, check, empty
from tasks.store.query import connect, declared, explain, parquet, used

VIEWED = (TRACES, FEEDBACK, PAIRS, VERDICTS, RELEVANCE, GRADES)
WRITING = (duckdb.StatementType.COPY, duckdb.StatementType.EXPORT)
LOADED = tuple(t for t in TABLES.values() if t not in VIEWED)


class Warehouse:
    """The private file.

    Args:
        published: The file that people query.
    """

    def __init__(self, lake: Lake, published: Path, memory_limit: str) -> None:
        self._lake = lake
        self._published = published
        self._private = lake.hidden("warehouse") / "leadline.duckdb"
        self._memory_limit = memory_limit

    def load(self, *, rebuild: bool = False) -> int:
        """Bring the private file up to the lake.

        Args:
            rebuild: Begin with an empty file.

        Returns:
            Partitions loaded or removed; 0 means that nothing had changed.
        """
        if rebuild:
            self._discard()
        with self.connect() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS _loaded (relation VARCHAR, partition VARCHAR, token VARCHAR,"
                " PRIMARY KEY (relation, partition))"
            )
            changed = sum(self._load(connection, table) for table in LOADED)
            for table in VIEWED:
                self._view(connection, table)
            for path in sorted((sql_dir() / "views").glob("*.sql")):
                connection.execute(f"CREATE OR REPLACE VIEW {path.stem} AS {path.read_text(encoding='utf-8')}")
            connection.execute("CHECKPOINT")
        return changed

    def publish(self) -> None:
        """Put a copy of the private file in the published one's place.

        Raises:
            LeadlineError: The place can't be written.
        """
        target = self._published
        for leftover in target.parent.glob(f".{escape(target.name)}.*.tmp"):  # of a run that was killed while it copied
            leftover.unlink(missing_ok=True)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._private, temporary)
            temporary.replace(target)
        except OSError as error:
            with suppress(OSError):  # there may be no such directory
                temporary.unlink()
            raise LeadlineError(
                f"{target}: can't be published ({error.strerror}). Free space or grant access, then run again."
            ) from error

    @contextmanager
    def connect(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The private file, open for writing.

        Raises:
            DamagedError: A part of the lake that a view shows can't be read.
        """
        self._private.parent.mkdir(parents=True, exist_ok=True)
        scratch = self._lake.hidden("scratch")
        try:
            connection = connect(self._private, self._memory_limit, scratch)
        except duckdb.Error:
            # It is derived: a file that an unclean end or another DuckDB version left unreadable is made again.
            self._discard()
            connection = connect(self._private, self._memory_limit, scratch)
        try:
            yield connection
        except duckdb.Error:
            check(part.path for table in VIEWED for part in self._lake.parts(table))
            raise
        finally:
            connection.close()

    def _discard(self) -> None:
        for path in self._private.parent.glob("leadline.duckdb*"):
            path.unlink()

    def _load(self, connection: duckdb.DuckDBPyConnection, table: Table) -> int:
        """Load the partitions of one table whose files differ from those loaded before."""
        _grow(connection, table)
        loaded = dict(
            connection.execute("SELECT partition, token FROM _loaded WHERE relation = ?", [table.name]).fetchall()
        )
        changed = 0
        by_partition = groupby(self._lake.parts(table), key=lambda p: p.partition)
        current = {"/".join(partition): list(parts) for partition, parts in by_partition}
        for partition in sorted({*loaded, *current}):
            parts = current.get(partition, [])
            changed += _bring(connection, table, partition, loaded.get(partition), parts)
        return changed

    def _view(self, connection: duckdb.DuckDBPyConnection, table: Table) -> None:
        pattern = self._lake.root.resolve().joinpath(table.name, *["*"] * len(table.partition), "*.parquet")
        files = [pattern] if self._lake.parts(table) else []  # a view of no files can't be made
        connection.execute(f"CREATE OR REPLACE VIEW {table.name} AS {declared(connection, table, files)}")


class Reader:
    """Runs SELECTs on an open warehouse and hands out plain rows."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def rows(self, sql: str, params: Mapping[str, object]) -> list[dict[str, Any]]:
        """Rows of a SELECT with $parameters."""
        found: list[dict[str, Any]] = self.table(sql, params).to_pylist()
        return found

    def table(self, sql: str, params: Mapping[str, object]) -> pa.Table:
        """Rows of a SELECT with $parameters, as Arrow; values that it does not use are left out."""
        return self._connection.execute(sql, used(sql, params)).to_arrow_table()


def query(published: Path, sql: str, only: Path | None = None) -> pa.Table:
    """Result of a user's SQL on the published warehouse, opened read-only.

    Args:
        only: Directory of the files that the statement may read: the lake. It then writes none, loads no extension and
            attaches nothing. None for whatever DuckDB can do with a read-only database.

    Raises:
        UsageError: There is no warehouse yet, or the statement is wrong or not allowed.
    """
    with _opened(published) as connection:
        if only:
            place = str(only.resolve()).replace("'", "''")
            connection.execute(f"SET allowed_directories = ['{place}']")
            connection.execute("SET enable_external_access = false; SET lock_configuration = true")
            if writes := [s.type.name for s in connection.extract_statements(sql) if s.type in WRITING]:
                raise UsageError(
                    f"{writes[0]} writes files. Give a SELECT, with --output for a file; or allow it with --any-file."
                )
        connection.execute(sql)
        if connection.description is None:
            raise UsageError("the statement is empty. Give a SELECT.")
        return connection.to_arrow_table()


@contextmanager
def reading(published: Path) -> Iterator[Reader]:
    """The published warehouse for several queries that belong together, opened read-only: all see the same tables.

    Raises:
        UsageError: There is no warehouse yet, or another version of Leadline has published it.
    """
    with _opened(published) as connection:
        try:
            yield Reader(connection)
        except (duckdb.BinderException, duckdb.CatalogException) as error:
            # The query is ours, so that it is the file that lacks something.
            lacks = str(error).splitlines()[0]
            raise UsageError(
                f"{published}: another version of Leadline has published it ({lacks}). Run `leadline rebuild` first."
            ) from None


@contextmanager
def _opened(published: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    if not published.exists():
        raise UsageError(f"{published}: there is no warehouse yet. Run `leadline nightly` or `leadline rebuild` first.")
    try:
        with duckdb.connect(published, read_only=True) as connection:
            connection.execute("SET TimeZone = 'UTC'; SET autoinstall_known_extensions = false")
            yield connection
    except duckdb.Error as error:
        raise explain(error) from None


def _grow(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Make the table, again if it was made with other columns than it has today: its rows are then loaded anew."""
    connection.register("_empty", empty(table))
    describe = "SELECT column_name, column_type FROM (DESCRIBE {})"
    connection.execute(f"CREATE TABLE IF NOT EXISTS {table.name} AS FROM _empty")
    if (
        connection.execute(describe.format(table.name)).fetchall()
        != connection.execute(describe.format("_empty")).fetchall()
    ):
        connection.execute(f"CREATE OR REPLACE TABLE {table.name} AS FROM _empty")
        connection.execute("DELETE FROM _loaded WHERE relation = ?", [table.name])
    connection.unregister("_empty")


def _bring(
    connection: duckdb.DuckDBPyConnection, table: Table, partition: str, loaded: str | None, parts: list[Part]
) -> bool:
    """Load a partition if it differs from what was loaded, without parts that another writer removes meanwhile."""
    while True:
        stamps = _stamps(parts)
        token = keys.version([[part.name, *stamp] for part, stamp in stamps.items()])
        if token == loaded:
            return False
        try:
            check(part.path for part in stamps)  # DuckDB does not look at checksums
            _replace(connection, table, partition, token, list(stamps))
        except LeadlineError:
            parts = [part for part in stamps if part.path.exists()]
            if len(parts) == len(stamps):
                raise
        else:
            return True


def _stamps(parts: list[Part]) -> dict[Part, tuple[int, int]]:
    """Size and time of writing of the parts that are still there."""
    found: dict[Part, tuple[int, int]] = {}
    for part in parts:
        with suppress(FileNotFoundError):
            seen = part.path.stat()
            found[part] = (seen.st_size, seen.st_mtime_ns)
    return found


def _replace(
    connection: duckdb.DuckDBPyConnection, table: Table, partition: str, token: str, parts: list[Part]
) -> None:
    """One partition's rows and its token, in one transaction."""
    values = partition.split("/") if partition else []
    where = " AND ".join(f"{c} = ?" for c in table.partition) or "true"
    connection.execute("BEGIN")
    try:
        connection.execute(f"DELETE FROM {table.name} WHERE {where}", values)  # noqa: S608 - names are ours
        if parts:
            connection.execute(f"INSERT INTO {table.name} BY NAME FROM {parquet(p.path for p in parts)}")
            connection.execute("INSERT OR REPLACE INTO _loaded VALUES (?, ?, ?)", [table.name, partition, token])
        else:
            connection.execute("DELETE FROM _loaded WHERE relation = ? AND partition = ?", [table.name, partition])
        connection.execute("COMMIT")
    except duckdb.Error as error:
        with suppress(duckdb.Error):  # where the engine has ended the transaction by itself
            connection.execute("ROLLBACK")
        check(part.path for part in parts)
        why = str(error).splitlines()[0][:300] if isinstance(error, duckdb.BinderException) else type(error).__name__
        raise LeadlineError(
            f"{table.name}/{partition}: can't be loaded into the warehouse ({why}). Run `leadline rebuild`."
        ) from error
