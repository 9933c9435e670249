"""Rewrites dates and times in one format each, because a small model may not know that two formats are equal.

Left out: ambiguous dates ("03/04/2024"), which stay unchanged, and amounts and units.
"""

from collections.abc import Iterator
from functools import lru_cache

from tasks.text import numbers

RULES = 1  # raised when the same text gives a different result
MONTHS = [names.split()[0] for names in numbers.MONTH_NAMES]


@lru_cache(maxsize=4096)
def plain_figures(text: str) -> str:
    """The text with dates as "14 March 2024" or "14 March", and times of day as "16:40"."""
    if not any(c.isdigit() for c in text):
        return text
    pieces, at = [], 0
    for start, end, written in sorted([*_dates(text), *_clocks(text)]):
        if start >= at:
            pieces += [text[at:start], written]
            at = end
    return "".join([*pieces, text[at:]])


def _dates(text: str) -> Iterator[tuple[int, int, str]]:
    for start, end, days in numbers.dates(text):
        (year, month, day), *others = days
        if day is not None and not others:
            yield start, end, f"{day} {MONTHS[month - 1]}" + (f" {year}" if year else "")


def _clocks(text: str) -> Iterator[tuple[int, int, str]]:
    for start, end, minutes in numbers.clocks(text):
        (minute, *others) = minutes
        if not others and text[start:end].rstrip(". ").casefold().endswith("m"):
            yield start, end, f"{minute // 60}:{minute % 60:02d}"
