"""GRACE finds what was planted: a thousand questions about eight articles, answered by three generators that err at rates
that we set, through the real extractor, the real SQL and DuckDB."""

import random
from collections import Counter
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from kit.stage_kit import DAY, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core.schemas import NIGHTLY_GRACE, NIGHTLY_GRACE_CONFUSION, NIGHTLY_GRACE_SOURCES, TRACE_GRACE
from tasks.scoring.grace import score_grace
from tasks.scoring.intervals import of_grace

ARTICLES = [f"article-{n}" for n in range(8)]
QUESTIONS = 1_000
RETRIEVED = 4
MISSES = ("not_retrieved", "cited_nothing", "cited_another", "retrieved_not_cited")
PLANTED = {  # rates of the misses, in their order; the rest are hits
    "careful": (0.02, 0.01, 0.03, 0.00),
    "average": (0.08, 0.05, 0.10, 0.02),
    "careless": (0.08, 0.20, 0.25, 0.05),
}
TWINS = ("article-2", "article-5")  # the careless one takes the second for the first, whenever it cites another for it


def wilson(k: int, m: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """The interval of k / m by its textbook formula, as if it were of n answers."""
    p = k / m
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return centre - half, centre + half


@dataclass(frozen=True)
class Draw:
    """What was drawn for one answer."""

    generator: str
    right: str
    outcome: str
    cited: str | None
    row: dict[str, Any]


def draw(rng: random.Random, number: int, generator: str, right: str) -> Draw:
    rates = PLANTED[generator]
    outcome = rng.choices((*MISSES, "hit"), (*rates, 1 - sum(rates)))[0]
    others = rng.sample([a for a in ARTICLES if a != right], RETRIEVED)
    if outcome == "cited_another" and generator == "careless" and right == TWINS[0]:
        others = [TWINS[1], *[a for a in others if a != TWINS[1]]][:RETRIEVED]
    shown = others if outcome == "not_retrieved" else [*others[:-1], right]
    cited = {"hit": right, "cited_another": others[0], "not_retrieved": rng.choice([None, others[0]])}.get(outcome)
    rng.shuffle(shown)
    reference = f" [{shown.index(cited) + 1}]" if cited else " [9]" if outcome == "retrieved_not_cited" else ""
    row = trace(
        f"{generator}-{number:04d}",
        f"Here is what was asked for{reference}. Ask again whenever you like.",
        {article: f"Text of {article}." for article in shown},
        question=f"Question {number}?",
        generator=generator,
        gold_chunk_ids=[right],
    )
    return Draw(generator, right, outcome, cited, row)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Draw], dict[str, list[dict[str, Any]]]]:
    """What was drawn, and what GRACE says of it."""
    rng = random.Random(20261101)
    asked = [rng.choice(ARTICLES) for _ in range(QUESTIONS)]
    drawn = [draw(rng, i, generator, right) for i, right in enumerate(asked) for generator in PLANTED]
    ctx = context(tmp_path_factory.mktemp("simulation"))
    put(ctx, *(d.row for d in drawn))
    extract_claims(ctx)
    assert score_grace(ctx).computed == QUESTIONS * len(PLANTED)
    tables = (TRACE_GRACE, NIGHTLY_GRACE, NIGHTLY_GRACE_SOURCES, NIGHTLY_GRACE_CONFUSION)
    return drawn, {t.name: rows(ctx, t, ctx.recipe) for t in tables}


def test_every_answer_is_what_was_drawn_for_it(world) -> None:
    drawn, found = world
    by = {r["trace_id"]: (r["outcome"], r["gold"], r["cited"]) for r in found["trace_grace"]}
    assert by == {d.row["trace_id"]: (d.outcome, [d.right], [d.cited] if d.cited else []) for d in drawn}


def test_the_planted_rates_lie_in_the_intervals(world) -> None:
    """Three accuracies and twelve misses, each of 1,000 answers. One interval in twenty misses by right: of fifteen more
    than three do in 0.5% of all seeds (binomial), if the numbers are right. A number that is off by 0.07 lies outside
    in 99 of 100 seeds: half a width is at most 0.031, and a standard deviation 0.016."""
    _, found = world
    outside = []
    for row in found["nightly_grace"]:
        rates = dict(zip(MISSES, PLANTED[row["generator"]], strict=True))
        assert row["n_scored"] == QUESTIONS
        assert row["hits"] + sum(row[m] for m in MISSES) == QUESTIONS
        low, high = wilson(row["hits"], QUESTIONS, QUESTIONS - 1)  # one answer to each question
        assert (row["accuracy_low"], row["accuracy_high"]) == pytest.approx((low, high), abs=1e-6)
        assert high - low < 0.0626
        intervals = {"hits": (low, high)} | {m: wilson(row[m], QUESTIONS, QUESTIONS) for m in MISSES}
        for name, rate in {"hits": 1 - sum(rates.values()), **rates}.items():
            if not intervals[name][0] - 1e-12 <= rate <= intervals[name][1]:
                outside.append((row["generator"], name))
    assert len(found["nightly_grace"]) == len(PLANTED)
    assert len(outside) <= 3, outside


