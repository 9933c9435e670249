"""Tables and numbers for a terminal; texts are never read as markup."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tasks.publish.report.text import number
from tasks.stats.agreement import Interval

WIDTH = 132  # narrower, and names and numbers would be cut


def console() -> Console:
    """The terminal, at least so wide that names and numbers are not cut."""
    found = Console()
    found.width = max(found.width, WIDTH)
    return found


def table(
    title: str, names: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1, *, whole: bool = False
) -> Table:
    """A table of which the first columns are text and the others are numbers.

    Args:
        left: How many are text.
        whole: No text is broken: where room is short, the numbers' columns give way.
    """
    found = Table(title=Text(title, "bold", no_wrap=True), title_justify="left", box=box.SIMPLE)
    found.min_width = len(title) + 2  # else rich breaks the title where the table is narrower
    for i, name in enumerate(names):
        found.add_column(Text(name), justify="left" if i < left else "right", no_wrap=whole and i < left)
    for row in rows:
        found.add_row(*map(Text, row))
    return found


def interval(of: Interval, digits: int = 3) -> str:
    """A value with its ends."""
    ends = "" if of.low is None or of.high is None else f" [{number(of.low, digits)}, {number(of.high, digits)}]"
    return number(of.value, digits) + ends


def print_json(found: Mapping[str, Any]) -> None:
    """One object on a line of its own, days as people write them."""
    sys.stdout.write(json.dumps(found, ensure_ascii=False, default=_text_of) + "\n")


def _text_of(value: object) -> str:
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(type(value).__name__)
