"""The lake: Parquet parts under Hive-style directories, each written to a temporary file and renamed.

A part is visible whole or not at all. Parts of `traces` are the unit of work: what later stages make of a part
bears its name, so that "what is missing" is a comparison of file names. A part that depends on rows which may still
change (a repaired verdict) carries an `inputs` token in its metadata; a different token means "compute again".
Nothing here knows what the tables mean.
"""

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import BaseFileLock, FileLock, Timeout

from tasks.core.errors import BusyError, DamagedError, LeadlineError
from tasks.core.schemas import TABLES, Table

INPUTS = b"leadline.inputs"
SALT = ".salt"
SUFFIX = ".parquet"
PENDING = ".redacting"  # nights whose texts are being redacted, until their pages are gone


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One Parquet file of a table; reading it raises DamagedError if it is damaged.

    Attributes:
        name: File name without suffix.
        partition: Values of the table's partition columns, as they stand in the path.
    """

    path: Path
    name: str
    partition: tuple[str, ...]

    @property
    def date(self) -> date:
        """Day of a table whose innermost partition column is `date`."""
        return date.fromisoformat(self.partition[-1])

    def inputs(self) -> str:
        """The token it was written with, or an empty string."""
        with _whole(self.path):
            metadata: dict[bytes, bytes] = pq.read_schema(self.path).metadata or {}
        return metadata.get(INPUTS, b"").decode()

    def stamp(self) -> tuple[int, int]:
        """What distinguishes this file from one that replaced it."""
        found = self.path.stat()
        return found.st_ino, found.st_mtime_ns

    def rows(self) -> int:
        """Number of rows, from the footer."""
        with _whole(self.path):
            return int(pq.read_metadata(self.path).num_rows)

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """The part's rows; `columns` may name nested ones (`chunks.list.element.chunk_id`)."""
        with _whole(self.path), pq.ParquetFile(self.path, page_checksum_verification=True) as file:
            return file.read(columns=columns)

    def frame(self, columns: list[str] | None = None) -> pl.DataFrame:
        """The part's rows for polars; see `read`."""
        return frame(self.read(columns))


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Name the remedy for a part that can't be read; one that is gone, or may not be read, is not damaged."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = "".join(c if c.isprintable() else "?" for c in " ".join(str(error).split()))[:200]
        raise damaged(path, reason) from error


def damaged(path: Path, reason: str) -> DamagedError:
    """The error of a part, with what to do."""
    table = next(above.name for above in path.parents if "=" not in above.name)
    remedy = TABLES[table].remedy if table in TABLES else ""
    return DamagedError(f"{path}: the part is damaged ({reason}). {remedy}")


