"""A parsed document: a list of parts, each with a heading and the text below it.

All readers return these types. `split` turns parts into articles.
"""

import re
from typing import NamedTuple

from tasks.core.errors import DataError

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_BLANK_EDGES = re.compile(r"\A(?:[^\S\n]*\n)+|\s+\Z")


class DocumentError(DataError):
    """A document can't be read. The message says why and what to do, and does not name the document."""


class Part(NamedTuple):
    """A heading and what stands below it, up to the next heading of any level.

    Attributes:
        level: 1 is the highest; 0 for what stands before the first heading.
        title: The heading's words; the document's title for level 0.
        text: Markdown, without the heading.
        page: Where it begins, counted from 1; None where there are no pages.
        certain: It begins where the heading was found, and not only on the right page.
    """

    level: int
    title: str
    text: str
    page: int | None = None
    certain: bool = True


class Document(NamedTuple):
    """A title, and the parts in order."""

    title: str
    parts: list[Part]


def one_line(text: str) -> str:
    """A title: white space collapsed, control characters gone."""
    return " ".join(_CONTROL.sub(" ", text).split())


def trimmed(text: str) -> str:
    """Text without blank lines at its edges; the first line keeps its indentation, which makes it code or a list."""
    return _BLANK_EDGES.sub("", text)
