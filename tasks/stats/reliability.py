"""How far several reviewers agree who labeled the same things, not all of them everything.

Method: docs/methods.md#peoples-labels.

Krippendorff's alpha for labels without an order: 1 is agreement, 0 what chance would give. Its tables add up over
things, so that intervals come from leaving out a question at a time, as for two sides (`agreement.py`).
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
    """How often two reviewers gave which labels to the same thing.

    Args:
        clusters: (n,) the cluster of each thing, such as its question.
        given: (n,) its labels, one of each reviewer who gave one. A thing with fewer than two does not count.
        labels: The k labels that there are.

    Returns:
        (m, k, k) coincidences of each cluster: of a thing with r labels each ordered pair counts 1 / (r − 1), so that
        all of them add up to r.
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
    """(m,) Krippendorff's alpha of (m, k, k) coincidences; NaN where all labels are the same one.

    1 − observed / expected disagreement, the expected one without putting a label back (Krippendorff 2011, "Computing
    Krippendorff's Alpha-Reliability", section C and D).
    """
    tables = cast("npt.NDArray[np.float64]", counts)
    each = tables.sum(axis=-1)
    n = each.sum(axis=-1)
    observed = (n - np.trace(tables, axis1=-2, axis2=-1)) * (n - 1)
    expected = n**2 - (each**2).sum(axis=-1)
    # Weights of thirds don't add up to whole numbers exactly: what is left of nothing is nothing.
    some = expected > 1e-9
    found: Numbers = 1 - np.divide(observed, expected, out=np.full(np.shape(expected), np.nan), where=some)
    return found
