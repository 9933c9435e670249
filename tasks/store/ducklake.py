"""A DuckLake: tables with history that many processes can query at once. Its catalog is in PostgreSQL.

Partitions whose token differs are copied from the warehouse's private file in one transaction. Readers see a run's
results completely or not at all, and publishing unchanged partitions again has no effect. Small tables
stay in the catalog (`INLINED`), others become Parquet files below `data_path`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import duckdb

from tasks.core.errors import ConnectionLostError, LeadlineError, UsageError
from tasks.core.schemas import Table
from tasks.store.remote.access import attach, installed, quote

EXTENSIONS = ("ducklake", "postgres_scanner")
LOCK = "requirements-ducklake.lock"
INLINED = 1_000  # inserts of at least this many rows become a file
CONNECT_S = 30
# Words of the engines' messages, and what they mean. The messages themselves show the address and its password.
_PROBLEMS = {
    "authentication failed": ("does not accept the user or the password", "Correct the variable."),
    "does not match existing data path": ("keeps its files elsewhere", "Correct `ducklake.data_path`."),
    'database "': ("does not exist on that server", "Create the database, or correct the name in the address."),
    "permission denied": ("does not let this user write", "Grant the right to create tables."),
    "in connection info string": ("has an address that can't be read", "Escape @, / and : in a password."),
}
_LOST = ("Unable to connect to Postgres", "terminating connection", "server closed the connection", "no connection to")


class DuckLake:
    """The DuckLake of a config.

    Args:
        variable: Name of the environment variable with the catalog's address, for messages.
        address: Of the PostgreSQL database: `postgresql://user:password@host/name`.
        data_path: Folder of the Parquet files, or their place on object storage.
        schema: Schema of the tables; each lake needs its own.
    """

    def __init__(self, variable: str, address: str, data_path: str, schema: str) -> None:
        if not address.startswith(("postgresql://", "postgres://")):
            raise UsageError(
                f"${variable} is not the address of a catalog. Use one like postgresql://user:password@host:5432/name."
            )
        joined = "&" if "?" in address else "?"
        self._address = address if "connect_timeout" in address else f"{address}{joined}connect_timeout={CONNECT_S}"
        self._name = f"the catalog in ${variable}"
        self._data_path = data_path
        self._place = f'catalog."{schema}"'

    def publish(self, connection: duckdb.DuckDBPyConnection, owner: str, tables: Mapping[Table, Sequence[str]]) -> int:
        """Update the tables from the warehouse in one transaction.

        Args:
            connection: The private file of the warehouse, loaded.
            owner: Id of the lake. A schema belongs to one lake.
            tables: Tables to publish, with their columns.

        Returns:
            Partitions that were replaced or removed; 0 means that nothing had changed.

        Raises:
            UsageError: The extensions are not installed, or another lake publishes here.
            ConnectionLostError: The catalog does not answer.
            LeadlineError: It refuses the rows.
        """
        with self._attached(connection):
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._place}")
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {self._place}._published"
                " (relation VARCHAR, partition VARCHAR, token VARCHAR)"
            )
            self._own(connection, owner)
            columns = {table: self._columns(connection, table, names) for table, names in tables.items()}
            changed = self._changed(connection, tables)
            for table, partitions in changed.items():
                self._replace(connection, table, partitions, columns[table])
        return sum(map(len, changed.values()))

    @contextmanager
    def _attached(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """The catalog, attached in one transaction; the errors of both as ours, without the address."""
        try:
            for extension in EXTENSIONS:
                connection.execute(f"LOAD '{quote(installed(extension, LOCK))}'")
            if "://" in self._data_path:
                attach(connection, self._data_path.rstrip("/"))
            place = quote(f"ducklake:postgres:{self._address}")
            options = f"DATA_PATH '{quote(self._data_path)}', DATA_INLINING_ROW_LIMIT {INLINED}"
            connection.execute(f"ATTACH '{place}' AS catalog ({options})")
            try:
                connection.execute("BEGIN")
                yield
                connection.execute("COMMIT")
            finally:
                with suppress(duckdb.Error):  # there is none after its end
                    connection.execute("ROLLBACK")
                connection.execute("DETACH catalog")
        except duckdb.Error as error:
            message = str(error)
            for words, (problem, remedy) in _PROBLEMS.items():
                if words in message:
                    raise UsageError(f"{self._name} {problem}. {remedy}") from error
            if any(words in message for words in _LOST):
                raise ConnectionLostError(
                    f"{self._name} does not answer. Start the database, or correct the address."
                ) from error
            raise LeadlineError(
                f"{self._data_path}: can't be written by {self._name} ({type(error).__name__}). Free space or grant "
                "access, then run again."
            ) from error

    def _own(self, connection: duckdb.DuckDBPyConnection, owner: str) -> None:
        """Check that the schema belongs to this lake or is new."""
        tokens = f"{self._place}._published"
        found = connection.execute(f"SELECT token FROM {tokens} WHERE relation = ''").fetchone()  # noqa: S608 - ours
        if found is None:
            connection.execute(f"INSERT INTO {tokens} VALUES ('', '', ?)", [owner])  # noqa: S608 - names are ours
        elif found != (owner,):
            raise UsageError(
                f"{self._name}: another lake publishes into {self._place.removeprefix('catalog.')}. "
                "Set another `ducklake.schema_name` for this one."
            )

    def _columns(self, connection: duckdb.DuckDBPyConnection, table: Table, names: Sequence[str]) -> str:
        """Create the table, or alter its columns if they changed; returns the columns, quoted."""
        place, columns = f"{self._place}.{table.name}", ", ".join(f'"{name}"' for name in names)
        rows = f"SELECT {columns} FROM {table.name}"  # noqa: S608 - names are ours
        describe = "SELECT column_name, column_type FROM (DESCRIBE {})"
        wanted = connection.execute(describe.format(rows)).fetchall()
        schema = self._place.removeprefix("catalog.").strip('"')
        known = "SELECT table_name FROM duckdb_tables() WHERE database_name = 'catalog' AND schema_name = ?"
        if (table.name,) not in connection.execute(known, [schema]).fetchall():
            connection.execute(f"CREATE TABLE {place} AS {rows} WHERE false")
            if "date" in table.partition:
                connection.execute(f"ALTER TABLE {place} SET PARTITIONED BY (date)")
        elif (there := connection.execute(describe.format(f"FROM {place}")).fetchall()) != wanted:
            for name, _ in (column for column in there if column not in wanted):
                connection.execute(f'ALTER TABLE {place} DROP COLUMN "{name}"')
            for name, kind in (column for column in wanted if column not in there):
                connection.execute(f'ALTER TABLE {place} ADD COLUMN "{name}" {kind}')
            if {*there} != {*wanted}:
                tokens = f"{self._place}._published"
                connection.execute(f"UPDATE {tokens} SET token = '' WHERE relation = ?", [table.name])  # noqa: S608 - ours
        return columns

    def _changed(self, connection: duckdb.DuckDBPyConnection, tables: Collection[Table]) -> dict[Table, list[str]]:
        """Partitions whose tokens differ here and there, by table."""
        found = connection.execute(
            f"""
            SELECT relation, partition
            FROM _loaded FULL JOIN {self._place}._published AS published USING (relation, partition)
            WHERE _loaded.token IS DISTINCT FROM published.token
            ORDER BY ALL
            """  # noqa: S608 - names are ours
        ).fetchall()
        by_name: defaultdict[str, list[str]] = defaultdict(list)
        for relation, partition in found:
            by_name[relation].append(partition)
        return {table: by_name[table.name] for table in tables if table.name in by_name}

    def _replace(
        self, connection: duckdb.DuckDBPyConnection, table: Table, partitions: Sequence[str], columns: str
    ) -> None:
        place, tokens, values = f"{self._place}.{table.name}", f"{self._place}._published", [table.name, partitions]
        where, given = "true", []
        if table.partition:
            where, given = f"concat_ws('/', {', '.join(table.partition)}) IN (SELECT unnest(?))", [partitions]
        if "date" in table.partition:  # so that no file of another night is read
            nights = sorted({partition.rpartition("/")[2] for partition in partitions})
            where = f"date BETWEEN DATE '{nights[0]}' AND DATE '{nights[-1]}' AND {where}"
        connection.execute(f"DELETE FROM {place} WHERE {where}", given)  # noqa: S608 - names are ours
        connection.execute(f"INSERT INTO {place} BY NAME SELECT {columns} FROM {table.name} WHERE {where}", given)  # noqa: S608
        of_these = "WHERE relation = ? AND partition IN (SELECT unnest(?))"
        connection.execute(f"DELETE FROM {tokens} {of_these}", values)  # noqa: S608 - names are ours
        connection.execute(f"INSERT INTO {tokens} FROM _loaded {of_these}", values)
