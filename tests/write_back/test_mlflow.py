"""MLflow creates whatever it is told to: what Leadline looks up, updates and removes."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from kit.stores.scores import MlflowScores
from kit.stores.server import Asked, Reply, serve
from kit.stores.worlds import NOON, Mlflow, Small

from tasks.core.errors import ConnectionLostError
from tasks.sources.reading.http import Client
from tasks.write_back import Done, Item, Key
from tasks.write_back.mlflow import MlflowWriter

ITEM = Item(Key("tr-a", "leadline_groundedness"), 50.0, "partly_grounded", "1 of 2.", NOON)


def kept() -> MlflowScores:
    return MlflowScores(Mlflow([Small("a")]))


def send(answer: Callable[[Asked], Reply], *items: Item) -> list[Done]:
    with serve(answer) as server, Client(server.url, {}, "", sleep=lambda _: None) as client:
        return list(MlflowWriter(client).write(items))


def test_an_assessment_that_is_there_is_updated() -> None:
    store = kept()
    (first,) = send(store.answer, ITEM)
    (second,) = send(store.answer, replace(ITEM, score=100.0, store_id=None))
    assert second.store_id == first.store_id == "a-0"
    assert store.shown() == {("tr-a", "leadline_groundedness"): (100.0, "partly_grounded: 1 of 2.")}


def test_copies_are_removed_and_what_others_wrote_stays() -> None:
    store = kept()
    send(store.answer, ITEM)
    mine = store.assessments["a-0"]
    store.assessments["copy"] = {**mine, "assessment_id": "copy", "create_time": "1"}
    store.assessments["people"] = {
        **mine,
        "assessment_id": "people",
        "source": {"source_type": "HUMAN", "source_id": "ann"},
    }
    send(store.answer, replace(ITEM, score=0.0))
    assert set(store.assessments) == {"a-0", "people"}
    send(store.answer, replace(ITEM, score=None))
    assert set(store.assessments) == {"people"}


@pytest.mark.parametrize("answer", [Reply({}, 503), Reply({}, cut=0)])
def test_a_new_one_is_sent_once_where_nobody_knows_what_became_of_it(answer: Reply) -> None:
    store = kept()
    posts: list[Asked] = []

    def failing(asked: Asked) -> Reply:
        if asked.method != "POST":
            return store.answer(asked)
        posts.append(asked)
        store.answer(asked)
        return answer

    with pytest.raises(ConnectionLostError, match="in 1 try"):
        send(failing, ITEM)
    assert len(posts) == 1
    send(store.answer, ITEM)
    assert len(store.assessments) == 1


def test_a_busy_server_is_asked_again() -> None:
    """With 429, it has surely not made the assessment."""
    store = kept()
    busy = iter([Reply({}, 429, {"Retry-After": "1"})])
    (done,) = send(lambda asked: next(busy, None) or store.answer(asked) if asked.method == "POST" else store.answer(asked), ITEM)  # fmt: skip
    assert done.problem is None
    assert len(store.assessments) == 1
