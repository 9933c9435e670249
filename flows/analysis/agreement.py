"""`leadline agreement`: how far two judges, graders or people agree, as tables, as JSON, or as a page."""

from pathlib import Path

from flows.console import show_result
from tasks.analysis.agreement.agreement import measure
from tasks.core.config import load_nightly
from tasks.core.errors import UsageError
from tasks.publish.report.agreement import document
from tasks.run.selectors import Filters
from tasks.store.warehouse import reading


def run(
    config: Path,
    selectors: tuple[str, str],
    filters: Filters,
    suite: str | None,
    disagreements: int,
    html: Path | None,
    *,
    as_json: bool = False,
) -> None:
    """Measure, and show or write the result.

    Raises:
        UsageError: A rater, recipe or suite is unknown, or ambiguous.
        DataError: The raters have nothing in common.
        LeadlineError: The page can't be written.
    """
    if suite is not None and filters != Filters():
        raise UsageError(
            "--suite: its cases have no recipe, app or day. Leave out --recipe, --app, --date, --from and --to."
        )
    with reading(load_nightly(config).warehouse) as reader:
        result = measure(reader, selectors, filters, suite, disagreements)
    show_result(document(result), html, [result] if as_json else None)
