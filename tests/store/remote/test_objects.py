"""Object storage: what a listing is trusted for, copies on this machine, and what happens when the store refuses."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore, S3Store

from tasks.core.errors import DamagedError, LeadlineError, StorageError, UsageError
from tasks.core.paths import ObjectUrl
from tasks.core.schemas import JUDGES
from tasks.store.lake import Lake, Part, from_rows
from tasks.store.remote.objects import Objects, objects


def judge(lake: Lake) -> Part:
    return lake.write(
        JUDGES, "j", from_rows([{"judge_version": "j", "name": "n", "kind": "k", "definition": "{}"}], JUDGES)
    )


class Counting(Objects):
    """Counts the folders that it lists."""

    def __init__(self, place: ObjectUrl, store: MemoryStore) -> None:
        super().__init__(place, store)
        self.listed: list[str] = []

    def _ask(self, folder: str) -> Any:
        self.listed.append(folder)
        return super()._ask(folder)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def held(store: MemoryStore, tmp_path: Path) -> Counting:
    return Counting(ObjectUrl("memory://lake", tmp_path / "cache"), store)


@pytest.fixture
def other(store: MemoryStore, tmp_path: Path) -> Objects:
    """The same place, for another machine."""
    return Objects(ObjectUrl("memory://lake", tmp_path / "other-cache"), store)


class TestListings:
    def test_a_folder_is_listed_once_however_often_it_is_asked_for(self, held: Counting) -> None:
        for day in ("2026-11-01", "2026-11-02"):
            held.put(f"t/v=a/date={day}/p", b"x")
        for _ in range(3):
            assert len(held.keys("t/v=a", 1, ("2026-11-01", "2026-11-02"))) == 2
            assert held.stamp("t/v=a/date=2026-11-01/p")
            assert held.stamp("t/v=a/date=2026-11-01/q") is None
        assert held.listed == ["t/v=a/date=2026-11-01", "t/v=a/date=2026-11-02"]
        assert len(held.keys("t", 2)) == 2
        assert held.stamp("t/v=b/date=2026-11-09/p") is None  # that of the whole table holds for all below
        assert held.listed[2:] == ["t"]

    def test_it_holds_what_this_process_writes_and_removes(self, held: Counting) -> None:
        assert held.keys("t", 0) == []
        held.put("t/a", b"x")
        held.put("t/b", b"x")
        assert held.create("t/c", b"x")
        held.delete("t/b")
        assert held.keys("t", 0) == ["t/a", "t/c"]
        assert held.listed == ["t"]

    def test_what_others_write_is_seen_after_a_refresh(self, held: Counting, other: Objects) -> None:
        assert held.stamp("t/a") is None
        other.put("t/a", b"x")
        assert held.stamp("t/a") is None
        held.refresh()
        assert held.stamp("t/a")
        assert held.stamp("t/a")
        assert held.listed == ["t", "t"]
        other.put("t/b", b"x")
        held.refresh()
        assert held.keys("t", 0) == ["t/a", "t/b"]


class TestCopies:
    def test_a_file_is_fetched_once_for_each_version(self, held: Counting, other: Objects) -> None:
        other.put("t/p.parquet", b"one")
        copy = held.file("t/p.parquet")
        inode = copy.stat().st_ino
        assert held.file("t/p.parquet").stat().st_ino == inode
        other.put("t/p.parquet", b"two")
        held.refresh()
        assert held.file("t/p.parquet").read_bytes() == b"two"
        assert not copy.exists()

    def test_what_another_machine_has_redacted_or_removed_leaves_this_one(self, held: Counting, other: Objects) -> None:
        for name in ("p", "q", "r"):
            held.put(f"t/{name}.parquet", b"secret")
        other.put("t/p.parquet", b"redacted")
        other.delete("t/q.parquet")
        held.refresh()
        assert held.keys("t", 0) == ["t/p.parquet", "t/r.parquet"]
        assert [copy.name.split(".")[0] for copy in held.place.cache.rglob("*.parquet")] == ["r"]

    def test_a_copy_that_is_damaged_is_fetched_again(self, place: ObjectUrl) -> None:
        part = judge(Lake(place))
        part.path.write_bytes(b"PAR1 half")
        assert part.read(["name"])["name"].to_pylist() == ["n"]
        assert part.rows() == 1

    def test_a_file_that_is_damaged_in_the_store_is_named_with_its_remedy(self, place: ObjectUrl) -> None:
        lake = Lake(place)
        part = judge(lake)
        data = part.path.read_bytes()
        lake.storage.put(part.key, data[: len(data) // 2])
        with pytest.raises(DamagedError) as caught:
            part.read()
        assert str(caught.value).startswith(f"{place}/judges/j.parquet: the part")
        assert str(caught.value).endswith(JUDGES.remedy)

    def test_where_no_copy_can_be_kept(self, bucket: ObjectUrl) -> None:
        judge(Lake(bucket))
        (bucket.cache.parent / "file").write_text("in the way")
        elsewhere = Lake(ObjectUrl(bucket.url, bucket.cache.parent / "file"))
        with pytest.raises(LeadlineError, match=r"can't be written \(Not a directory\)\. .* another `lake_cache`"):
            elsewhere.parts(JUDGES)[0].read()


@pytest.mark.parametrize(("kind", "scheme"), [("bucket", "s3"), ("container", "az")])
def test_a_bucket_that_is_not_there(kind: str, scheme: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    request.getfixturevalue(kind)
    none = objects.__wrapped__(ObjectUrl(f"{scheme}://no-such-one/x", tmp_path))
    for ask in (lambda: none.keys("t", 0), lambda: none.put("t/a", b"x"), lambda: none.read(".salt")):
        with pytest.raises(UsageError, match=rf"there is no {kind} 'no-such-one'\. Create it, or correct `lake`"):
            ask()


@contextmanager
def answering(*answers: tuple[int, str, dict[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """A server that gives these answers in turn, the last one again and again; its URL, and what it was asked."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body, headers = answers[min(len(asked), len(answers) - 1)]
            asked.append(f"{self.command} {self.path}")
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        do_GET = do_PUT = do_HEAD = do_POST = answer  # noqa: N815 - so the server calls them

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def refusing(status: int, code: str) -> tuple[int, str, dict[str, str]]:
    return status, f"<Error><Code>{code}</Code><Message>no</Message></Error>" if code else "", {}


