"""`leadline doctor`: one line per check, and what to do about each problem."""

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from flows.console import print_json
from flows.doctor.checks import Result
from flows.doctor.facts import examine, exit_code
from flows.options import Config, one_of
from tasks.core.paths import CONFIG

STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def command(config: Config = CONFIG, fmt: Annotated[str, one_of("table", "json")] = "table") -> None:
    """Check whether a night would run here tonight; exit code 0 if nothing stops it. Changes nothing."""
    found = examine(config, datetime.now(UTC))
    if fmt == "json":
        print_json(*found.results)
    else:
        out = Console(soft_wrap=True)
        for result in found.results:
            out.print(_line(result))
    if code := exit_code(found):
        raise typer.Exit(code)


def _line(of: Result) -> Text:
    line = Text.assemble((f"{of.status:<8}", STYLES[of.status]), f" {of.check:<10} ", of.text)
    return line.append(f"\n{'':20}→ {of.remedy}") if of.remedy else line
