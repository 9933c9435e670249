"""`leadline compare`: compare two judges, recipes, generators, prompt versions or ranges of days.

The result is shown as tables, JSON or a page. Texts of flipped claims are shown and never interpreted as markup.
"""

from dataclasses import replace
from typing import Annotated

import typer

from flows.console import emit_document
from flows.options import App, Config, FromAll, Output, PageForm, Recipe, To, days_or_all, optional
from flows.verbs import with_config
from tasks.analysis.compare import compare
from tasks.core.config import load_nightly
from tasks.core.paths import CONFIG
from tasks.publish.documents.comparison import document
from tasks.publish.documents.document import trace_links
from tasks.run.selectors import Filters
from tasks.store.warehouse import reading


def command(
    a: Annotated[
        str,
        typer.Argument(
            help="judge:NAME, recipe:NAME, generator:NAME, prompt:VERSION or dates:DAY..DAY; versions of judges and"
            " recipes by the first letters of their hash; a word without its kind is looked up.",
            metavar="BASELINE",
        ),
    ],
    b: Annotated[str, typer.Argument(help="The candidate, of the same kind.", metavar="CANDIDATE")],
    recipe: Recipe = None,
    app: App = None,
    start: FromAll = None,
    end: To = None,
    number: Annotated[
        str | None, optional("The number to compare in detail; groundedness by default.", "--number")
    ] = None,
    flips: Annotated[int, typer.Option("--flips", min=0, help="Claims with changed labels to show as text.")] = 5,
    form: PageForm = "table",
    output: Output = None,
    config: Config = CONFIG,
) -> None:
    """Compare two judges, recipes, generators, prompt versions or ranges of days.

    Example: leadline compare judge:similarity judge:nli --format html -o judges.html
    """
    filters = Filters(recipe, app, *days_or_all(None, start, end))
    settings = load_nightly(config)
    with reading(settings.warehouse) as reader:
        result = compare.compare(reader, (a, b), filters, number, flips)
    signal = tuple(replace(noise, note=with_config(noise.note, config)) for noise in result.signal)
    result = replace(result, signal=signal, notes=tuple(with_config(note, config) for note in result.notes))
    emit_document(form, output, document(result, trace_links(settings.report.dir, output)), [result])
