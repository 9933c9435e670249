"""Which files a source has, and what happens when one can't be read."""

import gzip
import http.server
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import boto3
import pytest
import zstandard
from s3fs import S3FileSystem

from tasks.core.errors import SourceError
from tasks.sources import Source, SourceFile, load

DAY = date(2026, 11, 1)
SECRET = "zebra-crossing"


def rows(*ids: str) -> bytes:
    """One good line for each id."""
    trace = {"timestamp": "2026-11-01T10:00:00Z", "app": "a", "generator": "g", "question": SECRET, "answer": SECRET}
    return b"".join(json.dumps({"trace_id": i, **trace}).encode() + b"\n" for i in ids)


def source(base: Path, *paths: str, **options: object) -> Source:
    return load({"kind": "jsonl", "paths": list(paths), "storage_options": options}, "nightly.yaml", base)


def names(found: list[SourceFile]) -> list[str]:
    return [f.path for f in found]


def ids(of: Source, path: str) -> list[str]:
    return [i for batch in of.read(SourceFile(path, "")) for i in batch.table["trace_id"].to_pylist()]


def complaint(call: Callable[[], object]) -> str:
    with pytest.raises(SourceError) as caught:
        call()
    message = str(caught.value)
    assert "Traceback" not in message
    assert "\n" not in message
    assert SECRET not in message
    return message


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A config directory beside a directory of logs."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "logs" / "sub.jsonl").mkdir(parents=True)
    for name in ("b.jsonl", "a.jsonl", "c.txt", "n-2026-11-01.jsonl", "n-2026-11-03.jsonl", "sub.jsonl/d.jsonl"):
        (tmp_path / "logs" / name).write_bytes(rows(name))
    return tmp_path / "configs"


