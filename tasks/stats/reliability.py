"""Agreement of several reviewers who labeled the same items, not necessarily all of them.

Method: docs/methods.md#peoples-labels.

Krippendorff's alpha for unordered labels: 1 is full agreement, 0 the agreement by chance. Its tables add up over items,
so intervals come from leaving out one question at a time, as for two sides (`agreement.py`).
"""

from collections.abc import Hashable, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from tasks.stats.agreement import Counts
from tasks.stats.intervals import Numbers


def coincidences(
    clusters: Sequence[Hashable], given: Sequence[Sequence[str]], labels: Sequence[str]
) -> npt.NDArray[np.float64]:
    """Count how often two reviewers gave each pair of labels to the same item.

    Args:
        clusters: (n,) cluster of each item, such as its question.
        given: (n,) its labels, one from each reviewer of it. Items with fewer than two labels do not count.
        labels: The k possible labels.

    Returns:
        (m, k, k) coincidences of each cluster. In an item with r labels, each ordered pair counts 1 / (r − 1), so that
        the pairs add up to r.
    """
    rows = {c: i for i, c in enumerate(dict.fromkeys(clusters))}
    at = {label: i for i, label in enumerate(labels)}
    found = np.zeros((len(rows), len(labels), len(labels)))
    for cluster, labels_given in zip(clusters, given, strict=True):
        if len(labels_given) > 1:
            n = np.bincount([at[label] for label in labels_given], minlength=len(labels))
            found[rows[cluster]] += (np.outer(n, n) - np.diag(n)) / (len(labels_given) - 1)
    return found


def alpha(counts: Counts) -> Numbers:
    """(m,) Krippendorff's alpha of (m, k, k) coincidences; NaN if all labels are the same.

    1 − observed / expected disagreement, with the expected one for drawing without replacement (Krippendorff 2011,
    "Computing Krippendorff's Alpha-Reliability", sections C and D).
    """
    tables = cast("npt.NDArray[np.float64]", counts)
    each = tables.sum(axis=-1)
    n = each.sum(axis=-1)
    observed = (n - np.trace(tables, axis1=-2, axis2=-1)) * (n - 1)
    expected = n**2 - (each**2).sum(axis=-1)
    # Weights such as thirds don't add up to exact whole numbers, so a rounding error counts as zero.
    some = expected > 1e-9
    found: Numbers = 1 - np.divide(observed, expected, out=np.full(np.shape(expected), np.nan), where=some)
    return found
