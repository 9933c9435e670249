"""Confidence intervals of means over clusters: traces of one question are no independent observations (METHODS 11).

Left out: shares of independent things, which have Wilson intervals (`nightly_triad.sql`, `stages/noise.py`).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from tasks.core import keys

RESAMPLES = 1_000
# Up to here clusters are resampled. Above, what the bootstrap adds to the normal interval (the skew of the data, of
# order 1/√clusters of its width) is less than its own noise at RESAMPLES (about 4% of the half-width at each end).
MOST_RESAMPLED = 1_000
LEVEL = 0.95
Z = float(special.ndtri(0.5 + LEVEL / 2))
Numbers = npt.NDArray[np.float64]


def mean_interval(totals: Numbers, counts: Numbers, *seed: str) -> tuple[float, float] | None:
    """95% interval of the mean over all observations, Σ totals / Σ counts, whole clusters drawn at a time.

    Up to `MOST_RESAMPLED` clusters: percentiles of the bootstrap distribution, taken further out so that a few clusters
    give as wide an interval as Student's t does (Hesterberg 2015, doi:10.1080/00031305.2015.1089789, "expanded
    percentile"). It never leaves the range of the clusters' means. Above: mean ± 1.96 cluster-robust standard errors.

    Args:
        totals: (m,) sum of the observations of each cluster, in an order that does not change.
        counts: (m,) their number, at least 1 each.
        seed: What draws the clusters: the same arguments give the same interval.

    Returns:
        Lower and upper end; None below two clusters.
    """
    m = len(totals)
    if m < 2:
        return None
    if m > MOST_RESAMPLED:
        mean = totals.sum() / counts.sum()
        left = totals - mean * counts
        half = Z * math.sqrt(m / (m - 1) * float(left @ left)) / float(counts.sum())
        return float(mean) - half, float(mean) + half
    t = special.stdtrit(m - 1, 0.5 + LEVEL / 2)
    outside = float(special.ndtr(-t * math.sqrt(m / (m - 1))))  # on each side
    found = stats.bootstrap(
        (totals, counts),
        _ratio,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=1 - 2 * outside,
        method="percentile",
        rng=np.random.default_rng(int(keys.key(*seed), 16)),
    )
    low, high = found.confidence_interval
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean by a judge's labels, corrected by people's.

    Attributes:
        raw: The mean by the judge's labels.
        rectifier: What people's labels change in the reviewed observations, on average.
        mean: raw + rectifier.
        low: Lower end of the 95% interval of `mean`.
        high: Upper end.
    """

    raw: float
    rectifier: float
    mean: float
    low: float
    high: float


def corrected_mean(totals: Numbers, counts: Numbers, changes: Numbers, reviewed: Numbers) -> Corrected | None:
    """Prediction-powered mean, and its interval over clusters (METHODS 11; Angelopoulos et al. 2023, λ = 1).

    Each of the two means is a ratio of sums over clusters, and a cluster may be in both: its two deviations are added
    before they are squared, so that what is known of both at once is not counted as chance twice. Student's t, with the
    degrees of freedom of Welch and Satterthwaite.

    Args:
        totals: (m,) sum of the observations of each cluster by the judge's labels; 0 where there is none.
        counts: (m,) their number.
        changes: (m,) sum over the cluster's reviewed observations of people's minus the judge's value; 0 where there is
            none.
        reviewed: (m,) their number.

    Returns:
        Nothing is cut at the ends of a scale. None where fewer than two clusters have observations, or reviewed ones.
    """
    if (counts > 0).sum() < 2 or (reviewed > 0).sum() < 2:
        return None
    raw, of_raw, raw_clusters = _deviations(totals, counts)
    rectifier, of_rectifier, reviewed_clusters = _deviations(changes, reviewed)
    both = of_raw + of_rectifier
    parts = [(float(of_raw @ of_raw), raw_clusters - 1), (float(of_rectifier @ of_rectifier), reviewed_clusters - 1)]
    spread = sum(variance for variance, _ in parts)
    half = 0.0
    if spread > 0:
        freedom = spread**2 / sum(variance**2 / free for variance, free in parts)
        half = float(special.stdtrit(freedom, 0.5 + LEVEL / 2)) * math.sqrt(float(both @ both))
    mean = raw + rectifier
    return Corrected(raw, rectifier, mean, mean - half, mean + half)


def _deviations(totals: Numbers, counts: Numbers) -> tuple[float, Numbers, int]:
    """A ratio of sums, what each cluster adds to its error (squares add up to its variance), and the clusters in it."""
    n, clusters = float(counts.sum()), int((counts > 0).sum())
    mean = float(totals.sum()) / n
    return mean, math.sqrt(clusters / (clusters - 1)) * (totals - mean * counts) / n, clusters


def _ratio(totals: Numbers, counts: Numbers, axis: int = -1) -> Numbers:
    ratio: Numbers = totals.sum(axis=axis) / counts.sum(axis=axis)
    return ratio
