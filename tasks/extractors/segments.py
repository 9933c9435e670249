"""Extractor `segments`: an answer cut at its references, without a model (METHODS section 2).

A segment is the text that one run of references covers: the text before the run, back to the run before it. A run at
the beginning of a block, with nothing before it, covers the text after it. What stands behind the last run of a block
is an uncited segment. Nothing is joined across blocks. Leaves out sentences (`sentences.py`) and facts inside them.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tasks.core import keys
from tasks.core.types import Chunk, Citation, ClaimDraft, Extractor
from tasks.extractors import _sources, markdown
from tasks.extractors._resolve import Resolver
from tasks.extractors.citations import Finder, Reference, StyleSettings
from tasks.extractors.markdown import Block

# Part of the version, and raised by whoever changes what is cut. Versions of the Markdown parser are not: a patch
# release of a dependency must not make every stored claim a stranger.
RULES = 1

_TEXT = re.compile(r"[^\W_]")
# Between references of one run, besides whatever holds no letter and no digit.
_JOIN = re.compile(r"[\s,;&/+]*(?:and|or|as well as|und|oder|sowie|et|ou|y|e|o|en|of)?[\s,;]*", re.IGNORECASE)
# "(see" and "Source:" before a run and the end of the parenthesis behind it belong to the run.
_RUN_WORDS = r"(?:see(?: also)?|cf\.?|e\.g\.|refs?\.?|references?|sources?|siehe(?: auch)?|vgl\.?|quellen?|voir|véase)"
_RUN_HEAD = re.compile(rf"(?:[(\[（]\s*(?:{_RUN_WORDS}\s*:?)?|\b{_RUN_WORDS}\s*:)\s*$", re.IGNORECASE)
_RUN_TAIL = re.compile(r"(?:,\s*(?:pp?|S|pages?|sections?|§)\.?\s*\d+(?:\s*[–-]\s*\d+)?)?\s*[)\]）]", re.IGNORECASE)
# A reference behind one of these is a word of its sentence: "According to [1], …", "Document [1] says …".
_SPOKEN = re.compile(
    r"\b(?:according to|based on|per|in|by|from|of|with|documents?|sources?|passages?|chunks?|stud(?:y|ies)|"
    r"laut|gemäß|nach|aus|von|dokumente?|quellen?|selon|según|secondo)\s*$",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)\]*_]*(?=\s+[^\sa-z]|\s*$)|[。！？]+[」』”）]*")
# Lines of one paragraph that are items all the same.
_ITEM_LINE = re.compile(r"\n\s*(?=[•●◦▪‣·]\s*\S)")
_BULLET = re.compile(r"[•●◦▪‣·]\s*")
# "1[2]. Analyze": a number of a list into which a reference was put.
_NUMBER = re.compile(r"\d{1,2}")
_AFTER_RUN = re.compile(r"(?:[.,;:!?…。，、；：！？)\]}）】」』”»]|[\"'’](?!\w))+")
_AT_START = re.compile(r"\s+|[.,;:!?…。，、；：！？–—-]+(?=\s|$)")
_AT_END = "([{（【「『“«„,;，；、"


class Config(StyleSettings):
    """Settings of the extractor `segments`."""

    kind: Literal["segments"] = "segments"


class Segment(NamedTuple):
    """A claim of segment size, with what is needed to cut it further.

    Attributes:
        reach: End of the run that covers it; its own end where none does.
    """

    start: int
    end: int
    reach: int
    references: tuple[Reference, ...]
    block: Block


@dataclass(frozen=True, slots=True)
class Segments:
    """The extractor; see `tasks.core.types.Extractor`."""

    finder: Finder
    version: str

    def extract(self, answer: str, chunks: Sequence[Chunk], citations: Sequence[Citation] | None) -> list[ClaimDraft]:
        """The segments of one answer."""
        return drafts(cut(answer, chunks, citations, self.finder), chunks, citations, self.finder)


def build(config: Config) -> Extractor:
    """The extractor for these settings."""
    return Segments(Finder(config), keys.version({"rules": RULES, **config.model_dump()}))


def drafts(
    segments: Sequence[Segment], chunks: Sequence[Chunk], citations: Sequence[Citation] | None, finder: Finder
) -> list[ClaimDraft]:
    """Segments as claims. Where the trace logs its citations as structure, that is what they cite."""
    if uses_structure(finder, citations):
        covering = _covering(segments, citations or (), Resolver(chunks))
    else:
        covering = [s.references for s in segments]
    return [
        ClaimDraft(
            s.start,
            s.end,
            tuple(dict.fromkeys(i for r in references for i in r.ids)) if references else (),
            tuple(dict.fromkeys(d for r in references for d in r.dangling)) if references else (),
        )
        for s, references in zip(segments, covering, strict=True)
    ]


def uses_structure(finder: Finder, citations: Sequence[Citation] | None) -> bool:
    """The trace's `citations` field says what is cited; references in the text then only mark where."""
    return finder.structured or (finder.logged and bool(citations))


