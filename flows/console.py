"""The terminal: documents, tables and JSON, and files that the user names. Texts are never read as markup."""

import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tasks.core.errors import LeadlineError
from tasks.publish.documents import document
from tasks.publish.documents.document import Block, Document, Example, Note, Paste, Reasons, Table
from tasks.publish.report.text import excerpt
from tasks.stats.agreement import Interval

WIDTH = 132  # narrower, and names and numbers would be cut


def console() -> Console:
    """The terminal, at least so wide that names and numbers are not cut."""
    found = Console()
    found.width = max(found.width, WIDTH)
    return found


def show(of: Document) -> None:
    """Print a document."""
    out = console()
    out.print(Text(of.title + _subjects(of), "bold"))
    if of.summary:
        out.print(_plain(of.summary), soft_wrap=True)
    for section in of.sections:
        if blocks := [shown for block in section.blocks for shown in _shown(block)]:
            out.print(Text(f"\n{section.title}", "bold"))
            for block in blocks:
                out.print(block, soft_wrap=isinstance(block, Text))


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[str] = ()
) -> RichTable:
    """A table of texts; those of the columns `numbers` stand on the right."""
    found = RichTable(title=Text(title, "bold") if title else None, title_justify="left", box=box.SIMPLE)
    for name in columns:
        found.add_column(Text(name), justify="right" if name in numbers else "left", overflow="fold")
    for row in rows:
        found.add_row(*map(Text, row))
    return found


def print_lines(*lines: str, out: Console | None = None) -> None:
    """Print lines as they are, on stdout by default."""
    for line in lines:
        (out or Console()).print(line, highlight=False, markup=False, soft_wrap=True)


def note(text: str, out: Console | None = None) -> None:
    """Print a remark, on stderr by default."""
    line = Text.assemble(("note", "yellow"), f" {text}")
    (out or Console(stderr=True)).print(line, soft_wrap=True)


def print_json(*values: object) -> None:
    """Print each value on a line of its own: dataclasses, mappings, sequences, days; NaN is null."""
    sys.stdout.writelines(msgspec.json.encode(value).decode() + "\n" for value in values)


def interval(of: Interval, digits: int = 3) -> str:
    """A value with its interval."""
    return str(document.interval(of, digits))


def _subjects(of: Document) -> str:
    return ": " + ", ".join(f"{what} = {name}" for what, name in of.subjects) if of.subjects else ""


def _shown(block: Block) -> Sequence[Text | RichTable]:
    match block:
        case Table() if block.only != "page":
            return [_table(block)]
        case Note() if block.only != "page":
            return [_plain(block.text)]
        case Reasons():
            return [_plain(f"why   {line}") for line in block.lines]
        case Paste():
            return [Text(f"\n{block.text}")]
        case Example():
            return [
                Text(f"\n{block.text}"),
                Text(f"{block.place} {block.trace_id}", "dim"),
                *map(_opinion, block.opinions),
            ]
        case _:
            return []


def _plain(text: str) -> Text:
    """Text with commas for the thin spaces of pages."""
    return Text(text.replace("\u202f", ","))


def _table(of: Table) -> RichTable:
    """No text is broken: where room is short, the numbers' columns give way."""
    found = RichTable(title=Text(of.title, "bold", no_wrap=True), title_justify="left", box=box.SIMPLE)
    found.min_width = len(of.title) + 2  # else rich breaks the title where the table is narrower
    for i, name in enumerate(of.columns):
        left = i < of.text_columns
        found.add_column(Text(name), justify="left" if left else "right", no_wrap=left)
    for row in of.rows:
        found.add_row(*(_plain(str(cell)) for cell in row))
    return found


def _opinion(of: document.Opinion) -> Text:
    evidence = "no explanation" if of.chunk_id is None else f"chunk {of.chunk_id}: {excerpt(of.chunk or '', limit=160)}"
    return Text(f"  {of.name}  {of.label}: {of.explanation or evidence}")


def show_result(of: Document, html: Path | None, results: Sequence[object] | None) -> None:
    """Print a document, or its results as JSON lines, and write its page where one is wanted.

    Args:
        html: Where the page goes; None for no page.
        results: Printed instead of the document; None to print the document.

    Raises:
        LeadlineError: The page can't be written.
    """
    if html is not None:
        document.write_page(html, of)
    if results is not None:
        print_json(*results)
        return
    show(of)
    if html is not None:
        Console(stderr=True).print(f"page  {html}", highlight=False, soft_wrap=True, markup=False)


def save(path: Path, text: str) -> None:
    """Write a file that the user named, its lines as they are.

    Raises:
        LeadlineError: It can't be written.
    """
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise LeadlineError(f"{path}: can't be written ({error.strerror}). Choose another place.") from error


def counted(n: int, noun: str) -> str:
    """A number and its noun."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
