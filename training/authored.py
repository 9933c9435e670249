"""The authored documents: many pairs of each, so that neither shared words nor the claim alone predict the label.

A claim stands about as often beside evidence that entails it as beside evidence that does not: a supported claim loses
one of its sentences, a false one is given the sentence that would make it true. Left out: labeled sets of others
(`sources.py`) and edits of prose (`perturb.py`).
"""

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tasks.core import keys
from tasks.text import overlap
from tasks.text.nearest import nearest

Label = Literal["entailment", "neutral", "contradiction", "not_entailment"]
Form = Literal["sentences", "documents"]
UNCHANGED = {"whole", "core"}  # kinds of pairs whose premise is a document, or its deciding part, as it is
HELD_OUT = 10  # one document in so many is kept for measuring
PEOPLE = {"S": "supported", "P": "partially_supported", "U": "not_supported", "C": "contradicted"}
LABELS: dict[str, Label] = {"P": "neutral", "U": "neutral", "C": "contradiction"}
ENDED = re.compile(r"[.!?:;,…][\"'”’)\]]*$")  # a sentence; what does not end so is a heading, a row or a cut line
SHORTEST_SENTENCE = 6  # words; headings and menu debris are no claims


@dataclass(frozen=True, slots=True)
class Pair:
    """One training example.

    Attributes:
        label: `not_entailment` where the set does not separate neutral from contradiction.
        source: Which data it comes from.
        kind: How it was made.
        group: Pairs of one document share it: folds and held-out parts never cut through a group.
        needs: Sentences of the premise without which the label would be wrong, where these are known.
        twin: Name of the minimal pair of claims that it belongs to, else "": of its two members, one is entailed.
    """

    premise: str
    hypothesis: str
    label: Label
    source: str
    kind: str
    group: str
    needs: tuple[str, ...] = ()
    twin: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim on a document.

    Attributes:
        label: S supported, P partially, U unsupported, C contradicted.
        needs: Sentences that decide it; without any one of them a supported claim is supported no more.
        remedy: A sentence that makes a P or U claim supported when it is added, a C claim when it stands in place of
            `needs`; None where nobody wrote one.
        context: The question or the sentence before, where the claim is read with it.
        twin: Index of the claim that differs from it in one detail and in its label; None without one.
    """

    text: str
    label: str
    needs: tuple[int, ...]
    kind: str
    remedy: str | None = None
    context: str = ""
    twin: int | None = None

    @property
    def hypothesis(self) -> str:
        """The claim as a judge reads it."""
        return f"{self.context} {self.text}".strip()


@dataclass(frozen=True, slots=True)
class Document:
    """A document, sentence by sentence, with its claims. `group` is a hash of its text."""

    sentences: tuple[str, ...]
    claims: tuple[Claim, ...]
    source: str
    group: str

    @property
    def text(self) -> str:
        """The document as a page has it."""
        return joined(self.sentences)


def joined(sentences: Iterable[str]) -> str:
    """Sentences one after another; headings, rows of tables and cut sentences are lines."""
    return "".join(f"{s} " if ENDED.search(s) else f"{s}\n" for s in sentences).strip()


def read(folder: Path) -> list[Document]:
    """All documents below a folder, in the order of file names and lines."""
    return [_document(line, path) for path in sorted(folder.glob("*.jsonl")) for line in _lines(path)]


def held_out(document: Document) -> bool:
    """Whether a document is kept for measuring: decided by its text alone, so that new documents move none."""
    return int(document.group[:8], 16) % HELD_OUT == 0


def labeled(documents: Iterable[Document]) -> Iterator[dict[str, object]]:
    """The claims beside their whole documents, as `bench.accuracy.labeled` reads them; `pair` names claim and twin."""
    for document in documents:
        for i, claim in enumerate(document.claims):
            yield {
                "claim": claim.hypothesis,
                "chunks": [document.text],
                "label": PEOPLE[claim.label],
                "source": document.source,
                "kind": claim.kind,
                "pair": "" if claim.twin is None else f"{document.group}:{min(i, claim.twin)}",
            }


def pairs(documents: Sequence[Document], seed: int, form: Form) -> Iterator[Pair]:
    """Pairs of all documents, whole documents or single sentences as premises.

    A document's own pairs depend on the seed and on its neighbors alone.
    """
    for i, document in enumerate(documents):
        stranger = (
            documents[i - 1] if documents[i - 1].source == document.source else documents[(i + 1) % len(documents)]
        )
        maker = _Maker(document, stranger, seed)
        yield from maker.short() if form == "sentences" else maker.whole()


def shortened(pair: Pair) -> Pair:
    """The pair with few sentences of its premise: those that decide it, and of the others those nearest to the claim.

    As many whatever the label is, or the length of the premise would tell it.
    """
    return replace(pair, premise=nearest(pair.premise, pair.hypothesis, sure=pair.needs))


class _Maker:
    """Makes the pairs of one document; a class only for what all the makers share."""

    def __init__(self, document: Document, stranger: Document, seed: int) -> None:
        self.document, self.stranger, self.seed = document, stranger, seed
        self.rng = random.Random(f"{seed}:{document.group}")  # noqa: S311
        self.all = dict(enumerate(document.sentences))

    def short(self) -> Iterator[Pair]:
        """Each claim beside the few sentences that decide it, and beside the one that only looks as if it did."""
        for claim in self.document.claims:
            needed = " ".join(self.all[i] for i in claim.needs)
            alike = self.alike(claim)
            if claim.label == "S":
                yield self.pair("needed", needed, claim.hypothesis, "entailment")
                yield self.pair("alike", alike, claim.hypothesis, "neutral")
                if len(claim.needs) > 1:
                    part = " ".join(self.all[i] for i in self.rng.sample(claim.needs, len(claim.needs) - 1))
                    yield self.pair("needed_part", part, claim.hypothesis, "neutral")
            else:
                yield self.pair("needed", needed or alike, claim.hypothesis, LABELS[claim.label])
                remedy = claim.remedy or claim.text
                premise = remedy if claim.label == "C" else f"{needed or alike} {remedy}"
                yield self.pair("remedied", premise, claim.hypothesis, "entailment")
        for i in self.rng.sample(self.long(), min(2, len(self.long()))):
            beside = self.all[self.rng.choice([j for j in self.all if j != i])]
            yield self.pair(
                "verbatim",
                f"{self.all[i]} {beside}" if self.chance(0.5) else f"{beside} {self.all[i]}",
                self.all[i],
                "entailment",
            )
            yield self.pair("verbatim_gone", beside, self.all[i], "neutral")

    def alike(self, claim: Claim) -> str:
        """The sentence, of those that the claim doesn't need, with most of the claim's words."""
        words = overlap.read(claim.text).bag
        others = [i for i in self.all if i not in claim.needs]
        return self.all[max(others, key=lambda i: len(words & overlap.read(self.all[i]).bag))] if others else ""

    def long(self) -> list[int]:
        return [i for i, s in self.all.items() if len(s.split()) >= SHORTEST_SENTENCE]

    def whole(self) -> Iterator[Pair]:
        """Each claim beside its document, and beside the document without or with what decides it."""
        for n, claim in enumerate(self.document.claims):
            made = self.supported(claim) if claim.label == "S" else self.others(claim)
            for kind, premise, label in made:
                needs = claim.needs if kind in UNCHANGED else ()
                pair = self.pair(kind, premise, claim.hypothesis, label)
                named = kind == "whole" and claim.twin is not None
                twin = f"{self.seed}:{self.document.group}:{min(n, claim.twin or 0)}" if named else ""
                yield replace(pair, needs=tuple(self.all[i] for i in needs), twin=twin)
        for i in self.rng.sample(self.long(), min(2, len(self.long()))):
            yield self.pair("verbatim", self.context(self.all), self.all[i], "entailment")
            yield self.pair("verbatim_gone", self.context(self.without([i])), self.all[i], "neutral")

    def supported(self, claim: Claim) -> Iterator[tuple[str, str, Label]]:
        yield "whole", self.context(self.all), "entailment"
        if self.chance(0.4):
            extra = {i for i in self.all if self.chance(0.3)}
            yield "core", self.text({i: s for i, s in self.all.items() if i in extra or i in claim.needs}), "entailment"
        yield "one_gone", self.context(self.without([self.rng.choice(claim.needs)])), "neutral"
        if self.chance(0.3):
            few = [i for i in self.all if i not in claim.needs]
            kept = set(self.rng.sample(few, min(3, len(few)))) | set(claim.needs[1:])
            yield "few_without", self.text({i: s for i, s in self.all.items() if i in kept}), "neutral"
        twin = None if claim.twin is None else self.document.claims[claim.twin]
        if twin and twin.label == "C":
            yield "twin_put_in", self.remedied(twin, twin.text), "contradiction"
        if self.chance(0.15):
            yield "stranger", self.stranger.text, "neutral"

    def others(self, claim: Claim) -> Iterator[tuple[str, str, Label]]:
        yield "whole", self.context(self.all), LABELS[claim.label]
        if self.chance(0.25):
            yield "without", self.context(self.without(claim.needs)), "neutral"
        added = claim.remedy if claim.remedy and self.chance(0.75) else claim.text
        yield "remedied", self.remedied(claim, added), "entailment"
        if claim.remedy and self.chance(0.4):
            yield "put_in", self.remedied(claim, claim.text), "entailment"

    def remedied(self, claim: Claim, sentence: str) -> str:
        """The document with a sentence in place of what it contradicts, or added where it contradicts nothing."""
        if claim.label == "C":
            kept = {i: s for i, s in self.all.items() if i not in claim.needs[1:]}
            return self.context(kept | {claim.needs[0]: sentence})
        at = claim.needs[-1] if claim.needs else self.rng.randrange(len(self.all))
        return self.context(self.all | {at: f"{self.all[at]} {sentence}"})

    def without(self, gone: Sequence[int]) -> dict[int, str]:
        return {i: s for i, s in self.all.items() if i not in gone}

    def context(self, sentences: dict[int, str]) -> str:
        """The sentences, now and then with a stranger's document before or after them."""
        text = self.text(sentences)
        if self.chance(0.08):
            beside = self.stranger.text
            return f"{beside} {text}" if self.chance(0.5) else f"{text} {beside}"
        return text

    def text(self, sentences: dict[int, str]) -> str:
        return joined(sentences[i] for i in sorted(sentences))

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pair(self, kind: str, premise: str, hypothesis: str, label: Label) -> Pair:
        return Pair(premise, hypothesis, label, self.document.source, kind, self.document.group)


def _context(claim: dict[str, Any], claims: Sequence[dict[str, Any]]) -> str:
    """What a claim is read with: the sentence before, and the question of a "yes" or of one of two equal claims."""
    equal = sum(c["t"] == claim["t"] for c in claims) > 1
    question = claim.get("q", "") if claim["k"] == "yes_no" or equal else ""
    return f"{question} {claim.get('b', '')}".strip()


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _document(line: str, path: Path) -> Document:
    row = json.loads(line)
    claims = [
        Claim(c["t"], c["l"], tuple(c["s"]), c["k"], c.get("f"), _context(c, row["claims"]), c.get("w"))
        for c in row["claims"]
    ]
    source = next((name for name in ("natural", "twins") if path.stem.startswith(name)), "authored")
    return Document(tuple(row["doc"]), tuple(claims), source, keys.key(*row["doc"]))
