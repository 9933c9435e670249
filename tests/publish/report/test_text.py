"""Texts and numbers for the pages."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.publish.report import text
from tasks.publish.report.text import excerpt, pieces, slug

spans = st.lists(st.tuples(st.integers(-3, 40), st.integers(-3, 40), st.integers(0, 9)), max_size=8)


@given(st.text(max_size=30), spans)
def test_pieces_joined_are_the_text_and_each_is_covered_by_its_tags(body, marks):
    found = pieces(body, marks)
    assert "".join(p for p, _ in found) == body
    at = 0
    for piece, tags in found:
        covering = {t for s, e, t in marks if 0 <= s < e <= len(body) and s <= at and at + len(piece) <= e}
        assert set(tags) == covering
        assert piece
        at += len(piece)


def test_pieces_count_characters_beyond_the_basic_plane_as_one():
    assert pieces("\U0001f600ab", [(1, 2, 7)]) == [("\U0001f600", ()), ("a", (7,)), ("b", ())]


def test_pieces_of_overlapping_spans_name_both_in_the_order_of_their_beginning():
    assert pieces("abcd", [(1, 4, 5), (0, 2, 9)]) == [("a", (9,)), ("b", (9, 5)), ("cd", (5,))]


@given(st.text(min_size=1, max_size=60))
def test_slugs_are_safe_file_names(trace_id):
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,60}", slug(trace_id))
    assert not slug(trace_id).startswith("-")


def test_slugs_tell_apart_ids_that_look_alike_once_made_safe():
    assert len({slug(i) for i in ("a/b", "a:b", "a b", "A b", "../a/b")}) == 5


@pytest.mark.parametrize(
    ("span", "limit", "expected"),
    [
        ((0, None), 99, "one two three four"),
        ((4, 7), 99, "… two …"),
        ((0, None), 9, "one two …"),  # "one two t" is cut back to a word
        ((14, 400), 99, "… four"),
        ((900, None), 99, "… "),
    ],
)
def test_excerpt_shows_what_it_leaves_out(span, limit, expected):
    assert excerpt("one two\n three four"[:7] + " three four", *span, limit) == expected


def test_excerpt_cuts_a_text_without_spaces():
    assert excerpt("x" * 50, limit=10) == "x" * 10 + " …"


def test_what_is_not_there_is_never_shown_as_zero():
    assert {text.number(None), text.percent(None), text.percent(0, 0), text.count(None), text.moment(None)} == {"n/a"}
    assert text.number(0.0, 1) == "0.0"


def test_moments_are_shown_in_utc():
    there = datetime(2026, 11, 19, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert text.moment(there) == text.moment(there.astimezone(UTC)) == "2026-11-18 23:30 UTC"


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.25, "0.2 s"), (59.9, "59.9 s"), (200, "3 min 20 s"), (7260, "2 h 1 min")]
)
def test_durations_read_well(seconds, expected):
    assert text.duration(seconds) == expected
    assert text.duration(timedelta(seconds=seconds)) == expected


def test_words_make_a_list():
    assert [text.listed(w) for w in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
