"""Stream rows from a database through SQLAlchemy, in a read-only transaction.

The URL of a database contains a password, so it comes from an environment variable, and messages never show it.
Messages also omit the database's text about values, which may be text of a trace.
"""

import asyncio
import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, DateTime, NullPool, TextClause, bindparam, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.ext.asyncio import AsyncEngine

from tasks.core.errors import ConnectionLostError, LeadlineError, SourceError, UsageError
from tasks.sources.reading import http
from tasks.sources.reading.windows import Window, Windowed

ROWS = 500  # rows per fetch
CONNECT_S = 30.0

# Options of libpq in a URL that asyncpg does not know.
_OF_LIBPQ = ("application_name", "channel_binding", "connect_timeout", "gssencmode", "keepalives", "options")
# PostgreSQL errors of a lost or unavailable connection, by prefix of their code.
_LOST = ("08", "40", "53", "57P")
# Problem and remedy by prefix of PostgreSQL's error code.
_PROBLEMS = {
    "": ("can't be read", "Try the query in the database's own client."),
    "0A000": ("refuses the query", "It must be one statement that reads."),
    "22": ("can't compute the query for the values of some row", "Try the query in the database's own client."),
    "25006": ("is only read, and the query would write", "Correct the query: it must only read."),
    "28": ("does not accept the user or the password", "Correct the variable."),
    "3D": ("does not exist on that server", "Correct the name at the end of the address."),
    "42": ("refuses the query", "Correct the query or the address, or grant the right to read."),
    "57014": ("canceled the query, which took too long", "Add an index on the time, or raise the server's limit."),
    "option": ("has an address with an option that its driver does not know", "Remove the option."),
}
_READ_ONLY = "SET TRANSACTION READ ONLY"


class InDatabase(Windowed):
    """Settings that all database sources share.

    Attributes:
        dsn_env: Environment variable with the URL of the database, such as
            `postgresql://user:password@host/name` or `sqlite:////data/log.sqlite`. Never write the URL itself into
            a config.
    """

    dsn_env: str


class Database:
    """A database to read rows from.

    Args:
        kind: Kind of the source, for messages.
        variable: `InDatabase.dsn_env`.

    Raises:
        UsageError: `variable` is not a variable name; it may be the URL itself.
    """

    def __init__(self, kind: str, variable: str) -> None:
        http.check_variable(kind, "dsn_env", variable)
        self._kind = kind
        self._variable = variable

    @property
    def name(self) -> str:
        """Name of the database, for messages and the names of windows."""
        return f"{self._kind} ${self._variable}"

    def rows(self, query: str, window: Window) -> Iterator[dict[str, Any]]:
        """Yield the rows of a query, with `ROWS` of them in memory.

        Args:
            query: Query with the parameters `:start` and `:end` for the window.

        Raises:
            UsageError: The variable is not set, or is not the URL of a database.
            SourceError: The database can't be read to the end of the query.
        """
        url = self._url()
        with self._errors():
            if url.get_dialect().is_async:
                yield from _asynchronous(url, query, window)
            else:
                yield from _synchronous(url, query, window)

    def _url(self) -> URL:
        """Return the URL, with the installed driver."""
        wrong = f"{self._kind} source: ${self._variable} holds no address of a database that can be read. "
        try:
            url = make_url(http.secret(self._kind, "dsn_env", self._variable))
            family = url.drivername.partition("+")[0]
            if family in ("postgres", "postgresql"):
                mode = url.query.get("sslmode")
                url = url.difference_update_query(["sslmode", *_OF_LIBPQ]).set(drivername="postgresql+asyncpg")
                url = url.update_query_dict({"ssl": mode}) if mode else url
            elif family == "sqlite" and url.database and url.database != ":memory:":
                # Read-only mode does not create a missing file.
                file = url.database if url.database.startswith("file:") else f"file:{quote(url.database)}"
                url = url.set(drivername="sqlite+pysqlite", database=file, query={"mode": "ro", "uri": "true"})
            url.get_dialect().import_dbapi()
        except (NoSuchModuleError, ImportError):
            remedy = "Install the driver that its first word names, as SQLAlchemy's documentation of dialects lists it."
            raise UsageError(wrong + remedy) from None  # the cause may quote the address
        except (ArgumentError, ValueError):
            remedy = "Write one like postgresql://user:password@host:5432/name; escape @, / and : in a password."
            raise UsageError(wrong + remedy) from None  # the cause may quote the address
        return url

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert database errors to errors without values and without the URL."""
        try:
            yield
        except LeadlineError:
            raise
        except Exception as exc:
            raise self._explained(exc) from None  # the cause holds parameters, rows, or the address

    def _explained(self, exc: Exception) -> SourceError:
        name, causes = f"{self._kind} source: the database of ${self._variable}", list(_causes(exc))
        driver = causes[-1]
        state = next((str(s) for c in causes if (s := getattr(c, "sqlstate", None))), "")
        lost = isinstance(exc, DBAPIError) and exc.connection_invalidated
        if lost or any(isinstance(c, OSError) for c in causes) or state.startswith(_LOST) or _locked(driver):
            remedy = "Check the address, the network and the server, and run again."
            return ConnectionLostError(f"{name} can't be reached. {remedy}")
        kind = next((k for k in sorted(_PROBLEMS, key=len, reverse=True) if k and state.startswith(k)), "")
        if isinstance(driver, sqlite3.Error):
            kind = "25006" if "readonly" in str(driver) else "42"
        elif not state and isinstance(driver, TypeError):
            kind = "option"
        problem, remedy = _PROBLEMS[kind]
        if kind == "42":  # a message about the query holds no value of a row
            problem = f"{problem} ({_line(driver)})"
        elif not kind:
            problem = f"{problem} ({type(driver).__name__}{f' {state}' if state else ''})"
        return SourceError(f"{name} {problem}. {remedy}")


def parameters(query: str) -> set[str]:
    """Return the names of a query's parameters."""
    return set(text(query).compile().params)


