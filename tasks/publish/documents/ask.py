"""The document of `leadline ask`: numbers by application and generator. Pages also show examples with explanations.

Left out: how the numbers are computed (`tasks/analysis/ask.py`).
"""

from collections.abc import Iterator
from datetime import date

import polars as pl

from tasks.analysis.ask import Ask, Estimate, Group, groups
from tasks.core import keys
from tasks.publish.documents import document as doc
from tasks.publish.report.text import number, plural
from tasks.run.context import Context
from tasks.stats.agreement import Interval

EXAMPLES = 10  # per kind of answer
LEGEND = (
    "Only answered traces enter the mean; brackets are its 95% interval over questions. N/A: the trace does not decide "
    "it. Unjudged: the model's reply could not be read, or there was none."
)


def document(ctx: Context, of: Ask, rows: pl.DataFrame, link: doc.Links) -> doc.Document:
    """Build the document of the replies to a question.

    Args:
        rows: Rows from `tasks.analysis.ask.replies`.
        link: Returns the page of a trace, given its day and id; empty if the trace has no page.
    """
    found = groups(rows, of.form)
    examples = tuple(_examples(of, rows, link))
    return doc.Document(
        kind="compare",
        title=of.task,
        subjects=(),
        summary=_summary(of, found[0]),
        details=(
            ("judge", of.judge, of.version),
            *doc.days(ctx.first, ctx.last),
            *([("apps", ", ".join(ctx.scope.apps), "")] if ctx.scope.apps else []),
            *([("sample", f"{ctx.scope.share:g}", "")] if ctx.scope.share < 1 else []),
        ),
        sections=(
            doc.Section("numbers", "By application and generator", (_numbers(of, found), doc.Note(LEGEND))),
            *([doc.Section("examples", "Examples", examples)] if examples else []),
        ),
    )


def estimated(ctx: Context, of: Ask, found: Estimate) -> doc.Document:
    """Build the document of an estimate: what asking would cost."""
    rows: list[tuple[str, doc.Value]] = [
        ("traces", found.traces),
        ("already answered", found.answered),
        ("requests to make", found.requests),
        ("tokens, about", found.tokens),
        ("minutes, about", "no measured rate yet" if found.minutes is None else number(found.minutes, 1)),
    ]
    days = f"{ctx.first} to {ctx.last}"
    cost = doc.table(f"{days}, by the model of {of.judge}", ("", "estimate"), rows)
    note = doc.Note("Nothing was changed.")
    return doc.Document("compare", of.task, (), "", (), (doc.Section("cost", "Cost", (cost, note)),))


def _summary(of: Ask, whole: Group) -> str:
    what = "Yes" if of.form == "yes-no" else "Mean grade, 1 to 5"
    return f"{what}: {_mean(of, whole.mean)}, of {plural(whole.scored, 'answered trace')}."


def _numbers(of: Ask, found: list[Group]) -> doc.Table:
    columns = ("app", "generator", "traces", "answered", "yes" if of.form == "yes-no" else "grade", "N/A", "unjudged")
    rows = [(g.app or "all", g.generator or "all", g.n, g.scored, _mean(of, g.mean), g.na, g.unjudged) for g in found]
    return doc.table("", columns, rows, text_columns=2)


def _mean(of: Ask, mean: Interval) -> doc.Cell:
    return doc.interval(mean, 3 if of.form == "yes-no" else 2)


def _examples(of: Ask, rows: pl.DataFrame, link: doc.Links) -> Iterator[doc.Table]:
    """Yield tables of examples, the same ones each time: some of yes and no each, or the lowest and highest grades."""
    drawn = rows.filter(status="scored").with_columns(
        draw=pl.col("trace_id").map_elements(lambda trace: keys.key("example", trace), pl.String)
    )
    if of.form == "yes-no":
        kinds = [("Yes", drawn.filter(value=1).sort("draw")), ("No", drawn.filter(value=0).sort("draw"))]
    else:
        lowest = drawn.sort("value", "draw").head(EXAMPLES)
        highest = drawn.join(lowest, "trace_id", "anti").sort("value", "draw", descending=[True, False])
        kinds = [("Lowest grades", lowest), ("Highest grades", highest)]
    for title, its in kinds:
        if len(its):
            yield doc.Table(
                title=title,
                columns=("trace", "day", "app", "generator", "answer", "explanation"),
                rows=tuple(_example(of, row, link) for row in its.head(EXAMPLES).iter_rows(named=True)),
                text_columns=6,
                only="page",
            )


def _example(of: Ask, row: dict[str, object], link: doc.Links) -> tuple[doc.Cell, ...]:
    day, trace = row["date"], str(row["trace_id"])
    assert isinstance(day, date)  # noqa: S101 - the type that the table declares
    value = row["value"]
    answer = number(float(str(value)), 0) if of.form == "grade" else "yes" if value else "no"
    others = (str(day), str(row["app"]), str(row["generator"]), answer, str(row["explanation"] or ""))
    return (doc.identifier(trace, link(day, trace)), *map(doc.Cell, others))
