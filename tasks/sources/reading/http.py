"""An HTTP client for JSON APIs of trace stores, with retries and actionable errors.

After a temporary failure (429, 5xx, lost connection, truncated reply), a request is sent again after growing pauses, at
least as long as the server's `Retry-After`. Errors and logs never contain a reply's text, which may be text of a trace.
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
LONGEST_PAUSE_S = 120.0  # also the limit for `Retry-After`

_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _AgainError(Exception):
    """A temporary failure; the same request may succeed later.

    Attributes:
        pause_s: Seconds that the server requests to wait.
        undone: Whether the server has certainly not executed the request.
    """

    def __init__(self, problem: str, pause_s: float = 0, *, undone: bool = False) -> None:
        super().__init__(problem)
        self.pause_s = pause_s
        self.undone = undone


class Reply(NamedTuple):
    """A server's reply to a change. `data` is empty if the reply is not a JSON object."""

    status: int
    data: dict[str, Any]


def checked_url(kind: str, url: str) -> str:
    """Return a server's base URL without a trailing slash, safe for messages.

    Raises:
        UsageError: The URL is invalid, or contains a user, a password or a query. The message does not show the URL.
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
    """Check that a config value is the name of an environment variable.

    Args:
        key: Key of the config that names it, for messages.

    Raises:
        UsageError: It is not a variable name. It may be the secret itself, so the message does not show it.
    """
    if not _VARIABLE.fullmatch(variable):
        raise UsageError(
            f"{kind} source: `{key}` is no name of an environment variable. "
            "Write the variable's name there, never the secret itself, and set the variable where Leadline runs."
        )


def secret(kind: str, key: str, variable: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the secret in an environment variable.

    Args:
        key: Key of the config that names the variable, for messages.

    Raises:
        UsageError: The name is invalid, the variable is not set, or the secret has invalid characters.
    """
    check_variable(kind, key, variable)
    value = environ.get(variable, "").strip()
    if not value:
        raise UsageError(f"{kind} source: `{key}` names ${variable}, which is not set. Set it where Leadline runs.")
    if not value.isascii() or not value.isprintable():
        raise UsageError(f"{kind} source: ${variable} holds characters that no key has. Set it again.")
    return value


def basic(user: str, password: str) -> dict[str, str]:
    """Return the header for basic authentication."""
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


class Client:
    """A client for one server. Close it, or use it as a context manager.

    Args:
        url: As `checked_url` returns it.
        headers: Headers of each request, such as the API key.
        credentials: What to check if the server rejects the credentials, such as `$PHOENIX_API_KEY`.
        timeout_s: Seconds to wait for the connection, and for each piece of the reply.
        sleep: Waits a number of seconds.
        now: Returns the current time in UTC.
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
        """Request a JSON object.

        Args:
            path: Path below the base URL, with a leading slash.
            params: Query parameters. None is left out, and a list repeats the parameter.
            missing: What to check if the path does not exist, such as "Check `project`".

        Raises:
            SourceError: The server rejects the request, or the reply is not a JSON object.
            ConnectionLostError: The server does not answer after several tries.
        """
        given = {k: v for k, v in params.items() if v is not None}
        return self._ask("GET", path, missing, params=given)

    def post(self, path: str, body: object, missing: str) -> dict[str, Any]:
        """Like `get`, with a JSON body. The request must only read, because it may be sent twice."""
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
        """Send a request that changes something.

        Args:
            expected: Error statuses that the caller handles.
            repeatable: Whether the request is idempotent. Otherwise, it is only sent again if the server has certainly
                not executed it (429).

        Raises:
            SourceError: The server rejects the credentials, or rejects the request with an unexpected status.
            ConnectionLostError: The server does not answer.
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
        """Return the seconds of `Retry-After`, a number or a date; 0 if it is neither."""
        if value.strip().isdecimal():
            return float(value)
        try:
            return max(0.0, (parsedate_to_datetime(value) - self._now()).total_seconds())
        except (ValueError, TypeError):
            return 0


_PAGE = "Check `url`: it may be the address of the web interface or of a login page, or lack a part of its path."


def _pause(state: RetryCallState) -> float:
    """Return the seconds to wait before the next try: growing, and at least what the server requests."""
    error = state.outcome.exception() if state.outcome else None
    requested = error.pause_s if isinstance(error, _AgainError) else 0
    growing = wait_exponential_jitter(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S, jitter=FIRST_PAUSE_S)
    return max(growing(state), min(requested, LONGEST_PAUSE_S))
