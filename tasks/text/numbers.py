"""Finds figures in texts, with their values and places, so that claims and sources can be compared by value.

"1,200", "1.200", "1 200", "1.2 thousand" and "1.2k" are one value. So are "12%", "12 percent" and "twelve per cent",
"14 March 2024" and "2024-03-14", "4:40 pm" and "16:40". Left out: units and currencies, arithmetic, Roman numerals.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from tasks.text.words import lower

SCALES = {
    "hundred": 2, "k": 3, "thousand": 3, "lakh": 5, "m": 6, "mn": 6, "million": 6, "crore": 7, "b": 9, "bn": 9,
    "billion": 9, "tn": 12, "trillion": 12,
}  # fmt: skip
ORDINAL_SUFFIXES = frozenset({"st", "nd", "rd", "th"})
ATTACHED = frozenset({"k", "m", "b"})  # these may also be units
MONTH_NAMES = (
    "January Jan", "February Feb", "March Mar", "April Apr", "May", "June Jun", "July Jul", "August Aug",
    "September Sept Sep", "October Oct", "November Nov", "December Dec",
)  # fmt: skip
MONTHS = {name: number for number, names in enumerate(MONTH_NAMES, start=1) for name in names.split()}
UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
TENS = {w: 10 * i for i, w in enumerate(_TENS, start=2)}
SMALL = {w: i for i, w in enumerate(UNITS)} | TENS
ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth",
)  # fmt: skip
# Words that imply a number; only used for sources.
HINTS = {w: i for i, w in enumerate(ORDINALS, start=1)} | {
    "once": 1, "both": 2, "twice": 2, "double": 2, "doubled": 2, "doubles": 2, "pair": 2, "couple": 2, "twofold": 2,
    "biennial": 2, "thrice": 3, "triple": 3, "tripled": 3, "threefold": 3, "quadruple": 4, "quadrupled": 4,
    "decade": 10, "decades": 10, "dozen": 12, "dozens": 12, "fortnight": 14,
}  # fmt: skip
SHARES = {
    "half": (50,), "halved": (50,), "third": (33, Decimal("33.3")), "quarter": (25,), "fifth": (20,), "tenth": (10,),
    "thirds": (67, Decimal("66.7"), 66), "quarters": (75,), "all": (100,), "doubled": (100, 200),
}  # fmt: skip
SHARE_SIGNS = {"½": 50, "¼": 25, "¾": 75}

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_PERCENT = r"%|percent\b|per\s?cent\b|pct\b|percentage\b"
_SCALE = "hundred|thousand|million|billion|trillion|lakh|crore|mn|bn|tn"


def _first_letter(words: Iterable[str]) -> str:
    """Pattern for the first letters of words: testing one letter is cheaper than trying each word."""
    return rf"\b(?=[{''.join(sorted({w[0] for w in words}))}])"


# Patterns that begin with a set of characters are searched several times as fast as those that begin with alternatives
# or a condition: `re` skips to the next character of the set.
DIGITS = re.compile(
    r"(?P<digits>\d(?:\d{0,2}(?:[ \u00a0\u2009\u202f]\d{3})+(?![\d.,]?\d)|\d*(?:[.,'’\u2019]\d+)*))"
    rf"(?P<suffix>(?:st|nd|rd|th)\b|['’]?s\b|\s?(?:{_PERCENT})|[kKmMbB]\b|[\s-]?(?:{_SCALE})s?\b)?"
    rf"(?P<more>\s?(?:{_PERCENT}))?",
    re.IGNORECASE,
)
_ONES = "|".join(UNITS[1:10])
_TO_99 = rf"(?:{'|'.join(TENS)})(?:[\s-](?:{_ONES})\b)?|(?:{'|'.join(sorted(UNITS, key=len, reverse=True))})"
SPELT = re.compile(
    rf"{_first_letter([*SMALL, 'a', 'hundred'])}"
    rf"(?P<words>(?:(?:{_ONES}|a)\s)?hundred\b(?:\s(?:and\s)?(?:{_TO_99})\b)?|(?:{_TO_99})\b)"
    rf"(?P<suffix>\s?(?:{_PERCENT})|[\s-](?:{_SCALE})s?\b)?(?P<more>\s?(?:{_PERCENT}))?"
)  # these are in lower case
ISO = r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)"
NAMED = (
    rf"(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?\b(?P<month>{_MONTH}|{_MONTH.upper()})\b\.?"
    r"(?:\s+(?P<d2>\d{1,2})(?:st|nd|rd|th)?(?![\d:.,]?\d))?(?:,?\s+(?:of\s+)?(?P<y1>\d{4})(?!\d))?"
)
SLASHED = r"(?<![\d.])(?P<p>\d{1,2})(?P<sep>[./-])(?P<q>\d{1,2})(?P=sep)(?P<y2>\d{4}|\d{2})(?![\d.]\d|\d)"
DATE = re.compile(rf"(?<!\d){ISO}|{NAMED}|{SLASHED}")
DATE_START = re.compile(rf"[\d{''.join(sorted({name[0] for name in MONTHS}))}]")
CLOCK = re.compile(
    r"(?P<h>\d(?<![\d:]\d)\d?)(?::(?P<min>\d{2})(?!\d)(?::\d{2})?(?:\s?(?P<half>[ap])\.?m\b)?|\s?(?P<only>[ap])\.?m\b)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
JOINED = re.compile(r"\s*(?:[-–—/,]|to|and|or|through|until|till|vs\.?|versus|bis|,\s*and|,\s*or)\s*[$€£~]?\s*", re.I)
GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{2,3})*[.,]\d{3}")  # grouped by thousands, or the Indian way: 1,00,000
Day = tuple[int | None, int, int | None]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        values: Its possible values; several if a separator or a sign can be read in two ways.
        percent: Whether it is a percentage.
        spelt: Whether it is written in words.
        scale: Power of ten of a word such as "million"; 0 without one.
        step: Difference between successive numbers with the same number of digits.
        suffix: Letters after its digits, in lower case: "th", "s", …
    """

    start: int
    end: int
    values: frozenset[Decimal]
    percent: bool = False
    spelt: bool = False
    scale: int = 0
    step: Decimal = Decimal(1)
    suffix: str = ""


