"""Extractor `segments`: an answer cut at its references, without a model (METHODS section 2).

A segment is the text that one run of references covers: the text before the run, back to the run before it. A run at
the beginning of a block, with nothing before it, covers the text after it. What stands behind the last run of a block
is an uncited segment. Nothing is joined across blocks. Leaves out sentences (`sentences.py`) and the facts in them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tasks.core import keys
from tasks.core.types import Answer, Chunk, Citation, ClaimDraft, Extraction, Extractor
from tasks.extractors import _sources, _spans, markdown
from tasks.extractors._resolve import Resolver
from tasks.extractors._writers import Writers
from tasks.extractors.citations import Finder, Reference, StyleSettings
from tasks.extractors.markdown import Block

# Part of the version, and raised by whoever changes what is cut. The versions of the libraries are not: a patch
# release of one must not make every stored claim a stranger.
RULES = 1


class Config(StyleSettings):
    """Settings of the extractor `segments`."""

    kind: Literal["segments"] = "segments"


class Segment(NamedTuple):
    """A claim of segment size, with what is needed to cut it further.

    Attributes:
        reach: End of the run that covers it; its own end where none follows it.
    """

    start: int
    end: int
    reach: int
    references: tuple[Reference, ...]
    block: Block


@dataclass(frozen=True, slots=True)
class Segments:
    """The extractor; see `tasks.core.types.Extractor`. Pure: the same answer gives the same claims."""

    finder: Finder
    version: str

    @property
    def modelless(self) -> Extractor:
        """Itself."""
        return self

    @property
    def gpus(self) -> int:
        """None."""
        return 0

    def extract(self, answer: str, chunks: Sequence[Chunk], citations: Sequence[Citation] | None) -> list[ClaimDraft]:
        """The claims of one answer."""
        return drafts(cut(answer, chunks, citations, self.finder), chunks, citations, self.finder)

    def extract_many(self, answers: Sequence[Answer]) -> list[Extraction]:
        """The claims of each answer, in order."""
        return [Extraction(self.extract(a.text, a.chunks, a.citations)) for a in answers]

    def hypothesis(self, claim: str) -> str:
        """A claim as a judge should read it: without references and markup."""
        return self.finder.hypothesis(claim)

    def close(self) -> None:
        """Nothing is held."""


def build(config: Config, _: Writers) -> Extractor:
    """The extractor for these settings."""
    return Segments(Finder(config), keys.version({"rules": RULES, **config.model_dump()}))


def cut(answer: str, chunks: Sequence[Chunk], citations: Sequence[Citation] | None, finder: Finder) -> list[Segment]:
    """All segments of an answer, in order."""
    document = markdown.parse(answer)
    resolver = Resolver(chunks, document.notes)
    blocks = [part for block in document.blocks for part in _spans.parts(answer, block)]
    found = [finder.find(answer, block, resolver) for block in blocks]
    ends = sorted(c.end for c in citations or ()) if _is_logged(finder, citations) else []
    segments: list[Segment] = []
    alone: list[Reference] = []  # in blocks of nothing else: they say where the text above comes from
    for at in _sources.kept(answer, blocks, found, chunks):
        references = _spans.with_ends(answer, blocks[at], found[at], ends) if ends else found[at]
        new = _cut_block(answer, blocks[at], references)
        if not new:
            alone += references
            continue
        _attach(segments, alone)
        alone = []
        segments += new
    _attach(segments, alone)
    return segments


def _attach(segments: list[Segment], references: Sequence[Reference], reach: int | None = None) -> None:
    """Let references cover the last segment too."""
    if segments and references:
        last = segments[-1]
        segments[-1] = last._replace(reach=reach or last.reach, references=(*last.references, *references))


def drafts(
    segments: Sequence[Segment], chunks: Sequence[Chunk], citations: Sequence[Citation] | None, finder: Finder
) -> list[ClaimDraft]:
    """Segments as claims. Where the trace logs its citations as structure, those alone say what is cited."""
    if _is_logged(finder, citations):
        covering = _spans.covering([(s.start, s.reach) for s in segments], _logged(citations or (), Resolver(chunks)))
    else:
        covering = [s.references for s in segments]
    claims: list[ClaimDraft] = []
    before: Sequence[Reference] | None = None
    ids: tuple[str, ...] = ()
    dangling: tuple[str, ...] = ()
    for segment, references in zip(segments, covering, strict=True):
        if references is not before:  # the sentences of one segment share theirs
            ids = tuple(dict.fromkeys(i for r in references for i in r.ids))
            dangling = tuple(dict.fromkeys(d for r in references for d in r.dangling))
            before = references
        claims.append(ClaimDraft(segment.start, segment.end, ids, dangling))
    return claims


def _is_logged(finder: Finder, citations: Sequence[Citation] | None) -> bool:
    """The trace's `citations` field says what is cited; references in the text then only show where."""
    return finder.structured or (finder.logged and bool(citations))


def _logged(citations: Sequence[Citation], resolver: Resolver) -> list[Reference]:
    """Structured citations as references."""
    found = []
    for citation in citations:
        named = [(i, resolver.ids(i)) for i in citation.chunk_ids]
        ids = tuple(chunk_id for _, chunk_ids in named for chunk_id in chunk_ids)
        found.append(Reference(citation.start, citation.end, ids, tuple(i for i, chunk_ids in named if not chunk_ids)))
    return found


def _cut_block(answer: str, block: Block, references: Sequence[Reference]) -> list[Segment]:
    """The segments of one block; none if it holds nothing but references."""
    runs = _spans.runs(answer, block, references)
    if block.kind == "row":  # one statement, whatever stands in which cell
        start, end = _spans.inside(answer, block, runs)
        return list(_segment(answer, block, start, end, block.end, tuple(references)))
    if _spans.lead(answer, block, runs):
        nexts = [*(run.start for run in runs[1:]), block.end]
        pieces = zip(runs, nexts, strict=True)
        return [s for run, end in pieces for s in _segment(answer, block, run.end, end, end, run.references)]
    segments: list[Segment] = []
    position = block.start
    waiting: list[Reference] = []  # references of text that is still to come
    for at, run in enumerate(runs):
        if not _spans.has_text(answer, block, position, run.start) or _spans.is_number(answer, block, run):
            if segments:
                _attach(segments, run.references, run.end)
            else:
                waiting += run.references
            position = run.end
            continue
        limit = runs[at + 1].start if at + 1 < len(runs) else block.end
        stop = _spans.end_of_spoken(answer, block, run, limit) if position < run.start else None
        waiting += run.references
        if stop is not None and stop == limit and at + 1 < len(runs):
            continue  # the sentence goes on to the next run, and so does the segment
        end, reach = (run.start, run.end) if stop is None else (stop, stop)
        segments += _segment(answer, block, position, end, reach, tuple(waiting))
        position, waiting = reach, []
    segments += _segment(answer, block, position, block.end, block.end, tuple(waiting))
    return segments


def _segment(
    answer: str, block: Block, start: int, end: int, reach: int, references: tuple[Reference, ...]
) -> Iterator[Segment]:
    """The segment between two places, if there is text between them."""
    if _spans.has_text(answer, block, start, end):
        yield Segment(*_spans.trim(answer, block, start, end), reach, references, block)
