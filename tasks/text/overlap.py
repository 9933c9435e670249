"""What two texts share: a claim's words, word pairs, numbers and names that a premise has.

Judges are fitted to these features. So words, stems and numbers are read more simply here than in `words.py` and
`numbers.py`, whose rules may grow. Tuned to English (stop words, suffixes) and harmless elsewhere; scripts without
spaces between words are read as pairs of characters. Left out: meaning. A claim that reverses its premise shares all of
its words.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property

from tasks.text.numbers import MONTH_NAMES, SCALES, UNITS, readings
from tasks.text.words import STOP_WORDS

RULES = 2  # raised when a feature changes
MOST_MISSING = 3  # maximum missing numbers or names that count

# Thai to Myanmar, Khmer, kana, Han, Hangul: scripts without spaces between words, or with particles attached to them.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
MARKS = "\u0300-\u036f\u0900-\u0dff"  # combining marks and the Indic blocks, whose vowel signs do not match `\w`
WORD = re.compile(rf"[{UNSPACED}]+|(?:(?![{UNSPACED}_])[\w{MARKS}])+(?:['’][a-z]+\b)?", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")
SUFFIXES = ("edly", "ing", "ed", "es", "ly", "s")
SHORTEST_STEM = 4

NUMBER = re.compile(
    r"(?P<digits>\d+(?:[.,]\d+)*)(?:(?P<short>[kmb])\b|\s?(?P<scale>thousand|million|billion|trillion)\b)?",
    re.IGNORECASE,
)
GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
SPELT = {word: str(i) for i, word in enumerate(UNITS[:13])} | {
    names.split()[0].casefold(): str(i) for i, names in enumerate(MONTH_NAMES, start=1)
}


def normalize(text: str) -> str:
    """Replace compatibility forms (full-width digits, ligatures), so that equal words are equal strings."""
    return unicodedata.normalize("NFKC", text)


def words(text: str) -> list[str]:
    """Lower-cased words in order. A run of an unspaced script gives its overlapping pairs of characters."""
    out: list[str] = []
    for match in WORD.finditer(text.casefold().replace("’", "'")):
        word = match.group()
        if re.match(rf"[{UNSPACED}]", word):
            out.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        else:
            out.append(word)
    return out


def content_words(text: str) -> list[str]:
    """The words without English stop words and single letters. Digits and characters of unspaced scripts are kept."""
    return [w for w in words(text) if w not in STOP_WORDS and (len(w) > 1 or w.isdigit() or not w.isascii())]


def stem(word: str) -> str:
    """The word without a possessive and one common English suffix, if four letters remain."""
    word = word.removesuffix("'s")
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= SHORTEST_STEM:
            return word.removesuffix(suffix)
    return word


def numbers(text: str) -> list[frozenset[str]]:
    """The possible values of every number in digits.

    "1,000" is 1000, "1.000" is 1 or 1000, "3,5" is 3.5, "1.5 million" is 1.5 or 1500000. Units, percent signs and
    currencies are ignored; "2024-03-14" gives 2024, 3 and 14.
    """
    out = []
    for match in NUMBER.finditer(text):
        values = {_canonical(value) for value in readings(match["digits"], GROUPED)}
        scale = SCALES.get((match["short"] or match["scale"] or "").casefold())
        if scale is not None:
            values |= {_canonical(f"{value}e{scale}") for value in values}
        out.append(frozenset(values))
    return out


def spelt_numbers(text: str) -> set[str]:
    """Values of small numbers written as words, and of names of months ("March" matches 2024-03-14)."""
    return {SPELT[word] for word in words(text) if word in SPELT}


def names(text: str) -> set[str]:
    """Stems of capitalized words, except at the beginning of a sentence."""
    found: set[str] = set()
    for sentence in SENTENCE_END.split(text):
        capitalised = (m.group() for m in WORD.finditer(sentence) if m.start() and m.group()[0].isupper())
        found |= {stem(word) for text in capitalised for word in content_words(text)}
    return found


@dataclass(frozen=True)
class Side:
    """One text, read once for all of its pairs. Create it with `read`."""

    text: str

    @cached_property
    def stems(self) -> list[str]:
        """Stems of the content words, in order."""
        return [stem(word) for word in content_words(self.text)]

    @cached_property
    def bag(self) -> frozenset[str]:
        """Distinct stems of the content words."""
        return frozenset(self.stems)

    @cached_property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """Pairs of neighboring stems."""
        return frozenset(zip(self.stems, self.stems[1:], strict=False))

    @cached_property
    def written(self) -> list[frozenset[str]]:
        """Possible values of each number in digits."""
        return numbers(self.text)

    @cached_property
    def values(self) -> frozenset[str]:
        """All possible values of the text's numbers."""
        return frozenset(spelt_numbers(self.text).union(*self.written))

    @cached_property
    def named(self) -> set[str]:
        """Stems of names."""
        return names(self.text)


def read(text: str) -> Side:
    """Prepare a text for comparison."""
    return Side(normalize(text))


def lexical(premise: Side, claim: Side) -> dict[str, float]:
    """The features of one pair that need no model.

    Returns:
        `overlap` and `bigrams`: shares, in [0, 1], of the claim's content words and of its pairs of neighboring content
        words that the premise has. `missing_numbers` and `missing_names`: how many of the claim's the premise lacks, at
        most 3. The name of a month matches its number.
    """
    absent = [values for values in set(claim.written) if not values & premise.values]
    unnamed = [name for name in claim.named - premise.bag if SPELT.get(name) not in premise.values]
    return {
        "overlap": len(claim.bag & premise.bag) / max(1, len(claim.bag)),
        "bigrams": len(claim.pairs & premise.pairs) / max(1, len(claim.pairs)),
        "missing_numbers": min(len(absent), MOST_MISSING),
        "missing_names": min(len(unnamed), MOST_MISSING),
    }


def _canonical(number: str) -> str:
    """One spelling per value: no leading or trailing zeros."""
    mantissa, _, exponent = number.partition("e")
    whole, _, part = mantissa.partition(".")
    shift = int(exponent or 0)
    part = part.ljust(shift, "0")
    whole, part = whole + part[:shift], part[shift:].rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{part}" if part else "")