def cut(
    answer: str, chunks: Sequence[Chunk], citations: Sequence[Citation] | None, finder: Finder
) -> list[Segment]:
    """All segments of an answer, in order."""
    document = markdown.parse(answer)
    resolver = Resolver(chunks, document.notes)
    blocks = [line for block in document.blocks for line in _lines(answer, block)]
    found = [finder.find(answer, block, resolver) for block in blocks]
    ends = sorted(c.end for c in citations or ()) if uses_structure(finder, citations) else []
    segments: list[Segment] = []
    for at in _sources.kept(answer, blocks, found, chunks):
        block, references = blocks[at], found[at]
        if ends:
            references = _with_ends(answer, block, references, ends)
        new = list(_cut_block(answer, block, references))
        if not new and references and segments:
            # A block of references alone says where the text before it comes from.
            last = segments[-1]
            segments[-1] = last._replace(references=(*last.references, *references))
        segments += new
    return segments


def _lines(answer: str, block: Block) -> Iterator[Block]:
    """A paragraph, or its parts where its lines are typed as items or as a list of sources."""
    start = block.start
    if block.kind in {"paragraph", "item"} and "\n" in answer[block.start : block.end]:
        for pattern in (_ITEM_LINE, _sources.LINE):
            for match in pattern.finditer(answer, start, block.end):
                if match.start() > start:
                    yield block._replace(start=start, end=match.start())
                    start = match.end()
    yield block._replace(start=start)


def _cut_block(answer: str, block: Block, references: Sequence[Reference]) -> Iterator[Segment]:
    """The segments of one block."""
    if block.kind == "row":
        if piece := trim(answer, block, block.start, block.end):
            yield Segment(*piece, block.end, tuple(references), block)
        return
    runs = list(_runs(answer, block, references))
    before: tuple[Reference, ...] = ()  # references that cover what comes next
    position = block.start
    leading = _leads(answer, block, runs)
    for at, (start, end, run) in enumerate(runs):
        last = at + 1 == len(runs)
        if has_text(answer, block, position, start) and not _is_number(answer, position, start, end):
            if _SPOKEN.search(answer, max(position, start - 40), start):
                stop = _SENTENCE_END.search(answer, end, block.end if last else runs[at + 1][0])
                if stop is None and not last:
                    before += run
                    continue
                end = stop.end() if stop else block.end
                start = end
            elif leading:
                start = start
            piece = trim(answer, block, position, start, after_run=position > block.start)
            if piece:
                covering = before if leading else (*before, *run)
                yield Segment(*piece, end, covering, block)
            before = run if leading else ()
        else:
            before += run
        position = end
    if piece := trim(answer, block, position, block.end, after_run=position > block.start):
        yield Segment(*piece, block.end if before else piece[1], before, block)
