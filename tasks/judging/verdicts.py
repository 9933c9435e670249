"""Verdicts: judge every request that has none yet, single pairs and then joint pairs, judge after judge of a cascade.

A request is paid for once: its key is looked up among all verdicts of the judge version, of any day, before it is
judged. Verdicts are stored shard by shard, so that a kill loses at most the shard in flight. What a model could not be
asked (an outage) is not stored at all: the next run asks again.
"""

from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, pairwise
from operator import attrgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.config import Limits
from tasks.core.progress import tracked
from tasks.core.schemas import PAIRS, VERDICTS
from tasks.core.types import LABELS, OUTAGE, Request, Verdict
from tasks.judging.escalate import plan_escalated
from tasks.judging.evidence import Window, passages, premise
from tasks.judging.known import state_of, verdicts_for
from tasks.judging.pairs import cut_claims, joint_name, joint_pairs, left_out_name, pair_parts, trace_texts
from tasks.judging.second_pass import plan_second_pass
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.run.redacted import unredacted, with_redacted
from tasks.run.result import StageResult
from tasks.store.lake import Part
from tasks.store.query import Queries

FIRST, SECOND = "verdicts", "joint pairs"
LOOK_COLUMNS = ["claim_id", "trace_id", "evidence", "request_key"]


def stage_name(name: str, stage: int) -> str:
    """What the stages of a judge are called; those of a cascade's later judges bear its number."""
    return name if stage == 1 else f"{name} {stage}"


def judge_pairs(ctx: Context, *, stage: int = 1, retry_failures: bool = False, keep: bool = False) -> StageResult:
    """Judge the single pairs of the run's days; of a round, free the model after them.

    Args:
        keep: Leave the model where it is: the next stage asks the same judge.
        stage: Which judge or round of the recipe, from 1. For a later one, the claims that go on to it are planned
            first.

    Raises:
        EngineError: The model can't be run. The verdicts that are stored stay.
    """
    member = ctx.judges[stage - 1]
    with ctx.queries() as queries:
        plan = plan_second_pass if ctx.settings.method == "citations" else plan_escalated
        tokens, note = plan(ctx, queries, member) if stage > 1 else (0, None)
        work = [(part, pair_parts(ctx, part, member)[:1]) for part in trace_parts(ctx)]
        done = _judge(ctx, queries, member, FIRST, work, retry_failures=retry_failures)
    if ctx.settings.method == "citations" and not keep:
        member.judge.close()
    return replace(done, tokens_in=done.tokens_in + tokens, notes=(*([note] if note else []), *done.notes))


def judge_joint_pairs(ctx: Context, *, stage: int = 1, retry_failures: bool = False, keep: bool = False) -> StageResult:
    """Plan the looks that the verdicts of the first ones call for, judge them, and free the model.

    Rounds have no joint pairs.

    Args:
        stage: Which judge or round of the recipe, from 1.
        keep: Leave the model where it is: the next stage asks the same judge.

    Raises:
        EngineError: See `judge_pairs`.
    """
    member = ctx.judges[stage - 1]
    done = StageResult(stage_name(SECOND, stage), judge=member.judge.version)
    if ctx.settings.method == "claims":
        with ctx.queries() as queries:
            parts = [part for part in trace_parts(ctx) if pair_parts(ctx, part, member)]
            work = [(part, [_plan_second(ctx, queries, member, part)]) for part in parts]
            done = _judge(ctx, queries, member, SECOND, work, retry_failures=retry_failures)
            more = [(part, [looks]) for part in parts if (looks := _plan_left_out(ctx, queries, member, part))]
            if more:
                done += _judge(ctx, queries, member, SECOND, more, retry_failures=retry_failures)
    if not keep:
        member.judge.close()  # before the next judge loads its model
    return done


def open_requests(
    ctx: Context, queries: Queries, member: CascadeJudge, part: Part, looks: Sequence[Part]
) -> Iterator[Request]:
    """Requests of these pairs that have no verdict yet."""
    missing = _missing(ctx, queries, member, part, looks, retry_failures=False)
    return requests_of(ctx, part, [look.read(LOOK_COLUMNS) for look in looks], missing)


def _plan_second(ctx: Context, queries: Queries, member: CascadeJudge, part: Part) -> Part:
    """The part of joint pairs."""
    return _plan(
        ctx, queries, member, part, "judging/joint_pairs", joint_name(part, member), pair_parts(ctx, part, member)[:1]
    )


