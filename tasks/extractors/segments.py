"""Extractor `segments`: cuts an answer at its references, without a model (docs/methods.md#claims).

A segment is the text that one run of references covers: the text before the run, back to the previous run. A run at the
beginning of a block covers the text after it. Text after the last run of a block is an uncited segment. Segments never
extend across blocks or across text that is no claim.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from tasks.core import keys
from tasks.core.types import Answer, ClaimDraft, Extraction, Extractor
from tasks.extractors import Writers
from tasks.extractors.cut import _kinds, cutter
from tasks.extractors.cut._pieces import Piece
from tasks.extractors.cut.citations import CutSettings, Finder
from tasks.text import declines

RULES = [cutter.RULES, _kinds.RULES, declines.RULES]  # part of the version


class Config(CutSettings):
    """Settings of the extractor `segments`."""

    kind: Literal["segments"] = "segments"


@dataclass(frozen=True, slots=True)
class Segments:
    """The extractor; see `tasks.core.types.Extractor`. The same answer always gives the same claims."""

    finder: Finder
    version: str
    language: str
    by_sentence: bool = False

    @property
    def modelless(self) -> Extractor:
        """Itself."""
        return self

    @property
    def engine(self) -> str:
        """No engine, since there is no model."""
        return "none"

    @property
    def gpus(self) -> int:
        """No GPUs, since there is no model."""
        return 0

    def extract_many(self, answers: Sequence[Answer]) -> list[Extraction]:
        """The claims and other parts of each answer, in order."""
        return [self.extract(answer) for answer in answers]

    def extract(self, answer: Answer) -> Extraction:
        """The claims and other parts of one answer."""
        found = cutter.cut(answer, self.finder, self.language)
        pieces = found.pieces if self.by_sentence else _joined(found.pieces)
        drafts = [draft(piece) for piece in pieces]
        drafts += [ClaimDraft(start, end, kind="reasoning") for start, end in found.reasoning]
        return Extraction(sorted(drafts, key=lambda d: d.start), found.language, found.renumbered)

    def close(self) -> None:
        """Do nothing: there is no model to free."""


def build(config: Config, _: Writers) -> Extractor:
    """The extractor for these settings."""
    return Segments(Finder(config), keys.version({"rules": RULES, **config.model_dump()}), config.language)


def draft(piece: Piece) -> ClaimDraft:
    """A piece as an extractor returns it."""
    return ClaimDraft(
        piece.start,
        piece.end,
        tuple(dict.fromkeys(i for r in piece.cites for i in r.ids)),
        tuple(dict.fromkeys(d for r in piece.cites for d in r.dangling)),
        piece.kind,
        piece.context,
        piece.hypothesis,
        piece.language,
    )


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Join successive claims of one segment."""
    for (_, kind), together in groupby(pieces, key=lambda p: (p.segment, p.kind)):
        its = list(together)
        if kind == "claim":
            cites = tuple(dict.fromkeys(reference for piece in its for reference in piece.cites))
            text = " ".join(piece.text for piece in its)
            yield replace(its[0], end=its[-1].end, reach=its[-1].reach, cites=cites, text=text)
        else:
            yield from its
