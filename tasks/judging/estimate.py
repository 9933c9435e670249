"""What judging will cost: requests without a verdict, their tokens, and minutes at a measured rate."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from tasks.core.grades import GRADED
from tasks.core.schemas import TRACE_SCORES
from tasks.core.types import Request
from tasks.judging.escalate import latest_share, settled
from tasks.judging.grades import STAGE, open_answers
from tasks.judging.known import verdicts_on
from tasks.judging.pairs import has_claims, pair_parts, single_pairs
from tasks.judging.relevance import open_items, open_scores
from tasks.judging.second_pass import possible_pairs
from tasks.judging.verdicts import open_requests, requests_of
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.plan import missing_parts, trace_parts
from tasks.run.record import measured_rates
from tasks.scorers import stage_name
from tasks.store.lake import Part
from tasks.store.query import Queries

T = TypeVar("T")
CHARS_PER_TOKEN = 4  # of English; used until a run of this judge has counted


@dataclass(frozen=True, slots=True)
class Judging:
    """Work that one judge has before it.

    Attributes:
        verdicts: Single pairs to judge; of the second pass at most, until the first pass is judged.
        joint_pairs: Joint pairs that may be needed: an upper bound until the claims' single pairs are judged.
        share: Share of the claims that are taken to go on to this judge, where the judge before it has still to say
            which: that of the latest night, or 1 before there is one. None where it is known which.
        tokens: Tokens of the single pairs, at the judge's measured rate per verdict, or by their characters.
        minutes: At the rate measured in the latest run of this judge; None before there is one.
        gpu_minutes: The same, times the GPUs that it held then.
    """

    judge: str
    verdicts: int
    joint_pairs: int
    share: float | None
    tokens: int
    minutes: float | None
    gpu_minutes: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Work that models have before them.

    Attributes:
        judges: In the order they are asked.
        relevance: Scores of answers, chunks and answerability that no language model is asked for.
        asking: Those that one is asked for, scorer by scorer, and grades.
        scores: Traces to score.
        answers: Answers to grade for which no language model is asked; None where no such grader is named.
    """

    judges: tuple[Judging, ...]
    relevance: int
    scores: int
    asking: tuple["Asking", ...] = ()
    answers: int | None = None


@dataclass(frozen=True, slots=True)
class Asking:
    """Scores or grades that a language model is asked for.

    Attributes:
        stage: What it is called.
        requests: At most: what looks the same to the model is asked once.
        tokens: That it reads, by their characters; without the instructions, which are the same in each request.
    """

    stage: str
    requests: int
    tokens: int


@dataclass(slots=True)
class _Count:
    """Single pairs, their characters and joint pairs: those that are certain, and those that all claims would need."""

    verdicts: int = 0
    chars: int = 0
    joint_pairs: int = 0

    def add(self, requests: Sequence[Request], joint_pairs: int) -> None:
        self.verdicts += len(requests)
        self.chars += sum(len(r.premise) + len(r.hypothesis) for r in requests)
        self.joint_pairs += joint_pairs


def estimate(*contexts: Context) -> Estimate:
    """Count what the run's days still need of the judges; reads texts, and runs no model but to rank chunks.

    Args:
        contexts: Of the run's recipes; what an earlier one will have judged is not counted again.
    """
    judges: list[Judging] = []
    asked: dict[str, set[str]] = {}  # requests by judge
    done: dict[str, set[str]] = {}  # traces by scorer; what an earlier recipe's will have scored is not counted again
    asking: dict[str, Asking] = {}
    relevance = scores = 0
    answers: int | None = None
    for ctx in contexts:
        with ctx.queries() as queries:
            for member in ctx.judges:
                found = _judging(ctx, queries, member, asked.setdefault(member.judge.version, set()))
                whose = f"{found.judge} for {ctx.settings.name}" if len(contexts) > 1 else found.judge
                judges.append(replace(found, judge=whose))
        unscored, _ = missing_parts(ctx, TRACE_SCORES, ctx.recipe)
        scores += sum(p.rows() for p in unscored)
        for scorer in ctx.scorers:
            seen = done.setdefault(scorer.version, set())
            if scorer.asks:
                items = _unseen(((item.trace_id, item) for item in open_items(ctx, scorer) if not item.blank), seen)
                chars = [sum(map(len, scorer.shows(item))) for item in items]
                _add(asking, scorer.version, stage_name(scorer), len(chars), sum(chars))
            else:
                relevance += sum(1 for _ in _unseen(((key[0], key) for key in open_scores(ctx, scorer)), seen))
        if ctx.grader:
            by = f"{ctx.grader.version} {ctx.extractor.version}"
            ungraded = _unseen(open_answers(ctx), done.setdefault(by, set()))
            chars = [sum(map(len, (a.question, a.answer, *a.passages))) for a in ungraded]
            if ctx.grader.asks:  # for each grade by itself
                _add(asking, by, STAGE, len(chars) * len(GRADED), sum(chars) * len(GRADED))
            else:
                answers = (answers or 0) + len(chars)
    return Estimate(tuple(judges), relevance, scores, tuple(asking.values()), answers)


