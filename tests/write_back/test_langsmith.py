"""LangSmith refuses an id that it has: it is updated instead."""

from dataclasses import replace

from kit.stores.scores import LangsmithScores
from kit.stores.server import serve
from kit.stores.worlds import NOON, Langsmith, Small

from tasks.sources.reading.http import Client
from tasks.write_back import Item, Key
from tasks.write_back.langsmith import LangsmithWriter

ITEM = Item(Key("tr-a", "leadline_faithfulness"), 1.0, "faithful", "1 of 1.", NOON)


def test_new_there_known_and_lost() -> None:
    store = LangsmithScores(Langsmith([Small("a")]))
    with serve(store.answer) as server, Client(server.url, {}, "", sleep=lambda _: None) as client:
        writer = LangsmithWriter(client, extend=False)
        (done,) = writer.write([ITEM])
        list(writer.write([replace(ITEM, score=0.5)]))  # a run that was killed before it took this on record
        list(writer.write([replace(ITEM, score=0.25, store_id=done.store_id)]))
        store.feedback.clear()
        (last,) = writer.write([replace(ITEM, score=0.0, store_id=done.store_id)])
        assert (last.problem, last.store_id) == (None, done.store_id)
    assert [asked.method for asked in server.asked] == ["POST", "POST", "PATCH", "PATCH", "PATCH", "POST"]
    assert store.shown() == {("tr-a", "leadline_faithfulness"): (0.0, "faithful: 1 of 1.")}
