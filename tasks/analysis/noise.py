"""Test–retest noise of a judge: judge and score past requests again.

Method: docs/methods.md#noise-and-confidence.

Whole traces are drawn, so the same SQL can score first and second verdicts. Second verdicts are stored as sample 1, and
no request is judged a third time. Joint pairs, and the claims that later judges of a cascade get, remain those that the
first verdicts called for; pairs that the second verdicts would call for are not judged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core import keys
from tasks.core.errors import UsageError
from tasks.core.schemas import JUDGE_NOISE, NIGHTLY_CITATIONS, NIGHTLY_GROUNDEDNESS, PAIRS
from tasks.judging.claims import covered, covered_segments
from tasks.judging.pairs import pair_parts
from tasks.judging.stored_verdicts import all_verdicts, verdicts_on
from tasks.judging.verdicts import PAIR_COLUMNS, jobs_of, judge_jobs, requests_of
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.run.redacted import marked, unredacted
from tasks.run.result import StageResult
from tasks.run.work import work_loop
from tasks.scoring.score import TRACE_COLUMNS, results_of
from tasks.stats import agreement as stats
from tasks.stats.intervals import Numbers, interval, mean_of
from tasks.store.lake import Part, empty, frame, from_rows
from tasks.store.query import Queries

STAGE = "noise"
AGAIN = 1  # `sample` of the second verdicts


@dataclass(frozen=True, slots=True)
class _Work:
    """The traces of one part to judge again.

    Attributes:
        traces: Ids of the traces.
        pairs: The judge's pairs of these traces that have a label.
        first: The first verdicts on these pairs.
    """

    part: Part
    traces: tuple[str, ...]
    pairs: pa.Table
    first: pa.Table


def measure(ctx: Context, judge: Sequence[CascadeJudge], sample: int) -> tuple[StageResult, dict[str, Any]]:
    """Judge a sample of the run's days again, and store how far first and second verdicts differ.

    The sample is deterministic, and a larger sample contains a smaller one.

    Args:
        judge: A judge of the recipe, once for each of its passes (method `citations` has two).
        sample: Smallest number of requests to judge again. Whole traces are drawn until this number is reached.

    Returns:
        The result of the stage, and the row of `judge_noise`.

    Raises:
        UsageError: No request of these days has a label.
        EngineError: The model can't be run. Stored verdicts are kept.
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
        firsts, seconds, changes, questions = [], [], [], []
        result = StageResult(STAGE, judge=version)
        gpus = judge[0].gpus * ctx.executor.workers
        with work_loop(ctx.progress, total, result, budget=ctx.budget, gpus=gpus) as loop:
            for work in works:
                stored = verdicts_on(ctx, queries, judge[0], work.part, work.first, sample=AGAIN)
                missing = set(frame(work.first)["request_key"]) - set(frame(stored)["request_key"])
                loop.reuse(work.first.num_rows - len(missing))
                requests = requests_of(ctx, work.part, [work.pairs], missing)
                judge_jobs(ctx, loop, jobs_of(ctx, loop, judge[0], work.part, requests, sample=AGAIN))
                second = verdicts_on(ctx, queries, judge[0], work.part, work.first, sample=AGAIN)
                firsts.append(work.first)
                seconds.append(second)
                changed, question = _changes(ctx, queries, judge, work, second)
                changes.append(changed)
                questions.append(question)
    row = {
        "judge_version": version,
        "recipe": ctx.recipe,
        "from_date": ctx.first,
        "to_date": ctx.last,
        "measured_at": datetime.now(UTC),
        "n_traces": sum(len(w.traces) for w in works),
        **agreement(frame(pa.concat_tables(firsts)), frame(pa.concat_tables(seconds)), pl.concat(questions)),
        **score_noise(np.concatenate(changes), _night_traces(ctx)),
        "number": _number(ctx),
    }
    name = keys.version([version, ctx.recipe, str(ctx.first), str(ctx.last), sample])
    ctx.lake.write(JUDGE_NOISE, name, from_rows([row], JUDGE_NOISE))
    done = loop.result
    return replace(done, reused=total - done.computed - done.lost), row


