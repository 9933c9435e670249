"""Cuts an answer into sentences (docs/methods.md#claims).

The steps: find the references; cut each block where a run of references ends, then into sentences; find each sentence's
kind; pass the references of source lists, lead-ins and headings on to claims.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from tasks.core.types import Answer, Chunk, Citation, Kind
from tasks.extractors.cut import _kinds, _sources, _spans, markdown
from tasks.extractors.cut._kinds import Language
from tasks.extractors.cut._pieces import Cut, Piece, Segment, hand_on
from tasks.extractors.cut._resolve import Resolver, plain_digits
from tasks.extractors.cut._sentences import sentences
from tasks.extractors.cut._spans import Run
from tasks.extractors.cut.citations import Finder, Reference
from tasks.extractors.cut.markdown import Block
from tasks.text import languages
from tasks.text.languages import Detected
from tasks.text.spans import within

# Part of every version; raise it when the same answer is cut differently. Versions of libraries are not included: a
# patch release must not invalidate all stored claims.
RULES = 3

_TITLE_WORDS = 12
_BOLD = re.compile(
    r"\s*(?:\*\*(?:(?!\*\*).){1,200}\*{2,3}|__[^_]{1,200}__|<(b|strong)>[^<]{1,200}</\1>)\s*", re.IGNORECASE
)
_LABELED = re.compile(r"\w[:：]\s*\w")  # "Age: 40 years" states something
_TERM = re.compile(
    r"\s*(?:\*\*|__|<b>|<strong>)?([^*_<>:：.!?\n]{1,60}?)\s*(?:[:：]\s*(?:\*\*|__|</b>|</strong>)|(?:\*\*|__|</b>|</strong>)\s*[:：–—-]|[:：]\s)"
)
_LEFT_OVER = re.compile(r"(?<![^\S\n])[^\S\n]++(?=[.,;:!?、。](?:\s|$)|$)")
_EMPTY_BRACKETS = re.compile(r"[(\[（]\s*[)\]）]")
_BARE_NUMBER = re.compile(r"[\[［【]\s*#?(\d{1,3})\s*[\]］】]|【\d+:(\d{1,3})†")


def cut(answer: Answer, finder: Finder, language: str) -> Cut:
    """Cut one answer.

    Args:
        language: Its ISO 639 code; `auto` detects it.
    """
    return _Cutter(answer, finder, language).cut()


def counts_from_zero(chunks: Sequence[Chunk]) -> bool:
    """Whether ranks begin at 0 or are missing, so that references may count from 0 or from 1."""
    return bool(chunks) and min((c.rank for c in chunks if c.rank is not None), default=0) == 0


def first_number(text: str, chunks: Sequence[Chunk]) -> int | None:
    """The number that the answer's references use for the first chunk; None if they leave it open.

    With ranks from 0, "[0]" shows that references count like the ranks. A reference to the number of chunks, without
    any "[0]", shows that they count from 1. The same holds for positions, if there are no ranks.
    """
    if not counts_from_zero(chunks):
        return None
    ranks = [c.rank for c in chunks if c.rank is not None]
    cited = {int(plain_digits(m[1] or m[2])) for m in _BARE_NUMBER.finditer(text)}
    beyond = max(ranks, default=len(chunks) - 1) + 1
    if 0 in cited and beyond in cited:
        return None
    return 0 if 0 in cited else 1 if beyond in cited else None


class _Cutter:
    def __init__(self, answer: Answer, finder: Finder, language: str) -> None:
        self.answer = answer
        self.text = answer.text
        self.finder = finder
        self.document = markdown.parse(self.text)
        self.blocks = _spans.parts(self.document.text, self.document.blocks)
        self.detected = self._detect() if language == "auto" else Detected(language, sure=True)
        self.language = self.detected.code
        self.codes = (self.language, "en")
        self.spoken: Sequence[Language] = _kinds.known(self.language) or _kinds.known("en")
        counted_from = first_number(self.text, answer.chunks) if answer.first is None else answer.first
        ranked = any(c.rank is not None for c in answer.chunks)
        self.renumbered = counted_from == (1 if ranked else 0)
        self.resolver = Resolver(
            answer.chunks,
            self.document.notes,
            _sources.labels(self.text, answer.chunks),
            counted_from if self.renumbered else None,
        )
        self.found = [self._find(block) for block in self.blocks]
        self.runs = [_spans.runs(self.text, b, refs) for b, refs in zip(self.blocks, self.found, strict=True)]
        self.naming: set[tuple[int, int]] = set()  # runs that are words of their sentences
        self.starts: dict[int, list[int]] = {}  # for each block, the starts of its sentences
        self.cells = {(b.group, *b.place): n for n, b in enumerate(self.blocks) if b.kind in {"head", "cell"}}
        self.wide = {group for group, _, column in self.cells if column > 0}  # tables with several columns

    def _find(self, block: Block) -> list[Reference]:
        found = self.finder.find(self.text, block, self.resolver)
        bare = _sources.bare(self.text[block.start : block.end]) if not found and self.finder.logged else None
        named = self.resolver.read("numeric", bare) if bare else None
        return [Reference(block.start, block.end, *named)] if named else found

    def _detect(self) -> Detected:
        shown = " ".join(self.text[b.start : b.end] for b in self.blocks)
        found = languages.detect(shown)
        return found if found.code else languages.detect(f"{self.answer.question} {shown}")

    def _language_of(self, text: str) -> str | None:
        """The language of a part of the answer."""
        if self.detected.sure and languages.may_be(text, self.language):
            return self.language
        return languages.detect(text).code or self.language

    def cut(self) -> Cut:
        """Run all steps."""
        kept, lists = _sources.split(self.text, self.blocks, self.found, self.answer.chunks, self.resolver)
        segments, lines = self._segments(kept)
        pieces = self._pieces(segments)
        if self._is_logged:
            self._cite_as_logged(pieces)
        else:
            hand_on(pieces, [*lines, *lists], self.blocks, self.cells)
        for piece in pieces:
            piece.text = self.plain(piece)
        self._read_together(pieces)
        return Cut(pieces, self.language, self.document.reasoning, self.renumbered)

    # Segments ---------------------------------------------------------------------------------------------------------

    def _segments(self, kept: Sequence[int]) -> tuple[list[Segment], list[_sources.Sources]]:
        """All segments, and the blocks that consist of references."""
        segments: list[Segment] = []
        lines: list[_sources.Sources] = []
        logged = sorted(c.end for c in self.answer.citations or ()) if self._is_logged else []
        for (kind, _, _), together in groupby(kept, key=self._row_of):
            at = list(together)
            if kind == "head":
                continue
            if kind == "cell":
                segments += self._row(at)
                continue
            for number in at:
                block = self.blocks[number]
                if logged:
                    self.found[number] = _spans.with_ends(self.text, block, self.found[number], logged)
                    self.runs[number] = _spans.runs(self.text, block, self.found[number])
                new = self._cut_block(number)
                segments += new
                if not new and self.found[number]:
                    lines.append(_sources.Sources(number, tuple(self.found[number]), listed=False))
        return segments, lines

    def _row_of(self, number: int) -> tuple[str, int, int]:
        block = self.blocks[number]
        if block.kind in {"cell", "head"}:
            return block.kind, block.group, block.place[0]
        return "text", -1, -1

    def _row(self, numbers: Sequence[int]) -> list[Segment]:
        """The cells of a row. References cover the cells since the previous ones; in the row's label, all cells."""
        cells: list[Segment] = []
        for_all: list[Reference] = []
        covered = 0  # number of cells that have their references
        last: list[int] = []
        for number in numbers:
            block, references = self.blocks[number], tuple(self.found[number])
            if block.place[1] == 0 and block.group in self.wide:
                for_all += references
                continue
            start, end = _spans.inside(self.text, block, self.runs[number])
            if _spans.has_text(self.text, block, start, end):
                start, end = _spans.trim(self.text, block, start, end)
                cells.append(Segment(start, end, block.end, (), number))
            elif not cells:
                for_all += references
                continue
            if references:
                last = [*range(covered, len(cells))] or last
                for at in last:
                    cells[at] = cells[at]._replace(references=(*cells[at].references, *references))
                covered = len(cells)
        return [c._replace(references=(*for_all, *c.references)) for c in cells]

    def _cut_block(self, number: int) -> list[Segment]:
        """The segments of one block; none if it consists of references."""
        block, runs = self.blocks[number], self.runs[number]
        answer = self.text
        if block.kind == "heading":
            return list(
                self._segment(number, *_spans.inside(answer, block, runs), block.end, tuple(self.found[number]))
            )
        if _spans.lead(answer, block, runs) and not self._clause(number, 1).names:
            nexts = [*(run.start for run in runs[1:]), block.end]
            pieces = zip(runs, nexts, strict=True)
            return [s for run, end in pieces for s in self._segment(number, run.end, end, end, run.references)]
        segments: list[Segment] = []
        position = block.start
        waiting: list[Reference] = []  # references of text that follows
        for at, run in enumerate(runs):
            limit = runs[at + 1].start if at + 1 < len(runs) else block.end
            clause = self._clause(number, at)
            if clause.names:
                self.naming.add((run.start, run.end))
                begin = self._sentence_start(number, run.start)
                if begin > position and _spans.has_text(answer, block, position, begin):
                    segments += self._segment(number, position, begin, begin, tuple(waiting))
                    position, waiting = begin, []
            elif not _spans.has_text(answer, block, position, run.start) or _spans.is_number(answer, block, run):
                if segments:
                    last = segments[-1]
                    segments[-1] = last._replace(reach=run.end, references=(*last.references, *run.references))
                else:
                    waiting += run.references
                position = run.end
                continue
            waiting += run.references
            if clause.end is not None and clause.end == limit and at + 1 < len(runs):
                continue  # the sentence and its segment continue up to the next run
            end, reach = (run.start, run.end) if clause.end is None else (clause.end, clause.end)
            segments += self._segment(number, position, end, reach, tuple(waiting))
            position, waiting = reach, []
        segments += self._segment(number, position, block.end, block.end, tuple(waiting))
        return segments

    def _clause(self, number: int, at: int) -> _spans.Clause:
        """The role of the run `at` in its sentence."""
        runs, block = self.runs[number], self.blocks[number]
        limit = runs[at + 1].start if at + 1 < len(runs) else block.end
        return _spans.clause(self.text, block, runs[at], limit, self.spoken)

    def _sentence_start(self, number: int, place: int) -> int:
        """Start of the sentence that contains `place`."""
        block = self.blocks[number]
        if _spans.opens_sentence(self.text, block, place):
            return place
        if number not in self.starts:
            spans = sentences(self.text, block, block.start, block.end, self.language)
            self.starts[number] = [block.start, *(start for start, _ in spans)]
        starts = self.starts[number]
        return starts[bisect_right(starts, place) - 1]

    def _segment(
        self, number: int, start: int, end: int, reach: int, references: tuple[Reference, ...]
    ) -> Iterator[Segment]:
        """The segment between two places, unless there is no text between them."""
        block = self.blocks[number]
        if _spans.has_text(self.text, block, start, end):
            yield Segment(*_spans.trim(self.text, block, start, end), reach, references, number)

    # Sentences --------------------------------------------------------------------------------------------------------

    def _pieces(self, segments: Sequence[Segment]) -> list[Piece]:
        """The sentences of all segments, with their kinds. Claims get the references of their segment."""
        found: list[Piece] = []
        for number, segment in enumerate(segments):
            block = self.blocks[segment.block]
            whole = block.kind in {"cell", "heading"} or (self._is_bold(block) and not _kinds.ends(self._shown(block)))
            spans = (
                [(segment.start, segment.end)]
                if whole
                else sentences(self.text, block, segment.start, segment.end, self.language)
            )
            own: list[Piece] = []
            for start, end in spans:
                if _spans.has_text(self.text, block, start, end):
                    left, right = _spans.trim(self.text, block, start, end)
                    own.append(Piece(left, right, "claim", number, segment.block, right))
            if not own:
                own = [Piece(segment.start, segment.end, "claim", number, segment.block, segment.end)]
            own[-1].reach = segment.reach
            found += own
        alone = {b: len(list(its)) == 1 for b, its in groupby(p.block for p in found)}
        for piece in found:
            piece.kind = self._kind(piece, alone=alone[piece.block])
            covering = segments[piece.segment].references
            inside = tuple(r for r in covering if piece.start <= r.start <= piece.reach)
            piece.cites = covering if piece.is_claim else inside
            if piece.kind == "pointer" and not inside:
                piece.cites = self._named(piece)
        return found

    def _named(self, piece: Piece) -> tuple[Reference, ...]:
        """The documents that a pointer names without brackets."""
        tokens = re.finditer(r"[\w./-]*\w\.\w{2,5}(?:#[\w-]+)?\b", self.text[piece.start : piece.end])
        named = ((piece.start + t.start(), piece.start + t.end(), self.resolver.ids(t[0])) for t in tokens)
        return tuple(Reference(start, end, ids) for start, end, ids in named if ids)

    def _kind(self, piece: Piece, *, alone: bool) -> Kind:
        block = self.blocks[piece.block]
        if block.kind in {"heading", "cell"}:
            piece.language = self._language_of(self.text[piece.start : piece.end])
            return "heading" if block.kind == "heading" else "claim"
        text = markdown.plain_text(self._without_code(piece))
        behind = self.text[piece.reach : piece.reach + 3].lstrip()[:1]
        if piece.reach > piece.end and behind and behind in ".!?:…。！？：":
            text += behind  # the reference is before the end of the sentence
        piece.language = self._language_of(text)
        codes = (self.language, piece.language, "en")
        kind = _kinds.kind_of(text, codes)
        if alone and kind in {"claim", "question", "lead-in"} and (title := self._title(piece, text)):
            return title
        ends_block = piece.reach >= block.end - 2
        if (
            kind == "claim"
            and block.kind == "paragraph"
            and ends_block
            and not _kinds.ends(text)
            and self._introduces(piece.block)
        ):
            return "lead-in"
        return kind

    def _without_code(self, piece: Piece) -> str:
        """A piece's text with code replaced by a word, because names in code say nothing about the sentence's kind."""
        parts: list[str] = []
        at = piece.start
        for start, end in within(self.blocks[piece.block].code, piece.start, piece.end):
            if at <= start:
                parts += (self.text[at:start], "it")
                at = end
        return "".join((*parts, self.text[at : piece.end]))

    def _title(self, piece: Piece, text: str) -> Kind | None:
        """Whether a block of one short line without a full stop is a heading or a lead-in; None if neither."""
        block = self.blocks[piece.block]
        bold = self._is_bold(block)
        last = piece.block == len(self.blocks) - 1
        if block.kind == "item":
            return "lead-in" if bold and self._introduces(piece.block) else None
        if bold and not last and not text.endswith((".", "!", "。", ":", "：")) and len(text.split()) <= _TITLE_WORDS:
            return "heading"
        long = len(text) > 80 or len(text.split()) > _TITLE_WORDS or "\n" in self.text[piece.start : piece.end]
        cites = self.found[piece.block] and not text.isupper()
        if last or long or cites or _kinds.ends(text) or text[:1].islower() or _LABELED.search(text):
            return None
        short = text.isupper() or len(text.split()) <= 4
        return "heading" if short or not self._introduces(piece.block) else "lead-in"

    def _is_bold(self, block: Block) -> bool:
        """Whether a whole block is bold."""
        return _BOLD.fullmatch(self.text[block.start : block.end]) is not None

    def _shown(self, block: Block) -> str:
        return self.text[block.start : block.end].strip(" \n*_")

    def _introduces(self, number: int) -> bool:
        """Whether a list or a table follows a block."""
        following = self.blocks[number + 1 : number + 2]
        return any(b.kind in {"head", "cell"} or (b.kind == "item" and b.lead == number) for b in following)

    # References -------------------------------------------------------------------------------------------------------

    @property
    def _is_logged(self) -> bool:
        """Whether the trace's `citations` field names what is cited; references in the text then only mark places."""
        return self.finder.structured or (self.finder.logged and bool(self.answer.citations))

    def _cite_as_logged(self, pieces: Sequence[Piece]) -> None:
        logged = [_as_reference(c, self.resolver) for c in self.answer.citations or ()]
        covering = _spans.covering([(p.start, p.reach) for p in pieces], logged)
        for piece, references in zip(pieces, covering, strict=True):
            piece.cites = references

    # What is read -----------------------------------------------------------------------------------------------------

    def plain(self, piece: Piece) -> str:
        """A piece's text without references and markup. Nouns replace references that are words of the sentence."""
        parts: list[str] = []
        at = piece.start
        runs = self.runs[piece.block]
        for number in range(max(bisect_left(runs, (piece.start,)) - 1, 0), len(runs)):
            run = runs[number]
            if run.start >= piece.end:
                break
            if run.end <= piece.start:
                continue
            parts.append(self.text[at : max(run.start, piece.start)])
            if (run.start, run.end) in self.naming and self.spoken:
                noun = self.spoken[0].source[len(run.references) > 1 or _many(run)]
                parts.append(noun[0].upper() + noun[1:] if run.start <= piece.start else noun)
            at = max(at, min(run.end, piece.end))
        parts.append(self.text[at : piece.end])
        text = _EMPTY_BRACKETS.sub("", "".join(parts))
        raw = self.text[piece.start : piece.end]
        return markdown.plain_text(_LEFT_OVER.sub("", text)) or markdown.plain_text(raw) or raw

    def _read_together(self, pieces: Sequence[Piece]) -> None:
        """Give each claim its context."""
        last = {piece.block: piece for piece in pieces}
        heads = self._heads()
        terms: dict[int, str] = {}  # for each item, the term that its first sentence explains
        for piece in pieces:
            block = self.blocks[piece.block]
            if block.kind == "item":
                first = block.item not in terms
                if first:
                    found = _TERM.match(self.text, piece.start, piece.end + 3)
                    terms[block.item] = markdown.plain_text(found[1]) if found else ""
                term = "" if first else terms[block.item]
                piece.context = ": ".join(t for t in (*self._leads(piece.block, last), term) if t)
            elif block.kind == "cell":
                piece.context = ", ".join(heads.get(piece.block, ()))
            elif piece.is_claim and _kinds.is_polar(piece.text, self.codes):
                question = " ".join(self.answer.question.split())
                piece.context = question if not question or question[-1] in "?？" else f"{question}?"

    def _leads(self, number: int, last: Mapping[int, Piece]) -> tuple[str, ...]:
        """Lead-ins of the lists that contain an item, outermost first.

        Args:
            last: The last piece of each block.
        """
        found: list[str] = []
        lead = self.blocks[number].lead
        while lead >= 0:
            if piece := last.get(lead):
                introduces = piece.kind in {"lead-in", "heading"} or not _kinds.ends(piece.text)
                text = (piece.text or self.plain(piece)).rstrip(" :：.")
                if introduces and text and not _kinds.is_empty_lead(text, self.codes):
                    found.append(text)
            lead = self.blocks[lead].lead
        return tuple(reversed(found))

    def _heads(self) -> dict[int, tuple[str, ...]]:
        """Head of the column and label of the row, for each cell."""

        def text(at: tuple[int, int, int]) -> str:
            number = self.cells.get(at)
            if number is None:
                return ""
            start, end = _spans.inside(self.text, self.blocks[number], self.runs[number])
            return markdown.plain_text(self.text[start:end]).strip(" :：")

        found = {}
        for number, block in enumerate(self.blocks):
            if block.kind == "cell":
                row, column = block.place
                top = self.cells.get((block.group, 0, column), number)
                head = text((block.group, 0, column)) if self.blocks[top].kind == "head" else ""
                label = text((block.group, row, 0)) if column else ""
                found[number] = tuple(t for t in (head, label) if t)
        return found


def _many(run: Run) -> bool:
    """Whether a single reference of the run names several chunks, such as `[1, 2]`."""
    return any(len(r.ids) + len(r.dangling) > 1 for r in run.references)


def _as_reference(citation: Citation, resolver: Resolver) -> Reference:
    """A structured citation as a reference."""
    named = [(i, resolver.ids(i)) for i in citation.chunk_ids]
    ids = tuple(chunk_id for _, chunk_ids in named for chunk_id in chunk_ids)
    return Reference(citation.start, citation.end, ids, tuple(i for i, chunk_ids in named if not chunk_ids))
