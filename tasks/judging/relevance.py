"""Relevance: score what has no score yet, scorer after scorer (METHODS sections 4 and 6).

Scores of a part are one part of `relevance` for each scorer. It is written again after every shard, so that a kill
loses at most the shard in flight, and says in its `inputs` token what is still open: scores that were not made yet or
could not be asked for (an outage), and failures. Left out: how a score is made (`scorers`).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.progress import tracked
from tasks.core.schemas import RELEVANCE
from tasks.core.types import OUTAGE
from tasks.extractors import visible
from tasks.judging.pairs import covered, planned_for
from tasks.judging.verdicts import outage_notes
from tasks.run import scope
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.run.redacted import unredacted
from tasks.run.result import StageResult
from tasks.run.scope import ALL
from tasks.scorers import Item, Kind, Scored, Scorer, stage_name
from tasks.store.lake import Part

COLUMNS = ["trace_id", "question", "answer", "chunks.list.element.chunk_id", "chunks.list.element.text"]
TRACES_AT_ONCE = 64
KEY = ("trace_id", "kind", "chunk_id")
Key = tuple[str, str, str | None]


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is open in a part of `relevance`, as its `inputs` token has it.

    Attributes:
        open: Scores that are not there.
        failed: Scores that are null.
        scopes: Which traces it is of; empty for all.
    """

    open: int = 0
    failed: int = 0
    scopes: str = ""

    @property
    def token(self) -> str:
        """As text; empty where nothing is open."""
        return "" if self == type(self)() else msgspec.json.encode(self).decode()


@dataclass(frozen=True, slots=True)
class Work:
    """What a scorer still has to do on a part.

    Attributes:
        known: Rows that stay.
        missing: What tells the scores that are to be made from others.
        scopes: Which traces they are of.
        seen: The file that `known` is from.
    """

    part: Part
    known: pa.Table | None
    missing: Collection[Key]
    scopes: str
    seen: tuple[int, int] | None = None


def score_relevance(ctx: Context, *, retry_failures: bool = False) -> StageResult:
    """Score the traces of the run's days by each scorer; each model is freed before the next is loaded."""
    done = StageResult("relevance")
    for scorer, after in pairwise((*ctx.scorers, None)):
        if scorer is not None:
            keep = after is not None and after.model is scorer.model
            one = score_by(ctx, scorer=scorer, retry_failures=retry_failures, keep=keep)
            done = replace(
                done,
                computed=done.computed + one.computed,
                reused=done.reused + one.reused,
                lost=done.lost + one.lost,
                tokens_in=done.tokens_in + one.tokens_in,
                tokens_cached=done.tokens_cached + one.tokens_cached,
                tokens_out=done.tokens_out + one.tokens_out,
                gpus=max(done.gpus, one.gpus),
            )
    return replace(done, notes=outage_notes(done.lost))


def score_by(ctx: Context, *, scorer: Scorer, retry_failures: bool = False, keep: bool = False) -> StageResult:
    """Score the traces of the run's days that have no score by one scorer.

    Args:
        retry_failures: Score again what failed.
        keep: Leave the model where it is: the next scorer asks the same one.

    Raises:
        EngineError: The model can't be run. The scores that are stored stay.
    """
    name = stage_name(scorer)
    done = StageResult(name)
    work: list[Work] = []
    for part in trace_parts(ctx):
        todo, reused = _todo(ctx, scorer, part, retry_failures=retry_failures)
        done = replace(done, reused=done.reused + reused)
        if todo is not None:
            work.append(todo)
    with tracked(ctx.progress, name, sum(len(w.missing) for w in work)):
        for todo in work:
            done = _score(ctx, scorer, todo, done)
    if not keep:
        scorer.close()
    return replace(done, notes=outage_notes(done.lost))


def open_items(ctx: Context, scorer: Scorer) -> Iterator[Item]:
    """What a scorer would score."""
    for todo in _open(ctx, scorer):
        yield from _items(scorer, todo)


def open_scores(ctx: Context, scorer: Scorer) -> Iterator[Key]:
    """What tells the scores apart that a scorer would make; no text is read."""
    for todo in _open(ctx, scorer):
        yield from todo.missing


def relevance_of(ctx: Context, part: Part) -> list[Part]:
    """The parts of `relevance` of a part of `traces` that are there, one for each scorer of the recipe."""
    found = (ctx.lake.find(RELEVANCE, part.name, scorer.version, part.partition[-1]) for scorer in ctx.scorers)
    return [part for part in found if part is not None]


