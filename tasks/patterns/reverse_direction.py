"""Reverse direction: the claim says "Y reduces X", the source "X reduces Y" (docs/methods.md#failure-patterns).

Claim and source have the same relation, with the same words on opposite sides, and the claim is not supported. A
passive and an opposite relation are taken into account: "Y is reduced by X" is no reversal, and neither is "Y follows
X" for "X precedes Y". Left out: relations that are nouns ("the cause of"), and paraphrased sides.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tasks.patterns._base import Chunk, Claim, Found
from tasks.text.words import NEGATION, Word, coverage, stem, stems, words

RULES = 1  # raised when the same claim and chunks give a different finding

SHARED = 0.6  # share of the claim's content words that the source's sentence needs
SIDE = 0.5  # share of the words found on one side of the claim only that must be on the other side of the source
SWAPPED = 0.3  # share of a side's words that must have moved to the other side
# Relations with a direction, by meaning. Those after "|" have their sides in reverse order.
RELATIONS = (
    "reduce lower decrease cut lessen diminish weaken suppress inhibit limit curb slow shrink",
    "increase raise boost strengthen enhance improve promote stimulate accelerate",
    "cause trigger produce create induce generate drive bring prompt spark provoke lead result | stem arise",
    "prevent block stop avoid",
    "precede predate | follow succeed",
    "exceed outperform beat surpass outnumber outweigh overtake outsell defeat outrank top",
    "replace supersede displace supplant",
    "acquire buy purchase absorb own control",
    "sell supply provide give lend donate transfer pay send deliver ship export | receive borrow import",
    "depend rely require need hinge",
    "affect influence determine shape predict govern",
    "contain include comprise hold | belong",
    "sue accuse criticise criticize blame fine warn",
    "attack invade conquer occupy",
    "support fund finance sponsor back",
    "lead manage head supervise report",
    "protect shield guard",
    "convert turn transform translate",
    "teach train mentor advise | learn",
    "call contact notify inform invite",
    "attract pull draw",
    "override overrule overwrite shadow",
)
COMPARATIVE = re.compile(r"^(?:\w{3,}er|better|worse)$")
LESSER = frozenset({
    "smaller", "lower", "fewer", "less", "cheaper", "shorter", "lighter", "slower", "weaker", "younger", "worse",
    "narrower",
})  # fmt: skip
PASSIVE = frozenset({"is", "are", "was", "were", "be", "been", "being", "get", "gets", "got"})
_FAMILY = {
    stem(verb): (number, side)
    for number, group in reversed(list(enumerate(RELATIONS)))
    for side, verbs in enumerate(group.split("|"))
    for verb in verbs.split()
}
# Each pair is a relation and its opposite.
PAIRS = (("before", "after"), ("above", "below"), ("north", "south"), ("east", "west"))
_ORDER = {word: (pair[0], side) for pair in PAIRS for side, word in enumerate(pair)}
# "If A, B" and "B because A": a condition or a cause, and its result.
CONDITION_FIRST = re.compile(r"^\W*(?:if|when|whenever|once|because|as soon as)\b(?P<a>[^,]+),(?P<b>.+)$", re.I | re.S)
CONDITION_LAST = re.compile(r"^(?P<b>.+?),?\s(?:if|when|whenever|once|because|as soon as)\s(?P<a>.+)$", re.I | re.S)
CLAUSE = frozenset({"which", "that", "who", "while", "whereas", "but"})


@dataclass(frozen=True, slots=True)
class _Relation:
    """A relation: its kind, what acts, and what is acted on."""

    family: object
    agent: frozenset[str]
    patient: frozenset[str]
    negated: bool
    verb: Word


def detect(claim: Claim, chunks: Sequence[Chunk]) -> Found | None:
    """The word that sets the direction, and the sentence with the opposite direction."""
    if claim.label not in ("unsupported", "contradicted"):
        return None
    claim_words = words(claim.text)
    relations = list(_relations(claim.text, claim_words))
    if not relations:
        return None
    whole = stems(claim_words)
    for chunk in (c for c in chunks if coverage(whole, c.stems) >= SHARED):
        for sentence in chunk.sentences:
            if coverage(whole, sentence.stems) < SHARED:
                continue
            there = list(_relations(sentence.text, sentence.words))
            if any(_same(one, other) for one in relations for other in there):
                continue
            for one in relations:
                if any(_reversed(one, other) for other in there):
                    return Found(
                        (claim.where(one.verb.start, one.verb.end),), (chunk.place(sentence.start, sentence.end),)
                    )
    return None


def _reversed(one: _Relation, other: _Relation) -> bool:
    """Whether the words that differ between the claim's sides are on the opposite sides in the source."""
    if one.family != other.family or one.negated != other.negated:
        return False
    agent, patient = one.agent - other.agent, one.patient - other.patient  # drops what stays in place: time, location
    swapped = min(coverage(one.agent, other.patient - other.agent), coverage(one.patient, other.agent - other.patient))
    return min(coverage(agent, other.patient), coverage(patient, other.agent)) >= SIDE and swapped >= SWAPPED


def _same(one: _Relation, other: _Relation) -> bool:
    """Whether a source has the relation in the claim's direction."""
    return (
        one.family == other.family
        and min(coverage(one.agent - other.patient, other.agent), coverage(one.patient - other.agent, other.patient))
        >= SIDE
    )


def _relations(text: str, some: Sequence[Word]) -> Iterator[_Relation]:
    """Every relation of a sentence, with the content words before and after it as its sides; then its condition."""
    for i, word in enumerate(some):
        family, turned = _relation(some, i)
        if family is None:
            continue
        left, right = stems(_until_clause(some[:i], -1)), stems(_until_clause(some[i + 1 :], 1))
        left, right = left - {word.stem}, right - {word.stem}
        if left and right:
            agent, patient = (right, left) if turned else (left, right)
            negated = any(w.text in NEGATION or w.text.endswith(("n't", "n’t")) for w in some[max(0, i - 4) : i])
            yield _Relation(family, agent, patient, negated, word)
    if split := CONDITION_FIRST.match(text) or CONDITION_LAST.match(text):
        agent, patient = stems(words(split["a"])), stems(words(split["b"]))
        if agent and patient:
            yield _Relation("condition", agent, patient, False, some[0])


def _relation(some: Sequence[Word], i: int) -> tuple[object, bool]:
    """The relation that a word names (None if it names none), and whether its sides are in reverse order."""
    word = some[i]
    before, behind = some[max(0, i - 3) : i], some[i + 1 : i + 8]
    if word.text in _ORDER:
        return _ORDER[word.text][0], bool(_ORDER[word.text][1])
    if COMPARATIVE.match(word.text) and any(w.text == "than" for w in behind):
        return "than", word.text in LESSER
    if word.text in ("more", "less", "fewer") and any(w.text == "than" for w in behind):
        return "than", word.text != "more"
    found = _FAMILY.get(word.stem)
    if found is None or (before and before[-1].text in ("a", "an", "the", "this", "its", "their", "of")):
        return None, False  # a noun
    by = any(w.text == "by" for w in behind[:3])
    passive = by and (any(w.text in PASSIVE for w in before) or word.text.endswith("ed"))
    origin = word.stem in ("result", "com") and any(w.text == "from" for w in behind[:2])
    return found[0], bool(found[1]) != (passive or origin)


def _until_clause(some: Sequence[Word], step: int) -> list[Word]:
    """The words next to a relation, up to the next clause with a word of content before it."""
    kept: list[Word] = []
    for word in some[::step]:
        if word.text in CLAUSE and stems(kept):
            break
        kept.append(word)
    return kept
