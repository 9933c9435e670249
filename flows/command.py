"""The installed command `leadline`, which Ctrl+C and SIGTERM end within seconds.

The first signal raises KeyboardInterrupt in the main thread, so that the command can record the run, release the lake's
lock and free models. A second signal, or the end of a grace period of three seconds, ends the process at once: Prefect
may keep retrying a server that is gone, or a thread may be waiting for a model. Stored results are never lost. Left
out: the command itself (`flows/__main__.py`), which is imported after the signal handlers are installed.
"""

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

GRACE_S = 3.0
SIGNALS = (signal.SIGINT, signal.SIGTERM)
WAKES = signal.SIGURG  # interrupts a wait of the main thread if another thread received the signal
SHOW_CURSOR = b"\x1b[?25h"
_stages: list[str] = []


class Interruption:
    """Ends the process after a signal, within a grace period.

    Args:
        grace_s: Largest number of seconds between the signal and the end of the process.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._signal: int | None = None
        self._stage: str | None = None
        self._code: int | None = None  # exit code of a finished command
        self._raised = False
        self._reporting = threading.Lock()

    def listen(self) -> None:
        """Install signal handlers. Signals that the parent process set to be ignored stay ignored."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)
        # Python runs handlers in the main thread, which may be busy in a library. The wakeup pipe works at once.
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(WAKES, lambda *_: None)
        watched = (reader, threading.get_ident())
        threading.Thread(target=self._watch, args=watched, name="interruption", daemon=True).start()
        os.register_at_fork(after_in_child=_forget)
        atexit.register(self._finish)  # registered first, so called last

    @property
    def came(self) -> bool:
        """Whether a signal was received."""
        return self._signal is not None

    def over(self, code: int) -> int:
        """Return the exit code of a finished command: its own, or the signal's."""
        if self._signal is not None:
            self._report()
            code = 128 + self._signal
        self._code = code
        return code

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        """Signal handler, which Python calls in the main thread."""
        if self._code is not None or self._raised:
            self._leave()
        self._signal, self._raised = self._signal or number, True
        self._stage = _stages[-1] if _stages else None
        raise KeyboardInterrupt

    def _watch(self, reader: int, main: int) -> None:
        """Wait for a signal, give the command its grace period, then end the process."""
        number = 0
        while number not in SIGNALS:
            number = os.read(reader, 1)[0]
        self._signal = self._signal or number
        signal.pthread_kill(main, WAKES)
        time.sleep(self._grace_s)
        self._leave()

    def _finish(self) -> None:
        """End an interrupted command at once, since the interpreter's shutdown would take two seconds."""
        if self._signal is not None:
            self._leave()

    def _leave(self) -> NoReturn:
        """End the process at once. The temporary server and vLLM's processes end with it."""
        with contextlib.suppress(Exception):
            for child in sys.modules["multiprocessing"].active_children():
                child.kill()
        os._exit(self.over(1) if self._code is None else self._code)

    def _report(self) -> None:
        """Print a message once, bypassing buffers that another thread may have locked."""
        if self._reporting.acquire(blocking=False):
            where = f" in stage {self._stage}" if self._stage else ""
            text = f"leadline: Interrupted{where}. What was stored stays; run the same command again.\n"
            after_echo = SHOW_CURSOR + b"\n" if os.isatty(2) else b""  # after a progress bar, and after ^C
            with contextlib.suppress(OSError):  # stderr may be closed
                os.write(2, after_echo + text.encode())


@contextlib.contextmanager
def in_stage(name: str) -> Iterator[None]:
    """Set the name of the current stage, for the message after a signal."""
    _stages.append(name)
    try:
        yield
    finally:
        _stages.pop()


def _forget() -> None:
    """Restore default signal handling in a forked process."""
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def attended(main: Callable[[], None], grace_s: float = GRACE_S) -> int:
    """Run the command in the main thread; returns its exit code, or that of the signal that ended it.

    Args:
        main: The command, which may catch KeyboardInterrupt.
        grace_s: Largest number of seconds between a signal and the end of the process.
    """
    interruption = Interruption(grace_s)
    interruption.listen()
    code = 0
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)  # no code exits with a text
    except BaseException:
        if not interruption.came:
            interruption.over(1)
            raise
    with contextlib.suppress(OSError):
        sys.stdout.flush()  # from here on, a signal ends the process at once
    return interruption.over(code)


def command() -> NoReturn:
    """Entry point of the installed command `leadline`."""

    def main() -> None:
        from flows.__main__ import main as leadline  # noqa: PLC0415

        leadline()

    sys.exit(attended(main))