def _plan_left_out(ctx: Context, queries: Queries, member: CascadeJudge, part: Part) -> Part | None:
    """The part of looks at all but one of the cited chunks; None where no claim cites enough of them."""
    cited = cut_claims(ctx, part, ["cited_chunk_ids"])["cited_chunk_ids"]
    if member.pairing.packs or not pc.any(pc.greater(pc.list_value_length(cited), 2)).as_py():
        return None
    name = left_out_name(part, member)
    others = [looks for looks in pair_parts(ctx, part, member) if looks.name != name]
    return _plan(ctx, queries, member, part, "judging/left_out_pairs", name, others)


def _plan(
    ctx: Context, queries: Queries, member: CascadeJudge, part: Part, query: str, name: str, before: Sequence[Part]
) -> Part:
    """A part of further looks; written again where the verdicts on those before it have changed since."""
    known = verdicts_for(ctx, queries, member, part, before)
    day = part.partition[-1]
    # Which claims a later judge sees may change while the number of verdicts on them stays.
    state = "|".join(filter(None, (*(p.inputs() for p in before), state_of(known))))
    existing = ctx.lake.find(PAIRS, name, ctx.recipe, day)
    if existing and existing.inputs() == state:
        return existing
    claims = cut_claims(ctx, part, ["claim_id", "cited_chunk_ids"])
    looks = queries.run(query, {"claims": claims, "pairs": before, "verdict": known})
    rows = joint_pairs(ctx, member, part, looks)
    rows = with_redacted(ctx.lake, PAIRS, name, rows, part, ctx.recipe, day)
    return ctx.lake.write(PAIRS, name, rows, ctx.recipe, day, inputs=state)


def _judge(
    ctx: Context,
    queries: Queries,
    member: CascadeJudge,
    name: str,
    work: Sequence[tuple[Part, list[Part]]],
    *,
    retry_failures: bool,
) -> StageResult:
    stage = stage_name(name, member.stage)
    asked = sum(p.rows() for _, looks in work for p in looks)
    unknown = 0
    done = StageResult(stage, judge=member.judge.version)
    with tracked(ctx.progress, stage, asked):
        for part, looks in work:
            missing = _missing(ctx, queries, member, part, looks, retry_failures=retry_failures)
            unknown += len(missing)
            ctx.progress.advance(sum(p.rows() for p in looks) - len(missing))
            requests = requests_of(ctx, part, [look.read(LOOK_COLUMNS) for look in looks], missing)
            done = judge_requests(ctx, member, part, requests, done)
    return replace(done, reused=asked - unknown, notes=outage_notes(done.lost))


def judge_requests(
    ctx: Context, member: CascadeJudge, part: Part, requests: Iterator[Request], done: StageResult, *, sample: int = 0
) -> StageResult:
    """Judge requests of a part and store their verdicts, shard by shard, as far as the budget goes.

    Args:
        done: What the stage did before.
        sample: Which sample of the judge they are.

    Returns:
        `done` with what this adds; `lost` counts what could not be asked and is not stored.

    Raises:
        EngineError: See `judge_pairs`.
    """
    for shard in shards(requests, ctx.config.limits):
        if ctx.budget.over():
            break
        verdicts = member.judge.judge(shard)
        ctx.budget.used += sum(v.tokens_in + v.tokens_out for v in verdicts)
        stored = [
            _checked(request, verdict)
            for request, verdict in zip(shard, verdicts, strict=True)
            if verdict.failure != OUTAGE
        ]
        if stored:
            now = datetime.now(UTC)
            rows = _rows(member, stored, now, sample)
            ctx.lake.write(
                VERDICTS, f"{part.name}-{now:%Y%m%dT%H%M%S%f}", rows, member.judge.version, part.partition[-1]
            )
        done = replace(
            done,
            computed=done.computed + len(stored),
            lost=done.lost + len(shard) - len(stored),
            tokens_in=done.tokens_in + sum(v.tokens_in for v in verdicts),
            tokens_cached=done.tokens_cached + sum(v.tokens_cached for v in verdicts),
            tokens_out=done.tokens_out + sum(v.tokens_out for v in verdicts),
            gpus=member.gpus,
        )
        ctx.progress.advance(len(shard))
    return done


def outage_notes(lost: int) -> tuple[str, ...]:
    """What to tell of requests that could not be asked."""
    return (f"{lost:,} requests could not be asked (outage); the next run asks them again.",) if lost else ()


