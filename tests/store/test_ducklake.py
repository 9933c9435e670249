"""A DuckLake: what changed is replaced in one transaction, its past stays, and a catalog's errors hide its password."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import duckdb
import pytest
from conftest import free_port, serving
from kit.relations import write
from kit.stores.postgres import PASSWORD, postgres, psql

from bench.ducklake import attached, measure
from tasks.core.errors import ConnectionLostError, LeadlineError, UsageError
from tasks.core.paths import ObjectUrl
from tasks.core.schemas import JUDGES, NIGHTLY_GROUNDEDNESS, TRACE_SCORES
from tasks.store.ducklake import EXTENSIONS, LOCK, DuckLake
from tasks.store.lake import Lake
from tasks.store.remote.access import attach, installed
from tasks.store.remote.objects import objects
from tasks.store.warehouse import Warehouse

pytestmark = pytest.mark.slow
DAY, NEXT = "2026-11-01", "2026-11-02"
TABLES = {table: table.schema.names for table in (TRACE_SCORES, NIGHTLY_GROUNDEDNESS, JUDGES)}
SCORES = "SELECT trace_id, date::VARCHAR FROM catalog.trace_scores ORDER BY ALL"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as address:
        yield address


@pytest.fixture
def address(server: str, request: pytest.FixtureRequest) -> str:
    """An empty database for each test."""
    name = f"of_{abs(hash(request.node.name))}"
    psql(Path(server.partition("host=")[2]), f"CREATE DATABASE {name}", "postgres")
    return server.replace("/shop?", f"/{name}?")


class Shared:
    """A lake that publishes, and what an analyst sees of it."""

    def __init__(self, root: Path, address: str, data_path: str | None = None, schema: str = "main") -> None:
        self.lake = Lake(root / "lake's")
        self.warehouse = Warehouse(self.lake, root / "leadline.duckdb", "500MB")
        self.place = DuckLake("CATALOG", address, data_path or str(root / "it's data"), schema)
        self.address = address

    def publish(self, tables: Any = TABLES, owner: str = "me") -> int:
        self.warehouse.load()
        with self.warehouse.connect() as connection:
            return self.place.publish(connection, owner, tables)

    def seen(self, sql: str) -> list[tuple[Any, ...]]:
        with attached(self.address) as connection:
            return connection.execute(sql).fetchall()


@pytest.fixture
def shared(tmp_path: Path, address: str) -> Shared:
    return Shared(tmp_path, address)


def test_only_what_changed_is_replaced(shared: Shared) -> None:
    write(shared.lake, TRACE_SCORES, [{"trace_id": "t1", "chunks_unused": ["a", "b"]}], "r", DAY)
    write(shared.lake, TRACE_SCORES, [{"trace_id": "t2"}], "r", NEXT)
    write(shared.lake, TRACE_SCORES, [{"trace_id": "t2"}], "other", NEXT)
    write(shared.lake, JUDGES, [{"judge_version": "j"}])
    assert shared.publish() == 4  # three partitions and the one of a table without partitions
    snapshots = shared.seen("FROM catalog.snapshots()")
    assert shared.publish() == 0
    assert shared.seen("FROM catalog.snapshots()") == snapshots  # nothing was committed either
    write(shared.lake, TRACE_SCORES, [{"trace_id": "t3"}], "r", NEXT, name="q")
    write(shared.lake, JUDGES, [{"judge_version": "k"}])
    assert shared.publish() == 2
    assert shared.seen(SCORES) == [("t1", DAY), ("t2", NEXT), ("t2", NEXT), ("t3", NEXT)]
    assert shared.seen("SELECT judge_version FROM catalog.judges") == [("k",)]
    assert shared.seen("SELECT chunks_unused FROM catalog.trace_scores WHERE trace_id = 't1'") == [(["a", "b"],)]
    shared.lake.drop(TRACE_SCORES, "p", "other", NEXT)
    assert shared.publish() == 1
    assert shared.seen("SELECT count(*) FROM catalog.trace_scores WHERE recipe = 'other'") == [(0,)]


@pytest.mark.parametrize("rows", [3, 1_500])  # in the catalog, and in a file
def test_the_past_stays_as_it_was(shared: Shared, rows: int) -> None:
    # A mean of 50 is published; then, of the same night, one of 70.
    mean = "SELECT avg(groundedness_score) FROM catalog.trace_scores"
    for score in (50.0, 70.0):
        given = [{"trace_id": f"t{i}", "groundedness_score": score} for i in range(rows)]
        write(shared.lake, TRACE_SCORES, given, "r", DAY)
        assert shared.publish() == 1
    (first, *_, last) = shared.seen("SELECT snapshot_time::VARCHAR FROM catalog.snapshots() ORDER BY snapshot_id")
    assert shared.seen(mean) == [(70.0,)]
    assert shared.seen(f"{mean} AT (TIMESTAMP => TIMESTAMPTZ '{last[0]}')") == [(70.0,)]
    before = "SELECT max(snapshot_time)::VARCHAR FROM catalog.snapshots() WHERE snapshot_time < TIMESTAMPTZ '{}'"
    ((earlier,),) = shared.seen(before.format(last[0]))
    assert shared.seen(f"{mean} AT (TIMESTAMP => TIMESTAMPTZ '{earlier}')") == [(50.0,)]
    assert first[0] < earlier < last[0]


def test_an_interrupted_publication_shows_nothing_of_itself(shared: Shared) -> None:
    write(shared.lake, TRACE_SCORES, [{"trace_id": "t1"}], "r", DAY)
    assert shared.publish() == 1
    write(shared.lake, TRACE_SCORES, [{"trace_id": "t2"}], "r", DAY)
    write(shared.lake, JUDGES, [{"judge_version": "j"}])
    with pytest.raises(LeadlineError):  # the second table fails after the first was replaced
        shared.publish({**TABLES, JUDGES: ["judge_version", "no_such_column"]})
    assert shared.seen(SCORES) == [("t1", DAY)]
    assert shared.publish() == 2
    assert shared.seen(SCORES) == [("t2", DAY)]


def test_a_table_follows_its_columns(shared: Shared) -> None:
    write(shared.lake, TRACE_SCORES, [{"trace_id": "t1", "app": "docs", "environment": "test"}], "r", DAY)
    before = [name for name in TRACE_SCORES.schema.names if name not in ("app", "date")] + ["date"]
    assert shared.publish({TRACE_SCORES: before}) == 1
    now = [name for name in TRACE_SCORES.schema.names if name != "environment"]
    assert shared.publish({TRACE_SCORES: now}) == 1  # its rows come again, with the new column
    assert shared.seen("SELECT app, trace_id FROM catalog.trace_scores") == [("docs", "t1")]
    assert "environment" not in {column[0] for column in shared.seen("DESCRIBE catalog.trace_scores")}
    assert shared.publish({TRACE_SCORES: now}) == 0


def test_another_lake_needs_another_schema(shared: Shared, tmp_path: Path) -> None:
    write(shared.lake, TRACE_SCORES, [{"trace_id": "t1"}], "r", DAY)
    shared.publish()
    with pytest.raises(UsageError, match=r"another lake publishes into \"main\"\. Set another `ducklake\.schema_"):
        shared.publish(owner="another")
    other = Shared(tmp_path / "other", shared.address, str(tmp_path / "it's data"), schema="other")
    write(other.lake, TRACE_SCORES, [{"trace_id": "t2"}], "r", DAY)
    assert other.publish(owner="another") == 1
    assert shared.seen(SCORES) == [("t1", DAY)]
    assert shared.seen("SELECT trace_id FROM catalog.other.trace_scores") == [("t2",)]


@pytest.mark.parametrize(
    ("change", "kind", "problem"),
    [
        ((PASSWORD, "wrong-pw"), UsageError, "does not accept the user or the password. Correct the variable."),
        (("?host", "x?host"), UsageError, "does not exist on that server. Create the database"),
        (("host=/", "host=/nowhere/"), ConnectionLostError, "does not answer. Start the database"),
        (("postgresql://", "mysql://"), UsageError, "is not the address of a catalog. Use one like postgresql://"),
    ],
)
def test_errors_of_the_catalog_hide_its_address(
    tmp_path: Path, address: str, change: tuple[str, str], kind: type[LeadlineError], problem: str
) -> None:
    with pytest.raises(kind) as raised:
        Shared(tmp_path, address.replace(*change)).publish()
    assert problem in str(raised.value)
    assert "$CATALOG" in str(raised.value)
    assert not any(part in str(raised.value) for part in (PASSWORD, "wrong-pw", "host=", "leadline:"))


def test_a_catalog_keeps_its_place(shared: Shared, tmp_path: Path) -> None:
    shared.publish()
    moved = Shared(tmp_path, shared.address, str(tmp_path / "elsewhere"))
    with pytest.raises(UsageError, match=r"keeps its files elsewhere\. Correct `ducklake\.data_path`\."):
        moved.publish()


def test_files_on_s3(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    for name, value in {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "se'cret", "AWS_ENDPOINT_URL": url,
                        "AWS_DEFAULT_REGION": "us-east-1"}.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with serving(command, f"{url}/moto-api/", tmp_path / "log", os.environ):
        client = boto3.client("s3", endpoint_url=url)
        shared = Shared(tmp_path, address, "s3://analytics/leadline/")
        given = [{"trace_id": f"t{i}"} for i in range(1_500)]
        write(shared.lake, TRACE_SCORES, given, "r", DAY)
        with pytest.raises(LeadlineError, match=r"^s3://analytics/leadline/: can't be written"):  # there is no bucket
            shared.publish()
        client.create_bucket(Bucket="analytics")
        assert shared.publish() == 1
        (stored,) = client.list_objects_v2(Bucket="analytics")["Contents"]
        assert stored["Key"].startswith(f"leadline/main/trace_scores/date={DAY}/")


def test_files_on_azure(tmp_path: Path, address: str, container: ObjectUrl) -> None:
    shared = Shared(tmp_path, address, f"{container}/")
    write(shared.lake, TRACE_SCORES, [{"trace_id": f"t{i}"} for i in range(1_500)], "r", DAY)
    assert shared.publish() == 1
    assert list(objects.__wrapped__(container).keys("main/trace_scores", 1, (DAY, DAY)))
    write(shared.lake, TRACE_SCORES, [{"trace_id": "t"}], "r", DAY)  # what is in the file there is replaced
    assert shared.publish() == 1
    with duckdb.connect() as connection:
        attach(connection, container.url)
        for extension in EXTENSIONS:
            connection.execute(f"LOAD '{installed(extension, LOCK)}'")
        connection.execute(f"ATTACH 'ducklake:postgres:{address}' AS catalog (READ_ONLY)")
        assert connection.execute("SELECT trace_id FROM catalog.trace_scores").fetchall() == [("t",)]


def test_readers_see_whole_nights(tmp_path: Path, address: str) -> None:
    seconds, seen = measure(address, str(tmp_path / "data"), readers=2, nights=4, traces=150, claims=8)
    assert len(seconds) == 4
    for reader in seen:
        assert not reader.errors
        assert (reader.torn, reader.nights) == (0, 4)
