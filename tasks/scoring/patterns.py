"""Failure patterns of a part's claims: the detectors of `tasks/patterns` on what was judged and on the texts.

Texts are read and none is kept: the evidence is spans and ids.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tasks import patterns
from tasks.core.schemas import CLAIM_PATTERNS, CLAIM_RESULTS
from tasks.judging.pairs import cut_claims, pair_parts
from tasks.patterns import Chunk, Claim
from tasks.run.context import Context
from tasks.store.lake import Part, conform, from_rows
from tasks.store.query import Queries

BATCH = 500  # traces whose texts are held at a time
TRACE_COLUMNS = [
    "trace_id",
    "answer",
    "chunks.list.element.chunk_id",
    "chunks.list.element.title",
    "chunks.list.element.text",
]
CLAIM_COLUMNS = ["claim_id", "trace_id", "hypothesis", "span_start", "span_end", "dangling_citations"]
RESULT_COLUMNS = ["claim_id", "label", "misused", "deciding_chunk_ids"]


def find_patterns(
    ctx: Context, queries: Queries, part: Part, results: pa.Table, verdicts: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """The patterns that the recipe looks for, in a part's claims.

    Args:
        results: Claim results of the part, whose `patterns` are replaced.
        verdicts: See `known.all_verdicts`.

    Returns:
        Claim results that name their patterns, and the rows of `claim_patterns`.
    """
    looks = [p for m in ctx.judges for p in pair_parts(ctx, part, m)]
    partial = queries.run("scoring/partial_support", {"claim_results": results, "pairs": looks, "verdict": verdicts})
    in_part = dict(zip(partial["claim_id"].to_pylist(), partial["chunk_ids"].to_pylist(), strict=True))
    judged = {r["claim_id"]: r for r in results.select(RESULT_COLUMNS).to_pylist()}
    rows = list(_rows(ctx, part, judged, in_part))
    found = conform(from_rows(rows, CLAIM_PATTERNS), CLAIM_PATTERNS)
    return _named(results, rows), found


def _rows(
    ctx: Context, part: Part, judged: Mapping[str, Mapping[str, Any]], in_part: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, Any]]:
    claims = cut_claims(ctx, part, CLAIM_COLUMNS).to_pylist()
    by_trace = {trace: list(its) for trace, its in groupby(claims, key=itemgetter("trace_id"))}
    for batch in part.read(TRACE_COLUMNS).to_batches(max_chunksize=BATCH):
        for trace in batch.to_pylist():
            chunks = [Chunk(c["chunk_id"], c["text"], c["title"] or "") for c in trace["chunks"]]
            for row in by_trace.get(trace["trace_id"], ()):
                if result := judged.get(row["claim_id"]):
                    claim = _claim(row, result, trace, in_part.get(row["claim_id"], ()))
                    for name, found in patterns.find(ctx.settings.patterns, claim, chunks).items():
                        yield {
                            "recipe": ctx.recipe,
                            "date": part.date,
                            "claim_id": row["claim_id"],
                            "trace_id": row["trace_id"],
                            "pattern": name,
                            "said": [{"start": start, "end": end} for start, end in found.said],
                            "shown": [{"chunk_id": p.chunk_id, "start": p.start, "end": p.end} for p in found.shown],
                        }


def _claim(
    row: Mapping[str, Any], result: Mapping[str, Any], trace: Mapping[str, Any], in_part: Sequence[str]
) -> Claim:
    return Claim(
        text=row["hypothesis"],
        answer=trace["answer"],
        start=row["span_start"],
        end=row["span_end"],
        label=result["label"],
        misused=result["misused"],
        deciding=tuple(result["deciding_chunk_ids"]),
        in_part=tuple(in_part),
        dangling=tuple(row["dangling_citations"]),
    )


def _named(results: pa.Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Claim results with the names of what each claim shows."""
    names: dict[str, list[str]] = {}
    for row in rows:
        names.setdefault(row["claim_id"], []).append(row["pattern"])
    ids = results["claim_id"].to_pylist()
    values = pa.array([names.get(claim, []) for claim in ids], CLAIM_RESULTS.schema.field("patterns").type)
    # Evidence of error beside a label that says otherwise is for a person to weigh.
    shows = pa.array([claim in names for claim in ids], pa.bool_())
    check = pc.fill_null(pc.and_kleene(shows, pc.equal(results["label"], "supported")), False)
    columns = {"patterns": values, "to_check": check, "needs_review": pc.or_(results["needs_review"], check)}
    for name, column in columns.items():
        field = CLAIM_RESULTS.schema.field(name).remove_metadata()
        results = results.set_column(results.schema.get_field_index(name), field, column)
    return results
