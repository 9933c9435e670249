"""What thresholds are calibrated on: people's labels beside a recipe's signals, and beside each judge's probabilities.

Answers and claims that were picked for review because of their labels are left out: among them wrong ones are commoner
than among all, and a target that holds there would say nothing of a night. Nothing is written. Left out: the thresholds
themselves (`tasks/stats/calibration.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.schemas import CLAIM_RESULTS, CLAIMS, TRACE_SCORES, TRACES
from tasks.judging.claims import has_claims
from tasks.judging.stored_verdicts import all_verdicts, claim_results
from tasks.run import cascade
from tasks.run.context import Context
from tasks.scoring.corrected import all_reviews, reviewed
from tasks.stats.calibration import STAGES
from tasks.store.lake import empty
from tasks.store.query import Queries

COLUMNS = dict(zip(STAGES, ("context_relevance", "answerability", "weakest_support", "answer_relevance"), strict=True))


@dataclass(frozen=True)
class Traces:
    """Labelled traces of one recipe, n of them.

    Attributes:
        ids: Their ids, in order of day and id.
        questions: What each was asked.
        signals: (n, 4) values of `STAGES`; NaN where one is missing.
        wrong: (n,) whether people called the answer wrong.
        picked: Traces left out since they were picked for review because of their labels.
        undecided: Traces left out since reviewers do not agree, or could not tell.
    """

    ids: tuple[str, ...]
    questions: tuple[str, ...]
    signals: npt.NDArray[np.float64]
    wrong: npt.NDArray[np.bool_]
    picked: int
    undecided: int


@dataclass(frozen=True)
class Claims:
    """Labelled claims as one judge sees them, n of them.

    Attributes:
        judge: Name of its file.
        kind: Its kind.
        stage: Its place in the cascade, from 1.
        last: No judge comes after it.
        questions: What was asked where each claim was made.
        p_supported: (n,) its probability that the claim is supported.
        supported: (n,) whether people call it supported.
        without: Labelled claims left out since the judge gave no probability.
        picked: Claims left out since they were picked for review because of their labels.
    """

    judge: str
    kind: str
    stage: int
    last: bool
    questions: tuple[str, ...]
    p_supported: npt.NDArray[np.float64]
    supported: npt.NDArray[np.bool_]
    without: int
    picked: int


def labelled(
    ctx: Context, queries: Queries, first: date, last: date, reviews: pa.Table | None = None
) -> tuple[Traces, tuple[Claims, ...]]:
    """People's labels, beside what the recipe and its judges make of the same.

    Args:
        first: First day of the labelled traces; the context's own days don't matter.
        last: Last day.
        reviews: Rows of `REVIEWS`; those of the lake by default.
    """
    given = all_reviews(ctx) if reviews is None else reviews
    days = given["date"]
    given = given.filter(pc.and_(pc.greater_equal(days, first), pc.less_equal(days, last)))
    claims, traces = reviewed(ctx, queries, given)
    asked = dict(zip(traces["trace_id"].to_pylist(), traces["question_id"].to_pylist(), strict=True))
    questions = {trace: question or trace for trace, question in asked.items()}  # its text may be gone
    return _traces(ctx, traces, questions), tuple(_by_judge(ctx, queries, given, claims, questions))


def _traces(ctx: Context, found: pa.Table, questions: Mapping[str, str]) -> Traces:
    kept = found.filter(pc.and_(found["random"], pc.is_valid(found["wrong"])))
    random = int(pc.sum(pc.cast(found["random"], pa.int64())).as_py() or 0)
    wanted = ["trace_id", *COLUMNS.values()]
    days = sorted(map(str, pc.unique(kept["date"]).to_pylist()))
    parts = [p for day in days for p in ctx.lake.parts(TRACE_SCORES, ctx.recipe, day)]
    scores = pa.concat_tables([empty(TRACE_SCORES).select(wanted), *(p.read(wanted) for p in parts)])
    rows = {row["trace_id"]: [row[c] for c in COLUMNS.values()] for row in scores.to_pylist()}
    ids = kept["trace_id"].to_pylist()
    return Traces(
        ids=tuple(ids),
        questions=tuple(questions[i] for i in ids),
        signals=np.array([rows[i] for i in ids], np.float64).reshape(-1, len(STAGES)),  # None becomes NaN
        wrong=np.array(kept["wrong"].to_pylist(), np.bool_),
        picked=found.num_rows - random,
        undecided=random - kept.num_rows,
    )


def _by_judge(
    ctx: Context, queries: Queries, reviews: pa.Table, claims: pa.Table, questions: Mapping[str, str]
) -> Iterator[Claims]:
    """The recipe's only judge as its results tell, or each judge of a cascade as if there were no other."""
    if not cascade.is_cascade(ctx.judges):
        yield _claims(ctx.judges[0], claims, questions, last=True)
        return
    days = set(reviews["date"].to_pylist())
    parts = [p for p in ctx.lake.parts(TRACES) if p.date in days and has_claims(ctx, p)]
    cut = [p for day in sorted(map(str, days)) for p in ctx.lake.parts(CLAIMS, ctx.extractor.version, day)]
    for member in ctx.judges:
        results = [claim_results(ctx, queries, p, [member], all_verdicts(ctx, queries, p, [member])[0]) for p in parts]
        own = pa.concat_tables([empty(CLAIM_RESULTS), *results])
        found = queries.run("views/reviewed_claims", {"reviews": reviews, "claims": cut, "claim_results": own})
        yield _claims(member, found, questions, last=member is ctx.judges[-1])


def _claims(member: cascade.CascadeJudge, found: pa.Table, questions: Mapping[str, str], *, last: bool) -> Claims:
    labelled = found.filter(pc.is_valid(found["people"]))
    random = labelled.filter(labelled["random"])
    kept = random.filter(pc.is_valid(random["p_supported"]))
    return Claims(
        judge=member.name,
        kind=str(member.judge.describe()["kind"]),
        stage=member.stage,
        last=last,
        questions=tuple(questions[trace] for trace in kept["trace_id"].to_pylist()),
        p_supported=np.array(kept["p_supported"].to_pylist(), np.float64),
        supported=np.array([label == "supported" for label in kept["people"].to_pylist()], np.bool_),
        without=random.num_rows - kept.num_rows,
        picked=labelled.num_rows - random.num_rows,
    )
