"""Ranks and spreads of generators: by hand where they can be, and bounds that hold whatever the scores are."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.accuracy import citations
from bench.accuracy.citations import Number

MEANS = st.lists(st.floats(0, 1), min_size=5, max_size=40)


def number(*means):
    return Number(np.array(means, dtype=float), np.ones(len(means)))


def test_a_mean_is_over_observations_and_not_over_questions():
    # 3 of 3 and 0 of 1: three of four.
    assert Number(np.array([3.0, 0.0]), np.array([3.0, 1.0])).mean == 0.75


def test_the_highest_is_first_and_of_equal_ones_the_first_name():
    assert citations.ranked({"b": 0.5, "c": 0.9, "a": 0.5}) == ["c", "a", "b"]


@given(MEANS)
def test_fifths_are_disjoint_and_whole(means):
    # Each question counts in exactly one fifth: weighed by their sizes, the fifths give the mean back.
    parts = citations.fifths(number(*means), "seed")
    sizes = [len(p) for p in np.array_split(np.arange(len(means)), 5)]
    assert np.average(parts, weights=sizes) == pytest.approx(np.mean(means))
    assert parts.tolist() == citations.fifths(number(*means), "seed").tolist()


@given(MEANS)
def test_draws_stay_within_the_questions(means):
    draws = citations.drawn(number(*means), "seed", draws=50)
    assert draws.shape == (50,)
    assert min(means) - 1e-9 <= draws.min()
    assert draws.max() <= max(means) + 1e-9


def test_draws_scatter_by_the_standard_error():
    # Half ones and half zeros: standard deviation 0.5, of the mean of 100 of them 0.05. Of five normal draws, the range
    # is 2.326 standard deviations on average.
    draws = citations.drawn(number(*[0, 1] * 50), "seed", draws=20_000)
    assert draws.std() == pytest.approx(0.05, rel=0.03)
    assert citations.reach_of(draws) == pytest.approx(2.326 * 0.05, rel=0.05)


def test_the_range_of_five_is_the_mean_over_groups_of_five():
    # Ranges 4 and 10; the eleventh draw fills no group.
    assert citations.reach_of(np.array([0, 1, 2, 3, 4, 0, 10, 5, 5, 5, 99.0])) == 7


def test_an_order_is_kept_where_every_neighbor_stays_below():
    draws = {
        "a": np.array([3.0, 3.0, 1.0, 3.0]),
        "b": np.array([2.0, 1.0, 2.0, 2.0]),
        "c": np.array([1.0, 2.0, 0.0, 2.0]),
    }
    # Only in the first draw is a > b > c; in the last b and c are equal, which is no order.
    assert citations.order_kept(draws, ["a", "b", "c"]) == 0.25


def test_correlation_of_orders():
    # Of the six pairs one is turned around: (5 − 1) / 6; ranks differ by one twice: 1 − 6·2 / (4·15).
    found = citations.correlation([0.9, 0.8, 0.2, 0.1], [0.7, 0.6, 0.3, 0.4])
    assert found["n"] == 4
    assert found["tau"] == pytest.approx(4 / 6)
    assert found["rho"] == pytest.approx(0.8)
    assert found["p"] == pytest.approx(8 / 24)  # of 24 orders, 4 have at most one pair turned, and 4 at least five


def a_run(**scores):
    rows = [
        {
            "trace_id": t,
            "generator": g,
            "question_id": t,
            "citation_status": "na" if score is None else "scored",
            "citation_groundedness": score,
            "segments_cited_judged": None if score is None else 2,
            "segments_cited_true": None if score is None else 1,
        }
        for t, (g, score) in scores.items()
    ]
    verdicts = pl.DataFrame({"request_key": ["k"], "label": ["supported"], "p_supported": [0.7]})
    return {"scores": pl.DataFrame(rows), "verdicts": verdicts, "seconds": 1.0, "rounds": []}


def test_generators_are_ranked_beside_people_and_those_without_a_score_are_listed_last():
    traces = {
        "a1": ("a", 0.2),
        "a2": ("a", 0.4),
        "b1": ("b", 0.8),
        "b2": ("b", 1.0),
        "b3": ("b", None),
        "c1": ("c", None),
    }
    people = pl.DataFrame({"trace_id": ["a1", "a2", "b1", "b2"], "complete": [2, 1, 1, 1], "n": [2, 2, 4, 1]})
    again = {**traces, "a1": ("a", 0.3)}
    found = citations.measure([a_run(**traces), a_run(**again)], people)
    b, a, c = found["generators"]
    assert (b["generator"], b["citation_groundedness"], b["traces"], b["na"], b["questions"]) == ("b", 0.9, 3, 1, 2)
    assert (b["people"], b["people_claims"], b["people_rank"]) == (0.4, 5, 2)
    assert (a["people"], a["people_claims"], a["people_rank"]) == (0.75, 4, 1)
    assert a["segments_cited_true"] == 0.5
    # The second run gives one trace of two a tenth more.
    assert a["range_of_runs"] == pytest.approx(0.05)
    assert b["range_of_runs"] == 0
    assert c == {"generator": "c", "traces": 1, "status": "na"}
    assert found["of_generators"]["tau"] == -1
    assert found["of_traces"]["n"] == 4
    assert found["same_verdicts"]
    assert not found["same_scores"]


def test_people_are_counted_by_trace_where_a_claim_cites_chunks_of_it(tmp_path):
    chunks = [{"chunk_id": "1", "text": "Tea is hot."}]
    traces = [{"trace_id": "t", "chunks": chunks}, {"trace_id": "u", "chunks": []}]
    labels = [("t", "Complete", ["1"]), ("t", "Partial", ["1"]), ("t", "Missing", []), ("u", "Complete", ["1"])]
    (tmp_path / "traces.jsonl").write_text("\n".join(map(json.dumps, traces)))
    (tmp_path / "labels.jsonl").write_text(
        "\n".join(
            json.dumps({"trace_id": t, "claim": "Tea is hot [1].", "support": s, "cited_chunk_ids": c})
            for t, s, c in labels
        )
    )
    # The cited chunk of u is not there: nobody can say what it was checked against.
    assert citations.of_people(tmp_path).rows() == [("t", 1, 2)]


def test_data_that_are_not_there_end_the_command_with_a_remedy(tmp_path):
    with pytest.raises(SystemExit, match="LEADLINE_SHARED"):
        citations.main(["--data", str(tmp_path)])
