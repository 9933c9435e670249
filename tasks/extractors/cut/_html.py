"""HTML in answers: replaces tags by the Markdown that they mean, and finds reasoning blocks.

Method: docs/methods.md#claims.

Spaces and line breaks of the same length replace a tag, so positions in the text stay the same. `Region` records what
the tags say about lists, tables and headings. Tags inside code are text. Inline tags (`<b>`) are left to Markdown.
"""

import re
from bisect import bisect_left, bisect_right
from itertools import chain
from typing import Literal, NamedTuple

from tasks.text.spans import around

RegionKind = Literal["heading", "item", "cell", "head"]

_THOUGHT = "(?:think|thinking|thought|reasoning|reflection)"
_REASONING = re.compile(
    rf"[<\[](?:(?P<opens>(?<=<){_THOUGHT}>|(?<=\[)THINK\]|(?<=<)\|begin_of_thought\|>)|"
    rf"(?P<ends>(?<=<)/{_THOUGHT}>|(?<=\[)/THINK\]|(?<=<)\|end_of_thought\|>))",
    re.IGNORECASE,
)
_BLOCKS = (
    "address|article|aside|blockquote|body|caption|center|col|colgroup|dd|details|div|dl|dt|fieldset|figcaption|figure|"
    "footer|form|h[1-6]|header|hr|html|li|main|nav|ol|p|section|summary|table|tbody|td|tfoot|th|thead|tr|ul"
)
_HIDDEN = "head|math|pre|script|style|svg|template|title"  # the content of these tags is not text of the answer
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{_BLOCKS}|{_HIDDEN}|br|code)(?=[\s/>])[^<>]*>|(?P<comment><!(?:--)?|<\?)", re.IGNORECASE
)
_IN_ROW = re.compile(r"[ \t]*\|")
_TICKS = re.compile(r"(?<!\\)`+|(?<!~)~~~+")
_LINE_START = re.compile(r"(?:^|\n) {0,3}\Z")
_LEADING = re.compile(r"[ \t]+")


class Region(NamedTuple):
    """The meaning of tags for the text `answer[start:end]`.

    Attributes:
        group: Number of its list or table.
        item: Number of its list item.
        place: Row and column of a cell, from 0.
        opens: Start of its list; the text before introduces the list.
        parent: Number of the item that contains its list; -1 if none.
    """

    start: int
    end: int
    kind: RegionKind
    group: int = -1
    item: int = -1
    place: tuple[int, int] = (-1, -1)
    opens: int = -1
    parent: int = -1


class Page(NamedTuple):
    """An answer without reasoning and block tags.

    Attributes:
        text: The answer with tags and hidden text blanked out, at the same length.
        regions: Sorted by start; inner regions follow the ones that contain them.
        reasoning: Spans of reasoning blocks.
    """

    text: str
    regions: list[Region]
    reasoning: list[tuple[int, int]]


def _reasoning_in(answer: str) -> list[tuple[int, int]]:
    """Spans of reasoning blocks, tags included.

    An unclosed block extends to the end. A closing tag without an opening one ends a block that begins with the answer.
    """
    if "<" not in answer and "[" not in answer:
        return []
    marks = list(_REASONING.finditer(answer))
    code = _code(answer) if marks else []
    found: list[tuple[int, int]] = []
    start = None
    for mark in marks:
        if start is None and around(mark.start(), code):
            continue  # the answer quotes the tag
        if mark["opens"]:
            start = mark.start() if start is None else start
        elif start is not None or not found:
            found.append((0 if start is None else start, mark.end()))
            start = None
    if start is not None:
        found.append((start, len(answer)))
    return found


def visible(answer: str) -> str:
    """The answer without its reasoning blocks."""
    spans = _reasoning_in(answer)
    if not spans:
        return answer
    edges = [0, *chain.from_iterable(spans), len(answer)]
    return "".join(answer[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)).strip()


def read(answer: str) -> Page:
    """Blank out reasoning and tags, and record what the tags mean."""
    reasoning = _reasoning_in(answer)
    text = answer
    for start, end in reasoning:
        text = text[:start] + _blank(end - start) + text[end:]
    if "<" not in text:
        return Page(text, [], reasoning)
    code = _code(text)
    pieces: list[str] = []
    outline = _Outline()
    position = 0
    open_ended: set[str] = set()
    breaks = False  # whether the text before `position` ends with a block tag
    for tag in _TAG.finditer(text):
        if tag.start() < position or around(tag.start(), code):
            continue
        name, close = (tag["name"] or "").lower(), bool(tag["close"])
        end = tag.end()
        if name == "br" and _IN_ROW.match(text, text.rfind("\n", 0, tag.start()) + 1):
            continue  # a line break would end the table row
        before = text[position : tag.start()]
        pieces.append(_outdented(before) if breaks else before)
        hides = tag["comment"] or re.fullmatch(_HIDDEN, name)
        if hides and not close and tag[0] not in open_ended:
            end = _end_of_hidden(text, tag, name) or end
        is_text = bool(hides) and end == tag.end()  # unclosed tags are quoted as text
        if name == "code":
            # Markdown also reads the content as code. Spaces at the beginning of a block would make it an indented code
            # block.
            padding = ("\n" if breaks and not before.strip() else " ") * (end - tag.start() - 1)
            pieces.append("`" + padding if close else padding + "`")
        elif name == "br":
            pieces.append(" " * (end - tag.start() - 1) + "\n")  # spaces before a line break make a hard break
        elif is_text:
            open_ended.add(tag[0])  # no later tag closes it either
            pieces.append(tag[0])
        else:
            outline.see(name, tag.start(), end, close=close)
            pieces.append(_blank(end - tag.start()))
        position, breaks = end, not (is_text or name in {"code", "br"})
    if not position:
        return Page(text, [], reasoning)
    rest = text[position:]
    pieces.append(_outdented(rest) if breaks else rest)
    return Page("".join(pieces), outline.regions(len(text)), reasoning)


