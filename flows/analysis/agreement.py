"""`leadline agreement`: agreement of two judges, graders or people, as tables, JSON or a page."""

from typing import Annotated

import typer

from flows.console import emit_document
from flows.options import App, Config, FromAll, OneDay, Output, PageForm, Recipe, To, days_or_all, optional
from tasks.analysis.agreement.agreement import measure
from tasks.core.config import load_nightly
from tasks.core.errors import UsageError
from tasks.core.paths import CONFIG
from tasks.publish.documents.agreement import document
from tasks.publish.documents.document import trace_links
from tasks.run.selectors import Filters
from tasks.store.warehouse import reading


def command(
    one: Annotated[
        str,
        typer.Argument(
            help="judge:NAME (labels), grader:NAME (grades), a name alone, people, or reviewer:NAME; versions by the"
            " first letters of their hash."
        ),
    ],
    other: Annotated[str, typer.Argument(help="The reference, where one of the two is the truth.")],
    recipe: Recipe = None,
    app: App = None,
    on: OneDay = None,
    start: FromAll = None,
    end: To = None,
    suite: Annotated[
        str | None, optional("On the cases of this suite, after metaeval has run both on it.", "--suite")
    ] = None,
    worst: Annotated[int, typer.Option("--worst", min=0, help="Worst disagreements to list, by their ids.")] = 10,
    form: PageForm = "table",
    output: Output = None,
    config: Config = CONFIG,
) -> None:
    """Measure how far two judges, graders or people agree, and show their worst disagreements.

    Example: leadline agreement judge:nli people --app support-bot
    """
    filters = Filters(recipe, app, *days_or_all(on, start, end))
    if suite is not None and filters != Filters():
        raise UsageError(
            "--suite: its cases have no recipe, app or day. Leave out --recipe, --app, --date, --from and --to."
        )
    settings = load_nightly(config)
    with reading(settings.warehouse) as reader:
        result = measure(reader, (one, other), filters, suite, worst)
    emit_document(form, output, document(result, trace_links(settings.report.dir, output)), [result])
