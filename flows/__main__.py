"""The `leadline` command: one verb per flow, and the ways to look at what they made.

Exit codes: 0 done, 1 failure, 2 wrong usage or config, 3 data worse than the limits, 4 another run holds the lake. What
signals do is in `flows/command.py`.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.runtime.temporary_server import temporary_server
from tasks.core.errors import LeadlineError, UsageError
from tasks.core.paths import CONFIG

app = typer.Typer(
    help="How well a RAG system's production answers are grounded, every night, offline.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Config = Annotated[Path, typer.Option("--config", "-c", help="The nightly config.", show_default=True)]
DAY: dict[str, Any] = {"formats": ["%Y-%m-%d"], "metavar": "YYYY-MM-DD", "show_default": False}


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="The folder; this one by default.", show_default=False)] = Path(),
) -> None:
    """Copy the configs and the sample into a folder, for a first night."""
    from flows import init as verb  # noqa: PLC0415 - each verb loads only what it needs

    verb.run(folder)


@app.command()
def nightly(
    day: Annotated[datetime | None, typer.Option("--date", help="The day; yesterday (UTC) by default.", **DAY)] = None,
    start: Annotated[datetime | None, typer.Option("--from", help="First day of a range.", **DAY)] = None,
    end: Annotated[datetime | None, typer.Option("--to", help="Last day of a range.", **DAY)] = None,
    config: Config = CONFIG,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what is missing; change nothing.")] = False,
    retry_failures: Annotated[
        bool, typer.Option("--retry-failures", help="Judge again what a judge failed on before.")
    ] = False,
) -> None:
    """Complete a day or a range: ingest, claims, verdicts, scores, tables, report."""
    first, last = _range(day, start, end)
    if dry_run:
        from flows import dry_run as dry  # noqa: PLC0415 - each verb loads only what it needs

        dry.show(dry.measure(config, first, last), first, last)
        return
    _quiet_prefect()
    with temporary_server():
        from tasks.run.build import build_contexts  # noqa: PLC0415

        for ctx in build_contexts(config, first, last):  # a mistake shows before Prefect is loaded
            ctx.close()
        from flows import nightly as flow  # noqa: PLC0415
        from flows.summary import show  # noqa: PLC0415

    show(flow.nightly(str(config), first, last, retry_failures))


@app.command()
def backfill(
    start: Annotated[datetime, typer.Option("--from", help="First day of the range.", **DAY)],
    end: Annotated[datetime, typer.Option("--to", help="Last day of the range.", **DAY)],
    judge: Annotated[
        Path | None,
        typer.Option("--judge", help="The judge's file; the recipe's own judge by default.", show_default=False),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option("--recipe", help="Name of a recipe of the config, or a recipe's file.", show_default=False),
    ] = None,
    apps: Annotated[
        list[str] | None, typer.Option("--app", help="Only this application; repeat for more.", show_default=False)
    ] = None,
    sample: Annotated[float, typer.Option("--sample", help="Share of the traces, the same ones each time.")] = 1.0,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="Stop after so many tokens.", show_default=False)
    ] = None,
    max_minutes: Annotated[
        float | None, typer.Option("--max-minutes", min=0, help="Stop after so many minutes.", show_default=False)
    ] = None,
    config: Config = CONFIG,
    retry_failures: Annotated[
        bool, typer.Option("--retry-failures", help="Judge again what a judge failed on before.")
    ] = False,
) -> None:
    """Judge past days by another judge or recipe, newest first, beside the nightly."""
    first, last = _range(None, start, end)
    _quiet_prefect()
    with temporary_server():
        from flows import backfill as verb  # noqa: PLC0415

        # A mistake shows before the flow starts.
        verb.load(config, first, last, judge=judge, recipe=recipe, apps=apps or (), sample=sample).close()
    told = verb.backfill(
        first, last, str(config), str(judge) if judge else None, recipe, apps or (), sample, max_tokens, max_minutes,
        retry_failures,
    )  # fmt: skip
    verb.show(told)


@app.command()
def noise(
    sample: Annotated[
        int, typer.Option("--sample", min=1, help="Requests to judge again, at least.", show_default=False)
    ],
    judge: Annotated[
        str | None, typer.Option("--judge", help="Name of its file; every judge by default.", show_default=False)
    ] = None,
    day: Annotated[datetime | None, typer.Option("--date", help="The day; yesterday (UTC) by default.", **DAY)] = None,
    start: Annotated[datetime | None, typer.Option("--from", help="First day of a range.", **DAY)] = None,
    end: Annotated[datetime | None, typer.Option("--to", help="Last day of a range.", **DAY)] = None,
    config: Config = CONFIG,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per measurement.")] = False,
) -> None:
    """Judge past requests again: how far does a judge agree with itself?"""
    _quiet_prefect()
    from flows.analysis import noise as verb  # noqa: PLC0415

    first, last = _range(day, start, end)
    verb.run(config, first, last, sample, judge, as_json=as_json)


@app.command()
def metaeval(
    judge: Annotated[
        list[Path],
        typer.Option("--judge", help="The judge's file; repeat to see several side by side.", show_default=False),
    ],
    suite: Annotated[
        Path | None,
        typer.Option(
            "--suite", help="File or folder of test cases; the ones that come with Leadline.", show_default=False
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page as well.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per judge.")] = False,
    config: Config = CONFIG,
) -> None:
    """Unit tests for judges: which share of a suite's conditions does a judge pass?"""
    _quiet_prefect()
    from flows.analysis import metaeval as verb  # noqa: PLC0415

    verb.run(config, judge, suite, html, as_json=as_json)


