"""The warehouse: a DuckDB file derived from the lake, worked on in private and published by an atomic rename.

DuckDB allows either one writing process or many readers. So a run loads changed partitions into a private file and
then replaces the published file with a copy. Readers that have the old file open keep reading it. The large tables
(`traces`, `pairs`, `verdicts`, `relevance`, `grades`, `ask_replies`) and `feedback` are views of the lake.
"""

import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from glob import escape
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from tasks.core import keys
from tasks.core.errors import LeadlineError, UsageError
from tasks.core.paths import ObjectUrl
from tasks.core.schemas import ASK_REPLIES, FEEDBACK, GRADES, PAIRS, RELEVANCE, TABLES, TRACES, VERDICTS, Table
from tasks.store.lake import Lake, Part, check, empty
from tasks.store.query import connect, declared, explain, find_damage, parquet, used
from tasks.store.remote.access import attach, quote
from tasks.store.storage import Stamp
from tasks.store.views import views

VIEWED = (TRACES, FEEDBACK, PAIRS, VERDICTS, RELEVANCE, GRADES, ASK_REPLIES)
WRITING = (duckdb.StatementType.COPY, duckdb.StatementType.EXPORT)
MOST_TOGETHER, MOST_BYTES = 200, 64_000_000  # partitions, and bytes of their files, that one transaction loads
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
            self._make_views(connection)
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
            if isinstance(self._lake.root, ObjectUrl):
                attach(connection, self._lake.root.url)
            yield connection
        except duckdb.Error:
            if isinstance(self._lake.root, Path):  # of object storage, all parts would be fetched
                find_damage(part for table in VIEWED for part in self._lake.parts(table))
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
        by_partition = groupby(self._lake.parts(table), key=lambda p: p.partition)
        current = {"/".join(partition): list(parts) for partition, parts in by_partition}
        changed = 0
        for batch in _batches(
            _Partition(name, loaded.get(name), current.get(name, [])) for name in {*loaded, *current}
        ):
            try:
                _replace(connection, table, batch)
                changed += len(batch)
            except LeadlineError:  # each by itself, to get past parts that another writer removes meanwhile
                changed += sum(_bring(connection, table, partition) for partition in batch)
        return changed

    def _make_views(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the views, unless they are there as they would be made: DuckDB opens all files that a view shows."""
        made_of = {table.name: self._view_of(connection, table) for table in VIEWED} | views()
        token = keys.version([made_of, [str(table.schema) for table in LOADED]])
        made = connection.execute("SELECT token FROM _loaded WHERE relation = '' AND partition = 'views'").fetchone()
        if made != (token,):
            for name, body in made_of.items():
                connection.execute(f"CREATE OR REPLACE VIEW {name} AS {body}")
            connection.execute("INSERT OR REPLACE INTO _loaded VALUES ('', 'views', ?)", [token])

    def _view_of(self, connection: duckdb.DuckDBPyConnection, table: Table) -> str:
        place = self._lake.root.resolve() if isinstance(self._lake.root, Path) else self._lake.root
        pattern = "/".join((str(place), table.name, *["*"] * len(table.partition), "*.parquet"))
        files = [pattern] if self._lake.parts(table) else []  # a view of no files can't be made
        return declared(connection, table, files)


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


def query(published: Path, sql: str, only: Path | ObjectUrl | None = None) -> pa.Table:
    """Result of a user's SQL on the published warehouse, opened read-only.

    Args:
        only: Place of the files that the statement may read: the lake. It then writes none, loads no extension and
            attaches nothing. None for whatever DuckDB can do with a read-only database.

    Raises:
        UsageError: There is no warehouse yet, or the statement is wrong or not allowed.
    """
    with _opened(published) as connection:
        if only:
            place = quote(str(only.resolve() if isinstance(only, Path) else only))
            connection.execute(f"SET allowed_directories = ['{place}/']")
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
            if place := _remote(connection):
                attach(connection, place.url)
            yield connection
    except duckdb.Error as error:
        raise explain(error) from None


def _remote(connection: duckdb.DuckDBPyConnection) -> ObjectUrl | None:
    """The place on object storage that the views show, if they show one."""
    shown = rf"SELECT regexp_extract(sql, $$'(\w+://.*?)/{TRACES.name}/$$, 1) FROM duckdb_views() WHERE view_name = ?"  # noqa: S608 - a name of ours
    url = next((url for (url,) in connection.execute(shown, [TRACES.name]).fetchall()), "")
    return ObjectUrl(url, Path()) if url else None


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


class _Partition:
    """A partition of a table, as it is now.

    Attributes:
        loaded: Token of what was loaded of it before; None for nothing.
        stamps: Of the parts that are there.
    """

    def __init__(self, name: str, loaded: str | None, parts: Iterable[Part]) -> None:
        self.name, self.loaded = name, loaded
        self.stamps: dict[Part, Stamp] = {}
        for part in parts:
            with suppress(FileNotFoundError):
                self.stamps[part] = part.stamp()
        self.token = keys.version([[part.name, stamp.etag] for part, stamp in self.stamps.items()])

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(stamp.size for stamp in self.stamps.values())


def _batches(partitions: Iterable[_Partition]) -> Iterator[list[_Partition]]:
    """Those that differ from what was loaded, as many together as one transaction takes."""
    batch: list[_Partition] = []
    for partition in sorted(partitions, key=attrgetter("name")):
        if partition.token != partition.loaded:
            if batch and (len(batch) == MOST_TOGETHER or sum(p.size for p in (*batch, partition)) > MOST_BYTES):
                yield batch
                batch = []
            batch.append(partition)
    if batch:
        yield batch


def _bring(connection: duckdb.DuckDBPyConnection, table: Table, partition: _Partition) -> bool:
    """Load a partition that differs, without parts that another writer removes meanwhile."""
    while partition.token != partition.loaded:
        try:
            _replace(connection, table, [partition])
        except LeadlineError:
            there = [part for part in partition.stamps if part.storage.stamp(part.key)]
            if len(there) == len(partition.stamps):
                raise
            partition = _Partition(partition.name, partition.loaded, there)
        else:
            return True
    return False


def _replace(connection: duckdb.DuckDBPyConnection, table: Table, partitions: Sequence[_Partition]) -> None:
    """The rows of some partitions and their tokens, in one transaction."""
    parts = [part for partition in partitions for part in partition.stamps]
    check(parts)  # DuckDB does not look at checksums
    where = " AND ".join(f"{c} = ?" for c in table.partition) or "true"
    connection.execute("BEGIN")
    try:
        for partition in partitions:
            if partition.loaded is not None:
                values = partition.name.split("/") if partition.name else []
                connection.execute(f"DELETE FROM {table.name} WHERE {where}", values)  # noqa: S608 - names are ours
            if not partition.stamps:
                gone = [table.name, partition.name]
                connection.execute("DELETE FROM _loaded WHERE relation = ? AND partition = ?", gone)
        tokens = [(table.name, partition.name, partition.token) for partition in partitions if partition.stamps]
        if tokens:
            rows = ", ".join(["(?, ?, ?)"] * len(tokens))
            connection.execute(f"INSERT OR REPLACE INTO _loaded VALUES {rows}", list(chain.from_iterable(tokens)))  # noqa: S608 - marks
        if parts:
            connection.execute(f"INSERT INTO {table.name} BY NAME FROM {parquet(p.path for p in parts)}")
        connection.execute("COMMIT")
    except duckdb.Error as error:
        with suppress(duckdb.Error):  # where the engine has ended the transaction by itself
            connection.execute("ROLLBACK")
        find_damage(parts)
        why = str(error).splitlines()[0][:300] if isinstance(error, duckdb.BinderException) else type(error).__name__
        place = "/".join(filter(None, (table.name, partitions[0].name)))
        raise LeadlineError(f"{place}: can't be loaded into the warehouse ({why}). Run `leadline rebuild`.") from error
