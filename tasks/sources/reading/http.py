"""JSON over HTTP from a store of traces: requests that are tried again, and errors that say what to do.

A request that the server can't answer now (429, 5xx, a connection lost, a reply that was cut off) is sent again after
growing pauses, and no sooner than the server asks for. Errors and logs never hold what a reply says: it may be the
text of a trace. Left out: what pages look like, which differs from store to store.
"""

import base64
import os
import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

import httpx
import tenacity
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential_jitter,
)

from tasks.core.errors import ConnectionLostError, SourceError, UsageError
from tasks.sources.reading.values import decode_json

T = TypeVar("T")
ATTEMPTS = 6
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 120.0  # also of those that a server asks for

_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _AgainError(Exception):
    """The same request may be answered later.

    Attributes:
        pause_s: Seconds that the server asks for.
        undone: Whether the server has surely not done what it was asked for.
    """

    def __init__(self, problem: str, pause_s: float = 0, *, undone: bool = False) -> None:
        super().__init__(problem)
        self.pause_s = pause_s
        self.undone = undone


class Reply(NamedTuple):
    """What a server answers to a change; `data` is empty where it answers nothing, or no JSON object."""

    status: int
    data: dict[str, Any]


def checked_url(kind: str, url: str) -> str:
    """The base URL of a server, without a slash at its end; it can stand in messages.

    Raises:
        UsageError: It is none, or holds a name, a password or a query. The message does not show it.
    """
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    if not sound:
        raise UsageError(f"{kind} source: `url` is no URL of a server. Write one like http://localhost:6006.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise UsageError(
            f"{kind} source: `url` holds a name, a password or a query. Remove them: configs are under version "
            "control. Put the secret into an environment variable, and name the variable in the config."
        )
    return url.rstrip("/")


def check_variable(kind: str, key: str, variable: str) -> None:
    """See that a config names an environment variable.

    Args:
        key: Key of the config that names it, for messages.

    Raises:
        UsageError: It is no name of a variable. It may be the secret itself, so it is not shown.
    """
    if not _VARIABLE.fullmatch(variable):
        raise UsageError(
            f"{kind} source: `{key}` is no name of an environment variable. "
            "Write the variable's name there, never the secret itself, and set the variable where Leadline runs."
        )


def secret(kind: str, key: str, variable: str, environ: Mapping[str, str] = os.environ) -> str:
    """The secret in an environment variable.

    Args:
        key: Key of the config that names the variable, for messages.

    Raises:
        UsageError: It is no name of a variable, or it is not set.
    """
    check_variable(kind, key, variable)
    value = environ.get(variable, "").strip()
    if not value:
        raise UsageError(f"{kind} source: `{key}` names ${variable}, which is not set. Set it where Leadline runs.")
    if not value.isascii() or not value.isprintable():
        raise UsageError(f"{kind} source: ${variable} holds characters that no key has. Set it again.")
    return value


def basic(user: str, password: str) -> dict[str, str]:
    """The header of basic authentication."""
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


