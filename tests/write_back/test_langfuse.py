"""Langfuse takes some of a batch, and replaces what comes again with its id and time."""

from dataclasses import replace

from kit.stores.scores import LangfuseScores
from kit.stores.server import serve
from kit.stores.worlds import NOON, Langfuse, Small

from tasks.sources.reading.http import Client
from tasks.write_back import Item, Key
from tasks.write_back.langfuse import BATCH, LangfuseWriter, score_id

ITEMS = [Item(Key(f"tr-{n}", name), 1.0, "faithful", "1 of 1.", NOON) for n in range(2) for name in ("good", "bad")]


def test_of_a_batch_that_is_refused_in_part_only_that_part_fails() -> None:
    store = LangfuseScores(Langfuse([Small("a")]), refuses=frozenset({"bad"}))
    with serve(store.answer) as server, Client(server.url, {}, "", sleep=lambda _: None) as client:
        done = list(LangfuseWriter(client).write(ITEMS))
    assert {(d.item.key.name, d.problem) for d in done} == {("good", None), ("bad", "Langfuse refuses it (HTTP 207)")}
    assert {name for _, name in store.shown()} == {"good"}
    assert len(done) == len(ITEMS)


def test_ids_follow_from_trace_and_name_alone() -> None:
    ids = {score_id(item) for item in ITEMS}
    assert len(ids) == len(ITEMS)
    assert ids == {score_id(replace(item, score=0.0, explanation="0 of 1.")) for item in ITEMS}


def test_large_batches_are_cut() -> None:
    store = LangfuseScores(Langfuse([]))
    items = [replace(ITEMS[0], key=Key(f"tr-{n}", "good")) for n in range(BATCH + 1)]
    with serve(store.answer) as server, Client(server.url, {}, "", sleep=lambda _: None) as client:
        assert len(list(LangfuseWriter(client).write(items))) == BATCH + 1
    assert [len(asked.body) for asked in server.asked] == [BATCH, 1]
    assert {asked.body[0]["timestamp"] for asked in server.asked} == {"2026-11-01T12:00:00.000+00:00"}
