"""The entailment judge: a cross-encoder reads evidence and claim together and decides whether one entails the other.

Any sequence classifier with an entailment class serves. A small one is blind to some of what plain comparison sees, so
its log-odds can be fused with the cosine of claim and evidence by a logistic regression fitted to people's labels
(`python -m training fuse`). A long premise is read in windows of whole sentences, and the window that most entails the
claim counts.

Left out: evidence spread over several windows, and what a model was trained on (see its card).
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tasks.core.config import Settings, Share
from tasks.core.errors import EngineError
from tasks.core.keys import Versioned
from tasks.core.types import Request, Verdict
from tasks.engines.classifier import ClassifierConfig, open_classifier
from tasks.engines.transformers_cpu import Embedder, EmbedderConfig
from tasks.judges import similarity
from tasks.judges._base import JudgeConfig, check_bands, label_of
from tasks.text.windows import windows

RULES = 1  # raised when the way from probabilities to a verdict changes
FEATURES = ("entailment", "contradiction", *similarity.FEATURES)
MOST_ODDS = 7.0  # log-odds are cut off here: beyond it a model's certainty means nothing more
FEWEST_WORDS = 8  # of a window; a claim that leaves less room than that is too long for the model
P_DECIMALS = 4


class Coefficients(Settings):
    """Weight of each feature; log-odds per unit of the feature (of the model's log-odds, for the first).

    Attributes:
        entailment: Of the model's own log-odds of entailment.
    """

    entailment: float
    cosine: float


class Fusion(Settings):
    """How the model's probabilities are weighed with what can be compared without it.

    Attributes:
        embedder: The embedding model of the cosine.
        window_words: A premise is embedded in windows up to this many words; the one nearest to the claim counts.
        intercept: Log-odds at zero features.
    """

    embedder: EmbedderConfig = EmbedderConfig()
    window_words: Annotated[int, Field(ge=10)] = 60
    intercept: float
    coefficients: Coefficients


class Thresholds(Settings):
    """From which probability on a label is given, in the order of the attributes.

    Attributes:
        supported: Of `p_supported`.
        contradicted: Of `p_contradicted`, where the claim is not supported.
        partially_supported: Of `p_supported`, below `supported`; None gives the label never.
    """

    supported: Share = 0.5
    contradicted: Share = 0.5
    partially_supported: Share | None = None


class Config(JudgeConfig):
    """The whole of an entailment judge's file.

    Attributes:
        classifier: The model and the engine that runs it.
        window_words: A premise is read in windows of whole sentences up to this many words, fewer where the model's
            `max_tokens` ask for it.
        fusion: Weighs the model with other features; None takes its probabilities as they are.
        abstain: `[lo, hi]`: lo ≤ p_supported < hi is answered with `abstained`. None answers always.
    """

    kind: Literal["nli"] = "nli"
    classifier: ClassifierConfig
    window_words: Annotated[int, Field(ge=FEWEST_WORDS)] = 200
    fusion: Fusion | None = None
    thresholds: Thresholds = Thresholds()
    abstain: tuple[Share, Share] | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        check_bands(self.thresholds.supported, self.thresholds.partially_supported, self.abstain)
        return self


class Nli(Versioned):
    """See the module. Verdicts of the same pair are equal whatever else is judged beside it."""

    def __init__(self, config: Config) -> None:
        self._config, self.languages = config, config.languages
        self._classifier = open_classifier(config.classifier)
        self._fusion = None if config.fusion is None else (config.fusion, Embedder(config.fusion.embedder))

    @property
    def engine(self) -> str:
        """The classifier's engine."""
        return self._config.classifier.engine

    @property
    def gpus(self) -> int:
        """GPUs that the classifier holds."""
        return self._config.classifier.gpus

    @property
    def fused(self) -> bool:
        """Whether other features are weighed in."""
        return self._fusion is not None

    def describe(self) -> dict[str, object]:
        """Everything that can change a verdict."""
        c = self._config
        description: dict[str, object] = {
            "kind": "nli",
            "rules": [RULES],
            "classifier": self._classifier.describe(),
            **c.model_dump(mode="json", include={"window_words", "thresholds", "abstain"}),
        }
        if self._fusion is not None:
            fusion, embedder = self._fusion
            description["fusion"] = {
                **fusion.model_dump(mode="json", exclude={"embedder"}),
                "embedder": embedder.describe(),
            }
        return description

    def judge(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict per request, in order. A claim too long for the model fails as `too_long`.

        Method: docs/methods.md#labels.

        `tokens_in` counts each text where it is first read: the sum over the verdicts is what this call read.

        Raises:
            EngineError: A model can't be loaded or run.
        """
        cuts = self._cut(requests)
        fitting = [r for r, cut in zip(requests, cuts, strict=True) if cut]
        probabilities, tokens = self._read(fitting, [cut for cut in cuts if cut])
        p_supported = probabilities[:, 0]
        if self._fusion is not None:
            fusion, embedder = self._fusion
            cosine, embedded = similarity.cosines(fitting, embedder, fusion.window_words)
            tokens = tokens + embedded
            odds = fusion.intercept + fusion.coefficients.entailment * log_odds(p_supported)
            odds = odds + fusion.coefficients.cosine * cosine
            p_supported = np.array([1 / (1 + math.exp(-x)) for x in odds.tolist()])
        judged = iter(zip(p_supported.tolist(), probabilities[:, 1].tolist(), tokens.tolist(), strict=True))
        return [
            self._verdict(r.key, *next(judged)) if cut else Verdict(r.key, failure="too_long")
            for r, cut in zip(requests, cuts, strict=True)
        ]

    def features(self, requests: Sequence[Request]) -> npt.NDArray[np.float64]:
        """All features of each request in the order of `FEATURES`, (requests, 7); for fitting a fusion.

        Raises:
            EngineError: A model can't be loaded or run, or a claim is too long for it.
        """
        if self._fusion is None:
            raise ValueError("a judge without fusion has no features")
        fusion, embedder = self._fusion
        cuts = self._cut(requests)
        if not all(cuts):
            raise EngineError(f"{cuts.count([])} claims are too long for the classifier. Leave them out.")
        probabilities, _ = self._read(requests, cuts)
        surface, _ = similarity.surface_features(requests, embedder, fusion.window_words)
        return np.column_stack([log_odds(np.nan_to_num(probabilities)), surface])

    def close(self) -> None:
        """Free the models."""
        self._classifier.close()
        if self._fusion is not None:
            self._fusion[1].close()

    def _cut(self, requests: Sequence[Request]) -> list[list[str]]:
        """The windows of each request's premise, none where the claim leaves no room for any."""
        room = self._classifier.room()
        claims = {r.hypothesis for r in requests}
        tokens = dict(zip(claims, self._classifier.count(list(claims)), strict=True))
        words = [self._config.window_words] * len(requests)
        made = [_windows(r.premise, self._config.window_words) for r in requests]
        long = list(range(len(requests)))
        while long:
            texts = {window for i in long for window in made[i]}
            length = dict(zip(texts, self._classifier.count(list(texts)), strict=True))
            long = [i for i in long if any(length[w] + tokens[requests[i].hypothesis] > room for w in made[i])]
            for i in long:
                words[i] //= 2
                made[i] = _windows(requests[i].premise, words[i]) if words[i] >= FEWEST_WORDS else []
        return made

    def _read(
        self, requests: Sequence[Request], cuts: Sequence[Sequence[str]]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Probabilities of supported and contradicted (requests, 2), and tokens read for each request (requests,).

        Each is the highest of any window; the second is NaN for a model without a class for it.
        """
        first: dict[tuple[str, str], int] = {}
        for i, (request, cut) in enumerate(zip(requests, cuts, strict=True)):
            for window in cut:
                first.setdefault((window, request.hypothesis), i)
        classified = self._classifier.classify(list(first))
        labels = self._classifier.labels
        columns = [labels.supported] if labels.contradicted is None else [labels.supported, labels.contradicted]
        read = dict(zip(first, classified.probabilities[:, columns], strict=True))
        found = np.full((len(requests), 2), np.nan)
        for i, (request, cut) in enumerate(zip(requests, cuts, strict=True)):
            found[i, : len(columns)] = np.max([read[window, request.hypothesis] for window in cut], axis=0)
        tokens = np.zeros(len(requests), dtype=np.int64)
        np.add.at(tokens, list(first.values()), classified.tokens)
        return found, tokens

    def _verdict(self, key: str, p_supported: float, p_contradicted: float, tokens: int) -> Verdict:
        # The label is read off the rounded numbers, so that what is stored explains it.
        p = round(p_supported, P_DECIMALS)
        against = None if math.isnan(p_contradicted) else round(p_contradicted, P_DECIMALS)
        c = self._config
        contradicted = against is not None and against >= c.thresholds.contradicted
        label = label_of(
            p, c.thresholds.supported, c.thresholds.partially_supported, c.abstain, contradicted=contradicted
        )
        return Verdict(key, label, p_supported=p, p_contradicted=against, tokens_in=tokens)


def log_odds(p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Log-odds of probabilities, within ±`MOST_ODDS`."""
    with np.errstate(divide="ignore"):
        odds: npt.NDArray[np.float64] = np.clip(np.log(p) - np.log1p(-p), -MOST_ODDS, MOST_ODDS)
    return odds


def _windows(text: str, words: int) -> list[str]:
    return [text[a:b] for a, b in windows(text, words)]


def build(config: Config, where: str) -> Nli:
    """The judge; relative folders of its models are relative to the config file `where`."""
    folder = Path(where).parent
    fusion = config.fusion
    if fusion is not None:
        fusion = fusion.model_copy(update={"embedder": fusion.embedder.relative_to(folder)})
    return Nli(config.model_copy(update={"classifier": config.classifier.relative_to(folder), "fusion": fusion}))
