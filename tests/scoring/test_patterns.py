"""Failure patterns through the real stages: named in the results, with evidence in a table, counted by night."""

from pathlib import Path

from kit.stage_kit import Watched, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core import keys
from tasks.core.schemas import CLAIM_PATTERNS, CLAIM_RESULTS, NIGHTLY_PATTERNS, QUARANTINE
from tasks.core.types import Request, Verdict
from tasks.judging.pairs import plan_pairs
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.patterns import ghost_number
from tasks.run.context import Context
from tasks.scoring.nightly import aggregate_nights
from tasks.scoring.score import score_traces

CHUNKS = {"a": "The mill museum opened in 1998.", "b": "The aquarium attracts two million visitors a year."}
STITCHED = "The mill museum opened in 1998 and attracts two million visitors a year [1][2]."
GHOST = "The museum has **17** rooms [1]."
DRIFTED = "The aquarium is loved [1]."
ANSWER = f"{STITCHED}\n\n{GHOST}\n\n{DRIFTED}\n\nSo they say [9]."


def rule(request: Request) -> str | Verdict:
    """The aquarium is loved by its own chunk; of what is stitched, each chunk supports a part."""
    if "loved" in request.hypothesis:
        return "supported" if request.premise == CHUNKS["b"] else "unsupported"
    return "partially_supported" if "opened" in request.hypothesis else "unsupported"


def complete(ctx: Context) -> None:
    for stage in (extract_claims, plan_pairs, judge_pairs, judge_joint_pairs, score_traces, aggregate_nights):
        stage(ctx)


def test_patterns_are_named_placed_and_counted(tmp_path: Path) -> None:
    ctx = context(tmp_path, judge=Watched(rule))
    put(ctx, trace("t", ANSWER, CHUNKS), trace("bare", GHOST, {}))
    complete(ctx)
    named = [r["patterns"] for r in rows(ctx, CLAIM_RESULTS) if r["trace_id"] == "t"]
    assert named == [["stitched_facts"], ["ghost_number"], ["citation_drift"], ["dangling_citation"]]
    found = {r["pattern"]: r for r in rows(ctx, CLAIM_PATTERNS) if r["trace_id"] == "t"}
    # Without chunks no figure can be missing from them, and every reference dangles.
    assert [r["pattern"] for r in rows(ctx, CLAIM_PATTERNS) if r["trace_id"] == "bare"] == ["dangling_citation"]

    def in_answer(name: str) -> list[str]:
        return [ANSWER[s["start"] : s["end"]] for s in found[name]["answer_spans"]]

    def shown(name: str) -> list[str]:
        return [CHUNKS[p["chunk_id"]][p["start"] : p["end"]] for p in found[name]["chunk_spans"]]

    assert (in_answer("ghost_number"), shown("ghost_number")) == (["17"], [])
    assert in_answer("stitched_facts") == ["The mill museum opened in 1998", "attracts two million visitors a year"]
    assert shown("stitched_facts") == [CHUNKS["a"], CHUNKS["b"]]
    assert (in_answer("citation_drift"), shown("citation_drift")) == ([], [CHUNKS["b"]])
    assert in_answer("dangling_citation") == ["9"]
    night = {r["pattern"]: (r["n"], r["claims_judged"]) for r in rows(ctx, NIGHTLY_PATTERNS)}
    assert night == dict.fromkeys(found, (1, 4)) | {"generalized_particular": (0, 4), "reverse_direction": (0, 4)}


def test_a_recipe_looks_only_for_what_it_names_and_is_another_recipe(tmp_path: Path) -> None:
    everything = context(tmp_path, judge=Watched(rule))
    some = context(tmp_path, judge=Watched(rule), recipe={"patterns": ["ghost_number"]})
    assert everything.recipe != some.recipe
    put(some, trace("t", ANSWER, CHUNKS))
    complete(some)
    assert {r["pattern"] for r in rows(some, CLAIM_PATTERNS)} == {"ghost_number"}
    assert [r["pattern"] for r in rows(some, NIGHTLY_PATTERNS)] == ["ghost_number"]
    assert sorted(p for r in rows(some, CLAIM_RESULTS) for p in r["patterns"]) == ["ghost_number"]


def test_a_detector_s_rules_are_part_of_the_recipe(tmp_path: Path) -> None:
    ctx = context(tmp_path, recipe={"patterns": ["ghost_number"]})
    assert ctx.definition["patterns"] == {"ghost_number": ghost_number.RULES}
    raised = {**ctx.definition, "patterns": {"ghost_number": ghost_number.RULES + 1}}
    assert (keys.version(ctx.definition), keys.version(raised) != ctx.recipe) == (ctx.recipe, True)


def test_no_evidence_is_kept_of_a_trace_that_is_refused(tmp_path: Path) -> None:
    wild = Watched(lambda request: Verdict("", "supported", p_supported=1.7, p_contradicted=0.0))
    ctx = context(tmp_path, judge=wild, gates={"max_quarantined_share": 1.0})
    put(ctx, trace("t", ANSWER, CHUNKS))
    complete(ctx)
    assert [r["trace_id"] for r in rows(ctx, QUARANTINE)] == ["t"]
    assert rows(ctx, CLAIM_PATTERNS) == []
