"""Nightly tables that use people's labels (docs/methods.md#noise-and-confidence, The waterfall, People).

People's labels are in `reviews` and are joined to a recipe's results each time; no judge changes them. The tables are
computed again when the labels, or the results that they are compared with, change.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import polars as pl
import pyarrow as pa

from tasks.core import keys
from tasks.core.config import scale
from tasks.core.progress import tracked
from tasks.core.schemas import (
    CLAIM_RESULTS,
    CLAIMS,
    NIGHTLY_CORRECTED,
    NIGHTLY_TRUST,
    NIGHTLY_WATERFALL,
    REVIEWS,
    TRACE_SCORES,
    Table,
)
from tasks.run.context import Context
from tasks.run.result import StageResult
from tasks.scoring.intervals import of_waterfall
from tasks.scoring.score import parameters
from tasks.scoring.trust import KEY, trust
from tasks.stats.intervals import corrected_mean
from tasks.store.lake import Part, empty, frame, from_rows
from tasks.store.query import Queries

STAGE = "reviewed"
NIGHTLY = (NIGHTLY_WATERFALL, NIGHTLY_CORRECTED, NIGHTLY_TRUST)


def correct_nights(ctx: Context) -> StageResult:
    """Compute the nightly tables that use people's labels, for the run's days; returns nights computed and reused."""
    computed = reused = 0
    reviews = all_reviews(ctx)
    state = _state(ctx, reviews)
    scores = [part for part in ctx.lake.parts(TRACE_SCORES, ctx.recipe) if ctx.covers(part.date)]
    nights = [(day, list(parts)) for day, parts in groupby(scores, key=lambda p: p.partition[-1])]
    found: tuple[pa.Table, pl.DataFrame] | None = None
    with tracked(ctx.progress, STAGE, len(nights)), ctx.queries() as queries:
        for day, parts in nights:
            token = keys.version([state, [[p.name, p.inputs()] for p in parts]])
            if ctx.lake.has(NIGHTLY, "night", ctx.recipe, day, inputs=token):
                reused += 1
            else:
                if found is None:
                    claims, traces = reviewed(ctx, queries, reviews)
                    found = traces, _placed(ctx, claims, reviews)
                traces, claims_of_apps = found
                known = {"trace_scores": parts, "reviewed_traces": traces}
                known["intervals"] = of_waterfall(queries, parts, traces)
                rows = (
                    queries.run("nightly/nightly_waterfall", known),
                    corrected(queries, parts, traces),
                    _trust(ctx, parts, claims_of_apps),
                )
                for table, made in zip(NIGHTLY, rows, strict=True):
                    ctx.lake.write(table, "night", made, ctx.recipe, day, inputs=token)
                computed += 1
            ctx.progress.advance()
    return StageResult(STAGE, computed=computed, reused=reused)


def reviewed(ctx: Context, queries: Queries, reviews: pa.Table | None = None) -> tuple[pa.Table, pa.Table]:
    """People's labels and the recipe's results for the same items, for all days.

    Args:
        reviews: Rows of `REVIEWS`; by default those in the lake.

    Returns:
        Rows of `sql/views/reviewed_claims.sql` and of `sql/sums/reviewed_traces.sql`.
    """
    found = all_reviews(ctx) if reviews is None else reviews
    claims = queries.run(
        "views/reviewed_claims",
        {
            "reviews": found,
            "claims": _of_days(ctx, CLAIMS, ctx.extractor.version, found),
            "claim_results": _of_days(ctx, CLAIM_RESULTS, ctx.recipe, found),
        },
    )
    scores = _of_days(ctx, TRACE_SCORES, ctx.recipe, found)
    relations = {"reviews": found, "reviewed_claims": claims, "trace_scores": scores}
    return claims, queries.run("sums/reviewed_traces", relations, parameters(ctx))


def all_reviews(ctx: Context) -> pa.Table:
    """Every label from people, as rows of `REVIEWS`."""
    return pa.concat_tables([empty(REVIEWS), *(part.read() for part in ctx.lake.parts(REVIEWS))])


def corrected(queries: Queries, scores: Sequence[Part] | pa.Table, traces: pa.Table) -> pa.Table:
    """Rows of `NIGHTLY_CORRECTED` for one night.

    Args:
        scores: `trace_scores` of one recipe and day.
        traces: Rows of `sql/sums/reviewed_traces.sql` for the recipe.
    """
    rows = []
    relations = {"trace_scores": scores, "reviewed_traces": traces}
    for sums in pl.DataFrame(queries.run("sums/corrected_sums", relations)).iter_rows(named=True):
        totals, counts, changes, seen = (
            np.array(sums.pop(name), np.float64) for name in ("total", "n", "reviewed_change", "reviewed_n")
        )
        if found := corrected_mean(totals, counts, changes, seen, scale(sums["number"])[1]):
            rows.append({
                **sums,
                "n_scored": int(counts.sum()),
                "raw_mean": _rounded(found.raw),
                "n_reviewed": int(seen.sum()),
                "n_reviewed_questions": int((seen > 0).sum()),
                "rectifier": _rounded(found.rectifier),
                "corrected_mean": _rounded(found.mean),
                "corrected_low": _rounded(found.low),
                "corrected_high": _rounded(found.high),
            })  # fmt: skip
    return from_rows(rows, NIGHTLY_CORRECTED)


def _placed(ctx: Context, claims: pa.Table, reviews: pa.Table) -> pl.DataFrame:
    """Reviewed claims with `app` and `question` of their traces. A trace without text counts as its own question."""
    columns = ["trace_id", "app", "question_id"]
    parts = _of_days(ctx, TRACE_SCORES, ctx.recipe, reviews)
    traces = pl.concat([frame(empty(TRACE_SCORES)).select(columns), *(p.frame(columns) for p in parts)])
    found = frame(claims).join(traces, on="trace_id")
    return found.with_columns(question=pl.coalesce("question_id", "trace_id"))


def _trust(ctx: Context, parts: Sequence[Part], claims: pl.DataFrame) -> pa.Table:
    """Rows of `NIGHTLY_TRUST` for one night, from its parts of `trace_scores`."""
    scores = pl.concat([part.frame(["trace_id", "app", *KEY]) for part in parts])
    columns = ["trace_id", "confidence", "abstained_for"]
    results = [part.frame(columns) for part in ctx.lake.parts(CLAIM_RESULTS, ctx.recipe, parts[0].partition[-1])]
    return trust(scores, pl.concat([frame(empty(CLAIM_RESULTS)).select(columns), *results]), claims)


def _state(ctx: Context, reviews: pa.Table) -> str:
    """A token that changes with people's labels and with the results that they are compared with."""
    labels = [[p.name, p.inputs()] for p in ctx.lake.parts(REVIEWS)]
    compared = [[*p.partition, p.name, p.inputs()] for p in _of_days(ctx, TRACE_SCORES, ctx.recipe, reviews)]
    return keys.version([labels, compared])


def _of_days(ctx: Context, table: Table, version: str, reviews: pa.Table) -> list[Part]:
    days = sorted(map(str, pl.DataFrame(reviews)["date"].unique()))
    return [part for day in days for part in ctx.lake.parts(table, version, day)]


def _rounded(value: float) -> float:
    return round(round(value, 12), 6)  # as in the SQL of other nightly tables
