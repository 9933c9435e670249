"""Queries of databases: windows of time, transactions that only read, and errors without values or the address."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kit.stage_kit import context
from kit.stage_kit import rows as table_rows
from kit.stores import postgres
from kit.stores.worlds import SECRET, complaint, read

from tasks import sources
from tasks.core.errors import ConfigError, ConnectionLostError, SourceError, UsageError
from tasks.core.schemas import QUARANTINE, TRACES
from tasks.ingest.ingest import ingest
from tasks.sources import sql
from tasks.sources.tabular import TabularSource

DAY = date(2026, 11, 1)
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
COLUMNS = {"id": "id", "timestamp": "at", "question": "q", "answer": "a", "chunks": "docs"}
QUERY = "SELECT * FROM log WHERE at >= :start AND at < :end ORDER BY id"
Run = Callable[[str], None]


@pytest.fixture(params=["postgresql", "sqlite"])
def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run SQL in a fresh database with a table `log`, which $TEST_DSN names."""
    created = "CREATE TABLE log (id integer, at {time}, q text, a text, docs {json});"
    if request.param == "sqlite":
        monkeypatch.setenv("TEST_DSN", f"sqlite:///{tmp_path / '50% of it.db'}")

        def script(text: str) -> None:
            with sqlite3.connect(tmp_path / "50% of it.db") as connection:
                connection.executescript(f"BEGIN; {text} COMMIT;")  # one write, not one a row

        script(created.format(time="text", json="text"))
        return script
    address = request.getfixturevalue("server")
    monkeypatch.setenv("TEST_DSN", address)
    folder = Path(address.partition("host=")[2])
    postgres.psql(
        folder, "DROP SCHEMA public CASCADE; CREATE SCHEMA public;" + created.format(time="timestamptz", json="jsonb")
    )
    return lambda text: print(postgres.psql(folder, text))


def insert(name: int, at: datetime, answer: str = "A [1].") -> str:
    docs = f'[{{"id": "c1", "text": "A {SECRET}."}}]'
    return f"INSERT INTO log VALUES ({name}, '{at:%Y-%m-%d %H:%M:%S}', 'What is {name}?', '{answer}', '{docs}');"


def source(query: str = QUERY, *, now: datetime = NOON + timedelta(days=9), **more: Any) -> TabularSource:
    config = sql.Config.model_validate(
        {
            "kind": "sql",
            "dsn_env": "TEST_DSN",
            "query": query,
            "columns": COLUMNS,
            "app": "shop",
            "reread_hours": 0,
            **more,
        }
    )
    return TabularSource(config, sql.QueryStore(config, now=lambda: now))


def names(of: TabularSource, day: date = DAY) -> list[str]:
    batch = read(of, *of.files(day, day))
    assert not batch.rejects
    return batch.table["trace_id"].to_pylist() if batch.table else []


class TestRows:
    def test_a_row(self, run: Run) -> None:
        run(insert(1, NOON))
        batch = read(source(), *source().files(DAY, DAY))
        (row,) = batch.table.to_pylist()
        assert (row["trace_id"], row["timestamp"], row["question"], row["answer"]) == (
            "1",
            NOON,
            "What is 1?",
            "A [1].",
        )
        assert [(c["chunk_id"], c["text"]) for c in row["chunks"]] == [("c1", f"A {SECRET}.")]

    def test_nulls(self, run: Run) -> None:
        run(
            insert(1, NOON)
            + insert(2, NOON)
            + "UPDATE log SET a = NULL, docs = NULL WHERE id = 1; UPDATE log SET docs = NULL WHERE id = 2;"
        )
        batch = read(source(), *source().files(DAY, DAY))
        assert [(r.trace_id, r.reason) for r in batch.rejects] == [("1", "no_answer")]
        assert batch.table["chunks"].to_pylist() == [[]]

    def test_more_rows_than_are_fetched_at_a_time(self, run: Run) -> None:
        run("".join(insert(n, NOON) for n in range(1201)))
        assert names(source()) == [str(n) for n in range(1201)]

    def test_reading_may_end_early(self, run: Run) -> None:
        run("".join(insert(n, NOON) for n in range(1201)))
        of = source()
        assert [one.trace.trace_id for one in of.traces(*of.files(DAY, DAY), 3) if one.trace] == ["0", "1", "2"]
        assert len(names(of)) == 1201


