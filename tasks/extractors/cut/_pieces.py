"""The pieces that an answer is cut into, and how their references are passed on to claims (docs/methods.md#claims)."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, TypeAlias

from tasks.core.types import Kind
from tasks.extractors.cut._sources import Sources
from tasks.extractors.cut.citations import Reference, names
from tasks.extractors.cut.markdown import Block

Cells: TypeAlias = Mapping[tuple[int, int, int], int]  # table, row and column to index among the blocks


class Segment(NamedTuple):
    """The text that one run of references covers.

    Attributes:
        reach: End of the run that covers the text; the text's own end if no run follows.
    """

    start: int
    end: int
    reach: int
    references: tuple[Reference, ...]
    block: int


@dataclass(slots=True)
class Piece:
    """A sentence, a cell or a heading.

    Attributes:
        segment: Number of its segment.
        block: Number of its block.
        reach: As in `Segment`, for the last piece of a segment.
        cites: References that name its sources.
        context: Text that a judge needs with it: heads and label of a cell, lead-in and term of an item, question of a
            "yes".
        text: Without markup and references.
    """

    start: int
    end: int
    kind: Kind
    segment: int
    block: int
    reach: int
    language: str | None = None
    cites: tuple[Reference, ...] = ()
    context: str = ""
    text: str = ""

    @property
    def is_claim(self) -> bool:
        """Whether it is judged."""
        return self.kind == "claim"

    @property
    def hypothesis(self) -> str:
        """The text that a judge reads."""
        separator = "" if not self.context else " " if self.context[-1] in "?？" else ": "
        return f"{self.context}{separator}{self.text}"


class Cut(NamedTuple):
    """The result of cutting an answer.

    Attributes:
        language: ISO 639 code of the answer; None if it is unknown.
        reasoning: Spans of blocks that are no part of the answer.
        renumbered: Whether the answer's citations count chunks from a different number than their ranks do.
    """

    pieces: list[Piece]
    language: str | None
    reasoning: Sequence[tuple[int, int]]
    renumbered: bool


def hand_on(
    pieces: Sequence[Piece],
    lists: Sequence[Sources],
    blocks: Sequence[Block],
    cells: Cells,
) -> None:
    """Pass the references of source lists, pointers, lead-ins and headings on to claims."""
    claims = [p for p in pieces if p.is_claim]
    end = max((p.block for p in pieces), default=-1)
    _hand_back(pieces)
    if len(lists) == 1 and lists[0].at > end and not any(claim.cites for claim in claims):
        for claim in claims:
            claim.cites = lists[0].references
        lists = ()
    known = {name for claim in claims for name in names(claim.cites)}
    numbers = [p.block for p in pieces]
    for line in sorted(lists):
        new = tuple(r for r in line.references if not known.issuperset(names([r])))
        uncited: list[Piece] = []
        nearest: Piece | None = None
        for number in range(bisect_left(numbers, line.at) - 1, -1, -1):
            piece = pieces[number]
            nearest = nearest or (piece if piece.is_claim else None)
            if piece.kind == "heading" or (piece.is_claim and piece.cites):
                break
            if piece.is_claim:
                uncited.append(piece)
        for piece in uncited:
            piece.cites = new if line.listed else line.references
        if not uncited and nearest is not None:
            more = new if line.listed or line.at > end else line.references
            nearest.cites = (*nearest.cites, *(r for r in more if r not in nearest.cites))
        known.update(names(line.references))
    _hand_down(pieces, blocks, cells)


def _hand_back(pieces: Sequence[Piece]) -> None:
    """Let a pointer's references cover the claims before it in its block, back to the previous references."""
    for _, together in groupby(pieces, key=lambda p: p.block):
        uncited: list[Piece] = []
        for piece in together:
            if piece.kind == "pointer" and piece.cites:
                for claim in uncited:
                    claim.cites = piece.cites
            if piece.cites:
                uncited = []
            elif piece.is_claim:
                uncited.append(piece)


def _hand_down(pieces: Sequence[Piece], blocks: Sequence[Block], cells: Cells) -> None:
    """Let the references of a lead-in or a heading cover the claims below it that have none."""
    section: tuple[Reference, ...] = ()
    leads: dict[int, tuple[Reference, ...]] = {}
    for piece in pieces:
        if piece.kind == "heading":
            section = piece.cites
        elif piece.kind == "lead-in" and piece.cites:
            leads[piece.block] = piece.cites
        elif piece.is_claim and not piece.cites:
            piece.cites = leads.get(_introduced_by(piece.block, blocks, cells), ()) or section


def _introduced_by(number: int, blocks: Sequence[Block], cells: Cells) -> int:
    """The block that introduces the list or table of a block."""
    block = blocks[number]
    if block.kind != "cell":
        return block.lead
    return min(n for n in (cells.get((block.group, 0, 0)), number) if n is not None) - 1
