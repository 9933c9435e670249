"""Queries: SQL files over parts or rows, with columns even where there are no rows, and never over the network."""

import re
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.core.errors import DamagedError, UsageError
from tasks.core.schemas import RELEVANCE
from tasks.store import query
from tasks.store.lake import Lake, check, from_rows
from tasks.store.query import Queries

BASE = {"scorer_version": "v", "date": None, "kind": "answer", "method": "embedding", "tokens_in": 1}


def part_of(folder: Path, *traces: str):
    from datetime import date  # noqa: PLC0415

    rows = from_rows([BASE | {"date": date(2026, 11, 1), "trace_id": t, "score": 0.5} for t in traces], RELEVANCE)
    return Lake(folder).write(RELEVANCE, "p", rows, "v", "2026-11-01")


@pytest.fixture
def queries(tmp_path: Path):
    with Queries("500MB", tmp_path / "scratch") as opened:
        yield opened


def test_a_relation_without_parts_has_the_tables_columns(queries: Queries) -> None:
    text = "SELECT * FROM relevance"
    found = queries.select(text, {"relevance": []})
    assert found.num_rows == 0
    assert found.schema.names == RELEVANCE.schema.names


@pytest.mark.parametrize("folder", ["plain", "it's", 'a "b"', "semi;colon", "[x]*", "café 茶"])
def test_any_path_can_hold_a_lake(tmp_path: Path, queries: Queries, folder: str) -> None:
    text = "SELECT trace_id FROM relevance ORDER BY trace_id"
    parts = [part_of(tmp_path / folder, "t1", "t2")]
    assert queries.select(text, {"relevance": parts})["trace_id"].to_pylist() == ["t1", "t2"]


def test_a_damaged_part_is_named_with_what_to_do(tmp_path: Path, queries: Queries) -> None:
    text = "SELECT trace_id FROM relevance"
    sound, damaged = part_of(tmp_path / "sound", "t1"), part_of(tmp_path / "damaged", "t2")
    damaged.path.write_bytes(b"PAR1 half")
    with pytest.raises(DamagedError, match=r"damaged/relevance/.*/p\.parquet: .* Remove the file and run"):
        queries.select(text, {"relevance": [sound, damaged]})


def test_columns_that_parts_lack_are_null(tmp_path: Path, queries: Queries) -> None:
    text = "SELECT trace_id, failure FROM relevance ORDER BY trace_id"
    old, new = part_of(tmp_path / "old", "t1"), part_of(tmp_path / "new", "t2")
    pq.write_table(old.read().drop_columns(["failure", "score"]), old.path)
    for parts in ([old], [old, new], [new, old]):
        found = queries.select(text, {"relevance": parts}).to_pylist()
        assert found == [{"trace_id": t, "failure": None} for t in ("t1", "t2")[: len(parts)]]


def test_a_relation_is_bound_anew_by_every_run(tmp_path: Path, queries: Queries) -> None:
    text = "SELECT trace_id FROM relevance"
    part = part_of(tmp_path / "lake", "from a part")
    rows = pa.table({"trace_id": ["from rows"]})
    found = [queries.select(text, {"relevance": r})["trace_id"].to_pylist() for r in ([part], rows, [], [part], [])]
    assert found == [["from a part"], ["from rows"], [], ["from a part"], []]


def test_a_query_sees_no_relation_of_the_one_before(queries: Queries) -> None:
    text = "SELECT * FROM relevance"
    queries.select(text, {"relevance": []})
    with pytest.raises(duckdb.CatalogException):
        queries.select(text, {})


def test_only_the_parameters_that_are_used_are_given(queries: Queries) -> None:
    text = "SELECT $a AS a, $a_b AS b"
    found = queries.select(text, {}, {"a": 1, "a_b": "it's", "c": 3, "b": 4})
    assert found.to_pylist() == [{"a": 1, "b": "it's"}]


def test_partition_values_come_from_the_files_and_not_from_their_paths(tmp_path: Path, queries: Queries) -> None:
    text = "SELECT scorer_version, date::VARCHAR AS date FROM relevance"
    part = part_of(tmp_path / "scorer_version=other" / "lake", "t")
    assert queries.select(text, {"relevance": [part]}).to_pylist() == [{"scorer_version": "v", "date": "2026-11-01"}]


