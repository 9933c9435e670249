"""Connections to OpenAI-compatible servers, and the health of each: sends a request, returns an answer or a reason.

Left out: the content of requests and answers (`_wire.py`), repeating a request (`server.py`), and proxies. A message
names a server and a status, but never the key, a request or an answer, which may quote a trace.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import aiohttp
from yarl import URL

from tasks.core.errors import EngineError
from tasks.engines.generator import Server
from tasks.engines.openai import _wire as wire

RESTS_S = 10.0  # pause in requests to a server that failed, while others answer
DEAD_AFTER = 20  # failures in a row
CONNECTS_WITHIN_S = 10.0
LISTS_WITHIN_S = 30.0
IDLE_S = 4.0  # vLLM closes connections that were idle for 5 seconds
MOST_BYTES = 64 << 20  # maximum size of an answer: twenty times that of 4,096 tokens with 8 alternatives each
BUSY = (408, 429)
REFUSED = (400, 413, 422)


class NoAnswerError(EngineError):
    """No server answers. A retry may help."""

    transient = True


class AgainError(Exception):
    """A request got no answer for now. Has the reason, and how long the server asks to wait."""

    def __init__(self, problem: str, pause_s: float = 0) -> None:
        super().__init__(problem)
        self.pause_s = pause_s


@dataclass(eq=False)
class Target:
    """One server and its health.

    Attributes:
        failures: Number of successive requests without an answer.
        rests_until: Time of the event loop until which the server gets no requests.
    """

    url: URL
    in_flight: int = 0
    failures: int = 0
    rests_until: float = 0

    @property
    def dead(self) -> bool:
        """Whether the server has failed too often in a row."""
        return self.failures >= DEAD_AFTER

    def answered(self) -> None:
        """Record an answered request."""
        self.failures, self.rests_until = 0, 0

    def failed(self, times: int = 1) -> None:
        """Record requests without an answer."""
        self.failures += times
        self.rests_until = _now() + RESTS_S


class Servers:
    """All servers of a config. Must be created, used and closed in one running event loop."""

    def __init__(self, config: Server, name: str) -> None:
        """Prepare the servers without opening a connection.

        Args:
            name: The model's name on the servers.

        Raises:
            EngineError: A URL is wrong, or the key's environment variable is not set.
        """
        headers = {"Content-Type": "application/json", **_key(config.api_key_env)}
        self._config, self._name = config, name
        self.targets = [Target(_url(n, url)) for n, url in enumerate(config.urls)]
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=config.concurrency + 1, keepalive_timeout=IDLE_S),
            timeout=aiohttp.ClientTimeout(total=config.timeout_s, sock_connect=CONNECTS_WITHIN_S),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def check(self) -> None:
        """Check all servers by listing their models.

        Raises:
            NoAnswerError: No server answers.
            EngineError: A server does not accept the key, or does not serve the model.
        """
        found = await asyncio.gather(*[self._check(target) for target in self.targets], return_exceptions=True)
        for error in found:
            if isinstance(error, BaseException):
                raise error
        if all(found):
            raise NoAnswerError(f"no server answers: {'; '.join(map(str, found))}. Start it, or check server.urls.")

    def choose(self, target: Target) -> Target:
        """The server itself, or the healthiest server if this one failed recently."""
        now = _now()
        if target.rests_until <= now:
            if target.failures:
                target.rests_until = now + RESTS_S  # this request tests whether the server is back
            return target
        return min(self.targets, key=lambda t: (t.rests_until > now, t.failures, t.in_flight))

    async def post(self, target: Target, body: bytes) -> tuple[int, bytes]:
        """Request a chat completion.

        Returns:
            Status and body of an answer (200) or of a refusal (`REFUSED`).

        Raises:
            AgainError: There is no answer for now.
            EngineError: The server will not answer any request.
        """
        target.in_flight += 1
        try:
            url = target.url / "chat/completions"
            async with self._session.post(url, data=body, allow_redirects=False) as reply:
                raw = await _body(reply)
        except (aiohttp.ClientError, TimeoutError) as error:
            target.failed()
            raise AgainError(f"{target.url}: {type(error).__name__}") from None
        finally:
            target.in_flight -= 1
        if reply.status in BUSY or reply.status >= 500:
            if reply.status not in BUSY:
                target.failed()
            raise AgainError(f"{target.url}: HTTP {reply.status}", _seconds(reply.headers))
        if reply.status != 200 and reply.status not in REFUSED:
            await self._denied(target, reply.status)
        return reply.status, raw

    async def _check(self, target: Target) -> str | None:
        """Why a server does not answer; None if it does, even without a list of models."""
        try:
            status, names = await self._models(target)
        except (aiohttp.ClientError, TimeoutError) as error:
            target.failed(DEAD_AFTER)
            return f"{target.url} ({type(error).__name__})"
        if status in (401, 403):
            await self._denied(target, status)
        if names is not None and self._name not in names:
            raise self._not_served(target, names)
        return None

    async def _models(self, target: Target) -> tuple[int, list[str] | None]:
        limit = aiohttp.ClientTimeout(total=LISTS_WITHIN_S, sock_connect=CONNECTS_WITHIN_S)
        async with self._session.get(target.url / "models", timeout=limit, allow_redirects=False) as reply:
            return reply.status, wire.model_names(await _body(reply)) if reply.status == 200 else None

    async def _denied(self, target: Target, status: int) -> NoReturn:
        if status in (401, 403):
            variable = self._config.api_key_env
            remedy = f"Check the key in ${variable}" if variable else "Name the key's variable: server.api_key_env"
            raise EngineError(f"{target.url} does not accept the key (HTTP {status}). {remedy}.")
        if status == 404:
            try:
                names = (await self._models(target))[1] or []
            except (aiohttp.ClientError, TimeoutError):
                names = []
            if self._name not in names:
                raise self._not_served(target, names)
        raise EngineError(f"{target.url}/chat/completions answers HTTP {status}. Check server.urls.")

    def _not_served(self, target: Target, names: Sequence[str]) -> EngineError:
        served = f"it serves {', '.join(map(repr, names))}" if names else "it names no models"
        return EngineError(
            f"{target.url} does not serve {self._name!r}; {served}. Set server.served_name, and check server.urls, "
            "which for most servers end in /v1."
        )


async def _body(reply: aiohttp.ClientResponse) -> bytes:
    """The whole body of an answer.

    Raises:
        aiohttp.ClientPayloadError: It is longer than any possible answer to a request.
    """
    raw = bytearray()
    async for piece in reply.content.iter_any():
        raw += piece
        if len(raw) > MOST_BYTES:
            raise aiohttp.ClientPayloadError
    return bytes(raw)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _seconds(headers: Mapping[str, str]) -> float:
    """The seconds in `Retry-After`; 0 for a date, which model servers do not send."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else 0


def _url(n: int, text: str) -> URL:
    """A base URL that may appear in messages.

    Raises:
        EngineError: The text is not such a URL.
    """
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host or url.user or url.password or url.query_string:
        raise EngineError(
            f"server.urls[{n}] is not like http://host:8000/v1, without a name, a password or a query. "
            "A key stands in the environment variable that server.api_key_env names."
        )
    return url


def _key(variable: str | None) -> dict[str, str]:
    if variable is None:
        return {}
    key = os.environ.get(variable, "").strip()
    if not key.isprintable() or not key:
        raise EngineError(f"server.api_key_env: ${variable} holds no key. Set it.")
    return {"Authorization": f"Bearer {key}"}
