"""Test–retest noise of a judge (METHODS section 11): past requests are judged again, and scored again.

Whole traces are drawn, so that their scores can be computed from the second verdicts by the same SQL as from the first.
Second verdicts stand beside the first as sample 1: nothing is lost, and what was asked again is not asked a third time.
Left out: pairs that other first verdicts would have led to. Joint pairs, and claims that go on in a cascade, stay
those that the first verdicts called for.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.metrics import cohen_kappa_score

from tasks.core import keys
from tasks.core.errors import UsageError
from tasks.core.schemas import JUDGE_NOISE, NIGHTLY_CITATIONS, NIGHTLY_GROUNDEDNESS, PAIRS
from tasks.judging.claims import covered, covered_segments
from tasks.judging.pairs import pair_parts
from tasks.judging.stored_verdicts import all_verdicts, verdicts_on
from tasks.judging.verdicts import PAIR_COLUMNS, judge_requests, requests_of
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.run.redacted import marked, unredacted
from tasks.run.result import StageResult
from tasks.run.work import work_loop
from tasks.scoring.score import TRACE_COLUMNS, results_of
from tasks.stats.intervals import Numbers, interval, mean_of
from tasks.store.lake import Part, empty, from_rows
from tasks.store.query import Queries

STAGE = "noise"
AGAIN = 1  # `sample` of the second verdicts


@dataclass(frozen=True, slots=True)
class _Work:
    """What is asked again of one part: traces of it, and the judge's pairs of them that have a label."""

    part: Part
    traces: pa.Array
    pairs: pa.Table
    first: pa.Table  # verdicts in use


def measure(ctx: Context, judge: Sequence[CascadeJudge], sample: int) -> tuple[StageResult, dict[str, Any]]:
    """Judge a sample of the run's days again, and measure and store how far the two verdicts differ.

    The same days and sample are the same traces; a larger sample holds a smaller one.

    Args:
        judge: A judge of the recipe, as often as it is a member of it (the rounds of method `citations` are two).
        sample: Requests to judge again, at least: of whole traces, until there are as many.

    Returns:
        What it took, and the row of `judge_noise`.

    Raises:
        UsageError: No request of these days has a label.
        EngineError: The model can't be run. The verdicts that are stored stay.
    """
    version = judge[0].version
    with ctx.queries() as queries:
        works = _draw(ctx, queries, judge, sample)
        if not works:
            raise UsageError(
                f"judge {judge[0].name!r} ({version}) has no verdicts of {ctx.first} to {ctx.last} under recipe "
                f"{ctx.settings.name!r}. Run leadline nightly over these days first, or name others by --from and --to."
            )
        total = sum(w.first.num_rows for w in works)
        firsts, seconds, changes = [], [], []
        questions: dict[str, str] = {}
        result = StageResult(STAGE, judge=version)
        with work_loop(ctx.progress, total, result, budget=ctx.budget, gpus=judge[0].gpus) as loop:
            for work in works:
                stored = verdicts_on(ctx, queries, judge[0], work.part, work.first, sample=AGAIN)
                missing = set(work.first["request_key"].to_pylist()) - set(stored["request_key"].to_pylist())
                loop.reuse(work.first.num_rows - len(missing))
                requests = requests_of(ctx, work.part, [work.pairs], missing)
                judge_requests(ctx, loop, judge[0], work.part, requests, sample=AGAIN)
                second = verdicts_on(ctx, queries, judge[0], work.part, work.first, sample=AGAIN)
                firsts.append(work.first)
                seconds.append(second)
                changed, of_work = _changes(ctx, queries, judge, work, second)
                changes.append(changed)
                questions |= of_work
    row = {
        "judge_version": version,
        "recipe": ctx.recipe,
        "from_date": ctx.first,
        "to_date": ctx.last,
        "measured_at": datetime.now(UTC),
        "n_traces": sum(len(w.traces) for w in works),
        **agreement(pa.concat_tables(firsts), pa.concat_tables(seconds), questions),
        **score_noise(np.concatenate(changes), _night_traces(ctx)),
        "number": _number(ctx),
    }
    name = keys.version([version, ctx.recipe, str(ctx.first), str(ctx.last), sample])
    ctx.lake.write(JUDGE_NOISE, name, from_rows([row], JUDGE_NOISE))
    done = loop.result
    return replace(done, reused=total - done.computed - done.lost), row