def test_nothing_is_fetched_and_days_are_those_of_utc(queries: Queries) -> None:
    text = (
        "SELECT current_setting('autoinstall_known_extensions') AS fetches, current_setting('TimeZone') AS zone,"
        " current_setting('memory_limit') AS memory"
    )
    # 500 MB are 476.8 MiB, as DuckDB shows it
    assert queries.select(text, {}).to_pylist() == [{"fetches": False, "zone": "UTC", "memory": "476.8 MiB"}]


def test_every_file_under_sql_can_be_read() -> None:
    for path in query.sql_dir().rglob("*.sql"):
        text = query.sql(path.relative_to(query.sql_dir()).with_suffix("").as_posix())
        assert text.startswith("-- grain:") or "report" in path.parts or path.stem == "macros", path


def test_a_complaint_of_duckdb_becomes_a_usage_error() -> None:
    with pytest.raises(duckdb.Error) as caught:
        duckdb.connect().execute("SELEC 1")
    error = query.explain(caught.value)
    assert isinstance(error, UsageError)
    assert "SELEC" in str(error)
    assert "docs/tables.md" in str(error)


class TestNext:
    """DuckDB is kept for the next use, and nothing of the one before is."""

    def opened(self, queries: Queries) -> str:
        """A DuckDB's own number: its temporary tables are seen by nobody else."""
        queries._connection.execute("CREATE TEMP TABLE IF NOT EXISTS own AS SELECT uuid()::VARCHAR AS id")
        return str(queries._connection.execute("SELECT id FROM own").fetchone())

    def test_one_after_the_other_share_a_duckdb_and_two_at_once_do_not(self, tmp_path: Path) -> None:
        with Queries("500MB", tmp_path) as first:
            used = self.opened(first)
        with Queries("500MB", tmp_path) as second, Queries("500MB", tmp_path) as beside:
            assert self.opened(second) == used != self.opened(beside)

    def test_other_settings_a_directory_that_went_and_an_error_begin_anew(self, tmp_path: Path) -> None:
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        with Queries("500MB", scratch) as first:
            used = {self.opened(first)}
        scratch.rmdir()
        with Queries("500MB", scratch) as gone:
            used.add(self.opened(gone))
        with Queries("400MB", scratch) as smaller:
            used.add(self.opened(smaller))
        with pytest.raises(ValueError, match="stop"), Queries("400MB", scratch):
            raise ValueError("stop")
        with Queries("400MB", scratch) as after:
            used.add(self.opened(after))
        assert len(used) == 4

    @pytest.mark.parametrize("fails", [False, True])
    def test_no_relation_of_the_one_before_is_left(self, tmp_path: Path, fails: bool) -> None:
        relations = {"relevance": [part_of(tmp_path, "t1")], "own": pa.table({"x": [1]}), "claims": []}
        with Queries("500MB", tmp_path) as first:
            if fails:
                with pytest.raises(duckdb.Error):
                    first.select("SELECT nothing FROM relevance, own, claims", relations)
            else:
                first.select("SELECT 1 FROM relevance, own, claims", relations)
        for name in relations:
            with pytest.raises(duckdb.CatalogException), Queries("500MB", tmp_path) as second:
                second.select(f"SELECT * FROM {name}", {})


def test_a_relation_may_be_bound_again_to_parts_or_to_none(tmp_path: Path) -> None:
    part = part_of(tmp_path, "a", "b")
    with duckdb.connect() as connection:
        counts = []
        for parts in ([], [part], [], [part]):
            query.bind(connection, "relevance", parts)
            counts.append(connection.execute("SELECT count(*) FROM relevance").fetchall()[0][0])
    assert counts == [0, 2, 0, 2]


def test_a_part_that_only_duckdb_can_not_read_is_named(tmp_path: Path, queries: Queries) -> None:
    """Checksums cover the pages alone, and one reader of a footer is stricter than the other."""
    part = part_of(tmp_path, "a")
    whole = part.path.read_bytes()

    def errors():
        for at in range(len(whole) - 9, 4, -1):  # from the end of the footer
            # Another file each time: DuckDB keeps what it has read of one that was not written later since.
            spoiled = replace(part, key=part.key.replace(f"{part.name}.parquet", f"{at}.parquet"))
            spoiled.path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            try:
                check([spoiled])
                queries.select("SELECT * FROM relevance", {"relevance": [spoiled]})
            except DamagedError as error:
                yield str(error)

    found = next((error for error in errors() if "DuckDB can't read it" in error), "no such byte: choose other damage")
    assert re.fullmatch(
        rf"{re.escape(str(part.path.parent))}/\d+\.parquet: the part is damaged \(DuckDB can't read it: .*", found
    )
