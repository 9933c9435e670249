"""Citation groundedness in two passes: the worked examples of docs/methods.md#citation-groundedness-two-passes, through the real stages."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit.stage_kit import DAY, Watched, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core.schemas import (
    CLAIM_RESULTS,
    NIGHTLY_CITATIONS,
    NIGHTLY_GROUNDEDNESS,
    NIGHTLY_RELEVANCE,
    PAIRS,
    QUARANTINE,
    TRACE_SCORES,
)
from tasks.core.types import OUTAGE, Request, Verdict
from tasks.judging.estimate import estimate
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_relevance
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.run.context import Context
from tasks.run.scopes.scope import ALL, Scope
from tasks.scoring.nightly import aggregate_nights
from tasks.scoring.score import score_traces

CITATIONS = {
    "name": "citations",
    "method": "citations",
    "extractor": {"kind": "segments"},
    "pairing": {"kind": "cited_together"},
}
CHUNKS = {
    "ldl": "Eating apples was associated with lower LDL cholesterol.",
    "fibre": "An apple has four grams of fibre.",
    "skin": "Most of the fibre is in the skin.",
}
PRESSURE = "Eating apples can reduce blood pressure"
LDL = "Eating apples goes with lower LDL cholesterol"
SKIN = "Most of an apple's four grams of fibre is in its skin"
HAPPY = "In conclusion, apples make for a healthy and happy life."
SUM = "In short, apples go with lower LDL cholesterol."

# What is entailed by what, as a person would say. The evidence is all that the judge is shown, in its order.
ENTAILED = {
    (LDL, (CHUNKS["ldl"],)),
    (SKIN, (CHUNKS["fibre"], CHUNKS["skin"])),  # two chunks that jointly entail it
    (SUM, (LDL,)),
    (SUM, (LDL, SKIN)),
}


def person(request: Request) -> str | Verdict:
    """A judge that knows `ENTAILED`, and can't say of what begins with `Broken`, `Lost` or `Unsure`."""
    claim = request.hypothesis
    if claim.startswith("Broken"):
        return Verdict("", failure="unparsable", raw="")
    if claim.startswith("Lost"):
        return Verdict("", failure=OUTAGE)
    if claim.startswith("Unsure"):
        return "abstained"
    if claim.startswith("Partly"):
        return "partially_supported"
    return "supported" if (claim, request.shown) in ENTAILED else "unsupported"


def two_passes(root: Path, judge: Watched | None = None, **more: Any) -> Context:
    return context(root, judge=judge or Watched(person), recipe={**CITATIONS, **more})


def complete(ctx: Context, *, retry_failures: bool = False) -> None:
    extract_claims(ctx)
    plan_pairs(ctx)
    for stage in (1, 2):
        judge_pairs(ctx, stage=stage, retry_failures=retry_failures, keep=stage == 1)
    score_relevance(ctx)
    score_traces(ctx)
    aggregate_nights(ctx)


def scored(ctx: Context, *traces: dict[str, Any]) -> dict[str, dict[str, Any]]:
    put(ctx, *traces)
    complete(ctx)
    assert rows(ctx, QUARANTINE) == []
    return {r["trace_id"]: r for r in rows(ctx, TRACE_SCORES, ctx.recipe)}


def results(ctx: Context, trace_id: str = "t") -> list[tuple[int | None, str | None]]:
    """Round and label (or status) of each segment of a trace, in order."""
    found = [r for r in rows(ctx, CLAIM_RESULTS, ctx.recipe) if r["trace_id"] == trace_id]
    return [(r["stage"], r["label"] or r["status"]) for r in found]


def asked(judge: Watched) -> list[tuple[str, tuple[str, ...]]]:
    return sorted((r.hypothesis, r.shown) for r in judge.asked)


