"""A lease: the right to change a lake on object storage, which has no locks.

A lease is a file that its holder renews while it works. If the holder dies, the lease ends by itself, and the next run
takes it over. Each step creates or replaces one file by a conditional request, so only one process gets it. Times are
those of the store's clock, so a machine with a wrong clock cannot take a lease that is still held.
"""

import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import msgspec

from tasks.core.errors import BusyError, ChangedError, LeadlineError, UsageError
from tasks.store.remote.objects import WRITE_S, Objects

LEASE_S = WRITE_S + 60  # after a kill, the next run waits this long
RENEW_S = 20.0
POLL_S = 0.5


def _clock() -> float:
    """Seconds that also pass while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Held(msgspec.Struct, frozen=True):
    """The content of a lease.

    Attributes:
        holder: The verb, with its days.
        run: Distinguishes one holding of the lease from all others.
        started: By the clock of `host`, as is `expires`: both are for people.
        seconds: How long it lasts after it was written; 0 once it is given back.
        renewed: How often; so no two versions are equal.
    """

    holder: str
    host: str
    pid: int
    run: str
    started: datetime
    expires: datetime
    seconds: float
    renewed: int = 0


class Lease:
    """The right to change a lake on object storage, renewed until the block ends.

    Args:
        key: Of its file.
        holder: Shown to other processes: for example, the command and the process id.
        wait: Wait until its holder is done, instead of failing.
        seconds: How long it lasts when it is not renewed.
        clock: Seconds of this machine, from any moment on.
    """

    def __init__(
        self,
        storage: Objects,
        key: str,
        holder: str,
        *,
        wait: bool = False,
        seconds: float = LEASE_S,
        clock: Callable[[], float] = _clock,
    ) -> None:
        self._storage, self._key, self._wait, self._clock = storage, key, wait, clock
        now, run = datetime.now(UTC), secrets.token_hex(8)
        self._held = Held(holder, socket.gethostname(), os.getpid(), run, now, now, seconds)
        self._etag = ""
        self._until = 0.0  # by `clock`: a write that begins later may end when another has the lease
        self._lost = ""
        self._done = Event()
        self._renewing = Thread(target=self._renew, name=f"lease {key}", daemon=True)

    def __enter__(self) -> "Lease":
        while busy := self._take():
            if not self._wait:
                raise BusyError(busy)
            time.sleep(POLL_S)
        self._storage.guards.append(self.check)
        self._renewing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._renewing.join()
        self._storage.guards.remove(self.check)
        if not self._lost:
            with suppress(LeadlineError):  # it then ends by itself
                self._put(seconds=0)
                self._storage.released[self._key] = self._etag

    def check(self) -> None:
        """See that the lease is still held, and lasts long enough for a write that begins now.

        Raises:
            BusyError: It is not, or it could not be renewed in time: another run may work on the lake.
        """
        if not self._lost and self._clock() > self._until:
            self._lost = "the lease could not be renewed in time"
        if self._lost:
            raise BusyError(
                f"{self._storage.where(self._key)}: {self._lost}, so another run may work on this lake. This run "
                "stops; its stored results are kept. Run it again."
            )

    def renew(self) -> bool:
        """Renew the lease once; returns whether it may be renewed again."""
        begun = self._clock()
        try:
            self._put()
        except ChangedError:
            theirs, self._etag = read(self._storage, self._key)
            if theirs.run != self._held.run:
                self._lost = f"{theirs.holder} on {theirs.host} has taken over the lease"
                return False
            # otherwise, a failed attempt had succeeded
        except LeadlineError:  # the network may come back before the lease ends
            return begun <= self._until
        else:
            self._until = begun + self._held.seconds - WRITE_S
        return True

    def _renew(self) -> None:
        while not self._done.wait(RENEW_S):
            if not self.renew():
                return

    def _take(self) -> str:
        """Take the lease; returns who has it, or nothing once it is taken."""
        while True:
            begun = self._clock()
            with suppress(ChangedError, FileNotFoundError):  # another process was faster: check again
                busy = self._attempt()
                self._until = begun + self._held.seconds - WRITE_S
                return busy

    def _attempt(self) -> str:
        self._etag = self._storage.released.pop(self._key, "")
        if self._etag:  # one request is enough if nobody has held it since
            self._put()
            return ""
        if self._storage.create(self._key, self._encoded(self._held.seconds)):
            self._etag = read(self._storage, self._key)[1]
            self._check_store()
            return ""
        theirs, self._etag = read(self._storage, self._key)
        if theirs.run == self._held.run:  # the first attempt succeeded, and its answer was lost
            return ""
        if _lasts(self._storage, self._key, theirs):
            return (
                f"{self._storage.place}: locked by {theirs.holder} on {theirs.host} (lease {theirs.run}). The lease "
                f"ends at {theirs.expires:%H:%M:%S} UTC unless it is renewed. Wait until it ends, or stop that run; "
                "its work is kept."
            )
        self._put()
        return ""

    def _check_store(self) -> None:
        """Check that the store refuses to create an existing file; some S3-compatible stores don't.

        Raises:
            UsageError: It does not refuse.
        """
        if self._storage.create(self._key, self._encoded(self._held.seconds)):
            self._storage.delete(self._key)
            raise UsageError(
                f"{self._storage.place}: this store ignores If-None-Match and replaces an existing file, so two "
                "runs could work on the lake at once. Use a store that honors it."
            )

    def _put(self, seconds: float | None = None) -> None:
        self._held = msgspec.structs.replace(self._held, renewed=self._held.renewed + 1)
        data = self._encoded(self._held.seconds if seconds is None else seconds)
        self._etag = self._storage.put(self._key, data, expected=self._etag, guarded=False).etag

    def _encoded(self, seconds: float) -> bytes:
        expires = datetime.now(UTC) + timedelta(seconds=seconds)
        return msgspec.json.encode(msgspec.structs.replace(self._held, seconds=seconds, expires=expires))


def read(storage: Objects, key: str) -> tuple[Held, str]:
    """A stored lease and its etag.

    Raises:
        FileNotFoundError: There is none.
        UsageError: The file is no lease.
    """
    data, stamp = storage.read(key)
    try:
        return msgspec.json.decode(data, type=Held), stamp.etag
    except msgspec.MsgspecError:
        raise UsageError(
            f"{storage.where(key)}: this file is not a lease of Leadline. Remove it if no run works on this lake."
        ) from None


def holder(storage: Objects, key: str) -> tuple[str, datetime] | None:
    """The holder of a lease, and since when; None if there is none. Asks for the time by a file that it removes."""
    with suppress(FileNotFoundError):
        held, _ = read(storage, key)
        if _lasts(storage, key, held):
            return f"{held.holder} on {held.host}", held.started
    return None


def _lasts(storage: Objects, key: str, held: Held) -> bool:
    return bool(held.seconds) and storage.age(key).total_seconds() <= held.seconds
