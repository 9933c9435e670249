"""Finds where claims begin and end: runs of references, the edges of claims, and what structured citations cover."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tasks.extractors.cut import _sources
from tasks.extractors.cut._kinds import Language
from tasks.extractors.cut.citations import Reference
from tasks.extractors.cut.markdown import Block

SIGNS = "✓✔✗✘❌✅☑"  # the whole content of some table cells
_TEXT = re.compile(r"[^\W_]")
_SIGNS = re.compile(rf"[^\W_{SIGNS}]|[{SIGNS}]")
_BULLETS = "•●◦▪‣·✅❌✔✓✗✘☑➡➜→►▶🔹🔸🔷🔶👉"
# Lines of a paragraph that are items, or that begin a list of sources, although Markdown does not see them as such.
_LABEL = r"\((?:[a-z]|[ivx]{1,4}|\d{1,2})\)"  # "(a)", the number of a typed item
_BOLD = r"(?:\*\*[^*\n]+\*\*|__[^_\n]+__|<b>[^<\n]+</b>|<strong>[^<\n]+</strong>)"  # on a line of its own: a heading
_PART = re.compile(
    rf"(?:^|(?<=\n))[ \t]*{_BOLD}[ \t]*\n\s*(?=\S)|"
    rf"\n\s*(?=[{_BULLETS}]\s*\S|{_LABEL}\s|{_BOLD}[ \t]*(?:\n|\Z)|{_sources.INTRODUCED})",
    re.IGNORECASE,
)
_IS_BOLD = re.compile(rf"\s*{_BOLD}\s*", re.IGNORECASE)
_TYPED = re.compile(rf"[{_BULLETS}]|{_LABEL}\s", re.IGNORECASE)

# "(see" and "Source:" before a run, and the end of the parenthesis after it, belong to the run.
_WORDS = (
    r"(?:see(?: also)?|cf\.?|refs?\.?|references?|sources?|siehe(?: auch)?|vgl\.?|quellen?|voir|véase|ver|fuentes?|"
    r"referencias?|vedi|fonti|fonte|fontes|zie|bron|bronnen|参照|出典|参考|来源|資料|资料)"
)
_HEAD = re.compile(rf"(?:[(\[（]\s*(?:{_WORDS}\s*[:：]?)?|(?<!\w){_WORDS}\s*[:：])\s*$", re.IGNORECASE)
_TAIL = re.compile(
    r"(?:,\s*(?:pp?|S|pages?|sections?|§)\.?\s*\d+(?:\s*[–-]\s*\d+)?|\s+(?:for|für|para|pour)\s[^()\[\]\n]{1,60}|を?(?:ご?参照|参照))?[.\s]*[)\]）]",
    re.IGNORECASE,
)
# Text allowed between references of one run, besides text without letters and digits.
_JOIN = re.compile(rf"[\s,;&/+]*(?:and|or|as well as|und|oder|sowie|et|ou|y|e|o|{_WORDS})?[\s,;:]*", re.IGNORECASE)
_WINDOW = 40
_DENSE = "\u3000"  # scripts that write words without spaces start here

_STOP = re.compile(r"[.!?…]+[\"'”“’»«)\]*_]*(?=\s+[^\sa-z]|\s*$)|[。！？]+[」』”）]*")
# Text that follows a run in its sentence, and the start of a sentence or a clause right before a run.
_AFTER = re.compile(r"[\s*_]*([^\W\d_][^\W_]*)")
_OPENS = re.compile(r"(?:[.!?…:;。！？：；\n]|\b(?:and|but|while|und|aber|y|pero|et|mais))[\s*_\"'”»)]*\Z")
_OPENS_SENTENCE = re.compile(r"[.!?…。！？][\s*_\"'”»)]*\Z")
_CLOSING = frozenset(".,;:!?…。！？：；")
_STOPS = (".", "!", "?", "…", ":", ";", "。", "！", "？", "*", "_", '"', "”", ")")

_AFTER_RUN = re.compile(r"(?:[.,;:!?…。，、；：！？)\]}）】」』”»]|[\"'’](?!\w))+")
_AT_START = re.compile(rf"\s+|{_LABEL}\s+|[.,;:!?…。，、；：！？–—-]+(?=\s|$)|[{_BULLETS}]\s*(?=\S)")
_AT_END = frozenset("([{（【「『“«„,;，；、")
_DASHES = frozenset("–—-")


class Run(NamedTuple):
    """Consecutive references with the text that belongs to them: `answer[start:end]`."""

    start: int
    end: int
    references: tuple[Reference, ...]


class Clause(NamedTuple):
    """The role of a run in its sentence.

    Attributes:
        end: End of the sentence if it continues after the run; None if the run ends the text that it covers.
        names: Whether the run is a word of the sentence ("according to [1]") and covers nothing else.
    """

    end: int | None
    names: bool


def parts(answer: str, blocks: Sequence[Block]) -> list[Block]:
    """The blocks, cut at lines that are typed as items, as headings or as a list of sources.

    Args:
        answer: The text that Markdown reads (`Document.text`).
    """
    found: list[Block] = []
    last: list[int] = []  # for each block, the index of its last part
    for block in blocks:
        first = block._replace(lead=last[block.lead] if block.lead >= 0 else -1)
        for start, end in _lines(answer, block):
            part = first._replace(start=start, end=end)
            if part.kind in {"item", "paragraph"} and start > block.start and _IS_BOLD.fullmatch(answer, start, end):
                part = first = part._replace(kind="paragraph", item=-1, lead=-1, group=-2 - len(found))
            elif part.kind == "paragraph" and _TYPED.match(answer, start, end):
                lead = found[-1].lead if found else -1
                if found and found[-1].kind in {"paragraph", "heading"}:
                    lead = len(found) - 1
                # Group numbers of their own: those of Markdown are not negative.
                part = part._replace(kind="item", item=-2 - len(found), lead=lead)
            found.append(part)
        last.append(len(found) - 1)
    return found


def _lines(answer: str, block: Block) -> Iterator[tuple[int, int]]:
    """The spans of a block's parts."""
    start = block.start
    if block.kind not in {"cell", "head"} and "\n" in answer[block.start : block.end]:
        for match in _PART.finditer(answer, start, block.end):
            whole = match.start() == start or answer[match.start() - 1 : match.start()] == "\n"
            end = match.end() if whole and not answer[match.start()].isspace() else match.start()
            if answer[start:end].strip():
                yield start, end - (len(answer[start:end]) - len(answer[start:end].rstrip()))
            start = match.end()
    if start < block.end:
        yield start, block.end


