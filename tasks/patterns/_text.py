"""Words and sentences with their places: what detectors compare. Tuned to English.

Left out: scripts without spaces between words. A run of them is one word, so that detectors that compare words find
nothing there, rather than something wrong.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

WORD = re.compile(r"[^\W_]+(?:['’](?:s|t|re|ve|ll|d|m)\b)?")
# A sentence ends before white space and a capital, a digit, a quotation mark or a bullet, and at every line's end.
END = re.compile(r"(?<=[.!?;])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[A-Z0-9•*-])|\s*\n\s*|\s+\|\s+")
SUFFIXES = ("ingly", "edly", "ing", "ies", "ied", "ed", "es", "ly", "s")
SHORTEST_STEM = 3
# Past forms that no rule leads back to their verb.
IRREGULAR = {
    past: verb
    for verb, pasts in {
        "arise": "arose arisen", "beat": "beaten", "become": "became", "begin": "began begun", "break": "broke broken",
        "bring": "brought", "build": "built", "buy": "bought", "catch": "caught", "choose": "chose chosen",
        "come": "came", "draw": "drew drawn", "drive": "drove driven", "eat": "ate eaten", "fall": "fell fallen",
        "feel": "felt", "find": "found", "fly": "flew flown", "forget": "forgot forgotten", "freeze": "froze frozen",
        "get": "got gotten", "give": "gave given", "go": "went gone", "grow": "grew grown", "hold": "held",
        "keep": "kept", "know": "knew known", "lead": "led", "learn": "learnt", "leave": "left", "lend": "lent",
        "lose": "lost", "make": "made", "mean": "meant", "meet": "met", "outsell": "outsold",
        "override": "overrode overridden", "overtake": "overtook overtaken", "overwrite": "overwrote overwritten",
        "pay": "paid", "rise": "rose risen", "run": "ran", "say": "said", "see": "saw seen", "sell": "sold",
        "send": "sent", "show": "shown", "shrink": "shrank shrunk", "sleep": "slept", "speak": "spoke spoken",
        "spend": "spent", "stand": "stood", "take": "took taken", "teach": "taught", "tell": "told",
        "think": "thought", "win": "won", "write": "wrote written",
    }.items()
    for past in pasts.split()
}  # fmt: skip
NEGATION = frozenset({"not", "no", "never", "without", "nor", "cannot", "neither"})


@dataclass(frozen=True, slots=True)
class Word:
    """One word: as written, lower-cased, its stem, and its place."""

    text: str
    stem: str
    start: int
    end: int

    @property
    def past(self) -> bool:
        """Whether it looks like the past of a verb."""
        return self.text.endswith("ed") or self.text in IRREGULAR

    @property
    def content(self) -> bool:
        """Whether it carries meaning by itself."""
        return self.text not in ENGLISH_STOP_WORDS and (len(self.text) > 1 or self.text.isdigit())


@dataclass(frozen=True)
class Sentence:
    """A stretch of a text."""

    text: str
    start: int
    end: int

    @cached_property
    def words(self) -> Sequence[Word]:
        """Its words, placed in the whole text."""
        return words(self.text, self.start)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of its content words."""
        return stems_of(self.text)


def words(text: str, offset: int = 0) -> list[Word]:
    """The words of a text in order; `offset` is added to their places."""
    found = []
    for match in WORD.finditer(text):
        word = match.group().casefold()
        found.append(Word(word, stem(word), offset + match.start(), offset + match.end()))
    return found


def stems_of(text: str) -> frozenset[str]:
    """Stems of the content words of a text, without making a `Word` of each: chunks are long."""
    found = set(WORD.findall(text.casefold())) - ENGLISH_STOP_WORDS
    return frozenset(stem(word) for word in found if len(word) > 1 or word.isdigit())


def stems(some: Sequence[Word]) -> frozenset[str]:
    """Stems of the content words among these."""
    return frozenset(word.stem for word in some if word.content)


def sentences(text: str) -> list[Sentence]:
    """Sentences and lines; white space at their ends is not part of them."""
    found, start = [], 0
    for match in (*END.finditer(text), None):
        end = match.start() if match else len(text)
        piece = text[start:end]
        left = start + len(piece) - len(piece.lstrip())
        if piece.strip():
            found.append(Sentence(piece.strip(), left, left + len(piece.strip())))
        start = match.end() if match else end
    return found


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A crude stem: the same for "reduces", "reduced" and "reducing", and for "company" and "companies"."""
    word = IRREGULAR.get(word, word.replace("’", "'").removesuffix("'s"))
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= SHORTEST_STEM and not word.endswith("ss"):
            word = word.removesuffix(suffix)
            break
    if word.endswith(("e", "y")) and len(word) > SHORTEST_STEM:
        word = word[:-1]
    return word[:-1] if len(word) > SHORTEST_STEM and word[-1] == word[-2] and not word[-1].isdigit() else word


def coverage(some: frozenset[str], other: frozenset[str]) -> float:
    """Share of the first that the second has, in [0, 1]; 0 of nothing."""
    return len(some & other) / len(some) if some else 0.0
