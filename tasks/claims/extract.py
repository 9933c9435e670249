"""Claims: cuts the answers of every part of `traces` that has no part of `claims`."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core import keys
from tasks.core.errors import ChangedError
from tasks.core.progress import tracked
from tasks.core.schemas import CLAIMS
from tasks.core.types import Answer, Chunk, Citation
from tasks.executors import Job
from tasks.extractors import ByApp, covers
from tasks.run.context import Context
from tasks.run.part_work import LEFT, PartWork, see_stored
from tasks.run.plan import missing_parts, with_earlier_questions
from tasks.run.redacted import unredacted
from tasks.run.result import StageResult, token_counts
from tasks.store.lake import Lake, Part, conform, empty

ANSWERS_AT_ONCE = 500  # enough sentences to keep a model busy
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


def extract_claims(ctx: Context, *, modelless: bool = False, answers_at_once: int = ANSWERS_AT_ONCE) -> StageResult:
    """Cut the answers of the run's days into claims; returns claims computed and reused.

    The newest days come first. A part that an outage or the end of the budget interrupts is left to the next run, which
    continues after the last finished answer.

    Args:
        modelless: Run no model, and keep sentences whole that it would break up; for counting the remaining work.
        answers_at_once: Number of answers between two checks of the budget.

    Raises:
        EngineError: A model is needed and can't be run. Finished parts are kept.
    """
    extractor = ctx.extractor.modelless if modelless else ctx.extractor
    missing, reused = missing_parts(ctx, CLAIMS, ctx.extractor.version)
    parts = sorted(missing, key=attrgetter("date"), reverse=True)
    step = partial(_extract_part, modelless=modelless, answers_at_once=answers_at_once)
    work = PartWork(ctx, step, Counter(left=1), extractor.gpus)
    counts: Counter[str] = Counter()
    try:
        with tracked(ctx.progress, "claims", len(missing)):
            for _, found in ctx.executor.map((Job([part], work) for part in parts), ctx.budget.over):
                counts += found
                if ctx.executor.elsewhere:
                    ctx.budget.used += found["tokens_in"] + found["tokens_out"]
                ctx.progress.advance()
    finally:
        extractor.close()  # before the next stage loads a model of its own
        if extractor.gpus:
            ctx.executor.close()
    see_stored(ctx)
    return StageResult(
        "claims",
        computed=counts["claims"],
        reused=reused,
        tokens_in=counts["tokens_in"],
        tokens_cached=counts["tokens_cached"],
        tokens_out=counts["tokens_out"],
        gpus=extractor.gpus if counts["tokens_in"] else 0,
        notes=tuple(_notes(counts)),
    )


def _extract_part(ctx: Context, part: Part, *, modelless: bool, answers_at_once: int) -> Counter[str]:
    """Cut the answers of a part unless another process has done so; returns tokens, claims and kinds."""
    extractor = ctx.extractor.modelless if modelless else ctx.extractor
    counts: Counter[str] = Counter()
    if not ctx.lake.find(CLAIMS, part.name, ctx.extractor.version, part.partition[-1]):
        rows = _claims(ctx, extractor, ctx.extractor.version, part, counts, answers_at_once)
        if rows is not None:
            _write(ctx, part, rows, ctx.extractor.version)
            counts["claims"] += pc.sum(pc.equal(rows["kind"], "claim")).as_py() or 0
    return counts


def _write(ctx: Context, part: Part, rows: pa.Table, version: str) -> None:
    """Store claims once only: a model may cut an answer differently the next time, and pairs refer to these claims."""
    with suppress(ChangedError):
        ctx.lake.write(CLAIMS, part.name, rows, version, part.partition[-1], once=True)
    unfinished(ctx.lake).drop(CLAIMS, part.name, version, part.partition[-1])


def unfinished(lake: Lake) -> Lake:
    """The lake of partial claims: parts in which only the first answers are cut. No other stage reads it.

    The `inputs` token is the number of finished answers.
    """
    return Lake(lake.hidden("unfinished"))


def _claims(
    ctx: Context, extractor: ByApp, version: str, part: Part, counts: Counter[str], answers_at_once: int
) -> pa.Table | None:
    """The claims of a part; None after an outage or the end of the budget. Adds tokens and kinds to `counts`."""
    where = (version, part.partition[-1])
    begun = unfinished(ctx.lake).find(CLAIMS, part.name, *where)
    before = done = int(begun.inputs()) if begun else 0
    rows = [empty(CLAIMS), *([conform(begun.read(), CLAIMS)] if begun else [])]
    answers = with_earlier_questions(ctx, part, pl.DataFrame(unredacted(part, part.read(COLUMNS))))
    for batch in answers.slice(done).iter_slices(answers_at_once):
        over = done > before and ctx.budget.over()  # each run takes at least one step, or it would never finish
        cut = None if over else _cut(ctx, extractor, version, batch.rows(named=True), counts)
        if cut is None:
            if done > before:
                unfinished(ctx.lake).write(CLAIMS, part.name, pa.concat_tables(rows), *where, inputs=str(done))
            return None
        rows.append(conform(cut, CLAIMS, where))
        done += batch.height
    return pa.concat_tables(rows)


def _cut(
    ctx: Context, extractor: ByApp, version: str, rows: Sequence[Mapping[str, Any]], counts: Counter[str]
) -> pa.Table | None:
    """The claims of some answers; None after an outage."""
    found = extractor.extract_many([(row["app"], _answer(row)) for row in rows])
    counts.update(token_counts(found))
    ctx.budget.used += sum(extraction.tokens_in + extraction.tokens_out for extraction in found)
    if any(extraction.outage for extraction in found):
        counts["undone"] += 1
        return None
    counts["unbroken"] += sum(extraction.unbroken for extraction in found)
    counts["renumbered"] += sum(extraction.renumbered for extraction in found)
    counts["reasoning"] += sum(claim.kind == "reasoning" for extraction in found for claim in extraction.claims)
    counts["uncovered"] += sum(not covers(extraction.language) for extraction in found)
    claims = [
        {
            "claim_id": keys.claim_id(row["trace_id"], version, ordinal),
            "trace_id": row["trace_id"],
            "ordinal": ordinal,
            "kind": claim.kind,
            "language": claim.language,
            "text": row["answer"][claim.start : claim.end] if claim.text is None else claim.text,
            "context": claim.context,
            "hypothesis": claim.hypothesis,
            "span_start": claim.start,
            "span_end": claim.end,
            "cited_chunk_ids": claim.cited_chunk_ids,
            "dangling_citations": claim.dangling,
        }
        for row, extraction in zip(rows, found, strict=True)
        for ordinal, claim in enumerate(extraction.claims)
    ]
    return pa.Table.from_pylist(claims, CLAIMS.stored)


def _answer(row: Mapping[str, Any]) -> Answer:
    # Texts of chunks are not read, because claims must not depend on them.
    return Answer(
        question=row["question"],
        text=row["answer"],
        chunks=[Chunk(text="", **chunk) for chunk in row["chunks"]],
        citations=None
        if row["citations"] is None
        else [Citation(c["start"], c["end"], tuple(c["chunk_ids"])) for c in row["citations"]],
    )


def _notes(counts: Mapping[str, int]) -> Iterator[str]:
    if counts["reasoning"]:
        yield f"{counts['reasoning']:,} reasoning blocks are no part of their answers and were left out."
    if counts["renumbered"]:
        yield f"{counts['renumbered']:,} answers number the chunks otherwise than their ranks, and were read so."
    if counts["uncovered"]:
        yield (
            f"{counts['uncovered']:,} answers are in languages without rules for greetings, refusals and pointers: "
            "these were judged as claims."
        )
    if counts["unbroken"]:
        yield f"{counts['unbroken']} sentences were not broken into facts by the model and stay whole"
    if counts["left"]:
        yield LEFT
    if counts["undone"]:
        yield f"the model could not be asked about all answers of {counts['undone']} parts: the next run cuts them"
