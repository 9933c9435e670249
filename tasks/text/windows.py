"""Splits long texts into windows of whole sentences, for models that read short texts. Pure functions."""

import re
from collections.abc import Iterable
from itertools import pairwise

import sentencex

from tasks.text.words import DENSE

_WORD = re.compile(r"\S+")
_LONG = 12  # characters that count as a word in text of longer runs (Thai, addresses, encoded data)


def windows(text: str, max_words: int) -> list[tuple[int, int]]:
    """Spans of whole sentences of at most `max_words` words that cover the text without overlap.

    A text that is short enough, or empty, is one window. A longer sentence is cut between words, or between characters
    if it has no spaces.
    """
    if len(text) <= 2 * max_words or word_count(text) <= max_words:
        return [(0, len(text))]
    spans: list[tuple[int, int]] = []
    start, end, size = 0, 0, 0.0
    for left, right in _pieces(text, max_words):
        units = word_count(text[left:right])
        if size and size + units > max_words:
            spans.append((start, end))
            start, size = left, 0.0
        end, size = right, size + units
    spans.append((start, end))
    return spans


def word_count(text: str) -> float:
    """Number of words: those between spaces, and an estimate for text without spaces."""
    spaced = max(len(text.split()), len(text) / _LONG)
    return spaced if text.isascii() else spaced + len(DENSE.findall(text)) / 2  # each character counts as half a word


def _pieces(text: str, max_words: int) -> Iterable[tuple[int, int]]:
    """Sentences, with those of more than `max_words` cut into pieces."""
    ends = [boundary["end_index"] for boundary in sentencex.get_sentence_boundaries("en", text)]
    for start, end in pairwise(sorted({0, *ends[:-1], len(text)})):  # without gaps
        if word_count(text[start:end]) <= max_words:
            yield start, end
        else:
            yield from _cut(text, start, end, max_words)


def _cut(text: str, start: int, end: int, max_words: int) -> Iterable[tuple[int, int]]:
    at, size = start, 0.0
    for word in _WORD.finditer(text, start, end):
        left = word.start()
        while left < word.end():
            # A run without spaces counts by its characters, and is cut after every max_words of them.
            right = min(word.end(), left + max_words)
            units = max(word_count(text[left:right]), 1.0)
            if size and size + units > max_words:
                yield at, left
                at, size = left, 0.0
            size += units
            left = right
    if at < end:
        yield at, end
