"""Labels of 100 claims, from the table of reviews to κ and to a corrected night: the intervals cover the truth.

Five hundred simulated applications go through the very queries and functions of a night, all at once: one application is
one simulation. Each has answers of four claims that are good or bad as a whole, people who are right, and a judge who is
wrong in a way that shifts the mean. The truth is exact: all answers that are possible, by their probabilities.
"""

import math
from datetime import UTC, date, datetime
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tasks.scoring.corrected import corrected
from tasks.stats.agreement import agreement
from tasks.store.query import Queries

SIMULATIONS, NIGHT, REVIEWED, CLAIMS = 500, 150, 25, 4  # answers of a night, reviewed ones, claims of each: 100 labels
NOISE = 0.034  # of 500 intervals that cover in 95%: 3.5 standard errors
LABELS = np.array(["supported", "unsupported", "contradicted"])
GOOD = 0.7  # share of answers
PEOPLE = np.array([[0.92, 0.05, 0.03], [0.50, 0.35, 0.15]])  # labels of the claims of good and of bad answers
JUDGE = np.array([[0.85, 0.12, 0.03], [0.25, 0.70, 0.05], [0.15, 0.25, 0.60]])  # by people's label
PENALTY = 2.0
DAY = date(2026, 11, 1)


def groundedness(supported: np.ndarray, misused: np.ndarray) -> np.ndarray:
    """docs/methods.md#scores-of-one-trace; here an unsupported claim cites, and a contradicted one does not misuse what it cites."""
    return np.clip(100 * (supported - PENALTY * misused) / CLAIMS, 0, 100)


def expected(labels: np.ndarray) -> float:
    """Mean groundedness of an answer, from the probabilities of the labels of its claims in good and bad answers."""
    total = 0.0
    for share, p in zip((GOOD, 1 - GOOD), labels, strict=True):
        for claims in product(range(3), repeat=CLAIMS):
            chance = share * math.prod(p[c] for c in claims)
            total += chance * float(groundedness(np.array(claims.count(0)), np.array(claims.count(1))))
    return total


TRUTH, BY_JUDGE = expected(PEOPLE), expected(PEOPLE @ JUDGE)


