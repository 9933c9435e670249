"""The list of sources that many answers end with: found here, so that nothing in it is taken for a claim.

A list counts as one if a word such as "Sources" introduces it, or if it is the end of the answer and every entry is
a reference with a link or a title, or a link alone (METHODS section 2). Leaves out footnote definitions and link
definitions, which Markdown itself knows.
"""

import re
from collections.abc import Sequence

from tasks.core.types import Chunk
from tasks.extractors.citations import Reference
from tasks.extractors.markdown import Block

_WORDS = (
    r"(?:sources?(?: cited| used)?|references?|citations?|bibliography|works cited|footnotes|endnotes|"
    r"quellen(?:verzeichnis|angaben?|nachweise?)?|literatur(?:verzeichnis)?|referenzen|einzelnachweise|"
    r"références|bibliographie|fuentes|referencias|bibliografía|fonti|riferimenti|fontes|referências|bronnen|källor|"
    r"参考文献|参考资料|来源|引用|出典)"
)
INTRODUCED = rf"[*_]{{0,3}}{_WORDS}[*_]{{0,3}}\s?[:：]"  # beginning of a line that holds its list itself
_INTRODUCED = re.compile(rf"\s*{INTRODUCED}", re.IGNORECASE)
_INTRODUCTION = re.compile(rf"[\s*_#>]*{_WORDS}[\s*_]*[:：]?[\s*_]*", re.IGNORECASE)
_LINK = re.compile(r"!?\[[^\[\]\n]{0,300}\]\([^()\s]{0,2000}[^()\n]{0,100}\)|<?\b(?:https?://|www\.)[^\s<>]+>?")
_LEAD = re.compile(r"[\s*_>•●◦▪‣·–-]*")
_ENUMERATOR = re.compile(r"\d{1,3}[.):]\s+")
_TEXT = re.compile(r"[^\W_]")
_TITLE_WORDS = 15


def kept(
    answer: str, blocks: Sequence[Block], found: Sequence[Sequence[Reference]], chunks: Sequence[Chunk]
) -> list[int]:
    """Indices of the blocks that can hold claims: neither headings nor part of a list of sources.

    Args:
        found: The references of each block.
    """
    dropped = {at for at, block in enumerate(blocks) if block.kind == "heading"}
    dropped |= _introduced(answer, blocks, found, dropped)
    rest = [at for at in range(len(blocks)) if at not in dropped]
    titles = {t.casefold() for c in chunks for t in (c.title, c.doc_id) if t}
    first: dict[str, int] = {}  # where a chunk is referred to for the first time
    for at in rest:
        for reference in found[at]:
            for name in (*reference.ids, *reference.dangling):
                first.setdefault(name, at)
    while rest:
        size = 1
        while size < len(rest) and blocks[rest[-size - 1]].group == blocks[rest[-1]].group:
            size += 1
        group = rest[-size:]
        if not all(_is_entry(answer, blocks[at], found[at], titles, first, group[0]) for at in group):
            break
        del rest[-size:]
    if rest and _INTRODUCED.match(answer, blocks[rest[-1]].start, blocks[rest[-1]].end):
        rest.pop()
    return rest


def _introduced(
    answer: str, blocks: Sequence[Block], found: Sequence[Sequence[Reference]], headings: set[int]
) -> set[int]:
    """Blocks that a word such as "Sources", standing alone, introduces, and that word."""
    dropped: set[int] = set()
    last_heading = max((at for at in headings if not _is_introduction(answer, blocks[at])), default=-1)
    for at, block in enumerate(blocks):
        if at in dropped or not _is_introduction(answer, block):
            continue
        dropped.add(at)
        listed = False
        for next_ in range(at + 1, len(blocks)):
            entry = _is_entry(answer, blocks[next_], found[next_], set(), {}, 0)
            if blocks[next_].kind != "paragraph":
                # Before another section, "References" may be what the section is about.
                if next_ in headings or (at < last_heading and not entry):
                    break
                listed = True
            elif not entry and (listed or at < last_heading or _covers_text(answer, blocks[next_], found[next_])):
                break
            dropped.add(next_)
    return dropped


def _is_introduction(answer: str, block: Block) -> bool:
    return block.end - block.start < 60 and bool(_INTRODUCTION.fullmatch(answer, block.start, block.end))


def _covers_text(answer: str, block: Block, references: Sequence[Reference]) -> bool:
    """A reference stands behind text, as in a claim; in an entry of a list it would come first."""
    return bool(references) and _TEXT.search(answer, block.start, references[0].start) is not None


def _is_entry(
    answer: str, block: Block, references: Sequence[Reference], titles: set[str], first: dict[str, int], group: int
) -> bool:
    """Every line of the block is a reference with a link or a title, or a link alone."""
    start = block.start
    following = iter(references)
    reference = next(following, None)
    for line in answer[block.start : block.end].split("\n"):
        end = start + len(line)
        mine = []
        while reference is not None and reference.start < end:
            mine.append(reference)
            reference = next(following, None)
        if not _is_entry_line(answer, start, end, mine, titles, first, group):
            return False
        start = end + 1
    return True


def _is_entry_line(
    answer: str,
    start: int,
    end: int,
    references: Sequence[Reference],
    titles: set[str],
    first: dict[str, int],
    group: int,
) -> bool:
    lead = _LEAD.match(answer, start, end)
    place = lead.end() if lead else start
    leading = bool(references) and references[0].start == place
    if leading:
        place = references[0].end
    elif number := _ENUMERATOR.match(answer, place, end):
        place = number.end()
    rest, links = answer[place:end], 0
    if "](" in rest or "://" in rest or "www." in rest:
        rest, links = _LINK.subn("", rest)
    elif not leading:
        return False
    if not _TEXT.search(rest):
        # A reference alone belongs to the text before it, unless it stands there already.
        return bool(links) or (leading and _are_known(references[0], first, group))
    if not leading:
        return False
    title = rest.strip(" \t\r*_:.-–—\"“”'").casefold()
    if len(title.split()) > _TITLE_WORDS:
        return False
    is_sentence = rest.rstrip().endswith((".", "!", "?", "。"))
    return bool(links) or title in titles or (not is_sentence and _are_known(references[0], first, group))


def _are_known(reference: Reference, first: dict[str, int], group: int) -> bool:
    """Everything that it names was referred to before the list."""
    names = (*reference.ids, *reference.dangling)
    return bool(names) and all(first.get(name, group) < group for name in names)
