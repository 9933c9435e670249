"""Reads the stored verdicts on a part's pairs, and the claim results that follow. Judges and writes nothing.

A request's key is looked up among all verdicts of its judge, of any day.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.schemas import CLAIM_RESULTS, PAIRS, VERDICTS
from tasks.judging.claims import covered_claims
from tasks.judging.pairs import pair_parts
from tasks.run.cascade import CascadeJudge, readers
from tasks.run.context import Context
from tasks.store.key_index import KeyIndex
from tasks.store.lake import Part, conform, empty
from tasks.store.query import Queries


def verdicts_for(ctx: Context, queries: Queries, judge: CascadeJudge, part: Part, pairs: Sequence[Part]) -> pa.Table:
    """One row for each request of these pairs with a verdict by this judge; see `verdicts_on`."""
    keys = [p.read(["request_key"]) for p in pairs]
    return verdicts_on(ctx, queries, judge, part, pa.concat_tables([empty(PAIRS).select(["request_key"]), *keys]))


def verdicts_on(
    ctx: Context, queries: Queries, judge: CascadeJudge, part: Part, requests: pa.Table, *, sample: int = 0
) -> pa.Table:
    """One row for each request with a verdict by this judge (`sql/judging/part_verdicts.sql`).

    Most verdicts on a part are in files with its name. The other files are only searched for the remaining requests.

    Args:
        requests: A column `request_key`.
        sample: Number of the judge's sample.
    """
    day = ctx.lake.parts(VERDICTS, judge.version, part.partition[-1])
    own = [v for v in day if v.name.startswith(f"{part.name}-")]
    found = queries.run("judging/part_verdicts", {"pairs": requests, "verdicts": own}, {"sample": sample})
    labeled = found.filter(pc.is_valid(found["label"]))
    rest = requests.filter(pc.invert(pc.is_in(requests["request_key"], labeled["request_key"])))
    if not rest.num_rows:
        return found
    everywhere = ctx.lake.parts(VERDICTS, judge.version)
    index = KeyIndex(ctx.lake, VERDICTS, "request_key")
    holding = index.holding(rest["request_key"].unique().to_pylist(), everywhere)
    if not {*holding}.difference(own):
        return found
    others = queries.run("judging/part_verdicts", {"pairs": rest, "verdicts": holding}, {"sample": sample})
    return pa.concat_tables([labeled, others])


def state_of(verdicts: pa.Table) -> str:
    """Token of these verdicts. It changes when a request gets its verdict or a failure is replaced."""
    return f"{verdicts.num_rows}:{verdicts['failure'].null_count}"


def planned_on(ctx: Context, part: Part, verdicts: str) -> str:
    """Token of the inputs to a later judge's or pass's pairs: the scopes of the single pairs, and the verdicts so far.

    The scopes are needed because claims of a wider scope may already have verdicts, which leaves the verdicts' token
    unchanged.
    """
    single = pair_parts(ctx, part, ctx.judges[0])[:1]
    return "|".join(filter(None, (*(p.inputs() for p in single), verdicts)))


def all_verdicts(ctx: Context, queries: Queries, part: Part, judges: Sequence[CascadeJudge]) -> tuple[pa.Table, str]:
    """The verdicts of these judges on their pairs of a part, with a column `stage`, and the token of these verdicts."""
    tables = [verdicts_for(ctx, queries, judge, part, pair_parts(ctx, part, judge)) for judge in judges]
    staged = [
        table.append_column("stage", pa.repeat(pa.scalar(judge.stage, pa.int32()), table.num_rows))
        for judge, table in zip(judges, tables, strict=True)
    ]
    return pa.concat_tables(staged), "/".join(map(state_of, tables))


def claim_results(
    ctx: Context, queries: Queries, part: Part, judges: Sequence[CascadeJudge], verdicts: pa.Table
) -> pa.Table:
    """Results of a part's claims by these judges (`sql/scoring/claim_results.sql`)."""
    pairs = [p for judge in judges for p in pair_parts(ctx, part, judge)]
    relations = {"claims": covered_claims(ctx, part), "pairs": pairs, "verdict": verdicts}
    params = {
        "recipe": ctx.recipe,
        "judge_version": ctx.judge_version,
        "dangling_as_misuse": ctx.settings.scoring.dangling_as_misuse,
        "readers": readers(judges),
    }
    return conform(queries.run("scoring/claim_results", relations, params), CLAIM_RESULTS)
