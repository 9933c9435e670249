"""The grade completeness: how much of the available answer is in an answer, with or without a reference answer.

Left out: whether the content of the answer is right.
"""

import math
import re
from collections.abc import Mapping, Sequence

from tasks import extractors
from tasks.core.config import Settings, Share
from tasks.core.grades import Grade, Statement
from tasks.core.types import Answer, Verdict
from tasks.graders import _reading, _support
from tasks.graders._likeness import Likeness, aspects
from tasks.graders._reading import Assertion
from tasks.graders._support import Check
from tasks.text.words import coverage, stems_of

RULES = 1  # raised when the same measures give a different grade
ECHO = 0.9  # share of the best likeness to the whole question from which a statement answers it, even a short one
STATED = 0.7  # share of the words in a part of a reference from which the answer states that part
TELLING = 2  # content words, besides those of the question, that a sentence needs: a heading only repeats the question
FAINT = 0.2  # if no sentence is more like a part of the question than this, the part counts as answered
_PARTS = re.compile(r"\s*;\s+")
# Reference answers decline in shorter forms than the rules for answers accept.
_SILENT = re.compile(
    r"\b(?:is|are|was|were)(?:\s+not|n['’]t)\s+(?:given|named|known|said|stated|mentioned)\W*$", re.IGNORECASE
)
_NO_ALIGNMENT = _support.Support(contradicted=None)


class Completeness(Settings):
    """When the answer and the passages count as answering the question, if there is no reference answer.

    Attributes:
        aspect: A statement answers a part of the question if its likeness to that part is at least this share of the
            best sentence's likeness.
        covered: An answer also answers a part if it has this share of that best sentence's words.
        touched: If an answer has a smaller share of the nearest passage's words, most of what was asked is missing.
        answerable: The passages hold the answer, although the answer declines, from this value on. It is compared with
            the mean of the best likeness and the share of the question's words that one passage has.
    """

    aspect: Share = 0.5
    covered: Share = 0.5
    touched: Share = 0.25
    answerable: Share = 0.8


def of_refusal(likeness: Likeness, settings: Completeness) -> Grade:
    """1 if the answer declines although the passages hold the answer, otherwise N/A."""
    sure = (likeness.best + likeness.question_coverage()) / 2
    why = f"match of question and passages: {sure:.2f}"
    return Grade("scored", 1, explanation=why) if sure >= settings.answerable else Grade("na", explanation=why)


def of_answer(likeness: Likeness, relevant: bool, settings: Completeness) -> Grade:
    """1 to 5, by the answered parts of the question and the covered share of the nearest passage."""
    if not relevant:
        return Grade("scored", 1, explanation="nothing in the answer is relevant to the question")
    parts = aspects(likeness.question)
    missed = sum(not _answers(likeness, part, settings) for part in parts)
    touched = likeness.touched()
    echoed = max(likeness.statements, default=0.0) >= ECHO * likeness.best
    value = 5 if not missed else min(4, 1 + math.floor(4 * (1 - missed / len(parts))))
    if touched < settings.touched and not echoed:
        value = min(value, 2)
    why = f"{len(parts) - missed} of {len(parts)} parts of the question answered, {touched:.2f} of the passage covered"
    return Grade("scored", value, explanation=why)


def _answers(likeness: Likeness, part: str, settings: Completeness) -> bool:
    """Whether a statement is nearly as like a part of the question as the best sentence, or the answer covers it."""
    own_stems = stems_of(part)
    telling = [s for of_one in likeness.sentences for s in of_one if len(stems_of(s) - own_stems) >= TELLING]
    near, sentence = max(((likeness.of(part, s), s) for s in telling), default=(0.0, ""))
    own = max((likeness.of(part, text) for text in likeness.assertions), default=0.0)
    if near < FAINT or own >= settings.aspect * near:
        return True
    return coverage(stems_of(sentence) - own_stems, likeness.stems) >= settings.covered


def of_reference(reference: str, assertions: Sequence[Assertion]) -> tuple[Check, ...]:
    """Checks for a judge: whether the answer states each part of a reference. Empty if the reference declines."""
    cutter = extractors.load({"kind": "sentences"}, "reference")
    (cut,) = cutter.extract_many([Answer("", reference)])
    texts = [c.hypothesis for c in cut.claims if c.kind in {"claim", "refusal"}]
    reading = _reading.read([Statement(part) for text in texts for part in _PARTS.split(text)])
    if (reading.declined and not reading.before) or (texts and _SILENT.search(texts[0])):
        return ()
    answer = " ".join(f"{one.text.rstrip('.')}." for one in assertions)
    return tuple(_support.check(part, [answer], _NO_ALIGNMENT, [1]) for part in reading.assertions)


def by_reference(
    parts: Sequence[Check], declines: bool, stems: frozenset[str], verdicts: Mapping[str, Verdict]
) -> Grade:
    """1 to 5, by the parts of a reference answer that the answer states; N/A if the reference declines."""
    if not parts:
        return Grade("na", explanation="the reference has no answer")
    if declines:
        return Grade("scored", 1, explanation="the answer declines and the reference does not")
    read = [verdicts[part.cited[0].key] for part in parts]
    failures = [v.failure for v in read if v.failure is not None]
    if failures:
        return Grade("failed", failure=failures[0])
    shares = [
        1.0 if v.label == "supported" else min(1.0, coverage(stems_of(part.assertion.text), stems) / STATED)
        for part, v in zip(parts, read, strict=True)
    ]
    share = sum(shares) / len(shares)
    return Grade("scored", 1 + round(4 * share), explanation=f"{share:.2f} of the reference is in the answer")
