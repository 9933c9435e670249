"""The evidence of a claim's failure patterns as its page shows it: marked words of the answer, passages of chunks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tasks.publish.report.text import Piece, pieces

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Evidence(Generic[P]):
    """One pattern that a claim shows.

    Attributes:
        said: The claim's stretch of the answer, cut at what is marked: pieces with a tag are; empty where nothing is.
        shown: Passages.
    """

    pattern: str
    said: tuple[Piece, ...]
    shown: tuple[P, ...]


def evidence(row: Mapping[str, Any], answer: str, passage: Callable[[Mapping[str, Any]], P]) -> tuple[Evidence[P], ...]:
    """What a claim's row of `page_claims` says of its patterns.

    Args:
        answer: The whole answer.
        passage: How a place in a chunk is shown.
    """
    return tuple(
        Evidence(
            found["pattern"],
            tuple(_marked(answer, row["span_start"], row["span_end"], found["said"])),
            tuple(passage(place) for place in found["shown"]),
        )
        for found in row["evidence"]
    )


def _marked(answer: str, start: int, end: int, spans: Sequence[Mapping[str, int]]) -> list[Piece]:
    if not spans:
        return []
    left, right = min(start, *(s["start"] for s in spans)), max(end, *(s["end"] for s in spans))
    return pieces(answer[left:right], [(s["start"] - left, s["end"] - left, 0) for s in spans])
