"""Reads an answer: sorts its sentences into statements that need support, sentences that decline, and the rest.

Introductions ("Two things matter:"), courtesies and a bare "Yes." state nothing that needs a source.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.core.grades import Statement
from tasks.text import declines

RULES = 2  # raised when the same answer is read differently

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_EMPTY = frozenset(
    """
    yes no yeah nope sure certainly indeed correct right exactly absolutely definitely ok okay well hello hi dear
    thanks thank you of course that this it is so was not a an the answer short in brief note sorry i'm i am
    unfortunately afraid please but and however summary conclusion overall here there
    """.split()  # noqa: SIM905 - easier to read
)
_COURTESY = re.compile(
    r"^\W*(?:i\s+hope\b|let\s+me\s+know\b|feel\s+free\b|do\s+not\s+hesitate\b|don['’]t\s+hesitate\b|"
    r"(?:thanks|thank\s+you)\b|happy\s+to\b|i(?:['’]d|\s+would)\s+be\s+happy\b|"
    r"if\s+you\s+(?:have|need|can|could|provide|share|give|tell|want|would|wish|like)\b[^.]*\b(?:let\s+me|"
    r"ask|i\s+can|i\s+could|i['’]ll|i\s+will|tell\s+me|feel\s+free|please)\b|"
    r"(?:please\s+|kindly\s+)?(?:provide|share|send|upload|give)\s+(?:me\s+)?(?:more|further|additional|"
    r"another|other|the)\b)",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"^\W*(?:(?:so|therefore|instead|otherwise|for\s+(?:that|this|more\s+\w+|further\s+\w+|details|certainty))\W+)*"
    r"(?:please|i\s+(?:would\s+|['’]d\s+)?(?:recommend|suggest|advise)|(?:it|you)\s+(?:may|might|would|"
    r"should|could|can|is)\b[^.]*?\b)"
    r"[^.]{0,40}?\b(?:contact|consult|ask|check|refer|visit|call|enquir|inquir|get\s+in\s+touch|turn)\w*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Assertion:
    """A statement that needs support: its number in the answer (from 1), its text, and its citations."""

    number: int
    text: str
    cited: tuple[int, ...]
    dangling: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer after reading.

    Attributes:
        assertions: Statements that need support, in order.
        declined: Sentences that decline to answer, in order and unchanged.
        before: Number of `assertions` before the first sentence of `declined`, or before its declining part.
    """

    assertions: tuple[Assertion, ...]
    declined: tuple[str, ...]
    before: int


def read(statements: Sequence[Statement]) -> Reading:
    """Sort the statements of an answer."""
    assertions: list[Assertion] = []
    declined: list[str] = []
    before = 0
    for number, statement in enumerate(statements, start=1):
        text = statement.text
        found = declines.declined(text)
        first = found is not None and not declined
        if first:
            before = len(assertions)
        if found is not None:
            declined.append(text)
            text = found.rest
        if not _empty(text, statement):
            assertions.append(Assertion(number, declines.unattributed(text), statement.cited, statement.dangling))
            if first and found is not None and found.leads and statement.cited:
                before = len(assertions)  # a leading part without citations may only repeat the question
    return Reading(tuple(assertions), tuple(declined), before)


def _empty(text: str, statement: Statement) -> bool:
    """Whether a text states nothing that needs a source."""
    stripped = text.rstrip(" *_")
    if stripped.endswith((":", "?")) or {w.casefold() for w in _WORD.findall(text)} <= _EMPTY:
        return True
    uncited = not statement.cited and not statement.dangling
    return uncited and bool(_COURTESY.search(text) or _ADVICE.search(text))
