"""Verdicts: judges every request without one, first single pairs, then joint pairs, for each judge of a cascade.

Each request is judged once: its key is first looked up among all verdicts of the judge version, of any day. Verdicts
are stored shard by shard.
"""

from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise, takewhile
from operator import attrgetter

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.types import Request
from tasks.executors import Job
from tasks.judging.claims import Window, cut_claims, passages, premise, trace_texts
from tasks.judging.escalate import plan_escalated
from tasks.judging.judge_work import JudgeWork
from tasks.judging.pairs import joint_name, joint_pairs, left_out_name, pair_parts, planned_part
from tasks.judging.second_pass import plan_second_pass
from tasks.judging.stored_verdicts import state_of, verdicts_for
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.part_work import see_stored
from tasks.run.plan import trace_parts
from tasks.run.redacted import unredacted
from tasks.run.result import StageResult
from tasks.run.work import WorkLoop, shards, work_loop
from tasks.store.lake import Part
from tasks.store.query import Queries

Judged = Job[Request, StageResult]
SINGLE, JOINT, LEFT_OUT = "verdicts", "joint pairs", "left-out pairs"
PAIR_COLUMNS = ["claim_id", "trace_id", "evidence", "request_key"]


def stage_name(name: str, stage: int) -> str:
    """Name of a judge's stage. Later judges of a cascade have their number in it."""
    return name if stage == 1 else f"{name} {stage}"


def judge_pairs(ctx: Context, *, stage: int = 1, retry_failures: bool = False, keep: bool = False) -> StageResult:
    """Judge the single pairs of the run's days. With method `citations`, free the model afterwards.

    Args:
        stage: Number of the recipe's judge or pass, from 1. For a later one, its claims are planned first.
        keep: Leave the model loaded, because the next stage uses the same judge.

    Raises:
        EngineError: The model can't be run. Stored verdicts stay.
    """
    judge = ctx.judges[stage - 1]
    with ctx.queries() as queries:
        plan = plan_second_pass if ctx.settings.method == "citations" else plan_escalated
        tokens, note = plan(ctx, queries, judge) if stage > 1 else (0, None)
        todo = [(part, pair_parts(ctx, part, judge)[:1]) for part in trace_parts(ctx)]
        done = _judge(ctx, queries, judge, SINGLE, todo, retry_failures=retry_failures)
    if ctx.settings.method == "citations" and not keep:
        _free(ctx, judge)
    return replace(done, tokens_in=done.tokens_in + tokens, notes=(*([note] if note else []), *done.notes))


def judge_joint_pairs(ctx: Context, *, stage: int = 1, retry_failures: bool = False, keep: bool = False) -> StageResult:
    """Plan the pairs that depend on the verdicts of the single pairs, judge them, and free the model.

    Method `citations` has no joint pairs.

    Args:
        stage: Number of the recipe's judge or pass, from 1.
        keep: Leave the model loaded, because the next stage uses the same judge.

    Raises:
        EngineError: See `judge_pairs`.
    """
    judge = ctx.judges[stage - 1]
    done = StageResult(stage_name(JOINT, stage), judge=judge.version)
    if ctx.settings.method == "claims":
        with ctx.queries() as queries:
            parts = [part for part in trace_parts(ctx) if pair_parts(ctx, part, judge)]
            joint = [(part, [_plan_joint(ctx, queries, judge, part)]) for part in parts]
            done = _judge(ctx, queries, judge, JOINT, joint, retry_failures=retry_failures)
            left_out = [(part, [pairs]) for part in parts if (pairs := _plan_left_out(ctx, queries, judge, part))]
            if left_out:
                done += _judge(ctx, queries, judge, LEFT_OUT, left_out, retry_failures=retry_failures)
    if not keep:
        _free(ctx, judge)  # before the next judge loads its model
    return done


def _free(ctx: Context, judge: CascadeJudge) -> None:
    """Free the model, in workers too."""
    judge.close()
    ctx.executor.close()


def open_requests(
    ctx: Context, queries: Queries, judge: CascadeJudge, part: Part, pairs: Sequence[Part]
) -> Iterator[Request]:
    """Requests of these pairs without a verdict."""
    missing = _missing(ctx, queries, judge, part, pairs, retry_failures=False)
    return requests_of(ctx, part, (p.read(PAIR_COLUMNS) for p in pairs), missing)


def _plan_joint(ctx: Context, queries: Queries, judge: CascadeJudge, part: Part) -> Part:
    """Plan the part of joint pairs."""
    single = pair_parts(ctx, part, judge)[:1]
    return _plan(ctx, queries, judge, part, "judging/joint_pairs", joint_name(part, judge), single)


def _plan_left_out(ctx: Context, queries: Queries, judge: CascadeJudge, part: Part) -> Part | None:
    """Plan the part of pairs with all cited chunks but one; None if no claim cites enough chunks."""
    cited = cut_claims(ctx, part, ["cited_chunk_ids"])["cited_chunk_ids"]
    if judge.pairing.packs or not pc.any(pc.greater(pc.list_value_length(cited), 2)).as_py():
        return None
    name = left_out_name(part, judge)
    others = [pairs for pairs in pair_parts(ctx, part, judge) if pairs.name != name]
    return _plan(ctx, queries, judge, part, "judging/left_out_pairs", name, others)


