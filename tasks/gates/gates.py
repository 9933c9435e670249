"""The gates: which new traces are refused, which nights are unusual, and whether results may be kept.

The rules stand in `gates_rules`, the tables they look at in `gates_frames`, Great Expectations in `gates_engine`.
Nothing is moved or dropped here: the stages do that with what these functions return. Duplicate traces are not a
matter of the gates; the ingest knows what was there before.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from tasks.core.config import Gates
from tasks.gates import frames
from tasks.gates.engine import Engine
from tasks.gates.frames import narrow_traces
from tasks.gates.rules import CLAIM_RULES, SCORE_RULES, VOLUME_RULES, Rule, trace_rules

__all__ = ["GateKeeper", "Refusal", "ResultRefusal", "narrow_traces"]

MIN_NIGHTS = 3  # fewer earlier nights say nothing about what is usual


@dataclass(frozen=True, slots=True)
class Refusal:
    """A trace that is refused: the first reason, and what was found. `row` is that of `narrow_traces`."""

    row: int
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class ResultRefusal:
    """A result that must not be kept, or one that is missing: the first reason, and what was found."""

    trace_id: str
    reason: str
    detail: str


class GateKeeper:
    """The gates of one lake.

    Args:
        gates: Limits.
        directory: Where validation results and Data Docs are kept.
    """

    def __init__(self, gates: Gates, directory: Path) -> None:
        self._gates = gates
        suites: dict[str, Sequence[Rule]] = {
            "traces": trace_rules(gates),
            "volume": VOLUME_RULES,
            "claim_results": CLAIM_RULES,
            "trace_scores": SCORE_RULES,
        }
        self._engine = Engine(directory, suites)

    def check_traces(self, narrow: pa.Table, last_day: date, today: date, run_name: str) -> list[Refusal]:
        """The traces that are refused.

        Args:
            narrow: What `narrow_traces` returns, or some of its rows.
            last_day: Last day that the run was asked for, UTC.
            today: The day on which the run happens, UTC.

        Returns:
            At most one refusal per row, in the order of rows. Cost is about 60 ms and a few microseconds a row, so
            tens of thousands of rows at a time are best.
        """
        found = self._broken("traces", frames.trace_frame(narrow, last_day, today), run_name)
        return [Refusal(row["row"], rule.reason, detail) for row, rule, detail in found]

    def check_volume(self, counts: Mapping[date, int], recent: Sequence[int], run_name: str) -> list[str]:
        """A warning per night whose number of traces is far from the usual; nothing is refused for it.

        Args:
            counts: Traces per new night.
            recent: Traces of earlier nights, oldest first; the last `volume_nights` of them count.
        """
        nights = recent[-self._gates.volume_nights :] if self._gates.volume_nights else []
        if len(nights) < MIN_NIGHTS:
            return []
        table = frames.volume_frame(counts, median(nights), self._gates.volume_ratio)
        return [
            f"{row['date']}: {row['traces']:.0f} traces, outside the usual {row['low']:.4g} to {row['high']:.4g} "
            f"(median of {len(nights)} nights: {row['median']:g}; {rule.reason})"
            for row, rule, _ in self._broken("volume", table, run_name)
        ]

    def check_results(
        self, claims: pa.Table, claim_results: pa.Table, trace_scores: pa.Table, traces: pa.Table, run_name: str
    ) -> list[ResultRefusal]:
        """What is wrong with the results of some traces: nothing, unless there is a bug.

        Args:
            claims: `claim_id` and `trace_id` of their claims.
            claim_results: Columns of `CLAIM_RESULTS`, one recipe.
            trace_scores: Columns of `TRACE_SCORES`, the same recipe.
            traces: `trace_id` of the traces that were to be scored.

        Returns:
            At most one refusal per claim and per trace. Cost is about 0.1 s and a few microseconds a row.
        """
        tables = {
            "claim_results": frames.claim_frame(claims, claim_results, traces),
            "trace_scores": frames.score_frame(claim_results, trace_scores, traces),
        }
        return [
            ResultRefusal(
                row["trace_id"], rule.reason, f"claim {row['claim_id']}: {detail}" if "claim_id" in row else detail
            )
            for suite, table in tables.items()
            for row, rule, detail in self._broken(suite, table, run_name)
        ]

    def write_docs(self) -> Path:
        """Bring Data Docs up to date with all checks since the last call; once at the end of a run.

        Returns:
            Their first page. It exists once a check has been made in this directory.
        """
        return self._engine.write_docs()

    def _broken(self, suite: str, table: pa.Table, run_name: str) -> Iterator[tuple[dict[str, Any], Rule, str]]:
        broken = self._engine.broken(suite, table, run_name)
        rows = table.take([b.row for b in broken]).to_pylist() if broken else []
        for row, found in zip(rows, broken, strict=True):
            values = ", ".join(f"{name} = {row[name]}" for name in found.rule.shows)
            yield row, found.rule, ": ".join(filter(None, (values, found.rule.limit)))
