"""The waterfall on pages: at which stages the traces of a night stop, and the stages of a single trace.

Method: docs/methods.md#the-waterfall-what-is-safe-to-send.

The stage at which a trace stops comes from the tables; no threshold is applied here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tasks.core.config.recipe import Waterfall
from tasks.core.schemas import WATERFALL
from tasks.publish.report import charts
from tasks.publish.report.reader import by_generator
from tasks.publish.report.views import Row

Outcome = Literal["passed", "stopped", "missing", "not reached"]
SIGNALS = {  # by stage: what its number measures, and the column of `trace_scores`
    "retrieval": ("best chunk", "context_relevance"),
    "answerability": ("", "answerability"),
    "faithfulness": ("weakest claim", "weakest_support"),
    "answer_relevance": ("", "answer_relevance"),
}

DEFAULTS = Waterfall().model_dump(include=set(SIGNALS))


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one stage for one trace.

    Attributes:
        of: What the number measures, if the stage's name does not say it.
        value: The trace's signal; None if it is missing.
        threshold: Smallest value that passes the stage; None if the recipe's definition has none.
        outcome: Result of the stage. `missing` also stops the trace.
        digits: Decimals to show for value and threshold.
    """

    stage: str
    of: str
    value: float | None
    threshold: float | None
    outcome: Outcome
    digits: int


def calibrated(known: Mapping[str, float]) -> bool:
    """Whether any threshold of a recipe differs from the defaults, which are not based on measurements.

    Args:
        known: See `night.thresholds`.
    """
    return any(known.get(stage, default) != default for stage, default in DEFAULTS.items())


def digits(threshold: float | None) -> int:
    """Decimals of a threshold, from two to four. Calibrated thresholds have four."""
    return 2 if threshold is None else max(2, len(f"{threshold:.4f}".rstrip("0").partition(".")[2]))


def night(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Stages by app and generator, with a bar chart, and people's labels of the answers that stop at each stage.

    Args:
        rows: Rows of `nightly_waterfall`.
    """
    groups = by_generator(rows, "stage")
    for group in groups:
        by = group["by"]
        stopped = [by[stage] for stage in WATERFALL if stage != "sent"]
        parts = {stage: by[stage]["n_stopped"] for stage in WATERFALL}
        subject = f"Where the answers of {group['app']}, {group['generator']}, stop"
        group["chart"] = charts.stacked("Waterfall", parts, subject, "no answers")
        group["stopped_reviewed"] = sum(r["n_reviewed"] for r in stopped)
        group["stopped_wrong"] = sum(r["n_wrong"] for r in stopped)
    return groups


def steps(row: Row, known: Mapping[str, float]) -> tuple[Step, ...]:
    """Return the stages of one trace; empty if its scores predate the waterfall.

    Args:
        row: The trace's row of `traces/scores.sql`.
        known: See `night.thresholds`.
    """
    if row["waterfall"] is None:
        return ()
    at = WATERFALL.index(row["waterfall"])
    found = []
    for n, (stage, (of, column)) in enumerate(SIGNALS.items()):
        outcome: Outcome = "passed" if n < at else "not reached"
        if n == at:
            outcome = "missing" if row["waterfall_uncertain"] else "stopped"
        threshold = known.get(stage)
        found.append(Step(stage, of, row[column], threshold, outcome, digits(threshold)))
    return tuple(found)