def figures(text: str) -> list[Figure]:
    """Figures in digits, in order. In a list or range such as "10 to 12%", every figure is a percentage."""
    return _shared(text, [_figure(m, {Decimal(v) for v in readings(m["digits"])}) for m in DIGITS.finditer(text)])


def spelt(text: str) -> list[Figure]:
    """Figures in words, in order: "twelve", "twenty-five", "two hundred and six", "three million"."""
    found = [_figure(m, {Decimal(_read(m["words"]))}, spelt=True) for m in SPELT.finditer(lower(text))]
    return _shared(text, found)


def in_words(text: str) -> Iterator[tuple[Decimal, bool]]:
    """Values of words in a source, and whether each is a percentage: "twelve", "twice", "a dozen", "half"."""
    words = {*_WORD.findall(lower(text))}
    for word in words & HINTS.keys():
        yield Decimal(HINTS[word]), False
    for word in words & SHARES.keys():
        yield from ((Decimal(share), True) for share in SHARES[word])
    yield from ((Decimal(share), True) for sign, share in SHARE_SIGNS.items() if sign in text)
    if words & SMALL.keys() or "hundred" in words:
        yield from ((value, figure.percent) for figure in spelt(text) for value in figure.values)


def dates(text: str) -> Iterator[tuple[int, int, frozenset[Day]]]:
    """Dates with at least a month and a number: start, end, and the possible (year, month, day)."""
    at = 0
    while start := DATE_START.search(text, at):
        m = DATE.match(text, start.start())
        at = m.end() if m else start.end()
        if m is None:
            continue
        found: set[Day] = set()
        if m["y"]:
            found = {(int(m["y"]), int(m["m"]), int(m["d"]))}
        elif m["month"]:
            day, year = m["d1"] or m["d2"], m["y1"]
            if day or year:
                found = {(int(year) if year else None, MONTHS[m["month"].capitalize()], int(day) if day else None)}
        else:
            year_ = int(m["y2"]) + (2000 if len(m["y2"]) == 2 else 0)
            found = {(year_, a, b) for a, b in ((int(m["p"]), int(m["q"])), (int(m["q"]), int(m["p"])))}
        found = {day for day in found if day[1] in range(1, 13) and (day[2] is None or day[2] in range(1, 32))}
        if found:
            yield m.start(), m.end(), frozenset(found)