def agreement(first: pa.Table, second: pa.Table, questions: Mapping[str, str]) -> dict[str, Any]:
    """How far two verdicts on the same requests agree.

    Args:
        first: Rows of `part_verdicts.sql`, all with a label; a request that several parts share counts once.
        second: The same of the second verdicts; requests may be missing.
        questions: The question of each request, by its key; of one that several questions share, any.

    Returns:
        Columns of `judge_noise`.
    """
    again = {r["request_key"]: r for r in second.to_pylist() if r["label"] is not None}
    asked = {r["request_key"]: r for r in first.to_pylist()}
    pairs = [(r, again[key]) for key, r in asked.items() if key in again]
    labels = [(a["label"], b["label"]) for a, b in pairs]
    equal = np.array([a == b for a, b in labels], np.float64)
    _, at = np.unique([questions[a["request_key"]] for a, _ in pairs], return_inverse=True)
    low, high = interval(mean_of(equal, at)) or (None, None)
    p = [abs(a["p_supported"] - b["p_supported"]) for a, b in pairs if None not in (a["p_supported"], b["p_supported"])]
    flips = {pair: labels.count(pair) for pair in sorted(set(labels)) if pair[0] != pair[1]}
    return {
        "n_asked": len(asked),
        "n": len(pairs),
        "n_failed": len(asked) - len(pairs),
        "agreement": float(equal.mean()) if pairs else None,
        "agreement_low": low,
        "agreement_high": high,
        "kappa": _kappa(labels),
        "p_change": float(np.mean(p)) if p else None,
        "flips": [{"first": a, "second": b, "n": n} for (a, b), n in flips.items()],
    }


def score_noise(changes: Numbers, night_traces: float | None) -> dict[str, Any]:
    """What the second verdicts change in the traces' scores, and in a night's mean.

    A score is its expected value plus noise of variance σ²; the difference of two has 2σ², which the mean square of the
    changes estimates. Noise of different traces is taken as independent, so that a mean over n traces has σ/√n.

    Args:
        changes: (n,) second − first score of each trace that has both.
        night_traces: Traces that a night's mean is over.
    """
    sd = math.sqrt(float(np.mean(changes**2)) / 2) if len(changes) else None
    return {
        "n_scored": len(changes),
        "change": float(changes.mean()) if len(changes) else None,
        "trace_sd": sd,
        "night_traces": night_traces,
        "night_sd": None if sd is None or not night_traces else sd / math.sqrt(night_traces),
    }


def _kappa(labels: Sequence[tuple[str, str]]) -> float | None:
    if len({label for pair in labels for label in pair}) < 2:
        return None
    first, second = zip(*labels, strict=True)
    return float(cohen_kappa_score(first, second))


def _draw(ctx: Context, queries: Queries, judge: Sequence[CascadeJudge], sample: int) -> list[_Work]:
    """Traces in the order of a hash of their ids, until they have so many requests that have a label."""
    found: list[tuple[Part, pa.Table, pa.Table]] = []
    order: list[tuple[str, int, str, list[str]]] = []
    for part in (p for p in trace_parts(ctx) if p.date >= ctx.first):  # no day to catch up with
        tables = [p.read(PAIR_COLUMNS) for each in judge for p in pair_parts(ctx, part, each)]
        pairs = pa.concat_tables([empty(PAIRS).select(PAIR_COLUMNS), *tables])
        known = verdicts_on(ctx, queries, judge[0], part, pairs.select(["request_key"]))
        labelled = known.filter(pc.is_valid(known["label"]))
        pairs = unredacted(part, pairs.filter(pc.is_in(pairs["request_key"], labelled["request_key"])))
        per_trace: dict[str, list[str]] = {}
        for trace, key in zip(pairs["trace_id"].to_pylist(), pairs["request_key"].to_pylist(), strict=True):
            per_trace.setdefault(trace, []).append(key)
        order += [(keys.key(STAGE, trace), len(found), trace, asked) for trace, asked in per_trace.items()]
        found.append((part, pairs, labelled))
    chosen: dict[int, list[str]] = {}
    requests: set[str] = set()
    for _, at, trace, asked in sorted(order):
        if len(requests) >= sample:
            break
        requests.update(asked)
        chosen.setdefault(at, []).append(trace)
    return [_work(*found[at], traces) for at, traces in sorted(chosen.items())]


