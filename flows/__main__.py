"""The `leadline` command: one verb per flow, and the ways to look at what they made.

Exit codes: 0 done, 1 failure, 2 wrong usage or config, 3 data worse than the limits, 4 another run holds the lake.
"""

import os
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from tasks.core.errors import LeadlineError, UsageError

CONFIG = Path("configs/nightly.yaml")
app = typer.Typer(
    help="How well a RAG system's production answers are grounded, every night, offline.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Config = Annotated[Path, typer.Option("--config", "-c", help="The nightly config.", show_default=True)]
DAY: dict[str, Any] = {"formats": ["%Y-%m-%d"], "metavar": "YYYY-MM-DD", "show_default": False}


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

        dry.show(config, first, last)
        return
    from tasks.stages.context import load_all  # noqa: PLC0415

    for ctx in load_all(config, first, last):  # a mistake shows before Prefect starts
        ctx.close()
    _quiet_prefect()
    from flows import nightly as flow  # noqa: PLC0415
    from flows.summary import show  # noqa: PLC0415

    show(flow.nightly(str(config), first, last, retry_failures))


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
    from flows import noise as verb  # noqa: PLC0415

    first, last = _range(day, start, end)
    verb.run(config, first, last, sample, judge, as_json=as_json)


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


def main() -> None:
    """Run the command; a user's mistake ends in one message, never in a traceback."""
    try:
        app()
    except LeadlineError as error:
        sys.stderr.write(f"leadline: {error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("leadline: interrupted. Run the same command again; it goes on where it stopped.\n")
        sys.exit(130)


def _range(day: datetime | None, start: datetime | None, end: datetime | None) -> tuple[date, date]:
    if day and (start or end):
        raise UsageError("--date and --from/--to exclude each other. Give one of them.")
    if bool(start) != bool(end):
        raise UsageError("--from and --to go together. Give both, or --date.")
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    first = start or day
    last = end or day
    return (first.date() if first else yesterday, last.date() if last else yesterday)


def _quiet_prefect() -> None:
    """Prefect's own settings for a run from a terminal; what the user has set stays."""
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")


if __name__ == "__main__":
    main()