class TestWindows:
    def test_a_row_is_of_its_day(self, run: Run) -> None:
        midnight = datetime(2026, 11, 2, tzinfo=UTC)
        run(insert(1, midnight - timedelta(seconds=1)) + insert(2, midnight) + insert(3, NOON - timedelta(days=1)))
        assert names(source()) == ["1"]
        assert names(source(), midnight.date()) == ["2"]
        assert names(source(reread_hours=2), midnight.date()) == ["1", "2"]

    def test_a_young_row_waits(self, run: Run) -> None:
        run(insert(1, NOON) + insert(2, NOON + timedelta(minutes=50)))
        assert names(source(now=NOON + timedelta(hours=1), grace_minutes=15)) == ["1"]

    def test_a_failure_in_the_middle_loses_nothing_and_brings_nothing_twice(self, run: Run, tmp_path: Path) -> None:
        run("".join(insert(n, NOON) for n in range(1500)))
        (tmp_path / "lake").mkdir()
        ctx = replace(context(tmp_path / "lake"), sources=(source(),))
        # Of the last row only, so that others were read before.
        breaks = "CAST(CASE WHEN id = 1499 THEN q ELSE '1' END AS integer)"
        if run.__name__ == "script":
            breaks = "abs(CASE WHEN id = 1499 THEN -9223372036854775808 ELSE 1 END)"  # integer overflow
        failing = source(QUERY.replace("SELECT *", f"SELECT *, {breaks} AS x"))
        message = complaint(lambda: ingest(replace(ctx, sources=(failing,))))
        assert "What is" not in message
        assert table_rows(ctx, TRACES) == []
        assert ingest(ctx).computed == 1500
        assert ingest(ctx).computed == 0  # settled: not read
        run(insert(2000, NOON))
        young = replace(ctx, sources=(source(now=NOON + timedelta(hours=9)),))
        assert ingest(young).computed == 1  # read again: copies change nothing
        assert len({r["trace_id"] for r in table_rows(ctx, TRACES)}) == len(table_rows(ctx, TRACES)) == 1501
        assert table_rows(ctx, QUARANTINE) == []

    def test_another_query_is_another_place(self, run: Run) -> None:
        (one,), (other,) = (source(query).files(DAY, DAY) for query in (QUERY, f"{QUERY} DESC"))
        assert one.path != other.path
        assert "TEST_DSN" in one.path


