"""Options shared by several verbs, and the days that they select. Importing this module loads no data library."""

import os
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from tasks.core.errors import UsageError

FIRST_YEAR, LAST_YEAR = 1970, 2999
_DAY: dict[str, Any] = {"formats": ["%Y-%m-%d"], "metavar": "YYYY-MM-DD", "show_default": False}


def day_option(name: str, text: str) -> Any:
    """An option that takes a day."""

    def check(given: datetime | None) -> datetime | None:
        if given and not FIRST_YEAR <= given.year <= LAST_YEAR:
            years = f"{FIRST_YEAR} to {LAST_YEAR}"
            raise UsageError(f"{name} {given.date()}: no traces are of that year. Give a day of {years}.")
        return given

    return typer.Option(name, help=text, callback=check, **_DAY)


def optional(text: str, *names: str, **settings: Any) -> Any:
    """An option whose default value is not shown."""
    return typer.Option(*names, help=text, show_default=False, **settings)


def one_of(*names: str, option: str = "--format", text: str = "Format of the result.") -> Any:
    """An option with a fixed set of values. The function's parameter for `--format` must be named `form`."""
    noun = option.strip("-")

    def check(given: str) -> str:
        from tasks.core.config import did_you_mean  # noqa: PLC0415 - only for errors

        if given not in names:
            raise UsageError(f"{option} {given}: no such {noun}. {did_you_mean(given, list(names), f'{noun}s')}")
        return given

    return typer.Option(option, help=text, metavar="|".join(names), callback=check)


def _place(ctx: typer.Context, given: Path | None) -> Path | None:
    """Refuse files that can't be written, and formats that are unreadable in a terminal, before the verb runs."""
    if given is None:
        form = ctx.params.get("form")  # only if given; the default is never one of these
        if form in FOR_FILES and sys.stdout.isatty():
            raise UsageError(f"--format {form} is for a file. Add --output FILE, or redirect the output.")
        return None
    if given.is_dir():
        raise UsageError(f"--output {given} is a folder. Give a file, such as {given / 'result'}.")
    if not given.parent.is_dir():
        raise UsageError(f"--output {given}: {given.parent} is not a folder. Create it, or choose another place.")
    if not os.access(given if given.exists() else given.parent, os.W_OK):
        raise UsageError(f"--output {given} can't be written: access is denied. Choose another place.")
    return given


FOR_FILES = ("html", "parquet", "xlsx")
Config = Annotated[Path, typer.Option("--config", "-c", help="The nightly config.", metavar="FILE", show_default=True)]
Night = Annotated[datetime | None, day_option("--date", "The day; yesterday (UTC) by default.")]
OneDay = Annotated[datetime | None, day_option("--date", "One day; all days by default.")]
From = Annotated[datetime | None, day_option("--from", "First day of a range.")]
FromAll = Annotated[datetime | None, day_option("--from", "First day; all days by default.")]
To = Annotated[datetime | None, day_option("--to", "Last day of a range.")]
App = Annotated[str | None, optional("Only this application.", "--app")]
Apps = Annotated[list[str] | None, optional("Only this application; repeat for more.", "--app")]
Recipe = Annotated[str | None, optional("Name of a recipe, or the beginning of its hash.", "--recipe")]
Form = Annotated[str, one_of("table", "json")]
PageForm = Annotated[str, one_of("table", "json", "html")]
Output = Annotated[Path | None, optional("Write the result to this file.", "--output", "-o", callback=_place)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]
RetryFailures = Annotated[bool, typer.Option("--retry-failures", help="Judge requests again that failed before.")]
NoPrefect = Annotated[bool, typer.Option("--no-prefect", help="Run without Prefect, as an empty PREFECT_API_URL does.")]


def days_or_yesterday(one: datetime | None, start: datetime | None, end: datetime | None) -> tuple[date, date]:
    """First and last day of a run; yesterday (UTC) by default.

    Raises:
        UsageError: The options contradict each other, or only one end of the range is given.
    """
    _one_or_range(one, start, end)
    if bool(start) != bool(end):
        raise UsageError("--from and --to go together. Give both, or --date.")
    first, last = start or one, end or one
    if first and last:
        return first.date(), last.date()
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    return yesterday, yesterday


def days_or_all(one: datetime | None, start: datetime | None, end: datetime | None) -> tuple[date | None, date | None]:
    """First and last day; None for no limit.

    Raises:
        UsageError: The options contradict each other, or the range is empty.
    """
    _one_or_range(one, start, end)
    first, last = (d.date() if d else None for d in (start or one, end or one))
    if first and last and first > last:
        raise UsageError(f"--from {first} is after --to {last}. Swap them.")
    return first, last


def _one_or_range(one: datetime | None, start: datetime | None, end: datetime | None) -> None:
    if one and (start or end):
        raise UsageError("--date and --from/--to exclude each other. Give one of them.")


def uses_prefect(*, no_prefect: bool = False) -> bool:
    """Whether a verb reports to Prefect. An empty `PREFECT_API_URL`, for example in a crontab, turns this off."""
    return not no_prefect and os.environ.get("PREFECT_API_URL") != ""
