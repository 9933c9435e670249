"""The features of (premise, claim) pairs that need no entailment model, as a table: similarity judges by them alone.

Left out: weighing them, which is each judge's own.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tasks.core.types import Request
from tasks.core.windows import windows
from tasks.engines.transformers_cpu import Embedder
from tasks.judges import _features

FEATURES = ("cosine", "overlap", "bigrams", "missing_numbers", "missing_names")
COSINE_DECIMALS = 6


def table(
    requests: Sequence[Request], embedder: Embedder, window_words: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Features (requests, 5) in the order of `FEATURES`, and tokens newly embedded for each request (requests,).

    `cosine` is that of the claim and the nearest window of the premise, in [-1, 1]; 0 if either is blank. A row
    depends on its request alone, to the last bit.

    Raises:
        EngineError: The embedding model can't be loaded or run.
    """
    sides = {text: _features.read(text) for r in requests for text in (r.premise, r.hypothesis)}
    cut = {text: [text[a:b] for a, b in windows(text, window_words)] for text in {r.premise for r in requests}}
    groups = [[r.hypothesis, *cut[r.premise]] for r in requests]
    embedded = embedder.embed([text for group in groups for text in group])
    ends = np.cumsum([len(group) for group in groups], dtype=np.int64)
    found = np.zeros((len(requests), len(FEATURES)))
    tokens = np.zeros(len(requests), dtype=np.int64)
    for i, (request, group, end) in enumerate(zip(requests, groups, ends, strict=True)):
        rows = slice(end - len(group), end)
        claim, *evidence = embedded.vectors[rows].astype(np.float64)
        # Summed row by row, not by a matrix product, whose rounding may depend on how many rows there are.
        cosine = max((round(float((claim * window).sum()), COSINE_DECIMALS) for window in evidence), default=0.0)
        shared = _features.lexical(sides[request.premise], sides[request.hypothesis])
        found[i] = [cosine, *(shared[f] for f in FEATURES[1:])]
        tokens[i] = embedded.tokens[rows].sum()
    return found, tokens
