"""Slips: what a statement gets wrong beside a source in nearly the same words; nothing shows beside other words."""

import pytest

from tasks.graders._slips import slip

SOURCE = (
    "The insurance does not cover lost luggage. At most twelve people take part. A ticket costs 4.80 crowns. "
    "You may not repair electric bicycles yourself. Reading is open to all who neither live nor work here."
)


@pytest.mark.parametrize(("statement", "what"), [
    ("The insurance covers lost luggage.", "negation"),
    ("You may repair electric bicycles yourself.", "negation"),
    ("At least twelve people take part.", "opposite"),
    ("A ticket costs 5.80 crowns.", "figure"),
    ("On Sundays a ticket costs 4.80 crowns.", "day"),
])  # fmt: skip
def test_says_what_is_otherwise_and_quotes_nothing(statement: str, what: str) -> None:
    found = slip(statement, [SOURCE])
    assert found is not None
    assert what in found.what
    assert found.addressed == (what in ("negation", "opposite"))  # the source says otherwise, or does not speak of it


@pytest.mark.parametrize(
    "statement",
    [
        "The insurance doesn't cover lost luggage.", "Lost luggage is not insured.", "At most twelve people take part.",
        "A ticket is 4.80 crowns.", "Electric bicycles: don't repair them yourself.", "Whoever wants may read.",
    ],
)  # fmt: skip
def test_says_nothing_of_what_agrees_or_is_in_other_words(statement: str) -> None:
    assert slip(statement, [SOURCE]) is None


def test_a_figure_and_a_day_of_the_question_may_be_repeated() -> None:
    assert slip("On Sundays it costs 4.80 crowns for seven.", [SOURCE], "What do seven of us pay on Sunday?") is None