def clocks(text: str) -> Iterator[tuple[int, int, frozenset[int]]]:
    """Times of day: start, end, and the possible minutes since midnight."""
    for m in CLOCK.finditer(text):
        hour, minute, half = int(m["h"]), int(m["min"] or 0), (m["half"] or m["only"] or "").casefold()
        if hour < 25 and minute < 60:
            hours = {hour} if not half else {hour % 12 + (12 if half == "p" else 0)}
            yield m.start(), m.end(), frozenset(60 * h + minute for h in hours)


def _figure(m: re.Match[str], values: set[Decimal], *, spelt: bool = False) -> Figure:
    suffix = (m["suffix"] or "").strip().lstrip("-").casefold()
    scale = SCALES.get(suffix) or SCALES.get(suffix.rstrip("s"), 0)
    percent = bool(m["more"]) or suffix.startswith(("%", "pe", "pct"))
    part = next(iter(values)).as_tuple().exponent
    step = Decimal(1).scaleb(min(0, part if isinstance(part, int) else 0) + scale)
    scaled = {value.scaleb(scale) for value in values}
    meant = frozenset(scaled | values if suffix in ATTACHED else scaled)
    return Figure(*m.span(), meant, percent, spelt, scale, step, suffix)


def _shared(text: str, found: list[Figure]) -> list[Figure]:
    """Apply the scale and percent sign of the last figure of a list or range to all of its figures."""
    for i in range(len(found) - 2, -1, -1):
        one, after = found[i], found[i + 1]
        if not one.percent and not one.scale and JOINED.fullmatch(text, one.end, after.start):
            scaled = {v.scaleb(after.scale) for v in one.values} if after.scale else set()
            percent = after.percent and max(one.values) < 1000  # not a year
            found[i] = replace(one, values=one.values | scaled, percent=percent)
    return found


def readings(digits: str, grouped: re.Pattern[str] = GROUPED) -> list[str]:
    """Decimal numerals that digits with separators can mean.

    "1,000" is 1000, "1.000" is 1 or 1000, "3,5" is 3.5, and "2.3.1" is three numbers: 2, 3 and 1.

    Args:
        grouped: Pattern of digits whose separators mark thousands.
    """
    plain = re.sub(r"['’ \u00a0\u2009\u202f]", "", digits)
    separators = [c for c in plain if c in ".,"]
    if not separators:
        return [plain]
    bare = re.sub(r"[.,]", "", plain)
    in_groups = len(set(separators)) == 1 and grouped.fullmatch(plain)
    if len(separators) == 1:
        value = plain.replace(",", ".")
        return [bare] if in_groups and separators == [","] else [value, bare] if in_groups else [value]
    if in_groups:
        return [bare]
    if len(set(separators)) == 2 and plain.count(separators[-1]) == 1:  # 1,234.56 and 1.234,56
        whole, _, part = plain.rpartition(separators[-1])
        return [re.sub(r"[.,]", "", whole) + "." + part]
    return re.split(r"[.,]", plain)


def _read(written: str) -> int:
    """Value of number words: the sum of hundreds, tens and units."""
    total = 0
    for word in re.findall(r"[a-z]+", written.casefold()):
        if word == "hundred":
            total = max(total, 1) * 100
        else:
            total += SMALL.get(word, 0)  # "a" and "and" add nothing
    return total
