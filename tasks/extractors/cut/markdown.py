"""Reads Markdown into blocks of running text, with the positions of markup in each.

pulldown-cmark (through pyromark) parses CommonMark; block tags of HTML count as the Markdown that they mean
(`_html.py`). Blocks that contain no claim by their form are dropped: code blocks, rules, lone images, footnote
definitions, reasoning. Headings and table heads are marked, because they apply to the text below them.
"""

import re
import string
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pyromark

from tasks.extractors.cut import _html
from tasks.text.spans import within

OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_FOOTNOTES | pyromark.Options.ENABLE_TASKLISTS

Kind = Literal["heading", "paragraph", "item", "cell", "head"]

_INLINE = frozenset({"Emphasis", "Strong", "Link", "Image"})
_SKIPPED = frozenset({"CodeBlock", "HtmlBlock", "FootnoteDefinition"})
_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>a|abbr|b|big|br|cite|code|del|div|em|font|i|img|ins|kbd|li|mark|ol|p|q|s|samp|small|span|"
    r"strike|strong|sub|sup|u|ul|var|wbr)\b[^<>]*>|<!--",
    re.IGNORECASE,
)
_VOID_TAGS = frozenset({"br", "img", "wbr"})
_SURROGATE = re.compile("[\ud800-\udfff]")
# Six words without programming signs at the beginning: indented prose, not code.
_PROSE = re.compile(r"[\"'“(*\[]?[^\W\d_][^\s={}<>;|\\$#]*(?: [^\s={}<>;|\\$#]+){5}")
_MARKUP = re.compile(r"[*_`\[\]<>&\\!|]|\n")
# Formulas in LaTeX. Between dollars, prices must be ruled out, and `\[1\]` is an escaped reference.
_MATH = re.compile(
    r"\$\$(?=\S)[^$]{1,1000}?\$\$|\$(?=[^\s$][^$\n]{0,200}\$)(?=[^$\n]*[=\\^_{}<>\[\]])[^$\n]{1,200}(?<=\S)\$(?!\d)|"
    r"\\\([^\n]{1,500}?\\\)|\\\[(?!\s*\d+(?:\s*[,;–-]\s*\d+)*\s*\\\]).{1,1000}?\\\]",
    re.DOTALL,
)


_ENTITY = re.compile(
    r"&(?:nbsp|[ent]nsp|emsp|thinsp|ndash|mdash|hellip|bull|middot|shy|zwn?j|#160|#8211|#8212);|<br\s*/?>",
    re.IGNORECASE,
)


class Mark(NamedTuple):
    """A piece of markup inside a block.

    Attributes:
        partner: Start of the other half: where the emphasis or tag closes or opens; the mark's own start if it has no
            other half (a line break, a comment, an image); -1 if the other half is unknown (HTML tags).
        opens: Whether it is an opening half.
    """

    start: int
    end: int
    partner: int
    opens: bool


class Block(NamedTuple):
    """Running text: a paragraph, a paragraph of a list item, a table cell, or a heading.

    All positions are character offsets in the answer, sorted.

    Attributes:
        group: Number that blocks of one list or one table share.
        code: Code spans, formulas and images, which contain no references.
        links: Inline links, label and target together.
        silent: Images and HTML tags, whose letters are not text.
        marks: Markup that must not be cut off at the edge of a claim.
        breaks: Ends of lines that end on purpose.
        item: Number that blocks of one list item share; -1 outside of lists.
        lead: Index of the block that introduces its list; -1 if there is none.
        place: Row and column of a cell, from 0.
    """

    kind: Kind
    start: int
    end: int
    group: int
    code: Sequence[tuple[int, int]] = ()
    links: Sequence[tuple[int, int]] = ()
    silent: Sequence[tuple[int, int]] = ()
    marks: Sequence[Mark] = ()
    breaks: Sequence[int] = ()
    item: int = -1
    lead: int = -1
    place: tuple[int, int] = (-1, -1)


class Document(NamedTuple):
    """An answer, parsed.

    Attributes:
        blocks: In order.
        notes: Footnote definitions: label to source text.
        reasoning: Spans that are no part of the answer.
        text: The answer with reasoning and block tags replaced by spaces and line breaks.
    """

    blocks: list[Block]
    notes: dict[str, str]
    reasoning: Sequence[tuple[int, int]] = ()
    text: str = ""


def parse(answer: str) -> Document:
    """Parse an answer (docs/methods.md#claims, "The answer is Markdown")."""
    answer = encodable(answer)
    page = _html.read(answer)
    document = _Reader(page.text).read()
    blocks = _tagged(document.blocks, page.regions) if page.regions else document.blocks
    return Document(list(_completed(answer, blocks)), document.notes, page.reasoning, page.text)


