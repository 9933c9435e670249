"""The client that stores are asked with, against a real server on loopback."""

import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from kit.stores.server import Asked, Reply, TraceServer, serve

from tasks.core.errors import ConnectionLostError, LeadlineError, SourceError, UsageError
from tasks.sources.reading.http import ATTEMPTS, Client, basic, checked_url, secret

KEY = "sk-not-to-be-seen"
TEXT = "zebra-crossing"  # stands for the text of a trace: no error may hold it
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
GOOD = Reply({"data": [1]})


def replies(*given: Reply) -> Any:
    """Answers in turn; the last one goes on."""
    left: Iterator[Reply] = iter(given)
    last = given[-1]
    return lambda _: next(left, last)


def client(server: TraceServer, pauses: list[float], **more: Any) -> Client:
    return Client(server.url, {"Authorization": f"Bearer {KEY}"}, "the key in $TEST_KEY", sleep=pauses.append, now=lambda: NOW, **more)  # fmt: skip


def ask(*given: Reply, **more: Any) -> tuple[object, list[float], list[Asked]]:
    """What comes back, or the error; the pauses before requests; and these."""
    pauses: list[float] = []
    found: object
    with serve(replies(*given)) as server, client(server, pauses, **more) as asking:
        try:
            found = asking.get("/v1/spans", {"limit": 5, "cursor": None, "ids": ["a", "b"]}, "Check `project`")
        except LeadlineError as error:
            found = error
    assert KEY not in str(found)
    assert TEXT not in str(found)
    return found, pauses, server.asked


def test_a_request() -> None:
    found, pauses, (asked,) = ask(GOOD)
    assert found == {"data": [1]}
    assert pauses == []
    assert asked.params == {"limit": ["5"], "ids": ["a", "b"]}
    assert asked.headers["Authorization"] == f"Bearer {KEY}"


def test_a_body() -> None:
    with serve(replies(GOOD)) as server, client(server, []) as asking:
        assert asking.post("/query", {"a": 1}, "") == {"data": [1]}
    assert server.asked[0].body == {"a": 1}


@pytest.mark.parametrize(
    "fault",
    [
        Reply({"detail": TEXT}, 500),
        Reply({}, 503),
        Reply({"data": [TEXT] * 99}, cut=20),
        Reply(b'{"data": ["' + TEXT.encode()),
        Reply(b""),
    ],
)
def test_faults_that_pass(fault: Reply) -> None:
    found, pauses, asked = ask(fault, fault, GOOD)
    assert found == {"data": [1]}
    assert len(pauses) == 2
    assert 0.5 <= pauses[0] <= pauses[1] <= 2.5
    assert len(asked) == 3
    error, _, asked = ask(fault)
    assert isinstance(error, ConnectionLostError)
    assert f"in {ATTEMPTS} tries" in str(error)
    assert len(asked) == ATTEMPTS


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [("7", 7, 7), ("Sun, 22 Nov 2026 12:00:09 GMT", 9, 9), ("99999", 120, 120), ("soon", 0.5, 1.5), ("Sun, 22 Nov 2026 11:00:00 GMT", 0.5, 1.5)],
)  # fmt: skip
def test_a_server_that_asks_for_a_pause(value: str, least: float, most: float) -> None:
    found, pauses, _ = ask(Reply({}, 429, {"Retry-After": value}), GOOD)
    assert found == {"data": [1]}
    assert [least <= pause <= most for pause in pauses] == [True]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply({"detail": TEXT}, 401), ["does not accept the credentials (HTTP 401)", "$TEST_KEY"]),
        (Reply({}, 403), ["(HTTP 403)", "$TEST_KEY"]),
        (Reply({}, 404), ["does not exist (HTTP 404)", "Check `project`."]),
        (Reply({}, 302, {"Location": "/login"}), ["redirects", "`url`"]),
        (Reply({"detail": TEXT}, 422), ["refuses the request (HTTP 422)", "version"]),
        (Reply(f"<html>{TEXT}</html>".encode(), 200, {"Content-Type": "text/html"}), ["a web page", "`url`"]),
        (Reply(b" <!doctype html>"), ["a web page", "`url`"]),
        (Reply([TEXT]), ["answers list", "`url`"]),
    ],
)
def test_faults_that_stay(reply: Reply, words: Sequence[str]) -> None:
    error, pauses, asked = ask(reply, GOOD)
    assert type(error) is SourceError
    assert all(word in str(error) for word in ["http://127.0.0.1", "/v1/spans", *words]), str(error)
    assert (pauses, len(asked)) == ([], 1)


