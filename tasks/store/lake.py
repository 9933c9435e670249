"""The lake: Parquet parts under Hive-style directories, on a disk or on object storage (`storage.py`).

A part is never visible half written. Parts of `traces` are the unit of work: later stages name their results after the
part, so comparing file names shows what is missing. A part whose input rows may still change (a repaired verdict) has
an `inputs` token in its metadata; if the token differs, the part is computed again.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.core.errors import ChangedError, DamagedError, LeadlineError
from tasks.core.paths import ObjectUrl
from tasks.core.schemas import TABLES, Table
from tasks.store.lock import RunLock
from tasks.store.lock import holder as holder_of_lock
from tasks.store.storage import Local, Stamp, Storage, storage

if TYPE_CHECKING:
    from tasks.store.remote.objects import Objects

T = TypeVar("T")
INPUTS = b"leadline.inputs"
SALT = ".salt"
SUFFIX = ".parquet"
PENDING = ".redacting"  # nights whose texts are being redacted, until their pages are gone
RESTORING = ".restoring"  # there while a backup is being restored


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One Parquet file of a table; reading it raises DamagedError if it is damaged.

    Attributes:
        key: Path in the storage.
        name: File name without suffix.
        partition: Values of the table's partition columns, as they stand in the path.
    """

    key: str
    name: str
    partition: tuple[str, ...]
    storage: Storage

    @property
    def where(self) -> str:
        """Full name, for messages."""
        return self.storage.where(self.key)

    @property
    def path(self) -> Path:
        """A file of this machine with its content: the part itself, or a copy."""
        return self.storage.file(self.key)

    @property
    def date(self) -> date:
        """Day of a table whose innermost partition column is `date`."""
        return date.fromisoformat(self.partition[-1])

    def inputs(self) -> str:
        """The token it was written with, or an empty string."""
        metadata: dict[bytes, bytes] = self._of_file(lambda path: pq.read_schema(path).metadata or {})
        return metadata.get(INPUTS, b"").decode()

    def stamp(self) -> Stamp:
        """Return the stamp of the part's current version.

        Raises:
            FileNotFoundError: It is gone.
        """
        if (found := self.storage.stamp(self.key)) is None:
            raise FileNotFoundError(self.where)
        return found

    def written_ns(self) -> int:
        """When it counts as written, in nanoseconds since 1970; see `Lake.write`."""
        return self.storage.written(self.key)

    def rows(self) -> int:
        """Number of rows, from the footer."""
        return self._of_file(lambda path: int(pq.read_metadata(path).num_rows))

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """The part's rows; `columns` may name nested ones (`chunks.list.element.chunk_id`)."""

        def rows(path: Path) -> pa.Table:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                return file.read(columns=columns)

        return self._of_file(rows)

    def check(self, *, again: bool = False) -> None:
        """Read it to its end.

        Args:
            again: Don't rely on a copy of it on this machine.

        Raises:
            DamagedError: It is damaged.
        """
        self._of_file(_read_through, again=again)

    def _of_file(self, action: Callable[[Path], T], *, again: bool = False) -> T:
        try:
            with _whole(self.where):
                return action(self.storage.file(self.key, again=again))
        except (DamagedError, FileNotFoundError):
            if again or isinstance(self.storage, Local):
                raise
        return self._of_file(action, again=True)  # it may be the copy that is damaged, or that another process removed

    def frame(self, columns: list[str] | None = None) -> pl.DataFrame:
        """The part's rows for polars; see `read`."""
        return frame(self.read(columns))


