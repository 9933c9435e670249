"""What the pages show of the waterfall: where the traces of a night stop, and where one trace does.

Method: docs/methods.md#the-waterfall-what-is-safe-to-send.

Where a trace stops stands in the tables; nothing is compared with a threshold here.
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
SIGNALS = {  # by stage: what its number is of, and the column of `trace_scores` that holds it
    "retrieval": ("best chunk", "context_relevance"),
    "answerability": ("", "answerability"),
    "faithfulness": ("weakest claim", "weakest_support"),
    "answer_relevance": ("", "answer_relevance"),
}

DEFAULTS = Waterfall().model_dump(include=set(SIGNALS))


@dataclass(frozen=True, slots=True)
class Step:
    """One stage as one trace met it.

    Attributes:
        of: What the number is of, where the stage's name leaves it open.
        value: The trace's signal; None where it is missing.
        threshold: From where on the stage is passed; None where the recipe's definition has none.
        outcome: `missing` stops the trace too.
        digits: Decimals to show value and threshold with.
    """

    stage: str
    of: str
    value: float | None
    threshold: float | None
    outcome: Outcome
    digits: int


def calibrated(known: Mapping[str, float]) -> bool:
    """Whether any threshold of a recipe differs from the defaults, which nothing was measured for.

    Args:
        known: See `night.thresholds`.
    """
    return any(known.get(stage, default) != default for stage, default in DEFAULTS.items())


def digits(threshold: float | None) -> int:
    """Decimals of a threshold, two to four: calibrated ones have four, and values beside them are as near."""
    return 2 if threshold is None else max(2, len(f"{threshold:.4f}".rstrip("0").partition(".")[2]))


def night(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One entry per app and generator: its stages, a bar of them, and how people labeled the stopped answers.

    Args:
        rows: Of `nightly_waterfall`.
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
    """The stages as one trace met them; none where its scores are from before there was a waterfall.

    Args:
        row: Its row of `traces/scores.sql`.
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
