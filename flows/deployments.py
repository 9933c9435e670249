"""Flows that `prefect.yaml` deploys. Commands that use Prefect also run them."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.runtime import flow_run

from flows.judges import backfill as backfill_verb
from flows.lake import privacy
from flows.nightly import run as nightly_verb
from flows.runtime.prefect import Prefect, patiently
from tasks.core.budget import Budget
from tasks.core.paths import CONFIG
from tasks.run.build import build_contexts
from tasks.run.context import Context
from tasks.run.record import BACKFILL

# Set by a command that runs the flow in this process. Not passed as parameters, because Prefect would store those.
CONTEXTS: ContextVar[tuple[Context, ...]] = ContextVar("contexts", default=())


def yesterday() -> date:
    """The day (UTC) before the run was scheduled, so that a run that starts late still completes the intended day."""
    due: datetime = flow_run.scheduled_start_time
    return due.astimezone(UTC).date() - timedelta(days=1)


def _name() -> str:
    """Name of a nightly run in Prefect."""
    given: Mapping[str, Any] = flow_run.parameters
    first, last = given.get("first"), given.get("last")
    return f"nightly {first or last or yesterday()}..{last or first or yesterday()}"


@flow(name="nightly", flow_run_name=_name, persist_result=False)
def nightly(
    config: str = str(CONFIG),
    first: date | None = None,
    last: date | None = None,
    retry_failures: bool = False,
) -> nightly_verb.Outcome:
    """Complete the days `first` to `last` (yesterday by default)."""
    days = first or last or yesterday(), last or first or yesterday()

    def work() -> nightly_verb.Outcome:
        contexts = CONTEXTS.get() or build_contexts(Path(config), *days)
        return nightly_verb.run(contexts, Prefect(), retry_failures=retry_failures)

    return patiently(work)


@flow(name=BACKFILL, flow_run_name="backfill {first}..{last}", persist_result=False)
def backfill(
    first: date,
    last: date,
    config: str = str(CONFIG),
    judge: str | None = None,
    recipe: str | None = None,
    app: Sequence[str] = (),
    sample: float = 1.0,
    max_tokens: int | None = None,
    max_minutes: float | None = None,
    retry_failures: bool = False,
) -> backfill_verb.Outcome:
    """Complete past days under another judge or recipe; see `leadline backfill --help`."""
    ctx = next(iter(CONTEXTS.get()), None) or backfill_verb.load(
        Path(config), first, last, judge=Path(judge) if judge else None, recipe=recipe, apps=app, sample=sample
    )
    ctx = replace(ctx, budget=Budget(max_tokens, max_minutes))
    return patiently(lambda: backfill_verb.run(ctx, Prefect(), retry_failures=retry_failures))


@flow(name=privacy.RETENTION, persist_result=False)
def retention(config: str = str(CONFIG)) -> privacy.Outcome:
    """Remove texts and explanations that are older than the config allows, and complete interrupted removals."""
    return patiently(lambda: privacy.run(Path(config)))
