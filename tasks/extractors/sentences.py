"""Extractor `sentences`: segments cut further into sentences, without a model (METHODS section 2).

Every sentence keeps the references that cover its segment. Sentence ends come from sentencex, by the rules of the
language. Leaves out what a reference covers (`segments.py`) and the single facts inside a sentence.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

import sentencex
from pydantic import Field

from tasks.core import keys
from tasks.core.types import Chunk, Citation, ClaimDraft, Extractor
from tasks.extractors import _spans, segments
from tasks.extractors._writers import Writers
from tasks.extractors.citations import Finder, StyleSettings
from tasks.extractors.markdown import encodable
from tasks.extractors.segments import Segment, Segments

# See `segments.RULES`, which counts too.
RULES = 1

# sentencex takes time with the square of the length where quotes and brackets abound; a longer sentence is cut.
_WINDOW = 4_000
# "1." or "a)": the number of what follows, not a sentence.
_NUMBER = re.compile(r"\W*(?:\d{1,3}|[A-Za-z])[.)]\W*")
_NUMBER_AT_END = re.compile(r"(?<=[:;])\s+\(?\d{1,2}[.)]\s*$")


T = TypeVar("T", bound=tuple[int, ...])


class SentenceSettings(StyleSettings):
    """What every extractor that cuts sentences can be told.

    Attributes:
        language: Whose rules tell where a sentence ends, as an ISO 639 code.
    """

    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")] = "en"


class Config(SentenceSettings):
    """Settings of the extractor `sentences`."""

    kind: Literal["sentences"] = "sentences"


@dataclass(frozen=True, slots=True)
class Sentences(Segments):
    """The extractor; see `tasks.core.types.Extractor`. Pure: the same answer gives the same claims."""

    language: str

    def extract(self, answer: str, chunks: Sequence[Chunk], citations: Sequence[Citation] | None) -> list[ClaimDraft]:
        """The sentences of one answer."""
        cut = segments.cut(answer, chunks, citations, self.finder)
        parts = [part for segment in cut for part in _split(answer, segment, self.language)]
        return segments.drafts(parts, chunks, citations, self.finder)


def build(config: Config, _: Writers) -> Extractor:
    """The extractor for these settings."""
    version = keys.version({"rules": [RULES, segments.RULES], **config.model_dump()})
    return Sentences(Finder(config), version, config.language)


def _split(answer: str, segment: Segment, language: str) -> list[Segment]:
    """The sentences of a segment. A row of a table is one statement."""
    if segment.block.kind == "row":
        return [segment]
    parts: list[Segment] = []
    for start, end in _sentences(_without_marks(answer, segment), segment.start, language):
        if _spans.has_text(answer, segment.block, start, end):
            left, right = _spans.trim(answer, segment.block, start, end)
            parts.append(segment._replace(start=left, end=right, reach=right))
    if not parts:
        return [segment]
    parts[-1] = parts[-1]._replace(reach=segment.reach)
    return parts


def _without_marks(answer: str, segment: Segment) -> str:
    """The segment's text, of the same length, without code and tags, in which a full stop ends no sentence.

    Tags become asterisks, which sentencex takes for what they are; spaces in their place would mislead it.
    """
    block = segment.block
    if not block.marks and not block.code:
        return answer[segment.start : segment.end]
    pieces: list[str] = []
    position = segment.start
    hidden = [(m[0], m[1], "*") for m in _within(block.marks, segment)]
    hidden += [(span[0], span[1], "x") for span in _within(block.code, segment)]
    for start, end, filler in sorted(hidden):
        if start >= position and end <= segment.end:
            pieces += (answer[position:start], filler * (end - start))
            position = end
    return "".join((*pieces, answer[position : segment.end]))


def _within(spans: Sequence[T], segment: Segment) -> Sequence[T]:
    """The sorted spans that begin in a segment."""
    return spans[bisect_left(spans, (segment.start,)) : bisect_left(spans, (segment.end,))]


def _sentences(text: str, offset: int, language: str) -> Iterator[tuple[int, int]]:
    """Spans of the sentences of a text that begins at `offset`."""
    begin = 0  # of the sentence that is open: a number waits for what it numbers
    for _, end in _windows(text, language):
        stop = end
        if end < len(text):
            if _NUMBER.fullmatch(text, begin, end):
                continue
            if number := _NUMBER_AT_END.search(text, max(begin, end - 10), end):
                stop = number.start()
        yield offset + begin, offset + stop
        begin = stop


def _windows(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Spans as sentencex gives them, read in windows."""
    start = 0
    while start < len(text):
        window = encodable(text[start : start + _WINDOW])
        bounds = [(b["start_index"], b["end_index"]) for b in sentencex.get_sentence_boundaries(language, window)]
        if start + _WINDOW < len(text):
            # The last sentence may go on: read it again with the next window, unless it fills this one.
            if len(bounds) > 1 and bounds[-1][0] > _WINDOW // 2:
                bounds.pop()
            elif (space := window.rfind(" ", _WINDOW // 2)) > 0:
                bounds = [(a, min(b, space)) for a, b in bounds if a < space]
        for a, b in bounds:
            yield start + a, start + b
        start += bounds[-1][1] if bounds else len(window)
