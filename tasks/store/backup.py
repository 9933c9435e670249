"""Backup and restore of a lake. A backup can run while the lake is in use.

The file names of a backup contain the beginning of the file's checksum, and a manifest, replaced atomically, lists the
current files. If a backup is interrupted, the previous one stays complete.

Tables are copied in the reverse of the order in which a run writes them: first the ledger `sources`, then results, then
their inputs. So the inputs of every copied part are copied too, and the backup looks like a lake after a killed run.
Redaction holds the backup's lock, so a backup never contains a text in one part that was redacted in another. The
caller decides which parts to leave out because a run can recompute them.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path, PurePosixPath

import msgspec

from tasks.core import keys
from tasks.core.errors import DamagedError, LeadlineError, UsageError
from tasks.core.schemas import ALERTS, QUARANTINE, SAMPLES, SOURCES, TABLES, Table
from tasks.store.lake import PENDING, RESTORING, SALT, SUFFIX, Lake, Part, check_content
from tasks.store.storage import Storage

MANIFEST = "manifest.json"
WRITER = "backup"  # name of its lock, see `Lake`
HIDDEN = (SALT, PENDING)
# A run stores a day's shares (`samples`) before its traces, and the traces before their file's row.
ORDER = (SOURCES, *(t for t in reversed(TABLES.values()) if t not in (SOURCES, SAMPLES)), SAMPLES)
# Tables whose parts a run may replace but never removes.
STAYING = tuple(t for t in TABLES.values() if t.lost and t not in (QUARANTINE, ALERTS))
NAMED = 10  # most files listed in an error


class File(msgspec.Struct, frozen=True):
    """A file of the backup.

    Attributes:
        size: Size in bytes.
        sha256: SHA-256 of the content, in hexadecimal.
        written: When the lake's file was written, in nanoseconds since 1970. Some runs depend on this time.
        etag: Etag of the lake's file. An equal etag means equal content.
    """

    size: int
    sha256: str
    written: int
    etag: str


class Manifest(msgspec.Struct):
    """Contents of a backup.

    Attributes:
        lake: Hash that identifies the lake.
        ended_at: Start time of the last complete backup; None if there is none yet.
        files: Files by their path in the lake.
        left_out: Days with parts that were left out because a run can recompute them.
    """

    lake: str
    ended_at: datetime | None = None
    files: dict[str, File] = {}
    left_out: list[date] = []

    @property
    def size(self) -> int:
        """Total size of the files in bytes."""
        return sum(file.size for file in self.files.values())


@dataclass(frozen=True, slots=True)
class Copied:
    """Result of a backup.

    Attributes:
        new: Number of files copied.
        removed: Number of files removed from the backup because they are no longer in the lake.
        damaged: Errors of damaged parts of the lake. The backup keeps the last good copy of each, if any.
    """

    manifest: Manifest
    new: int
    removed: int
    damaged: tuple[str, ...]


def copy(
    lake: Lake, folder: Path, left_out: Callable[[Table, Part], bool], now: datetime, *, accept_loss: bool = False
) -> Copied:
    """Update a backup. The caller must hold the lock of the writer `backup`.

    Args:
        folder: The backup's folder; created if missing.
        left_out: Returns whether a part is left out because a run can recompute it.
        now: Time to record in the manifest.
        accept_loss: Remove files from the backup that were lost from the lake.

    Raises:
        UsageError: The folder contains something else, or the backup of another lake.
        LeadlineError: A file can't be written, or the lake has lost files that the backup has.
    """
    before = _claim(lake, folder)
    after = Manifest(before.lake, now)
    damaged: list[str] = []
    days: set[date] = set()
    new = 0
    with _writing(folder):
        for name, part, table in _files(lake):
            if part and table and left_out(table, part):
                days.add(part.date)
                continue
            had = before.files.get(name)
            try:
                file, fresh = _add(lake.storage, folder, name, had)
            except FileNotFoundError:  # a run has just removed it
                continue
            except DamagedError as error:
                damaged.append(str(error))
                if had is None:
                    continue
                file, fresh = had, False
            after.files[name] = file
            new += fresh
        lost = [] if accept_loss else [n for n in before.files if n not in after.files and _lost(lake, n)]
        if lost:
            raise LeadlineError(
                f"{lake.root}: {len(lost):,} files that the backup has are gone: {_named(lost)}. No run removes them. "
                f"Restore them from {folder}, or remove them from the backup too: --accept-loss."
            )
        after.left_out = sorted(days)
        os.sync()  # files must survive a power cut before the manifest lists them
        _write_manifest(folder, after)
        removed = _remove_others(folder, after)
    return Copied(after, new, removed, tuple(damaged))


def verify(folder: Path) -> Manifest:
    """Check all files of a backup against their checksums and return its manifest.

    Raises:
        UsageError: There is no complete backup.
        DamagedError: Files are damaged or missing.
    """
    manifest = _manifest(folder)
    if manifest is None or manifest.ended_at is None:
        raise UsageError(f"{folder}: no complete backup is there. Give the folder that `leadline backup` wrote to.")
    bad = [place for name, file in manifest.files.items() if not _whole(place := _place(folder, name, file), file)]
    if bad:
        raise DamagedError(
            f"{folder}: {len(bad):,} of {len(manifest.files):,} files are damaged or missing: {_named(bad)}. Nothing "
            "was restored. Take another copy of the backup; or, if the lake is still there, remove these files and "
            "run `leadline backup` again."
        )
    return manifest


def restore(folder: Path, lake: Lake) -> Manifest:
    """Restore a backup into an empty lake. The caller must hold the locks of all writers.

    Raises:
        UsageError: There is no complete backup, or the lake is not empty.
        DamagedError: Files of the backup are damaged or missing; the lake stays empty.
        LeadlineError: A file can't be written; the lake stays empty.
    """
    manifest = verify(folder)
    held = lake.storage
    if held.stamp(RESTORING):  # a restore was killed; the lake was empty before
        _clear(lake)
    there = [t.name for t in TABLES.values() if lake.parts(t)] + [name for name in HIDDEN if held.stamp(name)]
    if there:
        raise UsageError(
            f"{lake.root}: the lake is not empty (it has {', '.join(there[:3])}). Move it away, or name another "
            "`lake` in the config."
        )
    held.put(RESTORING, b"")  # blocks runs until the restore is complete
    try:
        for name, file in manifest.files.items():
            with _reading(_place(folder, name, file)) as path:
                held.put(name, path.read_bytes(), written_ns=file.written)
    except BaseException:
        _clear(lake)
        raise
    os.sync()
    held.delete(RESTORING)
    return manifest


def _clear(lake: Lake) -> None:
    """Remove what an unfinished restore wrote."""
    for name, _, _ in _files(lake):
        lake.storage.delete(name)
    for table in TABLES:
        shutil.rmtree(lake.home / table, ignore_errors=True)  # the empty folders
    lake.storage.delete(RESTORING)


def _files(lake: Lake) -> Iterator[tuple[str, Part | None, Table | None]]:
    """Yield the lake's files in copy order. Each table is listed only when it is reached."""
    for hidden in HIDDEN:
        if lake.storage.stamp(hidden):
            yield hidden, None, None
    for table in ORDER:
        for part in lake.parts(table):
            yield part.key, part, table


