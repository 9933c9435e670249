"""The gates: which new traces are refused, which nights are unusual, and whether results may be kept.

Rows are refused part by part. The checked frames are kept in memory, and Great Expectations validates them together.
The gates move and drop nothing: the stages act on the rows that these functions return. The ingest, not the gates,
handles duplicate traces.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
import pyarrow as pa

from tasks.core.config import Gates
from tasks.gates import frames
from tasks.gates.results import KEPT_RUNS
from tasks.gates.rules import CLAIM_RULES, SCORE_RULES, VOLUME_RULES, Rule, trace_rules

MIN_NIGHTS = 3  # fewer earlier nights give no usable median
HELD_BYTES = 128 << 20  # of the frames of a suite; more are validated before the run's end


class GateKeeper:
    """The gates of one run.

    Args:
        limits: See the config.
        directory: Where validation results are kept; None where none are.
        kept_runs: Results of each suite that stay.
    """

    def __init__(self, limits: Gates, directory: Path | None, kept_runs: int = KEPT_RUNS) -> None:
        self._limits = limits
        self._directory, self._kept_runs = directory, kept_runs
        self._suites: dict[str, Sequence[Rule]] = {
            "traces": trace_rules(limits),
            "volume": VOLUME_RULES,
            "claim_results": CLAIM_RULES,
            "trace_scores": SCORE_RULES,
        }
        self._parts = 0
        self._held: dict[str, list[pl.DataFrame]] = {}
        self._results: dict[str, Any] = {}
        self._validator: Any = None  # Validator

    def check_traces(self, traces: pa.Table, last_day: date, today: date) -> pl.DataFrame:
        """The traces that are refused, each with the first reason, and what was found.

        Args:
            traces: Columns of `TRACES.stored` (others are ignored).
            last_day: Last requested day of the run, UTC.
            today: The day on which the run happens, UTC.

        Returns:
            `row` (from 0, in order), `reason`, `detail`.
        """
        found = [
            (row["row"], rule.reason, detail)
            for row, rule, detail in self._refused("traces", frames.trace_frame(traces, last_day, today))
        ]
        return pl.DataFrame(found, {"row": pl.UInt32, "reason": pl.String, "detail": pl.String}, orient="row")

    def check_volume(self, counts: Mapping[date, int], recent: Sequence[int]) -> list[str]:
        """A warning per night whose number of traces is far from the usual; nothing is refused for it.

        Args:
            counts: Traces per new night.
            recent: Traces of earlier nights, oldest first; the last `volume_nights` of them count.
        """
        nights = recent[-self._limits.volume_nights :] if self._limits.volume_nights else []
        if len(nights) < MIN_NIGHTS:
            return []
        frame = frames.volume_frame(counts, median(nights), self._limits.volume_ratio)
        return [
            f"{row['date']}: {row['traces']:.0f} traces, outside the usual {row['low']:.4g} to {row['high']:.4g} "
            f"(median of {len(nights)} nights: {row['median']:g}; {rule.reason})"
            for row, rule, _ in self._refused("volume", frame)
        ]

    def check_results(
        self, claims: pa.Table, claim_results: pa.Table, trace_scores: pa.Table, traces: pa.Table
    ) -> pl.DataFrame:
        """Return the errors in the results of some traces. Any error is a bug in Leadline.

        Args:
            claims: `claim_id` and `trace_id` of their claims.
            claim_results: Columns of `CLAIM_RESULTS`, one recipe.
            trace_scores: Columns of `TRACE_SCORES`, the same recipe.
            traces: `trace_id` of the traces that were to be scored.

        Returns:
            `trace_id`, `reason`, `detail`: at most one row per claim and per trace, claims first.
        """
        suites = {
            "claim_results": frames.claim_frame(claims, claim_results, traces),
            "trace_scores": frames.score_frame(claim_results, trace_scores, traces),
        }
        found = [
            (row["trace_id"], rule.reason, f"claim {row['claim_id']}: {detail}" if "claim_id" in row else detail)
            for suite, frame in suites.items()
            for row, rule, detail in self._refused(suite, frame)
        ]
        return pl.DataFrame(found, dict.fromkeys(("trace_id", "reason", "detail"), pl.String), orient="row")

    def write_results(self, run_name: str) -> None:
        """Have Great Expectations validate all that was checked since the last call, a result per suite."""
        for suite in list(self._held):
            self._validate(suite)
        if self._results:
            self._validator.store(self._results, run_name)
            self._results.clear()

    def _refused(self, suite: str, frame: pl.DataFrame) -> Iterator[tuple[dict[str, Any], Rule, str]]:
        """The rows that break a rule, each with the first rule that it breaks and what was found."""
        rules = self._suites[suite]
        self._parts += 1
        frame = frame.with_columns(part=pl.lit(self._parts))
        self._hold(suite, frame)
        broken = frame.with_row_index("row").with_columns(rule=first_broken(rules)).drop_nulls("rule")
        for row in broken.iter_rows(named=True):
            rule = rules[row["rule"]]
            values = ", ".join(f"{name} = {row[name]}" for name in rule.shows)
            yield row, rule, ": ".join(filter(None, (values, rule.limit)))

    def _hold(self, suite: str, frame: pl.DataFrame) -> None:
        if self._directory is None or frame.is_empty():
            return
        used = {name for rule in self._suites[suite] for name in rule.broken.meta.root_names()}
        held = self._held.setdefault(suite, [])
        held.append(frame.select(sorted(used)))
        if sum(f.estimated_size() for f in held) > HELD_BYTES:
            self._validate(suite)

    def _validate(self, suite: str) -> None:
        from tasks.gates import validator  # noqa: PLC0415 - it takes seconds

        assert self._directory  # noqa: S101 - nothing is held without one
        if self._validator is None:
            self._validator = validator.Validator(self._directory, self._suites, self._kept_runs)
            # It brings 200,000 objects that stay; the garbage collector need not look at them again and again.
            gc.freeze()
        frame = pl.concat(self._held.pop(suite), how="diagonal_relaxed")
        result = self._validator.validate(suite, frame)
        self._results[suite] = validator.merged(self._results[suite], result) if suite in self._results else result


def first_broken(rules: Sequence[Rule]) -> pl.Expr:
    """Per row, the position of the first rule that it breaks; null where it breaks none."""
    return pl.coalesce(pl.when(rule.broken).then(pl.lit(i)) for i, rule in enumerate(rules))
