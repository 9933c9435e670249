"""Scores: the rules of METHODS on traces by hand, through the real stages, and what happens to impossible results."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit.stage_kit import DAY, NEXT, Directions, Watched, context, judged_by, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core.errors import DataError
from tasks.core.schemas import (
    CLAIM_RESULTS,
    JUDGES,
    NIGHTLY_GROUNDEDNESS,
    NIGHTLY_RELEVANCE,
    NIGHTLY_TRIAD,
    NIGHTLY_UTILIZATION,
    QUARANTINE,
    RECIPES,
    TRACE_SCORES,
    VERDICTS,
)  # fmt: skip
from tasks.core.types import Request, Verdict
from tasks.gates.gates import GateKeeper
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_relevance
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.run.context import Context
from tasks.run.result import StageResult
from tasks.scoring.nightly import aggregate_nights
from tasks.scoring.score import score_traces
from tasks.store import query

CHUNKS = {"a": "alpha facts.", "b": "beta facts."}


def rule(request: Request) -> str | Verdict:
    """A claim says by its words what becomes of it; `Alpha` is supported by chunk a alone, `Both` by a and b together."""
    claim = request.hypothesis
    if "Broken" in claim:
        return Verdict("", failure="unparsable", raw="")
    if "Unsure" in claim:
        return "abstained"
    if "Partly" in claim:
        return "partially_supported"
    if "Denied" in claim:
        return "contradicted"
    alpha, beta = "alpha" in request.premise, "beta" in request.premise
    return "supported" if ("Alpha" in claim and alpha) or ("Both" in claim and alpha and beta) else "unsupported"


def complete(ctx: Context, *, retry_failures: bool = False) -> dict[str, StageResult]:
    """All stages from the traces to the nightly tables."""
    done = [
        extract_claims(ctx),
        plan_pairs(ctx),
        judge_pairs(ctx, retry_failures=retry_failures),
        judge_joint_pairs(ctx, retry_failures=retry_failures),
        score_relevance(ctx),
        score_traces(ctx),
        aggregate_nights(ctx),
    ]
    return {r.stage: r for r in done}


def score_of(ctx: Context, *traces: dict[str, Any]) -> dict[str, dict[str, Any]]:
    put(ctx, *traces)
    complete(ctx)
    return {r["trace_id"]: r for r in rows(ctx, TRACE_SCORES, ctx.recipe)}


class TestMethods:
    def test_what_has_no_answer_has_no_number(self, tmp_path: Path) -> None:
        ctx = context(tmp_path, judge=Watched(rule))
        found = score_of(
            ctx,
            trace("no context", "Alpha is so.", {}),
            trace("no claims", "# Alpha", CHUNKS),
            trace("no verdict", "Broken one.", CHUNKS),
            trace("no opinion", "Unsure one.", CHUNKS),
            trace("both", "Broken one. Unsure one.", CHUNKS),
            trace("some", "Broken one. Alpha is so.", CHUNKS),
        )
        status = {t: r["groundedness_status"] for t, r in found.items()}
        assert status == {
            "no context": "na", "no claims": "na", "no verdict": "unjudged", "no opinion": "abstained",
            "both": "unjudged", "some": "scored",
        }  # fmt: skip
        for name, row in found.items():
            numbers = [row[c] for c in ("groundedness_score", "faithfulness", "utilization", "chunks_used")]
            assert numbers == ([100.0, 1.0, 0.5, 1] if name == "some" else [None] * 4), name
            assert row["answer_relevance_status"] == "scored"  # a trace without context still gets it
        assert (found["no context"]["context_relevance_status"], found["no context"]["context_relevance"]) == (
            "na",
            None,
        )
        # the claims of a trace without context are on record as such, not as unsupported
        results = {r["trace_id"]: r for r in rows(ctx, CLAIM_RESULTS)}
        assert (results["no context"]["status"], results["no context"]["label"]) == ("na", None)
        some = found["some"]
        assert (some["claims_total"], some["claims_judged"], some["claims_unjudged"]) == (2, 1, 1)

    @pytest.mark.parametrize(
        ("scoring", "expected"), [({}, 0.0), ({"misuse_penalty": 1, "partial_credit": 0.5}, 50 / 3)]
    )
    def test_the_worked_example(self, tmp_path: Path, scoring: dict, expected: float) -> None:
        # claims supported, misused, partially supported: (1 + c - p) / 3, clamped
        ctx = context(tmp_path, judge=Watched(rule), recipe={"scoring": scoring})
        row = score_of(ctx, trace("t", "Alpha is so [1]. Invented thing [1]. Partly so.", CHUNKS))["t"]
        assert row["groundedness_score"] == pytest.approx(expected)
        assert row["faithfulness"] == pytest.approx(1 / 3)
        counts = {c: row[f"claims_{c}"] for c in ("total", "judged", "supported", "partial", "unsupported", "misused")}
        assert counts == {"total": 3, "judged": 3, "supported": 1, "partial": 1, "unsupported": 1, "misused": 1}

    def test_drift_synthesis_and_utilization(self, tmp_path: Path) -> None:
        # four words: two of the three chunks are shown together
        ctx = context(tmp_path, judge=Watched(rule), recipe={"pairing": {"joint_words": 4}})
        chunks = CHUNKS | {"c": "gamma facts."}
        row = score_of(ctx, trace("t", "Alpha is so [2].\n\nBoth are so.\n\nDenied thing [9].", chunks))["t"]
        drift, joint, denied = rows(ctx, CLAIM_RESULTS)
        # it cites b, and a supports it
        assert (drift["label"], drift["misused"], drift["deciding_chunk_id"]) == ("supported", True, "a")
        assert drift["patterns"] == ["citation_drift"]
        # neither a nor b suffices, together they do
        assert (joint["label"], sorted(joint["deciding_chunk_ids"]), joint["misused"]) == (
            "supported",
            ["a", "b"],
            False,
        )
        assert (denied["label"], denied["patterns"]) == ("contradicted", ["dangling_citation"])
        # two supported, one misused at p = 2, of three: 100 · (2 - 2) / 3
        assert row["groundedness_score"] == 0.0
        assert (row["chunks_used"], row["chunks_unused"], row["citations_dangling"]) == (2, ["c"], 1)
        assert row["utilization"] == pytest.approx(2 / 3)

    def test_the_diagnosis_is_the_first_layer_that_failed(self, tmp_path: Path) -> None:
        # directions in the plane; the question points to (1, 0), and 0.5 is asked of both relevances
        axes = {"far": (0.0, 1.0), "near": (1.0, 0.0)}
        embedder = Directions(lambda text: next((v for k, v in axes.items() if k in text), (1.0, 0.0)))
        ctx = context(
            tmp_path,
            judge=Watched(rule),
            embedder=embedder,
            recipe={"triad": {"context_relevance": 0.5, "answer_relevance": 0.5}},
        )
        found = score_of(
            ctx,
            trace("retrieval", "Alpha far.", {"a": "alpha far"}),
            trace("generator", "Invented far.", {"a": "alpha near"}),
            trace("prompt", "Alpha far.", {"a": "alpha near"}),
            trace("healthy", "Alpha near.", {"a": "alpha near"}),
            trace("open", "Broken near.", {"a": "alpha near"}),
            trace("bare", "Alpha near.", {}),
            trace("declined", "The documents do not say.", {"a": "alpha near"}),
            trace("no chunk", "The documents do not say.", {"a": "alpha far"}),
        )
        diagnoses = {t: r["diagnosis"] for t, r in found.items()}
        assert diagnoses == {t: t for t in ("retrieval", "generator", "prompt", "healthy")} | {
            "open": None,
            "bare": None,
            "declined": "declined",
            "no chunk": "retrieval",  # it can't but decline
        }
        for declined in (found["declined"], found["no chunk"]):  # neither grounded nor relevant, and no zero
            assert [declined[c] for c in ("groundedness_na", "answer_relevance_status", "answer_relevance")] == [
                "refusal",
                "na",
                None,
            ]
        assert found["retrieval"]["chunks_relevant"] == 0
        assert found["healthy"]["chunks_relevant"] == 1
        shares = {r["diagnosis"]: (r["n"], r["share"]) for r in rows(ctx, NIGHTLY_TRIAD)}
        layers = ("generator", "prompt", "healthy", "declined")  # of six that have a diagnosis
        expected = {d: (1, pytest.approx(1 / 6)) for d in layers} | {"retrieval": (2, pytest.approx(1 / 3))}
        assert shares == expected | {"none": (2, None)}

    def test_two_chunks_do_not_give_a_third_fact(self, tmp_path: Path) -> None:
        """docs/methods.md#labels: what chunks jointly entail is supported, a third fact that neither gives is not."""
        third = {"Both and more": "gamma facts."}

        def strict(request: Request) -> str | Verdict:
            wanted = [fact for words, fact in third.items() if words in request.hypothesis]
            return "unsupported" if wanted and wanted[0] not in request.premise else rule(request)

        ctx = context(tmp_path, judge=(judge := Watched(strict)))
        score_of(ctx, trace("t", "Both are so [1][2]. Both and more are so [1][2].", CHUNKS))
        entailed, third_fact = rows(ctx, CLAIM_RESULTS)
        assert (entailed["label"], entailed["misused"]) == ("supported", False)
        assert (third_fact["label"], third_fact["misused"]) == ("unsupported", True)
        together = [r.hypothesis for r in judge.asked if "alpha" in r.premise and "beta" in r.premise]
        assert sorted(together) == ["Both and more are so", "Both are so"]  # it was judged with both, too

    def test_the_waterfall_stops_a_trace_at_the_first_stage_that_it_does_not_pass(self, tmp_path: Path) -> None:
        # directions as above; the question is "How hot is tea?", and chunks without its words can't answer it
        axes = {"far": (0.0, 1.0), "near": (1.0, 0.0)}
        embedder = Directions(lambda text: next((v for k, v in axes.items() if k in text), (1.0, 0.0)))
        thresholds = {"retrieval": 0.5, "answerability": 0.5, "faithfulness": 0.5, "answer_relevance": 0.5}
        ctx = context(tmp_path, judge=Watched(rule), embedder=embedder, recipe={"waterfall": thresholds})
        found = score_of(
            ctx,
            trace("retrieval", "Alpha near.", {"a": "alpha far, hot tea"}),
            trace("answerability", "Alpha near.", {"a": "alpha near"}),
            trace("faithfulness", "Alpha near. Invented near.", {"a": "alpha near, hot tea"}),
            trace("answer_relevance", "Alpha far.", {"a": "alpha near, hot tea"}),
            trace("sent", "Alpha near.", {"a": "alpha near, hot tea"}),
            trace("open", "Alpha near. Broken near.", {"a": "alpha near, hot tea"}),
            trace("bare", "Alpha near.", {}),
        )
        stages = ("retrieval", "answerability", "faithfulness", "answer_relevance", "sent")
        stopped = {t: (r["waterfall"], r["waterfall_uncertain"]) for t, r in found.items()}
        assert stopped == {t: (t, False) for t in stages} | {
            "open": ("faithfulness", True),
            "bare": ("retrieval", True),
        }
        assert {t: found[t]["weakest_support"] for t in ("sent", "faithfulness", "open", "bare")} == {
            "sent": 0.9, "faithfulness": None, "open": None, "bare": None,  # a label stops it, whatever its probability
        }  # fmt: skip

    def test_a_night_averages_what_is_scored_and_counts_the_rest(self, tmp_path: Path) -> None:
        ctx = context(tmp_path, judge=Watched(rule))
        score_of(
            ctx,
            trace("t1", "Alpha is so.", CHUNKS),
            trace("t2", "Alpha is so. Invented thing.", CHUNKS),
            trace("t3", "Alpha is so.", {}),
            trace("t4", "Broken one.", CHUNKS),
            trace("t5", "Unsure one.", CHUNKS),
            trace("t6", "Invented thing.", CHUNKS, generator="other"),
        )
        night = {r["generator"]: r for r in rows(ctx, NIGHTLY_GROUNDEDNESS)}
        counts = {c: night["g-1"][c] for c in ("n", "n_scored", "n_na", "n_unjudged", "n_abstained")}
        assert counts == {"n": 5, "n_scored": 2, "n_na": 1, "n_unjudged": 1, "n_abstained": 1}
        assert night["g-1"]["groundedness_mean"] == 75.0  # of 100 and 50
        assert (night["other"]["groundedness_mean"], night["other"]["groundedness_low"]) == (0.0, None)
        used = {r["generator"]: r["utilization_mean"] for r in rows(ctx, NIGHTLY_UTILIZATION)}
        assert used == {"g-1": 0.5, "other": 0.0}
        relevance = {(r["generator"], r["kind"]): (r["n_scored"], r["n_na"]) for r in rows(ctx, NIGHTLY_RELEVANCE)}
        assert relevance[("g-1", "answer")] == (5, 0)
        assert relevance[("g-1", "context")] == (4, 1)


