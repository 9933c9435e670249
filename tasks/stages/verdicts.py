"""Verdicts: judge every request that has none yet, first looks and then second looks.

A request is paid for once: its key is looked up among all verdicts of the judge version, of any day, before it is
judged. Verdicts are stored shard by shard, so that a kill loses at most the shard in flight.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.progress import tracked
from tasks.core.schemas import PAIRS, VERDICTS
from tasks.core.types import LABELS, Request, Verdict
from tasks.stages.context import Context, StageResult
from tasks.stages.evidence import premise
from tasks.stages.pairs import claims_of, joint_name, looks_of, second_looks, trace_texts
from tasks.store.lake import Part
from tasks.store.query import Queries


def judge_first_looks(ctx: Context, *, retry_failures: bool = False) -> StageResult:
    """Judge the single looks of the run's days."""
    with ctx.queries() as queries:
        work = [(part, looks_of(ctx, part)[:1]) for part in ctx.trace_parts()]
        return _judge(ctx, queries, "verdicts", work, retry_failures=retry_failures)


def judge_second_looks(ctx: Context, *, retry_failures: bool = False) -> StageResult:
    """Plan the joint looks that the verdicts of the single ones call for, and judge them."""
    if not ctx.config.recipe.pairing.joint_chunks:
        return StageResult("second looks")
    with ctx.queries() as queries:
        work = [(part, [_plan(ctx, queries, part)]) for part in ctx.trace_parts() if looks_of(ctx, part)]
        return _judge(ctx, queries, "second looks", work, retry_failures=retry_failures)


def open_requests(ctx: Context, queries: Queries, part: Part, looks: Sequence[Part]) -> Iterator[Request]:
    """Requests of these pairs that have no verdict yet."""
    return _requests(ctx, part, looks, _missing(ctx, queries, part, looks, retry_failures=False))


def verdicts_for(ctx: Context, queries: Queries, part: Part, looks: Sequence[Part]) -> pa.Table:
    """One row per request of these pairs that has a verdict (`sql/part_verdicts.sql`).

    Most verdicts on a part stand in files that bear its name; all the others are searched only for what these lack.
    """
    everywhere = ctx.lake.parts(VERDICTS, ctx.judge.version)
    own = [v for v in everywhere if v.name.startswith(f"{part.name}-")]
    if not everywhere or not looks:
        return queries.run("part_verdicts", {"pairs": looks, "verdicts": []})
    asked = pa.concat_tables([p.read(["request_key"]) for p in looks])
    found = queries.run("part_verdicts", {"pairs": asked, "verdicts": own})
    labelled = found.filter(pc.is_valid(found["label"]))
    rest = asked.filter(pc.invert(pc.is_in(asked["request_key"], labelled["request_key"])))
    if not rest.num_rows or len(own) == len(everywhere):
        return found
    return pa.concat_tables([labelled, queries.run("part_verdicts", {"pairs": rest, "verdicts": everywhere})])


def state_of(verdicts: pa.Table) -> str:
    """Token of what is known: it changes when a request gets its verdict or a failure is repaired."""
    return f"{verdicts.num_rows}:{verdicts['failure'].null_count}"


def _plan(ctx: Context, queries: Queries, part: Part) -> Part:
    """The part of second looks; written again where the first looks' verdicts have changed since."""
    first = looks_of(ctx, part)[:1]
    known = verdicts_for(ctx, queries, part, first)
    existing = ctx.lake.find(PAIRS, joint_name(part), ctx.recipe, part.partition[-1])
    if existing and existing.inputs() == state_of(known):
        return existing
    params = {"joint_chunks": ctx.config.recipe.pairing.joint_chunks}
    looks = queries.run("second_look", {"pairs": first, "verdict": known}, params)
    rows = second_looks(ctx, part, looks)
    return ctx.lake.write(PAIRS, joint_name(part), rows, ctx.recipe, part.partition[-1], inputs=state_of(known))


