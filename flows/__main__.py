"""The `leadline` command and its verbs. Each verb declares its options in its own module.

Exit codes: 0 success, 1 failure, 2 wrong usage or config, 3 data worse than the limits, 4 another run holds the lake's
lock, 5 the run completed and found what `--fail-on` names. Signals are handled in `flows/command.py`.
"""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from flows.verbs import Verbs
from tasks.core.errors import LeadlineError


def _options() -> list[Any]:
    """Options of the command itself: the version, and shell completion."""
    app, text = typer.Typer(), "Print the version."

    def show(given: bool) -> None:
        if given:
            from importlib.metadata import version  # noqa: PLC0415 - seldom needed

            typer.echo(version("leadline"))
            raise typer.Exit

    @app.callback()
    def root(
        version: Annotated[bool, typer.Option("--version", callback=show, is_eager=True, help=text)] = False,
    ) -> None:
        """Placeholder: only its options are used."""

    found: list[Any] = typer.main.get_command(app).params
    return found


# Verbs by subject, in the order of the help page.
PANELS: dict[str, dict[str, str | Verbs]] = {
    "Every night": {
        "init": "flows.sources.init:command",
        "sources": Verbs(
            "sources",
            "Check what a source provides before a night depends on it.",
            {"check": "flows.sources.check:check", "show": "flows.sources.check:show"},
        ),
        "doctor": "flows.doctor.command:command",
        "nightly": "flows.nightly.command:command",
        "write-back": "flows.sources.write_back:command",
    },
    "Questions": {
        "sql": "flows.lake.warehouse:sql",
        "compare": "flows.analysis.compare:command",
        "agreement": "flows.analysis.agreement:command",
        "ask": "flows.analysis.ask:command",
    },
    "Judges and people's labels": {
        "judges": Verbs(
            "judges",
            "List and compare judges, check one, and choose which count.",
            {
                name: f"flows.judges.versions:{name}_"
                for name in ("list", "show", "diff", "promote", "retire", "history")
            }
            | {"check": "flows.judges.check:check"},
        ),
        "backfill": "flows.judges.backfill:command",
        "metaeval": "flows.analysis.metaeval:command",
        "noise": "flows.analysis.noise:command",
        "review": Verbs(
            "review",
            "Export claims for people to label, import labels, measure agreement.",
            {
                "import": "flows.review.load:command",
                "export": "flows.review.export:command",
                "agreement": "flows.review.agreement:command",
            },
        ),
        "calibrate": "flows.analysis.calibrate:command",
        "distill": "flows.judges.distill:command",
    },
    "Lake and texts": {
        "retention": "flows.lake.privacy:retention",
        "forget": "flows.lake.privacy:forget",
        "backup": "flows.lake.backup:backup",
        "restore": "flows.lake.backup:restore",
        "check": "flows.lake.warehouse:check",
        "rebuild": "flows.lake.warehouse:rebuild",
        "articles": "flows.sources.articles:command",
    },
}
EXAMPLES = """
Examples: `leadline nightly --date 2026-11-01`, `leadline sources check configs/sources/phoenix.yaml`,
`leadline sql "FROM current_groundedness"`, `leadline compare judge:similarity judge:nli`, `leadline forget TRACE_ID`
"""
LEADLINE = Verbs(
    "leadline",
    "How well a RAG system's production answers are grounded, every night, offline.",
    {verb: target for own in PANELS.values() for verb, target in own.items()},
    {verb: panel for panel, own in PANELS.items() for verb in own},
    params=_options(),
    epilog=EXAMPLES,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command. User errors are shown as one message without a traceback.

    Args:
        arguments: Command line arguments; by default, those of the process.
    """
    try:
        LEADLINE(arguments, prog_name="leadline")
    except LeadlineError as error:
        sys.stderr.write(f"leadline: {error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    from flows.command import attended

    sys.exit(attended(main))
