"""A lake with all that a lake may hold, finished once and copied for each use, and every row of it."""

import json
import shutil
from collections.abc import Mapping, Set
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from flows.lake.privacy import run as retain
from kit.rule_generator import Scripted, asking
from kit.suite_kit import line, write_suite
from kit.worlds import DIFFERING, FIRST, World, all_stages, make_traces, make_world, write
from tasks import graders
from tasks.analysis import noise
from tasks.analysis.ask import ask
from tasks.analysis.metaeval import metaeval
from tasks.analysis.metaeval import suite as suites
from tasks.core.schemas import TABLES, Table
from tasks.review.load import import_reviews
from tasks.run.build import build_context
from tasks.run.context import Context
from tasks.run.record import Record
from tasks.run.scopes.promotions import RETIRE, Promotion, add
from tasks.store.lake import Lake

LAST = FIRST + timedelta(days=1)
SHARES = {"supported": 0.5, "partially_supported": 0.1, "unsupported": 0.2, "contradicted": 0.1, "abstained": 0.05, "failure": 0.05}  # fmt: skip
GRADES = {"answer_relevancy": 5, "completeness": 4, "faithfulness": 1, "usefulness": None}
# When it happened, and tokens that cost something only where a text was not read a moment before.
LEFT_OUT = {**DIFFERING, "relevance": {"tokens_in"}, "judge_noise": {"measured_at"}, "metaeval": {"judged_at"}}


def finish(root: Path) -> World:
    """Two nights with all that a lake may hold, but for alerts, which take weeks, and the method `citations`."""
    root.mkdir()
    made = enumerate(make_traces(3, 12, days=2))
    rows = [{**row, "session": f"s{i // 3}", "feedback": {"score": i % 2}} for i, row in made]
    settings = {"gates": {"max_quarantined_share": 0.5}, "limits": {"part_traces": 4}, "sample": {"per_day": 1000}}
    world = make_world(root, judge={"shares": SHARES}, **settings)
    write(root / "logs" / "a.jsonl", [*rows, "{not json"])
    (root / "grader.yaml").write_text(yaml.safe_dump({"kind": "constant", "grades": GRADES}))
    config = yaml.safe_load(world.config.read_text())
    config["recipe"]["grades"] = {"grader": "grader.yaml"}
    world.config.write_text(yaml.safe_dump(config))
    write_suite(root / "suite.jsonl", [line("Tea is hot [1].")])
    ctx = complete(world)
    labels = [{"trace_id": r["trace_id"], "label": "right"} for r in rows]
    claims = [
        {"trace_id": c["trace_id"], "claim_id": c["claim_id"], "label": "supported", "misused": False}
        for c in rows_of(world, TABLES["claims"])
    ]
    write(root / "labels.jsonl", [*labels, *claims])
    import_reviews(ctx, root / "labels.jsonl")
    measure(world)
    suite(world)
    question(world)
    add(ctx.lake, Promotion(datetime.now(UTC), RETIRE, None, None, "old", "0" * 16, None, None, "worse"))
    retain(world.config, ["nobody"])  # a request for a trace that is not here
    complete(world)
    return world


def copied(finished: World, to: Path) -> World:
    """The same lake in another place, of which nothing knows the first one."""
    shutil.copytree(finished.config.parent, to, ignore=shutil.ignore_patterns(".warehouse"))
    for path in (to / "logs").iterdir():  # the ledger knows a file by when it was written
        shutil.copystat(finished.config.parent / "logs" / path.name, path)
    world = World(to / finished.config.name, to / finished.out.name)
    (world.out / "replay.yaml").write_text(yaml.safe_dump({"kind": "replay", "shares": SHARES}))
    return world


def complete(world: World) -> Context:
    """A nightly run over both nights, without Prefect, on record in `runs`."""
    ctx = build_context(world.config, FIRST, LAST)
    with ctx.lake.lock("a test"):
        record = Record("nightly")
        record.start(ctx)
        for result in all_stages(ctx, published=False):
            record.add(ctx, result)
        record.end(ctx, "completed")
    return ctx


def measure(world: World) -> None:
    """`leadline noise`."""
    ctx = build_context(world.config, FIRST, LAST)
    noise.measure(ctx, ctx.judges, 4)


def suite(world: World) -> None:
    """`leadline metaeval`."""
    root = world.config.parent
    grader = graders.load(root / "grader.yaml")
    metaeval.measure(Lake(world.lake), "constant", grader, suites.read(root / "suite.jsonl"))


def question(world: World) -> None:
    """`leadline ask`."""
    ask(build_context(world.config, FIRST, LAST), asking(Scripted(lambda _: '{"explanation": "Yes.", "answer": true}')))


def rows_of(world: World, table: Table) -> list[dict[str, Any]]:
    """All rows of a table of the lake."""
    return [row for part in Lake(world.lake).parts(table) for row in part.read().to_pylist()]


def tables_of(world: World, left_out: Mapping[str, Set[str]] = LEFT_OUT) -> dict[str, list[str]]:
    """Every row of the lake's tables but `runs`, without what a second run may change."""
    found = {}
    for table in TABLES.values():
        if table.name == "runs":
            continue
        out = left_out.get(table.name, set())
        rows = [{k: v for k, v in row.items() if k not in out} for row in rows_of(world, table)]
        found[table.name] = sorted(json.dumps(row, default=str) for row in rows)
    return found
