"""Relevance by embedding: question against answer, and question against each chunk (METHODS sections 4 and 6).

A chunk is as relevant as its most relevant window. An answer that is longer than a window counts by the mean of its
windows' vectors: all of it should be about the question. Cosines below 0 count as 0.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tasks.core.progress import tracked
from tasks.core.schemas import RELEVANCE
from tasks.core.windows import windows
from tasks.stages.context import Context, StageResult, missing_parts

COLUMNS = ["trace_id", "question", "answer", "chunks.list.element.chunk_id", "chunks.list.element.text"]
TRACES_AT_ONCE = 64
Vectors = npt.NDArray[np.float32]


def score_relevance(ctx: Context) -> StageResult:
    """Relevance rows for the traces of the run's days that have none by this scorer."""
    version = ctx.scorer
    missing, reused = missing_parts(ctx, RELEVANCE, version)
    computed = tokens = 0
    with tracked(ctx.progress, "relevance", sum(p.rows() for p in missing)):
        for part in missing:
            pieces = []
            for batch in part.read(COLUMNS).to_batches(max_chunksize=TRACES_AT_ONCE):
                piece = _score(ctx, batch.to_pylist())
                pieces.append(piece)
                ctx.progress.advance(batch.num_rows)
            rows = pa.concat_tables(pieces)
            ctx.lake.write(RELEVANCE, part.name, rows, version, part.partition[-1])
            computed += rows.num_rows
            tokens += sum(rows["tokens_in"].to_pylist())
    return StageResult("relevance", computed=computed, reused=reused, tokens_in=tokens)


def answer_relevance(question: Vectors, answer: Vectors) -> float:
    """Cosine of the question (d,) and the mean of the answer's windows (n, d), in [0, 1], to 4 decimals."""
    mean = answer.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    return round(max(0.0, float(question @ mean) / norm), 4) if norm else 0.0


def chunk_relevance(question: Vectors, chunk: Vectors) -> float:
    """Highest cosine of the question (d,) and a window of the chunk (n, d), in [0, 1], to 4 decimals."""
    return round(max(0.0, float((chunk @ question).max())), 4)


def _score(ctx: Context, traces: list[dict[str, object]]) -> pa.Table:
    words = ctx.settings.pairing.window_words
    texts: list[str] = []
    spans: list[tuple[object, str, str | None, int, int]] = []  # trace, kind, chunk, first text, one past the last
    for trace in traces:
        chunks: list[dict[str, str]] = trace["chunks"]  # type: ignore[assignment]
        pieces = [("question", None, trace["question"]), ("answer", None, trace["answer"])]
        for kind, chunk_id, text in [*pieces, *(("context", c["chunk_id"], c["text"]) for c in chunks)]:
            cut = [str(text)[a:b] for a, b in windows(str(text), words)]
            spans.append((trace["trace_id"], kind, chunk_id, len(texts), len(texts) + len(cut)))
            texts += cut
    embedded = ctx.embedder.embed(texts)
    question: Vectors = embedded.vectors[:0]
    asked = 0
    rows = []
    for trace_id, kind, chunk_id, start, end in spans:
        vectors = embedded.vectors[start:end]
        tokens = int(embedded.tokens[start:end].sum())
        if kind == "question":
            mean = vectors.mean(axis=0)
            question, asked = mean / (np.linalg.norm(mean) or 1.0), tokens
            continue
        score = answer_relevance(question, vectors) if kind == "answer" else chunk_relevance(question, vectors)
        rows.append((trace_id, kind, chunk_id, score, tokens + asked))
        asked = 0
    trace_ids, kinds, chunk_ids, scores, counts = zip(*rows, strict=True)
    columns = {
        "trace_id": trace_ids,
        "kind": kinds,
        "chunk_id": chunk_ids,
        "method": ["embedding"] * len(rows),
        "score": scores,
        "failure": [None] * len(rows),
        "tokens_in": counts,
    }
    return pa.table({n: pa.array(c, RELEVANCE.schema.field(n).type) for n, c in columns.items()})
