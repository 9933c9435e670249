"""The way from one judge of a cascade to the next: claims that the one left uncertain are planned for the other.

A claim goes on where its p_supported lies in the next judge's band, or where it got no label (`sql/judging/escalate.sql`).
"""

import pyarrow.compute as pc

from tasks.core.schemas import CLAIM_RESULTS, PAIRS
from tasks.judging.known import all_verdicts, claim_results, planned_on
from tasks.judging.pairs import first_name, pair_parts, single_pairs
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.run.redacted import with_redacted
from tasks.store.lake import Part
from tasks.store.query import Queries


def plan_escalated(ctx: Context, queries: Queries, member: CascadeJudge) -> tuple[int, str | None]:
    """Single pairs of a later judge; written again where the verdicts of those before it have changed since.

    Returns:
        Tokens that ranking chunks took, and a note of how many claims went on; None where the budget ended it.
    """
    tokens = total = went = 0
    for part in trace_parts(ctx):
        if ctx.budget.over():
            return tokens, None
        looks = pair_parts(ctx, part, ctx.judges[0])
        if looks:
            planned, read = _plan(ctx, queries, member, part)
            tokens += read
            total += _claims(looks[0])
            went += _claims(planned)
    share = f"{went / total:.1%}" if total else "none"
    return tokens, f"Escalated {share} of {total:,} claims to judge {member.name}."


def settled(ctx: Context, queries: Queries, member: CascadeJudge, part: Part) -> bool:
    """Whether the single pairs of a later judge are planned on what the judges before it say now."""
    existing = ctx.lake.find(PAIRS, first_name(part, member), ctx.recipe, part.partition[-1])
    _, known = all_verdicts(ctx, queries, part, ctx.judges[: member.stage - 1])
    return existing is not None and existing.inputs() == planned_on(ctx, part, known)


def latest_share(ctx: Context, member: CascadeJudge) -> float | None:
    """Share of claims that went on to this judge on the latest night under this recipe; None before there is one."""
    nights = ctx.lake.values(CLAIM_RESULTS, ctx.recipe)
    total = went = 0
    for part in ctx.lake.parts(CLAIM_RESULTS, ctx.recipe, *nights[-1:]):
        asked = part.read(["stage_asked"])["stage_asked"]
        total += len(asked) - asked.null_count
        went += int(pc.sum(pc.greater_equal(asked, member.stage)).as_py() or 0)
    return went / total if total else None


def _plan(ctx: Context, queries: Queries, member: CascadeJudge, part: Part) -> tuple[Part, int]:
    before = ctx.judges[: member.stage - 1]
    verdicts, known = all_verdicts(ctx, queries, part, before)
    state = planned_on(ctx, part, known)
    name, day = first_name(part, member), part.partition[-1]
    existing = ctx.lake.find(PAIRS, name, ctx.recipe, day)
    if existing and existing.inputs() == state:
        return existing, 0
    last = before[-1]
    assert member.band is not None  # noqa: S101 - a later judge has one
    asked = queries.run(
        "judging/escalate",
        {
            "claim_results": claim_results(ctx, queries, part, before, verdicts),
            "pairs": pair_parts(ctx, part, last),
            "verdict": verdicts.filter(pc.equal(verdicts["stage"], last.stage)),
        },
        {"stage": last.stage, "lo": member.band[0], "hi": member.band[1]},
    )
    rows, tokens = single_pairs(ctx, member, part, set(asked["claim_id"].to_pylist()))
    rows = with_redacted(ctx.lake, PAIRS, name, rows, part, ctx.recipe, day)
    return ctx.lake.write(PAIRS, name, rows, ctx.recipe, day, inputs=state), tokens


def _claims(looks: Part) -> int:
    return int(pc.count_distinct(looks.read(["claim_id"])["claim_id"]).as_py())