def test_relative_paths_start_at_the_config(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    found = source(logs, "../logs/[ab].jsonl", "./../logs/c.txt").files(DAY, DAY)
    assert names(found) == ["../logs/a.jsonl", "../logs/b.jsonl", "../logs/c.txt"]
    assert ids(source(logs, "x"), "../logs/b.jsonl") == ["b.jsonl"]


def test_relative_base(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(logs.parent)
    relative = source(Path("configs"), "../logs/a*.jsonl")
    assert names(relative.files(DAY, DAY)) == ["../logs/a.jsonl"]
    assert ids(relative, "../logs/a.jsonl") == ["a.jsonl"]


def test_absolute_paths_stay_absolute(logs: Path) -> None:
    absolute = str(logs.parent / "logs" / "a.jsonl")
    assert names(source(logs, absolute).files(DAY, DAY)) == [absolute]
    assert ids(source(logs, absolute), absolute) == ["a.jsonl"]


def test_globs_pass_over_directories_and_find_deep_files(logs: Path) -> None:
    found = names(source(logs, "../logs/s*.jsonl", "../logs/**/d.jsonl").files(DAY, DAY))
    assert found == ["../logs/sub.jsonl/d.jsonl"]


def test_a_file_named_twice_is_read_once(logs: Path) -> None:
    twice = source(logs, "../logs/a.jsonl", "../logs/*.txt", "../logs/[ac].*", str(logs.parent / "logs" / "a.jsonl"))
    assert len(twice.files(DAY, DAY)) == 2


def test_base_with_wildcard_characters(tmp_path: Path) -> None:
    odd = tmp_path / "run[1]*"
    odd.mkdir()
    (odd / "a.jsonl").write_bytes(rows("x"))
    assert names(source(odd, "*.jsonl").files(DAY, DAY)) == ["a.jsonl"]
    assert names(source(odd, "a.jsonl").files(DAY, DAY)) == ["a.jsonl"]


def test_dated_paths_take_the_days_that_are_there(logs: Path) -> None:
    found = source(logs, "../logs/n-{date}.jsonl").files(DAY, date(2026, 11, 3))
    assert names(found) == ["../logs/n-2026-11-01.jsonl", "../logs/n-2026-11-03.jsonl"]
    assert source(logs, "../logs/n-{date}.jsonl").files(date(2026, 12, 1), date(2026, 12, 2)) == []


@pytest.mark.parametrize(
    "paths", [("../logs/n-{date}.jsonl", "../logs/*.jsonl"), ("../logs/*.jsonl", "../logs/n-{date}.jsonl")]
)
def test_a_file_knows_the_day_in_its_path_whoever_else_names_it(logs: Path, paths: tuple[str, str]) -> None:
    found = {f.path: f.day for f in source(logs, *paths).files(DAY, date(2026, 11, 3))}
    assert found == {
        "../logs/a.jsonl": None,
        "../logs/b.jsonl": None,
        "../logs/n-2026-11-01.jsonl": date(2026, 11, 1),
        "../logs/n-2026-11-03.jsonl": date(2026, 11, 3),
    }


@pytest.mark.parametrize("path", ["../logs/none*.jsonl", "../nowhere/*.jsonl", "../nowhere/{date}.jsonl"])
def test_a_night_without_logs_is_no_error(logs: Path, path: str) -> None:
    assert source(logs, path).files(DAY, DAY) == []


def test_missing_file(logs: Path) -> None:
    message = complaint(lambda: source(logs, "../logs/none.jsonl").files(DAY, DAY))
    assert message.startswith("../logs/none.jsonl does not exist. Correct `paths`")
    assert "does not exist" in complaint(lambda: ids(source(logs, "x"), "../logs/none.jsonl"))


def test_directory_as_file(logs: Path) -> None:
    assert "is a directory. Name the files in it" in complaint(lambda: source(logs, "../logs").files(DAY, DAY))


def test_unknown_protocol(tmp_path: Path) -> None:
    assert "Protocol not known: foo" in complaint(lambda: source(tmp_path, "foo://x/*.jsonl").files(DAY, DAY))


def test_links_are_read_as_what_they_lead_to(tmp_path: Path) -> None:
    """As log rotation by links leaves them; a change of the target is another state."""
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "a.log"
    target.write_bytes(rows("t1"))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").symlink_to(target)
    (tmp_path / "logs" / "folder.jsonl").symlink_to(target.parent)
    for path in ("logs/*.jsonl", "logs/a.jsonl"):
        of = source(tmp_path, path)
        (before,) = of.files(DAY, DAY)
        assert before.path == "logs/a.jsonl"
        assert ids(of, before.path) == ["t1"]
        target.write_bytes(target.read_bytes() + rows("t2"))
        assert of.files(DAY, DAY)[0].fingerprint != before.fingerprint
        target.write_bytes(rows("t1"))


@pytest.mark.parametrize("path", ["logs/*.jsonl", "logs/odd.jsonl"])
def test_what_is_no_file_is_named(tmp_path: Path, path: str) -> None:
    (tmp_path / "logs").mkdir()
    odd = tmp_path / "logs" / "odd.jsonl"
    os.mkfifo(odd)
    message = complaint(lambda: source(tmp_path, path).files(DAY, DAY))
    assert message.endswith("odd.jsonl is neither a file nor a directory. Leave it out of `paths`.")
    odd.unlink()
    odd.symlink_to(tmp_path / "gone")
    assert "does not exist" in complaint(lambda: source(tmp_path, path).files(DAY, DAY))


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl")).write_bytes(rows("t1"))
    message = complaint(lambda: source(tmp_path, "*.jsonl").files(DAY, DAY))
    assert message.endswith("caf\\xe9.jsonl: the name of the file is not UTF-8. Rename it, or leave it out of `paths`.")


def test_fingerprint_follows_size_and_time(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"

    def fingerprint(data: bytes, time: int) -> str:
        path.write_bytes(data)
        os.utime(path, (time, time))
        (found,) = source(tmp_path, "a.jsonl").files(DAY, DAY)
        return found.fingerprint

    states = [(b"1", 1), (b"2", 1), (b"11", 1), (b"1", 2), (b"1", 1)]
    prints = [fingerprint(*state) for state in states]
    assert prints[0] == prints[1] == prints[4]  # same size, same time: indistinguishable
    assert len(set(prints)) == 3


@pytest.fixture
def powerless() -> Iterator[None]:
    """Root may read everything: be somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def forbidden(tmp_path: Path) -> Iterator[Path]:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "a.jsonl").write_bytes(rows("x"))
    (tmp_path / "b.jsonl").write_bytes(rows("x"))
    (tmp_path / "b.jsonl").chmod(0)
    closed.chmod(0)
    yield tmp_path
    closed.chmod(0o700)


@pytest.mark.parametrize("path", ["closed/*.jsonl", "closed/a.jsonl", "closed/{date}.jsonl"])
def test_permission_denied_to_list(forbidden: Path, powerless: None, path: str) -> None:
    assert "permission denied. Give the user" in complaint(lambda: source(forbidden, path).files(DAY, DAY))


def test_permission_denied_to_read(forbidden: Path, powerless: None) -> None:
    assert "b.jsonl may not be read" in complaint(lambda: ids(source(forbidden, "x"), "b.jsonl"))


PACKED: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": zstandard.compress}


@pytest.mark.parametrize("suffix", PACKED)
def test_compressed_files(tmp_path: Path, suffix: str) -> None:
    """Also several members or frames in a row, as appending loggers write them, one of them empty."""
    pack = PACKED[suffix]
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(pack(rows("a", "b")) + pack(b"") + pack(rows("c")))
    assert ids(source(tmp_path, "x"), path.name) == ["a", "b", "c"]


def test_zstd_written_as_a_stream(tmp_path: Path) -> None:
    writer = zstandard.ZstdCompressor().compressobj()  # such frames don't say how long their content is
    (tmp_path / "a.jsonl.zst").write_bytes(writer.compress(rows("a", "b")) + writer.flush())
    assert ids(source(tmp_path, "x"), "a.jsonl.zst") == ["a", "b"]


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("harm", ["last byte", "half", "second part", "no compression", "rest"])
def test_damaged_compressed_file(tmp_path: Path, suffix: str, harm: str) -> None:
    pack = PACKED[suffix]
    whole = pack(rows(*map(str, range(200))))
    data = {
        "last byte": whole[:-1],
        "half": whole[: len(whole) // 2],
        "second part": whole + whole[:-9],
        "no compression": rows("a"),
        "rest": whole + b"other bytes",
    }[harm]
    (tmp_path / f"a.jsonl.{suffix}").write_bytes(data)
    message = complaint(lambda: ids(source(tmp_path, "x"), f"a.jsonl.{suffix}"))
    assert message.startswith(f"a.jsonl.{suffix} is damaged or was cut off (")
    assert message.endswith("Nothing of it is kept; write it again, or wait until it is complete.")


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    S3FileSystem.clear_instance_cache()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    yield
    S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(s3_server: str, credentials: None) -> str:
    """URL of the server, which holds three objects."""
    client = boto3.client("s3", endpoint_url=s3_server)
    client.create_bucket(Bucket="traces")
    for key, data in {
        "logs/2026-11-01/a.jsonl.gz": gzip.compress(rows("a", "b")),
        "logs/2026-11-02/b.jsonl.gz": gzip.compress(rows("c")),
        "logs/2026-11-02/cut.jsonl.zst": zstandard.compress(rows(*map(str, range(100))))[:-5],
    }.items():
        client.put_object(Bucket="traces", Key=key, Body=data)
    return s3_server


def test_s3_glob(bucket: str, tmp_path: Path) -> None:
    remote = source(tmp_path, "s3://traces/logs/*/*.jsonl.gz", endpoint_url=bucket)
    found = remote.files(DAY, DAY)
    assert names(found) == ["s3://traces/logs/2026-11-01/a.jsonl.gz", "s3://traces/logs/2026-11-02/b.jsonl.gz"]
    assert [ids(remote, f.path) for f in found] == [["a", "b"], ["c"]]


def test_s3_dated_path(bucket: str, tmp_path: Path) -> None:
    remote = source(tmp_path, "s3://traces/logs/{date}/*.gz", endpoint_url=bucket)
    assert names(remote.files(date(2026, 11, 2), date(2026, 11, 5))) == ["s3://traces/logs/2026-11-02/b.jsonl.gz"]
    assert remote.files(date(2026, 12, 1), date(2026, 12, 1)) == []


def test_s3_sees_objects_that_came_later_and_new_content(bucket: str, tmp_path: Path) -> None:
    client = boto3.client("s3", endpoint_url=bucket)
    remote = source(tmp_path, "s3://traces/later/*", endpoint_url=bucket)
    assert remote.files(DAY, DAY) == []
    client.put_object(Bucket="traces", Key="later/x.jsonl", Body=rows("a"))
    (first,) = remote.files(DAY, DAY)
    client.put_object(Bucket="traces", Key="later/x.jsonl", Body=rows("b"))  # as many bytes, in the same second
    (second,) = remote.files(DAY, DAY)
    assert first.path == second.path
    assert first.fingerprint != second.fingerprint
    assert ids(remote, first.path) == ["b"]
    client.delete_object(Bucket="traces", Key="later/x.jsonl")


def test_s3_missing_object(bucket: str, tmp_path: Path) -> None:
    remote = source(tmp_path, "s3://traces/logs/none.jsonl", endpoint_url=bucket)
    assert complaint(lambda: remote.files(DAY, DAY)).startswith("s3://traces/logs/none.jsonl does not exist. ")
    assert "does not exist" in complaint(lambda: ids(remote, "s3://traces/logs/none.jsonl"))


@pytest.mark.parametrize("path", ["s3://nowhere/*.jsonl", "s3://nowhere/a/b-{date}.jsonl", "s3://nowhere/{date}/*"])
def test_s3_missing_bucket(bucket: str, tmp_path: Path, path: str) -> None:
    message = complaint(lambda: source(tmp_path, path, endpoint_url=bucket).files(DAY, DAY))
    assert "there is no bucket 'nowhere'. Correct `paths`" in message


def test_s3_cut_off_object(bucket: str, tmp_path: Path) -> None:
    remote = source(tmp_path, "x", endpoint_url=bucket)
    assert "is damaged or was cut off" in complaint(lambda: ids(remote, "s3://traces/logs/2026-11-02/cut.jsonl.zst"))


def test_s3_without_credentials(s3_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    S3FileSystem.clear_instance_cache()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    message = complaint(lambda: source(tmp_path, "s3://traces/*", endpoint_url=s3_server).files(DAY, DAY))
    assert "needs credentials, and none were found. Set AWS_ACCESS_KEY_ID" in message


def test_s3_connection_refused(credentials: None, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound but not listening: every connection is refused
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        options = {"endpoint_url": url, "config_kwargs": {"retries": {"max_attempts": 1}}}
        message = complaint(lambda: source(tmp_path, "s3://traces/*", **options).files(DAY, DAY))
    assert "can't be reached: the connection failed. Check `endpoint_url`" in message


class _Store(http.server.BaseHTTPRequestHandler):
    """An object store that allows nothing but, if at all, to list buckets, which are empty."""

    may_list = False

    def do_GET(self) -> None:
        name = "ListBucketResult" if self.may_list else "Error"
        body = f"<?xml version='1.0'?><{name}><Code>AccessDenied</Code><KeyCount>0</KeyCount></{name}>".encode()
        self.send_response(200 if self.may_list and self.command == "GET" else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def store(credentials: None, request: pytest.FixtureRequest) -> Iterator[str]:
    """URL of a store that allows listing, or nothing at all."""
    handler = type("Handler", (_Store,), {"may_list": request.param})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("store", [False], indirect=True)
@pytest.mark.parametrize("path", ["s3://traces/*", "s3://traces/a.jsonl", "s3://traces/{date}.jsonl"])
def test_s3_permission_denied(store: str, tmp_path: Path, path: str) -> None:
    remote = source(tmp_path, path, endpoint_url=store)
    assert "may not be read: permission denied" in complaint(lambda: remote.files(DAY, DAY))


@pytest.mark.parametrize("store", [True], indirect=True)
def test_s3_right_to_list_is_enough(store: str, tmp_path: Path) -> None:
    """A key that may list a prefix but not ask for the bucket meets a night without logs: no error."""
    assert source(tmp_path, "s3://traces/logs/*", endpoint_url=store).files(DAY, DAY) == []