def test_generators_that_differ_are_reported_apart(world) -> None:
    """Planted accuracies are 0.94, 0.75 and 0.42; intervals are at most 0.062 wide."""
    by = {r["generator"]: r for r in world[1]["nightly_grace"]}
    assert by["careless"]["accuracy_high"] < by["average"]["accuracy_low"]
    assert by["average"]["accuracy_high"] < by["careful"]["accuracy_low"]


def test_each_article_has_the_precision_and_recall_that_were_drawn(world) -> None:
    """With one right source and at most one citation an answer: recall = hits of the article / questions about it,
    precision = hits / answers that cite it; micro recall = accuracy."""
    drawn, found = world
    about, hits, citing = Counter(), Counter(), Counter()
    for d in drawn:
        about[d.generator, d.right] += 1
        hits[d.generator, d.right] += d.outcome == "hit"
        citing[d.generator, d.cited] += 1
    assert len(found["nightly_grace_sources"]) == len(PLANTED) * len(ARTICLES)
    for r in found["nightly_grace_sources"]:
        at = r["generator"], r["source"]
        recall, precision = hits[at] / about[at], hits[at] / citing[at]
        assert (r["support"], r["recall"], r["precision"]) == (
            about[at],
            pytest.approx(recall),
            pytest.approx(precision),
        )
        assert r["f1"] == pytest.approx(2 * precision * recall / (precision + recall))  # their harmonic mean
    for night in found["nightly_grace"]:
        generator = night["generator"]
        cited = sum(n for (g, article), n in citing.items() if g == generator and article)
        assert night["recall_micro"] == pytest.approx(night["accuracy"])
        assert night["precision_micro"] == pytest.approx(night["hits"] / cited)
        recalls = [hits[generator, a] / about[generator, a] for a in ARTICLES]
        assert night["recall_macro"] == pytest.approx(sum(recalls) / len(ARTICLES), abs=1e-6)


def test_the_planted_confusion_is_the_greatest(world) -> None:
    drawn, found = world
    of = [r for r in found["nightly_grace_confusion"] if r["generator"] == "careless" and r["cited"] not in (None, r["gold"])]  # fmt: skip
    most = max(of, key=lambda r: r["n"])
    assert (most["gold"], most["cited"]) == TWINS
    planted = Counter((d.right, d.cited) for d in drawn if d.generator == "careless" and d.outcome != "hit")
    assert {(r["gold"], r["cited"]): r["n"] for r in of} == {k: n for k, n in planted.items() if k[1]}


COUNTS = ("support", "true_positives", "false_positives", "false_negatives")


def sums(rng: np.random.Generator, generators: int, questions: int) -> pa.Table:
    """Rows of `grace_sums.sql`: each question is about one of the articles and asked once or twice. Every answer to it
    cites the article, or, where it is one of the first two, the other one of them in its stead, or else nothing."""
    place = np.arange(generators * questions)
    right, times = rng.integers(0, len(ARTICLES), len(place)), rng.integers(1, 3, len(place))
    twins = right < 2
    hit = rng.random(len(place)) < np.where(twins, 0.55, 0.8)

    def table(at: np.ndarray, source: Any, *counts: np.ndarray) -> pa.Table:
        key = {"date": pa.array([DAY] * len(at)), "app": pa.array(["a"] * len(at))}
        key |= {"generator": (at // questions).astype(str), "question": at % questions, "source": source}
        return pa.table(key | dict(zip(COUNTS, counts, strict=True)))

    names, taken, none = np.array(ARTICLES), place[twins & ~hit], 0 * times
    right_counts = (times, times * hit, none, times * ~hit)
    return pa.concat_tables([
        table(place, names[right], *right_counts),
        table(taken, names[1 - right[taken]], none[taken], none[taken], times[taken], none[taken]),
        table(place, pa.nulls(len(place), pa.string()), *right_counts),
    ])  # fmt: skip


def numbers(found: pa.Table) -> dict[str, float]:
    """Accuracy, and precision, recall and F1 of both kinds, by their definitions."""
    each = found.filter(found["source"].is_valid()).group_by("source").aggregate([(c, "sum") for c in COUNTS])
    tp, fp, fn = (each[f"{c}_sum"].to_numpy() for c in COUNTS[1:])
    parts = {"precision": (tp, tp + fp), "recall": (tp, tp + fn), "f1": (2 * tp, 2 * tp + fp + fn)}
    micro = {f"{name}_micro": above.sum() / below.sum() for name, (above, below) in parts.items()}
    macro = {f"{name}_macro": (above / below).mean() for name, (above, below) in parts.items()}
    return {**micro, **macro, "accuracy": micro["recall_micro"]}  # one right source each


@pytest.mark.parametrize("questions", [15, 50])
def test_intervals_cover_as_often_as_they_say(questions: int) -> None:
    """400 nights, and the truth of 200,000 questions. 95% of 400 is 380, 92% is 368 and 98% is 392; three binomial
    standard deviations of 92 or 98% are 16 and 8 nights."""
    rng = np.random.default_rng(questions)
    truth = numbers(sums(rng, 1, 200_000))
    ends, _ = of_grace(sums(rng, 400, questions))
    for name, true in truth.items():
        own = [r for r in ends.to_pylist() if r["number"] == name]
        assert len(own) == 400
        assert 368 - 16 <= sum(r["low"] <= true <= r["high"] for r in own) <= 392 + 8, name
