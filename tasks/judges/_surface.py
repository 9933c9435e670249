"""The features of (premise, claim) pairs that need no entailment model, as a table: similarity judges by them alone.

Left out: weighing them, which is each judge's own.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tasks.core.types import Request
from tasks.engines.transformers_cpu import Embedder
from tasks.text import overlap
from tasks.text.windows import windows

FEATURES = ("cosine", "overlap", "bigrams", "missing_numbers", "missing_names")
COSINE_DECIMALS = 6


def table(
    requests: Sequence[Request], embedder: Embedder, window_words: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Features (requests, 5) in the order of `FEATURES`, and tokens newly embedded for each request (requests,).

    A row depends on its request alone, to the last bit.

    Raises:
        EngineError: The embedding model can't be loaded or run.
    """
    cosine, tokens = cosines(requests, embedder, window_words)
    sides = {text: overlap.read(text) for r in requests for text in (r.premise, r.hypothesis)}
    shared = [overlap.lexical(sides[r.premise], sides[r.hypothesis]) for r in requests]
    rows = [[c, *(found[f] for f in FEATURES[1:])] for c, found in zip(cosine.tolist(), shared, strict=True)]
    return np.array(rows, dtype=np.float64).reshape(len(requests), len(FEATURES)), tokens


def cosines(
    requests: Sequence[Request], embedder: Embedder, window_words: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Cosine of each claim and the nearest window of its premise, and tokens newly embedded for each (requests,).

    In [-1, 1]; 0 if either text is blank.

    Raises:
        EngineError: The embedding model can't be loaded or run.
    """
    cut = {text: [text[a:b] for a, b in windows(text, window_words)] for text in {r.premise for r in requests}}
    groups = [[r.hypothesis, *cut[r.premise]] for r in requests]
    embedded = embedder.embed([text for group in groups for text in group])
    ends = np.cumsum([len(group) for group in groups], dtype=np.int64)
    found = np.zeros(len(requests))
    tokens = np.zeros(len(requests), dtype=np.int64)
    for i, (group, end) in enumerate(zip(groups, ends, strict=True)):
        rows = slice(end - len(group), end)
        claim, *evidence = embedded.vectors[rows].astype(np.float64)
        # Summed row by row, not by a matrix product, whose rounding may depend on how many rows there are.
        found[i] = max((round(float((claim * window).sum()), COSINE_DECIMALS) for window in evidence), default=0.0)
        tokens[i] = embedded.tokens[rows].sum()
    return found, tokens
