"""Plans the pairs of a cascade's later judges: they see the claims that the judges before them left uncertain.

A claim is escalated if its p_supported is in the next judge's band, or if it got no label
(`sql/judging/escalate.sql`).
"""

import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.schemas import CLAIM_RESULTS, PAIRS
from tasks.judging.claims import single_name
from tasks.judging.pairs import pair_parts, planned_part, single_pairs
from tasks.judging.stored_verdicts import all_verdicts, claim_results, planned_on
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.store.lake import Part
from tasks.store.query import Queries


def plan_escalated(ctx: Context, queries: Queries, judge: CascadeJudge) -> tuple[int, str | None]:
    """Plan a later judge's single pairs, again if the verdicts of the judges before it have changed.

    Returns:
        Tokens read to rank chunks, and a note with the number of escalated claims; None if the budget ran out.
    """
    tokens = total = escalated = 0
    for part in trace_parts(ctx):
        if ctx.budget.over():
            return tokens, None
        if single := pair_parts(ctx, part, ctx.judges[0]):
            planned, read = _plan(ctx, queries, judge, part)
            tokens += read
            total += claim_count(single[0])
            escalated += claim_count(planned)
    share = f"{escalated / total:.1%}" if total else "none"
    return tokens, f"Escalated {share} of {total:,} claims to judge {judge.name}."


def settled(ctx: Context, queries: Queries, judge: CascadeJudge, part: Part) -> bool:
    """Whether a later judge's single pairs are planned from the current verdicts of the judges before it."""
    existing = ctx.lake.find(PAIRS, single_name(part, judge), ctx.recipe, part.partition[-1])
    _, state = all_verdicts(ctx, queries, part, ctx.judges[: judge.stage - 1])
    return existing is not None and existing.inputs() == planned_on(ctx, part, state)


def latest_share(ctx: Context, judge: CascadeJudge) -> float | None:
    """Share of claims escalated to this judge on the latest night of this recipe; None before the first night."""
    nights = ctx.lake.values(CLAIM_RESULTS, ctx.recipe)
    total = escalated = 0
    for part in ctx.lake.parts(CLAIM_RESULTS, ctx.recipe, *nights[-1:]):
        stage = part.read(["stage_asked"])["stage_asked"]
        total += len(stage) - stage.null_count
        escalated += int(pc.sum(pc.greater_equal(stage, judge.stage)).as_py() or 0)
    return escalated / total if total else None


def claim_count(pairs: Part) -> int:
    """Number of claims in a part of `pairs`."""
    return int(pc.count_distinct(pairs.read(["claim_id"])["claim_id"]).as_py())


def _plan(ctx: Context, queries: Queries, judge: CascadeJudge, part: Part) -> tuple[Part, int]:
    before = ctx.judges[: judge.stage - 1]
    verdicts, state = all_verdicts(ctx, queries, part, before)
    tokens = 0

    def rows() -> pa.Table:
        nonlocal tokens
        last = before[-1]
        assert judge.band is not None  # noqa: S101 - a later judge has one
        relations = {
            "claim_results": claim_results(ctx, queries, part, before, verdicts),
            "pairs": pair_parts(ctx, part, last),
            "verdict": verdicts.filter(pc.equal(verdicts["stage"], last.stage)),
        }
        params = {"stage": last.stage, "lo": judge.band[0], "hi": judge.band[1]}
        escalated = queries.run("judging/escalate", relations, params)
        pairs, tokens = single_pairs(ctx, judge, part, set(escalated["claim_id"].to_pylist()))
        return pairs

    planned = planned_part(ctx, part, single_name(part, judge), planned_on(ctx, part, state), rows)
    return planned, tokens