@app.command()
def calibrate(
    error: Annotated[
        float, typer.Option("--error", help="Most wrong ones among those sent, as a share.", show_default=False)
    ],
    confidence: Annotated[
        float, typer.Option("--confidence", help="How sure that has to be: 0.5 is as likely as not.")
    ] = 0.5,
    recipe: Annotated[
        str | None,
        typer.Option("--recipe", help="Name of a recipe; every recipe that counts by default.", show_default=False),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="A file of labels instead of those imported.", show_default=False),
    ] = None,
    start: Annotated[datetime | None, typer.Option("--from", help="First day; all days by default.", **DAY)] = None,
    end: Annotated[datetime | None, typer.Option("--to", help="Last day.", **DAY)] = None,
    output_format: Annotated[str, typer.Option("--format", help="table or json.", show_default=True)] = "table",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="An HTML page to write beside.", show_default=False)
    ] = None,
    config: Config = CONFIG,
) -> None:
    """Find thresholds from people's labels: what may be sent without a person looking, and which labels are sure."""
    from flows.analysis import calibrate as verb  # noqa: PLC0415

    first, last = _range(None, start, end) if start or end else verb.EVER
    verb.run(config, first, last, error, confidence, recipe, labels, output_format, output)


review = typer.Typer(help="People's labels: what they find counts over what a judge says.", no_args_is_help=True)
app.add_typer(review, name="review")


@review.command("import")
def review_import(
    file: Annotated[
        Path, typer.Argument(help="JSON lines, CSV, or Label Studio's JSON export: docs/reviews.md.", metavar="FILE")
    ],
    config: Config = CONFIG,
) -> None:
    """Take in people's labels, and correct the nights by them."""
    from flows import review as verb  # noqa: PLC0415

    verb.run(config, file)


@review.command("export")
def review_export(
    need: Annotated[str, typer.Option("--need", help="misused, uncertain, disputed or random.", show_default=False)],
    count: Annotated[int, typer.Option("--count", min=1, help="Claims at most; of random, answers.")] = 100,
    reviewers: Annotated[
        int, typer.Option("--reviewers", min=1, help="People that each claim should be labelled by.")
    ] = 1,
    reviewer: Annotated[
        str | None,
        typer.Option("--for", help="Who is to label: leaves out what they have labelled.", show_default=False),
    ] = None,
    day: Annotated[datetime | None, typer.Option("--date", help="One day; all days by default.", **DAY)] = None,
    start: Annotated[datetime | None, typer.Option("--from", help="First day.", **DAY)] = None,
    end: Annotated[datetime | None, typer.Option("--to", help="Last day.", **DAY)] = None,
    of_app: Annotated[str | None, typer.Option("--app", help="Of this app only.", show_default=False)] = None,
    recipe: Annotated[
        str | None,
        typer.Option("--recipe", help="Recipe's name or hash; the config's first by default.", show_default=False),
    ] = None,
    output_format: Annotated[
        str, typer.Option("--format", help="jsonl, csv, label-studio or html.", show_default=True)
    ] = "jsonl",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file instead.")] = None,
    labelling_config: Annotated[
        Path | None,
        typer.Option("--labelling-config", help="Write Label Studio's labelling config here.", show_default=False),
    ] = None,
    seed: Annotated[str, typer.Option("--seed", help="Another word gives another draw.")] = "0",
    show_judge: Annotated[
        bool, typer.Option("--show-judge", help="Tell what the judge says, which may sway people.")
    ] = False,
    config: Config = CONFIG,
) -> None:
    """Give out claims for people to label, with all that they need for it."""
    from flows import review_export as verb  # noqa: PLC0415
    from tasks.review.export import Wanted  # noqa: PLC0415

    wanted = Wanted(need, count, reviewers, reviewer and reviewer.strip(), seed, show_judge)
    verb.run(config, wanted, recipe, of_app, _some_days(day, start, end), output_format, output, labelling_config)