def reaching(url: str, tmp_path: Path) -> Objects:
    """A bucket at that server, which is asked three times at most."""
    brief = {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=2), "base": 2}
    store = S3Store(
        "b",
        config={"endpoint": url, "region": "us-east-1", "access_key_id": "a", "secret_access_key": "s"},
        client_options={"allow_http": True},
        retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=30), "backoff": brief},
    )
    return Objects(ObjectUrl("s3://b", tmp_path), store)


DONE = (200, "", {"ETag": '"e"'})


def test_a_store_that_asks_to_slow_down_is_asked_again(tmp_path: Path) -> None:
    slow = refusing(503, "SlowDown")
    with answering(slow, slow, DONE) as (url, asked):
        assert reaching(url, tmp_path).put("t/a", b"x").etag == '"e"'
    assert asked == ["PUT /b/t/a"] * 3


@pytest.mark.parametrize(
    ("status", "code", "kind", "message"),
    [
        (
            503,
            "SlowDown",
            StorageError,
            r"t/a: the store is too busy \(SlowDown\), also after several tries\. Wait, then",
        ),
        (500, "", StorageError, r"the store is too busy \(500\)"),
        (403, "AccessDenied", LeadlineError, "access denied. Grant the access key s3:PutObject here, then run again"),
        (403, "RequestTimeTooSkewed", LeadlineError, r"the store refuses this machine's clock\. Set it .*, then run"),
        (
            403,
            "InvalidAccessKeyId",
            UsageError,
            r"does not accept the credentials \(InvalidAccessKeyId\)\. Correct AWS",
        ),
        (400, "ExpiredToken", UsageError, r"does not accept the credentials \(ExpiredToken\)"),
        (400, "AuthorizationHeaderMalformed", UsageError, "the bucket is in another region. Set AWS_REGION"),
        (
            400,
            "EntityTooLarge",
            LeadlineError,
            r"refuses to write it \(EntityTooLarge\)\. Check `lake` in the config, th",
        ),
    ],
)
def test_what_a_store_refuses_has_a_remedy(
    tmp_path: Path, status: int, code: str, kind: type[LeadlineError], message: str
) -> None:
    with answering(refusing(status, code)) as (url, asked):
        with pytest.raises(LeadlineError, match=message) as caught:
            reaching(url, tmp_path).put("t/a", b"x")
    assert type(caught.value) is kind
    assert str(caught.value).startswith("s3://b/t/a: ")
    assert len(asked) == (3 if status >= 500 else 1)


def test_a_store_that_can_not_be_reached(tmp_path: Path) -> None:
    with answering(DONE) as (url, _):
        pass
    with pytest.raises(
        StorageError, match=r"can't be reached\. Check the network and AWS_ENDPOINT_URL, then run again"
    ):
        reaching(url, tmp_path).read("t/a")
