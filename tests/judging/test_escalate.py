"""A cascade: the dearer judge sees what the cheaper one left uncertain, and the last label counts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit.stage_kit import NEXT, Watched, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core import keys
from tasks.core.errors import ConfigError, EngineError
from tasks.core.schemas import (
    CLAIM_RESULTS,
    CLAIMS,
    JUDGES,
    NIGHTLY_GROUNDEDNESS,
    PAIRS,
    RECIPES,
    TRACE_SCORES,
    VERDICTS,
)
from tasks.core.types import OUTAGE, Request, Verdict
from tasks.judging.estimate import JudgeEstimate, estimate
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_relevance
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.run.context import Context
from tasks.run.result import StageResult
from tasks.run.scopes.scope import ALL, Scope
from tasks.scoring.nightly import aggregate_nights
from tasks.scoring.score import score_traces

CHUNKS = {"a": "Apples are red.", "b": "Bananas are yellow."}
BAND = [0.3, 0.7]


def cheap(request: Request) -> Verdict:
    """A claim says by its words how sure the cheap judge is of it."""
    claim = request.hypothesis
    if "Broken" in claim:
        return Verdict("", failure="too_long", raw="")
    if "Down" in claim:
        return Verdict("", failure=OUTAGE)
    if "Unsure" in claim:
        return Verdict("", "abstained", p_supported=0.9, p_contradicted=0.0)
    p = 0.5 if "Maybe" in claim else 0.9
    return Verdict("", "supported" if p > 0.6 else "unsupported", p_supported=p, p_contradicted=0.0, tokens_in=1)


def cascade(
    root: Path, expensive: Watched, first: Watched | None = None, *, band: list[float] = BAND, **more: Any
) -> Context:
    pairing = more.pop("pairing", {"kind": "all_chunks"})
    recipe = {"pairing": {"joint_words": 0}, "cascade": [{"band": band, "judge": "judge2.yaml", "pairing": pairing}]}
    return context(root, judge=first or Watched(cheap), later=[expensive], recipe=recipe, **more)


def expensive_judge(rule: Any = lambda request: "supported", **more: Any) -> Watched:
    return Watched(rule, version="d" * 16, **more)


def complete(ctx: Context, *, retry_failures: bool = False) -> dict[str, StageResult]:
    done = [extract_claims(ctx), plan_pairs(ctx)]
    for judge in ctx.judges:
        done += [run(ctx, stage=judge.stage, retry_failures=retry_failures) for run in (judge_pairs, judge_joint_pairs)]
    done += [score_relevance(ctx), score_traces(ctx), aggregate_nights(ctx)]
    return {r.stage: r for r in done}


def results(ctx: Context) -> dict[str, dict[str, Any]]:
    """Result of each claim, by its first word."""
    first_words = {c["claim_id"]: c["hypothesis"].split()[0] for c in rows(ctx, CLAIMS)}
    return {first_words[r["claim_id"]]: r for r in rows(ctx, CLAIM_RESULTS, ctx.recipe)}


ANSWER = "Sure it is. Maybe it is. Unsure it is. Broken it is. Down it is."


def test_only_uncertain_claims_go_on_and_the_last_label_counts(tmp_path: Path) -> None:
    expensive = expensive_judge()
    ctx = cascade(tmp_path, expensive)
    put(ctx, trace("t", ANSWER, CHUNKS))
    done = complete(ctx)
    assert {r.hypothesis.split()[0] for r in expensive.asked} == {"Maybe", "Unsure", "Broken"}
    assert [len(r.passages) for r in expensive.asked] == [2, 2, 2]  # each judge has its own pairing
    found = results(ctx)
    assert {w: (r["status"], r["label"], r["stage"], r["stage_asked"]) for w, r in found.items()} == {
        "Sure": ("judged", "supported", 1, 1),
        "Maybe": ("judged", "supported", 2, 2),
        "Unsure": ("judged", "supported", 2, 2),
        "Broken": ("judged", "supported", 2, 2),
        "Down": ("unjudged", None, 1, 1),  # the next run asks again
    }
    assert done["verdicts 2"].notes == ("Escalated 60.0% of 5 claims to judge judge2.",)
    assert done["verdicts 2"].judge == expensive.version
    (score,) = rows(ctx, TRACE_SCORES)
    assert (score["claims_escalated"], score["claims_unjudged"], score["claims_supported"]) == (3, 1, 4)
    (night,) = rows(ctx, NIGHTLY_GROUNDEDNESS)
    assert (night["claims_escalated"], night["claims_total"]) == (3, 5)
    assert {(p["stage"], p["pair_kind"]) for p in rows(ctx, PAIRS)} == {(1, "single"), (2, "pack")}
    assert {v["judge_version"] for v in rows(ctx, VERDICTS)} == {m.judge.version for m in ctx.judges}


def test_a_band_has_its_lower_end_and_not_its_upper(tmp_path: Path) -> None:
    asked = []
    for i, band in enumerate(([0.5, 0.6], [0.4, 0.5])):
        (tmp_path / str(i)).mkdir()
        expensive = expensive_judge()
        ctx = cascade(tmp_path / str(i), expensive, band=band)
        put(ctx, trace("t", "Maybe it is.", CHUNKS))
        complete(ctx)
        asked.append(len(expensive.asked))
    assert asked == [1, 0]


def test_a_judge_without_probabilities_hands_on_only_what_it_could_not_say(tmp_path: Path) -> None:
    silent = Watched(lambda r: Verdict("", "abstained" if "Unsure" in r.hypothesis else "unsupported"))
    expensive = expensive_judge()
    ctx = cascade(tmp_path, expensive, silent, band=[0.0, 1.0])
    put(ctx, trace("t", ANSWER, CHUNKS))
    complete(ctx)
    assert {r.hypothesis.split()[0] for r in expensive.asked} == {"Unsure"}


def test_where_the_later_judge_fails_the_earlier_label_stays_and_is_marked(tmp_path: Path) -> None:
    expensive = expensive_judge(lambda request: Verdict("", failure="unparsable", raw="{"))
    ctx = cascade(tmp_path, expensive)
    put(ctx, trace("t", "Maybe it is. Broken it is.", CHUNKS))
    complete(ctx)
    maybe, broken = (results(ctx)[w] for w in ("Maybe", "Broken"))
    assert (maybe["label"], maybe["stage"], maybe["stage_asked"]) == ("unsupported", 1, 2)
    assert maybe["needs_review"]
    assert (broken["status"], broken["label"]) == ("unjudged", None)


def test_a_second_run_asks_nobody_anything(tmp_path: Path) -> None:
    expensive = expensive_judge()
    ctx = cascade(tmp_path, expensive, last=NEXT)
    put(ctx, trace("t", "Maybe it is. Sure it is.", CHUNKS))
    put(ctx, trace("u", "Maybe it was.", CHUNKS, day=NEXT))
    complete(ctx)
    before = {p.path: p.path.read_bytes() for t in (PAIRS, VERDICTS, CLAIM_RESULTS) for p in ctx.lake.parts(t)}
    done = complete(ctx)
    assert {r.stage: r.computed for r in done.values() if r.computed} == {}
    assert {path: path.read_bytes() for path in before} == before
    assert done["verdicts 2"].notes == ("Escalated 66.7% of 3 claims to judge judge2.",)


def test_after_an_outage_the_claim_finds_its_way(tmp_path: Path) -> None:
    first, expensive = Watched(cheap), expensive_judge()
    ctx = cascade(tmp_path, expensive, first)
    put(ctx, trace("t", "Maybe it is. Down it is. Or Down or Maybe it is.", CHUNKS))
    complete(ctx)
    assert len(expensive.asked) == 1
    first.rule = lambda r: cheap(Request(r.key, r.premise, r.hypothesis.replace("Down", "")))
    complete(ctx)
    assert [r.hypothesis for r in expensive.asked[1:]] == ["Or Down or Maybe it is."]
    assert {(r["label"], r["stage"]) for r in results(ctx).values()} >= {("supported", 2), ("supported", 1)}
    (score,) = rows(ctx, TRACE_SCORES)
    assert (score["claims_unjudged"], score["claims_escalated"]) == (0, 2)


def test_a_repaired_failure_no_longer_goes_on(tmp_path: Path) -> None:
    first, expensive = Watched(cheap), expensive_judge(lambda request: "contradicted")
    ctx = cascade(tmp_path, expensive, first)
    put(ctx, trace("t", "Broken it is.", CHUNKS))
    complete(ctx)
    assert results(ctx)["Broken"]["stage"] == 2
    first.rule = lambda request: "supported"
    complete(ctx, retry_failures=True)
    found = results(ctx)["Broken"]
    assert (found["label"], found["stage"], found["stage_asked"]) == ("supported", 1, 1)
    assert len(rows(ctx, VERDICTS)) == 2 + 1 + 2  # verdicts of the expensive judge stay paid for


def test_second_looks_follow_the_claims_that_go_on_when_others_come_in_their_place(tmp_path: Path) -> None:
    first = Watched(cheap)
    expensive = expensive_judge(
        lambda request: "supported" if len(request.shown) > 1 else "unsupported"
    )  # by both chunks together
    ctx = cascade(tmp_path, expensive, first, pairing={"kind": "per_chunk"})
    put(ctx, trace("t", "Broken it is. Down it is.", CHUNKS))
    complete(ctx)
    assert results(ctx)["Broken"]["stage"] == 2
    # Now the one is settled by the first judge, the other is in the band: as many pairs as before, of another claim.
    first.rule = lambda r: "unsupported" if "Broken" in r.hypothesis else cheap(Request("", "", "Maybe"))
    complete(ctx, retry_failures=True)
    found = results(ctx)
    assert (found["Broken"]["label"], found["Broken"]["stage"]) == ("unsupported", 1)
    assert (found["Down"]["label"], found["Down"]["stage"], found["Down"]["n_pairs"]) == ("supported", 2, 3)


def test_a_wider_scope_sends_on_claims_whose_first_verdict_is_that_of_another_trace(tmp_path: Path) -> None:
    ctx = cascade(tmp_path, expensive_judge())
    # The same answer twice: the second trace's requests have their verdicts from the first one's.
    put(ctx, trace("t", "Maybe it is.", CHUNKS), trace("u", "Maybe it is.", CHUNKS, app="help"))
    for scope in (Scope(("shop",)), ALL):
        complete(replace(ctx, scope=scope))
    found = {r["trace_id"]: (r["label"], r["stage"]) for r in rows(ctx, CLAIM_RESULTS, ctx.recipe)}
    assert found == {"t": ("supported", 2), "u": ("supported", 2)}


def test_the_first_model_is_freed_before_the_second_is_asked(tmp_path: Path) -> None:
    first = Watched(cheap)
    expensive = expensive_judge(lambda request: "supported" if first.closed else "unsupported")
    ctx = cascade(tmp_path, expensive, first)
    put(ctx, trace("t", "Maybe it is.", CHUNKS))
    complete(ctx)
    assert results(ctx)["Maybe"]["label"] == "supported"
    assert expensive.closed == 1


def test_what_the_first_judge_stated_is_kept_when_the_second_is_down(tmp_path: Path) -> None:
    expensive = expensive_judge(up_for=0)
    ctx = cascade(tmp_path, expensive)
    put(ctx, trace("t", "Maybe it is.", CHUNKS))
    with pytest.raises(EngineError):
        complete(ctx)
    assert len(rows(ctx, VERDICTS)) == 2
    expensive.up_for = None
    assert complete(ctx)["verdicts"].computed == 0
    assert len(expensive.asked) == 1


def test_three_judges(tmp_path: Path) -> None:
    second = Watched(cheap, version="b" * 16)
    third = expensive_judge()
    recipe = {"cascade": [
        {"band": [0.0, 0.95], "judge": "judge2.yaml"}, {"band": BAND, "judge": "judge3.yaml", "pairing": {"kind": "cited"}},
    ]}  # fmt: skip
    ctx = context(tmp_path, judge=Watched(cheap), later=[second, third], recipe=recipe)
    put(ctx, trace("t", "Sure it is [1].\n\nMaybe it is [1].\n\nMaybe or Broken [1]. Unsure.", CHUNKS))
    complete(ctx)
    assert {r.hypothesis for r in second.asked} >= {"Sure it is", "Maybe it is"}
    assert {r.hypothesis for r in third.asked} == {"Maybe it is", "Maybe or Broken"}
    found = results(ctx)
    assert {w: found[w]["stage"] for w in ("Sure", "Maybe")} == {"Sure": 2, "Maybe": 3}
    assert (found["Unsure."]["status"], found["Unsure."]["stage_asked"]) == ("abstained", 2)  # it cites nothing


class TestVersions:
    def test_a_cascade_is_a_judge_version_of_its_own_and_says_of_whom(self, tmp_path: Path) -> None:
        expensive = expensive_judge()
        ctx = cascade(tmp_path, expensive)
        put(ctx, trace("t", "Maybe it is.", CHUNKS))
        complete(ctx)
        first = ctx.judges[0].judge.version
        judges = [{"judge": first, "band": None}, {"judge": expensive.version, "band": BAND}]
        assert ctx.judge_version == keys.version({"kind": "cascade", "judges": judges})
        known = {j["judge_version"]: (j["kind"], j["name"]) for j in rows(ctx, JUDGES)}
        assert known == {
            first: ("watched", "judge"), expensive.version: ("watched", "judge2"),
            ctx.judge_version: ("cascade", "judge → judge2"),
        }  # fmt: skip
        (recipe,) = rows(ctx, RECIPES)
        assert (recipe["judge_version"], recipe["judge_versions"]) == (ctx.judge_version, [first, expensive.version])
        assert {r["judge_version"] for t in (CLAIM_RESULTS, TRACE_SCORES) for r in rows(ctx, t)} == {ctx.judge_version}

    def test_judges_bands_and_pairings_are_in_the_recipe(self, tmp_path: Path) -> None:
        found = {
            context(tmp_path).recipe,
            cascade(tmp_path, expensive_judge()).recipe,
            cascade(tmp_path, Watched(version="e" * 16)).recipe,
            cascade(tmp_path, expensive_judge(), band=[0.3, 0.8]).recipe,
            cascade(tmp_path, expensive_judge(), pairing={"kind": "cited"}).recipe,
        }
        assert len(found) == 5

    def test_one_judge_is_its_own_version(self, tmp_path: Path) -> None:
        ctx = context(tmp_path)
        assert ctx.judge_version == ctx.judges[0].judge.version

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"band": [0.7, 0.3]}, r"recipe\.cascade\.0 .*lo above hi"),
            ({"band": [0.3]}, r"recipe\.cascade\.0\.band"),
            ({"bnd": BAND}, r"recipe\.cascade\.0\.bnd is not a known key.*Did you mean 'band'"),
            ({"judge": "none.yaml"}, r"none\.yaml does not exist"),
        ],
    )
    def test_mistakes_name_the_key(self, tmp_path: Path, change: dict[str, Any], message: str) -> None:
        step = {"band": BAND, "judge": "judge2.yaml", **change}
        with pytest.raises(ConfigError, match=message):
            context(tmp_path, later=[expensive_judge()], recipe={"cascade": [step]})


class TestEstimate:
    def ready(self, root: Path, expensive: Watched) -> Context:
        ctx = cascade(root, expensive)
        put(ctx, trace("t", "Sure it is. Maybe it is. Unsure it is.", CHUNKS), trace("u", "Sure it is.", CHUNKS))
        extract_claims(ctx)
        plan_pairs(ctx)
        return ctx

    def judged(self, ctx: Context) -> list[tuple[int, float | None]]:
        return [(j.verdicts, j.share) for j in estimate(ctx).judges]

    def test_all_claims_may_go_on_until_it_is_known_which(self, tmp_path: Path) -> None:
        expensive = expensive_judge()
        ctx = self.ready(tmp_path, expensive)
        assert self.judged(ctx) == [(6, None), (3, 1.0)]  # 3 texts × 2 chunks, then 3 packs at most
        assert expensive.calls == []
        complete(ctx)
        assert self.judged(ctx) == [(0, None), (0, None)]
        assert len(expensive.asked) == 2

    def test_then_as_many_as_on_the_latest_night(self, tmp_path: Path) -> None:
        ctx = self.ready(tmp_path, expensive_judge())
        complete(ctx)  # 2 of 4 claims went on
        put(ctx, trace("v", "Sure it was. Perhaps. Indeed it was. Never.", CHUNKS), name="ffffffffffffffff-00000")
        extract_claims(ctx)
        plan_pairs(ctx)
        assert self.judged(ctx) == [(8, None), (2, 0.5)]

    def test_after_the_first_judge_it_is_known_which(self, tmp_path: Path) -> None:
        expensive = expensive_judge(up_for=0)
        ctx = self.ready(tmp_path, expensive)
        with pytest.raises(EngineError):
            complete(ctx)
        assert self.judged(ctx) == [(0, None), (2, None)]

    def test_packs_and_their_checks_are_counted(self, tmp_path: Path) -> None:
        ctx = context(tmp_path, recipe={"pairing": {"kind": "all_chunks"}})
        put(ctx, trace("t", "Sure it is [1]. Maybe it is.", CHUNKS))
        extract_claims(ctx)
        plan_pairs(ctx)
        (found,) = estimate(ctx).judges
        assert isinstance(found, JudgeEstimate)
        assert (found.verdicts, found.joint_pairs) == (2, 2)  # a pack a claim; for each at most the cited ones alone
