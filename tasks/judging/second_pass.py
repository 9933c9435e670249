"""The second pass of method `citations`: compares each uncited claim with the supported claims of its answer.

`sql/judging/second_pass.sql` selects the claims to check and the claims to compare with;
`sql/scoring/citation_results.sql` combines both passes.
"""

from collections.abc import Iterable, Sequence

import polars as pl
import pyarrow as pa

from tasks.core import keys
from tasks.judging.claims import covered_claims, passages, single_name
from tasks.judging.escalate import claim_count
from tasks.judging.pairs import PairRows, packs, pair_parts, planned_part
from tasks.judging.stored_verdicts import all_verdicts, claim_results, planned_on
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.store.lake import Part
from tasks.store.query import Queries

PAIR_KIND = "found_true"
Check = tuple[str, str, Sequence[str]]  # a claim, its trace, and the claims that it is compared with


def plan_second_pass(ctx: Context, queries: Queries, judge: CascadeJudge) -> tuple[int, str]:
    """Plan the pairs of the second pass, again if the verdicts of the first pass have changed.

    Returns:
        0 tokens, and a note with the number of checked claims.
    """
    parts = [part for part in trace_parts(ctx) if pair_parts(ctx, part, ctx.judges[0])]
    checked = sum(claim_count(_plan(ctx, queries, judge, part)) for part in parts)
    return 0, f"The second pass checks {checked:,} uncited claims against those that the first pass found true."


def _plan(ctx: Context, queries: Queries, judge: CascadeJudge, part: Part) -> Part:
    before = ctx.judges[: judge.stage - 1]
    verdicts, state = all_verdicts(ctx, queries, part, before)

    def rows() -> pa.Table:
        claims = covered_claims(ctx, part)
        results = claim_results(ctx, queries, part, before, verdicts)
        checks = pl.DataFrame(queries.run("judging/second_pass", {"claims": claims, "claim_results": results}))
        return _pairs(judge, claims, checks.select("claim_id", "trace_id", "found_true").iter_rows())

    return planned_part(ctx, part, single_name(part, judge), planned_on(ctx, part, state), rows)


def possible_pairs(ctx: Context, judge: CascadeJudge, part: Part) -> pa.Table:
    """The pairs that the second pass of a part would need if the first pass supported every claim: an upper bound."""
    claims = covered_claims(ctx, part)
    frame = pl.DataFrame(claims).with_columns(cited=pl.col("cited_chunk_ids").list.len() > 0)
    grounds = frame.filter("cited").group_by("trace_id").agg(ground="claim_id")
    uncited = frame.filter(~pl.col("cited"), pl.col("dangling_citations").list.len() == 0)
    checks = uncited.join(grounds, on="trace_id", maintain_order="left").select("claim_id", "trace_id", "ground")
    return _pairs(judge, claims, checks.iter_rows())


def _pairs(judge: CascadeJudge, claims: pa.Table, checks: Iterable[Check]) -> pa.Table:
    texts = dict(pl.DataFrame(claims).select("claim_id", "hypothesis").iter_rows())
    pairs = PairRows(judge.stage)
    for claim, trace, ground in checks:
        whole = ((other, 0, len(texts[other])) for other in ground)
        for evidence in packs(whole, texts, judge.pairing.pack_words):
            (key,) = keys.request_keys(passages(evidence, texts), [texts[claim]])
            pairs.add(claim, trace, PAIR_KIND, evidence, key, cited=False)
    return pairs.table()
