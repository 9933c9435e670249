"""Sentences of real prose as claims, whole, shortened or with one thing changed, beside the prose they come from.

A minor part of the mixture: a model learns such edits quickly and they carry over to people's errors little. What
they do keep alive is that in natural text shared words *are* evidence. Left out: anything that needs a parser.
"""

import random
import re
from collections.abc import Iterator, Sequence

import sentencex

from tasks.core import keys
from tasks.text import overlap
from training.authored import Claim, Document, Label, Pair, joined

SOURCE = "perturbed"
FEWEST, MOST = 8, 45  # words of a sentence that can stand as a claim
NUMBER = re.compile(r"(?<![\w.,-])\d{1,3}(?:,\d{3})+(?![\w,-])|(?<![\w.,-])\d+(?:\.\d+)?(?![\w,-]|\.\d)")
VERB = re.compile(r"\b(is|are|was|were|has|have|had|can|will|would|must)\b(?! not| never| ?n['’]t|['’]t)")
ASIDE = re.compile(r"\s*\([^()]{3,80}\)|, (?:which|who|where) [^,.;]{5,80}(?:,|(?=[.;]))")
OPENING = re.compile(r"^(?:In|On|At|After|Before|During|Since|According to|By|For) [^,.]{3,50}, (?=\w)")
NAME = re.compile(r"(?<!^)(?<![.!?] )\b[A-Z][a-z]+(?: [A-Z][a-z]+)+\b")


def pairs(premises: Sequence[str], seed: int, per_premise: int = 2) -> Iterator[Pair]:
    """Pairs from prose, entailed and not about as often; premises of fewer than three sentences give none."""
    for premise in premises:
        group = keys.key(premise)
        rng = random.Random(f"{seed}:{group}")  # noqa: S311
        sentences = [s.strip() for s in sentencex.segment("en", premise) if s.strip()]
        usable = [i for i, s in enumerate(sentences) if _usable(s)]
        if len(sentences) < 3 or not usable:
            continue
        for i in rng.sample(usable, min(per_premise, len(usable))):
            rest = " ".join(s for j, s in enumerate(sentences) if j != i)
            claim = shortened(sentences[i], rng)
            yield Pair(premise, claim, "entailment", SOURCE, "shortened", group)
            if edited := changed(sentences[i], premise, rng):
                claim, label, kind = edited
                yield Pair(premise, claim, label, SOURCE, kind, group)
            else:
                yield Pair(rest, claim, "not_entailment", SOURCE, "gone", group)


def near_misses(documents: Sequence[Document], seed: int, share: float) -> Iterator[Pair]:
    """Pairs whose premise has nearly the claim's words, and one of them wrong: what shared words alone get wrong.

    A claim that is false of its document stands beside the document with the claim put in, one thing changed; a
    supported claim, and a sentence of the document, beside the document, one thing of the claim changed.

    Args:
        share: Of the claims that get one.
    """
    for document in documents:
        rng = random.Random(f"{seed}:near:{document.group}")  # noqa: S311
        text = document.text
        own = [Claim(s, "S", (i,), "verbatim", None) for i, s in enumerate(document.sentences) if _usable(s)]
        for claim in [*document.claims, *rng.sample(own, min(2, len(own)))]:
            edited = changed(claim.text, text, rng)
            if edited is None or rng.random() >= share:
                continue
            words, label, kind = edited
            premise, hypothesis = (text, words) if claim.label == "S" else (_put_in(document, claim, words), claim.text)
            yield Pair(premise, hypothesis, label, document.source, f"near_{kind}", document.group)


def _put_in(document: Document, claim: Claim, sentence: str) -> str:
    """The document with a sentence in place of what the claim contradicts, or after what it builds on."""
    sentences = dict(enumerate(document.sentences))
    if claim.label == "C":
        sentences = {i: s for i, s in sentences.items() if i not in claim.needs[1:]} | {claim.needs[0]: sentence}
    else:
        at = claim.needs[-1] if claim.needs else 0
        sentences[at] = f"{sentences[at]} {sentence}"
    return joined(sentences[i] for i in sorted(sentences))


def _usable(sentence: str) -> bool:
    return FEWEST <= len(sentence.split()) <= MOST and sentence[0].isupper()


def shortened(sentence: str, rng: random.Random) -> str:
    """The sentence, in half of the cases without its asides or its opening phrase."""
    if rng.random() < 0.5:
        return sentence
    short = ASIDE.sub("", sentence)
    if opened := OPENING.match(short):
        short = short[opened.end()].upper() + short[opened.end() + 1 :]
    return short


def changed(sentence: str, premise: str, rng: random.Random) -> tuple[str, Label, str] | None:
    """One number, name or negation of the sentence changed; None where nothing can be."""
    makers = [_number, _name, _negation]
    rng.shuffle(makers)
    return next((made for maker in makers if (made := maker(sentence, premise, rng))), None)


def _number(sentence: str, premise: str, rng: random.Random) -> tuple[str, Label, str] | None:
    found = list(NUMBER.finditer(sentence))
    if not found:
        return None
    at = rng.choice(found)
    others = {m.group() for m in NUMBER.finditer(premise)} - {at.group()}
    like = sorted(o for o in others if len(o) == len(at.group()))
    value = at.group().replace(",", "")
    moved = (
        f"{float(value) * rng.choice([0.5, 0.8, 1.2, 2, 3]):.1f}"
        if "." in value
        else str(int(value) + rng.randint(1, 9))
    )
    new = rng.choice(like) if like and rng.random() < 0.5 else moved
    if overlap.numbers(new) == overlap.numbers(at.group()):
        return None
    return sentence[: at.start()] + new + sentence[at.end() :], "not_entailment", "number"


def _name(sentence: str, premise: str, rng: random.Random) -> tuple[str, Label, str] | None:
    inside = list(NAME.finditer(sentence))
    others = sorted({m.group() for m in NAME.finditer(premise)} - {m.group() for m in inside})
    if not inside or not others:
        return None
    at = rng.choice(inside)
    return sentence[: at.start()] + rng.choice(others) + sentence[at.end() :], "not_entailment", "name"


def _negation(sentence: str, _premise: str, rng: random.Random) -> tuple[str, Label, str] | None:
    found = list(VERB.finditer(sentence))
    if not found:
        return None
    at = rng.choice(found)
    return sentence[: at.end()] + " not" + sentence[at.end() :], "contradiction", "negation"
