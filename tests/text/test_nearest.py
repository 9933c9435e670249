"""The few sentences of a text that are nearest to a claim."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tasks.text.nearest import ROW, nearest, units

PAGE = (
    "Home > Leave > Carry-over\nStaff may carry over five days. They must be taken by 31 March. "
    "Requests reach HR by June 30. Menus are in the canteen. We use cookies."
)


def test_what_the_claim_speaks_of_is_there_in_the_order_of_the_text() -> None:
    found = nearest(PAGE, "Five days may be carried over.", 2)
    # "carry", "five" and "days" stand in one sentence; "carry" in the page's path too, and nothing else is shared.
    assert found == "Home > Leave > Carry-over Staff may carry over five days."


def test_a_second_fact_is_worth_more_than_the_first_one_again() -> None:
    text = "The fee is 20 euros. The fee of 20 euros is due. It was raised in May. Cats sleep. Dogs bark."
    # The second sentence has what the first one has, the third one has the other half of the claim.
    assert nearest(text, "The fee of 20 euros was raised in May.", 2) in {
        "The fee is 20 euros. It was raised in May.",
        "The fee of 20 euros is due. It was raised in May.",
    }


def test_numbers_are_found_however_they_are_written() -> None:
    text = "Cats sleep. Dogs bark. Twelve boats are moored. Birds sing. Fish swim."
    assert nearest(text, "There are 12 ships.", 1) == "Twelve boats are moored."


def test_where_nothing_more_is_shared_the_neighbors_of_the_first_choice_are_shown() -> None:
    text = "Cats sleep. Dogs bark. Boats are moored. Birds sing. Fish swim."
    assert nearest(text, "Boats", 3) == "Dogs bark. Boats are moored. Birds sing."


def test_a_sentence_that_must_be_there_is_one_of_them() -> None:
    text = "Cats sleep. Dogs bark. Boats are moored. Birds sing. Boats float."
    assert nearest(text, "Boats", 2, ["Birds sing."]) == "Boats are moored. Birds sing."
    assert nearest(text, "Boats", 1, ["Cats sleep.", "Birds sing."]) == "Cats sleep. Birds sing."


def test_a_short_text_is_shown_as_it_is() -> None:
    assert nearest("One.  Two. Three.", "Four", 3) == "One.  Two. Three."
    assert nearest("", "Four") == ""


def test_a_row_of_a_table_keeps_its_cells() -> None:
    table = "Plan | Storage | Price\nSilver | 50 GB | 3 euros\nGold | 200 GB | 7 euros"
    assert nearest(table, "Gold costs 7 euros.", 1) == "Gold | 200 GB | 7 euros"
    page = "Menu | " + "Cats sleep all day. " * ROW
    assert units(page) == ["Menu", *["Cats sleep all day."] * ROW]


@given(st.text(max_size=200), st.text(max_size=60), st.integers(1, 4))
def test_it_shows_so_many_whole_sentences(text: str, claim: str, count: int) -> None:
    found = nearest(text, claim, count)
    pieces = units(text)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    whole = [text] if len(pieces) <= count else [" ".join(some) for some in combinations(pieces, count)]
    assert found in whole
