"""Prefect's temporary server, for commands on a machine where none is configured.

Prefect would start one by itself when the flow begins, and everything waits for its eight seconds. This one starts
beside the imports. It has a session of its own, so that a Ctrl+C in the terminal does not end it while the run still
has to report to it, and it ends with the command, however that ends. What it does is Prefect's.
"""

import atexit
import contextlib
import http.client
import os
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tasks.core import leash
from tasks.core.errors import LeadlineError

HOST = "127.0.0.1"
MODULE = "flows.runtime.temporary_server"
ENDS_WITHIN_S = 5  # it writes down what it was sent last
# As Prefect starts it: no pages, and none of the services that only a lasting server needs.
ENVIRONMENT = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}


@contextlib.contextmanager
def temporary_server() -> Iterator[None]:
    """Start a server while the block runs; after it Prefect uses this server until the process ends.

    Where a server is configured, nothing happens.

    Raises:
        LeadlineError: It does not start.
    """
    if not (_wanted() if "prefect.settings" in sys.modules else _expected()):
        yield
        return
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        server = _start(listener)
    try:
        yield
        if _wanted():
            _wait(server, port)
            _use(f"http://{HOST}:{port}/api")
            atexit.register(_stop, server)  # after Prefect has sent what it still holds
        else:
            server.kill()
            server.wait()
    except BaseException:
        server.kill()
        server.wait()
        raise


def _start(listener: socket.socket) -> "subprocess.Popen[bytes]":
    """The server's process. It takes the socket over: an early request waits, and nobody else gets the port."""
    return subprocess.Popen(  # noqa: S603 - this Python, this module
        [sys.executable, "-P", "-m", MODULE, str(listener.fileno())],
        env={**os.environ, **ENVIRONMENT, leash.OWNER: str(os.getpid())},
        stdin=subprocess.DEVNULL,
        pass_fds=[listener.fileno()],
        start_new_session=True,
    )


def _expected() -> bool:
    """Whether it looks as if Prefect's settings, which take two seconds to load, would name no server."""
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect"))
    path = Path(os.environ.get("PREFECT_PROFILES_PATH", home / "profiles.toml")).expanduser()
    settings: Mapping[str, str] = {}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # Prefect says what is wrong with it
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        settings = found["profiles"][os.environ.get("PREFECT_PROFILE") or found["active"]]
    return not {**settings, **os.environ}.get("PREFECT_API_URL")


def _wanted() -> bool:
    """Whether Prefect's settings name no server, and allow a temporary one. The new process looks at them too."""
    from prefect.settings import get_current_settings  # noqa: PLC0415 - two seconds

    settings = get_current_settings()
    return not settings.api.url and settings.server.ephemeral.enabled


def _wait(server: "subprocess.Popen[bytes]", port: int) -> None:
    """Return when it answers."""
    from prefect.settings import get_current_settings  # noqa: PLC0415

    within = get_current_settings().server.ephemeral.startup_timeout_seconds
    asked = http.client.HTTPConnection(HOST, port, timeout=within)
    try:
        with contextlib.closing(asked):
            asked.request("GET", "/api/health")
            status = asked.getresponse().status
        problem = None if status == http.HTTPStatus.OK else f"it answers with status {status}"
    except TimeoutError:
        problem = f"no answer within {within} seconds; PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS gives it more"
    except (OSError, http.client.HTTPException):
        problem = f"its process ended with code {server.wait()}; what it printed stands above"
    if problem:
        raise LeadlineError(
            f"Prefect's temporary server did not start: {problem}. Run the command again, or start a server and name it"
            " in PREFECT_API_URL (docs/operations.md)."
        )


def _use(url: str) -> None:
    """Let Prefect take this server."""
    from prefect.context import refresh_global_settings_context  # noqa: PLC0415

    os.environ["PREFECT_API_URL"] = url
    refresh_global_settings_context()


def _stop(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _serve(descriptor: int) -> None:
    """What the server's process does."""
    if _wanted():
        import uvicorn  # noqa: PLC0415

        app = "prefect.server.api.server:create_app"
        config = uvicorn.Config(app, factory=True, log_level="error", lifespan="on")
        uvicorn.Server(config).run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
