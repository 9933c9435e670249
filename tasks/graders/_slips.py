"""Slips: differences between a statement and its source that entailment models tend to overlook.

A slip is a figure, weekday or month that the source lacks, a negation that only one of them has, or the opposite of a
word in the source ("at least" for "at most"). Tuned to English; a source that is worded differently shows no slip. Left
out: all other errors, which the judge finds.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tasks import patterns
from tasks.patterns import Chunk, Claim
from tasks.text.words import NEGATION, Word, coverage, stem, stems, words

RULES = 1  # raised when the same statement and source give a different slip
FIGURES = ("ghost_number",)
SAME = 0.75  # share of a clause's content words that a clause of the source needs to be about the same thing
REACH = 3  # words after a negation that it applies to
FEWEST = 3  # content words that a clause needs before its negation is compared; shorter ones are no sentence

_CLAUSE = re.compile(
    r"[,;:]\s*(?:and|but|so|while|whereas|which|or)?\s+|[.!?]\s+|\s(?:and|but|while|whereas)\s|\s[–—]\s"
)
_PAIRS = (
    "least most", "minimum maximum", "before after", "more less", "more fewer", "earlier later", "earliest latest",
    "always never", "allowed forbidden", "permitted prohibited", "permitted forbidden", "allowed prohibited",
    "included excluded", "first last", "above below", "inside outside", "left right", "open closed", "higher lower",
    "highest lowest", "larger smaller", "largest smallest", "longer shorter", "longest shortest", "increase decrease",
    "rise fall", "rose fell", "north south", "east west", "northern southern", "eastern western", "morning evening",
    "morning afternoon", "weekdays weekends", "summer winter", "spring autumn", "upper lower", "warm cold",
    "hot cold", "cheaper dearer", "cheapest dearest", "older younger", "oldest youngest", "compulsory optional",
    "mandatory optional", "required optional", "odd even", "arrival departure", "begin end", "begins ends",
    "start end", "best worst", "strongest weakest", "stronger weaker", "faster slower", "import export",
    "buyer seller", "possible impossible", "male female", "adults children", "employer employee", "teachers pupils",
    "free charged", "public private",
)  # fmt: skip
_OPPOSITES: dict[str, set[str]] = {}
for _pair in _PAIRS:
    _one, _other = _pair.split()
    _OPPOSITES.setdefault(_one, set()).add(_other)
    _OPPOSITES.setdefault(_other, set()).add(_one)
_DAYS = re.compile(
    r"\b(mon|tues|wednes|thurs|fri|satur|sun)days?\b|"
    r"\b(January|February|March|April|June|July|August|September|October|November|December)\b",
    re.IGNORECASE,
)


class Slip(NamedTuple):
    """What is wrong with a statement, in a few words that quote nothing from it.

    Attributes:
        addressed: Whether the source states something else about the subject; if not, it does not mention it.
    """

    what: str
    addressed: bool


def slip(statement: str, sources: Sequence[str], question: str = "") -> Slip | None:
    """The first slip in a statement; None if there is none.

    Args:
        sources: Texts that must support the statement.
        question: Text that the statement may repeat without a source.
    """
    claim = Claim(statement, statement, 0, len(statement), label="unsupported")
    chunks = [Chunk(str(number), text) for number, text in enumerate([*sources, question])]
    if patterns.find(FIGURES, claim, chunks):
        return Slip("a figure that the sources lack", False)
    if _days(statement) - _days(" ".join([*sources, question])):
        return Slip("a day or month that is not in them", False)
    there = [clause for text in sources for clause in _clauses(text)]
    written = {word.text for text in sources for word in words(text)}
    for clause in _clauses(statement):
        own = stems(clause)
        same = [other for other in there if len(own) >= FEWEST and coverage(own, stems(other)) >= SAME]
        if same and all(_negated(clause, other) != _negated(other, clause) for other in same):
            return Slip("a negation that only one side has", True)
        if _opposed(clause, there, written):
            return Slip("the opposite of a word in them", True)
    return None


def _days(text: str) -> set[str]:
    return {match.group().casefold().rstrip("s") for match in _DAYS.finditer(text)}


def _clauses(text: str) -> list[list[Word]]:
    return [clause for part in _CLAUSE.split(text) if stems(clause := words(part))]


def _negated(clause: Sequence[Word], other: Sequence[Word]) -> bool:
    """Whether a clause negates a word that both share: closely before it, or at the clause's end."""
    shared = stems(clause) & stems(other)
    for at, word in enumerate(clause):
        if word.text in NEGATION or word.text.endswith(("n't", "n’t")):
            after = clause[at + 1 :]
            if not stems(after) or any(w.stem in shared for w in after[:REACH]):
                return True
    return False


def _opposed(clause: Sequence[Word], there: Sequence[Sequence[Word]], written: set[str]) -> bool:
    """Whether a source's clause states the same with the opposite of a word, and that word is nowhere in the source."""
    own_words = {word.text for word in clause}
    for word in (own_words & _OPPOSITES.keys()) - written:
        own = frozenset(s for s in stems(clause) if s != stem(word))
        same = [{w.text for w in other} for other in there if own and coverage(own, stems(other)) >= SAME]
        if not own_words & _OPPOSITES[word] and any(other & _OPPOSITES[word] for other in same):
            return True
    return False
