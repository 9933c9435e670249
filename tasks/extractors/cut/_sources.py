"""Finds the lines and lists of sources at the end of an answer, so that they are not mistaken for claims.

A list counts as a source list if a word such as "Sources" introduces it, or if it ends the answer and each entry is a
reference with a link or a title, or just a link (docs/methods.md#claims). Markdown already recognizes definitions of
footnotes and links.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from tasks.core.types import Chunk
from tasks.extractors.cut._resolve import SUPERSCRIPTS, Resolver, plain_digits
from tasks.extractors.cut.citations import Reference, names
from tasks.extractors.cut.markdown import Block

_WORDS = (
    r"(?:sources?(?: cited| used)?|references?|citations?|bibliography|works cited|footnotes|endnotes|notes|"
    r"quellen?(?:verzeichnis|angaben?|nachweise?)?|literatur(?:verzeichnis)?|referenzen|einzelnachweise|fußnoten|"
    r"références|bibliographie|sources|fuentes?|referencias?|bibliografía|notas|fonti|fonte|riferimenti|fontes|"
    r"referências|bronn?en|bron|källor|参考文献|参考资料|参考資料|参考|来源|引用|出典|注)"
)
INTRODUCED = rf"[*_(（\[]{{0,3}}{_WORDS}[*_]{{0,3}}\s?[:：]"  # beginning of a line that also contains its list
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
# One line of a list: a label and its meaning.
_ENTRY = re.compile(
    rf"[\s*_>•●◦▪‣·–-]*(?:\\?\[\^?#?(?P<bracket>\d{{1,3}})\\?\]|(?P<number>\d{{1,2}})[.)]|(?P<raised>[{SUPERSCRIPTS}]+)|"
    r"\^(?P<caret>\d{1,3})|<sup>\s*\[?(?P<tag>\d{1,3})\]?\s*</sup>)(?:\s*[:.–—-]\s+|\s*:\s*|\s+)(?P<title>\S.{1,300})$"
)
_MOST_ENTRIES = 60


class Sources(NamedTuple):
    """A line or a list of sources.

    Attributes:
        at: Its first block.
        listed: Whether it is a list: entries with titles or links, or several lines.
    """

    at: int
    references: tuple[Reference, ...]
    listed: bool


def bare(line: str) -> str | None:
    """The numbers in a line of sources without brackets: "Sources: 1, 2"."""
    found = _BARE.fullmatch(line)
    return found["numbers"] if found else None


def labels(answer: str, chunks: Sequence[Chunk]) -> dict[str, tuple[str, ...]]:
    """Chunk ids for the numbers in the source list at the end of an answer, if it names documents or titles."""
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
    """Indices of the blocks outside of source lists, and the source lists.

    Args:
        found: The references of each block.
    """
    return _Splitter(answer, blocks, found, resolver).split(chunks)


class _Splitter:
    def __init__(
        self, answer: str, blocks: Sequence[Block], found: Sequence[Sequence[Reference]], resolver: Resolver
    ) -> None:
        self.answer, self.blocks, self.found, self.resolver = answer, blocks, found, resolver
        self.headings = {at for at, block in enumerate(blocks) if block.kind == "heading"}
        # Filled after removing the introduced lists, which need neither.
        self.titles: set[str] = set()
        self.first: dict[str, int] = {}  # first block that refers to a chunk

    def split(self, chunks: Sequence[Chunk]) -> tuple[list[int], list[Sources]]:
        """See the function `split`."""
        introduced = self._introduced()
        rest = [at for at in range(len(self.blocks)) if at not in introduced and at not in self.headings]
        self.titles = {t.casefold() for c in chunks for t in (c.title, c.doc_id) if t}
        for at in rest:
            for name in names(self.found[at]):
                self.first.setdefault(name, at)
        trailing: list[int] = []
        for _, together in groupby(reversed(rest), key=lambda at: self.blocks[at].group):
            group = sorted(together)
            if not all(self._is_entry(at, group[0]) for at in group) and not all(map(self._is_numbered_entry, group)):
                break
            trailing = [*group, *trailing]
        del rest[len(rest) - len(trailing) :]
        line = [rest.pop()] if rest and self._introduction(rest[-1]) else []
        lists = [
            Sources(part[0], tuple(r for at in part for r in self._named(at)), listed)
            for part, listed in (
                (sorted(introduced), True),
                (line, bool(line) and self._is_list(line[0])),
                (trailing, True),
            )
            if part
        ]
        lost = {*introduced, *trailing, *line}
        return [at for at in range(len(self.blocks)) if at not in lost], sorted(lists)

    def _introduction(self, at: int) -> re.Match[str] | None:
        """The introduction ("Sources:") of a block that also contains its list."""
        return _INTRODUCED.match(self.answer, self.blocks[at].start, self.blocks[at].end)

    def _is_list(self, at: int) -> bool:
        """Whether a line lists the sources of the whole answer: it has titles, or repeats one of several sources."""
        block, references = self.blocks[at], self.found[at]
        if len(references) > 1 and any(self.first[name] < at for name in names(references)):
            return True
        introduced = self._introduction(at)
        ends = [introduced.end() if introduced else block.start, *(r.end for r in references)]
        starts = [*(r.start for r in references), block.end]
        return any(_TEXT.search(self.answer, a, b) for a, b in zip(ends, starts, strict=True))

    def _named(self, at: int) -> Sequence[Reference]:
        """The references of an entry, or else the documents that it names."""
        if self.found[at]:
            return self.found[at]
        named = []
        for start, end in self._lines(at):
            introduced = _INTRODUCED.match(self.answer, start, end)
            if ids := self.resolver.titled(self.answer[introduced.end() if introduced else start : end]):
                named.append(Reference(start, end, ids))
        return named

    def _lines(self, at: int) -> Iterator[tuple[int, int]]:
        """The spans of a block's lines."""
        start = self.blocks[at].start
        for line in self.answer[start : self.blocks[at].end].split("\n"):
            yield start, start + len(line)
            start += len(line) + 1

    def _introduced(self) -> set[int]:
        """Blocks that a separate word such as "Sources" introduces, with the block of that word."""
        dropped: set[int] = set()
        last_heading = max((at for at in self.headings if not self._is_introduction(at)), default=-1)
        for at, block in enumerate(self.blocks):
            if at in dropped or block.kind in {"cell", "head"} or not self._is_introduction(at):
                continue
            listed = False
            entries: set[int] = set()
            for following in range(at + 1, len(self.blocks)):
                entry = self._is_entry(following, 0)
                if self.blocks[following].kind != "paragraph":
                    # Before another section, "References" may be the section's topic.
                    if following in self.headings or (at < last_heading and not entry):
                        break
                    listed = True
                elif not entry and (listed or at < last_heading or self._covers_text(following)):
                    break
                entries.add(following)
            if entries or at + 1 == len(self.blocks):  # otherwise it is an ordinary heading
                dropped |= {at, *entries}
        return dropped

    def _is_introduction(self, at: int) -> bool:
        block = self.blocks[at]
        return block.end - block.start < 60 and bool(_INTRODUCTION.fullmatch(self.answer, block.start, block.end))

    def _covers_text(self, at: int) -> bool:
        """Whether a reference follows text, as in a claim. In an entry of a list it would come first."""
        found = self.found[at]
        return bool(found) and _TEXT.search(self.answer, self.blocks[at].start, found[0].start) is not None

    def _is_numbered_entry(self, at: int) -> bool:
        """Whether a block is an item with the title of a document that the text above refers to."""
        block = self.blocks[at]
        text = self.answer[block.start : block.end]
        entry = block.kind == "item" and len(text.split()) <= _TITLE_WORDS
        return entry and any(i in self.first for i in self.resolver.titled(text, least=0.5))

    def _is_entry(self, at: int, group: int) -> bool:
        """Whether every line of a block is a reference with a link or a title, or just a link.

        Args:
            group: First block of the list that it would belong to.
        """
        if self.blocks[at].kind in {"cell", "head"}:
            return False
        found = self.found[at]  # one may begin with the line break before its line
        lines = [(start, end, [r for r in found if start - 1 <= r.start < end]) for start, end in self._lines(at)]
        return all(self._is_entry_line(*line, group) for line in lines)

    def _is_entry_line(self, start: int, end: int, references: Sequence[Reference], group: int) -> bool:
        lead = _LEAD.match(self.answer, start, end)
        place = lead.end() if lead else start
        leading = bool(references) and references[0].start == place
        enumerated = None if leading else _ENUMERATOR.match(self.answer, place, end)
        if leading or enumerated:
            place = enumerated.end() if enumerated else references[0].end
        rest, links = self.answer[place:end], 0
        if "](" in rest or "://" in rest or "www." in rest:
            rest, links = _LINK.subn("", rest)
        title = rest.strip(" \t\r*_:.-–—\"“”'").casefold()
        if enumerated and not links:
            return title in self.titles
        if not leading:
            return bool(links) and not _TEXT.search(rest)
        if not _TEXT.search(rest):
            # A lone reference belongs to the text before it, unless that text already has it.
            return bool(links) or self._are_known(references[0], group)
        if len(title.split()) > _TITLE_WORDS:
            return False
        is_sentence = rest.rstrip().endswith((".", "!", "?", "。"))
        return bool(links) or title in self.titles or (not is_sentence and self._are_known(references[0], group))

    def _are_known(self, reference: Reference, group: int) -> bool:
        """Whether everything that a reference names was cited before the list."""
        named = names([reference])
        return bool(named) and all(self.first.get(name, group) < group for name in named)