class TestAgain:
    def test_nothing_is_scored_twice(self, tmp_path: Path) -> None:
        ctx = context(tmp_path, judge=Watched(rule), last=NEXT)
        put(ctx, trace("t1", "Alpha is so.", CHUNKS))
        put(ctx, trace("t2", "Alpha is so.", CHUNKS, day=NEXT))
        first, second = complete(ctx), complete(ctx)
        assert [(first[s].computed, second[s].computed, second[s].reused) for s in ("scores", "nightly")] == [
            (2, 0, 2)
        ] * 2

    def test_a_repaired_failure_is_scored_again_and_its_night_with_it(self, tmp_path: Path) -> None:
        judge = Watched(rule)
        ctx = context(tmp_path, judge=judge, last=NEXT)
        put(ctx, trace("t1", "Broken one.", CHUNKS))
        put(ctx, trace("t2", "Alpha is so.", CHUNKS, day=NEXT))
        complete(ctx)
        judge.rule = lambda request: "supported"
        done = complete(ctx, retry_failures=True)
        assert [(done[s].computed, done[s].reused) for s in ("scores", "nightly")] == [(1, 1), (1, 1)]
        assert {r["trace_id"]: r["groundedness_score"] for r in rows(ctx, TRACE_SCORES)} == {"t1": 100.0, "t2": 100.0}
        assert [r["n_unjudged"] for r in rows(ctx, NIGHTLY_GROUNDEDNESS)] == [0, 0]

    def test_a_part_that_comes_later_changes_its_night_alone(self, tmp_path: Path) -> None:
        ctx = context(tmp_path, judge=Watched(rule), last=NEXT)
        put(ctx, trace("t1", "Alpha is so.", CHUNKS))
        put(ctx, trace("t2", "Alpha is so.", CHUNKS, day=NEXT))
        complete(ctx)
        put(ctx, trace("t3", "Invented thing.", CHUNKS), name="ffffffffffffffff-00000")
        done = complete(ctx)
        assert (done["scores"].computed, done["nightly"].computed, done["nightly"].reused) == (1, 1, 1)
        assert [r["groundedness_mean"] for r in rows(ctx, NIGHTLY_GROUNDEDNESS)] == [50.0, 100.0]

    def test_another_scoring_parameter_pays_no_verdict_and_leaves_the_old_rows(self, tmp_path: Path) -> None:
        old = context(tmp_path, judge=Watched(rule))
        put(old, trace("t1", "Alpha is so [1]. Invented thing [1]. Partly so.", CHUNKS))
        complete(old)
        tables = (CLAIM_RESULTS, TRACE_SCORES, NIGHTLY_GROUNDEDNESS, VERDICTS)
        before = {p.path: p.path.read_bytes() for t in tables for p in old.lake.parts(t)}
        new = context(tmp_path, judge=Watched(rule), recipe={"scoring": {"misuse_penalty": 1, "partial_credit": 0.5}})
        done = complete(new)
        assert new.judges[0].judge.calls == []  # type: ignore[attr-defined]
        assert (done["verdicts"].computed, done["relevance"].computed, done["scores"].computed) == (0, 0, 1)
        assert {path: path.read_bytes() for path in before} == before
        scores = {r["recipe"]: r["groundedness_score"] for r in rows(new, TRACE_SCORES)}
        assert scores == {old.recipe: 0.0, new.recipe: pytest.approx(50 / 3)}
        assert {r["recipe"] for r in rows(new, NIGHTLY_GROUNDEDNESS)} == {old.recipe, new.recipe}
        assert len(rows(new, RECIPES)) == 2
        assert len(rows(new, JUDGES)) == 1