def agreement(first: pl.DataFrame, second: pl.DataFrame, questions: pl.DataFrame) -> dict[str, Any]:
    """Measure how far first and second verdicts on the same requests agree.

    Args:
        first: Rows of `part_verdicts.sql`, all with a label. A request that occurs in several parts counts once.
        second: Rows of the second verdicts; requests may be missing.
        questions: `request_key` and `question`. For a request of several questions, any one of them is used.

    Returns:
        Columns of `judge_noise`.
    """
    columns = ["request_key", "label", "p_supported"]
    first, second = (
        rows.select(columns).unique("request_key", keep="last", maintain_order=True) for rows in (first, second)
    )
    pairs = first.join(
        second.filter(pl.col("label").is_not_null()), "request_key", suffix="_again", maintain_order="left"
    ).join(questions.unique("request_key", keep="last"), "request_key", maintain_order="left")
    equal = (pairs["label"] == pairs["label_again"]).cast(pl.Float64).to_numpy()
    _, at = np.unique(pairs["question"].to_numpy(), return_inverse=True)
    low, high = interval(mean_of(equal, at)) or (None, None)
    p_change = (pairs["p_supported"] - pairs["p_supported_again"]).cast(pl.Float64).abs().drop_nulls().to_numpy()
    flips = pairs.filter(pl.col("label") != pl.col("label_again")).group_by("label", "label_again").len()
    return {
        "n_asked": first.height,
        "n": pairs.height,
        "n_failed": first.height - pairs.height,
        "agreement": float(equal.mean()) if len(equal) else None,
        "agreement_low": low,
        "agreement_high": high,
        "kappa": _kappa(pairs),
        "p_change": float(p_change.mean()) if len(p_change) else None,
        "flips": flips.sort("label", "label_again").select(first="label", second="label_again", n="len").to_dicts(),
    }


def _kappa(pairs: pl.DataFrame) -> float | None:
    """Cohen's kappa; None if all labels are the same."""
    labels = sorted({*pairs["label"], *pairs["label_again"]})
    if len(labels) < 2:
        return None
    a, b = (np.searchsorted(labels, pairs[c].to_numpy().astype(str)) for c in ("label", "label_again"))
    counts = stats.tally(np.zeros(len(a), np.int64), a, b, (len(labels), len(labels)))
    return float(stats.kappa(counts)[0])


def score_noise(changes: Numbers, night_traces: float | None) -> dict[str, Any]:
    """Estimate the noise of a trace's score and of a night's mean.

    A score is its expected value plus noise of variance σ². The difference of two scores has variance 2σ², which is
    estimated by the mean square of `changes`. Noise is assumed to be independent between traces, so a mean over n
    traces has standard deviation σ/√n.

    Args:
        changes: (n,) second − first score of each trace with both scores.
        night_traces: Number of traces in a night's mean.
    """
    sd = math.sqrt(float(np.mean(changes**2)) / 2) if len(changes) else None
    return {
        "n_scored": len(changes),
        "change": float(changes.mean()) if len(changes) else None,
        "trace_sd": sd,
        "night_traces": night_traces,
        "night_sd": None if sd is None or not night_traces else sd / math.sqrt(night_traces),
    }


