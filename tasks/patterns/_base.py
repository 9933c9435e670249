"""Inputs and output of a detector: a claim with its verdicts, the chunks of its trace, and the evidence found."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Protocol

from tasks.text.sentences import Sentence, sentences
from tasks.text.words import stems_of

Span = tuple[int, int]
REFUTED = frozenset({"partially_supported", "unsupported", "contradicted"})  # judged and not fully supported


@dataclass(frozen=True, slots=True)
class Place:
    """Characters `start` to `end` of a chunk's text."""

    chunk_id: str
    start: int
    end: int


@dataclass(frozen=True)
class Chunk:
    """One chunk of a trace. Its text is read once, when a detector first needs it."""

    chunk_id: str
    text: str
    title: str = ""

    @cached_property
    def sentences(self) -> Sequence[Sentence]:
        """Its sentences and lines, in order."""
        return sentences(self.text)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of its content words, for skipping chunks that share too few words with a claim."""
        return stems_of(self.text)

    def place(self, start: int = 0, end: int | None = None) -> Place:
        """A place in this chunk, by default the whole chunk."""
        return Place(self.chunk_id, start, len(self.text) if end is None else end)


@dataclass(frozen=True)
class Claim:
    """One claim as it was judged.

    Attributes:
        text: The text that the judge read, without references and markup.
        answer: The whole answer that contains the claim.
        start: Position of the claim's first character in the answer.
        end: Position after its last character.
        label: None if it was not judged.
        misused: Whether it cites chunks of which none supports it.
        deciding: Chunks that decide the label, best first.
        in_part: Chunks that each support a part of it, according to the judge.
        dangling: References to chunks that are not in the trace, as written.
    """

    text: str
    answer: str
    start: int
    end: int
    label: str | None = None
    misused: bool | None = None
    deciding: tuple[str, ...] = ()
    in_part: tuple[str, ...] = ()
    dangling: tuple[str, ...] = ()

    @property
    def refuted(self) -> bool:
        """Whether it was judged and not fully supported."""
        return self.label in REFUTED

    def where(self, start: int, end: int) -> Span:
        """The place of `text[start:end]` in the answer; the whole claim if its text differs too much from it."""
        if self._at is not None:
            return self._at + start, self._at + end
        at = [self._origin[i] for i in range(start, end) if i in self._origin]
        if len(at) < end - start or at[-1] - at[0] > 2 * (end - start):
            return self.start, self.end
        return at[0], at[-1] + 1

    @cached_property
    def _at(self) -> int | None:
        """Position of the claim's exact text in the answer; None if it is not there."""
        at = self.answer.find(self.text, self.start, self.end)
        return at if at >= 0 else None

    @cached_property
    def _origin(self) -> dict[int, int]:
        """Position in `text` to position in the answer. Cleaning only removes characters, so long runs are equal."""
        written = self.answer[self.start : self.end]
        blocks = SequenceMatcher(None, self.text, written, autojunk=False).get_matching_blocks()
        return {a + i: self.start + b + i for a, b, size in blocks for i in range(size)}


@dataclass(frozen=True, slots=True)
class Found:
    """The evidence for one pattern, without any text.

    Attributes:
        answer_spans: Spans of the answer; empty means the whole claim.
        chunk_spans: Places in chunks; empty if the pattern is an absence from all chunks.
    """

    answer_spans: tuple[Span, ...] = ()
    chunk_spans: tuple[Place, ...] = ()


class Detector(Protocol):
    """Finds one failure pattern. Pure: the same claim and chunks give the same finding.

    Method: docs/methods.md#failure-patterns.
    """

    def __call__(self, claim: Claim, chunks: Sequence[Chunk]) -> Found | None:
        """The evidence; None if the claim does not have the pattern.

        Args:
            chunks: All chunks of the claim's trace, possibly none.
        """
