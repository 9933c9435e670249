"""Copies of objects on this machine, for Arrow and DuckDB, which read files.

The name of a copy contains a hash of its object's etag, so a copy is never out of date. Only one version of each
object is kept.
"""

from collections.abc import Mapping
from contextlib import suppress
from glob import escape
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex

from tasks.store.storage import Data, Stamp

HASH_HEX = 16
UNFINISHED_S = 3600  # older temporary files were left by killed processes


class Copies:
    """Copies in a folder, which is made when the first one is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, key: str, stamp: Stamp) -> Path:
        """Where the copy of a version is, or would be."""
        version = blake2b(stamp.etag.encode(), digest_size=HASH_HEX // 2).hexdigest()
        path = self._folder / key
        return path.with_name(f"{path.stem}.{version}{path.suffix}")

    def keep(self, key: str, stamp: Stamp, data: Data) -> Path:
        """Keep a version, in place of those before it.

        Raises:
            OSError: It can't be written.
        """
        copy = self.path(key, stamp)
        copy.parent.mkdir(parents=True, exist_ok=True)
        temporary = copy.with_name(f".{copy.name}.{token_hex(4)}.tmp")
        try:
            temporary.write_bytes(data)
            temporary.replace(copy)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        self.drop(key, copy)
        return copy

    def drop(self, key: str, but: Path | None = None) -> None:
        """Remove the copies of an object, all or but for one."""
        path = self._folder / key
        for copy in path.parent.glob(f"{escape(path.stem)}.{'?' * HASH_HEX}{path.suffix}"):
            if copy != but:
                copy.unlink(missing_ok=True)

    def drop_others(self, folder: str, stamps: Mapping[str, Stamp], listed_s: float) -> None:
        """Remove copies of objects that other machines replaced or removed: a text may have been redacted there.

        Args:
            stamps: Of all objects below `folder`.
            listed_s: When the listing of these began, in seconds since 1970: later copies are of what it does not know.
        """
        current = {self.path(key, stamp) for key, stamp in stamps.items()}
        for copy in (self._folder / folder).rglob("*"):
            unfinished = copy.name.startswith(".")  # by a process that was killed, or that writes it now
            if copy.suffix not in {".parquet", ".tmp"} or copy in current:
                continue
            with suppress(FileNotFoundError):
                if copy.stat().st_mtime < listed_s - (UNFINISHED_S if unfinished else 0):
                    copy.unlink()
