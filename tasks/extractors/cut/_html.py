"""HTML in answers, read as the Markdown that it stands for, and reasoning that is no part of them.

Method: docs/methods.md#claims.

Blanks and line breaks of the same length replace a tag, so every place in the text stays where it was; `Region` holds
what the tags say of lists, tables and headings. Tags inside code are text. Markdown itself knows inline tags (`<b>`).
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
_HIDDEN = "head|math|pre|script|style|svg|template|title"  # what stands between these is no text of the answer
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{_BLOCKS}|{_HIDDEN}|br|code)(?=[\s/>])[^<>]*>|(?P<comment><!(?:--)?|<\?)", re.IGNORECASE
)
_IN_ROW = re.compile(r"[ \t]*\|")
_TICKS = re.compile(r"(?<!\\)`+|(?<!~)~~~+")
_LINE_START = re.compile(r"(?:^|\n) {0,3}\Z")
_LEADING = re.compile(r"[ \t]+")


class Region(NamedTuple):
    """What a tag says of the text `answer[start:end]`.

    Attributes:
        group: Number of its list or table.
        item: Number of the list item.
        place: Row and column of a cell, from 0.
        opens: Where its list begins: what stands before that introduces the list.
        parent: Number of the item that its list is in; -1 if none.
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
        text: As long as the answer, and the same but for tags and hidden text.
        regions: By start; inner ones behind the ones that hold them.
        reasoning: Spans of reasoning blocks.
    """

    text: str
    regions: list[Region]
    reasoning: list[tuple[int, int]]


def _reasoning_in(answer: str) -> list[tuple[int, int]]:
    """Spans of reasoning blocks, tags included.

    One that is never closed reaches to the end; before a closing tag that nothing opened, all is reasoning.
    """
    if "<" not in answer and "[" not in answer:
        return []
    marks = list(_REASONING.finditer(answer))
    code = _code(answer) if marks else []
    found: list[tuple[int, int]] = []
    start = None
    for mark in marks:
        if start is None and around(mark.start(), code):
            continue  # it is written about
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
    """The answer as Markdown sees it, and what its tags say."""
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
    breaks = False  # the text before `position` ends with a tag that ends a block
    for tag in _TAG.finditer(text):
        if tag.start() < position or around(tag.start(), code):
            continue
        name, close = (tag["name"] or "").lower(), bool(tag["close"])
        end = tag.end()
        if name == "br" and _IN_ROW.match(text, text.rfind("\n", 0, tag.start()) + 1):
            continue  # a line break would end the row
        before = text[position : tag.start()]
        pieces.append(_outdented(before) if breaks else before)
        hides = tag["comment"] or re.fullmatch(_HIDDEN, name)
        if hides and not close and tag[0] not in open_ended:
            end = _end_of_hidden(text, tag, name) or end
        is_text = bool(hides) and end == tag.end()  # nothing closes it: it is written about
        if name == "code":
            # What stands in it is code to Markdown too. Blanks at the beginning of a block would be code by themselves.
            padding = ("\n" if breaks and not before.strip() else " ") * (end - tag.start() - 1)
            pieces.append("`" + padding if close else padding + "`")
        elif name == "br":
            pieces.append(" " * (end - tag.start() - 1) + "\n")  # with its blanks a line break that is meant
        elif is_text:
            open_ended.add(tag[0])  # nothing further on closes it either
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
    """White space behind a block tag as line breaks: indented text would be code."""
    body = piece.lstrip()
    return "\n" * (len(piece) - len(body)) + body


def _end_of_hidden(text: str, tag: re.Match[str], name: str) -> int | None:
    """Where the tag ends that closes what a tag hides; None if none does."""
    if tag["comment"]:
        closing = {"<!--": "-->", "<!": ">", "<?": ">"}[tag["comment"]]
        at = text.find(closing, tag.end())
        return at + len(closing) if at >= 0 else None
    found = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, tag.end())
    return found.end() if found else None


def _code(text: str) -> list[tuple[int, int]]:
    """Spans of code blocks between fences and of inline code, by their ticks alone."""
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
    """Lists, items, headings and cells that are open, and the regions of those that are closed."""

    def __init__(self) -> None:
        self._found: list[Region] = []
        self._open: list[Region] = []  # items, headings and cells; `end` is not known yet
        self._lists: list[tuple[int, int, int]] = []  # number, where it begins, item that it is in
        self._tables: list[tuple[int, int, int]] = []  # number, row, column
        self._groups = self._items = 0

    def see(self, name: str, start: int, end: int, *, close: bool) -> None:
        """The next tag."""
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
        """All regions; what is open ends with the text."""
        found = self._found + [r._replace(end=length) for r in self._open]
        # A first row that is not all heads has none: its `<th>` is the label of the row.
        labeled = {r.group for r in found if r.kind == "cell" and r.place[0] == 0}
        found = [r._replace(kind="cell") if r.kind == "head" and r.group in labeled else r for r in found]
        return sorted(found, key=lambda r: (r.start, -r.end))

    def _close(self, *kinds: RegionKind, at: int, group: int | None = None) -> None:
        """End the first open region of these kinds, of a list if given, and what is open inside of it."""
        for i, region in enumerate(self._open):
            if region.kind in kinds and group in {None, region.group}:
                self._found += [r._replace(end=at) for r in self._open[i:]]
                del self._open[i:]
                return

    def _close_item(self, at: int) -> None:
        self._close("item", at=at, group=self._lists[-1][0] if self._lists else 0)
