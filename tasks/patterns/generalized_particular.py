"""Generalized particular: the claim states a rule, but its source is about one instance, sample or time.

Method: docs/methods.md#failure-patterns.

Cue words and shared words find it, in claims that are not supported. Left out: rules without a cue.
"""

import re
from collections.abc import Iterator, Sequence

from tasks.patterns._base import Chunk, Claim, Found, Span
from tasks.text.sentences import Sentence
from tasks.text.words import coverage, stem, stems, words

RULES = 1  # raised when the same claim and chunks give a different finding

SHARED = 0.55  # share of the claim's content words that the source's sentence needs
FEWEST = 2  # minimum number of these words
NEAR = 0.12  # all sentences within this distance of the best share must be about one instance

_INSTANCE = (
    "study|trial|survey|experiment|analysis|review|pilot|test|case|patient|participant|volunteer|customer|user|client|"
    "site|school|hospital|clinic|city|town|village|region|country|company|firm|team|office|store|plant|farm|factory|"
    "family|household|class|sample|cohort|group|volunteers|instance|incident|occasion|example|project|laboratory|lab|"
    "university|museum|branch|department|reviewer|author|researcher|employee|worker|student|teacher|person|man|woman"
)
_YEAR = r"(?:1[5-9]|20)\d\d"
PARTICULAR = re.compile(
    rf"\b(?:one|another|single|recent|small)\s+(?:[\w-]+\s+){{0,3}}?(?:{_INSTANCE})\b|"
    rf"\b\d[\d,]*\s+(?:[\w-]+\s+){{0,2}}?(?:patients|participants|people|volunteers|adults|children|men|women|students|"
    rf"customers|users|respondents|mice|rats|firms|companies|schools|cases|employees|workers)\b|"
    rf"\bsample of\b|\bn\s?=\s?\d|"
    rf"\b(?:in|of|during|since|by)\s+(?:\w+\s+)?{_YEAR}\b|\b(?:last|this|that|one)\s+(?:year|month|week|season|summer|winter|"
    r"spring|autumn|night|day|time|quarter)\b|\b(?:some|several|a few|certain|many)\s+\w+|\bone of\b|\bsometimes\b|"
    r"\boccasionally\b|\bat times\b|\bonce\b|\bin some\b|\bfor (?:example|instance)\b|\bparticipants\b|\bpreliminary\b|"
    r"\bon (?:\d{1,2}\s)?(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|\bwas able to\b",
    re.IGNORECASE,
)
# In the past tense these describe one instance; in the present tense they state rules ("a user must …").
PERHAPS = re.compile(rf"\b(?:a|an|the|this|our)\s+(?:[\w-]+\s+){{0,3}}?(?:{_INSTANCE})\b", re.IGNORECASE)
# Words that limit a statement. A claim that drops them and says "all" or "never" turns the statement into a rule.
LIMIT = re.compile(
    r"\b(?:if|when|unless|until|only|both|except|(?:larg|old|long|small|few|great)er than|more than|less than|old|"
    r"that (?:user|person|file|case|customer|patient|group)|the \w+'s)\b",
    re.IGNORECASE,
)
# A claim with one of these is careful, or is about one instance itself.
CAREFUL = re.compile(
    rf"\b(?:may|might|can|could|suggests?|suggested|appears?|seems?|possibly|potentially|perhaps|some|sometimes|often|"
    rf"several|certain|a few|many|one|according to|for example|for instance|{_YEAR}|reported|found that)\b|"
    rf"\b(?:a|an|one|this)\s+(?:[\w-]+\s+){{0,3}}?(?:{_INSTANCE})\b",
    re.IGNORECASE,
)
UNIVERSAL = re.compile(
    r"(?<!\bnot )(?<!\bat )(?<!\bif )\b(?:all|always|every|everyone|everybody|everywhere|never|no one|nobody|any|"
    r"anyone|each|generally|in general|typically|universally|invariably|as a rule|usually|normally|commonly|most|"
    r"routinely|regularly|consistently|whenever|in every case|without exception|by default|anything|everything|"
    r"guaranteed|guarantees)\b",
    re.IGNORECASE,
)
PAST = re.compile(r"\b(?:was|were|had|did|been)\b|\b\w{2,}ed\b", re.IGNORECASE)
# A bare plural at the beginning, followed by a verb: not "Enterprise costs €9".
OPENING = re.compile(r"^\W*(?:[A-Za-z-]+\s+){0,2}?(?P<plural>[A-Za-z-]{3,}[^s\W]s)\s(?!(?:the|a|an|to|of|in)\b|\W|\d)")
DETERMINED = re.compile(r"^\W*(?:the|these|those|this|that|its|their|his|her|our|your|two|three|four|five|\d+)\b", re.I)
SINGULAR = frozenset({"a", "an", "one", "the", "this", "our"})
REACH = 3  # maximum words between such a word and its noun
AUXILIARIES = frozenset({"was", "were", "had", "did"})
PARTICIPLE_AFTER = frozenset(
    {"a", "an", "the", "is", "are", "be", "been", "being", "to", "of", "in", "and", "or", "with", "by", "as"}
)


