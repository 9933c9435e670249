"""What is known so far: the verdicts on the looks at a part's claims, and the results that they make.

A request's key is looked up among all verdicts of its judge, of any day. Nothing is judged or written here.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.schemas import CLAIM_RESULTS, PAIRS, VERDICTS
from tasks.judging.pairs import claims_of, pair_parts
from tasks.run.cascade import CascadeJudge, readers
from tasks.run.context import Context
from tasks.store.lake import Part, conform, empty
from tasks.store.query import Queries


def verdicts_for(ctx: Context, queries: Queries, member: CascadeJudge, part: Part, looks: Sequence[Part]) -> pa.Table:
    """One row per request of these pairs that has a verdict by this judge; see `verdicts_on`."""
    keys = [p.read(["request_key"]) for p in looks]
    return verdicts_on(ctx, queries, member, part, pa.concat_tables([empty(PAIRS).select(["request_key"]), *keys]))


def verdicts_on(
    ctx: Context, queries: Queries, member: CascadeJudge, part: Part, asked: pa.Table, *, sample: int = 0
) -> pa.Table:
    """One row per request that has a verdict by this judge (`sql/judging/part_verdicts.sql`).

    Most verdicts on a part stand in files that bear its name; all the others are searched only for what these lack.

    Args:
        asked: A column `request_key`.
        sample: Which sample of the judge.
    """
    everywhere = ctx.lake.parts(VERDICTS, member.judge.version)
    own = [v for v in everywhere if v.name.startswith(f"{part.name}-")]
    found = queries.run("judging/part_verdicts", {"pairs": asked, "verdicts": own}, {"sample": sample})
    labelled = found.filter(pc.is_valid(found["label"]))
    rest = asked.filter(pc.invert(pc.is_in(asked["request_key"], labelled["request_key"])))
    if not rest.num_rows or len(own) == len(everywhere):
        return found
    others = queries.run("judging/part_verdicts", {"pairs": rest, "verdicts": everywhere}, {"sample": sample})
    return pa.concat_tables([labelled, others])


def state_of(verdicts: pa.Table) -> str:
    """Token of what is known: it changes when a request gets its verdict or a failure is repaired."""
    return f"{verdicts.num_rows}:{verdicts['failure'].null_count}"


def planned_on(ctx: Context, part: Part, known: str) -> str:
    """Token of what the looks of a later judge or round rest on: the single pairs' scopes, and what is known.

    A wider scope may add claims whose requests have their verdicts from others, so that nothing new is known.
    """
    first = pair_parts(ctx, part, ctx.judges[0])[:1]
    return "|".join(filter(None, (*(p.inputs() for p in first), known)))


def all_verdicts(ctx: Context, queries: Queries, part: Part, judges: Sequence[CascadeJudge]) -> tuple[pa.Table, str]:
    """The verdicts of these judges on their looks at a part, with their `stage`, and the token of what is known."""
    tables = [verdicts_for(ctx, queries, m, part, pair_parts(ctx, part, m)) for m in judges]
    staged = [
        table.append_column("stage", pa.repeat(pa.scalar(m.stage, pa.int32()), table.num_rows))
        for m, table in zip(judges, tables, strict=True)
    ]
    return pa.concat_tables(staged), "/".join(map(state_of, tables))


def claim_results(
    ctx: Context, queries: Queries, part: Part, judges: Sequence[CascadeJudge], verdicts: pa.Table
) -> pa.Table:
    """Results of a part's claims as these judges see them (`sql/scoring/claim_results.sql`)."""
    looks = [p for m in judges for p in pair_parts(ctx, part, m)]
    relations = {"claims": claims_of(ctx, part), "pairs": looks, "verdict": verdicts}
    params = {
        "recipe": ctx.recipe,
        "judge_version": ctx.judge_version,
        "dangling_as_misuse": ctx.settings.scoring.dangling_as_misuse,
        "readers": readers(judges),
    }
    return conform(queries.run("scoring/claim_results", relations, params), CLAIM_RESULTS)
