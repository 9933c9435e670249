"""What a detector reads and returns: a claim with its verdicts, the chunks of its trace, and what was found where."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Protocol

from tasks.text.sentences import Sentence, sentences
from tasks.text.words import stems_of

Span = tuple[int, int]
REFUTED = frozenset({"partially_supported", "unsupported", "contradicted"})  # judged, and not supported


@dataclass(frozen=True, slots=True)
class Place:
    """Characters `start` to `end` of a chunk's text."""

    chunk_id: str
    start: int
    end: int


@dataclass(frozen=True)
class Chunk:
    """One chunk of a trace. Its text is read when the first detector asks for it, and once."""

    chunk_id: str
    text: str
    title: str = ""

    @cached_property
    def sentences(self) -> Sequence[Sentence]:
        """Its sentences and lines, in order."""
        return sentences(self.text)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of its content words, to tell whether its sentences are worth a look."""
        return stems_of(self.text)

    def place(self, start: int = 0, end: int | None = None) -> Place:
        """A place in this chunk; by default the whole of it."""
        return Place(self.chunk_id, start, len(self.text) if end is None else end)


@dataclass(frozen=True)
class Claim:
    """One claim as it was judged.

    Attributes:
        text: As the judge read it, without references and markup.
        answer: The whole answer that it is of.
        start: First character of the claim in the answer.
        end: One past the last.
        label: None unless judged.
        misused: It cites chunks, and none of them supports it.
        deciding: Chunks that decide the label, best first.
        in_part: Chunks that, each by itself, support a part of it according to the judge.
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
        """Whether it was judged and is not wholly supported."""
        return self.label in REFUTED

    def where(self, start: int, end: int) -> Span:
        """Where `text[start:end]` stands in the answer; the whole claim where it has words of its own."""
        if self._at is not None:
            return self._at + start, self._at + end
        at = [self._origin[i] for i in range(start, end) if i in self._origin]
        if len(at) < end - start or at[-1] - at[0] > 2 * (end - start):
            return self.start, self.end
        return at[0], at[-1] + 1

    @cached_property
    def _at(self) -> int | None:
        """Where the answer has the claim word for word."""
        at = self.answer.find(self.text, self.start, self.end)
        return at if at >= 0 else None

    @cached_property
    def _origin(self) -> dict[int, int]:
        """Position in `text` to position in the answer. Cleaning only removes characters, so long runs line up."""
        written = self.answer[self.start : self.end]
        blocks = SequenceMatcher(None, self.text, written, autojunk=False).get_matching_blocks()
        return {a + i: self.start + b + i for a, b, size in blocks for i in range(size)}


@dataclass(frozen=True, slots=True)
class Found:
    """The evidence of one pattern, without any text.

    Attributes:
        answer_spans: Spans of the answer; empty for the whole claim.
        chunk_spans: Places in chunks; empty if the pattern is that there is none.
    """

    answer_spans: tuple[Span, ...] = ()
    chunk_spans: tuple[Place, ...] = ()


class Detector(Protocol):
    """Finds one failure pattern. Pure: the same claim and chunks give the same finding.

    Method: docs/methods.md#failure-patterns.
    """

    def __call__(self, claim: Claim, chunks: Sequence[Chunk]) -> Found | None:
        """The evidence, or None where the claim does not show the pattern.

        Args:
            chunks: All chunks of its trace; there may be none.
        """
