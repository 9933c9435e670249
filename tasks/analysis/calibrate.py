"""Calibrate thresholds of a recipe's signals and of its judges' probabilities on people's labels.

Answers and claims that were picked for review because of their labels are left out: errors are more common among them,
so thresholds from them would not fit a whole night. Nothing is written. Left out: choosing thresholds
(`tasks/stats/calibration.py`), and showing them (`tasks/publish/documents/calibration.py`).
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.schemas import CLAIM_RESULTS, CLAIMS, TRACE_SCORES, TRACES
from tasks.judging.claims import has_claims
from tasks.judging.stored_verdicts import all_verdicts, claim_results
from tasks.run.cascade import CascadeJudge, is_cascade
from tasks.run.context import Context
from tasks.scoring.corrected import all_reviews, reviewed
from tasks.stats.calibration import STAGES, Bands, Calibration, bands, calibrate
from tasks.stats.risk import least
from tasks.store.lake import empty, frame
from tasks.store.query import Queries

COLUMNS = dict(zip(STAGES, ("context_relevance", "answerability", "weakest_support", "answer_relevance"), strict=True))


@dataclass(frozen=True)
class Traces:
    """Labeled traces of one recipe, n of them.

    Attributes:
        ids: Trace ids, ordered by day and id.
        questions: Question of each trace.
        signals: (n, 4) values of `STAGES`; NaN for missing values.
        wrong: (n,) whether people labeled the answer wrong.
        picked: Traces left out because they were picked for review because of their labels.
        undecided: Traces left out because reviewers disagree or could not tell.
    """

    ids: tuple[str, ...]
    questions: tuple[str, ...]
    signals: npt.NDArray[np.float64]
    wrong: npt.NDArray[np.bool_]
    picked: int
    undecided: int


@dataclass(frozen=True)
class Claims:
    """Labeled claims with one judge's probabilities, n of them.

    Attributes:
        judge: Name of the judge's file.
        kind: Kind of the judge.
        stage: Position of the judge in the cascade, from 1.
        last: Whether this is the last judge of the cascade.
        questions: Question of each claim's trace.
        p_supported: (n,) the judge's probability that the claim is supported.
        supported: (n,) whether people labeled the claim supported.
        without: Labeled claims left out because the judge gave no probability.
        picked: Claims left out because they were picked for review because of their labels.
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


@dataclass(frozen=True)
class Target:
    """Target: a share of at most `error` wrong results, with this confidence."""

    error: float
    confidence: float

    @property
    def least(self) -> int:
        """Smallest number of labels that can show the target."""
        return least(self.error, self.confidence)


@dataclass(frozen=True)
class Calibrated:
    """Thresholds of one recipe; None if there are too few labels.

    Attributes:
        recipe: Label of the recipe's context.
        name: Name of the recipe in the config.
        cascade: Whether the recipe has several judges.
    """

    recipe: str
    name: str
    cascade: bool
    traces: Traces
    waterfall: Calibration | None
    judges: tuple[tuple[Claims, Bands | None], ...]

    def as_dict(self) -> dict[str, Any]:
        """Convert to a dictionary for JSON."""
        waterfall = None
        if (found := self.waterfall) is not None:
            waterfall = asdict(found) | {
                "signals": dict(zip(STAGES, found.signals, strict=True)),
                "thresholds": dict(zip(STAGES, found.rule.thresholds, strict=True)) if found.rule else None,
            }
        return {
            "recipe": self.recipe,
            "labeled": len(self.traces.ids),
            "picked": self.traces.picked,
            "undecided": self.traces.undecided,
            "waterfall": waterfall,
            "judges": [
                {"judge": c.judge, "stage": c.stage, "without_p": c.without, "picked": c.picked}
                | {"bands": None if b is None else asdict(b) | {"abstain": b.abstain}}
                for c, b in self.judges
            ],
        }


def calibrate_recipe(
    ctx: Context, queries: Queries, target: Target, first: date, last: date, reviews: pa.Table | None = None
) -> Calibrated:
    """Calibrate the thresholds of a recipe and its judges. For the arguments, see `labeled`."""
    traces, claims = labeled(ctx, queries, first, last, reviews)
    limits = target.error, target.confidence
    enough = len(traces.ids) >= target.least
    return Calibrated(
        recipe=ctx.label,
        name=ctx.settings.name,
        cascade=is_cascade(ctx.judges),
        traces=traces,
        waterfall=calibrate(traces.signals, traces.wrong, traces.questions, *limits) if enough else None,
        judges=tuple(
            (c, bands(c.p_supported, c.supported, c.questions, *limits) if len(c.supported) >= target.least else None)
            for c in claims
        ),
    )


