"""Backfill: processes past days with one recipe, newest first, alongside the nightly and within a budget.

It runs a night's stages on traces that are in the lake, and skips what exists. Each day is finished before the next one
begins, so that finished days have their numbers when the budget runs out. Left out: publishing, which needs the
nightly's lock (`flows/judges/backfill.py`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date

from tasks.core.progress import Progress
from tasks.core.schemas import TRACES
from tasks.judging.pairs import pair_parts
from tasks.judging.verdicts import SINGLE
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.scoring.nightly import complete
from tasks.store.lake import Part


@dataclass(frozen=True, slots=True)
class Day:
    """A day of the range.

    Attributes:
        ctx: The context, limited to the day.
        pairs: Number of single pairs of its claims.
    """

    ctx: Context
    pairs: int

    @property
    def date(self) -> date:
        """The day."""
        return self.ctx.first

    @property
    def done(self) -> bool:
        """Whether the day's traces are scored under the recipe and its nightly tables are written."""
        return complete(self.ctx, self.date)


def days(ctx: Context) -> list[Day]:
    """The days of the range with traces, newest first. Their single pairs must be planned."""
    dates = sorted({p.date for p in ctx.lake.parts(TRACES) if ctx.first <= p.date <= ctx.last}, reverse=True)
    contexts = (replace(on(ctx, d), progress=Overall(ctx.progress)) for d in dates)
    return [Day(c, sum(pairs[0].rows() for pairs in _planned(c))) for c in contexts]


def on(ctx: Context, day: date) -> Context:
    """The context, limited to one day."""
    limits = ctx.config.limits.model_copy(update={"catch_up_days": 0})
    return replace(ctx, first=day, last=day, config=ctx.config.model_copy(update={"limits": limits}))


def _planned(ctx: Context) -> Iterator[list[Part]]:
    for part in trace_parts(ctx):
        if pairs := pair_parts(ctx, part, ctx.judges[0]):
            yield pairs


class Overall:
    """A day's share of one progress bar for the single pairs of all days.

    A stage that runs again, after it paused or met an outage, counts from its beginning. The bar moves on once the
    count exceeds what it has shown.
    """

    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self._counts = False
        self._done = self._shown_steps = 0

    def start(self, stage: str, total: int | None) -> None:  # noqa: ARG002 - the range has its own
        """Count only single pairs of the first judge."""
        self._counts, self._done = stage == SINGLE, 0

    def advance(self, steps: int = 1) -> None:
        """Move the bar."""
        self._done += steps
        if self._counts and self._done > self._shown_steps:
            self._shown.advance(self._done - self._shown_steps)
            self._shown_steps = self._done

    def finish(self) -> None:
        """Stop counting; the bar continues with the next day."""
        self._counts = False
