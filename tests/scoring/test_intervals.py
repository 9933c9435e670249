"""Intervals and repeats of nights, from traces on: what counts as the same question, and what it does to the numbers."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from kit.stage_kit import DAY, Watched, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core.schemas import CLAIM_RESULTS, NIGHTLY_GROUNDEDNESS, NIGHTLY_REPEATS, NIGHTLY_SESSIONS, TRACE_SCORES
from tasks.core.types import Request
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_relevance
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.publish.publish import load_warehouse, warehouse_of
from tasks.scoring.intervals import of_grace, of_repeats, of_scores, of_sessions, of_shares, of_waterfall
from tasks.scoring.nightly import aggregate_nights
from tasks.scoring.score import score_traces
from tasks.stats.intervals import interval, means
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


def test_a_night_with_repeats(tmp_path: Path) -> None:
    """Tea is asked three times (100, 50, 0), in other letters and spaces; coffee once (100). t1 and t2 are one conversation."""
    ctx = context(tmp_path, judge=Watched(rule))
    put(
        ctx,
        trace("t1", "Alpha.", question="How hot is tea?", session="A"),
        trace("t2", "Alpha. Invented.", question=" how HOT  is\ntea? ", repeat=1, session="A"),
        trace("t3", "Invented.", question="How hot is tea?", repeat=2),
        trace("t4", "Beta.", question="How hot is coffee?", session="B"),
    )
    for stage in (extract_claims, plan_pairs, judge_pairs, judge_joint_pairs, score_relevance, score_traces):
        stage(ctx)
    aggregate_nights(ctx)
    ids = {r["trace_id"]: r["question_id"] for r in rows(ctx, TRACE_SCORES)}
    assert ids["t1"] == ids["t2"] == ids["t3"] != ids["t4"]
    (grounded,) = rows(ctx, NIGHTLY_GROUNDEDNESS)
    assert grounded["groundedness_mean"] == 62.5
    ends = interval(means(np.array([150.0, 100.0]), np.array([3.0, 1.0])), 0, 100)
    assert (grounded["groundedness_low"], grounded["groundedness_high"]) == pytest.approx(ends, abs=1e-6)
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
    assert repeats["groundedness"]["spread_low"] is None  # one question says nothing of others
    (sessions,) = rows(ctx, NIGHTLY_SESSIONS)
    assert [sessions[c] for c in ("n", "n_scored", "traces", "n_ungrounded", "ungrounded_share")] == [2, 2, 3, 1, 0.5]
    load_warehouse(ctx)
    with warehouse_of(ctx).connect() as connection:
        (row,) = Reader(connection).rows("FROM question_repeats", {})
    assert (row["question"], row["n"], row["n_scored"]) == ("How hot is tea?", 3, 3)
    assert [row[f"groundedness_{c}"] for c in ("mean", "spread", "range")] == [50, 50, 100]
    assert [row[f"faithfulness_{c}"] for c in ("mean", "spread", "range")] == [0.5, 0.5, 1]


def test_sessions_have_wilsons_interval() -> None:
    """3 of 10: with p (1 - p) / (n - 1) as variance, Wilson's interval of 9 answers. a = 1.96² / 9 = 0.42683; the middle is
    (0.3 + a / 2) / (1 + a) = 0.35983, half the width sqrt(0.21 a + a² / 4) / (1 + a) = 0.25768. Others are left out."""
    key = {"date": DAY, "app": "a", "generator": "g"}
    found = [{**key, "status": "scored", "ungrounded": float(i < 3), "misused": 0.0} for i in range(10)]
    other = {**key, "status": "unjudged", "ungrounded": 1.0, "misused": 1.0}
    ends = {r["number"]: r for r in of_sessions(pa.Table.from_pylist([*found, other])).to_pylist()}
    assert (ends["ungrounded"]["low"], ends["ungrounded"]["high"]) == pytest.approx((0.10215, 0.61751), abs=2e-5)
    assert ends["misused"]["low"] == 0
    assert of_sessions(pa.Table.from_pylist([other])).num_rows == 0


def ends_of(table: pa.Table) -> dict[str, tuple[float, float]]:
    """Ends by number, or by source and number."""
    return {"/".join(filter(None, (r.get("source"), r["number"]))): (r["low"], r["high"]) for r in table.to_pylist()}


def of(totals: list[float], counts: list[float], most: float = 1.0) -> tuple[float, float]:
    found = interval(means(np.array(totals, np.float64), np.array(counts, np.float64)), 0.0, most)
    assert found is not None
    return pytest.approx(found, abs=2e-6)


def test_an_interval_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = [(f"q{i % 40}", float(s)) for i, s in enumerate(rng.uniform(0, 100, 100))]
    with Queries("1GB", tmp_path) as queries:
        forward, backward = (of_scores(queries, night(s)).to_pylist() for s in (scores, scores[::-1]))
    assert forward == backward
    (row,) = forward
    assert (row["number"], row["app"], row["generator"], row["date"]) == ("groundedness", "a", "g", DAY)


def test_equal_answers_to_a_question_count_as_one(tmp_path: Path) -> None:
    """Each of 100 questions four times with the same score: as wide as with each of them once."""
    scores = [(f"q{i}", float(s)) for i, s in enumerate(np.random.default_rng(1).uniform(0, 100, 100))]
    with Queries("1GB", tmp_path) as queries:
        four, once = (ends_of(of_scores(queries, night(s * times))) for s, times in ((scores, 4), (scores, 1)))
    assert four["groundedness"] == pytest.approx(once["groundedness"], abs=2e-6)


def test_a_night_of_several_numbers(tmp_path: Path) -> None:
    """Question a was asked twice and b once; a trace without its text, which has no question, stands by itself."""
    key = {"recipe": "r", "date": DAY, "app": "a", "generator": "g", "groundedness_score": 0.0}
    rows = [
        {**key, "trace_id": "1", "question_id": "a", "groundedness_score": 40.0, "diagnosis": "healthy"},
        {**key, "trace_id": "2", "question_id": "a", "answer_relevance": 0.5, "diagnosis": "generator"},
        {**key, "trace_id": "3", "question_id": "b", "answer_relevance": 0.7, "diagnosis": "healthy"},
        {**key, "trace_id": "4", "groundedness_score": 80.0},
        {**key, "trace_id": "5"},
        {**key, "trace_id": "6", "question_id": "a", "generator": "h", "answerability": 1.0},
    ]
    with Queries("1GB", tmp_path) as queries:
        found = of_scores(queries, pa.Table.from_pylist(rows, schema=SCHEMA))
    assert ends_of(found) == {
        "groundedness": of([40, 0, 80, 0], [2, 1, 1, 1], 100),
        "answer_relevance": of([0.5, 0.7], [1, 1]),
        "diagnosis_healthy": of([1, 1], [2, 1]),
        "diagnosis_generator": of([1, 0], [2, 1]),
        "diagnosis_retrieval": of([0, 0], [2, 1]),
        "diagnosis_declined": of([0, 0], [2, 1]),
        "diagnosis_prompt": of([0, 0], [2, 1]),
    }


def test_patterns_are_shares_of_the_claims_of_each_question(tmp_path: Path) -> None:
    """Question a has 3 + 2 judged claims, of which 1 and 1 show the pattern, b has 4 and c 4, none; d has none judged."""
    key = {"recipe": "r", "date": DAY, "app": "a", "generator": "g"}
    traces = [("1", "a", 3), ("2", "a", 2), ("3", "b", 4), ("4", "c", 4), ("5", "d", 0)]
    scores = [{**key, "trace_id": t, "question_id": q, "claims_judged": n} for t, q, n in traces]
    claims = [("1", "unsupported", ["x"]), ("2", "supported", ["x", "z"]), ("3", None, ["x"]), ("4", "supported", [])]
    results = [{"trace_id": t, "label": label, "patterns": shown} for t, label, shown in claims]
    schema = pa.schema([f.remove_metadata().with_nullable(True) for f in CLAIM_RESULTS.schema])
    with Queries("1GB", tmp_path) as queries:
        traces_, claims_ = pa.Table.from_pylist(scores, schema=SCHEMA), pa.Table.from_pylist(results, schema=schema)
        shown = queries.run("sums/shown_patterns", {"trace_scores": traces_, "claim_results": claims_})
        found = of_shares(queries, traces_, shown, ["x", "y"], judged=True)
    assert ends_of(found) == {"x": of([2, 0, 0], [5, 4, 4]), "y": of([0, 0, 0], [5, 4, 4])}


def test_the_waterfall_and_what_people_found_wrong(tmp_path: Path) -> None:
    """Of question a one answer is sent and one stops, of b and c one is sent. People looked at all that are sent."""
    key = {"recipe": "r", "date": DAY, "app": "a", "generator": "g"}
    traces = [("1", "a", "sent"), ("2", "a", "retrieval"), ("3", "b", "sent"), ("4", "c", "sent")]
    scores = [{**key, "trace_id": t, "question_id": q, "waterfall": stage} for t, q, stage in traces]
    reviewed = [
        {"trace_id": t, "wrong": wrong, "random": True} for t, wrong in (("1", True), ("3", False), ("4", False))
    ]
    reviewed.append({"trace_id": "2", "wrong": True, "random": False})  # picked for its labels
    with Queries("1GB", tmp_path) as queries:
        found = ends_of(
            of_waterfall(queries, pa.Table.from_pylist(scores, schema=SCHEMA), pa.Table.from_pylist(reviewed))
        )
    assert found["share_sent"] == of([1, 1, 1], [2, 1, 1])
    assert found["share_retrieval"] == of([1, 0, 0], [2, 1, 1])
    assert found["share_faithfulness"] == of([0, 0, 0], [2, 1, 1])
    assert found["wrong_sent"] == of([1, 0, 0], [1, 1, 1])
    assert "wrong_retrieval" not in found


def test_repeats_are_means_over_questions(tmp_path: Path) -> None:
    """Three questions with means 20, 50 and 90, variances 200, 50 and 0, ranges 20, 10 and 0; the fourth was asked once.

    The largest standard deviation that there can be is that of 0 and 100, 100 / √2.
    """
    values = {"a": [10.0, 30.0], "b": [45.0, 55.0], "c": [90.0, 90.0], "d": [5.0]}
    key = {
        "recipe": "r",
        "date": DAY,
        "app": "a",
        "generator": "g",
        "judge_version": "j",
        "groundedness_status": "scored",
    }
    rows = [{**key, "question_id": q, "groundedness_score": v} for q, found in values.items() for v in found]
    with Queries("1GB", tmp_path) as queries:
        questions = queries.run("sums/repeated_questions", {"trace_scores": pa.Table.from_pylist(rows, schema=SCHEMA)})
    found = ends_of(of_repeats(questions))
    assert found["groundedness_mean"] == of([20, 50, 90], [1, 1, 1], 100)
    assert found["groundedness_spread"] == of([200**0.5, 50**0.5, 0], [1, 1, 1], 100 / 2**0.5)
    assert found["groundedness_range"] == of([20, 10, 0], [1, 1, 1], 100)
    low, high = found["groundedness_share_repeats"]
    # W = 250 / 3 and M = 2 · (33.3² + 3.3² + 36.7²) / 2 = 2,466.7, so that W / (W + (M − W) / 2) = 0.065.
    assert 0 < low < 0.065 < high


def test_grace_by_night_and_by_source() -> None:
    """Of source s questions 1 and 2 are asked, of t question 3, twice. 1 cites s, 2 cites t for it, 3 cites t once and
    nothing once."""
    key = {"recipe": "r", "date": DAY, "app": "a", "generator": "g"}
    names = ("question", "source", "support", "true_positives", "false_positives", "false_negatives")
    rows = [
        (1, None, 1, 1, 0, 0), (1, "s", 1, 1, 0, 0),
        (2, None, 1, 0, 0, 1), (2, "s", 1, 0, 0, 1), (2, "t", 0, 0, 1, 0),
        (3, None, 2, 1, 0, 1), (3, "t", 2, 1, 0, 1),
    ]  # fmt: skip
    by_night, by_source = of_grace(pa.Table.from_pylist([{**key, **dict(zip(names, r, strict=True))} for r in rows]))
    night, source = ends_of(by_night), ends_of(by_source)
    assert night["accuracy"] == of([1, 0, 1], [1, 1, 2])
    assert night["precision_micro"] == of([1, 0, 1], [1, 1, 1])
    assert night["recall_micro"] == of([1, 0, 1], [1, 1, 2])
    assert night["f1_micro"] == of([2, 0, 2], [2, 2, 3])
    assert source["s/recall"] == of([1, 0], [1, 1])
    assert source["t/f1"] == of([0, 2], [1, 3])
    assert "s/precision" not in source  # one question alone cites it
    # Recall of s is ½ and of t ½, macro ½. Without question 1 it is (0 + ½) / 2, without 2 (1 + ½) / 2, without 3 ½.
    assert night["recall_macro"][0] < 0.5 < night["recall_macro"][1]
    assert night["recall_macro"] == pytest.approx(
        (1 - night["recall_macro"][1], 1 - night["recall_macro"][0]), abs=1e-5
    )


def test_one_question_has_no_interval(tmp_path: Path) -> None:
    with Queries("1GB", tmp_path) as queries:
        assert of_scores(queries, night([("q", 10.0), ("q", 20.0)])).num_rows == 0
        assert of_scores(queries, night([])).num_rows == 0
