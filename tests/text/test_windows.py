"""Windows: every character in exactly one, in order, none too long for the model."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasks.text.windows import windows

# English-like text: words, ends of sentences, line breaks, and words that are longer than a window
WORD = st.sampled_from(
    ["tea", "Dr.", "boils.", "at", "3.14", "Why?", "e.g.", "(yes)", "Österreich!", "x" * 70, "“So.”"]
)
PROSE = st.lists(st.tuples(WORD, st.sampled_from([" ", " ", "\n", "\n\n", "  "])), max_size=120).map(
    lambda pairs: "".join(word + gap for word, gap in pairs)
)
MIXED = st.text(st.sampled_from("ab .!?\n\u3000。茶沸騰한글é😀👩\u200d\U0001f1eb"), max_size=400)


def check_cover(text: str, spans: list[tuple[int, int]]) -> None:
    """First begins at 0, last ends with the text, each begins where the one before ended."""
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    assert [s for s, _ in spans[1:]] == [e for _, e in spans[:-1]]
    assert all(s < e for s, e in spans) or spans == [(0, 0)]


@given(PROSE, st.integers(20, 40))
@example("", 20)
@example(" " * 300, 20)
@example("word " * 21, 20)
def test_windows_cover_prose_and_hold_no_more_words_than_allowed(text: str, most: int) -> None:
    spans = windows(text, most)
    check_cover(text, spans)
    # counted by what stands between white space, without asking the code what a word is
    assert all(len(text[a:b].split()) <= most for a, b in spans)


@given(MIXED, st.integers(20, 30))
def test_windows_cover_any_text(text: str, most: int) -> None:
    check_cover(text, windows(text, most))


def test_a_short_text_and_an_empty_one_are_one_window() -> None:
    assert windows("", 20) == [(0, 0)]
    assert windows("Tea is hot.", 20) == [(0, 11)]


def test_sentences_stay_whole_where_they_fit() -> None:
    first, second, third = "One two three four five six. " * 2, "Alpha beta gamma delta. " * 3, "End here now. " * 4
    text = first + second + third
    for a, b in windows(text, 20):
        assert text[a:b].rstrip().endswith(".")  # every window ends with the end of a sentence
    assert (
        len(windows(text, 20)) == 2
    )  # 12 + 12 + 12 words: the first window takes sentences up to 20, the next the rest


def test_the_same_in_chinese_by_characters() -> None:
    text = "茶很热，水在一百度沸腾。" * 40  # 480 characters, of which 400 are ideographs and carry 200 words
    spans = windows(text, 40)
    check_cover(text, spans)
    # half a word an ideograph: no window holds more than 80 of them
    assert all(sum("\u4e00" <= c <= "\u9fff" for c in text[a:b]) <= 80 for a, b in spans)
    assert len(spans) >= 5


@pytest.mark.parametrize(
    "text", ["x" * 10_000, "tea " * 5 + "x" * 5_000 + " hot.", "https://example.org/" + "a/" * 900]
)
def test_one_giant_word_is_cut(text: str) -> None:
    spans = windows(text, 20)
    check_cover(text, spans)
    # a run without spaces counts one word for every 20 characters: no window is longer than 20 · 20 and a few spaces
    assert max(b - a for a, b in spans) <= 20 * 20 + 20