@contextmanager
def _whole(where: str) -> Iterator[None]:
    """Name the remedy for a part that can't be read; one that is gone, or may not be read, is not damaged."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = "".join(c if c.isprintable() else "?" for c in " ".join(str(error).split()))[:200]
        raise damaged(where, reason) from error


def damaged(where: str, reason: str) -> DamagedError:
    """The error of a part, with what to do."""
    table = next((folder for folder in where.split("/")[-2::-1] if "=" not in folder), "")
    remedy = TABLES[table].remedy if table in TABLES else ""
    return DamagedError(f"{where}: the part is damaged ({reason}). {remedy}")


def _read_through(source: Path | pa.BufferReader) -> None:
    with pq.ParquetFile(source, page_checksum_verification=True) as file:
        for batch in file.iter_batches():
            batch.validate(full=True)


def check_content(where: str, data: bytes) -> None:
    """Read the bytes of a part to their end.

    Raises:
        DamagedError: They are damaged.
    """
    with _whole(where):
        _read_through(pa.BufferReader(data))


def check(parts: Iterable[Part]) -> None:
    """Read parts to their ends, to find out which of them is damaged.

    Raises:
        DamagedError: Of the first that is damaged; parts that are gone by now are skipped.
    """
    for part in parts:
        with suppress(FileNotFoundError):
            part.check()


class Lake:
    """Tables at one place.

    Args:
        root: The lake's directory, made on the first write; or its place on object storage.
        overlay: Directory that receives all writes, if given; reads see both. A dry run deletes its overlay.
        writer: Kind of writer, which has its own lock and temporary files, so a backfill can run during a nightly run.
            Parts that both write are replaced only if their stamp is unchanged (`write`).
    """

    def __init__(self, root: Path | ObjectUrl, overlay: Path | None = None, *, writer: str = "run") -> None:
        self.root = root
        self.overlay = overlay
        self.writer = writer
        self._suffix = "tmp" if writer == "run" else f"{writer}-tmp"
        self.storage = storage(root, self._suffix)
        self._top: Storage = Local(overlay, self._suffix) if overlay else self.storage

    @property
    def home(self) -> Path:
        """The directory of this machine for what belongs to the lake and is no table."""
        return self.storage.home

    def parts(self, table: Table, *partition: str, days: tuple[date, date] | None = None) -> list[Part]:
        """Parts of a table in the order of their paths, those of one partition prefix if given.

        Args:
            days: The first and the last day, of a table whose innermost partition column is `date`; others are not
                looked for.
        """
        found: dict[tuple[str, ...], Part] = {}
        between = (str(days[0]), str(days[1])) if days else None
        folder, depth = _folder(table, partition), len(table.partition) - len(partition)
        for base in dict.fromkeys((self.storage, self._top)):
            for key in base.keys(folder, depth, between):
                *folders, file = key.split("/")
                if file.endswith(SUFFIX):
                    values = tuple(f.partition("=")[2] for f in folders[1:])
                    name = file.removesuffix(SUFFIX)
                    found[*values, name] = Part(key, name, values, base)
        return [found[k] for k in sorted(found)]

    def find(self, table: Table, name: str, *partition: str) -> Part | None:
        """The part of that name, if it is there."""
        key = _key(table, name, partition)
        for base in dict.fromkeys((self._top, self.storage)):
            if base.stamp(key):
                return Part(key, name, partition, base)
        return None

    def frame(self, table: Table, *partition: str, columns: list[str] | None = None) -> pl.DataFrame:
        """Rows of all parts of a table, see `parts`; columns that a part lacks are null."""
        none = frame(empty(table).select(columns or table.schema.names))
        return pl.concat([none, *(part.frame(columns) for part in self.parts(table, *partition))], how="diagonal")

    def has(self, tables: Iterable[Table], name: str, *partition: str, inputs: str) -> bool:
        """Whether each of these tables has the part, made from these inputs."""
        found = (self.find(table, name, *partition) for table in tables)
        return all(part is not None and part.inputs() == inputs for part in found)

    def values(self, table: Table, *partition: str) -> list[str]:
        """Values of the next partition column under a partition prefix, sorted."""
        return sorted({p.partition[len(partition)] for p in self.parts(table, *partition)})

    def write(
        self,
        table: Table,
        name: str,
        rows: pa.Table,
        *partition: str,
        inputs: str = "",
        once: bool = False,
        replaces: Stamp | None = None,
        written_ns: int | None = None,
    ) -> Part:
        """Write one part, replacing one of the same name.

        Args:
            rows: Columns of the table in any order; partition columns that are missing are added.
            partition: Values of the partition columns.
            inputs: Token of what the rows were computed from.
            once: Write only if no part of this name exists.
            replaces: The version to replace; None for any.
            written_ns: Write time to record, in nanoseconds since 1970; now by default.

        Raises:
            LeadlineError: The disk is full or the place can't be written.
            ChangedError: The existing version is not `replaces`, or a part exists and `once` is set.
        """
        filled = conform(rows, table, partition)
        if inputs:
            filled = filled.replace_schema_metadata({INPUTS: inputs.encode()})
        sink = pa.BufferOutputStream()
        pq.write_table(filled, sink, compression="zstd", compression_level=1, write_page_checksum=True)
        key, data = _key(table, name, partition), memoryview(sink.getvalue())
        if once:
            if not self._top.create(key, data):
                self._top.refresh()
                raise ChangedError(self._top.where(key))
        else:
            # An overlay does not have the replaced version yet.
            expected = replaces.etag if replaces and not self.overlay else None
            self._top.put(key, data, expected=expected, written_ns=written_ns)
        return Part(key, name, partition, self._top)

    def take(self, table: Table, part: Part) -> None:
        """Move a part of a lake on this machine here; where both are on one disk, it is renamed."""
        self._top.take(_key(table, part.name, part.partition), part.path)

    def drop(self, table: Table, name: str, *partition: str) -> None:
        """Remove a part where it would be written, if it is there."""
        self._top.delete(_key(table, name, partition))

    def note(self, name: str) -> bytes | None:
        """The content of a hidden file beside the tables; None if it is not there."""
        for base in dict.fromkeys((self._top, self.storage)):
            with suppress(FileNotFoundError):
                return base.read(name)[0]
        return None

    def write_note(self, name: str, content: bytes | None) -> None:
        """Write such a file, or remove it."""
        if content is None:
            self._top.delete(name)
        else:
            self._top.put(name, content)

    def salt(self) -> str:
        """Return the salt of this lake's text hashes, created once. It prevents confirming a guessed text."""
        found = self.note(SALT)
        if found is None:
            self._top.create(SALT, secrets.token_hex(16).encode())  # unless another process has just made it
            found = self._top.read(SALT)[0]
        return found.decode("ascii")

    def hidden(self, name: str) -> Path:
        """A local directory for files that are not tables, such as those of the gates."""
        return self._top.home / (f".{name}" if self.writer == "run" else f".{name}-{self.writer}")

    @contextmanager
    def lock(self, holder: str, *, wait: bool = False, restoring: bool = False) -> Iterator[None]:
        """Hold the lock that lets one process per kind of writer change this lake.

        Args:
            holder: Shown to other processes: for example, the command and the process id.
            wait: Wait until whoever has it is done, instead of failing.
            restoring: Allow a lake whose restore was interrupted.

        Raises:
            BusyError: Another process has it.
        """
        lock: AbstractContextManager[object]
        if isinstance(self.root, Path):
            lock = RunLock(self.root, holder, self._of, self._suffix, wait=wait)
        else:
            lock = self._lease(f".lock{self._of}", holder, wait=wait)
        with lock:
            if not restoring and self.storage.stamp(RESTORING):
                raise LeadlineError(f"{self.root}: a restore was interrupted. Run `leadline restore` again first.")
            yield

    def holder(self) -> tuple[str, datetime] | None:
        """The holder of the lock, and since when; None if there is none. Changes nothing."""
        if isinstance(self.root, Path):
            return holder_of_lock(self.root, self._of)
        from tasks.store.remote.lease import holder as holder_of_lease  # noqa: PLC0415 - a lake on a disk needs none

        return holder_of_lease(self.storage, f".lock{self._of}")  # type: ignore[arg-type]

    @property
    def _of(self) -> str:
        return "" if self.writer == "run" else f"-{self.writer}"

    @contextmanager
    def _lease(self, key: str, holder: str, *, wait: bool) -> Iterator[None]:
        """A lease; results of others are visible from then on."""
        from tasks.store.remote.lease import Lease  # noqa: PLC0415 - a lake on a disk needs none

        objects: Objects = self.storage  # type: ignore[assignment]
        with Lease(objects, key, holder, wait=wait):
            objects.refresh()
            yield


def _folder(table: Table, partition: Iterable[str]) -> str:
    return "/".join((table.name, *(f"{k}={v}" for k, v in zip(table.partition, partition, strict=False))))


def _key(table: Table, name: str, partition: tuple[str, ...]) -> str:
    """Where a part is."""
    folders = (f"{k}={v}" for k, v in zip(table.partition, partition, strict=True))
    return "/".join((table.name, *folders, f"{name}{SUFFIX}"))


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
