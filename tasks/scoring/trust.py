"""How far a judge can be trusted on an application's own traces: docs/methods.md#how-far-to-trust-a-judge.

Left out: which of people's labels count (`sql/views/reviewed_claims.sql`), and presenting the numbers
(`tasks/publish/report/night/trust.py`).
"""

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from tasks.core.schemas import NIGHTLY_TRUST
from tasks.stats import agreement
from tasks.stats.intervals import interval, mean_of
from tasks.store.lake import from_rows

UNSURE = 0.6  # a label with a lower probability is near the threshold
KEY = ("recipe", "date", "judge_version")


def trust(scores: pl.DataFrame, results: pl.DataFrame, reviewed: pl.DataFrame) -> pa.Table:
    """Rows of `NIGHTLY_TRUST` for one night.

    Args:
        scores: `trace_id`, `app` and `KEY` of `trace_scores` of the night.
        results: `trace_id`, `confidence` and `abstained_for` of `claim_results` of the night.
        reviewed: Rows of `sql/views/reviewed_claims.sql` for any nights, with `app` and `question`.
    """
    labeled = reviewed.filter("random", pl.col("people").is_not_null(), pl.col("judge").is_not_null())
    claims = results.join(scores, on="trace_id")
    rows = []
    for (app,), traces in scores.group_by("app", maintain_order=True):
        mine, of_night = labeled.filter(app=app), claims.filter(app=app)
        rows.append({
            **{name: traces[name][0] for name in KEY},
            "app": app,
            "n_labels": mine.height,
            "n_questions": mine["question"].n_unique(),
            **_agreement(mine),
            **_wrong(mine, "to_check", marked=True),
            **_wrong(mine, "unmarked", marked=False),
            "n_claims": of_night["confidence"].count(),
            "n_unsure": of_night.filter(pl.col("confidence") < UNSURE).height,
            "n_unread": of_night.filter(abstained_for="language").height,
        })  # fmt: skip
    return from_rows(sorted(rows, key=lambda row: str(row["app"])), NIGHTLY_TRUST)


def _agreement(labeled: pl.DataFrame) -> dict[str, Any]:
    """Balanced accuracy and kappa of judge and people, with intervals: supported (place 0) against all other labels."""
    if labeled.is_empty():
        return {}
    judge, people = ((labeled[side] != "supported").cast(pl.Int64).to_numpy() for side in ("judge", "people"))
    counts = agreement.tally(labeled["question"].to_numpy(), judge, people, (2, 2))
    found = agreement.agreement(counts)
    return {
        f"{name}{end}": value
        for name, its in (("accuracy", found.accuracy), ("kappa", found.kappa))
        for end, value in (("", its.value), ("_low", its.low), ("_high", its.high))
    }


def _wrong(labeled: pl.DataFrame, name: str, *, marked: bool) -> dict[str, Any]:
    """Number and share of wrongly supported claims among those with (`marked`) or without a failure pattern."""
    supported = labeled.filter(pl.col("judge") == "supported", pl.col("to_check") == marked)
    wrong = (supported["people"] != "supported").to_numpy()
    found: dict[str, Any] = {f"n_{name}": len(wrong), f"n_{name}_wrong": int(wrong.sum())}
    if len(wrong):
        questions = np.unique(supported["question"].to_numpy(), return_inverse=True)[1]
        low, high = interval(mean_of(wrong, questions)) or (None, None)
        share = {"": float(wrong.mean()), "_low": low, "_high": high}
        found |= {f"{name}_wrong_share{end}": value for end, value in share.items()}
    return found
