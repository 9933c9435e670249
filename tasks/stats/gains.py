"""Compares two judges by their agreement with people on the same claims.

Method: docs/methods.md#judging-the-judges and #noise-and-confidence and #peoples-labels.

Both are compared with the same truth, question by question, so that difficulties they share cancel out.
"""

from dataclasses import dataclass, replace

import numpy as np

from tasks.stats import intervals as statistics
from tasks.stats.agreement import Counts, Interval, Measure, interval, moves
from tasks.stats.comparison import permutation_p
from tasks.stats.intervals import Numbers


@dataclass(frozen=True, slots=True)
class Gain:
    """One measure of two sides' agreement with the truth.

    Attributes:
        a: Value of side A.
        b: Value of side B.
        difference: B − A.
        p: Two-sided p-value of "there is no difference"; None if the difference has no interval.
    """

    a: Interval
    b: Interval
    difference: Interval
    p: float | None = None


def gain(counts_a: Counts, counts_b: Counts, measure: Measure, least: float, *seed: str) -> Gain:
    """How much better B agrees with the truth than A.

    The interval comes from leaving out one cluster at a time. p comes from the paired permutation test: whole clusters
    exchange the labels of the two sides, in all ways if there are at most PERMUTATIONS, otherwise in as many random
    ways.

    Args:
        counts_a: (m, k, k) claims of each cluster by A's label and by the truth, as returned by `tally` (m is at most
            `MOST_LEFT_OUT`), without empty clusters.
        counts_b: The same claims by B's label and by the truth.
        least: Lowest possible value of the measure; the highest is 1.
        seed: Seed of the permutations: the same arguments give the same result.
    """
    a, b = interval(counts_a, measure, least), interval(counts_b, measure, least)
    if a.value is None or b.value is None:
        return Gain(a, b, Interval(None))
    of_a, of_b, most = moves(counts_a, measure), moves(counts_b, measure), 1 - least
    both = replace(of_b, values=of_b.values - of_a.values, moves=of_b.moves - of_a.moves)
    difference, ends = float(both.values[0]), statistics.interval(both, -most, most)
    if ends is None:
        return Gain(a, b, Interval(difference))
    return Gain(a, b, Interval(difference, *ends), _exchange_p(counts_a, counts_b, measure, seed))


def _exchange_p(a: Counts, b: Counts, measure: Measure, seed: tuple[str, ...]) -> float:
    m = len(a)
    if np.array_equal(a, b):
        return 1.0
    both = np.concatenate([a, b])

    def size(i: Counts, j: Counts, axis: int = -1) -> Numbers:  # noqa: ARG001 - always the last axis
        change = measure(both[j].sum(axis=-3)) - measure(both[i].sum(axis=-3))
        found: Numbers = np.nan_to_num(np.abs(change))  # an exchange that makes it undefined counts as small
        return found

    sides = np.arange(m), m + np.arange(m)
    return permutation_p(sides, size, "samples", 100, "gain", *seed)
