"""`leadline doctor`: one line per check, with a remedy for each problem."""

from dataclasses import replace
from datetime import UTC, datetime

import typer
from rich.console import Console
from rich.text import Text

from flows.console import emit
from flows.doctor.checks import Result
from flows.doctor.facts import examine, exit_code
from flows.options import Config, Form, Output
from flows.verbs import with_config
from tasks.core.paths import CONFIG

STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def command(form: Form = "table", output: Output = None, config: Config = CONFIG) -> None:
    """Check whether a night would run here tonight; exit code 0 if nothing stops it. Changes nothing.

    Example: leadline doctor --config configs/nightly.yaml
    """
    found = examine(config, datetime.now(UTC))
    results = [replace(result, remedy=with_config(result.remedy, config)) for result in found.results]

    def draw(out: Console) -> None:
        for result in results:
            out.print(_line(result), soft_wrap=True)

    emit(form, output, draw, results)
    if code := exit_code(found):
        raise typer.Exit(code)


def _line(of: Result) -> Text:
    line = Text.assemble((f"{of.status:<8}", STYLES[of.status]), f" {of.check:<10} ", of.text)
    return line.append(f"\n{'':20}→ {of.remedy}") if of.remedy else line
