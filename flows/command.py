"""The installed command: Leadline in a process of its own, which Ctrl+C and SIGTERM end within seconds.

The first signal raises KeyboardInterrupt where the command stands, so that the run is put on record, the lake is given
back and models are freed. A second one, or three seconds, end the process as it stands: Prefect would ask a server that
is gone again and again, and a thread may wait for a model. Nothing stored is lost by either. Left out: what the
command does (`flows/__main__.py`), which is imported once signals are taken care of.
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
WAKES = signal.SIGURG  # ends a wait of the main thread where another thread has taken the signal; nothing else
SHOW_CURSOR = b"\x1b[?25h"
_stages: list[str] = []


class Interruption:
    """Ends the process after a signal, within a grace period.

    Args:
        grace_s: Seconds between the signal and the end, at most.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._signal: int | None = None
        self._stage: str | None = None
        self._code: int | None = None  # of a command that is over
        self._raised = False
        self._reporting = threading.Lock()

    def listen(self) -> None:
        """Handle signals from now on; those that the caller has this process ignore stay ignored."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)
        # Python's handlers wait for the main thread, which may be deep in a library; a byte in a pipe does not.
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(WAKES, lambda *_: None)
        watched = (reader, threading.get_ident())
        threading.Thread(target=self._watch, args=watched, name="interruption", daemon=True).start()
        os.register_at_fork(after_in_child=_forget)
        atexit.register(self._finish)  # the first to be registered is the last to be called

    @property
    def came(self) -> bool:
        """Whether a signal has come."""
        return self._signal is not None

    def over(self, code: int) -> int:
        """The exit code of a command that is over: its own, or the signal's."""
        if self._signal is not None:
            self._report()
            code = 128 + self._signal
        self._code = code
        return code

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        """Python calls this in the main thread, between two instructions."""
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
        """End an interrupted command at once: Python would spend two seconds on taking its modules apart."""
        if self._signal is not None:
            self._leave()

    def _leave(self) -> NoReturn:
        """End the process as it stands. The temporary server and vLLM's processes end with it."""
        with contextlib.suppress(Exception):
            for child in sys.modules["multiprocessing"].active_children():
                child.kill()
        os._exit(self.over(1) if self._code is None else self._code)

    def _report(self) -> None:
        """Say once how to go on, past buffers that another thread may hold."""
        if self._reporting.acquire(blocking=False):
            where = f" in stage {self._stage}" if self._stage else ""
            text = f"leadline: Interrupted{where}. What was stored stays; run the same command again.\n"
            after_echo = SHOW_CURSOR + b"\n" if os.isatty(2) else b""  # a progress bar hides it; ^C stands in its line
            with contextlib.suppress(OSError):  # nobody may be reading
                os.write(2, after_echo + text.encode())


@contextlib.contextmanager
def in_stage(name: str) -> Iterator[None]:
    """Name the stage that the main thread is in, for the message after a signal."""
    _stages.append(name)
    try:
        yield
    finally:
        _stages.pop()


def _forget() -> None:
    """Handle signals in a forked copy as Python does without us."""
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def attended(main: Callable[[], None], grace_s: float = GRACE_S) -> int:
    """Run the command in the main thread; its exit code, or that of the signal that ended it.

    Args:
        main: The command; it may catch KeyboardInterrupt.
        grace_s: Seconds between a signal and the end of the process, at most.
    """
    interruption = Interruption(grace_s)
    interruption.listen()
    code = 0
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)  # nobody exits with a text
    except BaseException:
        if not interruption.came:
            interruption.over(1)
            raise
    with contextlib.suppress(OSError):
        sys.stdout.flush()  # a signal that comes from now on ends the process at once
    return interruption.over(code)


def command() -> NoReturn:
    """What is installed as `leadline`."""

    def main() -> None:
        from flows.__main__ import main as leadline  # noqa: PLC0415

        leadline()

    sys.exit(attended(main))