class TestExamples:
    def test_blood_pressure_is_not_ldl_cholesterol(self, tmp_path: Path) -> None:
        """docs/methods.md#citation-groundedness-two-passes: [1] is about LDL cholesterol, so that a claim on blood pressure is false."""
        ctx = two_passes(tmp_path)
        row = scored(ctx, trace("t", f"{PRESSURE} [1].", CHUNKS))["t"]
        assert results(ctx) == [(1, "unsupported")]
        assert (row["citation_status"], row["citation_groundedness"]) == ("scored", 0.0)

    def test_a_conclusion_is_checked_against_what_was_found_true(self, tmp_path: Path) -> None:
        """docs/methods.md#citation-groundedness-two-passes: "happy" fails it. Of the two cited segments one is true, and it alone is shown."""
        judge = Watched(person)
        ctx = two_passes(tmp_path, judge)
        row = scored(ctx, trace("t", f"{LDL} [1]. {PRESSURE} [1].\n\n{HAPPY}", CHUNKS))["t"]
        assert results(ctx) == [(1, "supported"), (1, "unsupported"), (2, "unsupported")]
        assert asked(judge) == [(PRESSURE, (CHUNKS["ldl"],)), (LDL, (CHUNKS["ldl"],)), (HAPPY, (LDL,))]
        assert row["citation_groundedness"] == pytest.approx(1 / 3)
        counts = {c: row[f"segments_{c}"] for c in ("total", "judged", "true", "cited", "cited_judged", "cited_true")}
        assert counts == {"total": 3, "judged": 3, "true": 1, "cited": 2, "cited_judged": 2, "cited_true": 1}

    def test_all_that_a_segment_cites_is_shown_at_once_and_all_that_is_true_in_order(self, tmp_path: Path) -> None:
        judge = Watched(person)
        ctx = two_passes(tmp_path, judge)
        answer = f"{SUM}\n\n{LDL} [1].\n\n{SKIN} [3][2]."  # the introduction comes first, and waits for the second pass
        row = scored(ctx, trace("t", answer, CHUNKS))["t"]
        assert row["citation_groundedness"] == 1.0
        assert [len(call) for call in judge.calls] == [2, 1]  # a pass each
        assert judge.calls[1][0].shown == (LDL, SKIN)
        assert (SKIN, (CHUNKS["fibre"], CHUNKS["skin"])) in asked(judge)  # in the order of the chunks
        kinds = {(p["stage"], p["pair_kind"]) for p in rows(ctx, PAIRS)}
        assert kinds == {(1, "single"), (1, "pack"), (2, "found_true")}
        first = next(r for r in rows(ctx, CLAIM_RESULTS) if r["stage"] == 2)
        assert (first["deciding_chunk_id"], first["deciding_chunk_ids"]) == (None, [])  # no chunk decided it

    def test_partly_supported_is_not_true(self, tmp_path: Path) -> None:
        ctx = two_passes(tmp_path)
        row = scored(ctx, trace("t", f"{LDL} [1]. Partly so [1].", CHUNKS))["t"]
        assert (row["segments_true"], row["citation_groundedness"]) == (1, 0.5)

    def test_a_segment_that_its_chunks_do_not_support_misuses_them(self, tmp_path: Path) -> None:
        ctx = two_passes(tmp_path)
        scored(ctx, trace("t", f"{PRESSURE} [1].\n\n{HAPPY}", CHUNKS))
        assert [r["misused"] for r in rows(ctx, CLAIM_RESULTS)] == [True, False]


class TestNotApplicable:
    def test_no_context_and_no_references_have_no_score(self, tmp_path: Path) -> None:
        judge = Watched(person)
        ctx = two_passes(tmp_path, judge)
        found = scored(
            ctx,
            trace("no references", f"{LDL}.\n\n{HAPPY}", CHUNKS),
            trace("no context", f"{LDL} [1].\n\n{HAPPY}", {}),
            trace("no segments", "# Apples", CHUNKS),
        )
        assert judge.asked == []
        for name, row in found.items():
            found = (row["citation_status"], row["citation_groundedness"], row["segments_total"])
            assert found == ("na", None, None), name
            assert row["answer_relevance_status"] == "scored"  # it is about the question, and applies
        assert {r["status"] for r in rows(ctx, CLAIM_RESULTS)} == {"na"}

    def test_what_is_no_question_of_this_method_is_not_scored(self, tmp_path: Path) -> None:
        ctx = two_passes(tmp_path)
        row = scored(ctx, trace("t", f"{LDL} [1].", CHUNKS))["t"]
        assert (row["groundedness_status"], row["groundedness_score"], row["utilization"]) == ("na", None, None)
        assert rows(ctx, NIGHTLY_GROUNDEDNESS) == []
        assert len(rows(ctx, NIGHTLY_RELEVANCE)) == 3  # answer, context and answerability


