"""Failure patterns of a part's claims: runs the detectors of `tasks/patterns` on texts and judged results.

The evidence is stored as spans and ids, without text.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from tasks import patterns
from tasks.core.schemas import CLAIM_PATTERNS, CLAIM_RESULTS
from tasks.judging.pairs import pair_parts
from tasks.patterns import Chunk, Claim
from tasks.run.context import Context
from tasks.store.lake import Part, conform, from_rows
from tasks.store.query import Queries

BATCH = 500  # traces whose texts are in memory at once
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
    ctx: Context, queries: Queries, part: Part, claims: pa.Table, results: pa.Table, verdicts: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """Find the recipe's patterns in a part's claims.

    Args:
        claims: Claims of the part, in order. Those without a result are left out.
        results: Claim results of the part, whose `patterns` are replaced.
        verdicts: See `stored_verdicts.all_verdicts`.

    Returns:
        Claim results with the names of their patterns, and the rows of `claim_patterns`.
    """
    pairs = [p for judge in ctx.judges for p in pair_parts(ctx, part, judge)]
    partial = queries.run("scoring/partial_support", {"claim_results": results, "pairs": pairs, "verdict": verdicts})
    judged = (
        pl.DataFrame(claims.select(CLAIM_COLUMNS))
        .join(pl.DataFrame(results.select(RESULT_COLUMNS)), on="claim_id", maintain_order="left")
        .join(pl.DataFrame(partial), on="claim_id", how="left", maintain_order="left")
    )
    found = conform(from_rows(_rows(ctx, part, judged), CLAIM_PATTERNS), CLAIM_PATTERNS)
    return _with_patterns(results, found), found


def _rows(ctx: Context, part: Part, judged: pl.DataFrame) -> Iterator[dict[str, Any]]:
    by_trace = judged.rows_by_key("trace_id", named=True)
    traces = pl.DataFrame(part.read(TRACE_COLUMNS)).filter(pl.col("trace_id").is_in(list(by_trace)))
    for trace in traces.iter_rows(named=True, buffer_size=BATCH):
        chunks = [Chunk(c["chunk_id"], c["text"], c["title"] or "") for c in trace["chunks"]]
        for row in by_trace[trace["trace_id"]]:
            claim = Claim(
                text=row["hypothesis"],
                answer=trace["answer"],
                start=row["span_start"],
                end=row["span_end"],
                label=row["label"],
                misused=row["misused"],
                deciding=tuple(row["deciding_chunk_ids"]),
                in_part=tuple(row["chunk_ids"] or ()),
                dangling=tuple(row["dangling_citations"]),
            )
            for name, found in patterns.find(ctx.settings.patterns, claim, chunks).items():
                yield {
                    "recipe": ctx.recipe,
                    "date": part.date,
                    "claim_id": row["claim_id"],
                    "trace_id": trace["trace_id"],
                    "pattern": name,
                    "answer_spans": [{"start": start, "end": end} for start, end in found.answer_spans],
                    "chunk_spans": [
                        {"chunk_id": p.chunk_id, "start": p.start, "end": p.end} for p in found.chunk_spans
                    ],
                }


def _with_patterns(results: pa.Table, found: pa.Table) -> pa.Table:
    """Claim results with the names of their patterns."""
    names = pl.DataFrame(found).group_by("claim_id").agg("pattern")
    # A supported claim with a pattern may be an error, so a person should check it.
    check = pl.col("pattern").is_not_null() & (pl.col("label") == "supported").fill_null(value=False)
    columns = (
        pl.DataFrame(results.select(["claim_id", "label", "needs_review"]))
        .join(names, on="claim_id", how="left", maintain_order="left")
        .select(
            patterns=pl.col("pattern").fill_null(pl.lit([], pl.List(pl.String))),
            to_check=check,
            needs_review=pl.col("needs_review") | check,
        )
        .to_arrow()
    )
    for name in columns.column_names:
        field = CLAIM_RESULTS.schema.field(name).remove_metadata()
        results = results.set_column(results.schema.get_field_index(name), field, columns[name].cast(field.type))
    return results