def true_kappa() -> float:
    """Cohen's κ of people and judge over all claims."""
    people = np.array([GOOD, 1 - GOOD]) @ PEOPLE
    joint = people[:, None] * JUDGE
    chance = float(people @ joint.sum(axis=0))
    return (float(np.trace(joint)) - chance) / (1 - chance)


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(simulations, answers, claims) places of the labels by people and by the judge."""
    shape = (SIMULATIONS, NIGHT, CLAIMS)
    bad = (rng.random(shape[:2]) >= GOOD).astype(int)[..., None]
    people = (rng.random(shape)[..., None] > PEOPLE.cumsum(axis=1)[bad]).sum(axis=-1)
    judge = (rng.random(shape)[..., None] > JUDGE.cumsum(axis=1)[people]).sum(axis=-1)
    return people.clip(0, 2), judge.clip(0, 2)


@pytest.fixture(scope="module")
def simulated() -> tuple[np.ndarray, np.ndarray]:
    return drawn(np.random.default_rng(11))


def test_corrected_groundedness_covers_what_people_would_find(
    simulated: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    people, judge = simulated
    apps = np.repeat([f"app{i}" for i in range(SIMULATIONS)], NIGHT)
    traces = np.array([f"{app}-{i}" for app, i in zip(apps, np.tile(np.arange(NIGHT), SIMULATIONS), strict=True)])
    supported = (judge == 0).sum(axis=2).ravel()
    scores = pa.table({
        "recipe": pa.repeat("r", len(apps)), "date": pa.repeat(pa.scalar(DAY), len(apps)), "trace_id": traces, "app": apps,
        "generator": pa.repeat("g", len(apps)), "question_id": traces, "judge_version": pa.repeat("j", len(apps)),
        "groundedness_score": groundedness(supported, (judge == 1).sum(axis=2).ravel()), "faithfulness": supported / CLAIMS,
    })  # fmt: skip
    seen = np.repeat(traces.reshape(SIMULATIONS, NIGHT)[:, :REVIEWED].ravel(), CLAIMS)
    n = len(seen)
    assert n == SIMULATIONS * 100
    ordinal = np.tile(np.arange(CLAIMS), n // CLAIMS).astype(np.int32)
    ids = np.char.add(np.char.add(seen, "/"), ordinal.astype(str))
    by_people, by_judge = (x[:, :REVIEWED].ravel() for x in (people, judge))
    at = pa.scalar(datetime(2026, 11, 5, tzinfo=UTC))
    blank = pa.nulls(n, pa.string())
    shared = {"trace_id": seen, "claim_id": ids, "span_start": ordinal * 10, "span_end": ordinal * 10 + 9}
    reviews = pa.table({
        **shared, "review_id": ids, "label": LABELS[by_people], "misused": by_people == 1, "reviewer": blank,
        "reviewed_at": pa.repeat(at, n), "imported_at": pa.repeat(at, n), "sampling": pa.repeat("random", n),
        "adjudicated": pa.nulls(n, pa.bool_()),
    })  # fmt: skip
    claims = pa.table({
        **shared, "extractor_version": pa.repeat("x", n), "ordinal": ordinal, "kind": pa.repeat("claim", n),
        "cited_chunk_ids": pa.repeat(pa.scalar(["a"]), n),
    })  # fmt: skip
    results = pa.table({
        "recipe": pa.repeat("r", n), "date": pa.repeat(pa.scalar(DAY), n), "trace_id": seen, "claim_id": ids,
        "status": pa.repeat("judged", n), "label": LABELS[by_judge], "misused": by_judge == 1,
        "to_check": pa.repeat(False, n),
        **{name: pa.nulls(n, pa.float64()) for name in ("confidence", "p_supported", "p_contradicted")},
    })  # fmt: skip
    with Queries("1GB", tmp_path) as queries:
        labeled = queries.run("views/reviewed_claims", {"reviews": reviews, "claims": claims, "claim_results": results})
        params = {"misuse_penalty": PENALTY, "partial_credit": 0.0}
        relations = {"reviews": reviews, "reviewed_claims": labeled, "trace_scores": scores}
        found = corrected(queries, scores, queries.run("sums/reviewed_traces", relations, params)).to_pylist()
    rows = [r for r in found if r["number"] == "groundedness"]
    assert len(rows) == SIMULATIONS
    assert {(r["n_scored"], r["n_reviewed"]) for r in rows} == {(NIGHT, REVIEWED)}
    assert BY_JUDGE < TRUTH - 10  # the judge alone is far off
    assert np.mean([r["raw_mean"] for r in rows]) == pytest.approx(BY_JUDGE, abs=0.5)
    assert np.mean([r["corrected_mean"] for r in rows]) == pytest.approx(TRUTH, abs=1)
    covered = np.mean([r["corrected_low"] <= TRUTH <= r["corrected_high"] for r in rows])
    assert 0.95 - NOISE < covered < 0.95 + NOISE
    assert np.mean([abs(r["raw_mean"] - TRUTH) < 5 for r in rows]) < 0.1


def test_kappa_of_judge_and_people_covers_the_true_one(simulated: tuple[np.ndarray, np.ndarray]) -> None:
    """Answers are the clusters: their claims are good or bad together. A jackknife over 25 may cost 2 points."""
    people, judge = (x[:, :REVIEWED] for x in simulated)
    tables = np.zeros((SIMULATIONS, REVIEWED, 3, 3), np.int64)
    places = np.indices(people.shape)
    np.add.at(tables, (places[0], places[1], judge, people), 1)
    kappas = [agreement(t).kappa for t in tables]
    truth = true_kappa()
    covered = np.mean([k.low is not None and k.high is not None and k.low <= truth <= k.high for k in kappas])
    assert 0.93 - NOISE < covered < 0.95 + NOISE
