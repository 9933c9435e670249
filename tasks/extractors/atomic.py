"""Extractor `atomic`: a model breaks sentences into self-contained facts (docs/methods.md#claims).

A fact has its sentence's span and references. A sentence that the model does not break (unreadable reply, no fact, too
long) stays one claim with its original text, so nothing is lost.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal

from tasks.core import keys
from tasks.core.types import OUTAGE, Answer, ClaimDraft, Extraction, Extractor
from tasks.extractors import Writers
from tasks.extractors.cut.citations import CutSettings, Finder
from tasks.extractors.segments import RULES as CUT_RULES
from tasks.extractors.segments import Segments
from tasks.judges.generate import Writer, Written

RULES = 2  # part of the version, with the rules of `sentences`
# Characters of the answer shown around a sentence, and the steps by which they move along a longer answer: sentences in
# one step show the same text, which the model reads once.
AROUND = 8_000
STEP = 2_000
AT_ONCE = 2_048  # sentences; a model's replies take far more memory than the facts kept
GIVES = ("question", "answer", "sentence")


class Config(CutSettings):
    """Settings of the extractor `atomic`.

    Attributes:
        writer: Path of the config (`kind: generate`) of the model that writes a sentence's facts. The inputs of its
            prompt are `question`, `answer` and `sentence`.
    """

    kind: Literal["atomic"] = "atomic"
    writer: Path


@dataclass(frozen=True, slots=True)
class Atomic:
    """The extractor; see `tasks.core.types.Extractor`."""

    modelless: Segments
    writer: Writer
    version: str

    @property
    def engine(self) -> str:
        """The engine of the writer's model."""
        return self.writer.engine

    @property
    def gpus(self) -> int:
        """GPUs that the writer's model uses on this machine."""
        return self.writer.gpus

    def extract_many(self, answers: Sequence[Answer]) -> list[Extraction]:
        """The facts of each answer, in order; the model reads `AT_ONCE` sentences at a time.

        Raises:
            EngineError: The model can't be run.
        """
        cut = [self.modelless.extract(a) for a in answers]
        inputs = [
            self._inputs(a, claim)
            for a, found in zip(answers, cut, strict=True)
            for claim in found.claims
            if claim.kind == "claim"
        ]
        written = chain.from_iterable(
            self.writer.write(inputs[start : start + AT_ONCE]) for start in range(0, len(inputs), AT_ONCE)
        )
        return [_extraction(found, written) for found in cut]

    def close(self) -> None:
        """Free the model."""
        self.writer.close()

    def _inputs(self, answer: Answer, claim: ClaimDraft) -> dict[str, str]:
        start, end = _around(claim.start, len(answer.text))
        return {"question": answer.question, "answer": answer.text[start:end], "sentence": claim.hypothesis}


def build(config: Config, writers: Writers) -> Extractor:
    """The extractor for these settings.

    Raises:
        ConfigError: The writer's file or one of its keys is wrong, or its prompt needs other inputs.
        EngineError: The files of the writer's model are missing.
    """
    writer = writers.open(config.writer, GIVES)
    settings = config.model_dump(exclude={"writer"})
    version = keys.version({"rules": [RULES, *CUT_RULES], "writer": writer.version, **settings})
    return Atomic(Segments(Finder(config), version, config.language, by_sentence=True), writer, version)


def _around(start: int, length: int) -> tuple[int, int]:
    """The range of the answer shown around a sentence at `start`, with more text before it than after it."""
    begin = max(0, min(start // STEP * STEP - AROUND // 2, length - AROUND))
    return begin, begin + AROUND


def _extraction(cut: Extraction, written: Iterator[Written]) -> Extraction:
    """Turn the next replies into the facts of one answer's sentences."""
    facts: list[ClaimDraft] = []
    replies: list[Written] = []
    unbroken = 0
    for claim in cut.claims:
        if claim.kind != "claim":
            facts.append(claim)
            continue
        replies.append(found := next(written))
        texts = list(dict.fromkeys(text for text in found.texts if any(c.isalnum() for c in text)))
        facts += [replace(claim, context="", hypothesis=t, text=t) for t in texts]
        if not texts:
            facts.append(claim)
            unbroken += found.failure != OUTAGE
    return replace(
        cut,
        claims=facts,
        unbroken=unbroken,
        outage=any(w.failure == OUTAGE for w in replies),
        tokens_in=sum(w.tokens_in for w in replies),
        tokens_cached=sum(w.tokens_cached for w in replies),
        tokens_out=sum(w.tokens_out for w in replies),
    )
