"""The options of `leadline nightly`. Libraries are imported while Prefect's temporary server starts."""

import sys
from collections.abc import Collection
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

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
    optional,
    uses_prefect,
)
from flows.runtime.temporary_server import flows_with
from tasks.core.errors import FoundError, UsageError
from tasks.core.paths import CONFIG

if TYPE_CHECKING:
    from flows.nightly.run import Outcome
    from tasks.run.context import Context

FAIL_ON = "End a completed run with exit code 5 if an alert fired on its days, or if it refused rows; repeat for both."


class Finding(StrEnum):
    """Findings on which a completed run can fail."""

    ALERT = "alert"
    REFUSED = "refused"


def command(
    on: Night = None,
    start: From = None,
    end: To = None,
    dry_run: DryRun = False,
    retry_failures: RetryFailures = False,
    no_prefect: NoPrefect = False,
    fail_on: Annotated[list[Finding] | None, optional(FAIL_ON, "--fail-on")] = None,
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
        if fail_on:
            raise UsageError("--fail-on needs a run, and --dry-run does not run. Leave one of them out.")
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
    check(outcome, fail_on or ())


def check(outcome: "Outcome", fail_on: Collection[Finding]) -> None:
    """Raise an error if a completed run has one of the given findings.

    Raises:
        FoundError: An alert fired on the run's days, or rows were refused.
    """
    from flows.console import counted

    ctx = outcome.recipes[0][0]
    fired = sum(ctx.first <= row["date"] <= ctx.last and row["status"] == "fired" for _, row in outcome.alerts)
    days = f"{ctx.first}" if ctx.first == ctx.last else f"{ctx.first} to {ctx.last}"
    kinds = {
        Finding.ALERT: (fired, f"{counted(fired, 'alert')} fired on {days}"),
        Finding.REFUSED: (outcome.refused.n, f"{counted(outcome.refused.n, 'row')} refused"),
    }
    if found := [text for kind, (n, text) in kinds.items() if n and kind in fail_on]:
        raise FoundError(f"--fail-on: {' and '.join(found)}, see above. The run is complete and published.")
