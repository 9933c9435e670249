"""Markdown as the extractors see it: blocks of running text, each with the places that are not plain words.

CommonMark is read by pulldown-cmark (through pyromark). What carries no claim by its form alone is left out here:
code blocks, rules, HTML blocks, table heads, images alone, footnote definitions. Headings are handed out marked as
such, since one of them may introduce a list of sources. References and claims are not known here.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pyromark

OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_FOOTNOTES | pyromark.Options.ENABLE_TASKLISTS

Kind = Literal["heading", "paragraph", "item", "row"]

_INLINE = frozenset({"Emphasis", "Strong", "Link", "Image"})
_SKIPPED = frozenset({"CodeBlock", "HtmlBlock", "FootnoteDefinition", "TableHead"})
_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>a|abbr|b|big|br|cite|code|del|div|em|font|i|img|ins|kbd|li|mark|ol|p|q|s|samp|small|span|"
    r"strike|strong|sub|sup|u|ul|var|wbr)\b[^<>]*>|<!--",
    re.IGNORECASE,
)
_VOID_TAGS = frozenset({"br", "img", "wbr"})
_SURROGATE = re.compile("[\ud800-\udfff]")
# It begins with six words free of programming's signs: prose that somebody indented, not code.
_PROSE = re.compile(r"[\"'“(*\[]?[^\W\d_][^\s={}<>;|\\$#]*(?: [^\s={}<>;|\\$#]+){5}")
_MARKUP = re.compile(r"[*_`\[\]<>&\\!|]|\n")


class Mark(NamedTuple):
    """A piece of markup inside a block.

    Attributes:
        partner: Start of the other half: where the emphasis or tag closes or opens; the mark's own start where it
            stands alone (a line break, a comment, an image); -1 where the other half is not known (HTML tags).
        opens: It is an opening half.
    """

    start: int
    end: int
    partner: int
    opens: bool


class Block(NamedTuple):
    """Running text: a paragraph, a paragraph of a list item, a body row of a table, or a heading.

    All places are character offsets in the answer, sorted.

    Attributes:
        group: Blocks of the same list or the same table share a number.
        code: Code spans and images: nothing in them is a reference.
        links: Inline links, label and target together.
        silent: Images and HTML tags: their letters are not text.
        marks: Markup that must not dangle at the edge of a claim.
    """

    kind: Kind
    start: int
    end: int
    group: int
    code: Sequence[tuple[int, int]] = ()
    links: Sequence[tuple[int, int]] = ()
    silent: Sequence[tuple[int, int]] = ()
    marks: Sequence[Mark] = ()


class Document(NamedTuple):
    """The blocks in order, and the footnote definitions: label to source text."""

    blocks: list[Block]
    notes: dict[str, str]


def parse(answer: str) -> Document:
    """Read an answer (METHODS section 2, "The answer is Markdown").

    A row of a table is one block: a cell by itself ("42 %") says nothing without the rest of its row.
    """
    if not answer.isascii():
        answer = encodable(answer)
        source = answer.encode()
        document = _Reader(source).read(answer)
        return _to_characters(document, source)
    return _Reader(answer.encode()).read(answer)


def encodable(text: str) -> str:
    """The text with lone surrogates, which UTF-8 can't hold, replaced; one character for one, so offsets stay."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


