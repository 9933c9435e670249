"""Figures: one value in whatever format it is written, and its place."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.patterns import Chunk, Claim, find
from tasks.text.numbers import UNITS, clocks, dates, figures, in_words, spelt

GROUPS = [",", ".", " ", "\u00a0", "\u202f", "’"]
WHOLE = st.integers(13, 9_999_999)


def grouped(value: int, separator: str) -> str:
    return f"{value:,}".replace(",", separator)


def ghost(claim: str, chunk: str) -> bool:
    return bool(find(["ghost_number"], Claim(claim, claim, 0, len(claim)), [Chunk("1", chunk)]))


@given(WHOLE, st.sampled_from([*GROUPS, ""]), st.sampled_from([*GROUPS, ""]))
def test_a_whole_number_is_found_in_any_grouping(value: int, here: str, there: str) -> None:
    assert not ghost(f"There were {grouped(value, here)} of them.", f"A count gave {grouped(value, there)} in all.")


@given(st.integers(1, 99), st.integers(1, 9), st.sampled_from(".,"), st.sampled_from([" million", "m", " mn", "M"]))
def test_a_scaled_number_is_found_written_out(whole: int, tenth: int, point: str, scale: str) -> None:
    scaled, written = f"{whole}{point}{tenth}{scale}", grouped(whole * 1_000_000 + tenth * 100_000, ",")
    assert not ghost(f"It cost {scaled}.", f"Cost: {written}.")
    assert not ghost(f"It cost {written}.", f"Cost: {scaled}.")


@given(
    st.integers(0, 1000),
    st.sampled_from(["%", " %", " percent", " per cent", " pct"]),
    st.sampled_from(["%", " percent"]),
)
def test_a_percentage_is_found_whatever_its_sign(tenths: int, here: str, there: str) -> None:
    value = f"{tenths / 10:g}"
    assert not ghost(f"The rate is {value}{here}.", f"Rate: {value}{there}, final.")


@given(st.integers(2, 19))
def test_a_small_number_is_found_in_words_and_in_digits(value: int) -> None:
    assert not ghost(f"They hired {UNITS[value]} cooks.", f"Cooks hired: {value}.")
    assert not ghost(f"They hired {value} cooks.", f"In all, {UNITS[value]} cooks were hired.")


@given(WHOLE, WHOLE)
def test_another_number_is_a_ghost(value: int, other: int) -> None:
    # Exact figures of two digits or more, without a hedge: only equal ones are the same.
    assert ghost(f"There were {value} boats.", f"There were {other} boats.") == (value != other)


@given(st.dates(), st.integers(0, 4), st.integers(0, 4))
def test_a_date_is_found_in_any_format(day, here: int, there: int) -> None:
    def written(how: int) -> str:
        month = day.strftime("%B")
        return [
            f"{day.year:04d}-{day.month:02d}-{day.day:02d}", f"{day.day} {month} {day.year:04d}",
            f"{month} {day.day}, {day.year:04d}", f"{month[:3]}. {day.day}, {day.year:04d}",
            f"{day.day:02d}/{day.month:02d}/{day.year:04d}",
        ][how]  # fmt: skip

    assert not ghost(f"It opened on {written(here)}.", f"Opening: {written(there)}.")


@given(st.text(max_size=80))
def test_any_text_can_be_read_and_every_place_is_in_it(text: str) -> None:
    for figure in [*figures(text), *spelt(text)]:
        assert 0 <= figure.start < figure.end <= len(text)
        assert figure.values
    assert all(0 <= a < b <= len(text) for a, b, _ in [*dates(text), *clocks(text)])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,200", {1200}),
        ("1.200", {1200, Decimal("1.2")}),  # thousands or decimals: either is possible
        ("1.234,56", {Decimal("1234.56")}),
        ("12,34,567", {1234567}),
        ("3,5", {Decimal("3.5")}),
        ("5 million", {5_000_000}),
        ("5m", {5, 5_000_000}),  # metres or millions
    ],
)
def test_what_a_figure_may_mean(text: str, values: set[object]) -> None:
    (figure,) = figures(text)
    assert figure.values == values


def test_the_last_of_a_range_shows_what_all_of_it_are() -> None:
    assert [f.percent for f in figures("10 to 12%")] == [True, True]
    assert [max(f.values) for f in figures("1.5 to 2 million")] == [1_500_000, 2_000_000]
    assert [f.percent for f in figures("in 2019, 12%")] == [False, True]  # a year is no share


@pytest.mark.parametrize(
    ("text", "value"),
    [("twenty-five", 25), ("two hundred and six", 206), ("a hundred", 100), ("three million", 3_000_000)],
)
def test_number_words(text: str, value: int) -> None:
    assert [set(f.values) for f in spelt(text)] == [{value}]


def test_number_words_are_found_in_capitals_and_at_their_places() -> None:
    # İ has two characters in lower case; everything behind it would move.
    assert [(f.start, f.end) for f in spelt("İİ has Twelve")] == [(7, 13)]


def test_what_a_source_says_in_words() -> None:
    """Hints and shares count as the words that they are: "first_name" and "thirdly" are none of them."""
    assert set(in_words("Twice a dozen, or a THIRD of first_name; thirdly, ½ of seven.")) == {
        (Decimal(2), False), (Decimal(12), False), (Decimal(3), False), (Decimal(7), False),
        (Decimal(33), True), (Decimal("33.3"), True), (Decimal(50), True),
    }  # fmt: skip