@review.command("agreement")
def review_agreement(
    day: Annotated[datetime | None, typer.Option("--date", help="One day; all days by default.", **DAY)] = None,
    start: Annotated[datetime | None, typer.Option("--from", help="First day.", **DAY)] = None,
    end: Annotated[datetime | None, typer.Option("--to", help="Last day.", **DAY)] = None,
    of_app: Annotated[str | None, typer.Option("--app", help="Of this app only.", show_default=False)] = None,
    recipe: Annotated[
        str | None,
        typer.Option("--recipe", help="Recipe's name or hash; every one of the config by default.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per recipe.")] = False,
    config: Config = CONFIG,
) -> None:
    """Tell how much people have labelled, how far they agree, and what is in dispute."""
    from flows import review_agreement as verb  # noqa: PLC0415

    verb.run(config, recipe, of_app, _some_days(day, start, end), as_json=as_json)


@app.command()
def sql(
    statement: Annotated[str | None, typer.Argument(help="A SELECT over the tables of docs/tables.md.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the statement from a file.")] = None,
    output_format: Annotated[
        str, typer.Option("--format", help="table, csv, json or parquet.", show_default=True)
    ] = "table",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file instead.")] = None,
    config: Config = CONFIG,
) -> None:
    """Query the published warehouse, at any hour; a running nightly is not disturbed."""
    from flows import sql as verb  # noqa: PLC0415

    verb.run(config, statement, file, output_format, output)


@app.command()
def compare(
    a: Annotated[
        str,
        typer.Argument(
            help="judge:NAME, recipe:NAME, generator:NAME, prompt:VERSION or dates:DAY..DAY; versions of judges and"
            " recipes by the first letters of their hash; a word without its kind is looked up.",
        ),
    ],
    b: Annotated[str, typer.Argument(help="What to compare it with, of the same kind.")],
    recipe: Annotated[
        str | None, typer.Option("--recipe", help="Under this recipe: its name, or its hash.", show_default=False)
    ] = None,
    of_app: Annotated[str | None, typer.Option("--app", help="Of this app only.", show_default=False)] = None,
    start: Annotated[datetime | None, typer.Option("--from", help="First day; all days by default.", **DAY)] = None,
    end: Annotated[datetime | None, typer.Option("--to", help="Last day.", **DAY)] = None,
    number: Annotated[
        str | None,
        typer.Option("--number", help="The number to look at closely; groundedness by default.", show_default=False),
    ] = None,
    flips: Annotated[int, typer.Option("--flips", min=0, help="Claims that flipped to show, with their texts.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page as well.", show_default=False)] = None,
    config: Config = CONFIG,
) -> None:
    """Compare two judges, recipes, generators, prompt versions or ranges of days."""
    from flows.analysis import compare as verb  # noqa: PLC0415
    from tasks.run.selectors import Filters  # noqa: PLC0415

    filters = Filters(recipe, of_app, *_some_days(None, start, end))
    verb.run(config, (a, b), filters, number, flips, html, as_json=as_json)


