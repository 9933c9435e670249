"""The entailment judge: a cross-encoder reads evidence and claim together and decides whether one entails the other.

Any sequence classifier with an entailment class works. A long premise is split into windows of whole sentences, and the
window with the highest entailment counts. A small model reads short texts best, so the judge can also read the few
sentences nearest to the claim on their own. A logistic regression fitted to people's labels
(`python -m training fuse`) can combine the log-odds of both with the features of a plain comparison (figures and names
that the premise lacks).

Left out: evidence that is spread over several windows, and the training data of a model (see its card).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
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
from tasks.judges._base import JudgeConfig, check_bands, label_of
from tasks.text import missing_figures, overlap
from tasks.text.nearest import nearest
from tasks.text.plain_figures import RULES as FIGURE_RULES
from tasks.text.plain_figures import plain_figures
from tasks.text.windows import windows

RULES = 2  # raised when the same probabilities give a different verdict
MODEL = ("windows", "nearest", "contradiction")  # features from the model
SURFACE = ("overlap", "bigrams", "missing_numbers", "missing_names", "missing_figures")
FEATURES = (*MODEL, *SURFACE)
MOST_ODDS = 7.0  # log-odds are clipped here; greater certainty of a model means nothing
FEWEST_WORDS = 8  # of a window; a claim that leaves less room is too long for the model
P_DECIMALS = 4


class Coefficients(Settings):
    """Weight of each feature, in log-odds per unit of the feature.

    Attributes:
        windows: Of the model's log-odds of entailment, the highest of any window.
        nearest: Of its log-odds for the nearest sentences, or for the windows if `nearest_sentences` is None.
        overlap: Of the share of the claim's content words that the premise has.
        bigrams: Of the share of the claim's pairs of neighboring words that the premise has.
        missing_numbers: Of the claim's numbers in digits that the premise lacks, at most 3.
        missing_names: Of the claim's names that the premise lacks, at most 3.
        missing_figures: Of the claim's dates, times and numbers that the premise states in no format, at most 3.
    """

    windows: float = 0
    nearest: float = 0
    overlap: float = 0
    bigrams: float = 0
    missing_numbers: float = 0
    missing_names: float = 0
    missing_figures: float = 0


class Fusion(Settings):
    """How the model's log-odds are combined with the features of a plain comparison.

    Attributes:
        intercept: Log-odds if all features are zero.
    """

    intercept: float
    coefficients: Coefficients


class Thresholds(Settings):
    """Lowest probability for each label, tested in the order of the attributes.

    Attributes:
        supported: Of `p_supported`.
        contradicted: Of `p_contradicted`, if the claim is not supported.
        partially_supported: Of `p_supported`, below `supported`; None never gives this label.
    """

    supported: Share = 0.5
    contradicted: Share = 0.5
    partially_supported: Share | None = None


class Config(JudgeConfig):
    """The settings in an entailment judge's file.

    Attributes:
        classifier: The model and its engine.
        window_words: Maximum words of a window. A premise is read in windows of whole sentences; they are shorter if
            the model's `max_tokens` requires it.
        nearest_sentences: How many sentences of the premise, the nearest to the claim, are also read on their own; None
            reads windows only.
        fusion: Weights of the model and the other features; None takes the mean of the model's log-odds.
        abstain: `[lo, hi]`: lo ≤ p_supported < hi gives `abstained`. None never abstains.
    """

    kind: Literal["nli"] = "nli"
    classifier: ClassifierConfig
    window_words: Annotated[int, Field(ge=FEWEST_WORDS)] = 200
    nearest_sentences: Annotated[int, Field(ge=1)] | None = None
    fusion: Fusion | None = None
    thresholds: Thresholds = Thresholds()
    abstain: tuple[Share, Share] | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        check_bands(self.thresholds.supported, self.thresholds.partially_supported, self.abstain)
        return self


class Nli(Versioned):
    """See the module. A pair's verdict does not depend on the other pairs of the call."""

    def __init__(self, config: Config) -> None:
        self._config, self.languages = config, config.languages
        self._classifier = open_classifier(config.classifier)

    @property
    def engine(self) -> str:
        """The classifier's engine."""
        return self._config.classifier.engine

    @property
    def gpus(self) -> int:
        """GPUs that the classifier holds."""
        return self._config.classifier.gpus

    def describe(self) -> dict[str, object]:
        """Everything that can change a verdict."""
        c = self._config
        settings = {"window_words", "nearest_sentences", "fusion", "thresholds", "abstain"}
        return {
            "kind": "nli",
            "rules": [RULES, overlap.RULES, missing_figures.RULES, FIGURE_RULES],
            "classifier": self._classifier.describe(),
            **c.model_dump(mode="json", include=settings),
        }

    def judge(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict per request, in order. A claim too long for the model fails as `too_long`.

        Method: docs/methods.md#labels.

        Each text's tokens count in `tokens_in` of the first verdict that needs it, so the sum is what this call read.

        Raises:
            EngineError: A model can't be loaded or run.
        """
        requests = [_plain(r) for r in requests]
        views = self._views(requests)
        fitting = [i for i in range(len(requests)) if all(view[i] for view in views)]
        fit = [requests[i] for i in fitting]
        entailed, contradicted, tokens = self._read(fit, [[view[i] for i in fitting] for view in views])
        odds = self._odds(fit, entailed)
        p_supported = [1 / (1 + math.exp(-x)) for x in odds.tolist()]
        judged = dict(zip(fitting, zip(p_supported, contradicted.tolist(), tokens.tolist(), strict=True), strict=True))
        return [
            self._verdict(r.key, *judged[i]) if i in judged else Verdict(r.key, failure="too_long")
            for i, r in enumerate(requests)
        ]

    def features(self, requests: Sequence[Request]) -> npt.NDArray[np.float64]:
        """All features of each request in the order of `FEATURES`, (requests, 8); for fitting a fusion.

        Raises:
            EngineError: A model can't be loaded or run, or a claim is too long for it.
        """
        requests = [_plain(r) for r in requests]
        views = self._views(requests)
        if long := sum(not all(texts) for texts in zip(*views, strict=True)):
            raise EngineError(f"{long} claims are too long for the classifier. Leave them out.")
        entailed, contradicted, _ = self._read(requests, views)
        against = log_odds(np.nan_to_num(contradicted))
        return np.column_stack([entailed[:, 0], entailed[:, -1], against, surface(requests)])

    def _odds(self, requests: Sequence[Request], entailed: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Log-odds that each request is supported, (requests,), from the log-odds of its views (requests, views)."""
        if self._config.fusion is None:
            return np.asarray(entailed.mean(axis=1))
        weights = self._config.fusion.coefficients
        odds = self._config.fusion.intercept + weights.windows * entailed[:, 0] + weights.nearest * entailed[:, -1]
        if any(getattr(weights, name) for name in SURFACE):
            # Column by column: the rounding of a matrix product may depend on the number of rows.
            for name, column in zip(SURFACE, surface(requests).T, strict=True):
                odds = odds + getattr(weights, name) * column
        return np.asarray(odds)

    def close(self) -> None:
        """Free the model."""
        self._classifier.close()

    def _views(self, requests: Sequence[Request]) -> list[list[list[str]]]:
        """The texts to read for each view (windows, nearest sentences) and request; none if the claim is too long."""
        count = self._config.nearest_sentences
        views: list[Sequence[Request]] = [requests]
        if count is not None:
            views.append([replace(r, premise=nearest(r.premise, r.hypothesis, count)) for r in requests])
        return [self._cut(view) for view in views]

    def _cut(self, requests: Sequence[Request]) -> list[list[str]]:
        """The windows of each request's premise; none if the claim leaves no room."""
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
        self, requests: Sequence[Request], views: Sequence[Sequence[Sequence[str]]]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Log-odds of entailment (requests, views), probability of contradiction and tokens read (requests,).

        The highest value of a view's texts counts. The probability of contradiction comes from the last view; it is NaN
        if the model has no class for it.
        """
        first: dict[tuple[str, str], int] = {}
        for view in views:
            for i, (request, texts) in enumerate(zip(requests, view, strict=True)):
                for text in texts:
                    first.setdefault((text, request.hypothesis), i)
        classified = self._classifier.classify(list(first))
        labels = self._classifier.labels
        columns = [labels.supported] if labels.contradicted is None else [labels.supported, labels.contradicted]
        read = dict(zip(first, classified.probabilities[:, columns], strict=True))
        found = np.full((len(views), len(requests), 2), np.nan)
        for v, view in enumerate(views):
            for i, (request, texts) in enumerate(zip(requests, view, strict=True)):
                found[v, i, : len(columns)] = np.max([read[text, request.hypothesis] for text in texts], axis=0)
        tokens = np.zeros(len(requests), dtype=np.int64)
        np.add.at(tokens, list(first.values()), classified.tokens)
        return log_odds(found[:, :, 0].T), found[-1, :, 1], tokens

    def _verdict(self, key: str, p_supported: float, p_contradicted: float, tokens: int) -> Verdict:
        # The label follows from the rounded numbers, so the stored numbers explain it.
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


def _plain(request: Request) -> Request:
    return replace(request, premise=plain_figures(request.premise), hypothesis=plain_figures(request.hypothesis))


def surface(requests: Sequence[Request]) -> npt.NDArray[np.float64]:
    """Features of a plain comparison of each request, (requests, 5), in the order of `SURFACE`."""
    sides = {text: overlap.read(text) for r in requests for text in (r.premise, r.hypothesis)}
    rows = []
    for r in requests:
        shared = overlap.lexical(sides[r.premise], sides[r.hypothesis])
        figures = sum(1 for _ in missing_figures.missing(r.hypothesis, r.premise))
        rows.append([*(shared[name] for name in SURFACE[:-1]), min(figures, overlap.MOST_MISSING)])
    return np.array(rows, dtype=np.float64).reshape(len(requests), len(SURFACE))


def _windows(text: str, words: int) -> list[str]:
    return [text[a:b] for a, b in windows(text, words)]


def build(config: Config, where: str) -> Nli:
    """The judge. A relative model folder is relative to the config file `where`."""
    return Nli(config.model_copy(update={"classifier": config.classifier.relative_to(Path(where).parent)}))
