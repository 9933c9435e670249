"""What the judge is shown: windows of chunks, one by one and as one text."""

from tasks.judging.claims import passages, premise

TEXTS = {"a": "Tea is hot. Ice is not.", "b": "Water boils."}


def test_a_passage_is_a_window_of_its_chunk() -> None:
    assert passages([("a", 0, 11)], TEXTS) == ("Tea is hot.",)
    assert passages([("b", 0, 12), ("a", 11, 23)], TEXTS) == ("Water boils.", " Ice is not.")


def test_passages_stand_apart_in_their_order() -> None:
    assert premise(["Water boils.", "Tea is hot."]) == "Water boils.\n\nTea is hot."
    assert premise(["Tea is hot."]) == "Tea is hot."


def test_an_empty_chunk_is_an_empty_premise() -> None:
    assert premise(passages([("e", 0, 0)], {"e": ""})) == ""