class TestDangling:
    def test_a_segment_of_dangling_references_is_false_and_counted(self, tmp_path: Path) -> None:
        judge = Watched(person)
        ctx = two_passes(tmp_path, judge)
        row = scored(ctx, trace("t", f"{LDL} [1]. {LDL} [9].", CHUNKS))["t"]
        assert results(ctx) == [(1, "supported"), (1, "unsupported")]
        assert len(judge.asked) == 1
        assert (row["segments_dangling"], row["citations_dangling"], row["citation_groundedness"]) == (1, 1, 0.5)
        assert rows(ctx, CLAIM_RESULTS)[1]["patterns"] == ["dangling_citation"]

    def test_nothing_but_dangling_references_leaves_nothing_true(self, tmp_path: Path) -> None:
        judge = Watched(person)
        ctx = two_passes(tmp_path, judge)
        row = scored(ctx, trace("t", f"{LDL} [9].\n\n{SUM}", CHUNKS))["t"]
        assert results(ctx) == [(1, "unsupported"), (2, "unsupported")]
        assert (judge.asked, row["citation_status"], row["citation_groundedness"]) == ([], "scored", 0.0)

    def test_a_segment_that_also_cites_a_chunk_is_checked_against_that(self, tmp_path: Path) -> None:
        row = scored(two_passes(tmp_path), trace("t", f"{LDL} [1][9].", CHUNKS))["t"]
        assert (row["segments_dangling"], row["citations_dangling"], row["citation_groundedness"]) == (0, 1, 1.0)


class TestWithoutVerdict:
    def test_round_two_waits_for_round_one(self, tmp_path: Path) -> None:
        judge = Watched(person)
        ctx = two_passes(tmp_path, judge)
        found = scored(
            ctx,
            trace("t", f"{LDL} [1]. Broken one [1].\n\n{SUM}", CHUNKS),
            trace("u", f"{LDL} [1].\n\n{SUM}", CHUNKS),
            trace("v", f"Broken one [2].\n\n{SUM}", CHUNKS),
        )
        assert results(ctx, "t") == [(1, "supported"), (1, "unjudged"), (2, "unjudged")]
        assert results(ctx, "u") == [(1, "supported"), (2, "supported")]
        assert (found["t"]["claims_unjudged"], found["t"]["citation_groundedness"]) == (2, 1.0)  # of what was judged
        assert (found["v"]["citation_status"], found["v"]["citation_groundedness"]) == ("unjudged", None)

    def test_a_repaired_failure_lets_round_two_go_on(self, tmp_path: Path) -> None:
        judge = Watched(person)
        ctx = two_passes(tmp_path, judge)
        scored(ctx, trace("t", f"{LDL} [1]. Broken one [1].\n\n{SUM}", CHUNKS))
        judge.rule = lambda request: "unsupported" if request.hypothesis.startswith("Broken") else person(request)
        judge.calls.clear()
        complete(ctx)
        assert judge.asked == []  # a failure is asked again when that is wanted
        complete(ctx, retry_failures=True)
        assert asked(judge) == [("Broken one", (CHUNKS["ldl"],)), (SUM, (LDL,))]
        assert results(ctx) == [(1, "supported"), (1, "unsupported"), (2, "supported")]

    def test_an_outage_is_made_up_for_by_the_next_run(self, tmp_path: Path) -> None:
        judge = Watched(person)
        ctx = two_passes(tmp_path, judge)
        row = scored(ctx, trace("t", f"{LDL} [1]. Lost one [1].\n\n{SUM}", CHUNKS))["t"]
        assert (row["claims_unjudged"], row["segments_judged"]) == (2, 1)
        judge.rule = lambda request: "supported"
        complete(ctx)
        assert results(ctx) == [(1, "supported"), (1, "supported"), (2, "supported")]

    def test_abstained_is_neither_true_nor_false(self, tmp_path: Path) -> None:
        judge = Watched(person)
        ctx = two_passes(tmp_path, judge)
        found = scored(
            ctx,
            trace("t", f"{LDL} [1]. Unsure one [1].\n\n{SUM}", CHUNKS),
            trace("u", "Unsure one [1].", CHUNKS),
        )
        assert results(ctx, "t") == [(1, "supported"), (1, "abstained"), (2, "supported")]
        assert (SUM, (LDL,)) in asked(judge)  # what was found true, without it
        assert (found["t"]["claims_abstained"], found["t"]["citation_groundedness"]) == (1, 1.0)
        assert (found["u"]["citation_status"], found["u"]["citation_groundedness"]) == ("abstained", None)


