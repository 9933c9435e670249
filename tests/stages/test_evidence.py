"""The premise: the windows' texts as they stand, in the order given."""

from tasks.stages.evidence import premise

TEXTS = {"a": "Tea is hot. Ice is not.", "b": "Water boils."}


def test_one_window_is_read_as_it_stands() -> None:
    assert premise([("a", 0, 11)], TEXTS) == "Tea is hot."
    assert premise([("a", 11, 23)], TEXTS) == " Ice is not."


def test_windows_are_read_in_their_order_with_a_blank_line_between() -> None:
    assert premise([("b", 0, 12), ("a", 0, 11)], TEXTS) == "Water boils.\n\nTea is hot."
    assert premise([("a", 12, 23), ("a", 0, 11)], TEXTS) == "Ice is not.\n\nTea is hot."


def test_an_empty_chunk_is_an_empty_premise() -> None:
    assert premise([("e", 0, 0)], {"e": ""}) == ""
