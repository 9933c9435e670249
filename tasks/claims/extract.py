"""Claims: for every part of `traces` without a part of `claims`, cut the answers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tasks.core import keys
from tasks.core.progress import tracked
from tasks.core.schemas import CLAIMS
from tasks.core.types import Answer, Chunk, Citation, Extraction
from tasks.extractors import ByApp, covers
from tasks.run.context import Context
from tasks.run.plan import missing_parts
from tasks.run.redacted import unredacted
from tasks.run.result import StageResult
from tasks.store.lake import Lake, Part, conform, empty

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

    The newest days come first. A part of which a model could not be asked everything, by an outage or by the end of the
    budget, is left to the next run, which goes on after the answers that are done.

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
            for part in sorted(missing, key=attrgetter("date"), reverse=True):
                if ctx.budget.over():
                    break
                rows = _claims(ctx, extractor, version, part, did)
                if rows is not None:
                    _write(ctx, part, rows, version)
                    did["claims"] += pc.sum(pc.equal(rows["kind"], "claim")).as_py() or 0
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
    unfinished(ctx.lake).drop(CLAIMS, part.name, version, part.partition[-1])


def unfinished(lake: Lake) -> Lake:
    """Where the claims of a part lie of which only the first answers are cut; no stage but this one looks there.

    The `inputs` token is the number of answers.
    """
    return Lake(lake.hidden("unfinished"))


def _claims(ctx: Context, extractor: ByApp, version: str, part: Part, did: Counter[str]) -> pa.Table | None:
    """The claims of a part; None after an outage or where the budget ended. What it took is added to `did`."""
    where = (version, part.partition[-1])
    begun = unfinished(ctx.lake).find(CLAIMS, part.name, *where)
    before = done = int(begun.inputs()) if begun else 0
    rows = [empty(CLAIMS), *([conform(begun.read(), CLAIMS)] if begun else [])]
    for batch in unredacted(part, part.read(COLUMNS)).slice(done).to_batches(max_chunksize=ANSWERS_AT_ONCE):
        over = done > before and ctx.budget.over()  # a step is taken in any case, or it would never end
        cut = None if over else _cut(ctx, extractor, version, batch.to_pylist(), did)
        if cut is None:
            if done > before:
                unfinished(ctx.lake).write(CLAIMS, part.name, pa.concat_tables(rows), *where, inputs=str(done))
            return None
        rows.append(conform(cut, CLAIMS, where))
        done += batch.num_rows
    return pa.concat_tables(rows)


def _cut(
    ctx: Context, extractor: ByApp, version: str, rows: Sequence[Mapping[str, Any]], did: Counter[str]
) -> pa.Table | None:
    """The claims of some answers; None after an outage."""
    columns: dict[str, list[object]] = {name: [] for name in CLAIMS.schema.names if name not in CLAIMS.partition}
    found = extractor.extract_many([(row["app"], _answer(row)) for row in rows])
    _count(found, did)
    ctx.budget.used += sum(extraction.tokens_in + extraction.tokens_out for extraction in found)
    if any(extraction.outage for extraction in found):
        did["undone"] += 1
        return None
    did["unbroken"] += sum(extraction.unbroken for extraction in found)
    did["renumbered"] += sum(extraction.renumbered for extraction in found)
    did["reasoning"] += sum(claim.kind == "reasoning" for extraction in found for claim in extraction.claims)
    did["uncovered"] += sum(not covers(extraction.language) for extraction in found)
    for row, extraction in zip(rows, found, strict=True):
        for ordinal, claim in enumerate(extraction.claims):
            columns["claim_id"].append(keys.claim_id(row["trace_id"], version, ordinal))
            columns["trace_id"].append(row["trace_id"])
            columns["ordinal"].append(ordinal)
            columns["kind"].append(claim.kind)
            columns["language"].append(claim.language)
            columns["text"].append(row["answer"][claim.start : claim.end] if claim.text is None else claim.text)
            columns["context"].append(claim.context)
            columns["hypothesis"].append(claim.hypothesis)
            columns["span_start"].append(claim.start)
            columns["span_end"].append(claim.end)
            columns["cited_chunk_ids"].append(claim.cited_chunk_ids)
            columns["dangling_citations"].append(claim.dangling)
    return pa.table({n: pa.array(v, CLAIMS.schema.field(n).type) for n, v in columns.items()})


def _answer(row: Mapping[str, Any]) -> Answer:
    # Texts of chunks are not read: how an answer is cut must not depend on them.
    chunks = [Chunk(text="", **{k: v for k, v in c.items() if k != "text"}) for c in row["chunks"]]
    cited: Sequence[dict[str, object]] | None = row["citations"]
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
    if did["reasoning"]:
        yield f"{did['reasoning']:,} reasoning blocks are no part of their answers and were left out."
    if did["renumbered"]:
        yield f"{did['renumbered']:,} answers number the chunks otherwise than their ranks, and were read so."
    if did["uncovered"]:
        yield (
            f"{did['uncovered']:,} answers are in languages without rules for greetings, refusals and pointers: "
            "these were judged as claims."
        )
    if did["unbroken"]:
        yield f"{did['unbroken']} sentences were not broken into facts by the model and stay whole"
    if did["undone"]:
        yield f"the model could not be asked about all answers of {did['undone']} parts: the next run cuts them"
