"""Sentences and lines with their places, by punctuation alone. Tuned to English.

Left out: abbreviations and the rules of other languages (`tasks/extractors/cut/_sentences.py`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tasks.text.words import Word, stems_of, words

# A sentence ends before white space and a capital, a digit, a quotation mark or a bullet, and at the end of each line.
END = re.compile(r"(?<=[.!?;])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[A-Z0-9•*-])|\s*\n\s*|\s+\|\s+")


@dataclass(frozen=True)
class Sentence:
    """A sentence or a line of a text."""

    text: str
    start: int
    end: int

    @cached_property
    def words(self) -> Sequence[Word]:
        """Its words, with their places in the whole text."""
        return words(self.text, self.start)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of its content words."""
        return stems_of(self.text)


def sentences(text: str) -> list[Sentence]:
    """Sentences and lines; white space at their ends is not part of them."""
    found, start = [], 0
    for match in (*END.finditer(text), None):
        end = match.start() if match else len(text)
        piece = text[start:end]
        left = start + len(piece) - len(piece.lstrip())
        if piece.strip():
            found.append(Sentence(piece.strip(), left, left + len(piece.strip())))
        start = match.end() if match else end
    return found
