"""PDF documents, read by pypdf: the text of the pages, cut at the entries of the outline (the bookmarks).

An entry names a page, on which the reader searches for a line with the heading. A document without an outline is one
part: headings are not guessed from font sizes. Scanned pages have no text.
"""

import logging
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pypdf import PdfReader

from tasks.articles.parts import Document, DocumentError, Part, one_line, trimmed

logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it reports every small flaw that it repairs


def read(path: Path) -> Document:
    """Read a PDF file.

    Raises:
        DocumentError: It is encrypted or damaged.
        OSError: It can't be opened.
    """
    with path.open("rb") as file:
        try:
            reader = PdfReader(file)
            readable = not reader.is_encrypted or reader.decrypt("")
            if readable:
                return _document(reader, path.stem)
        except Exception as error:  # whatever a damaged file makes of the parser
            raise DocumentError(f"can't be read as PDF ({type(error).__name__}); save or print it anew") from None
    raise DocumentError("is encrypted; save it without a password")


def cut(title: str, pages: Sequence[str], entries: Sequence[tuple[int, str, int | None]]) -> list[Part]:
    """Cut the text of the pages at the entries (level, title, index of the page or None) of an outline."""
    text, starts = "", []
    for content in pages:
        starts.append(len(text))
        text += content.rstrip() + "\n\n"
    starts.append(len(text))
    headings: list[tuple[int, str, int, int, bool]] = []  # level, title, start, end, certain
    at = 0
    for level, heading, page in entries:
        begin = at if page is None else max(at, starts[page])
        match = _line(heading).search(text, begin, starts[page + 1]) if heading and page is not None else None
        begin, at = match.span() if match else (begin, begin)
        headings.append((level, heading, begin, at, match is not None))
    edges = [(0, title, 0, 0, True), *headings]
    ends = [begin for _, _, begin, _, _ in headings] + [len(text)]
    return [
        Part(level, name, trimmed(text[after:end]), bisect_right(starts[:-1], begin), certain)
        for (level, name, begin, after, certain), end in zip(edges, ends, strict=True)
    ]


def _document(reader: PdfReader, name: str) -> Document:
    title = one_line(_clean(str((reader.metadata and reader.metadata.title) or ""))) or name
    pages = [_clean(page.extract_text()) for page in reader.pages]
    return Document(title, cut(title, pages, list(_entries(reader, reader.outline))))


def _line(heading: str) -> re.Pattern[str]:
    """A heading as it stands on the page: by itself, in any case, perhaps broken, perhaps with its number before."""
    words = r"\s+".join(map(re.escape, heading.split()))
    return re.compile(
        rf"^[^\S\n]*(?:[\dA-Z]{{1,3}}(?:\.\d+)*[.)]?[^\S\n]+)?{words}[^\S\n]*$", re.IGNORECASE | re.MULTILINE
    )


def _entries(reader: PdfReader, outline: Sequence[Any], level: int = 1) -> Iterator[tuple[int, str, int | None]]:
    """The outline's entries in order; a list holds the entries below the one before it."""
    for entry in outline:
        if isinstance(entry, list):
            yield from _entries(reader, entry, level + 1)
        else:
            page = reader.get_destination_page_number(entry)
            exists = page is not None and 0 <= page < len(reader.pages)
            yield level, one_line(_clean(str(entry.title or ""))), page if exists else None


def _clean(text: str) -> str:
    """Text that UTF-8 can hold: fonts with wrong tables give halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()
