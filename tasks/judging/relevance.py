"""Relevance: computes the missing scores, one scorer at a time (docs/methods.md#scores-of-one-trace).

A part of `traces` has one part of `relevance` for each scorer. Left out: how a score is made (`tasks/scorers`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import polars as pl
import pyarrow as pa

from tasks.core.schemas import RELEVANCE
from tasks.extractors import visible
from tasks.judging.claims import covered, planned_scopes
from tasks.judging.open_parts import Key, OpenPart
from tasks.run.context import Context
from tasks.run.part_work import by_part
from tasks.run.plan import trace_parts, with_earlier_questions
from tasks.run.redacted import unredacted
from tasks.run.result import TOKENS, StageResult
from tasks.run.scopes import scope
from tasks.run.scopes.scope import ALL
from tasks.run.work import answered, outage_notes, shards, work_loop
from tasks.scorers import Item, Scored, Scorer, stage_name
from tasks.store.lake import Part

COLUMNS = ["trace_id", "question", "answer", "chunks.list.element.chunk_id", "chunks.list.element.text"]
TRACES_AT_ONCE = 64


def score_relevance(ctx: Context, *, retry_failures: bool = False) -> StageResult:
    """Score the traces of the run's days with each scorer. Each model is freed before the next one loads."""
    done = StageResult("relevance")
    for scorer, after in pairwise((*ctx.scorers, None)):
        if scorer is not None:
            keep = after is not None and after.model is scorer.model
            done += score_by(ctx, scorer=scorer, retry_failures=retry_failures, keep=keep)
    return replace(done, notes=outage_notes(done.lost))


def score_by(ctx: Context, *, scorer: Scorer, retry_failures: bool = False, keep: bool = False) -> StageResult:
    """Score the traces of the run's days that one scorer has not scored.

    Args:
        retry_failures: Score failed items again.
        keep: Leave the model loaded, because the next scorer uses the same one.

    Raises:
        EngineError: The model can't be run. Stored scores stay.
    """
    parts = [_open_part(ctx, scorer, part, retry_failures=retry_failures) for part in trace_parts(ctx)]
    done = StageResult(stage_name(scorer), reused=sum(part.reused for part in parts))
    if not ctx.executor.elsewhere:
        return _score(ctx, scorer, parts, done, keep=keep)
    todo = [part.source for part in parts if part.missing]
    step = partial(_score_part, number=ctx.scorers.index(scorer), retry_failures=retry_failures)
    stops = scorer.asks or scorer.gpus > 0
    done = by_part(ctx, todo, step, done, gpus=scorer.gpus, stops=stops, spends=scorer.asks)
    if scorer.gpus and not keep:
        ctx.executor.close()
    return done


def _score_part(ctx: Context, part: Part, *, number: int, retry_failures: bool) -> StageResult:
    """Score a part in a worker."""
    scorer = ctx.scorers[number]
    part_of = _open_part(ctx, scorer, part, retry_failures=retry_failures)
    return replace(_score(ctx, scorer, [part_of], StageResult(stage_name(scorer)), keep=True), notes=())


def _score(ctx: Context, scorer: Scorer, parts: Sequence[OpenPart], done: StageResult, *, keep: bool) -> StageResult:
    with work_loop(
        ctx.progress,
        sum(len(part.missing) for part in parts),
        done,
        budget=ctx.budget,
        gpus=scorer.gpus,
        stops=scorer.asks or scorer.gpus > 0,
        spends=scorer.asks,
        close=None if keep else scorer.close,
    ) as loop:
        for part in parts:
            items = shards(_items(ctx, scorer, part), ctx.config.limits.shard_requests)
            loop.run(items, scorer.score, partial(_store, scorer, part))
    return loop.result


def open_items(ctx: Context, scorer: Scorer) -> Iterator[Item]:
    """The items that a scorer has not scored."""
    for part in trace_parts(ctx):
        yield from _items(ctx, scorer, _open_part(ctx, scorer, part, retry_failures=False))


def open_scores(ctx: Context, scorer: Scorer) -> Iterator[Key]:
    """Keys of the items that a scorer has not scored, found without reading texts."""
    for part in trace_parts(ctx):
        yield from _open_part(ctx, scorer, part, retry_failures=False).missing


def relevance_of(ctx: Context, part: Part) -> list[Part]:
    """The existing parts of `relevance` for a part of `traces`, one for each scorer of the recipe."""
    found = (ctx.lake.find(RELEVANCE, part.name, scorer.version, part.partition[-1]) for scorer in ctx.scorers)
    return [part for part in found if part is not None]


def _open_part(ctx: Context, scorer: Scorer, part: Part, *, retry_failures: bool) -> OpenPart:
    """The stored and the missing scores of a part."""

    def expected() -> tuple[pl.DataFrame, str]:
        traces = unredacted(part, part.read(["trace_id", "chunks.list.element.chunk_id"]))
        # Cheap scores are made for all traces, even those that the recipe does not judge.
        traces = covered(ctx, part, traces) if scorer.asks else traces
        return _expected(scorer, traces), scope.token(planned_scopes(ctx, part) if scorer.asks else [ALL])

    failures = {"failed": pl.col("score").is_null()}
    found = OpenPart(ctx.lake, part, RELEVANCE, part.name, scorer.version, ["trace_id", "kind", "chunk_id"], failures)
    return found.read(expected, retry_failures=retry_failures)


def _expected(scorer: Scorer, traces: pa.Table) -> pl.DataFrame:
    """Keys of the scores of these traces."""
    trace = pl.DataFrame(traces).lazy()
    no_chunk = pl.lit(None, pl.String)
    chunk_id = pl.col("chunks").struct.field("chunk_id")
    found = {
        "answer": trace.select("trace_id", no_chunk.alias("chunk_id")),
        "context": trace.filter(pl.col("chunks").list.len() > 0).explode("chunks").select("trace_id", chunk_id),
        "answerability": trace.filter(pl.col("chunks").list.len() > 0).select("trace_id", no_chunk.alias("chunk_id")),
    }
    return pl.concat([found[kind].with_columns(kind=pl.lit(kind)) for kind in scorer.kinds]).unique().collect()


def _items(ctx: Context, scorer: Scorer, part: OpenPart) -> Iterator[Item]:
    """The missing items, in the order of the traces."""
    if not part.missing:
        return
    traces = with_earlier_questions(ctx, part.source, pl.DataFrame(part.source.read(COLUMNS)))
    for trace in traces.iter_rows(named=True, buffer_size=TRACES_AT_ONCE):
        answer, chunks = visible(trace["answer"]), trace["chunks"]
        whole: list[tuple[str | None, tuple[str, ...]]] = [(None, tuple(c["text"] for c in chunks))]
        each = [(c["chunk_id"], (c["text"],)) for c in chunks]
        for kind in scorer.kinds:
            for chunk_id, texts in each if kind == "context" else whole:
                item = Item(trace["trace_id"], kind, chunk_id, trace["question"], answer, texts)
                if item.key in part.missing:
                    yield item


def _store(scorer: Scorer, part: OpenPart, items: list[Item], scores: Sequence[Scored]) -> int:
    pairs = answered(items, scores)
    if pairs:
        columns = {
            "trace_id": [i.trace_id for i, _ in pairs],
            "kind": [i.kind for i, _ in pairs],
            "chunk_id": [i.chunk_id for i, _ in pairs],
            "method": [scorer.method] * len(pairs),
            **{name: [getattr(s, name) for _, s in pairs] for name in ("score", "failure", *TOKENS)},
        }
        part.add(pa.Table.from_pydict(columns, RELEVANCE.stored))
    return len(pairs)
