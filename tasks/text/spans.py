"""Searches sorted spans: which one contains a place, and which lie inside a range."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TypeVar

Span = tuple[int, int]
T = TypeVar("T", bound=tuple[int, ...])


def around(place: int, spans: Sequence[Span]) -> Span | None:
    """The span that contains a place. Spans must be sorted and disjoint."""
    at = bisect_right(spans, place, key=lambda span: span[0]) - 1
    return spans[at] if at >= 0 and place < spans[at][1] else None


def within(spans: Sequence[T], start: int, end: int) -> Sequence[T]:
    """The spans inside `start:end`. They must be sorted; each begins with its start and its end."""
    return [span for span in spans[bisect_left(spans, (start,)) : bisect_left(spans, (end,))] if span[1] <= end]
