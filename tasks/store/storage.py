"""Six operations on the files of a lake (keys, read, put, create, delete, stamp), and their implementation for a disk.

`Local` is a folder. `Objects` (`remote/objects.py`) is object storage. A key is a path in the lake, with slashes. A
reader gets one version of a file, whole: nothing half written is ever listed or read. Names that begin with a dot are
hidden: they are not listed. Nothing here knows what the files mean.
"""

import fcntl
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from tasks.core.errors import ChangedError, LeadlineError
from tasks.core.paths import ObjectUrl

Data: TypeAlias = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Stamp:
    """What distinguishes a version of a file from others.

    Attributes:
        size: In bytes.
        etag: Differs for every version. On a local disk also for equal contents that were written twice.
        written_ns: When it was written, in nanoseconds since 1970.
    """

    size: int
    etag: str
    written_ns: int


class Storage(Protocol):
    """Where the files of a lake are. All operations raise LeadlineError with a remedy if the place can't be used."""

    @property
    def home(self) -> Path:
        """Local folder for other data of the lake, such as scratch files and indexes."""

    def where(self, key: str) -> str:
        """Return the full name of a file, for messages and DuckDB."""

    def keys(self, folder: str, depth: int, between: tuple[str, str] | None = None) -> Iterable[str]:
        """Keys of the files that are `depth` levels of `column=value` folders below a folder.

        Args:
            between: First and last day of files whose innermost folder is `date=…`; others are left out.
        """

    def read(self, key: str) -> tuple[bytes, Stamp]:
        """One version of a file.

        Raises:
            FileNotFoundError: There is none.
        """

    def put(self, key: str, data: Data, *, expected: str | None = None, written_ns: int | None = None) -> Stamp:
        """Write a file, or replace it in one step.

        Args:
            expected: Etag of the version to replace; None for any.
            written_ns: When it counts as written; by default now.

        Raises:
            ChangedError: Another version is there than the expected one, or none.
        """

    def create(self, key: str, data: Data) -> bool:
        """Write a file unless it exists; only one of several callers gets True."""

    def delete(self, key: str) -> None:
        """Remove a file, if it is there."""

    def stamp(self, key: str) -> Stamp | None:
        """The stamp of a file; None if there is none."""

    def written(self, key: str) -> int:
        """When a file counts as written, in nanoseconds since 1970."""

    def file(self, key: str, *, again: bool = False) -> Path:
        """Return a local file with the content of a key, for libraries that only read files.

        Args:
            again: Don't use an existing copy.

        Raises:
            FileNotFoundError: There is none; or opening the file does.
        """

    def take(self, key: str, path: Path) -> None:
        """Move a file of this machine here."""

    def refresh(self) -> None:
        """Make changes that other processes have written so far visible."""

    def check(self) -> None:
        """Check that this process may still write.

        Raises:
            BusyError: It has lost its lease.
        """


@dataclass(frozen=True, slots=True)
class Local:
    """A folder of this machine.

    Attributes:
        leftovers: Suffix of the temporary files that a killed process leaves.
    """

    root: Path
    leftovers: str = "tmp"

    @property
    def home(self) -> Path:
        """See `Storage`."""
        return self.root

    def where(self, key: str) -> str:
        """See `Storage`."""
        return f"{self.root}/{key}"

    def keys(self, folder: str, depth: int, between: tuple[str, str] | None = None) -> Iterator[str]:
        """See `Storage`."""
        with suppress(FileNotFoundError), os.scandir(self.root / folder) as entries:
            for entry in entries:
                if not depth:
                    if not entry.name.startswith("."):
                        yield f"{folder}/{entry.name}"
                    continue
                _, is_value, value = entry.name.partition("=")
                if is_value and (depth > 1 or not between or between[0] <= value <= between[1]):
                    yield from self.keys(f"{folder}/{entry.name}", depth - 1, between)

    def read(self, key: str) -> tuple[bytes, Stamp]:
        """See `Storage`."""
        with (self.root / key).open("rb") as opened:  # one version of it, even if it is replaced during the read
            return opened.read(), _stamp(os.fstat(opened.fileno()))

    def put(self, key: str, data: Data, *, expected: str | None = None, written_ns: int | None = None) -> Stamp:
        """See `Storage`."""
        path = self.root / key
        with self._writing(path) as temporary:
            temporary.write_bytes(data)
            if written_ns is not None:
                os.utime(temporary, ns=(written_ns, written_ns))
            stamp = _stamp(temporary.stat())  # stays the same when it is renamed
            if expected is None:
                temporary.replace(path)
            else:
                with _alone(path.parent):
                    if (there := self.stamp(key)) is None or there.etag != expected:
                        raise ChangedError(self.where(key))
                    temporary.replace(path)
            return stamp

    def create(self, key: str, data: Data) -> bool:
        """See `Storage`."""
        path = self.root / key
        with self._writing(path) as temporary:
            temporary.write_bytes(data)
            try:
                path.hardlink_to(temporary)
            except FileExistsError:
                return False
            finally:
                temporary.unlink()
        return True

    def delete(self, key: str) -> None:
        """See `Storage`."""
        (self.root / key).unlink(missing_ok=True)

    def stamp(self, key: str) -> Stamp | None:
        """See `Storage`."""
        try:
            return _stamp((self.root / key).stat())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def written(self, key: str) -> int:
        """See `Storage`."""
        return (self.root / key).stat().st_mtime_ns

    def file(self, key: str, *, again: bool = False) -> Path:  # noqa: ARG002 - there are no copies
        """See `Storage`."""
        return self.root / key

    def take(self, key: str, path: Path) -> None:
        """See `Storage`."""
        target = self.root / key
        with self._writing(target):
            path.replace(target)

    def refresh(self) -> None:
        """A folder is read again each time."""

    def check(self) -> None:
        """A lock on a disk is not lost."""

    @contextmanager
    def _writing(self, path: Path) -> Iterator[Path]:
        """A temporary file beside `path`, which is gone after an error."""
        temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}.{self.leftovers}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
        except BaseException as error:
            with suppress(OSError):  # there may be no such directory
                temporary.unlink()
            if not isinstance(error, OSError):
                raise
            raise LeadlineError(
                f"{path}: can't be written ({error.strerror}). Free space or grant access, then run again; "
                "what is done so far is kept."
            ) from error


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_size, f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}", found.st_mtime_ns)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time compare and replace in a folder; leaves no file."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def storage(place: Path | ObjectUrl, leftovers: str = "tmp") -> Storage:
    """The storage of a place; opens no connection."""
    if isinstance(place, Path):
        return Local(place, leftovers)
    from tasks.store.remote.objects import objects  # noqa: PLC0415 - a lake on a disk needs none of its libraries

    return objects(place)