@app.command()
def agreement(
    one: Annotated[
        str,
        typer.Argument(
            help="judge:NAME (labels), grader:NAME (grades), a name alone, people, or reviewer:NAME; versions by the"
            " first letters of their hash."
        ),
    ],
    other: Annotated[str, typer.Argument(help="Whom to hold it against: the truth, where there has to be one.")],
    recipe: Annotated[
        str | None, typer.Option("--recipe", help="Under this recipe: its name, or its hash.", show_default=False)
    ] = None,
    of_app: Annotated[str | None, typer.Option("--app", help="Of this app only.", show_default=False)] = None,
    day: Annotated[
        datetime | None, typer.Option("--date", help="Of this day only; all days by default.", **DAY)
    ] = None,
    start: Annotated[datetime | None, typer.Option("--from", help="First day; all days by default.", **DAY)] = None,
    end: Annotated[datetime | None, typer.Option("--to", help="Last day.", **DAY)] = None,
    suite: Annotated[
        str | None,
        typer.Option("--suite", help="On the cases of this suite that metaeval ran both over.", show_default=False),
    ] = None,
    worst: Annotated[int, typer.Option("--worst", min=0, help="Worst disagreements to list, by their ids.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page as well.", show_default=False)] = None,
    config: Config = CONFIG,
) -> None:
    """How far do two judges, two graders, or one of them and people agree?"""
    from flows.analysis import agreement as verb  # noqa: PLC0415
    from tasks.run.selectors import Filters  # noqa: PLC0415

    filters = Filters(recipe, of_app, *_some_days(day, start, end))
    verb.run(config, (one, other), filters, suite, worst, html, as_json=as_json)


@app.command()
def distill(
    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            help="Who teaches: a judge's name, the beginning of its version, or its file.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.", show_default=False)],
    student: Annotated[
        Path | None,
        typer.Option("--student", help="File of who learns; by default the teacher's own.", show_default=False),
    ] = None,
    start: Annotated[datetime | None, typer.Option("--from", help="First day; all days by default.", **DAY)] = None,
    end: Annotated[datetime | None, typer.Option("--to", help="Last day.", **DAY)] = None,
    apps: Annotated[
        list[str] | None, typer.Option("--app", help="Only this application; repeat for more.", show_default=False)
    ] = None,
    min_confidence: Annotated[
        float, typer.Option("--min-confidence", min=0, max=1, help="Only verdicts of which it was as sure as this.")
    ] = 0.0,
    valid_share: Annotated[float, typer.Option("--valid-share", help="Share of the questions to hold out.")] = 0.1,
    balance: Annotated[
        float, typer.Option("--balance", help="Most of one answer for each of the rarest one; 0 leaves all.")
    ] = 2.0,
    most: Annotated[int | None, typer.Option("--max", help="Most examples in all.", show_default=False)] = None,
    config: Config = CONFIG,
) -> None:
    """Write what a strong judge has judged as training data for a smaller model."""
    from flows import distill as verb  # noqa: PLC0415
    from tasks.distill.examples import Wanted  # noqa: PLC0415
    from tasks.distill.export import Shares  # noqa: PLC0415
    from tasks.run.scope import DateRange  # noqa: PLC0415

    wanted = Wanted(DateRange(*_some_days(None, start, end)), tuple(sorted(set(apps or ()))), min_confidence)
    verb.run(config, judge, student, output, wanted, Shares(valid_share, balance or None, most))


DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be removed; change nothing.")]


@app.command()
def retention(config: Config = CONFIG, dry_run: DryRun = False) -> None:
    """Remove texts and explanations that are older than the config allows, and complete a killed `forget`."""
    _quiet_prefect()
    with nullcontext() if dry_run else temporary_server():
        from flows import retention as verb  # noqa: PLC0415

    if dry_run:
        verb.show_preview(verb.preview(config))
    else:
        verb.show(verb.retention(str(config)))


@app.command()
def forget(
    trace_ids: Annotated[list[str], typer.Argument(help="Ids of the traces.", metavar="TRACE_ID")],
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why; kept in `redactions`.", show_default=False)
    ] = None,
    config: Config = CONFIG,
    dry_run: DryRun = False,
) -> None:
    """Remove the texts of these traces, and of no others, everywhere and for good."""
    from flows import retention as verb  # noqa: PLC0415

    if dry_run:
        verb.show_preview(verb.preview(config, trace_ids), trace_ids)
    else:
        verb.show(verb.run(config, trace_ids, reason))


@app.command()
def rebuild(config: Config = CONFIG) -> None:
    """Make the warehouse again from the lake alone."""
    from flows import rebuild as verb  # noqa: PLC0415

    verb.run(config)


