"""Splits a document into articles, with ids that do not change when the text is edited. Pure functions."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.articles.parts import Document, Part
from tasks.core.keys import SHORT_HEX, key
from tasks.text.windows import word_count

_LETTER = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class Problem:
    """A reason why an article is not self-contained.

    Attributes:
        kind: One of `problems.KINDS`.
        reason: Message with the finding and the fix.
    """

    kind: str
    reason: str


@dataclass(frozen=True)
class Article:
    """A piece of a knowledge base that can be cited as a source.

    Attributes:
        article_id: Hash of the document's path and the headings' path; not of the text.
        doc_id: The document's path below the base, with `/`.
        doc_title: From the document's metadata or its title page; else the name of its file.
        title: The last heading; the document's title for what stands before the first heading.
        headings: All headings above the text, from the highest; none before the first heading.
        page: Where it begins, counted from 1; None where there are no pages.
        text: Markdown, without its own heading and with those below it.
        words: See `count`.
        problems: Empty if nothing was found.
    """

    article_id: str
    doc_id: str
    doc_title: str
    title: str
    headings: tuple[str, ...]
    page: int | None
    text: str
    words: int
    problems: tuple[Problem, ...] = ()


def articles(doc_id: str, document: Document, depth: int) -> list[Article]:
    """Cut at headings of the levels 1 to `depth`; deeper ones stay in the text.

    A heading without text of its own, such as a chapter's above its sections, is in their paths and makes no article.
    """
    parts = list(_merged(document, depth))
    found: list[Article] = []
    seen: Counter[tuple[str, ...]] = Counter()
    path: list[tuple[int, str]] = []
    for i, part in enumerate(parts):
        below = parts[i + 1] if i + 1 < len(parts) else None
        if part.level:
            path = [*((level, title) for level, title in path if level < part.level), (part.level, part.title)]
        headings = tuple(title for _, title in path)
        seen[headings] += 1
        if not part.text and (not part.level or (below is not None and below.level > part.level)):
            continue
        problems = []
        if parts[-1].level == 0:
            problems.append(Problem("no_headings", f"the document has no heading of level 1 to {depth}: add some"))
        if not part.certain:
            where = f"on page {part.page}" if part.page else "anywhere"
            problems.append(
                Problem(
                    "uncertain_start", f"its heading in the outline stands on no line {where}: check where it begins"
                )
            )
        found.append(
            Article(
                article_id(doc_id, headings, seen[headings]),
                doc_id,
                document.title,
                part.title,
                headings,
                part.page,
                part.text,
                count(part.text),
                tuple(problems),
            )
        )
    return found


def count(text: str) -> int:
    """Count words as for judges' windows. Markup (bullets, bars) does not count."""
    return round(word_count(" ".join(w for w in text.split() if _LETTER.search(w))))


def article_id(doc_id: str, headings: tuple[str, ...], ordinal: int) -> str:
    """Id of the `ordinal`-th article of a document below these headings, from 1."""
    # Systems write the same accented letter in one or two characters, and file names above all.
    path = [unicodedata.normalize("NFC", step) for step in (doc_id, *headings)]
    return key(len(headings), *path, ordinal, size=SHORT_HEX)


def _merged(document: Document, depth: int) -> Iterator[Part]:
    """The parts down to `depth`, each with the deeper ones that follow it in its text."""
    parts = document.parts
    current = parts[0]
    for part in parts[1:]:
        if part.level <= depth:
            yield current
            current = part
        else:
            pieces = (current.text, f"{'#' * part.level} {part.title}".strip(), part.text)
            current = current._replace(text="\n\n".join(p for p in pieces if p))
    yield current
