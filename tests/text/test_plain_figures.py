"""Dates and times of day in one format: equal ones become equal, and nothing else changes."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.text.plain_figures import plain_figures


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The customer canceled on 2024-03-14.", "The customer canceled on 14 March 2024."),
        ("Canceled on March 14, 2024.", "Canceled on 14 March 2024."),
        ("Open from 30 June, 9 am to 4:40 pm", "Open from 30 June, 9:00 to 16:40"),
        ("By 31/12/2024, at 16:40", "By 31 December 2024, at 16:40"),
        ("By 03/04/2024", "By 03/04/2024"),  # 3 April or 4 March
        ("In May 2024", "In May 2024"),
        ("Version 2.3.1 costs 12.50 for 5 people", "Version 2.3.1 costs 12.50 for 5 people"),
        ("", ""),
    ],
)
def test_dates_and_times_of_day_have_one_format(text, expected):
    assert plain_figures(text) == expected


@given(st.dates(date(1000, 1, 1)))
def test_three_formats_of_a_day_are_one(day):
    written = {f"{day:%Y-%m-%d}", f"{day.day} {day:%B} {day.year}", f"{day:%B} {day.day}, {day.year}"}
    assert {plain_figures(f"On {text} it rained.") for text in written} == {
        f"On {day.day} {day:%B} {day.year} it rained."
    }


@given(st.text(st.characters(exclude_categories=["N"])))
def test_a_text_without_digits_stays(text):
    assert plain_figures(text) == text


@given(st.text("0123456789 -:./apmJune,", max_size=40))
def test_what_is_plain_stays_plain(text):
    once = plain_figures(text)
    assert plain_figures(once) == once
