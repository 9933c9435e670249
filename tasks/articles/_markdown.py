"""Markdown documents. CommonMark is read by pulldown-cmark (through pyromark); texts stay as they were written.

Headings inside quotations and lists belong to those and begin no part. HTML inside Markdown is text.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pyromark
import yaml

from tasks.articles.parts import Document, DocumentError, Part, one_line, trimmed

_OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_YAML_STYLE_METADATA_BLOCKS
_ANCHOR = re.compile(r"\s*\{[#.][^{}]*\}$")  # `## Backups {#backups}`, as several site generators want it
_CONTAINERS = frozenset({"BlockQuote", "List", "Item"})


def read(path: Path) -> Document:
    """Read a Markdown file.

    Raises:
        DocumentError: It is not UTF-8.
        OSError: It can't be opened.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(f"is not UTF-8 (byte {error.start:,}); save it as UTF-8") from None
    return parse(text, path.stem)


def parse(text: str, name: str) -> Document:
    """Cut a Markdown text at its headings. `name` is the title of a document whose metadata have none."""
    source = text.replace("\r\n", "\n").replace("\r", "\n").encode()
    title, start, headings = name, 0, []
    for tag, kind, words, begin, end in _blocks(source.decode()):
        if tag == "Heading":
            headings.append((int(kind.removeprefix("H")), _ANCHOR.sub("", one_line(words)), begin, end))
        elif (metadata := _mapping(words)) is not None:  # else it is text between two rules
            start = end
            title = one_line(str(metadata.get("title") or "")) or name
    edges = [(0, title, start, start), *headings]
    ends = [begin for _, _, begin, _ in headings] + [len(source)]
    parts = [
        Part(level, heading, trimmed(source[after:end].decode()))
        for (level, heading, _, after), end in zip(edges, ends, strict=True)
    ]
    return Document(title, parts)


def _blocks(text: str) -> Iterator[tuple[str, str, str, int, int]]:
    """Metadata and headings: tag, kind or level, words, first and last byte."""
    inside = 0
    words: list[str] | None = None  # of the block that is open
    for event, span in pyromark.events_with_range(text, options=_OPTIONS, merge_text=True):
        kind, value = ("Text", " ") if isinstance(event, str) else next(iter(event.items()))  # a break, or a mapping
        if kind in {"Text", "Code"} and words is not None:
            words.append(value)
        if kind not in {"Start", "End"}:
            continue
        tag, named = (value, "") if isinstance(value, str) else next(iter(value.items()))
        if tag in _CONTAINERS:
            inside += 1 if kind == "Start" else -1
        elif tag in {"Heading", "MetadataBlock"} and not inside:
            if kind == "End":
                yield tag, named, "".join(words or ()), span["start"], span["end"]
            words = [] if kind == "Start" else None


def _mapping(text: str) -> dict[object, object] | None:
    try:
        found = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes texts and nothing else
    except yaml.YAMLError:
        return None
    return found if isinstance(found, dict) else None
