"""A Phoenix server on loopback, its exports, and the shared fixtures."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kit.stores.server import Asked, Reply, serve
from kit.stores.worlds import COST, KEY, NOON, SECRET, Phoenix, Small, complaint, fixture, names, read, rows, scenarios

from tasks.core.errors import ConnectionLostError, SourceError, UsageError
from tasks.sources import Batch, Source, load
from tasks.sources.phoenix import Config, PhoenixStore, named
from tasks.sources.spans.pull import PulledSource

DAY = date(2026, 11, 1)


def source(url: str, *, now: datetime = NOON + timedelta(days=9), pause: Any = None, **more: Any) -> Source:
    config = named(Config.model_validate(Phoenix().config(url, **more)))
    return PulledSource(config, Path(), PhoenixStore(config), now=lambda: now, sleep=pause or (lambda _: None))


def day(of: Source, at: date = DAY) -> Batch:
    return read(of, *of.files(at, at))


def pulled(world: Phoenix, **more: Any) -> Batch:
    with serve(world.answer) as server:
        return day(source(server.url, **more))


def test_fields() -> None:
    (row,) = rows(pulled(Phoenix([Small("a", rating=1.0)])))
    assert row["cost"] == COST
    assert (row["trace_id"], row["app"], row["generator"], row["session"]) == ("tr-a", "shop", "m-1", "s-1")
    assert (row["timestamp"], row["tags"]) == (NOON, {"tier": "gold"})
    assert row["feedback"] == {"score": 1.0, "comment": "fine"}
    assert [(c["chunk_id"], c["retrieval_score"], c["doc_id"]) for c in row["chunks"]] == [("c1", 0.5, "d.md")]


@pytest.mark.parametrize("page", [1, 2, 3, 1000])
def test_pages_cut_traces_anywhere(page: int) -> None:
    world = Phoenix([Small(n) for n in "abcde"], page=page, empty=True)
    assert names(pulled(world)) == list("abcde")


def test_no_annotations_are_asked_for_where_none_are_wanted() -> None:
    world = Phoenix([Small("a", rating=1.0)], page=1000)
    with serve(world.answer) as server:
        assert rows(day(source(server.url, feedback=[])))[0]["feedback"] is None
        assert [a.path for a in server.asked] == ["/v1/projects/shop/spans"]


def test_a_young_trace_waits_and_is_read_later() -> None:
    world = Phoenix([Small("old"), Small("young", NOON + timedelta(minutes=30))])
    with serve(world.answer) as server:
        early = source(server.url, now=NOON + timedelta(minutes=40))
        later = source(server.url, now=NOON + timedelta(minutes=50))
        assert names(day(early)) == ["old"]
        assert names(day(later)) == ["old", "young"]
        assert {f.fingerprint for f in early.files(DAY, DAY)}.isdisjoint(f.fingerprint for f in later.files(DAY, DAY))


def test_a_trace_over_midnight_belongs_to_the_day_of_its_start() -> None:
    midnight = datetime(2026, 11, 2, tzinfo=UTC)
    world = Phoenix([Small("over", midnight - timedelta(seconds=1)), Small("next", midnight)])
    with serve(world.answer) as server:
        assert names(day(source(server.url))) == ["over"]
        assert names(day(source(server.url), date(2026, 11, 2))) == ["next"]
        assert names(day(source(server.url, reread_hours=1), date(2026, 11, 2))) == ["next", "over"]


def test_what_is_no_span_is_refused_and_the_rest_is_kept() -> None:
    batch = pulled(Phoenix([Small("a"), Small("b"), Small("c", cyclic=True), Small("d", roots=2), Small("e", answer=None)], bad="b"))  # fmt: skip
    assert names(batch) == ["a", "b"]
    assert sorted(r.reason for r in batch.rejects) == ["malformed_span", "no_answer", "no_root", "several_roots"]


def test_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    world = Phoenix([Small("a")])

    def guarded(asked: Asked) -> Reply:
        return world.answer(asked) if asked.headers.get("Authorization") == f"Bearer {KEY}" else Reply({}, 401)

    with serve(guarded) as server:
        assert names(day(source(server.url, api_key_env="TEST_KEY"))) == ["a"]
        assert "`api_key_env`" in complaint(lambda: day(source(server.url)))
        monkeypatch.setenv("TEST_KEY", "another")
        assert "$TEST_KEY" in complaint(lambda: day(source(server.url, api_key_env="TEST_KEY")))
        monkeypatch.delenv("TEST_KEY")
        assert "$TEST_KEY" in complaint(lambda: day(source(server.url, api_key_env="TEST_KEY")), UsageError)
        assert "no name" in complaint(lambda: day(source(server.url, api_key_env=KEY)), UsageError)


def test_a_project_that_is_missing() -> None:
    with serve(Phoenix().answer) as server:
        message = complaint(lambda: day(source(server.url, project="other shop")))
    assert "/v1/projects/other%20shop/spans does not exist (HTTP 404)" in message
    assert "Check `project`, which is 'other shop'" in message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda _: Reply({"spans": []}), "without a list `data`"),
        (lambda _: Reply({"data": {}}), "without a list `data`"),
        (lambda _: Reply({"data": [], "next_cursor": "x"}), "the same cursor twice"),
        (lambda _: Reply(f"<html>{SECRET}".encode(), headers={"Content-Type": "text/html"}), "a web page"),
    ],
)
def test_a_server_that_is_no_phoenix(answer: Callable[[Asked], Reply], words: str) -> None:
    with serve(answer) as server:
        assert words in complaint(lambda: day(source(server.url)))


def test_a_busy_server_is_asked_again_after_the_pause_that_it_wants() -> None:
    world, pauses, left = Phoenix([Small("a")]), [], [Reply({}, 429, {"Retry-After": "7"})]
    with serve(lambda asked: left.pop() if left else world.answer(asked)) as server:
        assert names(day(source(server.url, pause=pauses.append))) == ["a"]
        assert [p >= 7 for p in pauses] == [True]
    complaint(lambda: day(source(server.url)), ConnectionLostError)


@pytest.mark.parametrize("url", [f"http://me:{KEY}@host:6006", f"https://host/?api_key={KEY}", "host:6006"])
def test_a_url_that_is_refused(url: str) -> None:
    assert "`url`" in complaint(lambda: load({"kind": "phoenix", "url": url}, "x.yaml", Path()), UsageError)


APP = {"spans": {"app": "fernleaf-shop", "generator": "fernleaf-7b-instruct"}}


def check(batch: Batch, present: list[str], rejects: list[str]) -> None:
    """These scenarios are there as expected; users' feedback is not in these files."""
    found = {row["question"]: row for row in rows(batch)}
    wanted = {key: s["trace"] for key, s in scenarios().items() if s["trace"]["question"] in found}
    assert sorted(wanted) == sorted(present)
    assert [r.reason for r in batch.rejects] == rejects
    for key, trace in wanted.items():
        row = found[trace["question"]]
        fields = ("app", "generator", "answer", "session", "tags")
        assert {k: row[k] for k in fields} == {k: trace[k] for k in fields}, key
        chunks = [{k: c[k] for k in ("chunk_id", "text", "rank", "retrieval_score")} for c in row["chunks"]]
        assert chunks == trace["chunks"], key


