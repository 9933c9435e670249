"""Likeness of an answer's texts to its question and passages, by sentence embeddings and shared words.

Each number depends only on the texts that it compares.
"""

import re
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from tasks.core.grades import Answered
from tasks.engines.transformers_cpu import Embedder
from tasks.graders._reading import Reading
from tasks.text.sentences import sentences
from tasks.text.words import coverage, stems_of

RULES = 1  # raised when the same texts give different measures
DECIMALS = 6
NEAREST = 0.9  # share of the best likeness from which a passage counts as one of the nearest
_SENTENCE = re.compile(r"(?<=[?.!:])\s+")
_ASKS = (
    r"what|when|how|where|who|whom|whose|which|why|can|could|do|does|did|is|are|was|were|may|must|should|will|"
    r"would|has|have|until|until when|for how|by when|to whom|at what|in which"
)
_ASPECT = re.compile(rf",?\s+and\s+(?=(?:{_ASKS})\b)|,\s+(?=(?:{_ASKS})\b)|;\s*", re.IGNORECASE)
_ASKING = re.compile(rf"\b(?:{_ASKS})\b", re.IGNORECASE)
# A statement with such a beginning is about the subject of the previous statement.
_POINTS_BACK = re.compile(
    r"^\W*(?:(?:and|but|so|then|also|however|there|in addition)\W+)*(?:it|its|they|their|them|he|she|this|"
    r"that|these|those|such|there|here|both|the same|then|otherwise|afterwards)\b"
    r"|\b(?:this|these|those|such|thereof|of it|of them|of this|of these)\b",
    re.IGNORECASE,
)


def aspects(question: str) -> list[str]:
    """The parts of a question: "When is it open, and what does it cost?" has two."""
    parts = [part.strip(" ,?") for sentence in _SENTENCE.split(question) for part in _ASPECT.split(sentence)]
    asking = [part for part in parts if part and _ASKING.search(part)]
    return asking or [question]


def points_back(text: str) -> bool:
    """Whether a statement can't be understood without the previous one."""
    return _POINTS_BACK.search(text) is not None


class Likeness:
    """The measures of one answer, each computed on first use."""

    def __init__(self, embedder: Embedder, answered: Answered, reading: Reading) -> None:
        self._embedder, self._answered, self._reading = embedder, answered, reading

    @property
    def question(self) -> str:
        """The question."""
        return self._answered.question

    @property
    def assertions(self) -> list[str]:
        """The answer's statements."""
        return [one.text for one in self._reading.assertions]

    def texts(self) -> Iterable[str]:
        """All texts to embed, so that the texts of many answers are embedded together."""
        yield from (self.question, *aspects(self.question), *self._answered.passages)
        yield from (text for of_one in self.sentences for text in of_one)
        yield from self.assertions
        yield from self._reading.declined

    def of(self, one: str, other: str) -> float:
        """Cosine of two texts, in [-1, 1]; 0 if either is blank."""
        first, second = self._embedder.embed([one, other]).vectors.astype(np.float64)
        return round(float((first * second).sum()), DECIMALS)

    def to_question(self, text: str) -> float:
        """Cosine of a text and the question."""
        return self.of(self.question, text)

    @cached_property
    def sentences(self) -> list[list[str]]:
        """Sentences of each passage with at least two content words, or the whole passage if it has none."""
        cut = [[s.text for s in sentences(p) if len(s.stems) > 1] for p in self._answered.passages]
        return [found or [passage] for found, passage in zip(cut, self._answered.passages, strict=True)]

    @cached_property
    def passages(self) -> list[float]:
        """Likeness of each passage to the question: the highest of the whole passage and its sentences."""
        return [
            max(self.to_question(text) for text in (passage, *own))
            for passage, own in zip(self._answered.passages, self.sentences, strict=True)
        ]

    @cached_property
    def best(self) -> float:
        """The highest likeness in `passages`; 0 without passages."""
        return max(self.passages, default=0.0)

    @cached_property
    def statements(self) -> list[float]:
        """Likeness of each statement to the question; if it points back, at least that of the previous statement."""
        found: list[float] = []
        for text in self.assertions:
            own = self.to_question(text)
            found.append(max(own, found[-1]) if found and points_back(text) else own)
        return found

    @cached_property
    def homes(self) -> list[int | None]:
        """Index of the nearest passage for each statement, by shared words, then by cosine."""
        stems = [stems_of(passage) for passage in self._answered.passages]
        return [
            max(
                range(len(stems)),
                key=lambda i: (round(coverage(own, stems[i]), 2), self.of(text, self._answered.passages[i])),
                default=None,
            )
            for text in self.assertions
            for own in [stems_of(text)]
        ]

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of all statements."""
        return frozenset().union(*map(stems_of, self.assertions))

    def question_coverage(self) -> float:
        """Highest share of the question's content words that one passage has."""
        own = stems_of(self.question)
        return max((coverage(own, stems_of(passage)) for passage in self._answered.passages), default=0.0)

    def touched(self) -> float:
        """Highest share of the content words of one of the passages nearest to the question that the answer has."""
        near = [at for at, own in enumerate(self.passages) if own >= NEAREST * self.best]
        return max((coverage(stems_of(self._answered.passages[at]), self.stems) for at in near), default=0.0)
