"""Phoenix: which document of which span a chunk was, and what becomes of a batch with an unknown trace."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from kit.stores.scores import PhoenixScores
from kit.stores.server import serve
from kit.stores.worlds import NOON, Phoenix, Small

from tasks.sources.phoenix import Config, PhoenixStore, named
from tasks.sources.reading.http import Client
from tasks.sources.spans import Span, SpanSettings
from tasks.sources.spans.texts import Document
from tasks.write_back import Done, Item, Key
from tasks.write_back.phoenix import PhoenixWriter, places

ITEM = Item(Key("tr-a", "leadline_faithfulness"), 1.0, "faithful", "1 of 1.", NOON)


def span(name: str, kind: Any, second: int, **more: Any) -> Span:
    at = NOON + timedelta(seconds=second)
    return Span("t", name, None if name == "root" else "root", name, kind, at, at, **more)


def document(name: str, text: str) -> Document:
    return Document(text, name)


def test_places_of_chunks() -> None:
    """The reranker kept two of three: chunks are its documents, at its positions."""
    found = [document(n, f"The text of passage {n}.") for n in "abc"]
    spans = [
        span("root", "chain", 0, input="Which passage is it?", output="It is c."),
        span("search", "retriever", 1, documents=tuple(found)),
        span("rerank", "reranker", 2, documents=(found[2], found[0])),
        span("chat", "llm", 3, output="It is c."),
    ]
    assert places(spans, SpanSettings()) == {"c": ("rerank", 0), "a": ("rerank", 1)}


def test_documents_that_are_plain_output_have_no_place() -> None:
    spans = [
        span("root", "chain", 0, input="Which passage is it?", output="It is c."),
        span("search", "retriever", 1, output=[{"id": "a", "page_content": "The text of passage a."}]),
        span("chat", "llm", 3, output="It is c."),
    ]
    assert places(spans, SpanSettings()) == {}


def send(store: PhoenixScores, *items: Item) -> list[Done]:
    with serve(store.answer) as server, Client(server.url, {}, "", sleep=lambda _: None) as client:
        config = named(Config.model_validate(Phoenix().config(server.url)))
        return list(PhoenixWriter(PhoenixStore(config), client, config.spans).write(items))


def test_one_unknown_trace_takes_no_other_with_it() -> None:
    store = PhoenixScores(Phoenix([Small("a"), Small("b")]))
    done = send(
        store, ITEM, replace(ITEM, key=Key("gone", "leadline_faithfulness")), replace(ITEM, key=Key("tr-b", "x"))
    )
    assert [d.problem for d in done] == [None, "Phoenix has no such trace", None]
    assert set(store.shown()) == {("tr-a", "leadline_faithfulness"), ("tr-b", "x")}


def test_a_number_that_is_withdrawn_leaves_a_label() -> None:
    store = PhoenixScores(Phoenix([Small("a")]))
    send(store, ITEM)
    send(store, replace(ITEM, score=None, label="n/a"))
    (one,) = store.traces.values()
    assert (one["result"]["score"], one["result"]["label"]) == (None, "n/a")


def test_a_chunk_without_a_place_is_left_out() -> None:
    store = PhoenixScores(Phoenix([Small("a", text="A passage about tea.")]))
    known, unknown = (replace(ITEM, key=Key("tr-a", "leadline_chunk", chunk)) for chunk in ("c1", "c9"))
    done = {d.item.key.chunk_id: d.left_out for d in send(store, known, unknown)}
    assert done == {"c1": False, "c9": True}