def _asynchronous(url: URL, query: str, window: Window) -> Iterator[dict[str, Any]]:
    engine = AsyncEngine(create_engine(url, poolclass=NullPool, connect_args=_connect_args(url)))
    with asyncio.Runner() as runner:
        connection = runner.run(engine.connect().start())
        found = None
        try:
            found = runner.run(connection.run_sync(_parts, query, window))
            while part := runner.run(connection.run_sync(lambda _: next(found, None))):
                yield from part
        finally:
            if found is not None:
                runner.run(connection.run_sync(lambda _: found.close()))
            runner.run(connection.close())


def _synchronous(url: URL, query: str, window: Window) -> Iterator[dict[str, Any]]:
    with (
        create_engine(url, poolclass=NullPool).connect() as connection,
        closing(_parts(connection, query, window)) as found,
    ):
        for part in found:
            yield from part


def _connect_args(url: URL) -> Mapping[str, object]:
    if url.drivername != "postgresql+asyncpg":
        return {}
    # Times without a zone are taken as UTC, so the session compares them in UTC.
    return {"timeout": CONNECT_S, "server_settings": {"TimeZone": "UTC", "application_name": "leadline"}}


def _parts(connection: Connection, query: str, window: Window) -> Generator[list[dict[str, Any]], None, None]:
    """Yield the rows in parts. The transaction is read-only and is rolled back at its end."""
    dialect = connection.dialect.name
    connection = connection.execution_options(stream_results=True, max_row_buffer=ROWS)
    if dialect == "postgresql":
        connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    elif dialect == "sqlite":
        connection.exec_driver_sql("PRAGMA query_only = ON")
    elif dialect in ("mysql", "mariadb", "oracle"):
        connection.exec_driver_sql(_READ_ONLY)
    result = connection.execute(*_bound(query, window, dialect))
    names = list(result.keys())
    with closing(result):
        for part in result.partitions(ROWS):
            yield [dict(zip(names, row, strict=True)) for row in part]


def _bound(query: str, window: Window, dialect: str) -> tuple[TextClause, dict[str, object]]:
    """The statement, and its window as the database compares times; without a zone where it knows none."""
    zoned = dialect in ("postgresql", "oracle")
    times = {name: at.astimezone(UTC) for name, at in window._asdict().items()}
    if dialect == "sqlite":  # which has texts: the shortest form of a time comes before all others of it
        return text(query), {name: at.replace(tzinfo=None).isoformat(" ") for name, at in times.items()}
    kind = DateTime(timezone=zoned)
    statement = text(query).bindparams(*(bindparam(name, type_=kind) for name in times))
    return statement, {name: at if zoned else at.replace(tzinfo=None) for name, at in times.items()}


def _causes(exc: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, down to the driver's error."""
    seen: set[int] = set()
    while exc is not None and id(exc) not in seen:
        seen.add(id(exc))
        yield exc
        exc = getattr(exc, "orig", None) or exc.__cause__


def _locked(exc: BaseException) -> bool:
    return isinstance(exc, sqlite3.OperationalError) and "locked" in str(exc)


def _line(exc: BaseException) -> str:
    return " ".join(str(exc).split())[:200].rstrip(".")
