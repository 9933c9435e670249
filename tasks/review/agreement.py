"""Count people's labels and measure how far people agree (docs/methods.md#peoples-labels).

Left out: agreement of a judge with people (`leadline agreement`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, cast

import numpy as np

from tasks.core.labeling import OF_CLAIMS
from tasks.review.export import Scope
from tasks.stats.agreement import Agreement, Counts, Interval, agreement, interval, share
from tasks.stats.reliability import alpha, coincidences
from tasks.store.query import sql
from tasks.store.warehouse import Reader

LABELS = tuple(OF_CLAIMS)
NAMELESS = "(no name)"  # all reviewers without a name count as one


@dataclass(frozen=True, slots=True)
class Pair:
    """Agreement of two reviewers, over the claims that both labeled."""

    first: str
    second: str
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class Found:
    """Labels and agreement of people under one recipe.

    Attributes:
        claims: Number of labeled claims, without those that are `not_a_claim`.
        by_reviewers: Number of claims by number of reviewers, without adjudicators.
        reviewers: Number of claims by reviewer.
        outcomes: Number of claims by outcome: `labeled`, `tied`, `cant_tell` or `not_a_claim`.
        adjudicated: Number of adjudicated claims.
        shared: Number of claims with at least two reviewers. Only these enter `share`, `alpha` and `pairs`.
        share: How often two reviewers of a claim give the same label.
        alpha: Krippendorff's alpha.
        pairs: Agreement of each two reviewers, in the order of their names.
        open: Ids of claims on which reviewers disagree and that no adjudicator has settled.
    """

    claims: int
    by_reviewers: dict[int, int]
    reviewers: dict[str, int]
    outcomes: dict[str, int]
    adjudicated: int
    shared: int
    share: Interval
    alpha: Interval
    pairs: tuple[Pair, ...]
    open: tuple[str, ...]


def reviewers_agreement(reader: Reader, scope: Scope) -> Found:
    """Measure agreement on the claims in the scope. `cant_tell` counts as a label like any other.

    Claims whose outcome is `not_a_claim` are only counted. If reviewers disagree about that, `not_a_claim` counts as a
    label like any other.
    """
    found = reader.rows(sql("review/agreement"), scope.params)
    rows = [row for row in found if row["outcome"] != "not_a_claim"]
    votes = [{v["reviewer"] or NAMELESS: v["label"] for v in row["votes"] if not v["adjudicated"]} for row in rows]
    questions = [row["question"] for row in rows]
    tables = cast("Counts", coincidences(questions, [list(v.values()) for v in votes], LABELS))
    by_reviewers = Counter(len(v) for v in votes)
    reviewers = Counter(name for v in votes for name in v)
    return Found(
        claims=len(rows),
        by_reviewers={n: by_reviewers[n] for n in sorted(by_reviewers)},
        reviewers={name: reviewers[name] for name in sorted(reviewers)},
        outcomes=dict(Counter(row["outcome"] for row in found)),
        adjudicated=sum(row["adjudicated"] for row in rows),
        shared=sum(len(v) > 1 for v in votes),
        share=interval(tables, share, 0.0),
        alpha=interval(tables, alpha),
        pairs=tuple(_pairs(questions, votes)),
        open=tuple(row["claim_id"] for row in rows if row["disputed"]),
    )


def _pairs(questions: Sequence[Any], votes: Sequence[dict[str, str]]) -> Iterator[Pair]:
    at = {label: i for i, label in enumerate(LABELS)}
    clusters = {q: i for i, q in enumerate(dict.fromkeys(questions))}
    tables: dict[tuple[str, str], Counts] = {}
    for question, labels in zip(questions, votes, strict=True):
        for one, other in combinations(sorted(labels), 2):
            shape = (len(clusters), len(LABELS), len(LABELS))
            table = tables.setdefault((one, other), np.zeros(shape, np.int64))
            table[clusters[question], at[labels[one]], at[labels[other]]] += 1
    for (one, other), table in sorted(tables.items()):
        yield Pair(one, other, agreement(table))
