"""Documents: results of an analysis as sections of notes, tables and texts, for the terminal and for HTML pages.

Left out: the contents (`agreement.py`, `ask.py`, `comparison.py`, `calibration.py`, `metaeval.py`), and drawing in the
terminal (`flows/console.py`).
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import quote

from markupsafe import Markup

from tasks.publish.report import text
from tasks.publish.report.pages import render, style, words
from tasks.stats.agreement import Interval

Only = Literal["", "page", "terminal"]
Links: TypeAlias = Callable[[object, str], str]


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of a table.

    Attributes:
        text: The formatted value.
        detail: Secondary text after the value, such as an interval or a confidence.
        label: A claim's label, which pages show with its icon; empty for other values.
        is_id: Whether the value is an id.
        href: Link target on a page; empty for no link.
        bar: Left end and width of the interval (None without one) and position of the value, in percent of a bar
            centered on 0.
    """

    text: str
    detail: str = ""
    label: str = ""
    is_id: bool = False
    href: str = ""
    bar: tuple[float | None, float | None, float] | None = None

    def __str__(self) -> str:
        return f"{self.text} {self.detail}".rstrip()


Value: TypeAlias = Cell | str | int | None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values.

    Attributes:
        text_columns: Number of leading text columns; the other columns are numbers.
        matrix: Whether the table is a matrix, in which row i and column i + 1 stand for the same outcome.
        only: Where the table is shown; everywhere by default.
        folded: Whether a page shows the table only after a click.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    text_columns: int = 1
    matrix: bool = False
    only: Only = ""
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """A remark in a sentence or two."""

    text: str
    only: Only = ""


@dataclass(frozen=True, slots=True)
class Reasons:
    """Sentences that explain a result."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Paste:
    """YAML to paste into the user's files."""

    text: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """A judge's result for a claim: label, explanation, and deciding chunk (None where missing)."""

    name: str
    label: Cell
    explanation: str | None
    chunk_id: str | None
    chunk: str | None


@dataclass(frozen=True, slots=True)
class Example:
    """A claim with the results of several judges. `place` is day, app and generator; the cell `trace_id` follows it."""

    text: str
    place: str
    trace_id: Cell
    opinions: tuple[Opinion, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """HTML that is drawn and shown only on pages."""

    draw: Callable[[], Markup]


Block: TypeAlias = Table | Note | Reasons | Paste | Example | Figure


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a title, with an id for links."""

    id: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """The results of an analysis.

    Attributes:
        kind: CSS class of the page's body.
        subjects: Names of A and B, or of whatever was measured.
        summary: The main result in one or two sentences.
        details: Label, name and version (or an empty text) of the recipe, the judge, the days, and so on.
    """

    kind: str
    title: str
    subjects: tuple[tuple[str, str], ...]
    summary: str
    details: tuple[tuple[str, str, str], ...]
    sections: tuple[Section, ...]


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Value]], text_columns: int = 1) -> Table:
    """Build a table of cells, texts and counts; None is shown as n/a."""
    return Table(title, tuple(columns), tuple(tuple(map(_cell, row)) for row in rows), text_columns)


def matrix(title: str, outcomes: Sequence[str], counts: Sequence[Sequence[int]]) -> Table:
    """Build a matrix: how often A gave the outcome of the row and B that of the column, without unused outcomes."""
    used = [i for i, row in enumerate(counts) if sum(row) + sum(other[i] for other in counts)]
    names = [words(outcomes[i]) for i in used]
    rows: list[tuple[Value, ...]] = [(name, *(counts[i][j] for j in used)) for name, i in zip(names, used, strict=True)]
    return replace(table(title, ("", *names), rows), matrix=True)


def _cell(value: Value) -> Cell:
    if isinstance(value, Cell):
        return value
    return Cell(value if isinstance(value, str) else text.count(value))


def interval(of: Interval, digits: int = 3) -> Cell:
    """A value with its interval."""
    ends = "" if of.low is None else f"[{text.number(of.low, digits)}, {text.number(of.high, digits)}]"
    return Cell(text.number(of.value, digits), ends)


def signed(value: float | None, digits: int) -> str:
    """A difference with its sign."""
    return text.NOT_APPLICABLE if value is None else f"{value:+.{digits}f}".replace("-", "−")


def difference(of: Interval, digits: int = 3, reach: float | None = None) -> Cell:
    """A difference with its interval and a bar.

    Args:
        reach: Value at both ends of the bar, which is centered on 0; None for no bar.
    """
    if of.value is None:
        return Cell(signed(None, digits))
    ends = "" if of.low is None else f"[{signed(of.low, digits)}, {signed(of.high, digits)}]"
    bar = None
    if reach:
        low, high, at = (None if x is None else round(50 + 50 * x / reach, 1) for x in (of.low, of.high, of.value))
        bar = low, None if low is None or high is None else round(high - low, 1), at or 0.0
    return Cell(signed(of.value, digits), ends, bar=bar)


def probability(p: float | None) -> str:
    """Format a p-value."""
    if p is None:
        return text.NOT_APPLICABLE
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def label(name: str, confidence: float | None = None) -> Cell:
    """A claim's label, with the judge's confidence."""
    return Cell(words(name), "" if confidence is None else f"({confidence:.2f})", label=name)


def identifier(value: object, href: str = "") -> Cell:
    """An id, linked to `href` on pages."""
    return Cell(str(value), is_id=True, href=href)


def trace_links(report: Path, output: Path | None) -> Links:
    """Make links from a page to the trace pages of a report.

    Args:
        output: The page's file. None if the page goes to standard output; links are then relative to the working
            directory.

    Returns:
        A function of a day and a trace id, which returns an empty text if the trace has no page.
    """
    folder = output.parent if output else Path()

    def link(day: object, trace_id: str) -> str:
        page = report / str(day) / "traces" / f"{text.slug(trace_id)}.html"
        return quote(os.path.relpath(page, folder)) if page.is_file() else ""

    return link


def no_links(_day: object, _trace_id: str) -> str:
    """No links, for documents that are not shown as a page."""
    return ""


def seconds(value: float | None) -> str:
    """Format a duration in seconds."""
    return text.NOT_APPLICABLE if value is None else text.duration(value)


def days(first: object, last: object) -> list[tuple[str, str, str]]:
    """The selected days as a detail of a document; empty for all days."""
    return [] if first is None and last is None else [("days", f"{first or 'the first'} to {last or 'the last'}", "")]


def page(document: Document) -> str:
    """Render a document as a self-contained HTML page."""
    css = Markup(style())  # noqa: S704 - our own file
    return render("analysis", document=document, css=css, kind_of=lambda block: type(block).__name__)
