"""A small real server of chat completions on loopback, for tests of what clients do when one fails."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Handler = Callable[["ChatServer", dict[str, Any]], Awaitable[web.StreamResponse]]


@dataclass
class ChatServer:
    """What a server was sent, and how it answers.

    Attributes:
        handle: Called with each request, after it was noted.
        asked: Bodies of requests, in the order in which they came.
        times: When each came, by the server's clock.
        connections: Ports that they came from.
        request: The latest, for handlers that break its connection.
    """

    handle: Handler
    models: list[str] | None = field(default_factory=lambda: ["x"])
    key: str | None = None
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    connections: set[int] = field(default_factory=set)
    in_flight: int = 0
    most_in_flight: int = 0
    request: web.Request | None = None

    async def chat(self, request: web.Request) -> web.StreamResponse:
        self.connections.add(request.transport.get_extra_info("peername")[1])
        self.times.append(asyncio.get_running_loop().time())
        body = await request.json()
        self.asked.append(body)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            self.request = request
            return self._denied(request) or await self.handle(self, body)
        finally:
            self.in_flight -= 1

    async def list(self, request: web.Request) -> web.Response:
        listed = {"object": "list", "data": [{"id": name} for name in self.models or []]}
        return self._denied(request) or web.json_response(listed)

    def _denied(self, request: web.Request) -> web.Response | None:
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            return error(401)
        return None


def answer(body: dict[str, Any], text: str | None = None) -> web.Response:
    """A good answer: the last word of what was asked, or the given text."""
    output = body["messages"][-1]["content"].split()[-1] if text is None else text
    choices = [{"index": i, "message": {"content": output}, "finish_reason": "stop"} for i in range(body.get("n", 1))]
    return web.json_response({"choices": choices, "usage": {"prompt_tokens": 10, "completion_tokens": 2}})


def error(status: int, message: str = "no", **headers: str) -> web.Response:
    """A refusal in the API's shape."""
    body = {"error": {"message": message, "type": "x", "param": None, "code": status}}
    return web.json_response(body, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})


@contextlib.contextmanager
def serve(handle: Handler, **options: Any) -> Iterator[ChatServer]:
    """Run a server in a thread; at the end it ends, whatever is in flight."""
    server = ChatServer(handle, **options)
    started, loop, ended = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def run() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", server.chat)
        if server.models is not None:
            app.router.add_get("/v1/models", server.list)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        started.set()
        await ended.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)
        loop.close()