class _Reader:
    """One pass over the parser's events. Offsets are those of the parser: UTF-8 bytes."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.document = Document([], {})
        self.kind: Kind | None = None  # set inside headings and rows
        self.group = 0
        self.lists = 0
        self.skipped = 0
        self.images = 0
        self.open_block(-1)

    def open_block(self, start: int) -> None:
        self.start = self.end = start
        self.words = False  # anything but images
        self.code: list[tuple[int, int]] = []
        self.links: list[tuple[int, int]] = []
        self.silent: list[tuple[int, int]] = []
        self.marks: list[Mark] = []

    def flush(self) -> None:
        """Hand out the block that is open, if it holds any text."""
        if self.start < 0:
            return
        if self.words:
            kind: Kind = self.kind or ("item" if self.lists else "paragraph")
            marks = sorted(self.marks) if self.marks else ()
            block = Block(kind, self.start, self.end, self.group, self.code, self.links, self.silent, marks)
            self.document.blocks.append(block)
            if not self.lists and kind != "row":
                self.group += 1
        self.open_block(-1)

    def cover(self, start: int, end: int) -> None:
        """Let the open block reach over `start:end`."""
        if self.start < 0:
            self.start = start
        self.end = max(self.end, end)

    def read(self, answer: str) -> Document:
        """Read the whole answer."""
        for event, span in pyromark.events_with_range(answer, options=OPTIONS, merge_text=True):
            if event.__class__ is str:  # SoftBreak, HardBreak, Rule
                if event == "Rule":
                    self.flush()
                continue
            ((tag, value),) = event.items()
            if tag in {"Start", "End"}:
                name = value if value.__class__ is str else next(iter(value))
                if name in _INLINE:
                    self.inline(tag == "Start", name, value, span["start"], span["end"])
                elif name != "TableCell":
                    self.flush()
                    if tag == "Start":
                        self.enter(name, value, span["start"], span["end"])
                    else:
                        self.leave(name)
            elif not self.skipped and not self.images:
                self.text(tag, value, span["start"], span["end"])
        self.flush()
        return self.document

    def enter(self, name: str, value: object, start: int, end: int) -> None:
        """Step into a block container."""
        if name in _SKIPPED:
            self.skipped += 1
        if name == "List":
            self.lists += 1
        elif name == "Heading":
            self.kind = "heading"
            if self.source[start : start + 1] != b"#" and _is_underlined_prose(self.source[start:end]):
                self.kind = None
        elif name == "TableRow":
            self.kind = "row"
        elif name == "FootnoteDefinition" and isinstance(value, dict):
            note = self.source[start:end].decode("utf-8", "replace")
            self.document.notes.setdefault(value[name], note.partition("]:")[2].strip())
        elif name == "CodeBlock" and value == {"CodeBlock": "Indented"}:
            text = self.source[start:end]
            if _PROSE.match(text.decode("utf-8", "replace")):
                self.words = True
                self.cover(start, start + len(text.rstrip()))
                self.flush()

    def leave(self, name: str) -> None:
        """Step out of a block container."""
        if name in _SKIPPED:
            self.skipped -= 1
        if name == "List":
            self.lists -= 1
            self.group += not self.lists
        elif name == "Table":
            self.group += 1
        elif name in {"Heading", "TableRow"}:
            self.kind = None

    def text(self, tag: str, value: str, start: int, end: int) -> None:
        """Words, code or a tag inside running text. What only looks like a tag (`x<y and z>w`) stays text."""
        if tag == "TaskListMarker" or start == end:
            return
        self.cover(start, end)
        match = _TAG.match(value) if tag == "InlineHtml" else None
        if match is None:
            self.words = True
            if tag == "Code":
                self.code.append((start, end))
            return
        end = start + len(value.rstrip().encode("utf-8", "replace"))
        alone = match["name"] is None or match["name"].lower() in _VOID_TAGS
        self.silent.append((start, end))
        self.marks.append(Mark(start, end, start if alone else -1, opens=not (alone or match["close"])))

    def inline(self, begins: bool, name: str, value: object, start: int, end: int) -> None:
        """Emphasis, a link or an image begins or ends. An image's description is not text of the answer."""
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


def _is_underlined_prose(source: bytes) -> bool:
    """A sentence with a line of dashes under it: meant as a rule, though Markdown makes it a heading."""
    text = source.decode("utf-8", "replace").rstrip().rstrip("-=").rstrip()
    return "\n" in text or text.endswith((".", "!", "…", "。", "！", "]", "】"))


def _to_characters(document: Document, source: bytes) -> Document:
    """The same document with byte offsets turned into character offsets."""
    # Offset of every character's first byte; the number of those before a byte is its character's offset.
    firsts = np.flatnonzero((np.frombuffer(source, np.uint8) & 0xC0) != 0x80)
    flat: list[int] = []
    for b in document.blocks:
        flat += (b.start, b.end)
        for spans in (b.code, b.links, b.silent):
            for start, end in spans:
                flat += (start, end)
        for mark in b.marks:
            flat += (mark.start, mark.end, max(mark.partner, 0))
    chars = iter(np.searchsorted(firsts, np.asarray(flat, np.int64)).tolist())

    def pairs(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(next(chars), next(chars)) for _ in spans]

    blocks = []
    for b in document.blocks:
        start, end, code, links, silent = next(chars), next(chars), pairs(b.code), pairs(b.links), pairs(b.silent)
        marks = []
        for mark in b.marks:
            at, to, partner = next(chars), next(chars), next(chars)
            marks.append(Mark(at, to, -1 if mark.partner < 0 else partner, mark.opens))
        blocks.append(Block(b.kind, start, end, b.group, code, links, silent, marks))
    return Document(blocks, document.notes)


def plain_text(markdown: str) -> str:
    """The text of a claim without its markup, white space collapsed: what a judge should see.

    Keeps the words of links and code, drops link targets, images and HTML; superscripts stay apart (`10^5`).
    """
    if not _MARKUP.search(markdown):
        return " ".join(markdown.split())
    # A claim is inline text. The full stop keeps one that begins with "2023." or "#" from being read as a block.
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
