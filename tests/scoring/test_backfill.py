"""The bar of a backfill: each single pair of a day moves it once, however often a stage of the day begins again."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from kit.stage_kit import DAY, NEXT, Watched, context, judged_by, put, trace

from tasks.claims.extract import extract_claims
from tasks.core.budget import Budget
from tasks.judging.pairs import plan_pairs
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.scoring.backfill import days


class Counting:
    """Progress that adds up its steps."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.steps = 0

    def start(self, stage: str, total: int | None) -> None:
        self.stages.append(stage)

    def advance(self, steps: int = 1) -> None:
        self.steps += steps

    def finish(self) -> None:
        """Nothing is held."""


def test_a_stage_that_gives_way_and_goes_on_is_counted_once(tmp_path: Path) -> None:
    bar, asked = Counting(), iter([False, True, False, True])  # between shards, another run wants the GPU now and then
    budget = Budget(wanted=lambda: next(asked, False))
    ctx = context(tmp_path, judge=Watched(), last=NEXT, limits={"shard_requests": 2})
    put(ctx, *(trace(f"t{n}", f"Tea {n} is hot. Ice {n} is cold.") for n in range(3)), name="0-0")
    put(ctx, *(trace(f"u{n}", f"Tea {n} is wet.", day=NEXT) for n in range(2)), name="0-1")
    extract_claims(ctx)
    plan_pairs(ctx)
    found = days(replace(ctx, progress=bar, budget=budget))
    assert [(day.date, day.pairs) for day in found] == [(NEXT, 2), (NEXT - timedelta(days=1), 6)]
    bar.steps, bar.stages = 0, []
    for day in found:
        budget.gave_way = True
        while budget.gave_way:
            budget.gave_way = False
            judge_pairs(day.ctx)
        judge_joint_pairs(day.ctx)  # of no chunks beside the first: nothing of the range's looks
    assert next(asked, None) is None  # it gave way twice
    assert (bar.steps, bar.stages) == (8, [])  # no bar but the range's own


def test_a_day_that_was_judged_before_is_counted_too(tmp_path: Path) -> None:
    bar = Counting()
    ctx = judged_by(context(tmp_path), Watched())
    put(ctx, trace("t", "Tea is hot. Ice is cold."))
    extract_claims(ctx)
    plan_pairs(ctx)
    judge_pairs(ctx)
    (day,) = days(replace(ctx, progress=bar))
    judge_pairs(day.ctx)
    assert (day.date, day.pairs, bar.steps) == (DAY, 2, 2)