class Client:
    """Asks one server for JSON; to be closed, or used with `with`.

    Args:
        url: As `checked_url` returns it.
        headers: With each request, such as the one that holds a key.
        credentials: What a user is to check where the server does not accept them, such as `$PHOENIX_API_KEY`.
        timeout_s: Seconds that a server may take to connect, and between two pieces of a reply.
        sleep: Waits some seconds.
        now: The time in UTC.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        credentials: str,
        *,
        timeout_s: float = 60,
        attempts: int = ATTEMPTS,
        sleep: Callable[[float], None] = tenacity.sleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._url = url
        self._credentials = credentials
        self._now = now
        self._http = httpx.Client(headers=dict(headers), timeout=timeout_s, follow_redirects=False)
        tries = partial(Retrying, stop=stop_after_attempt(attempts), wait=_pause, sleep=sleep, reraise=True)
        self._tries = tries(retry=retry_if_exception_type(_AgainError))
        self._careful = tries(retry=retry_if_exception(lambda e: isinstance(e, _AgainError) and e.undone))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def get(self, path: str, params: Mapping[str, Any], missing: str) -> dict[str, Any]:
        """The object that the server answers.

        Args:
            path: Below the base URL, with a slash in front.
            params: Of the query; those that are None are left out, and a list repeats its name.
            missing: What a user is to check where the path does not exist, such as "Check `project`".

        Raises:
            SourceError: The server refuses, or answers something else than a JSON object.
            ConnectionLostError: It does not answer, after some tries.
        """
        given = {k: v for k, v in params.items() if v is not None}
        return self._ask("GET", path, missing, params=given)

    def post(self, path: str, body: object, missing: str) -> dict[str, Any]:
        """The same for a request with a JSON body; it must be one that only reads, because it may be sent twice."""
        return self._ask("POST", path, missing, json=body)

    def change(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, Any] | None = None,
        expected: Collection[int] = (),
        repeatable: bool = True,
    ) -> Reply:
        """Ask for a change.

        Args:
            expected: Statuses of refusals that the caller handles; others are errors.
            repeatable: Whether the same request twice does what one does. One that is not is only sent again where the
                server has surely not done it (429).

        Raises:
            SourceError: The server does not accept the credentials, or refuses in another way than expected.
            ConnectionLostError: It does not answer.
        """
        tries = self._tries if repeatable else self._careful
        return self._trying(tries, path, self._changed, method, path, expected, params=params, json=body)

    def _ask(self, method: str, path: str, missing: str, **content: Any) -> dict[str, Any]:  # noqa: ANN401 - of httpx
        return self._trying(self._tries, path, self._once, method, path, missing, **content)

    def _trying(self, tries: Retrying, path: str, work: Callable[..., T], *given: Any, **content: Any) -> T:  # noqa: ANN401
        try:
            return tries(work, *given, **content)
        except _AgainError as error:
            count = tries.statistics.get("attempt_number", 1)
            raise ConnectionLostError(
                f"{self._url}{path} {error}, in {count} {'try' if count == 1 else 'tries'}. Check that the server runs "
                "and can be reached from here, and run again."
            ) from error

    def _changed(self, method: str, path: str, expected: Collection[int], **content: Any) -> Reply:  # noqa: ANN401
        reply = self._sent(method, path, **content)
        if reply.status_code not in expected:
            self._check(reply, path, "Check `url`, and the version of the server")
        try:
            data = decode_json(reply.content)
        except (ValueError, RecursionError) as exc:
            if reply.content.lstrip()[:1] == b"<" and reply.status_code < 300:
                raise self._error(path, "answers with a web page, not with JSON", _PAGE) from exc
            data = {}
        return Reply(reply.status_code, data if isinstance(data, dict) else {})

    def _sent(self, method: str, path: str, **content: Any) -> httpx.Response:  # noqa: ANN401 - of httpx
        try:
            return self._http.request(method, self._url + path, **content)
        except httpx.TimeoutException as exc:
            raise _AgainError("does not answer in time") from exc
        except (httpx.TransportError, httpx.DecodingError) as exc:
            raise _AgainError(f"can't be reached ({type(exc).__name__})") from exc

    def _once(self, method: str, path: str, missing: str, **content: Any) -> dict[str, Any]:  # noqa: ANN401 - of httpx
        reply = self._sent(method, path, **content)
        self._check(reply, path, missing)
        try:
            data = decode_json(reply.content)
        except (ValueError, RecursionError) as exc:
            if "html" in reply.headers.get("Content-Type", "") or reply.content.lstrip()[:1] == b"<":
                raise self._error(path, "answers with a web page, not with JSON", _PAGE) from exc
            raise _AgainError(f"answers JSON that was cut off or is damaged ({len(reply.content)} bytes)") from exc
        if not isinstance(data, dict):
            raise self._error(path, f"answers {type(data).__name__}, not an object", _PAGE)
        return data

    def _check(self, reply: httpx.Response, path: str, missing: str) -> None:
        status = reply.status_code
        if status in _AGAIN:
            pause = self._seconds(reply.headers.get("Retry-After", ""))
            raise _AgainError(f"answers HTTP {status}", pause, undone=status == 429)
        if status in (401, 403):
            raise self._error(path, f"does not accept the credentials (HTTP {status})", f"Check {self._credentials}.")
        if status == 404:
            raise self._error(path, "does not exist (HTTP 404)", f"{missing}.")
        if 300 <= status < 400:
            raise self._error(path, f"redirects to another address (HTTP {status})", _PAGE)
        if status >= 400:
            raise self._error(path, f"refuses the request (HTTP {status})", "Check the version of the server.")

    def _error(self, path: str, problem: str, remedy: str) -> SourceError:
        return SourceError(f"{self._url}{path} {problem}. {remedy}")

    def _seconds(self, value: str) -> float:
        """What `Retry-After` asks for, as a number or a date; 0 where it is neither."""
        if value.strip().isdecimal():
            return float(value)
        try:
            return max(0.0, (parsedate_to_datetime(value) - self._now()).total_seconds())
        except (ValueError, TypeError):
            return 0


_PAGE = "Check `url`: it may be the address of the web interface or of a login page, or lack a part of its path."


def _pause(state: RetryCallState) -> float:
    """Seconds before a request is sent again: growing, and no fewer than the server asks for."""
    error = state.outcome.exception() if state.outcome else None
    requested = error.pause_s if isinstance(error, _AgainError) else 0
    growing = wait_exponential_jitter(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S, jitter=FIRST_PAUSE_S)
    return max(growing(state), min(requested, LONGEST_PAUSE_S))