def check(paths: Iterable[Path]) -> None:
    """Read parts to their ends, to find out which of them is damaged.

    Raises:
        DamagedError: Of the first that is damaged; parts that are gone by now are skipped.
    """
    for path in paths:
        with suppress(FileNotFoundError), _whole(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches():
                batch.validate(full=True)


def _listed(top: str, depth: int, within: tuple[str, str] | None) -> Iterator[tuple[str, ...]]:
    """Path of each Parquet file so many directories below `top`, and the values that these have in it."""
    with suppress(FileNotFoundError), os.scandir(top) as entries:
        for entry in entries:
            if not depth:
                if entry.name.endswith(SUFFIX) and not entry.name.startswith("."):
                    yield (entry.path,)
                continue
            _, is_value, value = entry.name.partition("=")
            if is_value and (depth > 1 or not within or within[0] <= value <= within[1]):
                for path, *values in _listed(entry.path, depth - 1, within):
                    yield path, value, *values


class Lake:
    """Tables under one directory.

    Args:
        root: The lake's directory; made on the first write.
        overlay: Where writes go instead, if given: reads see both. A dry run works on an overlay that is thrown away.
        writer: Who writes. One process of each kind may at a time: a backfill works beside the nightly, and neither
            touches what the other leaves half done. Parts that both write are changed by `alone`.
    """

    def __init__(self, root: Path, overlay: Path | None = None, *, writer: str = "run") -> None:
        self.root = root
        self.overlay = overlay
        self.writer = writer

    def parts(self, table: Table, *partition: str, days: tuple[date, date] | None = None) -> list[Part]:
        """Parts of a table in the order of their paths, those of one partition prefix if given.

        Args:
            days: The first and the last day, of a table whose innermost partition column is `date`; others are not
                looked for.
        """
        found: dict[tuple[str, ...], Part] = {}
        within = (str(days[0]), str(days[1])) if days else None
        for base in (self.root, self.overlay):
            if base is not None:
                dirs = (f"{k}={v}" for k, v in zip(table.partition, partition, strict=False))
                top, open_columns = (base / table.name).joinpath(*dirs), len(table.partition) - len(partition)
                for path, *values in _listed(str(top), open_columns, within):
                    name = path.rpartition("/")[2].removesuffix(SUFFIX)
                    found[*partition, *values, name] = Part(Path(path), name, (*partition, *values))
        return [found[k] for k in sorted(found)]

    def find(self, table: Table, name: str, *partition: str) -> Part | None:
        """The part of that name, if it is there."""
        dirs = [f"{k}={v}" for k, v in zip(table.partition, partition, strict=True)]
        for base in (self.overlay, self.root):
            if base is not None and (path := (base / table.name).joinpath(*dirs, f"{name}.parquet")).exists():
                return Part(path, name, partition)
        return None

    def frame(self, table: Table, *partition: str, columns: list[str] | None = None) -> pl.DataFrame:
        """Rows of all parts of a table, see `parts`; columns that a part lacks are null."""
        none = frame(empty(table).select(columns or table.schema.names))
        return pl.concat([none, *(part.frame(columns) for part in self.parts(table, *partition))], how="diagonal")

    def has(self, tables: Iterable[Table], name: str, *partition: str, inputs: str) -> bool:
        """Whether each of these tables has the part, made from these inputs."""
        found = (self.find(table, name, *partition) for table in tables)
        return all(part is not None and part.inputs() == inputs for part in found)

    def salt(self) -> str:
        """The beginning of this lake's hashes of texts, so that nobody can confirm a guess of a text; made once."""
        for base in (self.root, self.overlay):
            if base is not None and (path := base / SALT).exists():
                return path.read_text(encoding="ascii")
        path = (self.overlay or self.root) / SALT
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # another process made it meanwhile
            fresh = path.with_name(f"{SALT}.{secrets.token_hex(4)}")
            fresh.write_text(secrets.token_hex(16), encoding="ascii")
            try:
                path.hardlink_to(fresh)
            finally:
                fresh.unlink()
        return path.read_text(encoding="ascii")

    def values(self, table: Table, *partition: str) -> list[str]:
        """Values of the next partition column under a partition prefix, sorted."""
        return sorted({p.partition[len(partition)] for p in self.parts(table, *partition)})

    def path(self, table: Table, name: str, *partition: str) -> Path:
        """Where a part is written."""
        base = self.overlay or self.root
        dirs = (f"{k}={v}" for k, v in zip(table.partition, partition, strict=True))
        return (base / table.name).joinpath(*dirs, f"{name}.parquet")

    def write(
        self, table: Table, name: str, rows: pa.Table, *partition: str, inputs: str = "", once: bool = False
    ) -> Part:
        """Write one part, replacing one of the same name.

        Args:
            rows: Columns of the table in any order; partition columns that are missing are added.
            partition: Values of the partition columns.
            inputs: Token of what the rows were computed from.
            once: Keep a part of the same name instead, also one that another process is just writing.

        Raises:
            LeadlineError: The disk is full or the directory can't be written.
        """
        filled = conform(rows, table, partition)
        if inputs:
            filled = filled.replace_schema_metadata({INPUTS: inputs.encode()})
        path = self.path(table, name, *partition)
        temporary = path.with_name(f".{name}.{secrets.token_hex(4)}.{self._suffix}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(filled, temporary, compression="zstd", compression_level=1, write_page_checksum=True)
            if once:
                with suppress(FileExistsError):
                    path.hardlink_to(temporary)
                temporary.unlink()
            else:
                temporary.replace(path)
        except OSError as error:
            with suppress(OSError):  # there may be no such directory
                temporary.unlink()
            raise LeadlineError(
                f"{path}: can't be written ({error.strerror}). Free space or grant access, then run again; "
                "what is done so far is kept."
            ) from error
        return Part(path, name, partition)

    def drop(self, table: Table, name: str, *partition: str) -> None:
        """Remove a part where it would be written, if it is there."""
        self.path(table, name, *partition).unlink(missing_ok=True)

    def hidden(self, name: str) -> Path:
        """A directory beside the tables for what is not a table, such as the gates' own files."""
        return (self.overlay or self.root) / (f".{name}" if self.writer == "run" else f".{name}-{self.writer}")

    def alone(self) -> BaseFileLock:
        """A lock for reading a part and replacing it, without another writer in between.

        For the parts that a nightly and a backfill may both write; not to be nested.
        """
        base = self.overlay or self.root
        base.mkdir(parents=True, exist_ok=True)
        return FileLock(base / ".lock-parts")

    def lock(self, holder: str, *, wait: bool = False) -> "RunLock":
        """The right to change this lake, for one process of this kind of writer at a time.

        Args:
            holder: Shown to other processes: for example, the command and the process id.
            wait: Wait until whoever has it is done, instead of failing.
        """
        return RunLock(self.root, holder, "" if self.writer == "run" else f"-{self.writer}", self._suffix, wait=wait)

    def holder(self) -> tuple[str, datetime] | None:
        """Who holds the lock, and since when; None where nobody does. Changes nothing."""
        lock = "" if self.writer == "run" else f"-{self.writer}"
        note = self.root / f".lock{lock}.holder"
        with suppress(OSError):  # there is no note, or it went away meanwhile
            since, who = datetime.fromtimestamp(note.stat().st_mtime, UTC), note.read_text(encoding="utf-8")
            try:
                with FileLock(self.root / f".lock{lock}", timeout=0):
                    return None  # a process that was killed has left the note
            except Timeout:
                return who, since
        return None

    @property
    def _suffix(self) -> str:
        return "tmp" if self.writer == "run" else f"{self.writer}-tmp"


class RunLock:
    """An advisory lock that ends with its process, however that ends, and names its holder.

    Args:
        root: The lake.
        holder: Shown to other processes: for example, the command and the process id.
        of: What distinguishes its files from those of other locks.
        leftovers: Suffix of the temporary files that its process may leave.
        wait: Wait for it.
    """

    def __init__(self, root: Path, holder: str, of: str = "", leftovers: str = "tmp", *, wait: bool = False) -> None:
        self._root = root
        self._lock = FileLock(root / f".lock{of}")
        self._note = root / f".lock{of}.holder"
        self._holder = holder
        self._leftovers = leftovers
        self._timeout = -1 if wait else 0

    def __enter__(self) -> None:
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=self._timeout)
        except Timeout:
            who = self._note.read_text(encoding="utf-8") if self._note.exists() else "another process"
            raise BusyError(
                f"{self._root}: locked by {who}. Wait until it ends, or stop it; its work is kept."
            ) from None
        except OSError as error:
            raise LeadlineError(
                f"{self._root}: can't be locked ({error.strerror}). Correct `lake` in the config, or grant access."
            ) from error
        self._note.write_text(self._holder, encoding="utf-8")
        for folder, _, names in os.walk(self._root):  # what a run that was killed while it wrote has left
            for name in names:
                if name.startswith(".") and name.endswith(f".{self._leftovers}"):
                    Path(folder, name).unlink(missing_ok=True)

    def __exit__(self, *_: object) -> None:
        self._note.unlink(missing_ok=True)
        self._lock.release()


def conform(rows: pa.Table, table: Table, partition: Iterable[str] = ()) -> pa.Table:
    """`rows` with the table's columns, order and types; constant partition columns are added where missing."""
    for name, value in zip(table.partition, partition, strict=False):
        if name not in rows.column_names:
            constant = pa.scalar(value).cast(table.schema.field(name).type)
            rows = rows.append_column(name, pa.repeat(constant, rows.num_rows))
    return rows.select(table.schema.names).cast(_plain(table))


def from_rows(rows: Iterable[Mapping[str, object]], table: Table) -> pa.Table:
    """A few row dictionaries as a table of its schema; missing keys become null."""
    return pa.Table.from_pylist([dict(r) for r in rows], schema=_plain(table))


def frame(rows: pa.Table) -> pl.DataFrame:
    """Arrow rows for polars, without a copy where both store a column alike."""
    found = pl.from_arrow(rows)
    assert isinstance(found, pl.DataFrame)  # noqa: S101 - for the type checker: only an array makes a series
    return found


def empty(table: Table) -> pa.Table:
    """No rows, all columns."""
    return pa.Table.from_batches([], schema=_plain(table))


def _plain(table: Table) -> pa.Schema:
    return pa.schema([field.remove_metadata() for field in table.schema])
