"""The 95% intervals of the nightly means, over questions (METHODS section 11): SQL sums up each question."""

import pyarrow as pa

from tasks.core.schemas import APP, DATE, F64, GENERATOR, S
from tasks.core.statistics import mean_interval
from tasks.store.query import Queries, Relation

SCHEMA = pa.schema([
    DATE,
    APP,
    GENERATOR,
    pa.field("number", S),
    pa.field("low", F64),
    pa.field("high", F64),
])  # fmt: skip


def intervals(queries: Queries, scores: Relation) -> pa.Table:
    """One row per app, generator and number that has at least two questions, for `nightly_*.sql` to join.

    The same scores give the same intervals, under whatever recipe: two recipes are compared on the same draws.

    Args:
        scores: `trace_scores` of one recipe and day.
    """
    return _of(queries.run("question_sums", {"trace_scores": scores}))


def grade_intervals(queries: Queries, scores: Relation, grades: Relation) -> pa.Table:
    """The same of the six grades, for `nightly_grades.sql`.

    Args:
        scores: `trace_scores` of one recipe and day.
        grades: Of that day, by the recipe's grader.
    """
    return _of(queries.run("grade_sums", {"trace_scores": scores, "grades": grades}))


def _of(sums: pa.Table) -> pa.Table:
    rows = []
    for i, key in enumerate(sums.select(["date", "app", "generator", "number"]).to_pylist()):
        totals, counts = (sums[c][i].values.to_numpy() for c in ("total", "n"))
        if found := mean_interval(totals, counts, *map(str, key.values())):
            rows.append({**key, "low": found[0], "high": found[1]})
    return pa.Table.from_pylist(rows, schema=SCHEMA)
