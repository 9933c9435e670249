"""The options of `leadline nightly`. Libraries load while Prefect's temporary server starts."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from flows.options import Config, From, Night, NoPrefect, RetryFailures, To, days_or_yesterday, one_of, uses_prefect
from flows.runtime.temporary_server import flows_with
from tasks.core.paths import CONFIG

if TYPE_CHECKING:
    from tasks.run.context import Context


def command(
    on: Night = None,
    start: From = None,
    end: To = None,
    config: Config = CONFIG,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what is missing; change nothing.")] = False,
    retry_failures: RetryFailures = False,
    no_prefect: NoPrefect = False,
    fmt: Annotated[str, one_of("table", "json")] = "table",
) -> None:
    """Complete a day or a range: ingest, claims, verdicts, scores, tables, report."""
    first, last = days_or_yesterday(on, start, end)
    if sys.stderr.isatty():
        sys.stderr.write(f"nightly {first}..{last}\n")
    if dry_run:
        from flows.nightly import dry_run as dry

        dry.show(dry.measure(config, first, last), first, last)
        return

    def build() -> "tuple[Context, ...]":
        from tasks.run.build import build_contexts

        return build_contexts(config, first, last)

    if uses_prefect(no_prefect=no_prefect):
        outcome = flows_with(build).nightly(str(config), first, last, retry_failures)
    else:
        from flows.nightly.run import run
        from flows.runtime.run import DELAYS_S, Local

        outcome = run(build(), Local(DELAYS_S, prefect_slots=False), retry_failures=retry_failures)
    from flows.nightly import summary

    (summary.show_json if fmt == "json" else summary.show)(outcome)
