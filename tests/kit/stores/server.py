"""A small real server on loopback that answers as a test tells it to, for sources that ask an API."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Asked:
    """One request: `params` of the address, each with its values, and the body, from JSON or as it is."""

    method: str
    path: str
    params: dict[str, list[str]]
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class Reply:
    """What goes back.

    Attributes:
        body: As it is, or as JSON.
        cut: Bytes of it after which the connection breaks off.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None


@dataclass
class TraceServer:
    """A running server, and what it was asked."""

    answer: Callable[[Asked], Reply]
    url: str = ""
    asked: list[Asked] = field(default_factory=list)


@contextlib.contextmanager
def serve(answer: Callable[[Asked], Reply]) -> Iterator[TraceServer]:
    """Run a server in a thread until the block ends."""
    state = TraceServer(answer)

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            address = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body: Any = raw or None
            with contextlib.suppress(ValueError):
                body = json.loads(raw)
            asked = Asked(self.command, address.path, parse_qs(address.query), body, dict(self.headers))
            state.asked.append(asked)
            reply = state.answer(asked)
            data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: reply.cut])
            if reply.cut is not None:
                self.close_connection = True

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