def _draw(ctx: Context, queries: Queries, judge: Sequence[CascadeJudge], sample: int) -> list[_Work]:
    """Draw traces, ordered by a hash of their ids, until they have at least `sample` requests with a label."""
    found: list[tuple[Part, pa.Table, pa.Table]] = []
    order: list[tuple[str, int, str, list[str]]] = []
    for part in (p for p in trace_parts(ctx) if p.date >= ctx.first):  # without days to catch up with
        tables = [p.read(PAIR_COLUMNS) for one in judge for p in pair_parts(ctx, part, one)]
        pairs = pa.concat_tables([empty(PAIRS).select(PAIR_COLUMNS), *tables])
        known = verdicts_on(ctx, queries, judge[0], part, pairs.select(["request_key"]))
        labeled = known.filter(pc.is_valid(known["label"]))
        pairs = unredacted(part, pairs.filter(pc.is_in(pairs["request_key"], labeled["request_key"])))
        per_trace = frame(pairs).group_by("trace_id", maintain_order=True).agg("request_key")
        order += [(keys.key(STAGE, trace), len(found), trace, requests) for trace, requests in per_trace.iter_rows()]
        found.append((part, pairs, labeled))
    chosen: dict[int, list[str]] = {}
    drawn: set[str] = set()
    for _, at, trace, requests in sorted(order):
        if len(drawn) >= sample:
            break
        drawn.update(requests)
        chosen.setdefault(at, []).append(trace)
    return [_work(*found[at], sorted(traces)) for at, traces in sorted(chosen.items())]


def _work(part: Part, pairs: pa.Table, labeled: pa.Table, traces: Sequence[str]) -> _Work:
    of_these = pairs.filter(pc.is_in(pairs["trace_id"], pa.array(traces, pa.string())))
    first = labeled.filter(pc.is_in(labeled["request_key"], of_these["request_key"]))
    return _Work(part, tuple(traces), of_these, first)


def _changes(
    ctx: Context, queries: Queries, judge: Sequence[CascadeJudge], work: _Work, second: pa.Table
) -> tuple[Numbers, pl.DataFrame]:
    """Return second − first score of traces with both, and the `question` of each `request_key`.

    A trace has no second score if one of its requests could not be judged again.
    """
    known, _ = all_verdicts(ctx, queries, work.part, ctx.judges)
    mine = pc.is_in(known["stage"], pa.array([one.stage for one in judge], pa.int32()))
    replaced = pc.and_(mine, pc.is_in(known["request_key"], second["request_key"]))
    instead = [second.append_column("stage", pa.repeat(pa.scalar(one.stage, pa.int32()), len(second))) for one in judge]
    again = pa.concat_tables([known.filter(pc.invert(replaced)), *instead])
    before, after = (_scores(ctx, queries, work.part, verdicts) for verdicts in (known, again))
    pairs = frame(work.pairs.select(["request_key", "trace_id"]))
    lacking = pairs.join(frame(second), "request_key", "anti")
    both = before.join(after, "trace_id", suffix="_again").filter(pl.col("trace_id").is_in(work.traces))
    both = both.join(lacking, "trace_id", "anti").drop_nulls(["score", "score_again"]).sort("trace_id")
    changes = (both["score_again"] - both["score"]).to_numpy()
    return changes, pairs.join(before, "trace_id", maintain_order="left").select("request_key", "question")


def _scores(ctx: Context, queries: Queries, part: Part, verdicts: pa.Table) -> pl.DataFrame:
    """`trace_id`, `score` and `question` of each trace."""
    column = "groundedness_score" if _number(ctx) == "groundedness" else _number(ctx)
    traces = covered(ctx, part, marked(part, TRACE_COLUMNS))
    _, _, scores = results_of(ctx, queries, part, verdicts, covered_segments(ctx, part), traces)
    question = pl.coalesce("question_id", "trace_id")
    return frame(scores).select("trace_id", score=pl.col(column).cast(pl.Float64), question=question)


def _number(ctx: Context) -> str:
    return "citation_groundedness" if ctx.settings.method == "citations" else "groundedness"


def _night_traces(ctx: Context) -> float | None:
    """Mean number of scored traces per night, app and generator, over the run's days; None if nothing is scored."""
    table = NIGHTLY_CITATIONS if ctx.settings.method == "citations" else NIGHTLY_GROUNDEDNESS
    nights = [p for p in ctx.lake.parts(table, ctx.recipe) if ctx.first <= p.date <= ctx.last]
    scored = [p.read(["n_scored"])["n_scored"].to_numpy() for p in nights]
    return float(np.concatenate(scored).mean()) if scored and sum(map(len, scored)) else None
