"""A copy of a lake that is in use, and a lake made of the copy.

Files of the copy have the beginning of their checksum in their names, and one manifest, replaced as a whole, lists
those that count. So a copy that breaks off leaves the one before it as it was, and nothing is ever half copied.

Tables are copied against the order in which a run writes them: the ledger `sources` first, then results, then what they
were made of. What a copied part relies on is thus copied too, as after a kill of the run. Whoever redacts texts holds
the lock of the backup, so no part has a text that another has lost. Nothing here knows which parts a run makes again.
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
WRITER = "backup"  # its lock, see `Lake`
HIDDEN = (SALT, PENDING)
# Shares of a day are stored before its traces, which are stored before their file's row.
ORDER = (SOURCES, *(t for t in reversed(TABLES.values()) if t not in (SOURCES, SAMPLES)), SAMPLES)
# Tables whose parts no run removes, though it may replace them.
STAYING = tuple(t for t in TABLES.values() if t.lost and t not in (QUARANTINE, ALERTS))
NAMED = 10  # files that an error names


class File(msgspec.Struct, frozen=True):
    """A file of the copy.

    Attributes:
        size: In bytes.
        sha256: Of the content, in hexadecimal.
        written: When the lake's file was written, in nanoseconds since 1970; some runs go by it.
        etag: Of the lake's file: if it is the same, so is the content.
    """

    size: int
    sha256: str
    written: int
    etag: str


class Manifest(msgspec.Struct):
    """What a copy holds.

    Attributes:
        lake: Hash that distinguishes the lake from others.
        ended_at: When the copy was complete; None before the first one is.
        files: By path in the lake.
        left_out: Days of parts that a run makes again.
    """

    lake: str
    ended_at: datetime | None = None
    files: dict[str, File] = {}
    left_out: list[date] = []

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())


@dataclass(frozen=True, slots=True)
class Copied:
    """What became of a copy.

    Attributes:
        new: Files that were copied now.
        removed: Files of the copy whose content the lake has no more.
        damaged: What is wrong with parts of the lake; of these, the copy keeps what it had.
    """

    manifest: Manifest
    new: int
    removed: int
    damaged: tuple[str, ...]


def copy(
    lake: Lake, folder: Path, left_out: Callable[[Table, Part], bool], now: datetime, *, accept_loss: bool = False
) -> Copied:
    """Bring a copy up to date; call it with the lock of the writer `backup` held.

    Args:
        folder: Of the copy; made if it is not there.
        left_out: Whether a run makes a part again.
        accept_loss: Remove from the copy what was lost from the lake.

    Raises:
        UsageError: The folder holds something else, or the copy of another lake.
        LeadlineError: A file can't be written, or the lake has lost parts that the copy has.
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
            except FileNotFoundError:  # a run has removed it just now
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
        os.sync()  # the manifest lists nothing that a power cut can take
        _write_manifest(folder, after)
        removed = _remove_others(folder, after)
    return Copied(after, new, removed, tuple(damaged))


def verify(folder: Path) -> Manifest:
    """The manifest of a copy whose files are all there, with their checksums.

    Raises:
        UsageError: There is no complete copy.
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
    """Fill an empty lake with a copy; call it with the locks of all writers held.

    Raises:
        UsageError: There is no complete copy, or the lake is not empty.
        DamagedError: Files of the copy are damaged or missing; the lake stays empty.
        LeadlineError: A file can't be written; the lake stays empty.
    """
    manifest = verify(folder)
    held = lake.storage
    if held.stamp(RESTORING):  # one that was killed; the lake was empty before it
        _clear(lake)
    there = [t.name for t in TABLES.values() if lake.parts(t)] + [name for name in HIDDEN if held.stamp(name)]
    if there:
        raise UsageError(
            f"{lake.root}: the lake is not empty (it has {', '.join(there[:3])}). Move it away, or name another "
            "`lake` in the config."
        )
    held.put(RESTORING, b"")  # until it is complete, no run uses the lake
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
    """Empty a lake again that a restore has begun to fill."""
    for name, _, _ in _files(lake):
        lake.storage.delete(name)
    for table in TABLES:
        shutil.rmtree(lake.home / table, ignore_errors=True)  # folders that are empty now
    lake.storage.delete(RESTORING)


def _files(lake: Lake) -> Iterator[tuple[str, Part | None, Table | None]]:
    """Keys of the files of the lake in the order in which they are copied; a table is listed when its turn comes."""
    for hidden in HIDDEN:
        if lake.storage.stamp(hidden):
            yield hidden, None, None
    for table in ORDER:
        for part in lake.parts(table):
            yield part.key, part, table


def _claim(lake: Lake, folder: Path) -> Manifest:
    """The manifest of the folder's last copy; an empty one is written to a folder without."""
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
    """Whether a lake may have a file of this path."""
    return (str(name) in HIDDEN or name.parts[0] in TABLES) and ".." not in name.parts


def _lost(lake: Lake, name: str) -> bool:
    """Whether a file is gone from the lake that no run removes."""
    return any(name.startswith(f"{table.name}/") for table in STAYING) and not lake.storage.stamp(name)


def _named(files: Sequence[object]) -> str:
    return ", ".join(map(str, files[:NAMED])) + (", …" if len(files) > NAMED else "")


def _place(folder: Path, name: str, file: File) -> Path:
    return folder / f"{name}.{file.sha256[: keys.SHORT_HEX]}"


def _add(held: Storage, folder: Path, name: str, had: File | None) -> tuple[File, bool]:
    """Copy a file, unless the copy has it; returns what the copy has then, and whether it was copied.

    Raises:
        DamagedError: The part is damaged.
        FileNotFoundError: It is gone.
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
    """Whether a file of the copy has its checksum."""
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
    """Remove what the manifest does not list: contents that the lake has replaced, redacted or removed."""
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
    """Name the remedy where a file of the copy can't be read."""
    try:
        yield place
    except OSError as error:
        raise LeadlineError(f"{place}: can't be read ({error.strerror}). Grant access, then run it again.") from error


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    """Name the remedy where a file can't be written."""
    try:
        yield
    except OSError as error:
        raise LeadlineError(
            f"{error.filename or place}: can't be written ({error.strerror}). Free space or grant access, then run it "
            "again; what was there before is kept."
        ) from error
