"""The second pass of method `citations`: each uncited claim against the claims of its answer that the first pass found true.

Which claims are checked, and against which, says `sql/judging/second_pass.sql`; what comes of both rounds,
`sql/scoring/citation_results.sql`.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc

from tasks.core import keys
from tasks.core.schemas import PAIRS
from tasks.judging.evidence import passages
from tasks.judging.known import all_verdicts, claim_results, planned_on
from tasks.judging.pairs import Looks, claims_of, first_name, packs, pair_parts
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.run.redacted import with_redacted
from tasks.store.lake import Part
from tasks.store.query import Queries

LOOK = "found_true"
Shown = tuple[str, str, Sequence[str]]  # a claim, its trace, and the claims that it is checked against


def plan_second_pass(ctx: Context, queries: Queries, member: CascadeJudge) -> tuple[int, str]:
    """Looks of the second pass; written again where the verdicts of the first pass have changed since.

    Returns:
        0 tokens, and a note of how many claims are checked.
    """
    checked = 0
    for part in trace_parts(ctx):
        if pair_parts(ctx, part, ctx.judges[0]):
            planned = _plan(ctx, queries, member, part)
            checked += int(pc.count_distinct(planned.read(["claim_id"])["claim_id"]).as_py())
    return 0, f"The second pass checks {checked:,} uncited claims against those that the first pass found true."


def _plan(ctx: Context, queries: Queries, member: CascadeJudge, part: Part) -> Part:
    before = ctx.judges[: member.stage - 1]
    verdicts, known = all_verdicts(ctx, queries, part, before)
    state = planned_on(ctx, part, known)
    name, day = first_name(part, member), part.partition[-1]
    existing = ctx.lake.find(PAIRS, name, ctx.recipe, day)
    if existing and existing.inputs() == state:
        return existing
    claims = claims_of(ctx, part)
    results = claim_results(ctx, queries, part, before, verdicts)
    asked = queries.run("judging/second_pass", {"claims": claims, "claim_results": results})
    shown = ((r["claim_id"], r["trace_id"], r["found_true"]) for r in asked.to_pylist())
    rows = with_redacted(ctx.lake, PAIRS, name, _looks(member, claims, shown), part, ctx.recipe, day)
    return ctx.lake.write(PAIRS, name, rows, ctx.recipe, day, inputs=state)


def possible_pairs(ctx: Context, member: CascadeJudge, part: Part) -> pa.Table:
    """The most looks that the second pass may need of a part: as if the first pass found everything true."""
    claims = claims_of(ctx, part)
    shown: list[Shown] = []
    for trace, its in groupby(claims.to_pylist(), key=itemgetter("trace_id")):
        here = list(its)
        cited = [c["claim_id"] for c in here if c["cited_chunk_ids"]]
        if cited:
            open_ = [c for c in here if not c["cited_chunk_ids"] and not c["dangling_citations"]]
            shown += [(c["claim_id"], trace, cited) for c in open_]
    return _looks(member, claims, shown)


def _looks(member: CascadeJudge, claims: pa.Table, shown: Iterable[Shown]) -> pa.Table:
    texts = dict(zip(claims["claim_id"].to_pylist(), claims["hypothesis"].to_pylist(), strict=True))
    looks = Looks(member.stage)
    for claim, trace, ground in shown:
        whole = ((other, 0, len(texts[other])) for other in ground)
        for evidence in packs(whole, texts, member.pairing.pack_words):
            (key,) = keys.request_keys(passages(evidence, texts), [texts[claim]])
            for window in evidence:
                looks.show(*window)
            looks.add(claim, trace, LOOK, key, cited=False)
    return looks.table()
