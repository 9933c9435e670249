"""The estimate: what it counts is what is then judged."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from kit.stage_kit import NEXT, Watched, context, judged_by, put, trace

from tasks.claims.extract import extract_claims
from tasks.core.schemas import RUNS
from tasks.judging.estimate import estimate
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_relevance
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.run.context import Context
from tasks.run.record import Record
from tasks.run.result import StageResult

CHUNKS = {"a": "Apples are red.", "b": "Bananas are yellow."}


def ready(root: Path, judge: Watched, **config) -> Context:
    ctx = context(root, judge=judge, last=NEXT, **config)
    # the same claim beside other chunks, the same text twice in a part and again on the next day, a trace without chunks
    put(
        ctx,
        trace("t1", "Apples grow. Figs grow.", CHUNKS),
        trace("t2", "Apples grow.", CHUNKS),
        trace("t3", "Apples grow.", {"c": "Cherries are small.", "d": "Dates are sweet."}),
        trace("t4", "Figs grow.", {}),
    )
    put(ctx, trace("t5", "Apples grow.", CHUNKS, day=NEXT), trace("t6", "Plums grow.", {"a": "One."}, day=NEXT))
    extract_claims(ctx)
    plan_pairs(ctx)
    return ctx


@pytest.mark.parametrize("label", ["supported", "unsupported", "abstained"])
def test_counts_equal_what_is_then_done(tmp_path: Path, label: str) -> None:
    ctx = ready(tmp_path, Watched(lambda request: label))
    found = estimate(ctx)
    assert ctx.judges[0].judge.calls == []  # type: ignore[attr-defined]
    done = judge_pairs(ctx)
    assert found.judges[0].verdicts == done.computed == 2 * 2 + 2 + 1  # t1; t3; t6: t2 and t5 say nothing new
    assert judge_joint_pairs(ctx).computed <= found.judges[0].joint_pairs
    # an answer each, the chunks, and answerability where there are chunks
    assert found.relevance == score_relevance(ctx).computed == 6 + 9 + 5
    assert found.scores == 6


def test_half_done_work_is_not_counted_again(tmp_path: Path) -> None:
    judge = Watched(lambda request: "unsupported", up_for=1)
    ctx = ready(tmp_path, judge, limits={"shard_requests": 3})
    whole = estimate(ctx).judges[0].verdicts
    with pytest.raises(Exception, match="down"):
        judge_pairs(ctx)
    found = estimate(ctx)
    judge.up_for = None
    assert found.judges[0].verdicts == whole - 3 == judge_pairs(ctx).computed


def test_second_looks_are_never_more_than_reported(tmp_path: Path) -> None:
    # every claim needs both joint pairs: the best chunks are not the cited ones, and the claims read alike
    judge = Watched(lambda request: "partially_supported" if "best" in request.premise else "unsupported")
    ctx = context(tmp_path, judge=judge)
    for i in range(3):
        chunks = {"x": f"{i} plain.", "y": f"{i} plainer.", "z": f"{i} best.", "w": f"{i} also best."}
        put(ctx, trace(f"t{i}", "Tea is hot [1][2].", chunks), name=f"000000000000000{i}-00000")
    extract_claims(ctx)
    plan_pairs(ctx)
    found = estimate(ctx)
    judge_pairs(ctx)
    between = estimate(ctx)  # all single pairs are judged, the second ones not yet planned
    assert judge_joint_pairs(ctx).computed == 6 == found.judges[0].joint_pairs == between.judges[0].joint_pairs


def test_after_the_run_nothing_is_left(tmp_path: Path) -> None:
    ctx = ready(tmp_path, Watched(lambda request: "unsupported"))
    judge_pairs(ctx)
    judge_joint_pairs(ctx)
    score_relevance(ctx)
    found = estimate(ctx)
    assert (found.judges[0].verdicts, found.judges[0].joint_pairs, found.relevance, found.judges[0].tokens) == (
        0,
        0,
        0,
        0,
    )


def test_a_recipe_with_new_second_looks_counts_them_though_all_first_ones_are_known(tmp_path: Path) -> None:
    judge = Watched(lambda request: "unsupported")
    judge_pairs(ready(tmp_path, judge, recipe={"pairing": {"joint_words": 0}}))
    ctx = ready(tmp_path, judge)
    found = estimate(ctx)
    assert found.judges[0].verdicts == 0
    assert 0 < judge_joint_pairs(ctx).computed <= found.judges[0].joint_pairs
    none = ready(tmp_path, judge, recipe={"pairing": {"joint_words": 0}})
    assert estimate(none).judges[0].joint_pairs == 0


def test_tokens_and_minutes_follow_the_latest_run_of_this_judge(tmp_path: Path) -> None:
    ctx = ready(tmp_path, Watched())
    first = estimate(ctx)
    chars = sum(len(p) + len(h) for p, h in [
        *((p, h) for p in CHUNKS.values() for h in ("Apples grow.", "Figs grow.")),
        ("Cherries are small.", "Apples grow."), ("Dates are sweet.", "Apples grow."), ("One.", "Plums grow."),
    ])  # fmt: skip
    assert (first.judges[0].tokens, first.judges[0].minutes) == (
        chars // 4,
        None,
    )  # before anything was measured: 4 characters a token
    measured(ctx, 100, 10, seconds=5, tokens=1_000)
    later = estimate(ctx)
    assert later.judges[0].tokens == 7 * 10  # 1,000 tokens for 100 verdicts
    assert later.judges[0].minutes == pytest.approx(7 / 20 / 60)  # 100 verdicts in 5 s
    assert later.judges[0].gpu_minutes == pytest.approx(2 * 7 / 20 / 60)  # on two GPUs
    other = judged_by(ctx, Watched(version="f" * 16))
    assert estimate(other).judges[0].minutes is None  # another judge has another speed


def measured(ctx: Context, verdicts: int, ingested: int, *, seconds: float, tokens: int) -> None:
    run = Record("nightly", started=datetime(2026, 11, 3, tzinfo=UTC))
    run.start(ctx)
    run.stages += [
        StageResult("ingest", computed=ingested, seconds=50),
        StageResult(
            "verdicts", computed=verdicts, tokens_in=tokens, seconds=seconds, judge=ctx.judges[0].judge.version, gpus=2
        ),
    ]
    run.end(ctx, "completed")
    assert len(ctx.lake.parts(RUNS)) == 1
