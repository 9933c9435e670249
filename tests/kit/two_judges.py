"""Nights whose labels are known by construction: two judges with recorded verdicts.

Every trace is one claim and one chunk, so that a claim's label is the verdict on its one look.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml

from kit.worlds import FIRST, World, make_world, trace, write
from tasks.claims import extract as claims
from tasks.core.keys import request_key
from tasks.ingest import ingest
from tasks.judging import pairs, relevance, verdicts
from tasks.publish import publish
from tasks.run.build import build_context
from tasks.run.context import Context
from tasks.run.record import Record
from tasks.run.result import StageResult
from tasks.scoring import grace, nightly, score

SECOND = FIRST + timedelta(days=1)
S, C, U = "supported", "contradicted", "unsupported"
OLD = [S, S, S, S, S, S, S, S, U, U, U, U]  # what each judge says of claims 0 to 11
NEW = [S, S, S, S, S, S, C, C, S, S, U, U]
Stage = Callable[[Context], StageResult]
STAGES: tuple[Stage, ...] = (
    ingest.ingest, claims.extract_claims, grace.score_grace, pairs.plan_pairs, verdicts.judge_pairs,
    verdicts.judge_joint_pairs, relevance.score_relevance, score.score_traces, nightly.aggregate_nights,
)  # fmt: skip
BEYOND_LABELS: tuple[Stage, ...] = (grace.score_grace, relevance.score_relevance, nightly.aggregate_nights)
NASTY = "The [bold]rule[/bold] of `<script>alert(1)</script>` number 6 holds."


def claim(i: int) -> str:
    return NASTY if i == 6 else f"The rule of shelf number {i} holds."


def traces(day: date, first: int, count: int = 12) -> list[dict[str, Any]]:
    return [
        trace(
            f"t{day.day}-{i}",
            timestamp=f"{day}T12:00:00Z",
            app="docs" if i % 2 else "help",
            generator="large" if i < first + count // 2 else "small",
            prompt_version="v1" if i < first + count // 2 else "v2",
            question=f"Which rule is number {i % 6}?",
            answer=claim(i),
            chunks=[{"chunk_id": "1", "text": f"Passage {i}."}],
        )
        for i in range(first, first + count)
    ]


def judge(path: Path, labels: Sequence[str], seed: int) -> None:
    """A judge that says these labels of claims 0, 1, …; sure of itself where they matter."""
    rows = [
        {
            "key": request_key(f"Passage {i}.", claim(i).replace("`", "")),
            "label": label,
            "p_supported": 0.9 if label == S else 0.2,
            "p_contradicted": 0.95 if label == C else 0.05,
            "explanation": f"{path.stem} says [red]{label}[/red] of {i}",
        }
        for i, label in enumerate(labels)
    ]
    write(path.with_suffix(".jsonl"), rows)
    path.write_text(yaml.safe_dump({"kind": "replay", "records": path.with_suffix(".jsonl").name, "seed": seed}))


def night(world: World, judged_by: str, first: date, last: date, without: Collection[Stage] = ()) -> None:
    """What a nightly leaves in the warehouse, judged by one of the judges; without its report."""
    publish.publish_warehouse(judged(world, judged_by, first, last, without))


def judged(world: World, by: str, first: date, last: date, without: Collection[Stage] = ()) -> Context:
    """What it leaves in the lake."""
    config = yaml.safe_load(world.config.read_text())
    config["recipe"] |= {"judge": f"out/{by}.yaml", "name": "claims"}
    path = world.config.with_name(f"{by}.yaml")
    path.write_text(yaml.safe_dump(config))
    ctx = build_context(path, first, last)
    run = Record("nightly", recipes=[ctx.recipe])
    run.start(ctx)
    for stage in STAGES:
        if stage not in without:
            run.add(ctx, stage(ctx))
    run.end(ctx, "completed")
    return ctx


def two_days(root: Path, without: Collection[Stage] = ()) -> World:
    """Day one is judged by both; day two, with claims 6 to 11 alone, by the new one."""
    world = make_world(root)
    judge(world.out / "old.yaml", OLD, 1)
    judge(world.out / "new.yaml", NEW, 2)
    write(root / "logs" / "a.jsonl", [*traces(FIRST, 0), *traces(SECOND, 6, 6)])
    judged(world, "old", FIRST, FIRST, without)
    night(world, "new", FIRST, SECOND, without)
    return world
