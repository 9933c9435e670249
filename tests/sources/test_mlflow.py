"""MLflow: both ways to write spans, the server's addresses, and the shared fixtures."""

import base64
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from kit.stores.server import Asked, Reply, serve
from kit.stores.worlds import (
    DAY,
    KEY,
    Mlflow,
    Small,
    check_scenarios,
    complaint,
    day,
    fixture,
    names,
    read,
    rows,
    source,
)

from tasks.core.errors import UsageError
from tasks.sources import SourceFile
from tasks.sources.mlflow import Config, build

APP = {"app": "fernleaf-shop"}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


def exported(tmp_path: Path, *records: Any) -> list[dict[str, Any]]:
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    return rows(read(build(Config(kind="mlflow", paths=["t.jsonl"]), tmp_path), SourceFile("t.jsonl", "")))


def as_text(record: dict[str, Any]) -> dict[str, Any]:
    """A trace of the server as `Trace.to_json()` writes it: every attribute is JSON in a text."""
    spans = []
    for span in record["spans"]:
        held = {a["key"]: a["value"].get("string_value") for a in span["attributes"]}
        spans.append(
            {
                **span,
                "attributes": {
                    k: v if k in ("mlflow.spanInputs", "mlflow.spanOutputs") else json.dumps(v) for k, v in held.items()
                },
            }
        )
    return {"info": record["trace_info"], "data": {"spans": spans}}


def of_version_2(record: dict[str, Any]) -> dict[str, Any]:
    """The same as MLflow 2 wrote it, with ids in hex."""

    def hexed(value: str | None) -> str | None:
        return value and "0x" + base64.b64decode(value).hex()

    data = as_text(record)
    spans = [
        {
            "name": s["name"], "context": {"span_id": hexed(s["span_id"]), "trace_id": "0x1"}, "parent_id": hexed(s.get("parent_span_id")),
            "start_time": s["start_time_unix_nano"], "end_time": s["end_time_unix_nano"], "status_code": "OK", "attributes": s["attributes"],
        }
        for s in data["data"]["spans"]
    ]  # fmt: skip
    return {"info": data["info"], "data": {"spans": spans}}


def test_all_encodings_say_the_same(tmp_path: Path) -> None:
    (record,) = Mlflow().records(Small("a"))
    (first,) = exported(tmp_path, record)
    assert exported(tmp_path, as_text(record)) == exported(tmp_path, of_version_2(record)) == [first]


@pytest.mark.parametrize("bad", ["LR5vHKcjWfY", "!!!!", "LR5vHKcjWQ==", 7])
def test_an_id_that_is_no_id_refuses_the_trace(tmp_path: Path, bad: object) -> None:
    (record,), (good,) = Mlflow().records(Small("a")), Mlflow().records(Small("b"))
    record["spans"][1]["span_id"] = bad
    (tmp_path / "t.jsonl").write_text(f"{json.dumps(record)}\n{json.dumps(good)}\n")
    batch = read(build(Config(kind="mlflow", paths=["t.jsonl"]), tmp_path), SourceFile("t.jsonl", ""))
    assert names(batch) == ["b"]
    assert [(r.reason, r.detail) for r in batch.rejects] == [
        ("malformed_span", "an id of a span is neither 16 hex digits nor base64 of 8 bytes")
    ]


def test_spans_are_fetched_some_traces_at_a_time() -> None:
    world = Mlflow([Small(f"t{n:03}") for n in range(60)], page=500)
    with serve(world.answer) as server:
        assert len(names(day(source(world, server.url)))) == 60
    assert [len(a.params["trace_ids"]) for a in server.asked if "batchGet" in a.path] == [50, 10]


def test_spans_that_are_an_artifact() -> None:
    world = Mlflow([Small("a")])
    (record,) = world.records(world.traces[0])

    def answer(asked: Asked) -> Reply:
        if asked.path.endswith("get-trace-artifact"):
            assert asked.params == {"request_id": ["tr-a"]}
            return Reply(as_text(record)["data"])
        reply = world.answer(asked)
        if asked.path.endswith("search"):
            reply.body["traces"][0]["tags"].pop("mlflow.trace.spansLocation")
        return reply

    with serve(answer) as server:
        assert names(day(source(world, server.url))) == ["a"]


@pytest.mark.parametrize("artifact", [False, True])
def test_spans_that_the_server_has_lost(artifact: bool) -> None:
    world = Mlflow([Small("a"), Small("b")], page=500)

    def answer(asked: Asked) -> Reply:
        if asked.path.endswith("get-trace-artifact"):
            return Reply({}, 404)
        reply = world.answer(asked)
        if asked.path.endswith("search") and artifact:
            reply.body["traces"][1]["tags"].pop("mlflow.trace.spansLocation")
        if asked.path.endswith("batchGet"):
            reply.body["traces"] = reply.body["traces"][:1]
        return reply

    with serve(answer) as server:
        batch = day(source(world, server.url))
    assert names(batch) == ["a"]
    assert [(r.trace_id, r.reason) for r in batch.rejects] == [("tr-b", "malformed_span")]


def test_an_experiment_that_is_not_there() -> None:
    world = Mlflow([Small("a")])
    with serve(world.answer) as server:
        message = complaint(lambda: day(source(world, server.url, experiment="shopp")))
    assert "does not exist (HTTP 404). Check `experiment`" in message


def test_name_and_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_USER", "me")
    world = Mlflow([Small("a")])
    with serve(world.answer) as server:
        day(source(world, server.url, api_key_env=None, user_env="TEST_USER", password_env="TEST_KEY"))
        assert server.asked[0].headers["Authorization"].startswith("Basic ")
        of = source(world, server.url, api_key_env=None, user_env="TEST_USER")
        assert "`password_env`" in complaint(lambda: day(of), UsageError)
    assert len(of.files(DAY, DAY)) == 1


def test_the_recorded_server() -> None:
    """The pages as a server gave them."""
    pages = json.loads(fixture("mlflow", "rest-search-manual.pages.json").read_text())
    stored = json.loads(fixture("mlflow", "rest-batchget-manual.json").read_text())["traces"]

    def answer(asked: Asked) -> Reply:
        if asked.path.endswith("get-by-name"):
            return Reply({"experiment": {"experiment_id": "1"}})
        if asked.path.endswith("search"):
            return Reply(pages[1 if asked.body.get("page_token") == pages[0]["next_page_token"] else 0])
        return Reply({"traces": [t for t in stored if t["trace_info"]["trace_id"] in asked.params["trace_ids"]]})

    with serve(answer) as server:
        of = source(Mlflow(), server.url, now=datetime(2026, 11, 23, tzinfo=UTC), spans=APP)
        check_scenarios(day(of, date(2026, 11, 22)))