def _claim(lake: Lake, folder: Path) -> Manifest:
    """Return the folder's manifest. Writes an empty manifest to a new folder."""
    mine = keys.key("backup of a lake", lake.salt(), size=keys.SHORT_HEX)
    root, place = lake.home.resolve(), folder.resolve()
    if place == root or root in place.parents or place in root.parents:
        raise UsageError(f"{folder}: a backup can't be in its lake, nor around it ({lake.root}). Give another folder.")
    found = _manifest(folder)
    if found is None:
        with _writing(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise UsageError(f"{folder}: the folder is not a backup. Give an empty or new one.")
            found = Manifest(mine)
            _write_manifest(folder, found)
    if found.lake != mine:
        raise UsageError(
            f"{folder}: this is the backup of another lake than {lake.root}, and would be replaced. Give another "
            "folder; or, if that lake is lost, run `leadline restore` first."
        )
    return found


def _manifest(folder: Path) -> Manifest | None:
    path = folder / MANIFEST
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Manifest)
        if all(_belongs(PurePosixPath(name)) for name in found.files):
            return found
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError:
        pass
    except OSError as error:
        raise UsageError(f"{path}: can't be read ({error.strerror}). Give the folder of a backup.") from error
    raise DamagedError(
        f"{path}: the manifest is damaged. Take another copy of the backup, or begin one in a new folder."
    )


