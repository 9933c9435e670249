"""The record of a run in `runs`: written when it starts, again when it ends, and corrected after a kill."""

import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import polars as pl

from tasks.core.errors import LeadlineError, interruption
from tasks.core.schemas import QUARANTINE, RUNS
from tasks.run.context import Context
from tasks.run.result import StageResult, token_counts
from tasks.store.lake import Part, from_rows
from tasks.store.storage import Stamp

BACKFILL = "backfill"  # this flow has its own lock
ASK = "ask"  # flow and stage; its replies are not verdicts
FIRST = 10  # refused rows to show
PLACE = ("source", "line", "reason", "detail")


@dataclass(frozen=True, slots=True)
class Refused:
    """Rows that were refused.

    Attributes:
        n: Number of rows.
        nights: First and last night of the rows; None if no row has a night, as with people's labels.
        rows: The first `FIRST` rows: source, line, reason and detail, never the text.
    """

    n: int
    nights: tuple[date, date] | None
    rows: tuple[dict[str, Any], ...]


@dataclass
class Record:
    """The row of a run in progress."""

    flow: str
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    stages: list[StageResult] = field(default_factory=list)
    recipes: Sequence[str] = ()
    _refused_before: frozenset[tuple[str, Stamp]] = frozenset()

    def __post_init__(self) -> None:
        self.run_id = f"{self.started:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"

    def start(self, ctx: Context) -> None:
        """Record the start. Runs under the same lock that are still `running` were killed: mark them `interrupted`."""
        for part in ctx.lake.parts(RUNS):
            row = part.read().to_pylist()[0]
            if row["status"] == "running" and (row["flow"] == BACKFILL) == (self.flow == BACKFILL):
                ctx.lake.write(RUNS, part.name, from_rows([{**row, "status": "interrupted"}], RUNS))
        self._refused_before = frozenset(_refused(ctx))
        self._write(ctx, "running", None)

    def add(self, ctx: Context, result: StageResult) -> None:
        """Record a completed stage."""
        self.stages.append(result)
        self._write(ctx, "running", None)

    def end(self, ctx: Context, status: str, error: str | None = None) -> None:
        """Record how the run ended."""
        self._write(ctx, status, error)

    def refused(self, ctx: Context) -> Refused:
        """The rows that this run refused."""
        return refused(part for key, part in _refused(ctx).items() if key not in self._refused_before)

    def fail(self, ctx: Context, error: BaseException) -> None:
        """Record the error or signal that ended the run early."""
        if interruption(error):
            self.end(ctx, "interrupted")
        else:
            self.end(ctx, "failed", str(error) if isinstance(error, LeadlineError) else type(error).__name__)

    def _write(self, ctx: Context, status: str, error: str | None) -> None:
        row = {
            "run_id": self.run_id,
            "flow": self.flow,
            "started_at": self.started,
            "ended_at": None if status == "running" else datetime.now(UTC),
            "status": status,
            "error": error,
            "from_date": ctx.first,
            "to_date": ctx.last,
            "recipe": ctx.recipe,
            "recipes": list(self.recipes) or [ctx.recipe],
            "judge_version": ctx.judge_version,
            "stages": [{**asdict(s), "judge_version": s.judge} for s in self.stages],
            "traces_ingested": sum(s.computed for s in self.stages if s.stage == "ingest"),
            "rows_quarantined": self.refused(ctx).n,
            "verdicts_computed": sum(s.computed for s in self.stages if s.judge and s.stage != ASK),
            **token_counts(self.stages),
            "gpu_seconds": sum(s.seconds * s.gpus for s in self.stages),
            "notes": list(dict.fromkeys(note for s in self.stages for note in s.notes)),
        }
        ctx.lake.write(RUNS, self.run_id, from_rows([row], RUNS))


@dataclass(frozen=True, slots=True)
class Rates:
    """Speed and cost of one judge in a run, over all of its stages.

    Attributes:
        verdicts: Number of verdicts.
        seconds: Seconds spent on them.
        tokens: Tokens read and written for them.
        gpus: Number of GPUs used.
    """

    verdicts: int
    seconds: float
    tokens: int
    gpus: int


def measured_rates(ctx: Context, judge_version: str) -> Rates | None:
    """Rates of the latest run in which this judge gave verdicts, under any recipe."""
    for part in reversed(ctx.lake.parts(RUNS)):
        stages = [s for s in part.read().to_pylist()[0]["stages"] if s.get("judge_version") == judge_version]
        rates = Rates(
            verdicts=sum(s["computed"] for s in stages),
            seconds=sum(s["seconds"] for s in stages),
            tokens=sum(s["tokens_in"] + s["tokens_out"] for s in stages),
            gpus=max((s["gpus"] for s in stages), default=0),
        )
        if rates.verdicts and rates.seconds:
            return rates
    return None


def _refused(ctx: Context) -> dict[tuple[str, Stamp], Part]:
    """Parts of `quarantine` by name and version: a run may refuse the same rows again and rewrite a part."""
    found: dict[tuple[str, Stamp], Part] = {}
    for part in ctx.lake.parts(QUARANTINE):
        with suppress(FileNotFoundError):  # a concurrent backfill has accepted these rows
            found[part.name, part.stamp()] = part
    return found


def refused(parts: Iterable[Part]) -> Refused:
    """The refused rows in parts of `quarantine`."""
    columns = ["date", *PLACE]
    found = [pl.DataFrame(from_rows([], QUARANTINE)).select(columns)]
    for part in parts:
        with suppress(FileNotFoundError):  # accepted meanwhile, as above
            found.append(pl.DataFrame(part.read(columns)))
    rows = pl.concat(found).sort("source", "line", maintain_order=True)
    nights = rows["date"].drop_nulls().sort().to_list()
    first = tuple(rows.head(FIRST).select(PLACE).iter_rows(named=True))
    return Refused(rows.height, (nights[0], nights[-1]) if nights else None, first)