def _tagged(blocks: Sequence[Block], regions: Sequence[_html.Region]) -> list[Block]:
    """The blocks, with the meaning of the HTML tags around them."""
    groups = 1 + max((b.group for b in blocks), default=0)
    items = 1 + max((b.item for b in blocks), default=0)
    found: list[Block] = []
    around: list[_html.Region] = []
    coming = iter([*regions, None])
    region = next(coming)
    ends = [b.end for b in blocks]
    for block in blocks:
        while region is not None and region.start <= block.start:
            around.append(region)
            region = next(coming)
        around = [r for r in around if block.start < r.end]
        cell = next((r for r in reversed(around) if r.kind in {"cell", "head"}), None)
        inner = cell or next((r for r in reversed(around) if r.kind in {"item", "heading"}), None)
        if inner is None:
            found.append(block)
        elif inner.kind == "item":
            lead = bisect_right(ends, inner.opens) - 1
            parent = items + inner.parent if inner.parent >= 0 else -1
            lead = lead if lead >= 0 and found[lead].item == parent and found[lead].kind in _LEADING else -1
            found.append(block._replace(kind="item", group=groups + inner.group, item=items + inner.item, lead=lead))
        elif inner.kind == "heading":
            found.append(block._replace(kind="heading"))
        else:
            found.append(
                block._replace(kind=inner.kind, group=groups + inner.group, place=inner.place, item=-1, lead=-1)
            )
    return found


_LEADING = frozenset({"paragraph", "item", "heading"})