def _belongs(name: PurePosixPath) -> bool:
    """Return whether a lake can contain a file of this path."""
    return (str(name) in HIDDEN or name.parts[0] in TABLES) and ".." not in name.parts


def _lost(lake: Lake, name: str) -> bool:
    """Return whether the lake has lost a file that no run removes."""
    return any(name.startswith(f"{table.name}/") for table in STAYING) and not lake.storage.stamp(name)


def _named(files: Sequence[object]) -> str:
    return ", ".join(map(str, files[:NAMED])) + (", …" if len(files) > NAMED else "")


def _place(folder: Path, name: str, file: File) -> Path:
    return folder / f"{name}.{file.sha256[: keys.SHORT_HEX]}"


def _add(held: Storage, folder: Path, name: str, had: File | None) -> tuple[File, bool]:
    """Copy a file unless the backup has it. Returns the file's entry and whether it was copied.

    Args:
        had: Entry of the last backup, if any.

    Raises:
        DamagedError: The file is damaged or can't be read.
        FileNotFoundError: The file no longer exists.
    """
    is_there = had is not None and _size(_place(folder, name, had)) == had.size
    try:
        stamp = held.stamp(name)
        if had and is_there and stamp and had.etag == stamp.etag:
            return had, False
        data, now = held.read(name)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedError(
            f"{held.where(name)}: can't be read ({error.strerror}). Check the disk, or grant access."
        ) from error
    if name.endswith(SUFFIX):
        check_content(held.where(name), data)  # a damaged part never replaces a good copy
    file = File(len(data), hashlib.sha256(data).hexdigest(), now.written_ns, now.etag)
    if had and is_there and had.sha256 == file.sha256:
        return file, False
    place = _place(folder, name, file)
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_name(f".{place.name}.tmp")
    temporary.write_bytes(data)
    temporary.replace(place)
    return file, True


def _size(path: Path) -> int | None:
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return None


def _whole(path: Path, file: File) -> bool:
    """Return whether a file of the backup matches its checksum."""
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256
    except OSError:
        return False


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    fresh = folder / f".{MANIFEST}.tmp"
    with fresh.open("wb") as out:
        out.write(msgspec.json.encode(manifest))
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(folder / MANIFEST)


def _remove_others(folder: Path, manifest: Manifest) -> int:
    """Remove unlisted files: the lake has replaced, redacted or removed their content. Returns their number."""
    listed = {_place(folder, name, file) for name, file in manifest.files.items()}
    removed = 0
    for name in (*TABLES, *HIDDEN):
        for path in (*folder.glob(f"{name}.*"), *folder.glob(f"{name}/**/*"), *folder.glob(f".{name}.*.tmp")):
            if path.is_file() and path not in listed:
                path.unlink()
                removed += 1
    return removed


@contextmanager
def _reading(place: Path) -> Iterator[Path]:
    """Turn read errors of the backup into errors with a remedy."""
    try:
        yield place
    except OSError as error:
        raise LeadlineError(f"{place}: can't be read ({error.strerror}). Grant access, then run it again.") from error


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    """Turn write errors into errors with a remedy."""
    try:
        yield
    except OSError as error:
        raise LeadlineError(
            f"{error.filename or place}: can't be written ({error.strerror}). Free space or grant access, then run it "
            "again; what was there before is kept."
        ) from error
