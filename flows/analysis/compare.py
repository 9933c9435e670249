"""`leadline compare`: two judges, recipes, generators, prompt versions or ranges of days, side by side.

As tables for a terminal, as JSON, or as a page. Texts of the flipped claims are shown, and never read as markup.
"""

from pathlib import Path

from flows.console import show_result
from tasks.analysis.compare import compare
from tasks.core.config import load_nightly
from tasks.publish.report.comparison import document
from tasks.run.selectors import Filters
from tasks.store.warehouse import reading


def run(
    config: Path,
    selectors: tuple[str, str],
    filters: Filters,
    number: str | None,
    flips: int,
    html: Path | None,
    *,
    as_json: bool = False,
) -> None:
    """Compare, and show or write the result.

    Raises:
        UsageError: An arm is unknown or not scored, or nothing can be compared.
        LeadlineError: The page can't be written.
    """
    with reading(load_nightly(config).warehouse) as reader:
        result = compare.compare(reader, selectors, filters, number, flips)
    show_result(document(result), html, [result] if as_json else None)
