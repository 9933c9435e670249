"""An SQLite index of the parts of a table that contain a key, so a search need not read every part.

The index stores 64-bit hashes, so it may return extra parts but never misses one. It is derived from the parts: missing
entries are read from them, and if the index can't be used, all parts are searched.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

from tasks.core.schemas import Table
from tasks.store.lake import Lake, Part

MADE = (
    "CREATE TABLE IF NOT EXISTS part (id INTEGER PRIMARY KEY, path TEXT UNIQUE, etag TEXT)",
    "CREATE TABLE IF NOT EXISTS held (key INTEGER, part INTEGER, PRIMARY KEY (key, part)) WITHOUT ROWID",
)


class KeyIndex:
    """The index of one column; shared by all processes that work on the lake.

    Args:
        column: Of texts.
    """

    def __init__(self, lake: Lake, table: Table, column: str) -> None:
        self._path = lake.home / ".index" / f"{table.name}.sqlite"
        self._column = column
        self._changes = lake.overlay is None

    def holding(self, wanted: Iterable[str], parts: Sequence[Part]) -> list[Part]:
        """Those of `parts` that hold any of the keys; on a lake with an overlay, also those that are not indexed yet.

        Raises:
            DamagedError: A part that is not indexed yet can't be read.
        """
        try:
            if self._changes:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            where = f"{self._path.absolute().as_uri()}?mode={'rwc' if self._changes else 'ro'}"
            with closing(sqlite3.connect(where, uri=True)) as index:
                ids = self._numbers(index, parts)
                index.execute("CREATE TEMP TABLE wanted (key INTEGER PRIMARY KEY)")
                index.executemany("INSERT OR IGNORE INTO wanted VALUES (?)", ((key,) for key in _hashes(wanted)))
                found = {None, *(i for (i,) in index.execute("SELECT DISTINCT part FROM wanted JOIN held USING (key)"))}
        except (sqlite3.OperationalError, OSError):  # busy, missing, or it can't be written
            return list(parts)
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:
                raise
            self._path.unlink(missing_ok=True)  # damaged
            return list(parts)
        return [part for part, number in zip(parts, ids, strict=True) if number in found]

    def _numbers(self, index: sqlite3.Connection, parts: Sequence[Part]) -> list[int | None]:
        """The number of each part in the index, which gets the keys of those that it lacks."""
        with index:  # one transaction, which no other process comes between
            if self._changes:
                index.execute("BEGIN IMMEDIATE")
                for statement in MADE:
                    index.execute(statement)
            there = {path: (i, etag) for i, path, etag in index.execute("SELECT * FROM part")}
            return [self._number(index, part, *there.get(_path(part), (None, ""))) for part in parts]

    def _number(self, index: sqlite3.Connection, part: Part, number: int | None, etag: str) -> int | None:
        now = part.stamp().etag
        if etag == now or not self._changes:
            return number if etag == now else None
        # The keys of the part that this one replaces keep a number that is not asked for any more, or count as its own.
        index.execute("DELETE FROM part WHERE path = ?", [_path(part)])
        new = index.execute("INSERT INTO part (path, etag) VALUES (?, ?)", [_path(part), now]).lastrowid
        keys = part.read([self._column])[self._column].unique().drop_null().to_pylist()
        index.executemany("INSERT OR IGNORE INTO held VALUES (?, ?)", ((key, new) for key in sorted(_hashes(keys))))
        return new


def _path(part: Part) -> str:
    return "/".join((*part.partition, part.name))


def _hashes(keys: Iterable[str]) -> Iterator[int]:
    for key in keys:
        yield int.from_bytes(
            blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True
        )


def damaged_indexes(lake: Lake) -> tuple[int, list[tuple[Path, str]]]:
    """The number of index files of a lake, and those that are damaged, with the reason; changes nothing."""
    files = sorted((lake.home / ".index").glob("*.sqlite"))
    found: list[tuple[Path, str]] = []
    for path in files:
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as index:
                (state,) = index.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.OperationalError:
            continue  # a run writes it
        except sqlite3.DatabaseError as error:
            state = str(error)
        if state != "ok":
            found.append((path, state.splitlines()[0]))
    return len(files), found