def test_the_night_keeps_what_was_left_out_apart(tmp_path: Path) -> None:
    ctx = two_passes(tmp_path)
    scored(
        ctx,
        trace("a", f"{LDL} [1].", CHUNKS, question="One?"),  # 1 of 1
        trace("b", f"{LDL} [1]. {PRESSURE} [1].\n\n{HAPPY}", CHUNKS, question="Two?"),  # 1 of 3
        trace("c", f"{LDL} [9].", CHUNKS, question="Three?"),  # 0 of 1
        trace("d", "Broken one [1].", CHUNKS),
        trace("e", "Unsure one [1].", CHUNKS),
        trace("f", HAPPY, CHUNKS),
        trace("g", f"{LDL} [1].", {}),
    )
    (night,) = rows(ctx, NIGHTLY_CITATIONS)
    assert (night["date"], night["app"], night["generator"]) == (DAY, "shop", "g-1")
    counts = {c: night[c] for c in ("n", "n_scored", "n_na", "n_unjudged", "n_abstained")}
    assert counts == {"n": 7, "n_scored": 3, "n_na": 2, "n_unjudged": 1, "n_abstained": 1}
    assert night["citation_groundedness_mean"] == pytest.approx((1 + 1 / 3 + 0) / 3, abs=1e-6)
    assert night["citation_groundedness_p50"] == pytest.approx(1 / 3, abs=1e-6)
    assert 0 <= night["citation_groundedness_low"] < 4 / 9 < night["citation_groundedness_high"] <= 1
    segments = {c: night[f"segments_{c}"] for c in ("total", "judged", "true", "cited", "cited_judged", "cited_true", "dangling", "unjudged", "abstained")}  # fmt: skip
    assert segments == {
        "total": 7, "judged": 5, "true": 2, "cited": 6, "cited_judged": 4, "cited_true": 2, "dangling": 1,
        "unjudged": 1, "abstained": 1,
    }  # fmt: skip


def test_nothing_is_paid_for_twice(tmp_path: Path) -> None:
    judge = Watched(person)
    ctx = two_passes(tmp_path, judge)
    scored(ctx, trace("t", f"{LDL} [1].\n\n{SUM}", CHUNKS))
    paid = len(judge.asked)
    complete(ctx)
    assert len(judge.asked) == paid == 2


def test_the_model_is_freed_after_the_last_round(tmp_path: Path) -> None:
    judge = Watched(person)
    ctx = two_passes(tmp_path, judge)
    scored(ctx, trace("t", f"{LDL} [1].", CHUNKS))
    assert judge.closed == 1


def test_there_are_no_second_looks(tmp_path: Path) -> None:
    judge = Watched(lambda request: "unsupported")
    ctx = two_passes(tmp_path, judge)
    scored(ctx, trace("t", f"{SKIN} [2][3].", CHUNKS))
    judge.calls.clear()
    assert judge_joint_pairs(ctx).computed == 0
    assert judge.asked == []


def test_long_evidence_is_shown_in_packs_and_one_that_supports_it_is_enough(tmp_path: Path) -> None:
    chunks = {"a": "Far " * 30, "b": "near " * 30}
    judge = Watched(lambda request: "supported" if "near" in request.premise else "unsupported")
    ctx = two_passes(tmp_path, judge, pairing={"kind": "cited_together", "pack_words": 40, "window_words": 40})
    row = scored(ctx, trace("t", "Tea is hot [1][2].", chunks))["t"]
    assert (len(judge.asked), row["citation_groundedness"]) == (2, 1.0)


class TestEstimate:
    def test_round_two_is_reported_at_most_before_round_one_and_exactly_after(self, tmp_path: Path) -> None:
        judge = Watched(person)
        ctx = two_passes(tmp_path, judge)
        put(
            ctx,
            trace("t", f"{LDL} [1]. {PRESSURE} [1].\n\n{HAPPY}", CHUNKS),
            trace("u", f"{PRESSURE} [2].\n\n{SUM}", CHUNKS),  # nothing will be true
            trace("v", HAPPY, CHUNKS),  # no references
        )
        extract_claims(ctx)
        plan_pairs(ctx)
        found = [(j.judge, j.verdicts, j.joint_pairs, j.share) for j in estimate(ctx).judges]
        assert found == [("judge, pass 1", 3, 0, None), ("judge, pass 2", 2, 0, None)]
        judge_pairs(ctx)
        assert judge_pairs(ctx, stage=2).computed == 1
        assert [j.verdicts for j in estimate(ctx).judges] == [0, 0]


def test_a_wider_scope_checks_uncited_claims_of_answers_whose_citations_were_checked_in_others(tmp_path: Path) -> None:
    judge = Watched(person)
    ctx = two_passes(tmp_path, judge)
    # The same cited claim on both sides, so that the first pass has nothing new to judge of the second answer.
    put(ctx, trace("t", f"{LDL} [ldl].", CHUNKS), trace("u", f"{LDL} [ldl].\n\n{SUM}", CHUNKS, app="help"))
    for scope in (Scope(("shop",)), ALL):
        complete(replace(ctx, scope=scope))
    found = {(r["trace_id"], r["stage"]): r["label"] for r in rows(ctx, CLAIM_RESULTS, ctx.recipe)}
    assert found == {("t", 1): "supported", ("u", 1): "supported", ("u", 2): "supported"}