class TestErrors:
    @pytest.mark.parametrize("query", [
        "DELETE FROM log WHERE at >= :start AND at < :end RETURNING *",
        "INSERT INTO log (q) VALUES (:start || :end) RETURNING *",
        "UPDATE log SET q = 'x' WHERE at >= :start AND at < :end RETURNING *",
    ])  # fmt: skip
    def test_a_query_that_writes(self, run: Run, query: str) -> None:
        run(insert(1, NOON))
        query = query.replace(":start || :end", "CAST(:start AS text) || CAST(:end AS text)")
        assert "must only read" in complaint(lambda: names(source(query)))
        assert names(source()) == ["1"]

    def test_a_second_statement(self, run: Run) -> None:
        run(insert(1, NOON))
        complaint(lambda: names(source(f"{QUERY}; DELETE FROM log")))
        assert names(source()) == ["1"]

    def test_a_column_that_the_query_does_not_have(self, run: Run) -> None:
        run(insert(1, NOON))
        message = complaint(lambda: names(source(columns={**COLUMNS, "session": "conversation"})))
        assert "has no column `conversation` (`columns.session`). It has id, at, q, a, docs." in message

    @pytest.mark.parametrize(("query", "problem"), [
        (QUERY.replace("*", "nope"), "nope"), (QUERY.replace("log", "logs"), "logs"), (QUERY.replace("SELECT", "SELEKT"), "SELEKT"),
    ])  # fmt: skip
    def test_a_query_that_is_wrong(self, run: Run, query: str, problem: str) -> None:
        message = complaint(lambda: names(source(query)))
        assert "refuses the query" in message
        assert problem in message

    def test_values_are_not_shown(self, run: Run) -> None:
        run(insert(1, NOON, SECRET))
        wrong = "json_extract(a, '$.x')" if run.__name__ == "script" else "a::integer"
        complaint(lambda: names(source(QUERY.replace("*", wrong))))

    @pytest.mark.parametrize(("change", "kind", "problem"), [
        ((postgres.PASSWORD, "wrong-pw"), None, "does not accept the user or the password"),
        (("/shop", "/shops"), None, "does not exist on that server"),
        (("?host=", "?host=/nowhere"), ConnectionLostError, "can't be reached"),
        (("?host=", "?colour=red&host="), None, "an option that its driver does not know"),
        (("postgresql:", "postgersql:"), UsageError, "Install the driver"),
        (("postgresql://", "shop at "), UsageError, "Write one like postgresql://"),
    ])  # fmt: skip
    def test_a_wrong_address(
        self, server: str, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], kind: Any, problem: str
    ) -> None:
        monkeypatch.setenv("TEST_DSN", server.replace(*change))
        message = complaint(lambda: names(source()), kind or SourceError)
        assert problem in message
        assert "$TEST_DSN" in message
        assert not [part for part in (postgres.PASSWORD, "wrong-pw", postgres.USER, "host=") if part in message]

    def test_an_address_for_another_driver(self, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
        psql = server.replace("postgresql:", "postgresql+psycopg2:") + "&sslmode=disable&channel_binding=prefer"
        monkeypatch.setenv("TEST_DSN", psql)
        assert names(
            source(
                "SELECT 1 AS id, CAST(:start AS timestamptz) AS at, 'q' AS q, 'a' AS a, NULL AS docs WHERE :end > :start"
            )
        ) == ["1"]

    def test_a_file_that_is_not_there_is_not_made(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEST_DSN", f"sqlite:///{tmp_path / 'none.db'}")
        assert "unable to open" in complaint(lambda: names(source()))
        assert list(tmp_path.iterdir()) == []


class TestConfig:
    @pytest.mark.parametrize("query", ["SELECT 1", "SELECT :start", QUERY + " LIMIT :most"])
    def test_a_query_without_its_bounds(self, query: str) -> None:
        given = {"kind": "sql", "dsn_env": "TEST_DSN", "query": query, "columns": COLUMNS}
        with pytest.raises(ConfigError, match="should hold :start and :end"):
            sources.load(given, "x.yaml", Path())

    def test_a_column_of_times_is_needed(self) -> None:
        columns = {k: v for k, v in COLUMNS.items() if k != "timestamp"}
        with pytest.raises(ConfigError, match=r"should have `columns\.timestamp`"):
            sources.load({"kind": "sql", "dsn_env": "TEST_DSN", "query": QUERY, "columns": columns}, "x.yaml", Path())

    def test_the_address_itself_is_not_shown(self) -> None:
        given = {"kind": "sql", "dsn_env": "postgresql://u:secret-pw@host/x", "query": QUERY, "columns": COLUMNS}
        message = complaint(lambda: sources.load(given, "x.yaml", Path()), UsageError)
        assert "secret-pw" not in message
        assert "Write the variable's name there" in message

    def test_an_address_under_another_key_is_not_shown(self) -> None:
        given = {
            "kind": "sql",
            "dsn_env": "TEST_DSN",
            "dsn": "postgresql://u:secret-pw@host/x",
            "query": QUERY,
            "columns": COLUMNS,
        }
        assert "secret-pw" not in complaint(lambda: sources.load(given, "x.yaml", Path()), ConfigError)

    def test_a_variable_that_is_not_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("TEST_DSN", raising=False)
        assert "names $TEST_DSN, which is not set" in complaint(lambda: names(source()), UsageError)
