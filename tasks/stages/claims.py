"""Claims: for every part of `traces` without a part of `claims`, cut the answers."""

from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa

from tasks.core import keys
from tasks.core.progress import tracked
from tasks.core.schemas import CLAIMS
from tasks.core.types import Answer, Chunk, Citation, Extraction
from tasks.extractors import ByApp
from tasks.stages.context import Context, StageResult, missing_parts
from tasks.stages.removed import kept
from tasks.store.lake import Part

ANSWERS_AT_ONCE = 500  # enough sentences to keep a model busy, where one is asked
COLUMNS = [
    "trace_id",
    "app",
    "question",
    "answer",
    "citations",
    "chunks.list.element.chunk_id",
    "chunks.list.element.doc_id",
    "chunks.list.element.title",
    "chunks.list.element.rank",
]


def extract_claims(ctx: Context, *, modelless: bool = False) -> StageResult:
    """Cut the answers of the run's days into claims; returns claims computed and reused.

    A part of which a model could not be asked everything is left to the next run.

    Args:
        modelless: Ask no model and keep whole what it would have broken up: for counting the work ahead.

    Raises:
        EngineError: A model is needed and can't be run. The parts that are done are kept.
    """
    version = ctx.extractor.version
    extractor = ctx.extractor.modelless if modelless else ctx.extractor
    missing, reused = missing_parts(ctx, CLAIMS, version)
    did: Counter[str] = Counter()
    try:
        with tracked(ctx.progress, "claims", len(missing)):
            for part in missing:
                rows = _claims(extractor, version, part, did)
                if rows is not None:
                    _write(ctx, part, rows, version)
                    did["claims"] += rows.num_rows
                ctx.progress.advance()
    finally:
        extractor.close()  # before the next stage loads a model of its own
    return StageResult(
        "claims",
        computed=did["claims"],
        reused=reused,
        tokens_in=did["tokens_in"],
        tokens_cached=did["tokens_cached"],
        tokens_out=did["tokens_out"],
        gpus=extractor.gpus if did["tokens_in"] else 0,
        notes=tuple(_notes(did)),
    )


def _write(ctx: Context, part: Part, rows: pa.Table, version: str) -> None:
    """Put claims in the lake, once: a model may cut an answer in other ways next time, and pairs name these claims."""
    with ctx.lake.alone():
        if ctx.lake.find(CLAIMS, part.name, version, part.partition[-1]) is None:
            ctx.lake.write(CLAIMS, part.name, rows, version, part.partition[-1])


def _claims(extractor: ByApp, version: str, part: Part, did: Counter[str]) -> pa.Table | None:
    """The claims of a part; None after an outage. What it took is added to `did`."""
    columns: dict[str, list[object]] = {name: [] for name in CLAIMS.schema.names if name not in CLAIMS.partition}
    unbroken = 0
    for batch in kept(part, part.read(COLUMNS)).to_batches(max_chunksize=ANSWERS_AT_ONCE):
        rows = batch.to_pylist()
        found = extractor.extract_many([(row["app"], _answer(row)) for row in rows])
        _count(found, did)
        if any(extraction.outage for extraction in found):
            did["undone"] += 1
            return None
        unbroken += sum(extraction.unbroken for extraction in found)
        for row, extraction in zip(rows, found, strict=True):
            for ordinal, claim in enumerate(extraction.claims):
                text, hypothesis = extractor.wording(row["app"], row["answer"], claim)
                columns["claim_id"].append(keys.claim_id(row["trace_id"], version, ordinal))
                columns["trace_id"].append(row["trace_id"])
                columns["ordinal"].append(ordinal)
                columns["text"].append(text)
                columns["hypothesis"].append(hypothesis)
                columns["span_start"].append(claim.start)
                columns["span_end"].append(claim.end)
                columns["cited_chunk_ids"].append(claim.cited_chunk_ids)
                columns["dangling_citations"].append(claim.dangling)
    did["unbroken"] += unbroken
    return pa.table({n: pa.array(v, CLAIMS.schema.field(n).type) for n, v in columns.items()})


def _answer(row: dict[str, object]) -> Answer:
    # Texts of chunks are not read: how an answer is cut must not depend on them.
    chunks = [Chunk(text="", **{k: v for k, v in c.items() if k != "text"}) for c in row["chunks"]]  # type: ignore[attr-defined]
    cited: Sequence[dict[str, object]] | None = row["citations"]  # type: ignore[assignment]
    return Answer(
        question=str(row["question"]),
        text=str(row["answer"]),
        chunks=chunks,
        citations=None if cited is None else [_citation(c) for c in cited],
    )


def _citation(row: dict[str, object]) -> Citation:
    return Citation(start=row["start"], end=row["end"], chunk_ids=tuple(row["chunk_ids"]))  # type: ignore[arg-type]


def _count(found: Sequence[Extraction], did: Counter[str]) -> None:
    for extraction in found:
        did["tokens_in"] += extraction.tokens_in
        did["tokens_cached"] += extraction.tokens_cached
        did["tokens_out"] += extraction.tokens_out


def _notes(did: Counter[str]) -> Iterator[str]:
    if did["unbroken"]:
        yield f"{did['unbroken']} sentences were not broken into facts by the model and stay whole"
    if did["undone"]:
        yield f"the model could not be asked about all answers of {did['undone']} parts: the next run cuts them"