@app.command()
def articles(
    paths: Annotated[list[Path], typer.Argument(help="Folders and files: Markdown, HTML, DOCX, PDF.", metavar="PATH")],
    base: Annotated[
        Path | None,
        typer.Option(
            "--base", help="Ids are made of paths below it; by default the folder common to all.", show_default=False
        ),
    ] = None,
    depth: Annotated[int, typer.Option("--depth", min=1, max=6, help="Deepest headings that begin an article.")] = 2,
    min_words: Annotated[int, typer.Option("--min-words", min=0, help="Fewer are too short.")] = 30,
    max_words: Annotated[int, typer.Option("--max-words", min=1, help="More are too long.")] = 800,
    output_format: Annotated[str, typer.Option("--format", help="jsonl or parquet.", show_default=True)] = "jsonl",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; `articles.jsonl` by default.", show_default=False),
    ] = None,
) -> None:
    """Split a knowledge base into articles that stand alone, and list those that don't."""
    from flows import articles as verb  # noqa: PLC0415

    verb.run(paths, base, depth, min_words, max_words, output_format, output)


judges_app = typer.Typer(
    help="The judges: which there are, what tells them apart, which of them count.", no_args_is_help=True
)
app.add_typer(judges_app, name="judges")
Judge = Annotated[str, typer.Argument(help="A judge's or grader's name, the beginning of its version, or its file.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept with the decision.", show_default=False)]


@judges_app.command("list")
def judges_list(config: Config = CONFIG) -> None:
    """Every judge that has judged, how much, and what it counts for."""
    from flows import judges as verb  # noqa: PLC0415

    verb.show_all(config)


@judges_app.command("show")
def judges_show(judge: Judge, config: Config = CONFIG) -> None:
    """Everything that a version stands for, as JSON."""
    from flows import judges as verb  # noqa: PLC0415

    verb.show_one(config, judge)


@judges_app.command("diff")
def judges_diff(one: Judge, other: Judge, config: Config = CONFIG) -> None:
    """The fields in which two judges differ."""
    from flows import judges as verb  # noqa: PLC0415

    verb.show_diff(config, one, other)


@judges_app.command("promote")
def judges_promote(
    judge: Annotated[Path, typer.Argument(help="The judge's file.", metavar="FILE")],
    reason: Reason,
    recipe: Annotated[
        str | None,
        typer.Option("--recipe", help="Recipe of the config that it counts for; its only one.", show_default=False),
    ] = None,
    apps: Annotated[
        list[str] | None, typer.Option("--app", help="Only for this application; repeat for more.", show_default=False)
    ] = None,
    since: Annotated[
        datetime | None, typer.Option("--since", help="First night that it counts for; today.", **DAY)
    ] = None,
    config: Config = CONFIG,
) -> None:
    """Let a judge count from a night on, in the place of the one before."""
    from flows import judges as verb  # noqa: PLC0415

    verb.promote(config, judge, recipe, apps or (), since and since.date(), reason)


@judges_app.command("retire")
def judges_retire(judge: Judge, reason: Reason, config: Config = CONFIG) -> None:
    """Let a judge not be used any more; what it judged stays."""
    from flows import judges as verb  # noqa: PLC0415

    verb.retire(config, judge, reason)


@judges_app.command("history")
def judges_history(
    config: Config = CONFIG,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per decision.")] = False,
) -> None:
    """Every promotion and retirement, the latest first, with its reason."""
    from flows import judges as verb  # noqa: PLC0415

    verb.show_history(config, as_lines=as_json)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; a user's mistake ends in one message, never in a traceback.

    Args:
        arguments: Those of the process by default.
    """
    try:
        app(arguments)
    except LeadlineError as error:
        sys.stderr.write(f"leadline: {error}\n")
        sys.exit(error.exit_code)


def _range(day: datetime | None, start: datetime | None, end: datetime | None) -> tuple[date, date]:
    if day and (start or end):
        raise UsageError("--date and --from/--to exclude each other. Give one of them.")
    if bool(start) != bool(end):
        raise UsageError("--from and --to go together. Give both, or --date.")
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    first = start or day
    last = end or day
    return (first.date() if first else yesterday, last.date() if last else yesterday)


def _some_days(day: datetime | None, start: datetime | None, end: datetime | None) -> tuple[date | None, date | None]:
    """First and last day asked for; None for no limit."""
    if day and (start or end):
        raise UsageError("--date and --from/--to exclude each other. Give one of them.")
    first, last = (d.date() if d else None for d in (start or day, end or day))
    if first and last and first > last:
        raise UsageError(f"--from {first} is after --to {last}. Swap them.")
    return first, last


def _quiet_prefect() -> None:
    """Prefect's own settings for a run from a terminal; what the user has set stays."""
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "300")  # 20 are few on a busy machine


if __name__ == "__main__":
    from flows.command import attended

    sys.exit(attended(main))
