"""Start Prefect's temporary server for commands on machines without a configured server.

Prefect itself would start a server only when the flow starts, which takes eight seconds. This module starts the same
server in parallel with the imports. The server runs in its own session, so that Ctrl+C in the terminal does not end it
before the run has reported its state. It always ends together with the command.
"""

import atexit
import contextlib
import http.client
import os
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from tasks.core import leash
from tasks.core.errors import LeadlineError

HOST = "127.0.0.1"
MODULE = "flows.runtime.temporary_server"
ENDS_WITHIN_S = 5  # seconds for the server to store the last events
# As set by Prefect: without UI, and without services that only a permanent server needs.
ENVIRONMENT = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}


def quiet() -> None:
    """Set Prefect's environment for a run from a terminal, before Prefect is imported. Existing variables are kept."""
    for name, value in {
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300",  # the default of 20 is too short on a busy machine
    }.items():
        os.environ.setdefault(name, value)


@contextlib.contextmanager
def temporary_server() -> Iterator[None]:
    """Start a server while the block runs. Afterwards, Prefect uses this server until the process ends.

    Do nothing if a server is configured.

    Raises:
        LeadlineError: The server does not start.
    """
    server = _Server() if (_wanted() if "prefect.settings" in sys.modules else not configured_url()) else None
    try:
        yield
    except BaseException:
        if server:
            server.kill()
        raise
    if server:
        server.use()


def flows_with(build: Callable[[], tuple[Any, ...]] = tuple) -> ModuleType:
    """Import `flows.deployments`, so that its flows run in this process with prebuilt contexts.

    Args:
        build: Builds the contexts while the temporary server starts and before Prefect is imported, so that config
        errors
            are shown early.

    Raises:
        LeadlineError: `build` failed, or the server does not start.
    """
    quiet()
    with temporary_server():
        contexts = build()
        from flows import deployments  # noqa: PLC0415 - takes seconds to import

    deployments.CONTEXTS.set(contexts)
    return deployments


def ensure_server() -> None:
    """Start a server if none is configured, for verbs that run no flow.

    Raises:
        LeadlineError: The server does not start.
    """
    if _wanted():
        _Server().use()


class _Server:
    """The server's process."""

    def __init__(self) -> None:
        # The server inherits the listening socket, so early requests wait and no other process can take the port.
        with socket.create_server((HOST, 0)) as listener:
            self._port = listener.getsockname()[1]
            self._process = subprocess.Popen(  # noqa: S603 - this Python, this module
                [sys.executable, "-P", "-m", MODULE, str(listener.fileno())],
                env={**os.environ, **ENVIRONMENT, leash.OWNER: str(os.getpid())},
                stdin=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
                start_new_session=True,
            )

    def use(self) -> None:
        """Wait for the server and make Prefect use it. Kill it if Prefect's settings turn out not to need it."""
        try:
            if not _wanted():
                self.kill()
                return
            self._wait()
        except BaseException:
            self.kill()
            raise
        from prefect.context import refresh_global_settings_context  # noqa: PLC0415 - two seconds

        os.environ["PREFECT_API_URL"] = f"http://{HOST}:{self._port}/api"
        refresh_global_settings_context()
        atexit.register(self._stop)  # runs after Prefect has sent its remaining events

    def kill(self) -> None:
        """Kill the server's process."""
        self._process.kill()
        self._process.wait()

    def _wait(self) -> None:
        """Wait until the server responds."""
        from prefect.settings import get_current_settings  # noqa: PLC0415

        within = get_current_settings().server.ephemeral.startup_timeout_seconds
        connection = http.client.HTTPConnection(HOST, self._port, timeout=within)
        try:
            with contextlib.closing(connection):
                connection.request("GET", "/api/health")
                status = connection.getresponse().status
            problem = None if status == http.HTTPStatus.OK else f"it answers with status {status}"
        except TimeoutError:
            problem = (
                f"no answer within {within} seconds; PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS gives it more"
            )
        except (OSError, http.client.HTTPException):
            problem = f"its process ended with code {self._process.wait()}; its output is above"
        if problem:
            raise LeadlineError(
                f"Prefect's temporary server did not start: {problem}. Run the command again, start a server and name"
                " it in PREFECT_API_URL (docs/operations.md), or run with --no-prefect."
            )

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()


def configured_url() -> str | None:
    """URL of the server in environment or profile, read directly: Prefect's settings take two seconds to load."""
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect"))
    path = Path(os.environ.get("PREFECT_PROFILES_PATH", home / "profiles.toml")).expanduser()
    settings: Mapping[str, str] = {}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # Prefect itself reports errors in the file
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        settings = found["profiles"][os.environ.get("PREFECT_PROFILE") or found["active"]]
    return {**settings, **os.environ}.get("PREFECT_API_URL")


def _wanted() -> bool:
    """Whether Prefect's settings name no server and allow a temporary one. The server's process checks this too."""
    from prefect.settings import get_current_settings  # noqa: PLC0415 - two seconds

    settings = get_current_settings()
    return not settings.api.url and settings.server.ephemeral.enabled


def _serve(descriptor: int) -> None:
    """Main function of the server's process."""
    if _wanted():
        import uvicorn  # noqa: PLC0415

        app = "prefect.server.api.server:create_app"
        config = uvicorn.Config(app, factory=True, log_level="error", lifespan="on")
        uvicorn.Server(config).run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
