"""Output to the terminal and to files: documents, tables and JSON. Texts are never interpreted as markup."""

import io
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
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
from tasks.run.record import PLACE, Refused
from tasks.stats.agreement import Interval

WIDTH = 132  # a narrower table would cut names and numbers
FILE_WIDTH = 200


def console(*, stderr: bool = False) -> Console:
    """The terminal, at least `WIDTH` wide."""
    found = Console(stderr=stderr)
    found.width = max(found.width, WIDTH)
    return found


def draw(of: Document, out: Console) -> None:
    """Print a document."""
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
    """A table of texts; columns in `numbers` are aligned to the right."""
    found = RichTable(title=Text(title, "bold") if title else None, title_justify="left", box=box.SIMPLE)
    for name in columns:
        found.add_column(Text(name), justify="right" if name in numbers else "left", overflow="fold")
    for row in rows:
        found.add_row(*map(Text, row))
    return found


def print_lines(*lines: str, out: Console | None = None) -> None:
    """Print lines verbatim, on stdout by default."""
    for line in lines:
        (out or Console()).print(line, highlight=False, markup=False, soft_wrap=True)


def note(text: str, out: Console | None = None) -> None:
    """Print a remark, on stderr by default."""
    line = Text.assemble(("note", "yellow"), f" {text}")
    (out or Console(stderr=True)).print(line, soft_wrap=True)


def json_lines(values: Iterable[object]) -> str:
    """Encode each value as a line of JSON: dataclasses, mappings, days. NaN becomes null, other types become text."""
    return "".join(msgspec.json.encode(value, enc_hook=str).decode() + "\n" for value in values)


def draw_refused(refused: Refused, out: Console) -> None:
    """Print locations and reasons of the first refused rows."""
    if refused.n:
        more = f", the first {len(refused.rows)} of {refused.n:,}" if refused.n > len(refused.rows) else ""
        rows = (["" if row[c] is None else str(row[c]) for c in PLACE] for row in refused.rows)
        out.print(table(f"Refused rows{more}", PLACE, rows, numbers={"line"}))


def interval(of: Interval, digits: int = 3) -> str:
    """Format a value with its interval."""
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
                Text(f"{block.place} {block.trace_id.text}", "dim"),
                *map(_opinion, block.opinions),
            ]
        case _:
            return []


def _plain(text: str) -> Text:
    """Replace the thin spaces of pages with commas."""
    return Text(text.replace("\u202f", ","))


def _table(of: Table) -> RichTable:
    """Make a rich table. Texts are not wrapped; in a narrow terminal, number columns shrink."""
    found = RichTable(title=Text(of.title, "bold", no_wrap=True), title_justify="left", box=box.SIMPLE)
    found.min_width = len(of.title) + 2  # otherwise rich wraps a title that is wider than the table
    for i, name in enumerate(of.columns):
        left = i < of.text_columns
        found.add_column(Text(name), justify="left" if left else "right", no_wrap=left)
    for row in of.rows:
        found.add_row(*(_plain(str(cell)) for cell in row))
    return found


def _opinion(of: document.Opinion) -> Text:
    evidence = "no explanation" if of.chunk_id is None else f"chunk {of.chunk_id}: {excerpt(of.chunk or '', limit=160)}"
    return Text(f"  {of.name}  {of.label}: {of.explanation or evidence}")


def emit(
    form: str,
    output: Path | None,
    draw_table: Callable[[Console], None] | None = None,
    results: Iterable[object] = (),
    makers: Mapping[str, Callable[[], str | bytes]] | None = None,
) -> None:
    """Write a verb's result in the chosen format, to a file or to standard output.

    Args:
        draw_table: Prints the result, for format `table`.
        results: The result as objects, one per line, for format `json`.
        makers: Functions that return the content of a file, by other format.

    Raises:
        LeadlineError: The file can't be written.
    """
    try:
        if maker := (makers or {}).get(form):
            made = maker()
        elif form == "json" or draw_table is None:
            made = json_lines(results)
        elif output is None:
            draw_table(console())
            sys.stdout.flush()
            return
        else:
            made = _drawn(draw_table)
        data = made.encode() if isinstance(made, str) else made
        if output is None:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        else:
            save(output, data)
            print_lines(f"written  {output}", out=Console(stderr=True))
    except BrokenPipeError:  # the reader of the pipe has stopped reading
        sys.stderr.close()


def emit_document(form: str, output: Path | None, of: Document, results: Iterable[object]) -> None:
    """Write a document as tables, as a page, or as JSON; see `emit`."""
    emit(form, output, partial(draw, of), results, {"html": partial(document.page, of)})


def _drawn(draw_table: Callable[[Console], None]) -> str:
    """Render a table as plain text."""
    text = io.StringIO()
    draw_table(Console(file=text, width=FILE_WIDTH))
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def save(path: Path, data: bytes) -> None:
    """Write a file that the user named.

    Raises:
        LeadlineError: The file can't be written.
    """
    try:
        path.write_bytes(data)
    except OSError as error:
        raise LeadlineError(f"{path}: can't be written ({error.strerror}). Choose another place.") from error


def counted(n: int, noun: str) -> str:
    """A number and its noun."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
