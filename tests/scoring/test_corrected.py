"""Nights are corrected by what people found, and again when that or the judge's results change, and only then."""

import json
from pathlib import Path
from typing import Any

import pytest
from kit.stage_kit import DAY, NEXT, Watched, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core.schemas import NIGHTLY_CORRECTED, NIGHTLY_WATERFALL, REVIEWS
from tasks.judging.pairs import plan_pairs
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.review.load import import_reviews
from tasks.run.context import Context
from tasks.scoring.corrected import correct_nights, reviewed
from tasks.scoring.score import score_traces

CLAIM = "Tea is hot"


@pytest.fixture
def ctx(tmp_path: Path) -> Context:
    """Two nights of answers with one claim each, that cites; the judge finds all of them supported."""
    made = context(tmp_path, last=NEXT, judge=Watched())
    for day in (DAY, NEXT):
        answers = (trace(f"{day}-{i}", f"{CLAIM} [a].", question=f"Question {i}?", day=day) for i in range(4))
        put(made, *answers, name=f"{day:%Y%m%d}00000000-00000")
    score(made)
    return made


def score(ctx: Context) -> None:
    for stage in (extract_claims, plan_pairs, judge_pairs, judge_joint_pairs, score_traces):
        stage(ctx)


def label(ctx: Context, name: str, *, adjudicated: bool | None = None, **labels: tuple[str, bool]) -> None:
    """Import labels of the claims of some traces of the first night, by their numbers."""
    path = ctx.config.lake.parent / f"{name}.jsonl"
    lines = [
        {
            "trace_id": f"{DAY}-{i[1:]}",
            "claim": CLAIM,
            "label": what,
            "misused": misused,
            "reviewer": name,
            "adjudicated": adjudicated,
        }
        for i, (what, misused) in labels.items()
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    import_reviews(ctx, path)


def corrected(ctx: Context) -> dict[tuple[Any, str], dict[str, Any]]:
    return {(r["date"], r["number"]): r for r in rows(ctx, NIGHTLY_CORRECTED)}


def test_all_nights_are_corrected_by_the_labels_of_one(ctx: Context) -> None:
    """Each answer has 100 by the judge. People: 100, and 0 (a misused claim: 100 · (0 − 2), cut at 0): mean change −50.

    The judge's mean has no variance; the two changes 0 and −100 have a variance of the mean of 50², one degree of
    freedom and t = 12.7: the interval is cut at both ends.
    """
    label(ctx, "ann", t0=("supported", False), t1=("unsupported", True))
    result = correct_nights(ctx)
    assert (result.stage, result.computed, result.reused) == ("reviewed", 2, 0)
    found = corrected(ctx)
    assert sorted(found) == [(d, n) for d in (DAY, NEXT) for n in ("faithfulness", "groundedness")]
    for day in (DAY, NEXT):
        row = found[day, "groundedness"]
        assert (row["n_scored"], row["n_reviewed"], row["n_reviewed_questions"]) == (4, 2, 2)
        assert (row["raw_mean"], row["rectifier"], row["corrected_mean"]) == (100, -50, 50)
        assert (row["corrected_low"], row["corrected_high"]) == (0, 100)
        assert found[day, "faithfulness"]["corrected_mean"] == 0.5
        assert (row["app"], row["generator"], row["recipe"]) == ("shop", "g-1", ctx.recipe)


def test_what_was_computed_is_reused_until_labels_come(ctx: Context) -> None:
    assert correct_nights(ctx).computed == 2
    assert corrected(ctx) == {}
    assert len({(r["date"], r["stage"]) for r in rows(ctx, NIGHTLY_WATERFALL)}) == 10  # two nights, five stages
    assert correct_nights(ctx).reused == 2
    label(ctx, "ann", t0=("supported", False), t1=("supported", False))
    assert correct_nights(ctx).computed == 2
    assert corrected(ctx)[NEXT, "groundedness"]["rectifier"] == 0
    assert correct_nights(ctx).reused == 2
    label(ctx, "bob", t2=("contradicted", True))
    assert correct_nights(ctx).computed == 2
    assert corrected(ctx)[NEXT, "groundedness"]["rectifier"] == pytest.approx(-100 / 3, abs=1e-6)


def test_an_adjudicator_settles_what_reviewers_leave_open(ctx: Context) -> None:
    """t1 is tied and corrects nothing; adjudicated as misused it is 0 instead of 100: mean change −50."""
    label(ctx, "ann", t0=("supported", False), t1=("unsupported", True))
    label(ctx, "bob", t1=("supported", False))
    correct_nights(ctx)
    assert corrected(ctx) == {}  # one reviewed question is left
    label(ctx, "eve", adjudicated=True, t1=("unsupported", True))
    correct_nights(ctx)
    assert corrected(ctx)[NEXT, "groundedness"]["rectifier"] == -50


def test_one_reviewed_question_corrects_nothing(ctx: Context) -> None:
    label(ctx, "ann", t0=("unsupported", True))
    correct_nights(ctx)
    assert corrected(ctx) == {}
    stages = {(r["date"], r["stage"]): (r["n_reviewed"], r["n_wrong"]) for r in rows(ctx, NIGHTLY_WATERFALL)}
    assert {night: found for (night, _), found in stages.items() if any(found)} == {DAY: (1, 1)}


def test_a_night_that_is_scored_later_is_corrected_then_and_so_are_those_it_speaks_for(ctx: Context) -> None:
    """The labels are of the first night; scored anew, it changes what the second night is corrected by."""
    label(ctx, "ann", t0=("unsupported", True), t1=("unsupported", True))
    correct_nights(ctx)
    answer = trace(f"{DAY}-9", f"{CLAIM} [a].", question="Question 9?", day=DAY)
    put(ctx, answer, name="2222222222222222-00000")
    score(ctx)
    assert correct_nights(ctx).computed == 2
    assert corrected(ctx)[DAY, "groundedness"]["n_scored"] == 5


def test_a_judge_never_changes_labels(ctx: Context, tmp_path: Path) -> None:
    label(ctx, "ann", t0=("supported", False), t1=("unsupported", True))
    before = rows(ctx, REVIEWS)
    other = context(tmp_path, last=NEXT, judge=Watched(rule=lambda _: "contradicted", version="fedcba9876543210"))
    score(other)
    correct_nights(other)
    assert rows(other, REVIEWS) == before
    with other.queries() as queries:
        claims, traces = reviewed(other, queries)
    held = [(c["people"], c["judge"]) for c in claims.to_pylist()]
    assert held == [("supported", "contradicted"), ("unsupported", "contradicted")]
    assert [t["wrong"] for t in traces.to_pylist()] == [False, True]


def test_labels_can_be_held_against_results_without_being_imported(ctx: Context) -> None:
    with ctx.queries() as queries:
        claims, traces = reviewed(ctx, queries)
        assert (claims.num_rows, traces.num_rows) == (0, 0)
        label(ctx, "ann", t0=("supported", False))
        (part,) = ctx.lake.parts(REVIEWS)
        rows_of_file = part.read()
        ctx.lake.drop(REVIEWS, part.name)
        claims, _ = reviewed(ctx, queries, rows_of_file)
    assert claims["people"].to_pylist() == ["supported"]