def _unseen(found: Iterable[tuple[str, T]], seen: set[str]) -> Iterator[T]:
    """What is of traces, each with its trace's id, but for traces that were seen before; they are seen then."""
    new: set[str] = set()
    for trace, one in found:
        if trace not in seen:
            new.add(trace)
            yield one
    seen.update(new)


def _add(asking: dict[str, Asking], by: str, stage: str, requests: int, chars: int) -> None:
    before = asking.get(by, Asking(stage, 0, 0))
    tokens = before.tokens + chars // CHARS_PER_TOKEN
    asking[by] = replace(before, requests=before.requests + requests, tokens=tokens)


def _judging(ctx: Context, queries: Queries, member: CascadeJudge, asked: set[str]) -> Judging:
    """Args: asked: Requests that this judge will have been asked before; those that are counted are added."""
    rounds = ctx.settings.method == "citations"
    certain, possible = _Count(), _Count()
    for part in trace_parts(ctx):
        if not has_claims(ctx, part):
            continue
        planned = member.stage == 1 or _earlier_done(ctx, queries, member, part)
        looks = pair_parts(ctx, part, member)
        if planned:
            found: Iterator[Request] = open_requests(ctx, queries, member, part, looks[:1])
            first = looks[0].read(["claim_id", "cited"])
        else:
            first = possible_pairs(ctx, member, part) if rounds else single_pairs(ctx, member, part)[0]
            found = _unjudged(ctx, queries, member, part, first)
        requests = [r for r in found if r.key not in asked]
        asked.update(r.key for r in requests)
        if planned and not requests and len(looks) > 1:
            second = sum(1 for _ in open_requests(ctx, queries, member, part, looks[1:]))
        else:  # not planned yet, or to be planned again
            second = 0 if rounds else _joint_pairs(member, first)
        (certain if planned else possible).add(requests, second)
    latest = None if rounds else latest_share(ctx, member)
    part_of = 1.0 if latest is None else latest
    verdicts = certain.verdicts + round(part_of * possible.verdicts)
    rates = measured_rates(ctx, member.judge.version)
    chars = certain.chars + round(part_of * possible.chars)
    minutes = verdicts * rates.seconds / rates.verdicts / 60 if rates else None
    return Judging(
        judge=f"{member.name}, round {member.stage}" if rounds else member.name,
        verdicts=verdicts,
        joint_pairs=certain.joint_pairs + round(part_of * possible.joint_pairs),
        share=part_of if possible.verdicts and not rounds else None,
        tokens=round(verdicts * rates.tokens / rates.verdicts) if rates else chars // CHARS_PER_TOKEN,
        minutes=minutes,
        gpu_minutes=minutes * rates.gpus if rates and minutes is not None else None,
    )


def _earlier_done(ctx: Context, queries: Queries, member: CascadeJudge, part: Part) -> bool:
    """Whether it is certain which claims of a part go on to this judge: those before it have nothing left to judge."""
    before = ctx.judges[: member.stage - 1]
    return settled(ctx, queries, member, part) and not any(
        next(open_requests(ctx, queries, m, part, pair_parts(ctx, part, m)), None) for m in before
    )


def _unjudged(ctx: Context, queries: Queries, member: CascadeJudge, part: Part, first: pa.Table) -> Iterator[Request]:
    """Requests of pairs that are not in the lake and have no verdict yet."""
    known = verdicts_on(ctx, queries, member, part, first.select(["request_key"]))
    missing = set(first["request_key"].to_pylist()).difference(known["request_key"].to_pylist())
    return requests_of(ctx, part, [first], missing)


def _joint_pairs(member: CascadeJudge, first: pa.Table) -> int:
    """Most joint pairs that claims with these single pairs may need."""
    counts = first.select(["claim_id", "cited"]).group_by("claim_id").aggregate([("cited", "count"), ("cited", "sum")])
    shown, cited = counts["cited_count"].to_numpy(), counts["cited_sum"].to_numpy()
    joint = int((shown > 1).sum()) if member.pairing.joint_words else 0
    if member.pairing.packs:  # the cited chunks in as many packs as all
        return joint + int(shown.sum())
    # All that is cited, and of three or more all but each.
    return joint + int((cited > 1).sum()) + int(cited[cited > 2].sum())