class TestGate:
    """A judge with a bug: its probability is 1.7 where a claim is called Wild."""

    @staticmethod
    def wild(request: Request) -> str | Verdict:
        if "Wild" in request.hypothesis:
            return Verdict("", "supported", p_supported=1.7, p_contradicted=0.0)
        return rule(request)

    def ready(self, root: Path, share: float) -> Context:
        ctx = context(root, judge=Watched(self.wild), gates={"max_quarantined_share": share})
        put(ctx, trace("good", "Alpha is so.", CHUNKS), trace("bad", "Alpha is so. Wild thing.", CHUNKS))
        return ctx

    def test_a_trace_with_an_impossible_result_is_refused_whole(self, tmp_path: Path) -> None:
        ctx = self.ready(tmp_path, 0.5)
        done = complete(ctx)
        assert done["scores"].computed == 1
        assert done["scores"].notes == ("The results of 1 traces were refused; see quarantine.",)
        assert [r["trace_id"] for r in rows(ctx, TRACE_SCORES)] == ["good"]
        assert {r["trace_id"] for r in rows(ctx, CLAIM_RESULTS)} == {"good"}  # its sound claim goes with it
        (row,) = rows(ctx, QUARANTINE)
        assert (row["stage"], row["reason"], row["trace_id"], row["source"]) == (
            "results", "score_out_of_bounds", "bad", "trace_scores",
        )  # fmt: skip
        assert "1.7" in row["detail"]
        assert "Wild" not in row["detail"] + row["raw"]
        assert [r["n"] for r in rows(ctx, NIGHTLY_GROUNDEDNESS)] == [1]

    def test_too_many_of_them_stop_the_run_however_often_it_is_tried(self, tmp_path: Path) -> None:
        ctx = self.ready(tmp_path, 0.05)
        ctx = replace(ctx, gates=GateKeeper(ctx.config.gates, tmp_path / "gates"))
        message = (
            "the results of 1 of 2 traces break the rules of their tables, more than gates.max_quarantined_share = 5.0%"
        )
        for _ in range(2):  # the second time the good trace's score is there already
            with pytest.raises(DataError, match=message) as caught:
                complete(ctx)
            assert caught.value.exit_code == 3
            assert rows(ctx, NIGHTLY_GROUNDEDNESS) == []
        assert "score_out_of_bounds" in (tmp_path / "gates" / "index.html").read_text()

    def test_a_raised_limit_lets_the_next_run_pass(self, tmp_path: Path) -> None:
        with pytest.raises(DataError):
            complete(self.ready(tmp_path, 0.05))
        done = complete(self.ready(tmp_path, 0.5))
        assert done["scores"].notes == ("The results of 1 traces were refused; see quarantine.",)

    def test_a_mended_verdict_empties_the_quarantine(self, tmp_path: Path) -> None:
        ctx = self.ready(tmp_path, 0.5)
        complete(ctx)
        for part in ctx.lake.parts(VERDICTS):
            part.path.unlink()
        repaired = Watched(rule)
        sound = judged_by(ctx, repaired)
        for table in (CLAIM_RESULTS, TRACE_SCORES):
            for part in ctx.lake.parts(table):
                part.path.unlink()
        complete(sound)
        assert rows(ctx, QUARANTINE) == []
        assert {r["trace_id"] for r in rows(ctx, TRACE_SCORES)} == {"good", "bad"}

    def test_a_mistake_in_the_sql_is_caught(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        ctx = context(tmp_path, judge=Watched(rule))
        put(ctx, trace("t", "Alpha is so.", CHUNKS))
        real = query.sql
        assert "least(100," in real("scoring/trace_scores")
        monkeypatch.setattr(query, "sql", lambda name: real(name).replace("least(100,", "2 * least(100,"))
        with pytest.raises(DataError, match="1 of 1 traces"):
            complete(ctx)
        assert [(r["trace_id"], r["reason"]) for r in rows(ctx, QUARANTINE)] == [("t", "score_out_of_bounds")]


def test_judges_and_recipes_say_what_the_hashes_stand_for(tmp_path: Path) -> None:
    ctx = context(tmp_path, judge=Watched(rule))
    put(ctx, trace("t", "Alpha is so.", CHUNKS))
    complete(ctx)
    (judge,), (recipe,) = rows(ctx, JUDGES), rows(ctx, RECIPES)
    assert (judge["judge_version"], judge["name"], judge["kind"]) == (ctx.judge_version, "judge", "watched")
    assert (recipe["recipe"], recipe["judge_version"]) == (ctx.recipe, ctx.judge_version)
    assert recipe["scorer_versions"] == [scorer.version for scorer in ctx.scorers]
    (scored,) = rows(ctx, TRACE_SCORES)
    assert (scored["recipe"], scored["judge_version"], scored["date"]) == (ctx.recipe, ctx.judge_version, DAY)


def test_a_night_without_traces_is_reported(tmp_path: Path) -> None:
    """Logs that did not arrive must not look like a night on which all was well."""
    ctx = context(tmp_path, last=NEXT)
    put(ctx, trace("t", "Alpha.", {"a": "alpha"}))
    assert complete(ctx)["nightly"].notes == (f"No traces of {NEXT}: check that the logs arrived.",)
    put(ctx, trace("u", "Alpha.", {"a": "alpha"}, day=NEXT))
    assert complete(ctx)["nightly"].notes == ()
