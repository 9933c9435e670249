"""Where claims begin and end: runs of references, the edges of a claim, and what structured citations cover.

Works on places in the answer. Leaves out what a reference names, and the order in which blocks are cut.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tasks.extractors import _sources
from tasks.extractors.citations import Reference
from tasks.extractors.markdown import Block

_TEXT = re.compile(r"[^\W_]")
_BULLETS = "•●◦▪‣·"
# Lines of one paragraph that are items, or that begin a list of sources, though Markdown knows neither.
_PART = re.compile(rf"\n\s*(?=[{_BULLETS}]\s*\S|{_sources.INTRODUCED})", re.IGNORECASE)

# "(see" and "Source:" before a run and the end of the parenthesis behind it belong to the run.
_WORDS = r"(?:see(?: also)?|cf\.?|refs?\.?|references?|sources?|siehe(?: auch)?|vgl\.?|quellen?|voir|véase)"
_HEAD = re.compile(rf"(?:[(\[（]\s*(?:{_WORDS}\s*:?)?|\b{_WORDS}\s*:)\s*$", re.IGNORECASE)
_TAIL = re.compile(r"(?:,\s*(?:pp?|S|pages?|sections?|§)\.?\s*\d+(?:\s*[–-]\s*\d+)?)?\s*[)\]）]", re.IGNORECASE)
# Between references of one run, besides whatever holds neither letter nor digit.
_JOIN = re.compile(rf"[\s,;&/+]*(?:and|or|as well as|und|oder|sowie|et|ou|y|e|o|{_WORDS})?[\s,;:]*", re.IGNORECASE)
_WINDOW = 40

# A reference behind one of these is a word of its sentence: "According to [1], …", "Document [1] says …".
_SPOKEN = frozenset({
    "to", "on", "per", "in", "by", "from", "of", "with",
    "document", "documents", "source", "sources", "passage", "passages", "chunk", "chunks", "study", "studies",
    "laut", "gemäß", "nach", "aus", "von", "dokument", "dokumente", "quelle", "quellen", "selon", "según", "secondo",
})  # fmt: skip
_STOP = re.compile(r"[.!?…]+[\"'”’»)\]*_]*(?=\s+[^\sa-z]|\s*$)|[。！？]+[」』”）]*")
_STOPS = (".", "!", "?", "…", ":", ";", "。", "！", "？", "*", "_", '"', "”", ")")

_AFTER_RUN = re.compile(r"(?:[.,;:!?…。，、；：！？)\]}）】」』”»]|[\"'’](?!\w))+")
_AT_START = re.compile(rf"\s+|[.,;:!?…。，、；：！？–—-]+(?=\s|$)|[{_BULLETS}]\s*")
_AT_END = frozenset("([{（【「『“«„,;，；、")
_DASHES = frozenset("–—-")


class Run(NamedTuple):
    """Consecutive references and what belongs to them: `answer[start:end]`."""

    start: int
    end: int
    references: tuple[Reference, ...]


def parts(answer: str, block: Block) -> Iterator[Block]:
    """A block, or its parts where its lines are typed as items or as a list of sources."""
    start = block.start
    if block.kind != "row" and "\n" in answer[block.start : block.end]:
        for match in _PART.finditer(answer, start, block.end):
            yield block._replace(start=start, end=match.start())
            start = match.end()
    yield block._replace(start=start) if start > block.start else block


def has_text(answer: str, block: Block, start: int, end: int) -> bool:
    """There is a letter or a digit, outside of images and tags."""
    if block.silent:
        for at in range(max(bisect_left(block.silent, (start, start)) - 1, 0), len(block.silent)):
            silent, loud = block.silent[at]
            if silent >= end:
                break
            if _TEXT.search(answer, start, max(silent, start)):
                return True
            start = max(start, loud)
    return _TEXT.search(answer, start, end) is not None


def runs(answer: str, block: Block, references: Sequence[Reference]) -> list[Run]:
    """References with nothing but commas, "and" or the like between them are one run."""
    joined: list[list[Reference]] = []
    for reference in references:
        if joined:
            start, end = joined[-1][-1].end, reference.start
            if not has_text(answer, block, start, end) or (
                end - start < _WINDOW and _JOIN.fullmatch(answer, start, end)
            ):
                joined[-1].append(reference)
                continue
        joined.append([reference])
    found: list[Run] = []
    for run in joined:
        floor = found[-1].end if found else block.start
        start, end = run[0].start, run[-1].end
        window = answer[max(floor, start - _WINDOW) : start]
        if window and ("(" in window or ":" in window or "[" in window or "（" in window):
            head = _HEAD.search(window)
            start -= len(window) - head.start() if head else 0
        tail = _TAIL.match(answer, end, block.end)
        found.append(Run(start, tail.end() if tail else end, tuple(run)))
    return found


def lead(answer: str, block: Block, found: Sequence[Run]) -> bool:
    """Several runs, each before the text that it covers: "[1] Apples are red. [2] Pears are green."."""
    if len(found) < 2 or has_text(answer, block, block.start, found[0].start):
        return False
    if not has_text(answer, block, found[-1].end, block.end):
        return False
    for run in found[1:]:
        before = answer[max(block.start, run.start - _WINDOW) : run.start]
        opens = "\n" in before[len(before.rstrip()) :] or before.rstrip().endswith(_STOPS)
        if not opens or answer[run.end] in ".,;":
            return False
    return True


def inside(answer: str, block: Block, found: Sequence[Run]) -> tuple[int, int]:
    """The block without a run at its beginning and one at its end."""
    start, end = block.start, block.end
    if found and not has_text(answer, block, start, found[0].start):
        start = found[0].end
    if found and found[-1].start >= start and not has_text(answer, block, found[-1].end, end):
        end = found[-1].start
    return start, end


def is_number(answer: str, block: Block, run: Run) -> bool:
    """`1[2]. Analyze …`: the number of an item into which a reference was put. It covers what follows."""
    number = answer[block.start : run.start] if run.start - block.start == 1 else ""
    return number.isdecimal() and answer[run.end : run.end + 1] in {".", ")"} and run.end + 1 < block.end


def end_of_spoken(answer: str, block: Block, run: Run, limit: int) -> int | None:
    """Where the sentence ends of which the run is a word, at most `limit`; None if the run is no word of a sentence."""
    words = answer[max(block.start, run.start - _WINDOW) : run.start].split()
    if not words or words[-1].lstrip("(*_\"'“").lower() not in _SPOKEN:
        return None
    stop = _STOP.search(answer, run.end, limit)
    end = stop.end() if stop else limit
    return end if has_text(answer, block, run.end, end) else None


def trim(answer: str, block: Block, start: int, end: int) -> tuple[int, int]:
    """The span without white space, leftover punctuation, item marks and cut-off markup at its edges.

    There must be text in it; what is taken away holds none.
    """
    marks = block.marks
    if start > block.start and (match := _AFTER_RUN.match(answer, start, end)):
        start = match.end()
    while True:
        if match := _AT_START.match(answer, start, end):
            start = match.end()
            continue
        at = bisect_left(marks, (start,)) if marks else 0
        # A closing half, something that stands alone, or emphasis that ends beyond this span.
        if at < len(marks) and marks[at].start == start and (not marks[at].opens or marks[at].partner >= end):
            start = marks[at].end
            continue
        break
    while True:
        last = answer[end - 1]
        if last.isspace() or last in _AT_END or (last in _DASHES and answer[end - 2].isspace()):
            end -= 1
            continue
        at = bisect_left(marks, (end,)) - 1 if marks else -1
        if at >= 0 and marks[at].end == end:
            mark = marks[at]
            if mark.opens or mark.partner == mark.start or 0 <= mark.partner < start:
                end = mark.start
                continue
        return start, end


def with_ends(answer: str, block: Block, references: Sequence[Reference], ends: Sequence[int]) -> list[Reference]:
    """The references of a block and, at the end of each sentence in which a structured citation ends, an empty one."""
    places: list[int] = []
    for at in range(bisect_left(ends, block.start + 1), len(ends)):
        end = ends[at]
        if end > block.end:
            break
        if places and end <= places[-1]:
            continue
        while end > block.start and (answer[end - 1].isspace() or answer[end - 1] in "\"'”’»)]*_"):
            end -= 1
        stop = _STOP.search(answer, max(end - 1, block.start), block.end)
        if stop is None:
            break
        if not places or stop.end() > places[-1]:
            places.append(stop.end())
    taken = [r for r in references if r.end > r.start]
    free = []
    for place in places:
        at = bisect_left(taken, (place,)) - 1
        if at < 0 or taken[at].end <= place:
            free.append(Reference(place, place))
    return sorted([*taken, *free])


def covering(spans: Sequence[tuple[int, int]], references: Sequence[Reference]) -> list[tuple[Reference, ...]]:
    """For each span, the structured references that overlap it; one that overlaps none goes to the span before it."""
    found: list[list[Reference]] = [[] for _ in spans]
    starts = [start for start, _ in spans]
    for reference in sorted(references):
        at = max(bisect_left(starts, max(reference.end, reference.start + 1)) - 1, 0)
        touched = False
        while spans and at >= 0 and spans[at][1] > reference.start:
            if spans[at][0] < max(reference.end, reference.start + 1):
                found[at].append(reference)
                touched = True
            at -= 1
        if spans and not touched:
            found[max(bisect_left(starts, reference.start + 1) - 1, 0)].append(reference)
    return [tuple(references) for references in found]