MANUAL = ["simple", "two-retrievals", "rerank", "nested", "turn-1", "turn-2", "no-retrieval", "stream", "no-ids"]
LANGCHAIN = ["simple", "turn-2", "stream", "no-ids"]
LLAMAINDEX = ["simple", "rerank", "stream"]


@pytest.mark.parametrize(
    ("name", "present", "rejects"),
    [("manual", MANUAL, ["no_answer"]), ("langchain", LANGCHAIN, ["no_answer"]), ("llamaindex", LLAMAINDEX, [])],
)
def test_scenarios_of_a_server(name: str, present: list[str], rejects: list[str]) -> None:
    pages = json.loads(fixture("phoenix", f"spans-{name}.pages.json").read_text())
    cursors = [None, *(p["next_cursor"] for p in pages[:-1])]

    def answer(asked: Asked) -> Reply:
        if asked.path.endswith("/span_annotations"):
            return Reply({"data": [], "next_cursor": None})
        return Reply(pages[cursors.index(asked.params.get("cursor", [None])[0])])

    with serve(answer) as server:
        of = source(server.url, now=datetime(2026, 11, 30, tzinfo=UTC), **APP)
        check(day(of, date(2026, 11, 22)), present, rejects)


def test_an_export_says_what_the_server_says(tmp_path: Path) -> None:
    world = Phoenix([Small("a"), Small("b")])
    records = [r for t in world.traces for r in world.records(t)]
    (tmp_path / "spans.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    of = load({"kind": "phoenix", "paths": ["spans.jsonl"], "project": "shop"}, "x.yaml", tmp_path)
    assert [r["content_hash"] for r in rows(day(of))] == [r["content_hash"] for r in rows(pulled(world))]


def test_a_project_name_is_no_path() -> None:
    with pytest.raises(UsageError, match="project"):
        load({"kind": "phoenix", "url": "http://host", "project": "a/b"}, "x.yaml", Path())
    assert issubclass(ConnectionLostError, SourceError)
