"""Shared by all tests: one Prefect server per worker, and the environment of the commands that they start."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

STARTS_WITHIN_S = 120
settings.register_profile("any machine", deadline=None)  # how long an example takes depends on what else runs
settings.load_profile("any machine")


@dataclass(frozen=True)
class PrefectServer:
    """A running server; `home` holds its database."""

    url: str
    home: Path


def quiet(**more: str) -> dict[str, str]:
    """This process's environment for a command: nothing phones home, and one thread does for small models."""
    taken = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    return taken | {
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "GX_ANALYTICS_ENABLED": "false",
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "200",
        **more,
    }


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """A real server on loopback: every run would start one of its own otherwise, at eight seconds each."""
    home = tmp_path_factory.mktemp("prefect")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=quiet(PREFECT_HOME=str(home)), stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}/api"
        _wait(f"{url}/health", server, home / "server.log")
        yield PrefectServer(url, home)
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()


@pytest.fixture(scope="session")
def environment(prefect_server: PrefectServer) -> dict[str, str]:
    """For commands that run a flow."""
    return quiet(PREFECT_HOME=str(prefect_server.home), PREFECT_API_URL=prefect_server.url)


@pytest.fixture(scope="session")
def no_server() -> dict[str, str]:
    """For commands that need no Prefect: where they look for it, nobody answers."""
    return quiet(PREFECT_API_URL="http://127.0.0.1:9/api")


def _wait(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"the Prefect server did not start:\n{log.read_text()[-2000:]}")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of a tiny classifier of a family of models, made on first use: for the tests of engines."""
    from tiny_classifiers import make  # noqa: PLC0415 - imports torch

    made: dict[str, Path] = {}

    def of(family: str) -> Path:
        if family not in made:
            made[family] = make(tmp_path_factory.mktemp(family), family)
        return made[family]

    return of
