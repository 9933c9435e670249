"""Records of TruLens: what its spans say, and events that are none."""

import json
import sqlite3
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kit.stores import postgres
from kit.stores.worlds import SECRET, complaint, read, rows

from tasks.core.config import validate
from tasks.core.errors import ConfigError
from tasks.sources import Batch, trulens

DAY = date(2026, 11, 1)
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
OWN = "ai.observability."


def event(name: str, kind: str, second: int, parent: str = "", record: str = "r1", **attributes: Any) -> dict[str, Any]:
    own = {
        "span_type": kind,
        "record_id": record,
        "app_name": "shop",
        **{k.replace("__", "."): v for k, v in attributes.items()},
    }
    return {
        "event_id": f"{record}{name}", "record": {"name": name, "status": "STATUS_CODE_UNSET"}, "record_type": "SPAN",
        "record_attributes": {OWN + k: v for k, v in own.items()}, "resource_attributes": {},
        "start_timestamp": f"{NOON + timedelta(seconds=second):%Y-%m-%d %H:%M:%S.%f}", "timestamp": f"{NOON + timedelta(seconds=second, milliseconds=500):%Y-%m-%d %H:%M:%S.%f}",
        "trace": {"trace_id": "123", "span_id": f"{record}{name}", "parent_id": parent},
    }  # fmt: skip


def record(name: str = "r1", found: object = (f"A {SECRET}.", "B.")) -> list[dict[str, Any]]:
    question, answer = f"What is {name}?", f"The {SECRET} is [1]."
    return [
        event("query", "record_root", 0, "outside", name, record_root__input=question, record_root__output=answer, conversation_id="s-1"),
        event("search", "retrieval", 1, f"{name}query", name, retrieval__query_text=question, retrieval__retrieved_contexts=found),
        event("write", "generation", 2, f"{name}query", name, call__kwargs__contexts=found, call__kwargs__question=question,
              call__return=answer, cost__model="m-1", cost__num_prompt_tokens=9, cost__num_completion_tokens=4, cost__cost=0.002),
        event("judge", "eval_root", 3, "", name, eval_root__score=1.0),
    ]  # fmt: skip


def load(base: Path, monkeypatch: pytest.MonkeyPatch, *events: dict[str, Any], **more: Any) -> Batch:
    with sqlite3.connect(base / "t.db") as connection:
        connection.execute(
            "CREATE TABLE trulens_events (event_id, record, record_attributes, record_type, resource_attributes, start_timestamp TIMESTAMP, timestamp TIMESTAMP, trace)"
        )
        for one in events:
            values = [json.dumps(v) if isinstance(v, dict) else v for v in one.values()]
            connection.execute(
                f"INSERT INTO trulens_events ({', '.join(one)}) VALUES ({', '.join('?' * len(one))})", values
            )
    monkeypatch.setenv("TEST_DSN", f"sqlite:///{base / 't.db'}")
    return opened(**more)


def opened(**more: Any) -> Batch:
    """What is in the database that $TEST_DSN names."""
    config = validate(trulens.Config, {"kind": "trulens", "dsn_env": "TEST_DSN", **more}, "x.yaml", "")
    of = trulens.TrulensSource(config, now=lambda: NOON + timedelta(days=9))
    return read(of, *of.files(DAY, DAY))


def test_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = rows(load(tmp_path, monkeypatch, *record()))
    wanted = {"trace_id": "r1", "timestamp": NOON, "app": "shop", "generator": "m-1", "session": "s-1", "tokens_in": 9, "tokens_out": 4, "cost": 0.002,
              "question": "What is r1?", "answer": f"The {SECRET} is [1].", "latency_ms": 500.0, "retriever": "search"}  # fmt: skip
    assert {name: row[name] for name in wanted} == wanted
    assert [(c["chunk_id"], c["text"]) for c in row["chunks"]] == [("1", f"A {SECRET}."), ("2", "B.")]


def test_in_postgresql(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = "".join(
        f"""INSERT INTO prod_events VALUES ('{e["event_id"]}', $j${json.dumps(e["record"])}$j$, $j${json.dumps(e["record_attributes"])}$j$,
            'SPAN', '{{}}', '{e["start_timestamp"]}', '{e["timestamp"]}', $j${json.dumps(e["trace"])}$j$);"""
        for e in record()
    )
    columns = "event_id text, record json, record_attributes json, record_type text, resource_attributes json"
    made = f"DROP TABLE IF EXISTS prod_events; CREATE TABLE prod_events ({columns}, start_timestamp timestamp, timestamp timestamp, trace json);"
    postgres.psql(Path(server.partition("host=")[2]), made + events)
    monkeypatch.setenv("TEST_DSN", server)
    batch = opened(prefix="prod_")
    assert [(row["trace_id"], row["timestamp"], len(row["chunks"])) for row in rows(batch)] == [("r1", NOON, 2)]


def test_records_of_one_trace_are_traces_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = load(tmp_path, monkeypatch, *record("r1"), *record("r2"))
    assert sorted(row["trace_id"] for row in rows(batch)) == ["r1", "r2"]


def test_what_the_generator_was_given_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three passages that were found, the application passed two on, in another order."""
    events = record(found=["The first passage.", "The second passage.", "The third passage."])
    events[2]["record_attributes"][f"{OWN}call.kwargs.contexts"] = ["The third passage.", "The first passage."]
    (row,) = rows(load(tmp_path, monkeypatch, *events))
    assert [c["text"] for c in row["chunks"]] == ["The third passage.", "The first passage."]


def test_events_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = event("x", "retrieval", 0, record="")
    bad["trace"] = "{cut"
    lost = record("lost")[1:2]
    batch = load(tmp_path, monkeypatch, bad, *lost, *record())
    assert sorted(r.reason for r in batch.rejects) == ["malformed_span", "no_root"]
    assert [row["trace_id"] for row in rows(batch)] == ["r1"]


def test_a_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no such table: shop_events" in complaint(lambda: load(tmp_path, monkeypatch, prefix="shop_"))
    with pytest.raises(ConfigError, match="prefix"):
        load(tmp_path / "..", monkeypatch, prefix="x; DROP TABLE y; --")
