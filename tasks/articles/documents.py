"""Finds the documents of a knowledge base, and reads each with the reader for its file type.

Names that begin with a dot or with Word's `~$` are skipped, and links to folders are not followed.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tasks.articles import _html, _markdown, _pdf
from tasks.articles.parts import Document, DocumentError
from tasks.core.errors import SourceError, UsageError

READERS: dict[str, Callable[[Path], Document]] = {
    ".md": _markdown.read,
    ".markdown": _markdown.read,
    ".html": _html.read_html,
    ".htm": _html.read_html,
    ".docx": _html.read_docx,
    ".pdf": _pdf.read,
}
_SUFFIXES = ", ".join(READERS)


class Place(NamedTuple):
    """Where a document is, and what it is called: its path below the base, with `/`."""

    doc_id: str
    path: Path


def find(paths: Sequence[Path], base: Path | None) -> tuple[list[Place], int]:
    """The documents of folders and files, by id, and how many files of other kinds the folders hold.

    Args:
        base: Ids are paths below this folder. None: the folder that all paths have in common.

    Raises:
        UsageError: A path does not exist, is no document or not below the base; or no document was found.
        SourceError: A folder can't be read.
    """
    given = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 - links keep the names they were given by
    for path in given:
        if not path.exists():
            raise UsageError(f"{path} does not exist. Give the folder of a knowledge base, or its files.")
        if path.is_file() and path.suffix.lower() not in READERS:
            raise UsageError(f"{path}: no reader for files of this kind. Known ones: {_SUFFIXES}.")
    folders = [path if path.is_dir() else path.parent for path in given]
    root = Path(os.path.abspath(base)) if base else Path(os.path.commonpath(folders))  # noqa: PTH100
    for path in given:
        if not path.is_relative_to(root):
            raise UsageError(f"{path} is not below --base {root}. Give a folder that holds all of them.")
    found: dict[str, Path] = {}
    others = 0
    for path in given:
        for file in _files(path) if path.is_dir() else [path]:
            if file.suffix.lower() in READERS:
                found[_name(file.relative_to(root))] = file
            else:
                others += 1
    if not found:
        raise UsageError(f"{given[0]}: no documents there. Known kinds: {_SUFFIXES}.")
    return [Place(doc_id, found[doc_id]) for doc_id in sorted(found)], others


def read(path: Path) -> Document:
    """Read one document.

    Raises:
        DocumentError: It can't be read, or holds no text.
    """
    try:
        document = READERS[path.suffix.lower()](path)
    except OSError as error:
        raise DocumentError(f"can't be opened ({error.strerror})") from None
    if not any(part.text for part in document.parts):
        raise DocumentError("holds no text (a scanned one needs text recognition first)")
    return document


def _files(folder: Path) -> Iterator[Path]:
    def stop(error: OSError) -> None:
        raise SourceError(f"{error.filename}: can't be read ({error.strerror}). Allow it, or leave it out.")

    for place, folders, names in os.walk(folder, onerror=stop):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in names if not name.startswith((".", "~$")))


def _name(path: Path) -> str:
    """A path as text that UTF-8 can hold; names of files may be any bytes."""
    return os.fsencode(path.as_posix()).decode("utf-8", "replace")
