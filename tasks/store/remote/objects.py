"""Files of a lake on object storage.

A file appears when its upload is complete, so nothing is renamed. Others may write at any time, and each check costs a
request, so a listing of a folder is trusted for a minute, with this process's own changes added. DuckDB and
Arrow read copies on this machine (`copies.py`).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from errno import ENOENT
from functools import cache
from pathlib import Path
from secrets import token_hex
from time import monotonic, time, time_ns
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import ObjectStore

from tasks.core.errors import ChangedError, LeadlineError
from tasks.core.paths import ObjectUrl
from tasks.store.remote.access import access
from tasks.store.remote.copies import Copies
from tasks.store.remote.refusals import explained
from tasks.store.storage import Data, Stamp

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import RetryConfig

TRUSTED_S = 60.0
FEW_DAYS = 31  # whose folders are listed one by one
ASK_S, RETRY_S = 30, 60  # of one request; of retries, since S3 may take a minute to serve a busy prefix
WRITE_S = float(ASK_S + RETRY_S)  # the longest that a write takes
RETRY: "RetryConfig" = {
    "max_retries": 8,
    "retry_timeout": timedelta(seconds=RETRY_S),
    "backoff": {"init_backoff": timedelta(milliseconds=200), "max_backoff": timedelta(seconds=20), "base": 2},
}
WRITTEN = "writtenns"  # metadata of a file that counts as written at another time than it was; Azure wants one word


@dataclass(slots=True)
class _Listing:
    """Stamps of all files below a folder, by key; and when they were asked for."""

    at: float
    stamps: dict[str, Stamp]


class Objects:
    """See `Storage`.

    Args:
        place: For names in messages, and the folder for copies.
        store: Of obstore; keys are paths below its prefix.

    Attributes:
        guards: Called before each write; they raise if this process may not write any more (`lease.py`).
        released: Etags of leases as this process gave them back, by key.
    """

    def __init__(self, place: ObjectUrl, store: ObjectStore) -> None:
        self.place = place
        self.guards: list[Callable[[], None]] = []
        self.released: dict[str, str] = {}
        self._store = store
        self._copies = Copies(place.cache / "copies")
        self._listings: dict[str, _Listing] = {}
        self._oldest = 0.0  # listings from before are not trusted
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[Any, tuple[ObjectUrl]]:
        """Another process connects by itself."""
        return objects, (self.place,)

    @property
    def home(self) -> Path:
        """See `Storage`."""
        return self.place.cache

    def where(self, key: str) -> str:
        """See `Storage`."""
        return f"{self.place.url}/{key}"

    def keys(self, folder: str, depth: int, between: tuple[str, str] | None = None) -> list[str]:
        """See `Storage`."""
        level = folder.count("/") + 1 + depth
        found = [key for top in self._tops(folder, depth, between) for key in self._listed(top)]
        return sorted(
            key
            for key in found
            if key.count("/") == level
            and not key.rpartition("/")[2].startswith(".")
            and (not between or between[0] <= key.split("/")[-2].partition("=")[2] <= between[1])
        )

    def _tops(self, folder: str, depth: int, between: tuple[str, str] | None) -> list[str]:
        """The folders to list: those of a few days, or all together."""
        if between and depth == 1 and not self._trusted(folder):
            first, last = map(date.fromisoformat, between)
            if 0 <= (last - first).days < FEW_DAYS:
                return [f"{folder}/date={first + timedelta(days=n)}" for n in range((last - first).days + 1)]
        return [folder]

    def read(self, key: str) -> tuple[bytes, Stamp]:
        """See `Storage`."""
        with self._asking(key, "read"):
            found = obstore.get(self._store, key)
            data = bytes(found.bytes())
        stamp = _stamp(found.meta)
        self._remember(key, stamp)
        return data, replace(stamp, written_ns=int(str(found.attributes.get(WRITTEN, stamp.written_ns))))

    def put(
        self,
        key: str,
        data: Data,
        *,
        expected: str | None = None,
        written_ns: int | None = None,
        guarded: bool = True,
    ) -> Stamp:
        """See `Storage`."""
        if guarded:
            self._guard()
        mode: Any = "overwrite" if expected is None else {"e_tag": expected}
        attributes = None if written_ns is None else {WRITTEN: str(written_ns)}
        try:
            with self._asking(key, "write", PreconditionError):
                made = obstore.put(self._store, key, bytes(data), mode=mode, attributes=attributes, use_multipart=False)
            stamp = Stamp(len(data), str(made["e_tag"]), time_ns())
        except PreconditionError:
            self.refresh()
            there, stamp = self._there(key)
            if there != data:  # otherwise, the first attempt succeeded, and its answer was lost
                raise ChangedError(self.where(key)) from None
        self._remember(key, stamp)
        if key.endswith(".parquet"):
            with suppress(OSError):  # it is fetched when it is read
                self._copies.keep(key, stamp, data)
        return stamp

    def _there(self, key: str) -> tuple[bytes | None, Stamp]:
        try:
            return self.read(key)
        except FileNotFoundError:
            return None, Stamp(0, "", 0)

    def create(self, key: str, data: Data) -> bool:
        """See `Storage`."""
        self._guard()
        try:
            with self._asking(key, "write", AlreadyExistsError):
                made = obstore.put(self._store, key, bytes(data), mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        self._remember(key, Stamp(len(data), str(made["e_tag"]), time_ns()))
        return True

    def delete(self, key: str) -> None:
        """See `Storage`."""
        self._guard()
        with suppress(FileNotFoundError), self._asking(key, "delete"):
            obstore.delete(self._store, key)
        self._remember(key, None)
        self._copies.drop(key)

    def stamp(self, key: str) -> Stamp | None:
        """See `Storage`."""
        folder = key.rpartition("/")[0]
        if folder:
            with self._lock:
                listing = self._trusted(folder) or self._ask(folder)
                return listing.stamps.get(key)
        try:
            with self._asking(key, "read"):
                return _stamp(obstore.head(self._store, key))
        except FileNotFoundError:
            return None

    def written(self, key: str) -> int:
        """See `Storage`."""
        with self._asking(key, "read"):
            found = obstore.get(self._store, key, options={"range": (0, 1)})
            return int(str(found.attributes.get(WRITTEN, _ns(found.meta["last_modified"]))))

    def age(self, key: str) -> timedelta:
        """How long ago a file was written, by the clock of the store: this machine's may be wrong.

        Raises:
            FileNotFoundError: There is none.
        """
        clock = f".clock-{token_hex(8)}"
        with self._asking(clock, "write"):
            obstore.put(self._store, clock, b"", use_multipart=False)
            now = obstore.head(self._store, clock)["last_modified"]
            obstore.delete(self._store, clock)
        with self._asking(key, "read"):
            return now - obstore.head(self._store, key)["last_modified"]

    def file(self, key: str, *, again: bool = False) -> Path:
        """See `Storage`."""
        stamp = self.stamp(key)
        if stamp is None:
            raise FileNotFoundError(ENOENT, "no such file", self.where(key))
        copy = self._copies.path(key, stamp)
        if again or not copy.exists():
            data, stamp = self.read(key)  # perhaps a later version
            try:
                return self._copies.keep(key, stamp, data)
            except OSError as error:
                raise LeadlineError(
                    f"{self._copies.path(key, stamp)}: can't be written ({error.strerror}). Free space, grant "
                    "access, or name another `lake_cache` in the config."
                ) from error
        return copy

    def take(self, key: str, path: Path) -> None:
        """See `Storage`."""
        self.put(key, path.read_bytes())
        path.unlink()

    def refresh(self) -> None:
        """See `Storage`."""
        self._oldest = monotonic()

    def check(self) -> None:
        """See `Storage`."""
        self._guard()

    def _guard(self) -> None:
        for guard in self.guards:
            guard()

    def _listed(self, folder: str) -> list[str]:
        with self._lock:
            found = self._trusted(folder) or self._ask(folder)
            return [key for key in found.stamps if key.startswith(f"{folder}/")]

    def _trusted(self, folder: str) -> _Listing | None:
        """The latest listing of a folder, or of one around it."""
        parts = folder.split("/")
        held = (self._listings.get("/".join(parts[: n + 1])) for n in range(len(parts)))
        found = [listing for listing in held if listing and listing.at > max(self._oldest, monotonic() - TRUSTED_S)]
        return max(found, key=lambda listing: listing.at, default=None)

    def _ask(self, folder: str) -> _Listing:
        """List a folder."""
        at, began = monotonic(), time()
        with self._asking(folder, "list"):
            pages = obstore.list(self._store, f"{folder}/", chunk_size=1_000)
            stamps = {meta["path"]: _stamp(meta) for page in pages for meta in page}
        found = self._listings[folder] = _Listing(at, stamps)
        self._copies.drop_others(folder, stamps, began)
        return found

    def _remember(self, key: str, stamp: Stamp | None) -> None:
        """Bring the listings up to what this process has just written or seen."""
        with self._lock:
            for folder, listing in self._listings.items():
                if key.startswith(f"{folder}/"):
                    if stamp:
                        listing.stamps[key] = stamp
                    else:
                        listing.stamps.pop(key, None)

    @contextmanager
    def _asking(self, key: str, verb: str, *answers: type[Exception]) -> Iterator[None]:
        """Name the remedy where the store refuses, unless that is one of the answers."""
        try:
            yield
        except answers:
            raise
        except Exception as error:
            if refused := explained(error, self.place, key, verb):
                raise refused from error
            if isinstance(error, FileNotFoundError):
                raise FileNotFoundError(ENOENT, "no such file", self.where(key)) from None
            raise


@cache
def objects(place: ObjectUrl) -> Objects:
    """The storage of a place, one for all who ask in this process; opens no connection.

    Raises:
        UsageError: There are no credentials.
    """
    return Objects(place, access(place.url).store(place, RETRY, timedelta(seconds=ASK_S)))


def _stamp(meta: "ObjectMeta") -> Stamp:
    etag = str(meta["e_tag"])
    quoted = f'"{etag}"' if etag.startswith("0x") else etag  # Azure's, which only its lists give without the quotes
    return Stamp(meta["size"], quoted, _ns(meta["last_modified"]))


def _ns(at: datetime) -> int:
    since = at - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000
