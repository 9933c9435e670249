"""The warehouse: loads what changed, all of a partition or nothing, and is swapped under its readers."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kit.relations import write
from kit.vanishing import VanishingLake

from tasks.core.errors import DamagedError, LeadlineError, UsageError
from tasks.core.paths import sql_dir
from tasks.core.schemas import (
    CLAIM_RESULTS,
    CLAIMS,
    JUDGES,
    PAIRS,
    QUARANTINE,
    RECIPES,
    RUNS,
    TRACE_SCORES,
    TRACES,
    VERDICTS,
)  # fmt: skip
from tasks.store.lake import Lake, Part
from tasks.store.warehouse import LOADED, VIEWED, Warehouse, query

DAY, NEXT = "2026-11-01", "2026-11-02"
NOW = datetime(2026, 11, 3, 2, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake's")


@pytest.fixture
def warehouse(lake: Lake, tmp_path: Path) -> Warehouse:
    return Warehouse(lake, tmp_path / "out" / "leadline.duckdb", "500MB")


def seen(warehouse: Warehouse, sql: str) -> list[tuple[Any, ...]]:
    with warehouse.connect() as connection:
        return connection.execute(sql).fetchall()


SCORES = "SELECT trace_id, date::VARCHAR FROM trace_scores ORDER BY ALL"


class TestLoad:
    def test_an_empty_lake_gives_every_table_and_view(self, warehouse: Warehouse) -> None:
        assert warehouse.load() == 0
        for table in (*LOADED, *VIEWED):
            (columns,) = [seen(warehouse, f"DESCRIBE {table.name}")]
            assert [c[0] for c in columns] == table.schema.names
            assert seen(warehouse, f"SELECT count(*) FROM {table.name}") == [(0,)]
        for view in ("chunks", "claim_details", "pair_verdicts"):
            assert seen(warehouse, f"SELECT count(*) FROM {view}") == [(0,)]

    def test_only_what_changed_is_loaded(self, lake: Lake, warehouse: Warehouse) -> None:
        write(lake, TRACE_SCORES, [{"trace_id": "t1"}], "r", DAY)
        write(lake, TRACE_SCORES, [{"trace_id": "t2"}], "r", NEXT)
        write(lake, JUDGES, [{"judge_version": "j"}])
        assert warehouse.load() == 3  # two partitions and the one of a table without partitions
        assert warehouse.load() == 0
        write(lake, TRACE_SCORES, [{"trace_id": "t3"}], "r", NEXT, name="q")
        assert warehouse.load() == 1
        assert seen(warehouse, SCORES) == [("t1", DAY), ("t2", NEXT), ("t3", NEXT)]

    def test_a_part_written_again_replaces_its_rows(self, lake: Lake, warehouse: Warehouse) -> None:
        for trace in ("before", "after!"):  # of the same length: the token does not live by the size alone
            write(lake, TRACE_SCORES, [{"trace_id": trace}], "r", DAY)
            assert warehouse.load() == 1
        assert seen(warehouse, SCORES) == [("after!", DAY)]

    def test_another_recipe_of_the_day_stays(self, lake: Lake, warehouse: Warehouse) -> None:
        write(lake, TRACE_SCORES, [{"trace_id": "t"}], "r1", DAY)
        write(lake, TRACE_SCORES, [{"trace_id": "t"}], "r2", DAY)
        warehouse.load()
        write(lake, TRACE_SCORES, [{"trace_id": "u"}], "r2", DAY)
        assert warehouse.load() == 1
        assert seen(warehouse, "SELECT recipe, trace_id FROM trace_scores ORDER BY ALL") == [("r1", "t"), ("r2", "u")]

    def test_a_removed_part_leaves(self, lake: Lake, warehouse: Warehouse) -> None:
        part = write(lake, TRACE_SCORES, [{"trace_id": "t1"}], "r", DAY)
        last = write(lake, JUDGES, [{"judge_version": "j"}])
        warehouse.load()
        part.path.unlink()
        last.path.unlink()
        assert warehouse.load() == 2
        assert seen(warehouse, SCORES) == seen(warehouse, "FROM judges") == []
        assert warehouse.load() == 0

    def test_a_damaged_part_leaves_the_partition_as_it_was(self, lake: Lake, warehouse: Warehouse) -> None:
        write(lake, TRACE_SCORES, [{"trace_id": "t1"}], "r", DAY)
        write(lake, TRACE_SCORES, [{"trace_id": "t2"}], "r", NEXT)
        warehouse.load()
        write(lake, TRACE_SCORES, [{"trace_id": "t3"}], "r", NEXT, name="a")  # a sound part is read before the bad one
        damaged = write(lake, TRACE_SCORES, [{"trace_id": f"t{i}"} for i in range(9)], "r", NEXT, name="z")
        whole = damaged.path.read_bytes()
        damaged.path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(
            DamagedError, match=rf"date={NEXT}/z\.parquet: .* Remove the file and run `leadline nightly`"
        ):
            warehouse.load()
        assert seen(warehouse, SCORES) == [("t1", DAY), ("t2", NEXT)]
        damaged.path.unlink()
        assert warehouse.load() == 1
        assert seen(warehouse, SCORES) == [("t1", DAY), ("t2", NEXT), ("t3", NEXT)]

    def test_damage_in_the_middle_of_a_part(self, lake: Lake, warehouse: Warehouse) -> None:
        # the footer is sound and the rows are not: found only after rows have been deleted and inserted
        part = write(lake, RUNS, [{"run_id": f"r{i}", "notes": [f"note {i}"]} for i in range(5_000)])
        warehouse.load()
        data = bytearray(part.path.read_bytes())
        data[4:2_000] = b"\xff" * 1_996
        part.path.write_bytes(bytes(data))
        with pytest.raises(DamagedError, match=r"runs/p\.parquet: .* restore it from a backup"):
            warehouse.load()
        assert seen(warehouse, "SELECT count(*), count(DISTINCT run_id) FROM runs") == [(5_000, 5_000)]

    @pytest.mark.parametrize("footer", [True, False], ids=["footer", "rows"])
    def test_a_damaged_part_that_a_view_shows(
        self, lake: Lake, warehouse: Warehouse, tmp_path: Path, footer: bool
    ) -> None:
        part = write(lake, VERDICTS, [{"request_key": f"k{i}"} for i in range(5_000)], "j", DAY)
        warehouse.load()
        warehouse.publish()
        data = bytearray(part.path.read_bytes())
        data[4:2_000] = b"\xff" * 1_996
        part.path.write_bytes(bytes(data[:2_000] if footer else data))
        with pytest.raises(DamagedError, match=r"p\.parquet: .* Remove the file and run `leadline nightly`"):
            with warehouse.connect() as connection:
                connection.execute("SELECT max(request_key) FROM verdicts").fetchall()
        if footer:  # a query of the published file reads no more than it has to, and names the part if it is not one
            with pytest.raises(DamagedError, match=r"p\.parquet: .* Remove the file and run `leadline nightly`"):
                query(tmp_path / "out" / "leadline.duckdb", "SELECT max(request_key) FROM verdicts")

    def test_a_part_that_can_not_be_loaded_and_is_not_damaged(self, lake: Lake, warehouse: Warehouse) -> None:
        part = write(lake, JUDGES, [{"judge_version": "j"}])
        pq.write_table(pa.table({"judge_version": ["j"], "secret": ["x"]}), part.path)
        with pytest.raises(LeadlineError, match=r"judges: can't be loaded .* Run `leadline rebuild`\."):
            warehouse.load()

    def test_a_damaged_private_file_is_made_again(self, lake: Lake, warehouse: Warehouse) -> None:
        write(lake, TRACE_SCORES, [{"trace_id": "t1"}], "r", DAY)
        warehouse.load()
        (lake.root / ".warehouse" / "leadline.duckdb").write_bytes(b"no database" * 1_000)
        assert warehouse.load() == 1
        assert seen(warehouse, SCORES) == [("t1", DAY)]

    def test_a_rebuild_equals_what_was_loaded_bit_by_bit(
        self, lake: Lake, warehouse: Warehouse, tmp_path: Path
    ) -> None:
        a_small_lake(lake)
        warehouse.load()
        write(lake, TRACE_SCORES, [{"trace_id": "t1", "claims_total": 7}], "r", DAY)
        write(lake, TRACE_SCORES, [{"trace_id": "t9"}], "r", NEXT, name="late")
        warehouse.load()
        fresh = Warehouse(lake, tmp_path / "fresh.duckdb", "500MB")
        tables = [t.name for t in (*LOADED, *VIEWED)] + ["chunks", "current_claim_details", "pair_verdicts"]
        before = {t: sorted(map(repr, seen(warehouse, f"FROM {t}"))) for t in tables}
        partitions = len({(t.name, p.partition) for t in LOADED for p in lake.parts(t)})
        assert fresh.load(rebuild=True) == partitions
        assert {t: sorted(map(repr, seen(fresh, f"FROM {t}"))) for t in tables} == before
        assert before["trace_scores"]


class TestPublish:
    def test_an_open_reader_keeps_the_old_file_and_the_next_one_sees_the_new(
        self, lake: Lake, warehouse: Warehouse, tmp_path: Path
    ) -> None:
        target = tmp_path / "out" / "leadline.duckdb"
        write(lake, TRACE_SCORES, [{"trace_id": "old"}], "r", DAY)
        warehouse.load()
        warehouse.publish()
        with duckdb.connect(target, read_only=True) as reader:
            write(lake, TRACE_SCORES, [{"trace_id": "new"}], "r", DAY)
            warehouse.load()
            assert query(target, "SELECT trace_id FROM trace_scores").to_pylist() == [{"trace_id": "old"}]
            inode = target.stat().st_ino
            warehouse.publish()
            assert target.stat().st_ino != inode  # put in its place, not written over
            assert reader.execute("SELECT trace_id FROM trace_scores").fetchall() == [("old",)]
        assert query(target, "SELECT trace_id FROM trace_scores").to_pylist() == [{"trace_id": "new"}]
        assert list(target.parent.iterdir()) == [target]

    def test_the_copy_of_a_killed_run_is_cleared(self, warehouse: Warehouse, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        for name in (".leadline.duckdb.0f.tmp", ".other.duckdb.0f.tmp"):
            (tmp_path / "out" / name).write_bytes(b"half")
        warehouse.load()
        warehouse.publish()
        assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [".other.duckdb.0f.tmp", "leadline.duckdb"]

    @pytest.mark.parametrize("blocked", ["out", "out/leadline.duckdb/x"])
    def test_a_place_that_can_not_be_written(self, warehouse: Warehouse, tmp_path: Path, blocked: str) -> None:
        path = tmp_path / blocked  # a file where the directory belongs; a directory where the file does
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("in the way")
        warehouse.load()
        with pytest.raises(LeadlineError, match=r"leadline\.duckdb: can't be published \(.+\)\. Free space"):
            warehouse.publish()
        assert not list(tmp_path.rglob("*.tmp"))

    def test_the_views_still_read_the_lake_from_another_directory(
        self, lake: Lake, warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a_small_lake(lake)
        warehouse.load()
        warehouse.publish()
        monkeypatch.chdir("/")
        found = query(tmp_path / "out" / "leadline.duckdb", "SELECT count(*) AS n FROM traces")
        assert found.to_pylist() == [{"n": 2}]


class TestQuery:
    @pytest.fixture
    def published(self, warehouse: Warehouse, tmp_path: Path) -> Path:
        warehouse.load()
        warehouse.publish()
        return tmp_path / "out" / "leadline.duckdb"

    def test_before_the_first_night(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"w\.duckdb: there is no warehouse yet\. Run `leadline nightly`"):
            query(tmp_path / "w.duckdb", "SELECT 1")

    @pytest.mark.parametrize(
        "sql", ["SELECT nothing FROM judges", "SELEC 1", "FROM nowhere", "", " -- only a comment", "DELETE FROM judges"]
    )
    def test_a_wrong_statement_is_the_users_mistake(self, published: Path, sql: str) -> None:
        with pytest.raises(UsageError):
            query(published, sql)

    def test_it_is_offline_too(self, published: Path) -> None:
        found = query(published, "SELECT current_setting('autoinstall_known_extensions') AS a").to_pylist()
        assert found == [{"a": False}]
        with pytest.raises(UsageError):
            query(published, "FROM 'https://localhost:1/x.parquet'")

    def test_times_are_shown_in_utc(self, published: Path) -> None:
        found = query(published, "SELECT '2026-11-01 12:00:00+02'::TIMESTAMPTZ::VARCHAR AS t").to_pylist()
        assert found == [{"t": "2026-11-01 10:00:00+00"}]


def a_small_lake(lake: Lake) -> None:
    """Two traces, the first with two claims of one recipe; the first claim has three pairs, one of them judged twice."""
    chunk = {"doc_id": None, "title": None, "rank": None, "retrieval_score": None}
    chunks = [chunk | {"chunk_id": "b", "text": "Second."}, chunk | {"chunk_id": "a", "text": "First."}]
    traces = [
        {"trace_id": "t1", "app": "shop", "generator": "g", "question": "Why?", "chunks": chunks},
        {"trace_id": "t2"},
    ]
    write(lake, TRACES, traces, DAY)
    claims = [
        {"claim_id": c, "trace_id": "t1", "ordinal": i, "text": f"Claim {c}."} for i, c in enumerate(["c1", "c2"])
    ]
    write(lake, CLAIMS, claims, "x", DAY)
    write(lake, RECIPES, [{"recipe": "r", "judge_version": "j"}])
    windows = [[("b", 0, 7)], [("a", 0, 6)], [("b", 0, 7), ("a", 0, 6)]]
    evidence = [[{"chunk_id": c, "start": s, "end": e} for c, s, e in w] for w in windows]
    pairs = [
        {"claim_id": "c1", "trace_id": "t1", "pair_kind": "single", "evidence": evidence[i], "request_key": f"k{i}"}
        for i in (0, 1)
    ]
    pairs.append(
        {"claim_id": "c1", "trace_id": "t1", "pair_kind": "joint", "evidence": evidence[2], "request_key": "k2"}
    )
    write(lake, PAIRS, pairs, "r", DAY)
    verdicts = [
        {"request_key": "k0", "failure": "unparsable"},
        {"request_key": "k0", "label": "supported", "p_supported": 0.9},  # repaired later
        {"request_key": "k1", "label": "unsupported", "p_supported": 0.1},
    ]  # fmt: skip
    write(lake, VERDICTS, verdicts, "j", DAY)
    write(lake, VERDICTS, [{"request_key": "k1", "label": "supported"}], "other", DAY)
    results = [
        {"claim_id": "c1", "trace_id": "t1", "label": "supported", "deciding_chunk_id": "b"},
        {"claim_id": "c2", "trace_id": "t1", "status": "na"},
    ]
    write(lake, CLAIM_RESULTS, results, "r", DAY)
    write(lake, TRACE_SCORES, [{"trace_id": "t1"}, {"trace_id": "t2"}], "r", DAY)


class TestViews:
    @pytest.fixture(autouse=True)
    def loaded(self, lake: Lake, warehouse: Warehouse) -> None:
        a_small_lake(lake)
        warehouse.load()

    def test_chunks_in_the_order_of_the_trace(self, warehouse: Warehouse) -> None:
        found = seen(warehouse, "SELECT trace_id, app, position, chunk_id, text FROM chunks ORDER BY position")
        assert found == [("t1", "shop", 0, "b", "Second."), ("t1", "shop", 1, "a", "First.")]

    def test_claims_with_the_text_of_the_chunk_that_decided(self, warehouse: Warehouse) -> None:
        found = seen(
            warehouse,
            "SELECT claim_id, ordinal, text, question, label, deciding_chunk_text FROM claim_details ORDER BY ordinal",
        )
        assert found == [("c1", 0, "Claim c1.", "Why?", "supported", "Second."), ("c2", 1, "Claim c2.", "Why?", None, None)]  # fmt: skip

    def test_pairs_with_the_verdict_of_the_recipes_judge(self, warehouse: Warehouse) -> None:
        found = seen(
            warehouse,
            "SELECT request_key, chunk_ids, judge_version, label, failure, p_supported FROM pair_verdicts ORDER BY 1",
        )
        assert found == [
            ("k0", ["b"], "j", "supported", None, 0.9),  # the label, not the failure before it
            ("k1", ["a"], "j", "unsupported", None, 0.1),  # not the verdict of another judge
            ("k2", ["b", "a"], "j", None, None, None),  # not judged yet, and shown all the same
        ]  # fmt: skip

    def test_every_view_is_a_file(self) -> None:
        found = {p.stem for p in (sql_dir() / "views").glob("*.sql")}
        assert found == {
            "chunks",
            "claim_details",
            "latest_feedback",
            "main_recipes",
            "pair_verdicts",
            "question_repeats",
            "reviewed_claims",
            "reviewed_grades",
            "trace_numbers",
        }


def _without(part: Part, *columns: str) -> None:
    """The part as a version before these columns wrote it."""
    pq.write_table(pq.ParquetFile(part.path).read().drop_columns(list(columns)), part.path)


class TestGrowth:
    """A lake outlives the schemas: parts that lack what came later are read beside those that have it."""

    def test_a_view_shows_old_and_new_rows(self, lake: Lake, warehouse: Warehouse, tmp_path: Path) -> None:
        _without(write(lake, VERDICTS, [{"request_key": "old"}], "j", DAY), "passages", "tokens_cached")
        warehouse.load()
        warehouse.publish()
        sql = "SELECT request_key, passages, tokens_cached FROM verdicts ORDER BY 1"
        found = tmp_path / "out" / "leadline.duckdb"
        assert query(found, sql).to_pylist() == [{"request_key": "old", "passages": None, "tokens_cached": None}]
        write(lake, VERDICTS, [{"request_key": "new", "passages": [2], "tokens_cached": 5}], "j", NEXT)
        warehouse.load()
        warehouse.publish()
        assert query(found, sql).to_pylist() == [
            {"request_key": "new", "passages": [2], "tokens_cached": 5},
            {"request_key": "old", "passages": None, "tokens_cached": None},
        ]

    def test_a_table_is_loaded_anew_when_it_has_grown(self, lake: Lake, warehouse: Warehouse, tmp_path: Path) -> None:
        write(lake, CLAIM_RESULTS, [{"claim_id": "new", "stage": 2}], "r", NEXT)
        _without(write(lake, CLAIM_RESULTS, [{"claim_id": "old"}], "q", DAY), "stage", "stage_asked")
        with warehouse.connect() as connection:  # as an earlier version left it
            connection.execute(
                "CREATE TABLE _loaded (relation VARCHAR, partition VARCHAR, token VARCHAR, PRIMARY KEY (relation, partition))"
            )
            connection.execute("CREATE TABLE claim_results (claim_id VARCHAR)")
            connection.execute("INSERT INTO _loaded VALUES ('claim_results', 'gone', 't')")
        assert warehouse.load() == 2
        warehouse.publish()
        found = query(tmp_path / "out" / "leadline.duckdb", "SELECT claim_id, stage FROM claim_results ORDER BY 1")
        assert found.to_pylist() == [{"claim_id": "new", "stage": 2}, {"claim_id": "old", "stage": None}]
        assert warehouse.load() == 0

    def test_a_struct_grows_too(self, lake: Lake, warehouse: Warehouse, tmp_path: Path) -> None:
        new = {"stage": "verdicts", "seconds": 1.0, "computed": 2, "reused": 0, "tokens_in": 7, "gpus": 1}
        write(lake, RUNS, [{"run_id": "new", "stages": [new]}], name="b")
        old = write(lake, RUNS, [{"run_id": "old"}], name="a")
        kind = pa.list_(pa.struct([("stage", pa.string()), ("tokens", pa.int64())]))
        table = old.read().drop_columns(["stages", "tokens_cached"])
        pq.write_table(table.append_column("stages", pa.array([[{"stage": "ingest", "tokens": 3}]], kind)), old.path)
        warehouse.load()
        warehouse.publish()
        sql = "SELECT run_id, stages[1].stage AS stage, stages[1].tokens_in AS tokens FROM runs ORDER BY 1"
        assert query(tmp_path / "out" / "leadline.duckdb", sql).to_pylist() == [
            {"run_id": "new", "stage": "verdicts", "tokens": 7}, {"run_id": "old", "stage": "ingest", "tokens": None},
        ]  # fmt: skip


@pytest.mark.parametrize("when", ["listed", "stamped"])
def test_a_part_that_another_writer_removes_meanwhile_is_left_out(lake: Lake, tmp_path: Path, when: str) -> None:
    """A backfill takes back a part of `quarantine`: once its path is known, or once its time is read as well."""
    for name in ("gone", "stays"):
        write(lake, QUARANTINE, [{"source": name}], name=name)
    vanishing = VanishingLake(lake.root, **{when: ["gone"]})
    warehouse = Warehouse(vanishing, tmp_path / "leadline.duckdb", "500MB")
    assert warehouse.load() == 1
    with warehouse.connect() as connection:
        assert connection.execute("SELECT source FROM quarantine").fetchall() == [("stays",)]
    assert warehouse.load() == 0  # what is loaded is what is there