def _blank(length: int) -> str:
    return " " * (length - 2) + "\n\n" if length > 1 else "\n"


def _outdented(piece: str) -> str:
    """Replace white space after a block tag by line breaks: indented text would be code."""
    body = piece.lstrip()
    return "\n" * (len(piece) - len(body)) + body


def _end_of_hidden(text: str, tag: re.Match[str], name: str) -> int | None:
    """End of the tag that closes a hiding tag; None if there is none."""
    if tag["comment"]:
        closing = {"<!--": "-->", "<!": ">", "<?": ">"}[tag["comment"]]
        at = text.find(closing, tag.end())
        return at + len(closing) if at >= 0 else None
    found = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, tag.end())
    return found.end() if found else None


def _code(text: str) -> list[tuple[int, int]]:
    """Spans of fenced code blocks and of inline code, found by backticks only."""
    marks = [(m.start(), m.end()) for m in _TICKS.finditer(text)]
    if not marks:
        return []
    fences = [m for m in marks if m[1] - m[0] >= 3 and _LINE_START.search(text, max(m[0] - 4, 0), m[0])]
    fencing = set(fences)
    by_length: dict[int, list[int]] = {}
    for start, end in marks:
        by_length.setdefault(end - start, []).append(start)
    found: list[tuple[int, int]] = []
    position = 0
    for start, end in marks:
        if start < position:
            continue
        width = end - start
        if (start, end) in fencing:
            at = bisect_right(fences, (start, end))
            closing = next((f for f in fences[at:] if text[f[0]] == text[start] and f[1] - f[0] >= width), None)
            position = closing[1] if closing else len(text)
        else:
            same = by_length[width]
            at = bisect_left(same, end)
            if at == len(same) or text.find("\n\n", end, same[at]) >= 0:
                continue
            position = same[at] + width
        found.append((start, position))
    return found


class _Outline:
    """Tracks open lists, items, headings and cells, and collects the regions of closed ones."""

    def __init__(self) -> None:
        self._found: list[Region] = []
        self._open: list[Region] = []  # items, headings and cells whose `end` is not known yet
        self._lists: list[tuple[int, int, int]] = []  # number, start, and the item that contains the list
        self._tables: list[tuple[int, int, int]] = []  # number, row, column
        self._groups = self._items = 0

    def see(self, name: str, start: int, end: int, *, close: bool) -> None:
        """Process the next tag."""
        if name in {"ul", "ol"} and close:
            self._close_item(start)
            self._lists = self._lists[:-1]
        elif name in {"ul", "ol"}:
            parent = next((r.item for r in reversed(self._open) if r.kind == "item"), -1)
            self._groups += 1
            self._lists.append((self._groups, start, parent))
        elif name == "li":
            self._close_item(start)
            if not close:
                self._items += 1
                group, opens, parent = self._lists[-1] if self._lists else (0, start, -1)
                self._open.append(Region(end, -1, "item", group, self._items, opens=opens, parent=parent))
        elif name == "table":
            self._close("cell", "head", at=start)
            if close:
                self._tables = self._tables[:-1]
            else:
                self._groups += 1
                self._tables.append((self._groups, -1, -1))
        elif name in {"tr", "td", "th"} and self._tables:
            self._close("cell", "head", at=start)
            group, row, column = self._tables[-1]
            if name == "tr" and not close:
                self._tables[-1] = (group, row + 1, -1)
            elif name != "tr" and not close:
                row, column = max(row, 0), column + 1
                self._tables[-1] = (group, row, column)
                kind: RegionKind = "head" if name == "th" and row == 0 else "cell"
                self._open.append(Region(end, -1, kind, group, place=(row, column)))
        elif name == "summary" or (len(name) == 2 and name[0] == "h" and name[1].isdigit()):
            self._close("heading", at=start)
            if not close:
                self._open.append(Region(end, -1, "heading"))

    def regions(self, length: int) -> list[Region]:
        """All regions. Those still open end with the text."""
        found = self._found + [r._replace(end=length) for r in self._open]
        # A table whose first row is not all `<th>` has no head: the `<th>` there is the label of the row.
        labeled = {r.group for r in found if r.kind == "cell" and r.place[0] == 0}
        found = [r._replace(kind="cell") if r.kind == "head" and r.group in labeled else r for r in found]
        return sorted(found, key=lambda r: (r.start, -r.end))

    def _close(self, *kinds: RegionKind, at: int, group: int | None = None) -> None:
        """Close the first open region of these kinds, optionally of one list, and everything inside it."""
        for i, region in enumerate(self._open):
            if region.kind in kinds and group in {None, region.group}:
                self._found += [r._replace(end=at) for r in self._open[i:]]
                del self._open[i:]
                return

    def _close_item(self, at: int) -> None:
        self._close("item", at=at, group=self._lists[-1][0] if self._lists else 0)
