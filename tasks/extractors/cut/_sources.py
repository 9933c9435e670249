"""The sources that many answers end with: lines and lists found here, so that nothing in them is taken for a claim.

A list counts as one if a word such as "Sources" introduces it, or if it is the end of the answer and every entry is
a reference with a link or a title, or a link alone (docs/methods.md#claims). What it names is handed out. Leaves out
definitions of footnotes and links, which Markdown itself knows.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tasks.core.types import Chunk
from tasks.extractors.cut._resolve import SUPERSCRIPTS, Resolver, plain_digits
from tasks.extractors.cut.citations import Reference
from tasks.extractors.cut.markdown import Block

_WORDS = (
    r"(?:sources?(?: cited| used)?|references?|citations?|bibliography|works cited|footnotes|endnotes|notes|"
    r"quellen?(?:verzeichnis|angaben?|nachweise?)?|literatur(?:verzeichnis)?|referenzen|einzelnachweise|fußnoten|"
    r"références|bibliographie|sources|fuentes?|referencias?|bibliografía|notas|fonti|fonte|riferimenti|fontes|"
    r"referências|bronn?en|bron|källor|参考文献|参考资料|参考資料|参考|来源|引用|出典|注)"
)
INTRODUCED = rf"[*_(（\[]{{0,3}}{_WORDS}[*_]{{0,3}}\s?[:：]"  # beginning of a line that holds its list itself
_INTRODUCED = re.compile(
    rf"\s*(?:{INTRODUCED}[*_]{{0,3}}|[*_#]{{0,3}}\s?{_WORDS}[*_]{{0,3}}[ \t]*(?=\n))", re.IGNORECASE
)
_BARE = re.compile(
    rf"\s*{INTRODUCED}\s*(?P<numbers>#?\d{{1,2}}(?:\s*[,;&]\s*#?\d{{1,2}})*)[\s.)\]）*_]*", re.IGNORECASE
)
_INTRODUCTION = re.compile(rf"[\s*_#>]*{_WORDS}[\s*_]*[:：]?[\s*_]*", re.IGNORECASE)
_LINK = re.compile(r"!?\[[^\[\]\n]{0,300}\]\([^()\s]{0,2000}[^()\n]{0,100}\)|<?\b(?:https?://|www\.)[^\s<>]+>?")
_LEAD = re.compile(r"[\s*_>•●◦▪‣·–-]*")
_ENUMERATOR = re.compile(rf"\d{{1,3}}[.):]\s+|[{SUPERSCRIPTS}]+\s*|\^\d{{1,3}}\s+")
_TEXT = re.compile(r"[^\W_]")
_TITLE_WORDS = 15
# One line of a list: a label, and what it stands for.
_ENTRY = re.compile(
    rf"[\s*_>•●◦▪‣·–-]*(?:\\?\[\^?#?(?P<bracket>\d{{1,3}})\\?\]|(?P<number>\d{{1,2}})[.)]|(?P<raised>[{SUPERSCRIPTS}]+)|"
    r"\^(?P<caret>\d{1,3})|<sup>\s*\[?(?P<tag>\d{1,3})\]?\s*</sup>)(?:\s*[:.–—-]\s+|\s*:\s*|\s+)(?P<title>\S.{1,300})$"
)
_MOST_ENTRIES = 60


class Sources(NamedTuple):
    """A line or a list of sources.

    Attributes:
        at: The first of its blocks.
        listed: It is a list: entries with titles or links, or several lines.
    """

    at: int
    references: tuple[Reference, ...]
    listed: bool


def bare(line: str) -> str | None:
    """The numbers of a line of sources without brackets: "Sources: 1, 2"."""
    found = _BARE.fullmatch(line)
    return found["numbers"] if found else None


def labels(answer: str, chunks: Sequence[Chunk]) -> dict[str, tuple[str, ...]]:
    """What the list at the end of an answer says of its numbers, where it names documents or titles of the trace."""
    resolver = Resolver(chunks)
    found: dict[str, tuple[str, ...]] = {}
    for line in reversed(answer.rstrip().rsplit("\n", _MOST_ENTRIES)):
        if not line.strip():
            continue
        entry = _ENTRY.match(line)
        if entry is None:
            break
        label = entry["bracket"] or entry["number"] or entry["caret"] or entry["tag"] or plain_digits(entry["raised"])
        if len(entry["title"].split()) <= _TITLE_WORDS and (ids := resolver.titled(entry["title"])):
            found[label] = ids
    return found


def split(
    answer: str,
    blocks: Sequence[Block],
    found: Sequence[Sequence[Reference]],
    chunks: Sequence[Chunk],
    resolver: Resolver,
) -> tuple[list[int], list[Sources]]:
    """Indices of the blocks that are no list of sources, and the lists.

    Args:
        found: The references of each block.
    """
    headings = {at for at, block in enumerate(blocks) if block.kind == "heading"}
    introduced = _introduced(answer, blocks, found, headings)
    gone = set(introduced)
    rest = [at for at in range(len(blocks)) if at not in gone and at not in headings]
    titles = {t.casefold() for c in chunks for t in (c.title, c.doc_id) if t}
    first: dict[str, int] = {}  # where a chunk is referred to for the first time
    for at in rest:
        for reference in found[at]:
            for name in (*reference.ids, *reference.dangling):
                first.setdefault(name, at)
    trailing: list[int] = []
    while rest:
        size = 1
        while size < len(rest) and blocks[rest[-size - 1]].group == blocks[rest[-1]].group:
            size += 1
        group = rest[-size:]
        if not all(_is_entry(answer, blocks[at], found[at], titles, first, group[0]) for at in group) and not all(
            _is_numbered_entry(answer, blocks[at], resolver, first) for at in group
        ):
            break
        trailing = [*group, *trailing]
        del rest[-size:]
    line = [rest.pop()] if rest and _INTRODUCED.match(answer, blocks[rest[-1]].start, blocks[rest[-1]].end) else []
    lists = [
        Sources(part[0], tuple(r for at in part for r in _named(answer, blocks[at], found[at], resolver)), listed)
        for part, listed in (
            (sorted(gone), True),
            (line, bool(line) and _is_list(answer, blocks[line[0]], found[line[0]], first, line[0])),
            (trailing, True),
        )
        if part
    ]
    lost = {*gone, *trailing, *line}
    return [at for at in range(len(blocks)) if at not in lost], sorted(lists)


def _is_list(answer: str, block: Block, references: Sequence[Reference], first: Mapping[str, int], at: int) -> bool:
    """Whether a line lists the sources of the whole answer: it has titles, or several that are cited above in part."""
    names = [name for r in references for name in (*r.ids, *r.dangling)]
    if len(references) > 1 and any(first[name] < at for name in names):
        return True
    introduced = _INTRODUCED.match(answer, block.start, block.end)
    ends = [introduced.end() if introduced else block.start, *(r.end for r in references)]
    starts = [*(r.start for r in references), block.end]
    return any(_TEXT.search(answer, a, b) for a, b in zip(ends, starts, strict=True))


def _named(answer: str, block: Block, references: Sequence[Reference], resolver: Resolver) -> list[Reference]:
    """What an entry refers to: its references, or else the documents that it names."""
    if references:
        return list(references)
    named = []
    start = block.start
    for line in answer[block.start : block.end].split("\n"):
        introduced = _INTRODUCED.match(line)
        if ids := resolver.titled(line[introduced.end() if introduced else 0 :]):
            named.append(Reference(start, start + len(line), ids))
        start += len(line) + 1
    return named


def _introduced(
    answer: str, blocks: Sequence[Block], found: Sequence[Sequence[Reference]], headings: set[int]
) -> set[int]:
    """Blocks that a word such as "Sources", standing alone, introduces, and that word."""
    dropped: set[int] = set()
    last_heading = max((at for at in headings if not _is_introduction(answer, blocks[at])), default=-1)
    for at, block in enumerate(blocks):
        if at in dropped or block.kind in {"cell", "head"} or not _is_introduction(answer, block):
            continue
        listed = False
        entries: set[int] = set()
        for next_ in range(at + 1, len(blocks)):
            entry = _is_entry(answer, blocks[next_], found[next_], set(), {}, 0)
            if blocks[next_].kind != "paragraph":
                # Before another section, "References" may be what the section is about.
                if next_ in headings or (at < last_heading and not entry):
                    break
                listed = True
            elif not entry and (listed or at < last_heading or _covers_text(answer, blocks[next_], found[next_])):
                break
            entries.add(next_)
        if entries or at + 1 == len(blocks):  # else it is a heading like others
            dropped |= {at, *entries}
    return dropped


def _is_introduction(answer: str, block: Block) -> bool:
    return block.end - block.start < 60 and bool(_INTRODUCTION.fullmatch(answer, block.start, block.end))


def _covers_text(answer: str, block: Block, references: Sequence[Reference]) -> bool:
    """A reference stands behind text, as in a claim; in an entry of a list it would come first."""
    return bool(references) and _TEXT.search(answer, block.start, references[0].start) is not None


def _is_entry(
    answer: str,
    block: Block,
    references: Sequence[Reference],
    titles: set[str],
    first: Mapping[str, int],
    group: int,
) -> bool:
    """Every line of the block is a reference with a link or a title, or a link alone."""
    if block.kind in {"cell", "head"}:
        return False
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


def _is_numbered_entry(answer: str, block: Block, resolver: Resolver, first: Mapping[str, int]) -> bool:
    """An item that is the title of a document to which the text above refers."""
    text = answer[block.start : block.end]
    ids = resolver.titled(text, least=0.5) if block.kind == "item" and len(text.split()) <= _TITLE_WORDS else ()
    return bool(ids) and any(i in first for i in ids)


def _is_entry_line(
    answer: str,
    start: int,
    end: int,
    references: Sequence[Reference],
    titles: set[str],
    first: Mapping[str, int],
    group: int,
) -> bool:
    lead = _LEAD.match(answer, start, end)
    place = lead.end() if lead else start
    leading = bool(references) and references[0].start == place
    enumerated = False
    if leading:
        place = references[0].end
    elif number := _ENUMERATOR.match(answer, place, end):
        place = number.end()
        enumerated = True
    rest, links = answer[place:end], 0
    if "](" in rest or "://" in rest or "www." in rest:
        rest, links = _LINK.subn("", rest)
    title = rest.strip(" \t\r*_:.-–—\"“”'").casefold()
    if enumerated and not links:
        return title in titles
    if not leading and not links:
        return False
    if not _TEXT.search(rest):
        # A reference alone belongs to the text before it, unless it stands there already.
        return bool(links) or (leading and _are_known(references[0], first, group))
    if not leading:
        return False
    if len(title.split()) > _TITLE_WORDS:
        return False
    is_sentence = rest.rstrip().endswith((".", "!", "?", "。"))
    return bool(links) or title in titles or (not is_sentence and _are_known(references[0], first, group))


def _are_known(reference: Reference, first: Mapping[str, int], group: int) -> bool:
    """Everything that it names was referred to before the list."""
    names = (*reference.ids, *reference.dangling)
    return bool(names) and all(first.get(name, group) < group for name in names)