def shards(requests: Iterator[Request], limits: Limits) -> Iterator[list[Request]]:
    """Requests cut for judging.

    As many as memory allows are sorted by their passages, so that a model reads once what several share, and then cut
    into what is judged between two writes.
    """
    while held := list(islice(requests, max(limits.sort_requests, limits.shard_requests))):
        held.sort(key=attrgetter("shown"))
        for start in range(0, len(held), limits.shard_requests):
            yield held[start : start + limits.shard_requests]


def _missing(
    ctx: Context, queries: Queries, member: CascadeJudge, part: Part, looks: Sequence[Part], *, retry_failures: bool
) -> set[str]:
    """Keys of requests without a verdict; with `retry_failures` those of failures too."""
    known = verdicts_for(ctx, queries, member, part, looks)
    if retry_failures:
        known = known.filter(pc.is_valid(known["label"]))
    asked: set[str] = set()
    for look in looks:
        asked.update(unredacted(part, look.read(["request_key", "trace_id"]))["request_key"].to_pylist())
    return asked.difference(known["request_key"].to_pylist())


def requests_of(ctx: Context, part: Part, looks: Sequence[pa.Table], missing: set[str]) -> Iterator[Request]:
    """Each missing request once, in the order of the pairs.

    Args:
        looks: Pairs of the part, with `LOOK_COLUMNS`.
        missing: Request keys; those that have been handed out are removed.
    """
    if not missing:
        return
    texts = trace_texts(part)
    table = cut_claims(ctx, part, ["claim_id", "hypothesis"])
    said = dict(zip(table["claim_id"].to_pylist(), table["hypothesis"].to_pylist(), strict=True))
    for pairs in (unredacted(part, look) for look in looks):
        wanted = pairs.filter(pc.is_in(pairs["request_key"], pa.array(sorted(missing), pa.string())))
        before: tuple[str, list[Window]] | None = None
        text, shown = "", tuple[str, ...]()
        for batch in wanted.to_batches(max_chunksize=ctx.config.limits.shard_requests):
            columns = (batch[c].to_pylist() for c in ("request_key", "trace_id", "claim_id"))
            for key, trace, claim, evidence in zip(*columns, _windows(batch["evidence"]), strict=True):
                if key in missing:
                    missing.discard(key)
                    if before != (trace, evidence):  # one text serves all claims that it is shown with
                        before = (trace, evidence)
                        # The second pass shows claims of the answer, which go by their ids.
                        shown = passages(evidence, ChainMap(texts[trace], said))
                        text = premise(shown)
                    yield Request(key, text, said[claim], shown if len(shown) > 1 else ())


def _windows(evidence: pa.ListArray) -> Iterator[list[Window]]:
    """Each pair's windows; a dictionary for each of them would cost more than the judging of a small model."""
    flat = evidence.flatten()
    windows = list(zip(*(flat.field(i).to_pylist() for i in range(3)), strict=True))
    ends = np.cumsum(pc.list_value_length(evidence).to_numpy()).tolist()
    return (windows[start:end] for start, end in pairwise([0, *ends]))


def _checked(request: Request, verdict: Verdict) -> Verdict:
    """The verdict, or a failure in its place.

    It must be exactly one of a known label and a failure, and name only passages that were shown.
    """
    known = all(1 <= n <= len(request.shown) for n in verdict.passages)
    if known and (verdict.label in LABELS) != (verdict.failure is not None):
        return verdict
    raw = verdict.raw or str(verdict.label)
    return replace(verdict, label=None, failure="invalid_verdict", passages=(), raw=raw)


def _rows(member: CascadeJudge, verdicts: Sequence[Verdict], now: datetime, sample: int) -> pa.Table:
    columns: dict[str, list[object]] = {
        "request_key": [v.key for v in verdicts],
        "sample": [sample] * len(verdicts),
        "label": [v.label for v in verdicts],
        "failure": [v.failure for v in verdicts],
        "p_supported": [v.p_supported for v in verdicts],
        "p_contradicted": [v.p_contradicted for v in verdicts],
        "passages": [v.passages for v in verdicts],
        "explanation": [v.explanation for v in verdicts],
        "raw": [v.raw for v in verdicts],
        "tokens_in": [v.tokens_in for v in verdicts],
        "tokens_cached": [v.tokens_cached for v in verdicts],
        "tokens_out": [v.tokens_out for v in verdicts],
        "engine": [member.judge.engine] * len(verdicts),
        "created_at": [now] * len(verdicts),
    }
    return pa.table({n: pa.array(c, VERDICTS.schema.field(n).type) for n, c in columns.items()})
