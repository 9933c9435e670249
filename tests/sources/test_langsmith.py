"""LangSmith: its API and its bulk export, and the shared fixtures."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kit.stores.server import Asked, Reply, serve
from kit.stores.worlds import KEY, Langsmith, Small, check_scenarios, complaint, day, fixture, rows, source

from tasks import sources
from tasks.core.errors import ConfigError, UsageError
from tasks.sources.langsmith import Config, build

AT = date(2026, 11, 22)
APP = {"app": "fernleaf-shop"}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


def run(**more: Any) -> dict[str, Any]:
    """The root of a trace."""
    return {**Langsmith().records(Small("a"))[0], **more}


def exported(tmp_path: Path, *records: dict[str, Any]) -> list[dict[str, Any]]:
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    return rows(day(build(Config(kind="langsmith", paths=["r.jsonl"]), tmp_path)))


def test_the_day_before_is_asked_for_by_its_time() -> None:
    """Without a start, the server gives the last day only."""
    world = Langsmith([Small("a")], page=100)
    with serve(world.answer) as server:
        day(source(world, server.url, now=datetime(2027, 1, 1, tzinfo=UTC), grace_minutes=15))
    (asked,) = server.asked
    assert asked.body["start_time"] == "2026-10-31T23:45:00.000Z"
    assert asked.body["filter"] == 'lt(start_time, "2026-11-02T00:15:00.000Z")'


def test_the_bulk_export_says_what_the_api_says(tmp_path: Path) -> None:
    world = Langsmith([Small("a"), Small("b")])
    with serve(world.answer) as server:
        pulled = rows(day(source(world, server.url, spans={})))
    folder = tmp_path / "export_id=1" / "session_id=7" / "day=01"
    folder.mkdir(parents=True)
    for n, trace in enumerate(world.traces):
        flat = [
            {k: json.dumps(v) if k in ("inputs", "outputs", "extra") else datetime.fromisoformat(v).replace(tzinfo=UTC) if k.endswith("_time") else v for k, v in r.items()}
            for r in world.records(trace)
        ]  # fmt: skip
        pq.write_table(pa.Table.from_pylist(flat), folder / f"part-{n}.zst.parquet", compression="zstd")
    found = rows(day(build(Config(kind="langsmith", paths=["export_id=1/**/*.parquet"]), tmp_path)))
    assert [r["content_hash"] for r in found] == [r["content_hash"] for r in pulled]


def test_who_asked_is_no_tag(tmp_path: Path) -> None:
    metadata = {
        "thread_id": "s-9",
        "user_id": "u-1",
        "revision_id": "1",
        "ls_provider": "x",
        "tier": "gold",
        "n": 3,
        "deep": {"a": 1},
    }
    (row,) = exported(tmp_path, run(extra={"metadata": metadata}))
    assert (row["session"], row["tags"]) == ("s-9", {"tier": "gold", "n": "3"})


def test_tokens_of_the_message(tmp_path: Path) -> None:
    root, search, call = Langsmith().records(Small("a"))
    message = {
        "kwargs": {
            "content": root["outputs"]["answer"],
            "type": "ai",
            "usage_metadata": {"input_tokens": 9, "output_tokens": 4},
        }
    }
    call["outputs"] = {"generations": [[{"text": root["outputs"]["answer"], "message": message}]]}
    (row,) = exported(tmp_path, root, search, call)
    assert (row["tokens_in"], row["tokens_out"]) == (9, 4)
    (row,) = exported(tmp_path, root, search, {**call, "prompt_tokens": 10, "completion_tokens": None})
    assert (row["tokens_in"], row["tokens_out"]) == (10, 4)


def test_a_project_is_named_by_its_id() -> None:
    good = {"kind": "langsmith", "url": "http://x"}
    with pytest.raises(ConfigError, match="project is 'my-project'"):
        sources.load({**good, "project": "my-project"}, "s.yaml", Path())
    assert "`project` is missing" in complaint(lambda: sources.load(good, "s.yaml", Path()), UsageError)


def test_the_scenarios_of_the_api() -> None:
    pages = json.loads(fixture("langsmith", "runs-query.pages.json").read_text())

    def answer(asked: Asked) -> Reply:
        return Reply(pages[int((asked.body.get("cursor") or "c0").removeprefix("c")) // 15])

    with serve(answer) as server:
        check_scenarios(day(source(Langsmith(), server.url, now=datetime(2026, 11, 23, tzinfo=UTC), spans=APP), AT))
    assert len(server.asked) == 3
