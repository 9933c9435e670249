"""A process on a leash ends with the one that it belongs to, and not before."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from conftest import WITHIN_S

from tasks.core.leash import OWNER

CODE = "import threading, tasks.core.leash; print('on', flush=True); threading.Event().wait()"


@pytest.fixture
def owner() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that goes on until it is killed."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@contextlib.contextmanager
def tied(owner: int) -> Iterator["subprocess.Popen[bytes]"]:
    """A process on the leash of another one."""
    env = {**os.environ, OWNER: str(owner)}
    with subprocess.Popen([sys.executable, "-c", CODE], env=env, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_it_ends_when_its_owner_is_killed(owner: "subprocess.Popen[bytes]") -> None:
    with tied(owner.pid) as process:
        assert process.stdout
        assert process.stdout.readline() == b"on\n"
        assert process.poll() is None
        owner.kill()
        assert process.wait(WITHIN_S) == 1


def test_it_ends_when_its_owner_is_gone_already(owner: "subprocess.Popen[bytes]") -> None:
    owner.kill()
    owner.wait()
    with tied(owner.pid) as process:
        assert process.wait(WITHIN_S) == 1
