"""The options of `leadline nightly`. Libraries load while Prefect's temporary server starts."""

import sys
from typing import Annotated

import typer

from flows.options import Config, From, Night, NoPrefect, RetryFailures, To, days_or_yesterday, uses_prefect
from flows.runtime.temporary_server import quiet, temporary_server
from tasks.core.paths import CONFIG


def command(
    on: Night = None,
    start: From = None,
    end: To = None,
    config: Config = CONFIG,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what is missing; change nothing.")] = False,
    retry_failures: RetryFailures = False,
    no_prefect: NoPrefect = False,
) -> None:
    """Complete a day or a range: ingest, claims, verdicts, scores, tables, report."""
    first, last = days_or_yesterday(on, start, end)
    if sys.stderr.isatty():
        sys.stderr.write(f"nightly {first}..{last}\n")
    if dry_run:
        from flows.nightly import dry_run as dry

        dry.show(dry.measure(config, first, last), first, last)
        return
    if not uses_prefect(no_prefect=no_prefect):
        from flows.nightly.run import run
        from flows.nightly.summary import show
        from flows.runtime.run import DELAYS_S, Local
        from tasks.run.build import build_contexts

        runner = Local(DELAYS_S, prefect_slots=False)
        show(run(build_contexts(config, first, last), runner, retry_failures=retry_failures))
        return
    quiet()
    with temporary_server():
        from tasks.run.build import build_contexts

        contexts = build_contexts(config, first, last)  # a mistake shows before Prefect is loaded
        from flows import deployments
        from flows.nightly.summary import show

    deployments.CONTEXTS.set(contexts)
    show(deployments.nightly(str(config), first, last, retry_failures))
