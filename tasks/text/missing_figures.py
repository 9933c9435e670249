"""Finds figures of a claim that a text does not state in any format: dates, times, numbers in digits and in words.

Method: docs/methods.md#failure-patterns, ghost number. Left out: figures that can be computed from others.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property, lru_cache

from tasks.text import numbers
from tasks.text.numbers import Day, Figure

RULES = 1  # raised when the same two texts give different figures

ADDRESS = r"https?://\S+|www\.\S+|\S+@\S+|\b10\.\d{4,}/\S+"
# References that no citation style recognizes, and numbers of list items.
REFERENCE = (
    r"\[\^?[\w.:#-]{0,12}\d+(?:\s*[,;–-]\s*\d+)*\]|【[^】]*】|"
    r"\b(?:[Ss]ource|[Dd]ocument|[Pp]assage|[Cc]hunk|[Rr]eference|[Cc]ontext|[Ss]nippet)s?\s*(?:ID\s*|[Nn]o\.?\s*)?#?\d+(?:(?:\s*,|\s*and)\s*\d+)*|"
    r"^\W*(?:(?:[Ss]tep|[Pp]art|[Pp]oint|[Tt]ip|[Oo]ption|[Rr]eason|[Mm]ethod|[Aa]nswer)\s+)?\(?\d{1,2}(?:[.):]\s|\s?[:–—]\s)"
)
# Letters and digits in one name: COVID-19, B12, GPT-4, v2.3. "mid-1990s" and "sub-10" are not names.
NAME = (
    r"\b(?=[^\W\d_]+[-–_./]?\d)(?:(?!(?:mid|pre|post|sub|non|top|under|over|circa|ca|late|early|since|age|aged|grade|level|type|ages|"
    r"max|min|approx)-)[^\W\d_]+[-–_./]?\d[\w.-]*\w|[^\W\d_]+[-–_]?\d\b)|\b\d+[^\W\d_]+\d\w*"
)
ADDRESS_SIGN = re.compile(r"[@/]|www\.")  # every address contains one
MASKED = re.compile(f"{ADDRESS}|{REFERENCE}|{NAME}", re.MULTILINE)
MASKED_WITHOUT_ADDRESS = re.compile(f"{REFERENCE}|{NAME}", re.MULTILINE)
# "the two companies" refers to two known things; "three main reasons" announces a list.
POINTING = re.compile(r"\b(?:the|these|those|all|its|their|his|her|our|your|other|between|of|first|last|any)\s+$", re.I)
COUNTED = re.compile(
    r"[\s-]+(?:\w+\s+){0,2}?(?:main|key|major|primary|important|different|distinct|types?|kinds?|ways?|reasons?|factors?|"
    r"steps?|options?|points?|things?|aspects?|parts?|categor(?:y|ies)|approach(?:es)?|methods?|groups?|examples?|"
    r"forms?|sides?|components?|elements?|stages?|phases?|areas?|levels?|strategies|theories|methods|sources?)\b",
    re.IGNORECASE,
)
HIGHEST_COUNT = 12
HEDGE = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|circa|ca\.?|over|under|close to|"
    r"more than|less than|fewer than|estimated)|[~≈<>])\s*(?:[$€£]|US\$)?\s*$",
    re.IGNORECASE,
)
REACH = 60  # characters before a figure in which its hedge ("about") may stand
ABOUT = Decimal("0.2")  # largest relative difference of a hedged figure from the source's
HEADING = re.compile(r"(?:\bin|\(|[$€£])\s*(?:US)?\s?[$€£]?\s*(thousand|million|billion|trillion|bn|mn|m|k)s?\b", re.I)
PERCENT_HEADING = re.compile(r"(?<!\d)(?<!\d\s)(?:%|\bpercent(?:age)?s?\b|\bper cent\b|\bshare\b)", re.IGNORECASE)


class _Source:
    """The figures of a text. Each format is read when first needed."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def digits(self) -> list[Figure]:
        return numbers.figures(self._text)

    @cached_property
    def words(self) -> frozenset[tuple[Decimal, bool]]:
        return frozenset(numbers.in_words(self._text))

    @cached_property
    def dates(self) -> frozenset[Day]:
        return frozenset(day for _, _, days in numbers.dates(self._text) for day in days)

    @cached_property
    def clocks(self) -> frozenset[int]:
        return frozenset(minute for _, _, minutes in numbers.clocks(self._text) for minute in minutes)

    @cached_property
    def values(self) -> frozenset[Decimal]:
        return frozenset(v for f in self.digits for v in f.values)

    @cached_property
    def percents(self) -> frozenset[Decimal]:
        return frozenset(v for f in self.digits if f.percent for v in f.values)

    @cached_property
    def headings(self) -> frozenset[int]:
        return frozenset(numbers.SCALES[m[1].casefold()] for m in HEADING.finditer(self._text))

    @cached_property
    def percent_heading(self) -> bool:
        return PERCENT_HEADING.search(self._text) is not None

    def has(self, figure: Figure, *, hedged: bool) -> bool:
        """Whether the text states the figure, in any format."""
        if figure.suffix == "s" and any(0 <= v - low < 10 for low in figure.values for v in self.values):
            return True  # the 1990s: any of their years matches
        if figure.suffix in numbers.ORDINAL_SUFFIXES and any(
            (n - 1) * 100 < v <= n * 100 for n in figure.values if n > 10 for v in self.values
        ):
            return True  # the 19th century: any of its years matches
        return self._stated(figure) or self._in_words(figure) or self._rounded(figure, hedged=hedged)

    def has_day(self, day: Day) -> bool:
        """Whether the text has the date, or a part of it with the rest (day or year) elsewhere."""
        for other in self.dates:
            pairs = list(zip(day, other, strict=True))
            if all(a is None or b is None or a == b for a, b in pairs) and all(
                b is not None or a is None or Decimal(a) in self.values for a, b in pairs
            ):
                return True
        return False

    def _stated(self, figure: Figure) -> bool:
        scale = figure.scale
        if scale and scale in self.headings and any(v.scaleb(-scale) in self.values for v in figure.values):
            return True
        if not figure.percent:
            return bool(figure.values & self.values)
        if figure.values & (self.values if self.percent_heading else self.percents):
            return True
        return any(v / 100 in self.values for v in figure.values if v < 100) or any(
            v != v.to_integral_value() and v in self.values for v in figure.values
        )

    def _in_words(self, figure: Figure) -> bool:
        return any((value, figure.percent) in self.words for value in figure.values)

    def _rounded(self, figure: Figure, *, hedged: bool) -> bool:
        """Whether the figure is a rounded figure of the text: to two digits, or to one digit with a hedge."""
        values = self.values if not figure.percent or self.percent_heading else self.percents
        for value in figure.values:
            significant = (value / figure.step).normalize()
            digits = len(significant.as_tuple().digits)
            if figure.scale == 0 and not hedged and value == value.to_integral_value():
                digits = len(str(int(value)))  # 500 is exact to the unit, unless a hedge precedes it
                step = Decimal(1)
            else:
                step = figure.step.scaleb(int(significant.as_tuple().exponent))
            reach = min(step, value * ABOUT) if hedged else step / 2
            if (digits >= 2 or hedged) and any(abs(v - value) <= reach for v in values):
                return True
        return False


