"""Rows drawn for the nightly tables: complete, of today's schema, and consistent where the tables need it."""

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from bench.speed import aggregate
from tasks.core.schemas import CLAIM_RESULTS, NIGHTLY_GROUNDEDNESS, NIGHTLY_PATTERNS, NIGHTLY_REPEATS, TRACE_SCORES
from tasks.scoring import nightly


@pytest.mark.parametrize("table", [TRACE_SCORES, CLAIM_RESULTS], ids=lambda t: t.name)
def test_every_column_of_the_table_is_drawn_with_its_type(table):
    rows = aggregate.drawn(table, 50, np.random.default_rng(0), {})
    assert rows.cast(pa.schema([f.remove_metadata() for f in table.stored])).num_rows == 50
    assert [f.name for f in table.stored if not f.nullable and rows[f.name].null_count] == []


def test_a_score_is_there_where_its_status_says_so():
    rows = aggregate.drawn(TRACE_SCORES, 200, np.random.default_rng(0), {}).to_pylist()
    assert {r["groundedness_status"] for r in rows} == {"scored", "na", "unjudged"}
    assert all((r["faithfulness"] is None) == (r["groundedness_status"] != "scored") for r in rows)
    assert all(r["citation_groundedness"] is None for r in rows)


def test_ids_are_32_characters_and_differ():
    found = aggregate.ids(1000, np.random.default_rng(0)).to_pylist()
    assert len(set(found)) == 1000
    assert {len(i) for i in found} == {32}


def test_the_nights_that_are_drawn_are_aggregated(tmp_path):
    ctx = aggregate.context(tmp_path, 2, "1GB")
    aggregate.write(ctx, traces=600, claims=3)
    assert nightly.aggregate_nights(ctx).computed == 2
    day = str(date(2026, 11, 2))
    night, patterns, repeats = (
        ctx.lake.find(t, "night", ctx.recipe, day).read().to_pylist()
        for t in (NIGHTLY_GROUNDEDNESS, NIGHTLY_PATTERNS, NIGHTLY_REPEATS)
    )
    assert len(night) == 6  # three apps, two generators
    assert sum(r["n"] for r in night) == 300
    assert all(r["groundedness_low"] < r["groundedness_mean"] < r["groundedness_high"] for r in night)
    # Every claim that shows a pattern shows one.
    drawn = [
        p
        for part in ctx.lake.parts(CLAIM_RESULTS, ctx.recipe, day)
        for p in part.read(["patterns"])["patterns"].to_pylist()
    ]
    assert sum(r["n"] + r["n_not_judged"] for r in patterns) == sum(map(len, drawn)) > 0
    assert {r["number"] for r in repeats} == {"groundedness", "faithfulness"}
