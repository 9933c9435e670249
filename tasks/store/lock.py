"""A lock: the right to change a lake on a disk, which the operating system releases when its process ends."""

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from tasks.core.errors import BusyError, LeadlineError


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
        for folder, _, names in os.walk(self._root):  # temporary files of a killed run
            for name in names:
                if name.startswith(".") and name.endswith(f".{self._leftovers}"):
                    Path(folder, name).unlink(missing_ok=True)

    def __exit__(self, *_: object) -> None:
        self._note.unlink(missing_ok=True)
        self._lock.release()


def holder(root: Path, of: str) -> tuple[str, datetime] | None:
    """The holder of the lock, and since when; None if there is none. Changes nothing."""
    note = root / f".lock{of}.holder"
    with suppress(OSError):  # there is no note, or it was just removed
        since, who = datetime.fromtimestamp(note.stat().st_mtime, UTC), note.read_text(encoding="utf-8")
        try:
            with FileLock(root / f".lock{of}", timeout=0):
                return None  # the note of a killed process
        except Timeout:
            return who, since
    return None