@lru_cache(maxsize=4)
def _source(text: str) -> _Source:
    """The figures of a text, cached because successive claims share a text."""
    return _Source(text)


def missing(text: str, source_text: str) -> Iterator[tuple[int, int]]:
    """Spans of a text's figures that a source does not state."""
    figures = sorted([*numbers.figures(text), *numbers.spelt(text)], key=lambda f: f.start)
    if not figures:  # dates and times contain digits too
        return
    source = _source(source_text)
    masked = MASKED if ADDRESS_SIGN.search(text) else MASKED_WITHOUT_ADDRESS
    taken = [m.span() for m in masked.finditer(text)]

    def free(start: int, end: int) -> bool:
        return all(end <= a or b <= start for a, b in taken)

    for start, end, days in numbers.dates(text):
        if free(start, end):
            taken.append((start, end))
            if not any(source.has_day(day) for day in days):
                yield start, end
    for start, end, minutes in numbers.clocks(text):
        if free(start, end):
            taken.append((start, end))
            if not minutes & source.clocks:
                yield start, end
    for figure in figures:
        if free(figure.start, figure.end) and _counts(text, figure):
            hedged = HEDGE.search(text, max(0, figure.start - REACH), figure.start) is not None
            if not source.has(figure, hedged=hedged):
                yield figure.start, figure.end


def _counts(text: str, figure: Figure) -> bool:
    """Whether a figure states a quantity, not an idiom or a count of what the claim lists."""
    if figure.percent or figure.scale:
        return True
    value = max(figure.values)
    if figure.spelt and (value < 2 or POINTING.search(text, 0, figure.start)):
        return False
    return not (value <= HIGHEST_COUNT and COUNTED.match(text, figure.end))
