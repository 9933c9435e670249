"""What judging will cost: requests without a verdict, their tokens, and minutes at a measured rate."""

from dataclasses import dataclass

import pyarrow.compute as pc

from tasks.core.schemas import RELEVANCE, TRACE_SCORES
from tasks.stages.context import Context, missing_parts
from tasks.stages.pairs import looks_of
from tasks.stages.runs import measured_rates
from tasks.stages.verdicts import open_requests
from tasks.store.lake import Part

CHARS_PER_TOKEN = 4  # of English; used until a run of this judge has counted


@dataclass(frozen=True, slots=True)
class Estimate:
    """Work that models have before them.

    Attributes:
        verdicts: First looks to judge.
        second_looks: Joint looks that may be needed: an upper bound, two a claim until its first looks are judged.
        relevance: Relevance scores: an answer's and those of its chunks.
        scores: Traces to score.
        tokens: Tokens of the first looks, at the judge's measured rate per verdict, or by their characters.
        minutes: At the rate measured in the latest run of this judge; None before there is one.
    """

    verdicts: int
    second_looks: int
    relevance: int
    scores: int
    tokens: int
    minutes: float | None


def estimate(ctx: Context) -> Estimate:
    """Count what the run's days still need of the judge; reads texts, runs no model."""
    verdicts = chars = second_looks = 0
    with ctx.queries() as queries:
        asked: set[str] = set()
        for part in ctx.trace_parts():
            looks = looks_of(ctx, part)
            requests = [r for r in open_requests(ctx, queries, part, looks[:1]) if r.key not in asked]
            asked.update(r.key for r in requests)
            verdicts += len(requests)
            if requests or len(looks) == 1:  # not planned yet, or to be planned again
                second_looks += 2 * len(pc.unique(looks[0].read(["claim_id"])["claim_id"]))
            else:
                second_looks += sum(1 for _ in open_requests(ctx, queries, part, looks[1:]))
            chars += sum(len(r.premise) + len(r.hypothesis) for r in requests)
    per_second, per_verdict = measured_rates(ctx)
    tokens = round(verdicts * per_verdict) if per_verdict else chars // CHARS_PER_TOKEN
    unscored, _ = missing_parts(ctx, TRACE_SCORES, ctx.recipe)
    irrelevant, _ = missing_parts(ctx, RELEVANCE, ctx.scorer)
    return Estimate(
        verdicts=verdicts,
        second_looks=second_looks if ctx.config.recipe.pairing.joint_chunks else 0,
        relevance=sum(_relevance_rows(p) for p in irrelevant),
        scores=sum(p.rows() for p in unscored),
        tokens=tokens,
        minutes=verdicts / per_second / 60 if per_second else None,
    )


def _relevance_rows(part: Part) -> int:
    chunks = part.read(["chunks.list.element.chunk_id"])["chunks"]
    return part.rows() + int(pc.sum(pc.list_value_length(chunks)).as_py() or 0)
