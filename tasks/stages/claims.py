"""Claims: for every part of `traces` without a part of `claims`, cut the answers."""

import pyarrow as pa

from tasks.core import keys
from tasks.core.progress import tracked
from tasks.core.schemas import CLAIMS
from tasks.core.types import Chunk, Citation
from tasks.stages.context import Context, StageResult, missing_parts
from tasks.store.lake import Part

COLUMNS = [
    "trace_id",
    "app",
    "answer",
    "citations",
    "chunks.list.element.chunk_id",
    "chunks.list.element.doc_id",
    "chunks.list.element.title",
    "chunks.list.element.rank",
]


def extract_claims(ctx: Context) -> StageResult:
    """Cut the answers of the run's days into claims; returns claims computed and reused."""
    version = ctx.extractor.version
    missing, reused = missing_parts(ctx, CLAIMS, version)
    computed = 0
    with tracked(ctx.progress, "claims", len(missing)):
        for part in missing:
            rows = _claims(ctx, part)
            ctx.lake.write(CLAIMS, part.name, rows, version, part.partition[-1])
            computed += rows.num_rows
            ctx.progress.advance()
    return StageResult("claims", computed=computed, reused=reused)


def _claims(ctx: Context, part: Part) -> pa.Table:
    version = ctx.extractor.version
    columns: dict[str, list[object]] = {name: [] for name in CLAIMS.schema.names if name not in CLAIMS.partition}
    for batch in part.read(COLUMNS).to_batches(max_chunksize=500):
        for row in batch.to_pylist():
            # Texts of chunks are not read: how an answer is cut must not depend on them.
            chunks = [Chunk(text="", **{k: v for k, v in c.items() if k != "text"}) for c in row["chunks"]]
            citations = None if row["citations"] is None else [_citation(c) for c in row["citations"]]
            drafts = ctx.extractor.extract(row["app"], row["answer"], chunks, citations)
            for ordinal, draft in enumerate(drafts):
                columns["claim_id"].append(keys.claim_id(row["trace_id"], version, ordinal))
                columns["trace_id"].append(row["trace_id"])
                columns["ordinal"].append(ordinal)
                text = row["answer"][draft.start : draft.end]
                columns["text"].append(text)
                columns["hypothesis"].append(ctx.extractor.hypothesis(row["app"], text))
                columns["span_start"].append(draft.start)
                columns["span_end"].append(draft.end)
                columns["cited_chunk_ids"].append(draft.cited_chunk_ids)
                columns["dangling_citations"].append(draft.dangling)
    return pa.table({n: pa.array(v, CLAIMS.schema.field(n).type) for n, v in columns.items()})


def _citation(row: dict[str, object]) -> Citation:
    return Citation(start=row["start"], end=row["end"], chunk_ids=tuple(row["chunk_ids"]))  # type: ignore[arg-type]
