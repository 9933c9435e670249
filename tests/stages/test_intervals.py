"""Intervals and repeats of nights, from traces on: what counts as the same question, and what it does to the numbers."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from stage_kit import DAY, Watched, context, put, rows, trace

from tasks.core.schemas import NIGHTLY_GROUNDEDNESS, NIGHTLY_REPEATS, TRACE_SCORES
from tasks.core.statistics import mean_interval
from tasks.core.types import Request
from tasks.stages.claims import extract_claims
from tasks.stages.gates import GateKeeper
from tasks.stages.intervals import intervals
from tasks.stages.pairs import plan_pairs
from tasks.stages.publish import load_warehouse, warehouse_of
from tasks.stages.relevance import score_relevance
from tasks.stages.score import aggregate_nights, score_traces
from tasks.stages.verdicts import judge_first_looks, judge_second_looks
from tasks.store.query import Queries
from tasks.store.warehouse import Reader

SCHEMA = pa.schema([f.remove_metadata().with_nullable(True) for f in TRACE_SCORES.schema])


def rule(request: Request) -> str:
    return "unsupported" if "Invented" in request.hypothesis else "supported"


def night(scores: list[tuple[str, float]]) -> pa.Table:
    """Traces (question, groundedness) of one app and generator."""
    key = {"recipe": "r", "date": DAY, "app": "a", "generator": "g"}
    found = [{**key, "question_id": q, "groundedness_score": s} for q, s in scores]
    return pa.Table.from_pylist(found, schema=SCHEMA)


def test_a_night_with_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tea is asked three times (100, 50, 0), in other letters and spaces; coffee once (100)."""
    monkeypatch.setattr(GateKeeper, "write_docs", lambda _: None)
    ctx = context(tmp_path, judge=Watched(rule))
    put(
        ctx,
        trace("t1", "Alpha.", question="How hot is tea?"),
        trace("t2", "Alpha. Invented.", question=" how HOT  is\ntea? ", repeat=1),
        trace("t3", "Invented.", question="How hot is tea?", repeat=2),
        trace("t4", "Beta.", question="How hot is coffee?"),
    )
    for stage in (extract_claims, plan_pairs, judge_first_looks, judge_second_looks, score_relevance, score_traces):
        stage(ctx)
    aggregate_nights(ctx)
    ids = {r["trace_id"]: r["question_id"] for r in rows(ctx, TRACE_SCORES)}
    assert ids["t1"] == ids["t2"] == ids["t3"] != ids["t4"]
    (grounded,) = rows(ctx, NIGHTLY_GROUNDEDNESS)
    assert grounded["groundedness_mean"] == 62.5
    # Of two questions, whose means are 50 and 100, nothing better can be said than their range.
    assert (grounded["groundedness_low"], grounded["groundedness_high"]) == (50, 100)
    repeats = {r["number"]: r for r in rows(ctx, NIGHTLY_REPEATS)}
    assert (repeats["groundedness"]["questions"], repeats["groundedness"]["questions_repeated"]) == (2, 1)
    assert [repeats["groundedness"][c] for c in ("n", "mean", "spread", "range", "share_repeats")] == [
        3,
        50,
        50,
        100,
        None,
    ]
    assert [repeats["faithfulness"][c] for c in ("mean", "spread", "range")] == [0.5, 0.5, 1]
    load_warehouse(ctx)
    with warehouse_of(ctx).connect() as connection:
        (row,) = Reader(connection).rows("FROM question_repeats", {})
    assert (row["question"], row["n"], row["n_scored"]) == ("How hot is tea?", 3, 3)
    assert [row[f"groundedness_{c}"] for c in ("mean", "spread", "range")] == [50, 50, 100]
    assert [row[f"faithfulness_{c}"] for c in ("mean", "spread", "range")] == [0.5, 0.5, 1]


def test_an_interval_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = [(f"q{i % 40}", float(s)) for i, s in enumerate(rng.uniform(0, 100, 100))]
    with Queries("1GB", tmp_path) as queries:
        forward, backward = (intervals(queries, night(s)).to_pylist() for s in (scores, scores[::-1]))
    assert forward == backward
    (row,) = forward
    assert (row["number"], row["app"], row["generator"], row["date"]) == ("groundedness", "a", "g", DAY)


def test_equal_answers_to_a_question_count_as_one(tmp_path: Path) -> None:
    """Each of 100 questions four times with the same score: √4 = 2 times as wide as with 400 questions."""
    scores = [(f"q{i}", float(s)) for i, s in enumerate(np.random.default_rng(1).uniform(0, 100, 100))]
    with Queries("1GB", tmp_path) as queries:
        (repeated,) = intervals(queries, night([pair for pair in scores for _ in range(4)])).to_pylist()
        (apart,) = intervals(queries, night([(f"{q}-{i}", s) for q, s in scores for i in range(4)])).to_pylist()
    ratio = (repeated["high"] - repeated["low"]) / (apart["high"] - apart["low"])
    assert ratio == pytest.approx(2, rel=0.15)


def test_without_repeats_it_is_the_interval_over_traces(tmp_path: Path) -> None:
    values = [10.0, 20.0, 40.0, 90.0]
    with Queries("1GB", tmp_path) as queries:
        (row,) = intervals(queries, night([(f"q{i}", v) for i, v in enumerate(values)])).to_pylist()
    assert (row["low"], row["high"]) == mean_interval(np.array(values), np.ones(4), str(DAY), "a", "g", "groundedness")


def test_one_question_has_no_interval(tmp_path: Path) -> None:
    with Queries("1GB", tmp_path) as queries:
        assert intervals(queries, night([("q", 10.0), ("q", 20.0)])).num_rows == 0
        assert intervals(queries, night([])).num_rows == 0
