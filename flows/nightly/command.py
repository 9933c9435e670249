"""The options of `leadline nightly`. Libraries load while Prefect's temporary server starts."""

import sys
from typing import TYPE_CHECKING

from flows.options import (
    Config,
    DryRun,
    Form,
    From,
    Night,
    NoPrefect,
    Output,
    RetryFailures,
    To,
    days_or_yesterday,
    uses_prefect,
)
from flows.runtime.temporary_server import flows_with
from tasks.core.paths import CONFIG

if TYPE_CHECKING:
    from tasks.run.context import Context


def command(
    on: Night = None,
    start: From = None,
    end: To = None,
    dry_run: DryRun = False,
    retry_failures: RetryFailures = False,
    no_prefect: NoPrefect = False,
    form: Form = "table",
    output: Output = None,
    config: Config = CONFIG,
) -> None:
    """Complete a day or a range: ingest, claims, verdicts, scores, tables, report.

    Example: leadline nightly --from 2026-11-01 --to 2026-11-03
    """
    first, last = days_or_yesterday(on, start, end)
    sys.stderr.write(f"nightly {first}..{last}\n")
    sys.stderr.flush()
    if dry_run:
        from flows.nightly import dry_run as dry

        dry.show(dry.measure(config, first, last), form, output)
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

    summary.show(outcome, form, output)