def keys_of(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """What tells rows apart: their values of these columns."""
    return zip(*(rows[name].to_pylist() for name in names), strict=True)


def appended(rows: pa.Table | None, new: pa.Table) -> pa.Table:
    """New rows after those that are there, which an earlier version may have written with other columns."""
    return new if rows is None else pa.concat_tables([rows.select(new.column_names).cast(new.schema), new])


def with_others(rows: pa.Table, there: Part, names: Sequence[str]) -> pa.Table:
    """These rows, and those of a part that they lack."""
    found = there.read(rows.column_names).select(rows.column_names).cast(rows.schema)
    known = set(keys_of(rows, names))
    others = found.filter(pa.array([key not in known for key in keys_of(found, names)], pa.bool_()))
    return pa.concat_tables([rows, others])


def _open(ctx: Context, scorer: Scorer) -> Iterator[Work]:
    found = (_todo(ctx, scorer, part, retry_failures=False)[0] for part in trace_parts(ctx))
    return (todo for todo in found if todo is not None)


def _todo(ctx: Context, scorer: Scorer, part: Part, *, retry_failures: bool) -> tuple[Work | None, int]:
    """What is to be done on a part, or None where nothing is; and how many scores are there."""
    existing = ctx.lake.find(RELEVANCE, part.name, scorer.version, part.partition[-1])
    seen = existing.stamp() if existing else None
    state = msgspec.json.decode(existing.inputs() or "{}", type=State) if existing else State()
    if existing and not (state.open or state.scopes or (retry_failures and state.failed)):
        return None, existing.rows()
    # What costs little is scored for all traces, whichever of them the recipe judges.
    scopes = scope.token(planned_for(ctx, part) if scorer.asks else [ALL])
    traces = unredacted(part, part.read(["trace_id", "chunks.list.element.chunk_id"]))
    missing = set(_expected(scorer, covered(ctx, part, traces) if scorer.asks else traces))
    known = existing.read() if existing else None
    if known is not None:
        good = known["score"].is_valid().to_pylist()
        again = [
            retry_failures and not ok and key in missing for key, ok in zip(keys_of(known, KEY), good, strict=True)
        ]
        known = known.filter(pc.invert(pa.array(again, pa.bool_())))
        missing.difference_update(keys_of(known, KEY))
    return (Work(part, known, missing, scopes, seen) if missing else None), known.num_rows if known is not None else 0


def _score(ctx: Context, scorer: Scorer, work: Work, done: StageResult) -> StageResult:
    rows, seen = work.known, work.seen
    left = set(work.missing)
    items = (item for item in _items(scorer, work) if item.key in left)
    while shard := list(islice(items, ctx.config.limits.shard_requests)):
        if (scorer.asks or scorer.gpus) and ctx.budget.over():
            break  # the next run goes on
        scored = scorer.score(shard)
        kept = [(item, one) for item, one in zip(shard, scored, strict=True) if one.failure != OUTAGE]
        lost = len(shard) - len(kept)
        left.difference_update(item.key for item, _ in kept)
        done = replace(
            done,
            computed=done.computed + len(kept),
            lost=done.lost + lost,
            tokens_in=done.tokens_in + sum(s.tokens_in for s in scored),
            tokens_cached=done.tokens_cached + sum(s.tokens_cached for s in scored),
            tokens_out=done.tokens_out + sum(s.tokens_out for s in scored),
            gpus=scorer.gpus,
        )
        if scorer.asks:
            ctx.budget.used += sum(s.tokens_in + s.tokens_out for s in scored)
        if kept:
            new = _rows(scorer, kept)
            rows = appended(rows, new)
            where = (scorer.version, work.part.partition[-1])
            with ctx.lake.alone():
                there = ctx.lake.find(RELEVANCE, work.part.name, *where)
                if there and there.stamp() != seen:  # a nightly and a backfill may score the same traces
                    rows = with_others(rows, there, KEY)
                    left.difference_update(keys_of(rows, KEY))
                state = State(open=len(left), failed=rows["score"].null_count, scopes=work.scopes)
                seen = ctx.lake.write(RELEVANCE, work.part.name, rows, *where, inputs=state.token).stamp()
        ctx.progress.advance(len(shard))
    return done


def _expected(scorer: Scorer, traces: pa.Table) -> Iterator[Key]:
    """What tells the scores of these traces apart."""
    for trace_id, chunks in zip(traces["trace_id"].to_pylist(), traces["chunks"].to_pylist(), strict=True):
        if "answer" in scorer.kinds:
            yield (trace_id, "answer", None)
        if "context" in scorer.kinds:
            yield from ((trace_id, "context", chunk["chunk_id"]) for chunk in chunks)
        if "answerability" in scorer.kinds and chunks:
            yield (trace_id, "answerability", None)


def _items(scorer: Scorer, work: Work) -> Iterator[Item]:
    for batch in work.part.read(COLUMNS).to_batches(max_chunksize=TRACES_AT_ONCE):
        for trace in batch.to_pylist():
            trace_id, question, chunks = (trace[c] for c in ("trace_id", "question", "chunks"))
            answer = visible(trace["answer"])
            shown: list[tuple[Kind, str | None, tuple[str, ...]]] = []
            for kind in scorer.kinds:
                if kind == "context":
                    shown += [(kind, c["chunk_id"], (c["text"],)) for c in chunks]
                else:
                    shown.append((kind, None, tuple(c["text"] for c in chunks)))
            items = (Item(trace_id, kind, chunk_id, question, answer, texts) for kind, chunk_id, texts in shown)
            yield from (item for item in items if item.key in work.missing)


def _rows(scorer: Scorer, scored: Sequence[tuple[Item, Scored]]) -> pa.Table:
    columns: dict[str, list[object]] = {
        "trace_id": [i.trace_id for i, _ in scored],
        "kind": [i.kind for i, _ in scored],
        "chunk_id": [i.chunk_id for i, _ in scored],
        "method": [scorer.method] * len(scored),
        "score": [s.score for _, s in scored],
        "failure": [s.failure for _, s in scored],
        "tokens_in": [s.tokens_in for _, s in scored],
        "tokens_cached": [s.tokens_cached for _, s in scored],
        "tokens_out": [s.tokens_out for _, s in scored],
    }
    return pa.table({n: pa.array(c, RELEVANCE.schema.field(n).type) for n, c in columns.items()})