def labeled(
    ctx: Context, queries: Queries, first: date, last: date, reviews: pa.Table | None = None
) -> tuple[Traces, tuple[Claims, ...]]:
    """Join people's labels with the recipe's signals and its judges' probabilities.

    Args:
        first: First day of the labeled traces. The context's own days are ignored.
        last: Last day.
        reviews: Rows of `REVIEWS`; by default, all rows of the lake.
    """
    given = all_reviews(ctx) if reviews is None else reviews
    given = given.filter(pc.and_(pc.greater_equal(given["date"], first), pc.less_equal(given["date"], last)))
    claims, traces = map(frame, reviewed(ctx, queries, given))
    traces = traces.with_columns(question=pl.coalesce("question_id", "trace_id"))  # the question may be redacted
    questions = traces.select("trace_id", "question")
    by_judge = (_claims(*found, questions) for found in _by_judge(ctx, queries, given, claims))
    return _traces(ctx, traces), tuple(by_judge)


def _traces(ctx: Context, traces: pl.DataFrame) -> Traces:
    columns = ["trace_id", *COLUMNS.values()]
    random = traces.filter("random")
    kept = random.filter(pl.col("wrong").is_not_null())
    days = kept["date"].unique().sort().cast(pl.String)
    parts = [part for day in days for part in ctx.lake.parts(TRACE_SCORES, ctx.recipe, day)]
    scores = frame(pa.concat_tables([empty(TRACE_SCORES).select(columns), *(p.read(columns) for p in parts)]))
    scores = scores.unique("trace_id", keep="last").cast(dict.fromkeys(COLUMNS.values(), pl.Float64))
    signals = kept.select("trace_id").join(scores, "trace_id", "left", maintain_order="left")
    return Traces(
        ids=tuple(kept["trace_id"]),
        questions=tuple(kept["question"]),
        signals=signals.select(*COLUMNS.values()).fill_null(np.nan).to_numpy(),
        wrong=kept["wrong"].to_numpy(),
        picked=traces.height - random.height,
        undecided=random.height - kept.height,
    )


def _by_judge(
    ctx: Context, queries: Queries, reviews: pa.Table, claims: pl.DataFrame
) -> Iterator[tuple[CascadeJudge, bool, pl.DataFrame]]:
    """Yield each judge, whether it is the last, and its reviewed claims, scored as if it were the only judge."""
    if not is_cascade(ctx.judges):
        yield ctx.judges[0], True, claims
        return
    days = set(frame(reviews)["date"])
    parts = [p for p in ctx.lake.parts(TRACES) if p.date in days and has_claims(ctx, p)]
    cut = [p for day in sorted(map(str, days)) for p in ctx.lake.parts(CLAIMS, ctx.extractor.version, day)]
    for judge in ctx.judges:
        results = [claim_results(ctx, queries, p, [judge], all_verdicts(ctx, queries, p, [judge])[0]) for p in parts]
        own = pa.concat_tables([empty(CLAIM_RESULTS), *results])
        found = queries.run("views/reviewed_claims", {"reviews": reviews, "claims": cut, "claim_results": own})
        yield judge, judge is ctx.judges[-1], frame(found)


def _claims(judge: CascadeJudge, last: bool, claims: pl.DataFrame, questions: pl.DataFrame) -> Claims:
    labeled = claims.filter(pl.col("people").is_not_null())
    random = labeled.filter("random")
    kept = random.filter(pl.col("p_supported").is_not_null())
    return Claims(
        judge=judge.name,
        kind=str(judge.judge.describe()["kind"]),
        stage=judge.stage,
        last=last,
        questions=tuple(kept.join(questions, "trace_id", "left", maintain_order="left")["question"]),
        p_supported=kept["p_supported"].to_numpy(),
        supported=(kept["people"] == "supported").to_numpy(),
        without=random.height - kept.height,
        picked=labeled.height - random.height,
    )