def _plan(
    ctx: Context, queries: Queries, judge: CascadeJudge, part: Part, query: str, name: str, before: Sequence[Part]
) -> Part:
    """Plan a part of further pairs, which depend on the verdicts on earlier pairs."""
    verdicts = verdicts_for(ctx, queries, judge, part, before)

    def rows() -> pa.Table:
        claims = cut_claims(ctx, part, ["claim_id", "cited_chunk_ids"])
        planned = queries.run(query, {"claims": claims, "pairs": before, "verdict": verdicts})
        return joint_pairs(ctx, judge, part, planned)

    # A later judge may see other claims while their number of verdicts stays the same.
    state = "|".join(filter(None, (*(p.inputs() for p in before), state_of(verdicts))))
    return planned_part(ctx, part, name, state, rows)


def _judge(
    ctx: Context,
    queries: Queries,
    judge: CascadeJudge,
    name: str,
    todo: Sequence[tuple[Part, list[Part]]],
    *,
    retry_failures: bool,
) -> StageResult:
    """Judge the missing requests of some parts of pairs. Each comes with its part of `traces`."""
    total = sum(p.rows() for _, pairs in todo for p in pairs)
    result = StageResult(stage_name(name, judge.stage), judge=judge.version)
    attempt = datetime.now(UTC).isoformat() if retry_failures else ""

    def jobs() -> Iterator[Judged]:
        for part, pairs in todo:
            see_stored(ctx)
            flying = {request.key for job in loop.flying for request in job.shard}
            missing = _missing(ctx, queries, judge, part, pairs, retry_failures=retry_failures) - flying
            loop.reuse(sum(p.rows() for p in pairs) - len(missing))
            requests = requests_of(ctx, part, (p.read(PAIR_COLUMNS) for p in pairs), missing)
            yield from jobs_of(ctx, loop, judge, part, requests, attempt=attempt)

    gpus = judge.gpus * ctx.executor.workers
    with work_loop(ctx.progress, total, result, budget=ctx.budget, gpus=gpus) as loop:
        judge_jobs(ctx, loop, jobs())
    return loop.result


def judge_jobs(ctx: Context, loop: WorkLoop, jobs: Iterable[Judged]) -> None:
    """Judge shards with the configured executor, then make their verdicts visible to this process."""
    loop.map(ctx.executor, jobs)
    see_stored(ctx)


def jobs_of(
    ctx: Context,
    loop: WorkLoop,
    judge: CascadeJudge,
    part: Part,
    requests: Iterator[Request],
    *,
    sample: int = 0,
    attempt: str = "",
) -> Iterator[Judged]:
    """Shards of a part's requests, sorted by their passages, for an executor. Yields nothing once the loop is over.

    Args:
        sample: Number of the judge's sample.
        attempt: See `JudgeWork`.
    """
    limits, whole = ctx.config.limits, ctx.executor.workers > 1
    work = JudgeWork(loop.result.stage, ctx.lake, judge, part.name, part.partition[-1], sample, attempt)
    order = attrgetter("shown")
    cut = shards(requests, limits.shard_requests, held=limits.sort_requests, order=order, whole=whole)
    return (Job(shard, work) for shard in takewhile(lambda _: not loop.over, cut))


def _missing(
    ctx: Context, queries: Queries, judge: CascadeJudge, part: Part, pairs: Sequence[Part], *, retry_failures: bool
) -> set[str]:
    """Keys of requests without a verdict, and with `retry_failures` also of failed ones."""
    verdicts = verdicts_for(ctx, queries, judge, part, pairs)
    if retry_failures:
        verdicts = verdicts.filter(pc.is_valid(verdicts["label"]))
    wanted: set[str] = set()
    for p in pairs:
        wanted.update(unredacted(part, p.read(["request_key", "trace_id"]))["request_key"].to_pylist())
    return wanted.difference(verdicts["request_key"].to_pylist())


def requests_of(ctx: Context, part: Part, pairs: Iterable[pa.Table], missing: set[str]) -> Iterator[Request]:
    """Each missing request once, in the order of the pairs.

    Args:
        pairs: Pairs of the part, with `PAIR_COLUMNS`. They are only read if a request is missing.
        missing: Request keys. Yielded ones are removed.
    """
    if not missing:
        return
    texts = trace_texts(part)
    hypotheses = dict(pl.DataFrame(cut_claims(ctx, part, ["claim_id", "hypothesis"])).iter_rows())
    for table in (unredacted(part, rows) for rows in pairs):
        wanted = table.filter(pc.is_in(table["request_key"], pa.array(sorted(missing), pa.string())))
        before: tuple[str, list[Window]] | None = None
        text, shown = "", tuple[str, ...]()
        for batch in wanted.to_batches(max_chunksize=ctx.config.limits.shard_requests):
            columns = (batch[c].to_pylist() for c in ("request_key", "trace_id", "claim_id"))
            for key, trace, claim, evidence in zip(*columns, _windows(batch["evidence"]), strict=True):
                if key in missing:
                    missing.discard(key)
                    if before != (trace, evidence):  # claims with the same evidence share one text
                        before = (trace, evidence)
                        # In the second pass, the evidence is claims of the answer, by their ids.
                        shown = passages(evidence, ChainMap(texts[trace], hypotheses))
                        text = premise(shown)
                    yield Request(key, text, hypotheses[claim], shown if len(shown) > 1 else ())


def _windows(evidence: pa.ListArray) -> Iterator[list[Window]]:
    """The windows of each pair, without a dictionary for each window: that would take longer than a small model."""
    flat = evidence.flatten()
    windows = list(zip(*(flat.field(i).to_pylist() for i in range(3)), strict=True))
    ends = np.cumsum(pc.list_value_length(evidence).to_numpy()).tolist()
    return (windows[start:end] for start, end in pairwise([0, *ends]))