def _completed(answer: str, blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks, with formulas added to `code`, and signs and line breaks of HTML to `silent`."""
    formulas = [m.span() for m in _MATH.finditer(answer)] if "$" in answer or "\\" in answer else []
    entities = [m.span() for m in _ENTITY.finditer(answer)] if "&" in answer or "<" in answer else []
    for block in blocks:
        code, mute = within(formulas, block.start, block.end), within(entities, block.start, block.end)
        marks = (Mark(start, end, start, opens=False) for start, end in mute)
        yield block._replace(
            code=sorted({*block.code, *code}) if code else block.code,
            silent=sorted({*block.silent, *mute}) if mute else block.silent,
            marks=sorted({*block.marks, *marks}) if mute else block.marks,
        )


def encodable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 can't encode, character by character, so that offsets stay the same."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


class _Reader:
    """One pass over the parser's events."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.document = Document([], {})
        self.kind: Kind | None = None  # set inside headings and rows
        self.group = 0
        self.lists: list[int] = []  # for each open list, the block that introduces it
        self.items: list[int] = []  # numbers of the open items
        self.last_item = 0
        self.place = (-1, -1)
        self.skipped = 0
        self.images = 0
        self.open_block(-1)

    def open_block(self, start: int) -> None:
        self.start = self.end = start
        self.words = False  # whether the block has anything but images
        self.code: list[tuple[int, int]] = []
        self.links: list[tuple[int, int]] = []
        self.silent: list[tuple[int, int]] = []
        self.marks: list[Mark] = []
        self.breaks: list[int] = []

    def flush(self) -> None:
        """Finish the open block, and keep it if it contains text."""
        if self.start < 0:
            return
        if self.words:
            kind: Kind = self.kind or ("item" if self.items else "paragraph")
            marks = sorted(self.marks) if self.marks else ()
            block = Block(
                kind,
                self.start,
                self.end,
                self.group,
                self.code,
                self.links,
                self.silent,
                marks,
                self.breaks,
                self.items[-1] if self.items else -1,
                self.lists[-1] if self.lists else -1,
                self.place if kind in {"cell", "head"} else (-1, -1),
            )
            self.document.blocks.append(block)
            if not self.lists and kind not in {"cell", "head"}:
                self.group += 1
        self.open_block(-1)

    def cover(self, start: int, end: int) -> None:
        """Extend the open block over `start:end`."""
        if self.start < 0:
            self.start = start
        self.end = max(self.end, end)

    def read(self) -> Document:
        """Parse the whole answer."""
        characters = _characters(self.answer)
        for event, span in pyromark.events_with_range(self.answer, options=OPTIONS, merge_text=True):
            start, end = characters[span["start"]], characters[span["end"]]
            if event.__class__ is str:  # SoftBreak, HardBreak, Rule
                if event == "Rule":
                    self.flush()
                elif event == "HardBreak":
                    self.breaks.append(start)
                continue
            ((tag, value),) = event.items()
            if tag in {"Start", "End"}:
                name = value if value.__class__ is str else next(iter(value))
                if name in _INLINE:
                    self.inline(tag == "Start", name, value, start, end)
                else:
                    self.flush()
                    if tag == "Start":
                        self.enter(name, value, start, end)
                    else:
                        self.leave(name)
            elif not self.skipped and not self.images:
                self.text(tag, value, start, end)
        self.flush()
        return self.document

    def enter(self, name: str, value: object, start: int, end: int) -> None:
        """Enter a block container."""
        if name in _SKIPPED:
            self.skipped += 1
        if name == "List":
            blocks = self.document.blocks
            parent = self.items[-1] if self.items else -1
            leads = bool(blocks) and blocks[-1].item == parent and blocks[-1].kind in _LEADING
            self.lists.append(len(blocks) - 1 if leads else -1)
        elif name == "Item":
            self.last_item += 1
            self.items.append(self.last_item)
        elif name == "Heading":
            underlined = self.answer[start] != "#" and _is_underlined_prose(self.answer[start:end])
            self.kind = None if underlined else "heading"
        elif name in {"TableHead", "TableRow"}:
            self.kind = "head" if name == "TableHead" else "cell"
            self.place = (0 if name == "TableHead" else self.place[0] + 1, -1)
        elif name == "TableCell":
            self.place = (self.place[0], self.place[1] + 1)
        elif name == "FootnoteDefinition" and isinstance(value, dict):
            self.document.notes.setdefault(value[name], self.answer[start:end].partition("]:")[2].strip())
        elif name == "CodeBlock" and value == {"CodeBlock": "Indented"}:
            text = self.answer[start:end]
            if _PROSE.match(text):
                self.words = True
                self.cover(start, start + len(text.rstrip(string.whitespace)))
                self.flush()

    def leave(self, name: str) -> None:
        """Leave a block container."""
        if name in _SKIPPED:
            self.skipped -= 1
        if name == "List":
            self.lists.pop()
            self.group += not self.lists
        elif name == "Item":
            self.items.pop()
        elif name == "Table":
            self.group += 1
        elif name in {"Heading", "TableHead", "TableRow"}:
            self.kind = None

    def text(self, tag: str, value: str, start: int, end: int) -> None:
        """Add words, code or a tag inside running text. A false tag (`x<y and z>w`) stays text."""
        if tag == "TaskListMarker" or start == end:
            return
        self.cover(start, end)
        match = _TAG.match(value) if tag == "InlineHtml" else None
        if match is None:
            self.words = True
            if tag == "Code":
                self.code.append((start, end))
            return
        end = start + len(value.rstrip())
        alone = match["name"] is None or match["name"].lower() in _VOID_TAGS
        if match["name"] and match["name"].lower() == "br":
            self.breaks.append(start)
        self.silent.append((start, end))
        self.marks.append(Mark(start, end, start if alone else -1, opens=not (alone or match["close"])))

    def inline(self, begins: bool, name: str, value: object, start: int, end: int) -> None:
        """Begin or end emphasis, a link or an image. An image's description is not text of the answer."""
        if name == "Image":
            self.images += 1 if begins else -1
        if not begins or self.skipped or self.images > (name == "Image"):
            return
        self.cover(start, end)
        if name == "Image":
            self.code.append((start, end))
            self.silent.append((start, end))
            self.marks.append(Mark(start, end, start, opens=False))
        elif name == "Link":
            if isinstance(value, dict) and value[name]["link_type"] == "Inline":
                self.links.append((start, end))
        else:
            width = 2 if name == "Strong" else 1
            self.marks.append(Mark(start, start + width, end - width, opens=True))
            self.marks.append(Mark(end - width, end, start, opens=False))


def _is_underlined_prose(text: str) -> bool:
    """Whether a text is a sentence above a line of dashes, which the author meant as a rule, not as a heading."""
    text = text.rstrip().rstrip("-=").rstrip()
    return "\n" in text or text.endswith((".", "!", "…", "。", "！", "]", "】"))


def _characters(text: str) -> Sequence[int]:
    """The number of characters before each byte of a text, and before its end."""
    source = np.frombuffer(text.encode(), np.uint8)
    return range(len(text) + 1) if text.isascii() else [0, *np.cumsum((source & 0xC0) != 0x80).tolist()]


def plain_text(markdown: str) -> str:
    """The text of a claim without markup and with collapsed white space, as a judge should see it.

    Words of links and code are kept; link targets, images and HTML are dropped; superscripts stay separate (`10^5`).
    """
    if not _MARKUP.search(markdown):
        return " ".join(markdown.split())
    # A claim is inline text. The full stop prevents a claim that begins with "2023." or "#" from being read as a block.
    return " ".join("".join(_plain(". " + encodable(markdown))).split()[1:])


def _plain(markdown: str) -> Iterator[str]:
    images = 0
    for event in pyromark.events(markdown, options=OPTIONS, merge_text=True):
        if event.__class__ is str:
            yield " "
            continue
        ((tag, value),) = event.items()
        if tag in {"Start", "End"}:
            name = value if value.__class__ is str else next(iter(value))
            if name == "Image":
                images += 1 if tag == "Start" else -1
            elif name not in _INLINE:
                yield " "
        elif images:
            continue
        elif tag in {"Text", "Code"}:
            yield value
        elif tag in {"InlineHtml", "Html"}:
            tag_match = _TAG.match(value)
            if tag_match is None:
                yield value
            elif not tag_match["close"]:
                yield {"br": " ", "sup": "^"}.get((tag_match["name"] or "").lower(), "")
