"""Noise: what was judged is judged again, once, and the measured noise is the noise that was planted."""

import hashlib
import math
import string
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from kit.stage_kit import DAY, NEXT, Watched, context, put, rows, trace

from tasks.analysis.noise import agreement, measure, score_noise
from tasks.claims.extract import extract_claims
from tasks.core.errors import UsageError
from tasks.core.schemas import JUDGE_NOISE, TRACE_SCORES, VERDICTS
from tasks.core.types import OUTAGE, Request, Verdict
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_relevance
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.run.context import Context
from tasks.run.result import StageResult
from tasks.scoring.nightly import aggregate_nights
from tasks.scoring.score import score_traces

CHUNKS = {"a": "Apples are red."}
TRACES = 150


def complete(ctx: Context) -> dict[str, StageResult]:
    stages = (
        extract_claims, plan_pairs, judge_pairs, judge_joint_pairs, score_relevance, score_traces, aggregate_nights,
    )  # fmt: skip
    return {r.stage: r for r in (stage(ctx) for stage in stages)}


def draw(*parts: str) -> float:
    """A number in [0, 1) that looks random and is always the same."""
    return int(hashlib.sha256("/".join(parts).encode()).hexdigest()[:12], 16) / 16**12


class Moody:
    """A rule that gives every request a label, and from the second time on another one, as often as is planted."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.seen: set[str] = set()
        self.flipped = 0

    def __call__(self, request: Request) -> str:
        supported = draw("label", request.key) < 0.5
        if request.key in self.seen and draw("flip", request.key) < self.share:
            self.flipped += 1
            supported = not supported
        self.seen.add(request.key)
        return "supported" if supported else "unsupported"


def crowd(root: Path, judge: Watched, traces: int = TRACES) -> Context:
    """Answers of two claims each about one chunk: two requests a trace, and no joint pair."""
    ctx = context(root, judge=judge)
    put(ctx, *(trace(f"t{i}", f"Pear {i} is ripe. Plum {i} is blue.", CHUNKS, question=f"{i}?") for i in range(traces)))
    complete(ctx)
    return ctx


def again(ctx: Context) -> list[str]:
    return [r["request_key"] for r in rows(ctx, VERDICTS) if r["sample"] == 1]


def test_the_planted_noise_is_found(tmp_path: Path) -> None:
    """A fifth of the labels flips.

    Each of a trace's two claims moves its score by 50 with probability 0.2, and so the mean square of a trace's changes
    is 2 · 0.2 · 2500 = 1000: the noise of one score is √(1000 / 2) = 22.4. Over 150 traces the mean square has a
    standard error of √((4·10⁶ − 10⁶) / 150) = 141, so the noise one of 7%; 3.5 of them are a quarter.
    """
    rule = Moody(0.2)
    ctx = crowd(tmp_path, Watched(rule))
    _, row = measure(ctx, ctx.judges, 2 * TRACES)
    assert (row["n_traces"], row["n_asked"], row["n"], row["n_failed"]) == (TRACES, 2 * TRACES, 2 * TRACES, 0)
    assert row["agreement"] == pytest.approx(1 - rule.flipped / (2 * TRACES))  # it was asked, and counted, as planted
    assert row["agreement_low"] < 0.8 < row["agreement_high"]
    assert sum(f["n"] for f in row["flips"]) == rule.flipped
    assert {(f["first"], f["second"]) for f in row["flips"]} == {
        ("supported", "unsupported"),
        ("unsupported", "supported"),
    }
    # Labels are half and half, so chance agrees on half: κ = (0.8 − 0.5) / 0.5, and 0.12 is twice what the rest varies.
    assert row["kappa"] == pytest.approx(0.6, abs=0.12)
    # A flip moves p_supported from 0.9 to 0.1 or back; others don't move it.
    assert row["p_change"] == pytest.approx(0.8 * (1 - row["agreement"]))
    assert row["trace_sd"] == pytest.approx(math.sqrt(500), rel=0.25)
    assert (row["n_scored"], row["night_traces"]) == (TRACES, TRACES)
    assert row["night_sd"] == pytest.approx(row["trace_sd"] / math.sqrt(TRACES))
    (stored,) = rows(ctx, JUDGE_NOISE)
    assert stored == {**row, "measured_at": stored["measured_at"]}


def test_a_judge_that_repeats_itself_has_no_noise(tmp_path: Path) -> None:
    ctx = crowd(tmp_path, Watched(Moody(0)), 10)
    _, row = measure(ctx, ctx.judges, 10)
    assert (row["agreement"], row["agreement_high"], row["kappa"]) == (1, 1, 1)
    # Five questions of two requests each, all the same: Wilson of 5 in 5 at n = 4, from n / (n + z²) on.
    assert row["agreement_low"] == pytest.approx(4 / (4 + 1.959964**2))
    assert (row["p_change"], row["flips"], row["change"], row["trace_sd"], row["night_sd"]) == (0, [], 0, 0, 0)


def test_nothing_is_asked_a_third_time_and_a_larger_sample_holds_the_smaller(tmp_path: Path) -> None:
    ctx = crowd(tmp_path, judge := Watched(Moody(0.2)), 20)
    done, row = measure(ctx, ctx.judges, 11)  # of whole traces of two requests each
    assert (done.computed, done.reused, row["n_asked"], row["n_traces"]) == (12, 0, 12, 6)
    before = set(again(ctx))
    done, same = measure(ctx, ctx.judges, 11)
    assert (done.computed, done.reused) == (0, 12)
    assert same == {**row, "measured_at": same["measured_at"]}
    assert len(rows(ctx, JUDGE_NOISE)) == 1
    done, _ = measure(ctx, ctx.judges, 20)
    assert (done.computed, done.reused) == (8, 12)
    assert before < set(again(ctx))
    assert len(again(ctx)) == len(set(again(ctx))) == 20
    done, row = measure(ctx, ctx.judges, 1000)  # all that there are
    assert (row["n_asked"], len(judge.asked)) == (40, 80)


def test_the_night_s_results_stay_those_of_the_first_verdicts(tmp_path: Path) -> None:
    ctx = crowd(tmp_path, Watched(Moody(1)), 5)
    before = rows(ctx, TRACE_SCORES)
    measure(ctx, ctx.judges, 100)
    for part in ctx.lake.parts(TRACE_SCORES):
        part.path.unlink()
    done = complete(ctx)
    assert (done["verdicts"].computed, done["scores"].computed) == (0, 5)
    assert rows(ctx, TRACE_SCORES) == before


def test_failures_are_counted_and_stay_while_an_outage_is_asked_again(tmp_path: Path) -> None:
    """Of two traces one fails the second time: its claim would be unjudged, so that it has no score to compare."""
    ctx = context(tmp_path, judge=(judge := Watched()))
    put(ctx, trace("t1", "Pears are ripe.", CHUNKS), trace("t2", "Plums are blue.", CHUNKS))
    complete(ctx)
    judge.rule = lambda r: Verdict("", failure="unparsable" if "Pears" in r.hypothesis else OUTAGE, raw="")
    done, row = measure(ctx, ctx.judges, 2)
    assert (done.computed, done.lost, row["n_failed"], row["n"], row["n_scored"]) == (1, 1, 2, 0, 0)
    assert done.notes == ("1 requests could not be made (outage); the next run makes them again.",)
    assert [row[c] for c in ("agreement", "agreement_low", "kappa", "p_change", "trace_sd", "night_sd")] == [None] * 6
    judge.rule = lambda r: "unsupported"
    done, row = measure(ctx, ctx.judges, 2)
    assert (done.computed, done.lost, row["n_failed"], row["n"], row["agreement"]) == (1, 0, 1, 1, 0)
    assert (row["n_scored"], row["change"]) == (1, -100)  # supported, and then not


def test_what_had_no_label_is_not_asked_again(tmp_path: Path) -> None:
    def rule(request: Request) -> str | Verdict:
        return Verdict("", failure="unparsable", raw="") if "Pears" in request.hypothesis else "supported"

    ctx = context(tmp_path, judge=Watched(rule))
    put(ctx, trace("t1", "Pears are ripe. Plums are blue.", CHUNKS))
    complete(ctx)
    done, row = measure(ctx, ctx.judges, 10)
    assert (done.computed, row["n_asked"]) == (1, 1)
    assert row["n_scored"] == 1


def test_a_verdict_that_two_days_share_is_asked_again_once(tmp_path: Path) -> None:
    judge = Watched()
    ctx = context(tmp_path, judge=judge, last=NEXT)
    put(ctx, trace("t1", "Pears are ripe.", CHUNKS))
    put(ctx, trace("t2", "Pears are ripe.", CHUNKS, day=NEXT))
    complete(ctx)
    assert len(judge.asked) == 1
    _, row = measure(ctx, ctx.judges, 10)
    assert (len(judge.asked), row["n_asked"], row["n"], row["n_traces"], row["n_scored"]) == (2, 1, 1, 2, 2)
    complete(ctx)
    assert len(judge.asked) == 2  # the first verdict still serves both days


def test_a_later_judge_of_a_cascade_is_measured_by_itself(tmp_path: Path) -> None:
    cheap, expensive = Watched(lambda r: "partially_supported"), Watched(Moody(1), version="f" * 16)
    recipe = {"cascade": [{"judge": "judge2.yaml", "band": [0.2, 0.8]}]}
    ctx = context(tmp_path, judge=cheap, later=[expensive], recipe=recipe)
    put(ctx, trace("t1", "Pears are ripe.", CHUNKS), trace("t2", "Plums are blue.", CHUNKS))
    extract_claims(ctx)
    plan_pairs(ctx)
    for stage in (1, 2):
        judge_pairs(ctx, stage=stage)
        judge_joint_pairs(ctx, stage=stage)
    for rest in (score_relevance, score_traces, aggregate_nights):
        rest(ctx)
    asked = len(cheap.asked)
    _, row = measure(ctx, ctx.judges[1:], 10)
    assert (row["judge_version"], row["n"], row["agreement"]) == ("f" * 16, 2, 0)
    assert row["trace_sd"] == pytest.approx(math.sqrt(100**2 / 2))  # each trace's one claim turns round
    assert len(cheap.asked) == asked


def test_both_rounds_of_method_citations_are_asked_again(tmp_path: Path) -> None:
    """One cited and one uncited segment, both true at first and both false the second time: the score falls from 1 to 0."""
    labels = iter(["supported"] * 2 + ["unsupported"] * 2)
    recipe = {"method": "citations", "extractor": {"kind": "segments"}, "pairing": {"kind": "cited_together"}}
    ctx = context(tmp_path, judge=Watched(lambda r: next(labels)), recipe=recipe)
    put(ctx, trace("t1", "Apples are red [a].\n\nIn short, red.", CHUNKS))
    extract_claims(ctx)
    plan_pairs(ctx)
    for stage in (1, 2):
        judge_pairs(ctx, stage=stage, keep=True)
    for rest in (score_relevance, score_traces, aggregate_nights):
        rest(ctx)
    _, row = measure(ctx, ctx.judges, 10)
    assert (row["number"], row["n"], row["agreement"], row["change"]) == ("citation_groundedness", 2, 0, -1)
    assert (row["trace_sd"], row["night_traces"]) == (pytest.approx(math.sqrt(0.5)), 1)


def test_without_verdicts_there_is_nothing_to_measure(tmp_path: Path) -> None:
    ctx = context(tmp_path, judge=Watched())
    put(ctx, trace("t1", "Pears are ripe.", CHUNKS))
    with pytest.raises(UsageError, match=rf"has no verdicts of {DAY} to {DAY} .* Run leadline nightly"):
        measure(ctx, ctx.judges, 10)


def verdicts(labels: str) -> pl.DataFrame:
    names = {"S": "supported", "U": "unsupported", "-": None}
    p = [0.5, *[None] * (len(labels) - 1)]
    keys = [str(i) for i in range(len(labels))]
    return pl.DataFrame({"request_key": keys, "label": [names[c] for c in labels], "p_supported": p})


def asked_in(questions: str) -> pl.DataFrame:
    """The question of each request, a letter each."""
    return pl.DataFrame({"request_key": [str(i) for i in range(len(questions))], "question": list(questions)})


def test_agreement_by_hand() -> None:
    """Of 50 pairs 20 are S S, 5 S U, 10 U S, 15 U U: 0.7 are equal, chance makes 0.5·0.6 + 0.5·0.4 = 0.5, κ = 0.4."""
    first, second = verdicts("S" * 25 + "U" * 25 + "S"), verdicts("S" * 20 + "U" * 5 + "S" * 10 + "U" * 15 + "-")
    found = agreement(first, second, asked_in(string.printable[:51]))
    assert (found["n_asked"], found["n"], found["n_failed"]) == (51, 50, 1)
    assert (found["agreement"], found["kappa"]) == (0.7, pytest.approx(0.4))
    assert found["flips"] == [
        {"first": "supported", "second": "unsupported", "n": 5},
        {"first": "unsupported", "second": "supported", "n": 10},
    ]
    # Wilson at n = 49: (0.7 + z²/98 ∓ z·√(0.21/49 + z²/9604)) / (1 + z²/49) = 0.68546 ∓ 0.12441
    assert (found["agreement_low"], found["agreement_high"]) == pytest.approx((0.56105, 0.80987), abs=2e-5)
    assert found["p_change"] == 0  # one pair has both


def test_requests_of_one_question_are_no_independent_ones() -> None:
    """Ten requests of five questions, which are the same in two questions and others in three: as 2 of 5 are."""
    found = agreement(verdicts("S" * 10), verdicts("S" * 4 + "U" * 6), asked_in("aabbccddee"))
    assert found["agreement"] == 0.4
    assert (found["agreement_low"], found["agreement_high"]) == pytest.approx((0.10262, 0.79536), abs=1e-5)
    alone = agreement(verdicts("SS"), verdicts("SU"), asked_in("qq"))
    assert (alone["agreement"], alone["agreement_low"]) == (0.5, None)


def test_kappa_is_undefined_where_all_labels_are_the_same() -> None:
    assert agreement(verdicts("SSS"), verdicts("SSS"), asked_in("abc"))["kappa"] is None


def test_score_noise_by_hand() -> None:
    """Changes 0, 10, −10, 0: mean square 50, half of it is 25; over 100 traces a tenth of its root."""
    found = score_noise(np.array([0.0, 10, -10, 0]), 100)
    assert (found["n_scored"], found["change"], found["trace_sd"], found["night_sd"]) == (4, 0, 5, 0.5)