def has_text(answer: str, block: Block, start: int, end: int) -> bool:
    """Whether there is a letter or a digit (in a table also a sign such as ✓) outside of images and tags."""
    text = _SIGNS if block.kind == "cell" else _TEXT
    if block.silent:
        for at in range(max(bisect_left(block.silent, (start, start)) - 1, 0), len(block.silent)):
            silent, loud = block.silent[at]
            if silent >= end:
                break
            if text.search(answer, start, max(silent, start)):
                return True
            start = max(start, loud)
    return text.search(answer, start, end) is not None


def runs(answer: str, block: Block, references: Sequence[Reference]) -> list[Run]:
    """Join references into one run if there is only a comma, "and" or the like between them."""
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
        first = not has_text(answer, block, floor, start) or _OPENS_SENTENCE.search(answer, floor, start)
        if tail and tail.end() - tail.start() > 3 and first:
            start, tail = run[0].start, None  # "(See [1] for details.)" is a separate sentence
        found.append(Run(start, tail.end() if tail else end, tuple(run)))
    return found


def lead(answer: str, block: Block, found: Sequence[Run]) -> bool:
    """Whether each of several runs precedes the text that it covers: "[1] Apples are red. [2] Pears are green."."""
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
    """The block without a run at its beginning and a run at its end."""
    start, end = block.start, block.end
    if found and not has_text(answer, block, start, found[0].start):
        start = found[0].end
    if found and found[-1].start >= start and not has_text(answer, block, found[-1].end, end):
        end = found[-1].start
    return start, end


def is_number(answer: str, block: Block, run: Run) -> bool:
    """Whether a run is inside an item's number, as in `1[2]. Analyze …`. Such a run covers the text that follows."""
    number = answer[block.start : run.start] if run.start - block.start == 1 else ""
    return number.isdecimal() and answer[run.end : run.end + 1] in {".", ")"} and run.end + 1 < block.end


def opens_sentence(answer: str, block: Block, place: int) -> bool:
    """Whether a sentence ends right before `place`."""
    return _OPENS_SENTENCE.search(answer, max(block.start, place - _WINDOW), place) is not None


def clause(answer: str, block: Block, run: Run, limit: int, spoken: Sequence[Language]) -> Clause:
    """The role of a run in its sentence.

    Args:
        limit: Start of the next run, or end of the block.
        spoken: Possible languages of the sentence.
    """
    before = answer[max(block.start, run.start - _WINDOW) : run.start]
    word = before.split()[-1].lstrip("(*_\"'“«¿") if before.strip() else ""
    apart = run.start < run.references[0].start  # in parentheses, or after "Source:"
    names = not apart and any(language.fits("spoken", f"{word} ") for language in spoken)
    points = any(language.points(before) for language in spoken)
    after = _AFTER.match(answer, run.end, limit)
    if (after is None and not names and not points) or before[-1:] in _CLOSING:
        return Clause(None, names=False)  # it covers the text before it
    following = after[1] if after else ""
    if after and not apart and (not word or _OPENS.search(before) or word[-1] >= _DENSE):
        behind = answer[after.start(1) : run.end + _WINDOW]
        names |= any(language.fits("reports", behind) for language in spoken)
    goes_on = any(language.fits("goes_on", f"{following} ") for language in spoken)
    inside = points or (bool(following) and not goes_on and (following[0].islower() or following[0] >= _DENSE))
    if not names and not inside:
        return Clause(None, names=False)
    stop = _STOP.search(answer, run.end, limit)
    end = stop.end() if stop else limit
    return Clause(end if points or has_text(answer, block, run.end, end) else None, names=names)


def trim(answer: str, block: Block, start: int, end: int) -> tuple[int, int]:
    """The span without white space, leftover punctuation, item marks and broken markup at its edges.

    The span must contain text.
    """
    marks = block.marks
    if start > block.start and (match := _AFTER_RUN.match(answer, start, end)):
        start = match.end()
    while True:
        if match := _AT_START.match(answer, start, end):
            start = match.end()
            continue
        at = bisect_left(marks, (start,)) if marks else 0
        # A closing half, a mark without a partner, or emphasis that ends outside of this span.
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
    """The references of a block, with an empty one at the end of each sentence in which a structured citation ends."""
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
    """For each span, the structured references that overlap it. Others go to the span before them."""
    found: list[list[Reference]] = [[] for _ in spans]
    for reference in sorted(references) if spans else ():
        end = max(reference.end, reference.start + 1)
        overlapping = [own for own, (a, b) in zip(found, spans, strict=True) if a < end and reference.start < b]
        before = sum(a <= reference.start for a, _ in spans) - 1
        for own in overlapping or [found[max(before, 0)]]:
            own.append(reference)
    return [tuple(own) for own in found]