def detect(claim: Claim, chunks: Sequence[Chunk]) -> Found | None:
    """The words that make the claim a rule, and the sentence about one instance."""
    if not claim.refuted:
        return None
    cue = UNIVERSAL.search(claim.text)
    if cue is None and CAREFUL.search(claim.text):
        return None
    claim_words = stems([w for w in words(claim.text) if cue is None or not cue.start() <= w.start < cue.end()])
    near = [
        (coverage(claim_words, s.stems), chunk, s)
        for chunk in chunks
        if coverage(claim_words, chunk.stems) >= SHARED
        for s in chunk.sentences
    ]
    best = max((share for share, _, _ in near), default=0.0)
    if best < SHARED or best * len(claim_words) < FEWEST:
        return None
    closest = [(chunk, s) for share, chunk, s in near if share >= max(SHARED, best - NEAR)]
    if not all(_is_instance(s, claim.text) for _, s in closest):
        return None
    chunk, sentence = next((chunk, s) for chunk, s in closest if coverage(claim_words, s.stems) == best)
    rule = cue.span() if cue else next(_generic(claim.text, sentence), None)
    return Found((claim.where(*rule),), (chunk.place(sentence.start, sentence.end),)) if rule else None


def _is_instance(sentence: Sentence, claim: str) -> bool:
    """Whether a sentence, unlike the claim, is about one instance."""
    past = _is_past(sentence)
    rule = UNIVERSAL.search(sentence.text)
    if rule and (not past or rule.group().casefold() in claim.casefold()):
        return False  # the sentence states a rule itself
    cues = [PARTICULAR, *([PERHAPS] if past else []), *([LIMIT] if UNIVERSAL.search(claim) else [])]
    if any(cue.group().casefold() not in claim.casefold() for c in cues for cue in c.finditer(sentence.text)):
        return True
    opening = _plural(claim) if past else None
    if opening is None:
        return False
    plural = opening["plural"].casefold()
    return any(
        word.stem == stem(plural)
        and word.text != plural
        and any(w.text in SINGULAR for w in sentence.words[max(0, i - REACH) : i])
        for i, word in enumerate(sentence.words)
    )


def _is_past(sentence: Sentence) -> bool:
    """Whether a sentence has a verb in the past tense, not just a participle."""
    return any(
        word.text in AUXILIARIES or (word.past and (i == 0 or sentence.words[i - 1].text not in PARTICIPLE_AFTER))
        for i, word in enumerate(sentence.words)
    )


def _plural(claim: str) -> re.Match[str] | None:
    """The bare plural at the beginning of a claim: "Hospitals", "Small farms"."""
    return None if DETERMINED.match(claim) else OPENING.match(claim)


def _generic(claim: str, sentence: Sentence) -> Iterator[Span]:
    """Words that make a rule: a bare plural in the present tense, or a verb that the source has in the past."""
    if not PAST.search(claim) and (found := _plural(claim)):
        yield found.span("plural")
    past = {w.stem for w in sentence.words if w.past}
    for word in words(claim):
        if word.stem in past and not word.past and not word.text.endswith("ing"):
            yield word.start, word.end