def _work(part: Part, pairs: pa.Table, labelled: pa.Table, traces: Sequence[str]) -> _Work:
    wanted = pa.array(sorted(traces), pa.string())
    of_these = pairs.filter(pc.is_in(pairs["trace_id"], wanted))
    first = labelled.filter(pc.is_in(labelled["request_key"], of_these["request_key"]))
    return _Work(part, wanted, of_these, first)


def _changes(
    ctx: Context, queries: Queries, judge: Sequence[CascadeJudge], work: _Work, second: pa.Table
) -> tuple[Numbers, dict[str, str]]:
    """Second − first score of the traces that have both, and the question of each request, by its key.

    A trace of which a request could not be asked again has no second score.
    """
    known, _ = all_verdicts(ctx, queries, work.part, ctx.judges)
    stages = pa.array([m.stage for m in judge], pa.int32())
    mine = pc.is_in(known["stage"], stages)
    replaced = pc.and_(mine, pc.is_in(known["request_key"], second["request_key"]))
    instead = [second.append_column("stage", pa.repeat(pa.scalar(m.stage, pa.int32()), second.num_rows)) for m in judge]
    again = pa.concat_tables([known.filter(pc.invert(replaced)), *instead])
    lacking = pc.invert(pc.is_in(work.pairs["request_key"], second["request_key"]))
    whole = set(work.traces.to_pylist()) - set(work.pairs.filter(lacking)["trace_id"].to_pylist())
    before, after = (_scores(ctx, queries, work.part, verdicts) for verdicts in (known, again))
    both = [(before[t][0], after[t][0]) for t in sorted(whole)]
    changes = np.array([b - a for a, b in both if a is not None and b is not None], np.float64)
    asked = zip(work.pairs["request_key"].to_pylist(), work.pairs["trace_id"].to_pylist(), strict=True)
    return changes, {key: before[trace][1] for key, trace in asked}


def _scores(ctx: Context, queries: Queries, part: Part, verdicts: pa.Table) -> Mapping[str, tuple[float | None, str]]:
    """Score and question of each trace."""
    column = "groundedness_score" if _number(ctx) == "groundedness" else _number(ctx)
    traces = covered(ctx, part, marked(part, TRACE_COLUMNS))
    _, _, scores = results_of(ctx, queries, part, verdicts, covered_segments(ctx, part), traces)
    ids, values, questions = (scores[c].to_pylist() for c in ("trace_id", column, "question_id"))
    return {t: (value, question or t) for t, value, question in zip(ids, values, questions, strict=True)}


def _number(ctx: Context) -> str:
    return "citation_groundedness" if ctx.settings.method == "citations" else "groundedness"


def _night_traces(ctx: Context) -> float | None:
    """Scored traces of a night, app and generator, on average over the run's days."""
    table = NIGHTLY_CITATIONS if ctx.settings.method == "citations" else NIGHTLY_GROUNDEDNESS
    nights = [p for p in ctx.lake.parts(table, ctx.recipe) if ctx.first <= p.date <= ctx.last]
    scored = [n for p in nights for n in p.read(["n_scored"])["n_scored"].to_pylist()]
    return float(np.mean(scored)) if scored else None
