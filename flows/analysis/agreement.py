"""`leadline agreement`: how far two judges, graders or people agree, as tables for a terminal, as JSON, or as a page.

Ids are shown, and no text of a trace.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.console import console, print_json, table
from tasks.analysis.agreement import agreement
from tasks.analysis.compare.selectors import Filters, Row
from tasks.core.config import load_nightly
from tasks.core.errors import UsageError
from tasks.publish.report import agreement as page
from tasks.publish.report.pages import words
from tasks.store.warehouse import reading


def run(
    config: Path,
    sides: tuple[str, str],
    filters: Filters,
    suite: str | None,
    worst: int,
    html: Path | None,
    *,
    as_json: bool = False,
) -> None:
    """Measure, and show or write what was found.

    Raises:
        UsageError: A side, recipe or suite is unknown, or means several things.
        DataError: The sides have nothing in common.
        LeadlineError: The page can't be written.
    """
    if suite is not None and filters != Filters():
        raise UsageError(
            "--suite: its cases have no recipe, app or day. Leave out --recipe, --app, --date, --from and --to."
        )
    with reading(load_nightly(config).warehouse) as reader:
        found = agreement.agree(reader, sides, filters, suite, worst).as_dict()
    if html is not None:
        page.write_page(html, found)
    if as_json:
        print_json(found)
        return
    _show(found)
    if html is not None:
        Console(stderr=True).print(f"page  {html}", highlight=False, soft_wrap=True, markup=False)


def _show(found: Row) -> None:
    out = console()
    out.print(Text(f"Agreement: A = {found['a']}, B = {found['b']}", "bold"))
    out.print(Text(page.verdict(found)))
    for line in found["notes"]:
        out.print(Text(line, "dim"))
    for shown in _tables(found["claims"], found["grades"]):
        out.print(shown)


def _tables(claims: Row | None, grades: Row | None) -> Iterator[Table]:
    if claims is not None:
        yield _matrix("Claims: what A says (rows), what B says of them (columns)", claims)
        yield _rows("Agreement on claims that both gave a label", page.CLAIM_COLUMNS, page.claim_rows(claims))
        yield _rows("Each label against the rest", page.LABEL_COLUMNS, page.label_rows(claims))
        if claims["worst"]:
            columns = ("claim", "day", "app", "trace", "A", "B")
            yield table("The worst disagreements on claims", columns, map(_claim, claims["worst"]))
    if grades is not None:
        on = "answers" if grades["suite"] is None else f"cases of {grades['suite']}"
        yield _rows(f"Agreement on grades of {on} that both graded", page.GRADE_COLUMNS, page.grade_rows(grades))
        yield _rows("Equal grades, and whether a grade applies", page.MORE_COLUMNS, page.more_rows(grades))
        for grade in grades["each"]:
            yield _matrix(f"{words(grade['grade']).capitalize()}: what A gives (rows), what B gives (columns)", grade)
        if grades["worst"]:
            columns = ("answer", "day", "app", "grade", "A", "B")
            yield table("The worst disagreements on grades", columns, map(_graded, grades["worst"]))


def _rows(title: str, columns: Sequence[str], rows: page.Rows) -> Table:
    return table(title, ("", *columns), ((name, *cells) for name, cells in rows))


def _matrix(title: str, of: Row) -> Table:
    names, rows = page.matrix(of)
    return _rows(title, names, rows)


def _claim(row: Row) -> tuple[str, ...]:
    sides = (words(row[f"label_{s}"]) + _sure(row[f"confidence_{s}"]) for s in "ab")
    return (row["claim_id"], str(row["date"]), row["app"], row["trace_id"], *sides)


def _sure(confidence: float | None) -> str:
    return "" if confidence is None else f" ({confidence:.2f})"


def _graded(row: Row) -> tuple[str, ...]:
    day: Any = row["date"] or ""
    sides = (page.value(row[f"outcome_{s}"], row[f"value_{s}"]) for s in "ab")
    return (row["item"], str(day), row["app"] or "", words(row["grade"]), *sides)
