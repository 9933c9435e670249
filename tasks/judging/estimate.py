"""Estimates the cost of judging: requests without a verdict, their tokens, and minutes at a measured rate."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import polars as pl
import pyarrow as pa

from tasks.core.grades import GRADED
from tasks.core.schemas import TRACE_SCORES
from tasks.core.types import Request
from tasks.judging.claims import has_claims
from tasks.judging.escalate import latest_share, settled
from tasks.judging.grades import STAGE, open_answers
from tasks.judging.pairs import pair_parts, single_pairs
from tasks.judging.relevance import open_items, open_scores
from tasks.judging.second_pass import possible_pairs
from tasks.judging.stored_verdicts import verdicts_on
from tasks.judging.verdicts import open_requests, requests_of
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.plan import missing_parts, trace_parts
from tasks.run.record import measured_rates
from tasks.scorers import stage_name
from tasks.store.lake import Part
from tasks.store.query import Queries

T = TypeVar("T")
CHARS_PER_TOKEN = 4  # for English; used until a run of this judge has measured it


@dataclass(frozen=True, slots=True)
class JudgeEstimate:
    """Remaining work of one judge.

    Attributes:
        verdicts: Single pairs to judge. For the second pass an upper bound, until the first pass is judged.
        joint_pairs: Joint pairs that may be needed: an upper bound until the claims' single pairs are judged.
        share: Assumed share of claims escalated to this judge while the judge before it has work left: the share of the
            latest night, or 1 before the first night. None if the claims are known.
        tokens: Tokens of the single pairs, at the judge's measured rate per verdict, or estimated from characters.
        minutes: At the rate of this judge's latest run; None before the first run.
        gpu_minutes: `minutes` times the GPUs that the judge held in that run.
    """

    judge: str
    verdicts: int
    joint_pairs: int
    share: float | None
    tokens: int
    minutes: float | None
    gpu_minutes: float | None


@dataclass(frozen=True, slots=True)
class RequestEstimate:
    """Remaining scores or grades that a language model gives.

    Attributes:
        stage: Name of the stage.
        requests: Upper bound: equal requests are made only once.
        tokens: Tokens to read, estimated from characters, without the instructions that all requests share.
    """

    stage: str
    requests: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """Remaining work of all models.

    Attributes:
        judges: In the order of the cascade.
        relevance: Scores of answers, chunks and answerability that need no language model.
        requests: Scores that need a language model, by scorer, and grades.
        scores: Traces to score.
        answers: Answers to grade without a language model; None if the recipes have no such grader.
    """

    judges: tuple[JudgeEstimate, ...]
    relevance: int
    scores: int
    requests: tuple[RequestEstimate, ...] = ()
    answers: int | None = None


@dataclass(slots=True)
class _Count:
    """Single pairs, their characters, and joint pairs."""

    verdicts: int = 0
    chars: int = 0
    joint_pairs: int = 0

    def add(self, requests: Sequence[Request], joint_pairs: int) -> None:
        self.verdicts += len(requests)
        self.chars += sum(len(r.premise) + len(r.hypothesis) for r in requests)
        self.joint_pairs += joint_pairs


def estimate(*contexts: Context) -> Estimate:
    """Count the work that remains for the run's days. Reads texts; runs only the model that ranks chunks.

    Args:
        contexts: One for each recipe. Requests of an earlier recipe are not counted again.
    """
    judges: list[JudgeEstimate] = []
    requested: defaultdict[str, set[str]] = defaultdict(set)  # request keys by judge
    seen: defaultdict[str, set[str]] = defaultdict(set)  # traces by scorer or grader
    requests: dict[str, RequestEstimate] = {}
    relevance = scores = 0
    answers: int | None = None
    for ctx in contexts:
        with ctx.queries() as queries:
            for judge in ctx.judges:
                found = _judging(ctx, queries, judge, requested[judge.version])
                name = f"{found.judge} for {ctx.settings.name}" if len(contexts) > 1 else found.judge
                judges.append(replace(found, judge=name))
        unscored, _ = missing_parts(ctx, TRACE_SCORES, ctx.recipe)
        scores += sum(p.rows() for p in unscored)
        for scorer in ctx.scorers:
            if scorer.asks:
                items = ((item.trace_id, item) for item in open_items(ctx, scorer) if not item.blank)
                chars = [sum(map(len, scorer.shows(item))) for item in _unseen(items, seen[scorer.version])]
                _add(requests, scorer.version, stage_name(scorer), len(chars), sum(chars))
            else:
                keys = ((key[0], key) for key in open_scores(ctx, scorer))
                relevance += sum(1 for _ in _unseen(keys, seen[scorer.version]))
        if ctx.grader:
            by = f"{ctx.grader.version} {ctx.extractor.version}"
            ungraded = _unseen(open_answers(ctx), seen[by])
            chars = [sum(map(len, (a.question, a.answer, *a.passages))) for a in ungraded]
            if ctx.grader.asks:  # one request for each grade
                _add(requests, by, STAGE, len(chars) * len(GRADED), sum(chars) * len(GRADED))
            else:
                answers = (answers or 0) + len(chars)
    return Estimate(tuple(judges), relevance, scores, tuple(requests.values()), answers)


def _unseen(found: Iterable[tuple[str, T]], seen: set[str]) -> Iterator[T]:
    """Yield the items of traces that are not in `seen`, and add these traces to it."""
    new: set[str] = set()
    for trace, one in found:
        if trace not in seen:
            new.add(trace)
            yield one
    seen.update(new)


def _add(requests: dict[str, RequestEstimate], by: str, stage: str, count: int, chars: int) -> None:
    before = requests.get(by, RequestEstimate(stage, 0, 0))
    tokens = before.tokens + chars // CHARS_PER_TOKEN
    requests[by] = replace(before, requests=before.requests + count, tokens=tokens)


def _judging(ctx: Context, queries: Queries, judge: CascadeJudge, requested: set[str]) -> JudgeEstimate:
    """Args: requested: Request keys that earlier recipes send to this judge; the counted ones are added."""
    passes = ctx.settings.method == "citations"
    certain, possible = _Count(), _Count()
    for part in (p for p in trace_parts(ctx) if has_claims(ctx, p)):
        planned = judge.stage == 1 or _earlier_done(ctx, queries, judge, part)
        pairs = pair_parts(ctx, part, judge)
        if planned:
            found: Iterator[Request] = open_requests(ctx, queries, judge, part, pairs[:1])
            single = pairs[0].read(["claim_id", "cited"])
        else:
            single = possible_pairs(ctx, judge, part) if passes else single_pairs(ctx, judge, part)[0]
            found = _unjudged(ctx, queries, judge, part, single)
        requests = [r for r in found if r.key not in requested]
        requested.update(r.key for r in requests)
        if planned and not requests and len(pairs) > 1:
            joint = sum(1 for _ in open_requests(ctx, queries, judge, part, pairs[1:]))
        else:  # not planned yet, or outdated
            joint = 0 if passes else _joint_pairs(judge, single)
        (certain if planned else possible).add(requests, joint)
    latest = None if passes else latest_share(ctx, judge)
    share = 1.0 if latest is None else latest
    verdicts = certain.verdicts + round(share * possible.verdicts)
    rates = measured_rates(ctx, judge.version)
    chars = certain.chars + round(share * possible.chars)
    minutes = verdicts * rates.seconds / rates.verdicts / 60 if rates else None
    return JudgeEstimate(
        judge=f"{judge.name}, pass {judge.stage}" if passes else judge.name,
        verdicts=verdicts,
        joint_pairs=certain.joint_pairs + round(share * possible.joint_pairs),
        share=share if possible.verdicts and not passes else None,
        tokens=round(verdicts * rates.tokens / rates.verdicts) if rates else chars // CHARS_PER_TOKEN,
        minutes=minutes,
        gpu_minutes=minutes * rates.gpus if rates and minutes is not None else None,
    )


def _earlier_done(ctx: Context, queries: Queries, judge: CascadeJudge, part: Part) -> bool:
    """Whether a part's escalated claims are final: the judges before this one have nothing left to judge."""
    return settled(ctx, queries, judge, part) and not any(
        next(open_requests(ctx, queries, earlier, part, pair_parts(ctx, part, earlier)), None)
        for earlier in ctx.judges[: judge.stage - 1]
    )


def _unjudged(ctx: Context, queries: Queries, judge: CascadeJudge, part: Part, pairs: pa.Table) -> Iterator[Request]:
    """Requests without a verdict, of pairs that are not in the lake yet."""
    verdicts = verdicts_on(ctx, queries, judge, part, pairs.select(["request_key"]))
    missing = set(pairs["request_key"].to_pylist()).difference(verdicts["request_key"].to_pylist())
    return requests_of(ctx, part, [pairs], missing)


def _joint_pairs(judge: CascadeJudge, single: pa.Table) -> int:
    """Upper bound of the joint pairs for claims with these single pairs."""
    shown, cited = pl.len(), pl.col("cited").sum()
    counts = pl.DataFrame(single).group_by("claim_id").agg(shown=shown, cited=cited)
    most = (pl.col("shown") > 1).sum() if judge.pairing.joint_words else pl.lit(0)
    if judge.pairing.packs:  # at most as many packs of cited chunks as of all
        most += pl.col("shown").sum()
    else:  # all cited chunks, and, of three or more, all but each
        most += (pl.col("cited") > 1).sum() + pl.col("cited").filter(pl.col("cited") > 2).sum()
    return int(counts.select(most).item())
