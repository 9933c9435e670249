"""A page as a tree, by the standard library's parser; enough to ask what a browser would show."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

BLOCKS = {"small", "div", "p", "li", "td", "th", "dt", "dd"}
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Node:
    def __init__(self, tag: str, attrs: dict[str, str]) -> None:
        self.tag, self.attrs = tag, attrs
        self.children: list[Node | str] = []

    def walk(self) -> Iterator["Node"]:
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def all(self, tag: str = "", cls: str = "") -> list["Node"]:
        return [
            n for n in self.walk() if (not tag or n.tag == tag) and (not cls or cls in n.attrs.get("class", "").split())
        ]

    def one(self, tag: str = "", cls: str = "", id_: str = "") -> "Node":
        found = [n for n in self.all(tag, cls) if not id_ or n.attrs.get("id") == id_]
        assert len(found) == 1, f"{len(found)} of {tag}.{cls}#{id_}"
        return found[0]

    def text(self) -> str:
        return "".join(c if isinstance(c, str) else c.text() for c in self.children)

    def words(self) -> str:
        """The text as a browser shows it: white space runs together, blocks stand apart."""
        return re.sub(r"[ \t\r\n\f]+", " ", self._spaced()).strip()

    def _spaced(self) -> str:
        inside = "".join(c if isinstance(c, str) else c._spaced() for c in self.children)
        return f" {inside} " if self.tag in BLOCKS else inside

    def ids(self) -> list[str]:
        return [n.attrs["id"] for n in self.walk() if "id" in n.attrs]

    def links(self) -> list[str]:
        return [n.attrs["href"] for n in self.all("a") if "href" in n.attrs]

    def references(self) -> list[str]:
        """Everything that an `href` names, links or not."""
        return [n.attrs["href"] for n in self.walk() if "href" in n.attrs]


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {k: v or "" for k, v in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {k: v or "" for k, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(path: Path) -> Node:
    builder = _Builder()
    builder.feed(path.read_bytes().decode("utf-8"))
    builder.close()
    assert builder.open == [builder.root], "an element is never closed"
    return builder.root
