"""The similarity judge: compares claim and evidence by words, numbers and embeddings, and needs only a CPU.

A logistic regression, fitted to people's labels by `bench/accuracy/fit_similarity.py`, turns the features of a pair
into `p_supported`. The features ignore negation and direction, so the judge never answers `contradicted`. It is a
baseline and a first stage of a cascade, not a replacement for an entailment model.

Left out: evidence that is spread over several requests. Each premise is judged separately.
"""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tasks.core import keys
from tasks.core.config import Settings, Share
from tasks.core.types import Request, Verdict
from tasks.engines.transformers_cpu import Embedder, EmbedderConfig
from tasks.judges._base import JudgeConfig, check_bands, label_of
from tasks.text import overlap
from tasks.text.windows import windows
from tasks.text.words import STOP_WORDS

RULES = 1  # raised when the same features give a different verdict
FEATURES = ("cosine", "overlap", "bigrams", "missing_numbers", "missing_names")
COSINE_DECIMALS = 6
P_DECIMALS = 4


class Coefficients(Settings):
    """Weight of each feature, in log-odds per unit of the feature."""

    cosine: float
    overlap: float
    bigrams: float
    missing_numbers: float
    missing_names: float


class Thresholds(Settings):
    """Lowest `p_supported` for each label.

    Attributes:
        supported: At or above.
        partially_supported: At or above, and below `supported`; None never gives this label.
    """

    supported: Share
    partially_supported: Share | None = None


class Config(JudgeConfig):
    """The settings in `configs/judges/similarity.yaml`.

    Attributes:
        embedder: The embedding model.
        window_words: Maximum words of a window. A premise is embedded in windows of whole sentences; the window nearest
            to the claim counts.
        intercept: Log-odds if all features are zero.
        abstain: `[lo, hi]`: lo ≤ p < hi gives `abstained`. None never abstains.
    """

    kind: Literal["similarity"] = "similarity"
    embedder: EmbedderConfig = EmbedderConfig()
    window_words: Annotated[int, Field(ge=10)] = 60
    intercept: float
    coefficients: Coefficients
    thresholds: Thresholds
    abstain: tuple[Share, Share] | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        check_bands(self.thresholds.supported, self.thresholds.partially_supported, self.abstain)
        return self


class Similarity(keys.Versioned):
    """See the module. A pair's verdict does not depend on the other pairs of the call, to the last bit."""

    engine = "transformers_cpu"
    gpus = 0

    def __init__(self, config: Config) -> None:
        self._config, self.languages = config, config.languages
        self._embedder = Embedder(config.embedder)

    def describe(self) -> dict[str, object]:
        """Everything that can change a verdict."""
        c = self._config
        return {
            "kind": "similarity",
            "rules": [RULES, overlap.RULES],
            "embedder": self._embedder.describe(),
            "stop_words": keys.version(sorted(STOP_WORDS)),
            **c.model_dump(mode="json", include={"window_words", "intercept", "coefficients", "thresholds", "abstain"}),
        }

    def judge(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict per request, in order (docs/methods.md#labels).

        Each text's tokens count in `tokens_in` of the first verdict that needs it, so the sum is what this call read.

        Raises:
            EngineError: The embedding model can't be loaded or run.
        """
        table, tokens = self.features(requests)
        weights = self._config.coefficients.model_dump()
        limits = self._config.thresholds
        verdicts = []
        for request, row, read in zip(requests, table.tolist(), tokens.tolist(), strict=True):
            # Term by term: the rounding of a matrix product may depend on the number of rows.
            odds = self._config.intercept + sum(weights[f] * x for f, x in zip(FEATURES, row, strict=True))
            # The label follows from the rounded number, so the stored number explains it.
            p = round(1 / (1 + math.exp(-odds)), P_DECIMALS)
            verdicts.append(
                Verdict(
                    request.key,
                    label_of(p, limits.supported, limits.partially_supported, self._config.abstain),
                    p_supported=p,
                    tokens_in=read,
                )
            )
        return verdicts

    def features(self, requests: Sequence[Request]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """`surface_features` with this judge's settings."""
        return surface_features(requests, self._embedder, self._config.window_words)

    def close(self) -> None:
        """Free the embedding model."""
        self._embedder.close()


def surface_features(
    requests: Sequence[Request], embedder: Embedder, window_words: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Features (requests, 5) in the order of `FEATURES`, and tokens newly embedded for each request (requests,).

    A row depends on its own request only, to the last bit.

    Raises:
        EngineError: The embedding model can't be loaded or run.
    """
    cosine, tokens = cosines(requests, embedder, window_words)
    texts = {text: overlap.read(text) for r in requests for text in (r.premise, r.hypothesis)}
    shared = [overlap.lexical(texts[r.premise], texts[r.hypothesis]) for r in requests]
    rows = [[c, *(found[f] for f in FEATURES[1:])] for c, found in zip(cosine.tolist(), shared, strict=True)]
    return np.array(rows, dtype=np.float64).reshape(len(requests), len(FEATURES)), tokens


def cosines(
    requests: Sequence[Request], embedder: Embedder, window_words: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Cosine of each claim and the nearest window of its premise, and newly embedded tokens, both (requests,).

    A cosine is in [-1, 1], and 0 if either text is blank.

    Raises:
        EngineError: The embedding model can't be loaded or run.
    """
    cut = {text: [text[a:b] for a, b in windows(text, window_words)] for text in {r.premise for r in requests}}
    groups = [[r.hypothesis, *cut[r.premise]] for r in requests]
    embedded = embedder.embed([text for group in groups for text in group])
    found = np.zeros(len(requests))
    tokens = np.zeros(len(requests), dtype=np.int64)
    for i, (start, end) in enumerate(pairwise(accumulate(map(len, groups), initial=0))):
        claim, *evidence = embedded.vectors[start:end].astype(np.float64)
        # Row by row: the rounding of a matrix product may depend on the number of rows.
        found[i] = max((round(float((claim * window).sum()), COSINE_DECIMALS) for window in evidence), default=0.0)
        tokens[i] = embedded.tokens[start:end].sum()
    return found, tokens


def build(config: Config, where: str) -> Similarity:
    """The judge. A relative folder of the embedding model is relative to the config file `where`."""
    embedder = config.embedder.relative_to(Path(where).parent)
    return Similarity(config.model_copy(update={"embedder": embedder}))