def _judge(
    ctx: Context, queries: Queries, stage: str, work: Sequence[tuple[Part, list[Part]]], *, retry_failures: bool
) -> StageResult:
    asked = sum(p.rows() for _, looks in work for p in looks)
    computed = tokens_in = tokens_out = 0
    with tracked(ctx.progress, stage, asked):
        for part, looks in work:
            missing = _missing(ctx, queries, part, looks, retry_failures=retry_failures)
            ctx.progress.advance(sum(p.rows() for p in looks) - len(missing))
            requests = _requests(ctx, part, looks, missing)
            while shard := list(islice(requests, ctx.config.limits.shard_requests)):
                verdicts = [_checked(v) for v in ctx.judge.judge(shard)]
                now = datetime.now(UTC)
                rows = _rows(ctx, verdicts, now)
                name = f"{part.name}-{now:%Y%m%dT%H%M%S%f}"
                ctx.lake.write(VERDICTS, name, rows, ctx.judge.version, part.partition[-1])
                computed += len(shard)
                tokens_in += sum(v.tokens_in for v in verdicts)
                tokens_out += sum(v.tokens_out for v in verdicts)
                ctx.progress.advance(len(shard))
    return StageResult(stage, computed=computed, reused=asked - computed, tokens_in=tokens_in, tokens_out=tokens_out)


def _missing(ctx: Context, queries: Queries, part: Part, looks: Sequence[Part], *, retry_failures: bool) -> set[str]:
    """Keys of requests without a verdict; with `retry_failures` those of failures too."""
    known = verdicts_for(ctx, queries, part, looks)
    if retry_failures:
        known = known.filter(pc.is_valid(known["label"]))
    asked: set[str] = set()
    for look in looks:
        asked.update(look.read(["request_key"])["request_key"].to_pylist())
    return asked.difference(known["request_key"].to_pylist())


def _requests(ctx: Context, part: Part, looks: Sequence[Part], missing: set[str]) -> Iterator[Request]:
    """Each missing request once, in the order of the pairs: those of the same evidence one after another."""
    if not missing:
        return
    texts = trace_texts(part)
    table = claims_of(ctx, part, ["claim_id", "hypothesis"])
    said = dict(zip(table["claim_id"].to_pylist(), table["hypothesis"].to_pylist(), strict=True))
    for look in looks:
        pairs = look.read(["claim_id", "trace_id", "evidence", "request_key"])
        pairs = pairs.filter(pc.is_in(pairs["request_key"], pa.array(sorted(missing), pa.string())))
        for batch in pairs.to_batches(max_chunksize=ctx.config.limits.shard_requests):
            columns = (batch[c].to_pylist() for c in ("request_key", "trace_id", "claim_id"))
            for key, trace, claim, shown in zip(*columns, _windows(batch["evidence"]), strict=True):
                if key in missing:
                    missing.discard(key)
                    yield Request(key, premise(shown, texts[trace]), said[claim])


def _windows(evidence: pa.ListArray) -> Iterator[list[tuple[str, int, int]]]:
    """Each pair's windows; a dictionary for each of them would cost more than the judging of a small model."""
    flat = evidence.flatten()
    windows = list(zip(*(flat.field(i).to_pylist() for i in range(3)), strict=True))
    ends = np.cumsum(pc.list_value_length(evidence).to_numpy()).tolist()
    return (windows[start:end] for start, end in pairwise([0, *ends]))


def _checked(verdict: Verdict) -> Verdict:
    """The verdict, or a failure in its place where it is not exactly one of a known label and a failure."""
    if (verdict.label in LABELS) != (verdict.failure is not None):
        return verdict
    return replace(verdict, label=None, failure="invalid_verdict", raw=verdict.raw or str(verdict.label))


def _rows(ctx: Context, verdicts: Sequence[Verdict], now: datetime) -> pa.Table:
    columns: dict[str, list[object]] = {
        "request_key": [v.key for v in verdicts],
        "sample": [0] * len(verdicts),
        "label": [v.label for v in verdicts],
        "failure": [v.failure for v in verdicts],
        "p_supported": [v.p_supported for v in verdicts],
        "p_contradicted": [v.p_contradicted for v in verdicts],
        "explanation": [v.explanation for v in verdicts],
        "raw": [v.raw for v in verdicts],
        "tokens_in": [v.tokens_in for v in verdicts],
        "tokens_out": [v.tokens_out for v in verdicts],
        "engine": [ctx.judge.engine] * len(verdicts),
        "created_at": [now] * len(verdicts),
    }
    return pa.table({n: pa.array(c, VERDICTS.schema.field(n).type) for n, c in columns.items()})
