"""What the pages show of the waterfall: where the traces of a night stop, and where one trace does.

Method: docs/methods.md#the-waterfall-what-is-safe-to-send.

Where a trace stops stands in the tables; nothing is compared with a threshold here.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from tasks.core.schemas import WATERFALL
from tasks.publish.report import charts
from tasks.publish.report.pages import words
from tasks.publish.report.text import count, listed
from tasks.publish.report.views import Row

Outcome = Literal["passed", "stopped", "missing", "not reached"]
SIGNALS = {  # by stage: what its number is of, and the column of `trace_scores` that holds it
    "retrieval": ("best chunk", "context_relevance"),
    "answerability": ("", "answerability"),
    "faithfulness": ("weakest claim", "weakest_support"),
    "answer_relevance": ("", "answer_relevance"),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One stage as one trace met it.

    Attributes:
        of: What the number is of, where the stage does not say it.
        value: The trace's signal; None where it is missing.
        threshold: From where on the stage is passed; None where the recipe's definition does not tell.
        outcome: `missing` stops the trace too.
        digits: Decimals to show value and threshold with.
    """

    stage: str
    of: str
    value: float | None
    threshold: float | None
    outcome: Outcome
    digits: int


def thresholds(recipe: Row) -> Mapping[str, float]:
    """From where on each stage is passed; empty for a recipe from before there was a waterfall."""
    found = json.loads(recipe["definition"]).get("waterfall")
    return found if isinstance(found, dict) else {}


def digits(threshold: float | None) -> int:
    """Decimals of a threshold, two to four: calibrated ones have four, and values beside them are as near."""
    return 2 if threshold is None else max(2, len(f"{threshold:.4f}".rstrip("0").partition(".")[2]))


def night(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One entry per app and generator: its stages, a bar of them, and what people said of the stopped ones.

    Args:
        rows: Of `waterfall.sql`.
    """
    groups = []
    for (app, generator), found in groupby(rows, key=lambda r: (r["app"], r["generator"])):
        by = {r["stage"]: r for r in found}
        parts = {stage: by[stage]["n_stopped"] for stage in WATERFALL}
        stopped = [by[stage] for stage in WATERFALL if stage != "sent"]
        said = listed([f"{count(n)} {words(stage)}" for stage, n in parts.items() if n])
        groups.append({
            "app": app,
            "generator": generator,
            "by": by,
            "chart": charts.bar(parts),
            "summary": f"Where the answers of {app}, {generator}, stop: {said}.",
            "stopped_reviewed": sum(r["n_reviewed"] for r in stopped),
            "stopped_wrong": sum(r["n_wrong"] for r in stopped),
        })  # fmt: skip
    return groups


def steps(row: Row, known: Mapping[str, float]) -> tuple[Step, ...]:
    """The stages as one trace met them; none where its scores are from before there was a waterfall.

    Args:
        row: Its row of `page_traces`.
        known: See `thresholds`.
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