def test_a_server_that_is_not_there() -> None:
    with serve(replies(GOOD)) as server:
        pass
    with client(server, []) as asking, pytest.raises(ConnectionLostError, match="can't be reached"):
        asking.get("/", {}, "")


def test_a_server_that_does_not_answer() -> None:
    over = threading.Event()

    def silent(_: Asked) -> Reply:
        over.wait(60)
        return Reply(cut=0)

    with serve(silent) as server:
        with client(server, [], timeout_s=0.05, attempts=2) as asking:
            with pytest.raises(ConnectionLostError, match="does not answer in time, in 2 tries"):
                asking.get("/", {}, "")
        over.set()


@pytest.mark.parametrize("url", ["http://me:sk-1@host", "http://sk-1@host/", "https://host/?key=sk-1", "https://host/#sk-1"])  # fmt: skip
def test_a_url_with_a_secret_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="environment variable") as caught:
        checked_url("phoenix", url)
    assert "sk-1" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "host:6006", "ftp://host", "http://", "http://[", "http://host:x"])
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(UsageError, match="is no URL"):
        checked_url("phoenix", url)


def test_secrets() -> None:
    assert checked_url("phoenix", "https://host:6006/path/") == "https://host:6006/path"
    assert secret("phoenix", "api_key_env", "KEY", {"KEY": f"{KEY}\n"}) == KEY
    assert basic("a", "b") == {"Authorization": "Basic YTpi"}
    for variable, environ, words in [
        (KEY, {}, "is no name of an environment variable"),
        ("ABSENT", {}, r"\$ABSENT, which is not set"),
        ("KEY", {"KEY": " "}, "not set"),
        ("KEY", {"KEY": f"{KEY}\x01"}, "characters that no key has"),
    ]:
        with pytest.raises(UsageError, match=words) as caught:
            secret("phoenix", "api_key_env", variable, environ)
        assert KEY not in str(caught.value)


def test_a_change_says_what_the_server_answered() -> None:
    with serve(replies(Reply({"detail": TEXT}, 404))) as server, client(server, []) as asking:
        assert asking.change("PATCH", "/scores/1", {"a": 1}, params={"sync": "true"}, expected={404}).status == 404
        with pytest.raises(SourceError, match="does not exist") as caught:
            asking.change("DELETE", "/scores/1")
    assert TEXT not in str(caught.value)
    assert [(a.method, a.body, a.params) for a in server.asked[:1]] == [("PATCH", {"a": 1}, {"sync": ["true"]})]


def test_a_change_without_an_answer_is_done() -> None:
    with serve(replies(Reply(b"", 204))) as server, client(server, []) as asking:
        assert asking.change("DELETE", "/scores/1") == (204, {})


@pytest.mark.parametrize(("status", "sent"), [(429, 2), (503, 1)])
def test_what_must_not_come_twice_is_only_sent_again_where_it_was_not_done(status: int, sent: int) -> None:
    with serve(replies(Reply({}, status), Reply({"id": "1"}))) as server, client(server, []) as asking:
        if status == 429:
            assert asking.change("POST", "/scores", {}, repeatable=False).data == {"id": "1"}
        else:
            with pytest.raises(ConnectionLostError, match="in 1 try"):
                asking.change("POST", "/scores", {}, repeatable=False)
    assert len(server.asked) == sent
