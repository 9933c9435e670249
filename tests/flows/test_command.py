"""Signals in processes of their own: what a command may do when one comes, how it ends, and what is printed of it."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

import pytest
from conftest import WITHIN_S

REPORT = "leadline: Interrupted. What was stored stays; run the same command again.\n"
AT_ONCE, NEVER = 0.1, 10.0**6  # seconds of grace: a command that waits for ever is ended, or is not
HEAD = """
import atexit, hashlib, multiprocessing, signal, sys, threading
from flows.command import attended
FOREVER = threading.Event().wait

def say(word):
    print(word, flush=True)

def main():
"""
WAITS = 'say("begun"); FOREVER()'
SWALLOWS = """
try:
    say("begun"); FOREVER()
except KeyboardInterrupt:
    say("raised"); FOREVER()
"""
COMPUTES = 'say("begun"); hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)'  # minutes without looking at signals
QUERIES = """
import duckdb
say("begun"); duckdb.sql("SELECT sum(sqrt(a.range * b.range)) FROM range(1000000) a, range(1000000) b").fetchall()
"""
IS_OVER = 'print("done"); atexit.register(lambda: (say("begun"), FOREVER())); sys.exit(3)'  # printed, and not flushed
FORKS = """
def look():
    sys.exit(signal.set_wakeup_fd(-1) != -1 or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL)

copy = multiprocessing.get_context("fork").Process(target=look)
copy.start(); copy.join(); sys.exit(copy.exitcode)
"""
Process = subprocess.Popen[str]


def script(body: str, grace_s: float) -> str:
    """A program whose command is `body`."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}{lines}\nsys.exit(attended(main, {grace_s}))\n"


@pytest.fixture
def started() -> Iterator[Callable[..., Process]]:
    """Starts programs, which are gone after the test."""
    with contextlib.ExitStack() as running:

        def start(body: str, grace_s: float, before: Sequence[str] = ()) -> Process:
            command = [*before, sys.executable, "-c", script(body, grace_s)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            running.enter_context(process)
            running.callback(process.kill)
            return process

        yield start


def heard(process: Process) -> str:
    """The next word that a program says."""
    assert process.stdout
    return process.stdout.readline().strip()


def ended(process: Process) -> tuple[int, str, str]:
    """Its exit code, and what else it printed."""
    out, err = process.communicate(timeout=WITHIN_S)
    return process.returncode, out, err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("body", [WAITS, QUERIES], ids=["waits", "queries"])
def test_a_signal_is_raised_where_the_command_stands(
    started: Callable[..., Process], body: str, number: int, code: int
) -> None:
    process = started(body, NEVER)  # DuckDB makes a RuntimeError of it
    assert heard(process) == "begun"
    process.send_signal(number)
    assert ended(process) == (code, "", REPORT)


@pytest.mark.parametrize("body", [SWALLOWS, COMPUTES], ids=["swallows", "computes"])
def test_a_command_that_does_not_end_is_ended(started: Callable[..., Process], body: str) -> None:
    process = started(body, AT_ONCE)
    assert heard(process) == "begun"
    process.send_signal(signal.SIGINT)
    code, _, errors = ended(process)
    assert (code, errors) == (130, REPORT)


def test_a_second_signal_ends_it_at_once(started: Callable[..., Process]) -> None:
    process = started(SWALLOWS, NEVER)
    assert heard(process) == "begun"
    process.send_signal(signal.SIGINT)
    assert heard(process) == "raised"
    process.send_signal(signal.SIGINT)
    assert ended(process) == (130, "", REPORT)


def test_a_signal_after_the_command_is_over_leaves_its_own_exit_code(started: Callable[..., Process]) -> None:
    process = started(IS_OVER, NEVER)  # such as while Prefect's server is being stopped
    assert [heard(process), heard(process)] == ["done", "begun"]
    process.send_signal(signal.SIGINT)
    assert ended(process) == (3, "", "")


@pytest.mark.parametrize(("body", "code"), [("pass", 0), ("sys.exit()", 0), ("sys.exit(2)", 2)])
def test_without_a_signal_a_command_ends_by_its_own_exit_code(
    started: Callable[..., Process], body: str, code: int
) -> None:
    assert ended(started(body, AT_ONCE)) == (code, "", "")


def test_a_bug_still_shows_its_traceback(started: Callable[..., Process]) -> None:
    code, _, errors = ended(started("1 / 0", AT_ONCE))
    assert (code, errors.splitlines()[0], errors.splitlines()[-1][:17]) == (
        1, "Traceback (most recent call last):", "ZeroDivisionError",
    )  # fmt: skip


def test_a_signal_that_the_caller_ignores_stays_ignored(started: Callable[..., Process]) -> None:
    body = "say(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    assert ended(started(body, AT_ONCE, ["sh", "-c", 'trap "" INT; exec "$@"', "sh"])) == (0, "True\n", "")


def test_a_copy_of_the_process_has_signals_of_its_own(started: Callable[..., Process]) -> None:
    assert ended(started(FORKS, AT_ONCE)) == (0, "", "")
