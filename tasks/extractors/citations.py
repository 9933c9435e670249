"""References in an answer: how they look, and which chunks they name.

A style is a pattern with a group `ref`. The built-in ones find much that only looks like a reference (a year, an
interval, an abbreviation in brackets), so what they match must also be plausible; what an app's own pattern matches is
taken at its word. A reference that names no chunk of the trace is kept, as dangling. Leaves out which text a reference
covers: that is `segments.py`.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import Field, ValidationInfo, field_validator

from tasks.core.config import Settings, did_you_mean
from tasks.extractors._resolve import HAS_ID, NUMBERS, SUPERSCRIPTS, Resolver
from tasks.extractors.markdown import Block, plain_text

_NAMES = r"[^\[\]\n]{1,200}"
# Style, the character it begins with, and the rest. At one place the first that fits counts.
_BUILTIN: tuple[tuple[str, str, str], ...] = (
    ("numeric", r"\[", rf"\s*(?P<ref>{NUMBERS})\s*\]"),
    ("footnote", r"\[", r"\^(?P<ref>[^\[\]\s^]{1,100})\^?\]"),
    ("id", r"\[", rf"\s*(?i:IDs?)\s*[:#]\s*(?P<ref>{_NAMES})\]"),
    ("doc", r"\[", rf"(?P<ref>{_NAMES})\]"),
    ("file", r"\(", r"(?P<ref>[^()\[\]\n]{1,200})\)"),
    ("fullwidth", "【", r"(?P<ref>[^【】\n]{1,200})】"),
    ("superscript", "<", rf"(?i:sup)>\s*\[?(?P<ref>{NUMBERS})\]?\s*</(?i:sup)>"),
    ("superscript", f"[{SUPERSCRIPTS}]", f"(?P<ref>[{SUPERSCRIPTS}]*(?:[,˒⁻–][{SUPERSCRIPTS}]+)*)"),
)
STYLES = tuple(dict.fromkeys(name for name, _, _ in _BUILTIN))
MODES = ("auto", "structured", "none")

_LEFT_OVER = re.compile(r"(?<![^\S\n])[^\S\n]++(?=[.,;:!?](?:\s|$)|$)")
_WORD_BEFORE = re.compile(r"[^\W\d_]{3,}$")
# Words of three letters and more that take an exponent.
_EXPONENTS = frozenset({"sin", "cos", "tan", "cot", "sec", "csc", "log", "exp", "chi", "mol", "rad", "mil"})


class StyleSettings(Settings):
    """The settings that every model-free extractor shares.

    Attributes:
        styles: The app's own styles: name to regular expression with a named group `ref`.
        citation_style: One built-in style or one of `styles`; `auto` for whatever is found; `structured` for the
            trace's `citations` field alone; `none` where references carry no meaning.
    """

    styles: Mapping[str, str] = Field(default_factory=dict)
    citation_style: str = "auto"

    @field_validator("styles")
    @classmethod
    def _compiles(cls, styles: Mapping[str, str]) -> Mapping[str, str]:
        for name, pattern in styles.items():
            if name in STYLES or name in MODES:
                raise ValueError(f"must not give {name!r} another meaning: choose another name for the style")
            try:
                groups = re.compile(pattern).groupindex
            except re.error as error:
                raise ValueError(f"needs a valid regular expression for {name!r}, and this one has: {error}") from None
            if "ref" not in groups:
                raise ValueError(f"needs a named group (?P<ref>…) around the chunk's id in the pattern of {name!r}")
        return styles

    @field_validator("citation_style", mode="after")
    @classmethod
    def _known(cls, style: str, info: ValidationInfo) -> str:
        known = [*MODES, *STYLES, *info.data.get("styles", ())]
        if style not in known:
            raise ValueError(f"should be a known citation style. {did_you_mean(style, known, 'styles')}".rstrip("."))
        return style


class Reference(NamedTuple):
    """One occurrence of a reference: `answer[start:end]` names these chunks, and these that are not in the trace."""

    start: int
    end: int
    ids: tuple[str, ...] = ()
    dangling: tuple[str, ...] = ()


class Finder:
    """Finds the references of one configured style. Built once per extractor."""

    def __init__(self, settings: StyleSettings) -> None:
        style = settings.citation_style
        everything = style in {"auto", "structured"}
        builtin = [b for b in _BUILTIN if everything or b[0] == style]
        self.structured = style == "structured"
        self.logged = everything  # the trace's `citations` field counts, where it is filled
        self._styles = [name for name, _, _ in builtin]
        self._builtin = _compile(builtin) if builtin else None
        self._shapes = reference_patterns(settings)
        self._own = [(n, re.compile(p)) for n, p in settings.styles.items() if everything or n == style]

    def find(self, answer: str, block: Block, resolver: Resolver) -> list[Reference]:
        """The references in a block, in order, never overlapping."""
        found = self._matches(answer, block, resolver)
        if block.code:
            found = [r for r in found if not _around(r.start, block.code)]
        if block.links:
            found = [r for r in (_in_link(r, answer, block.links) for r in found) if r]
        return found

    def hypothesis(self, claim: str) -> str:
        """A claim as a judge should read it: without references and markup."""
        return plain_text(strip_references(claim, self._shapes)) or plain_text(claim) or claim

    def _matches(self, answer: str, block: Block, resolver: Resolver) -> list[Reference]:
        found: list[Reference] = []
        for name, pattern in self._own:
            for match in pattern.finditer(answer, block.start, block.end):
                read = resolver.read(f"own {name}", match["ref"]) if match["ref"] else None
                if read:
                    found.append(Reference(match.start(), match.end(), *read))
        own = len(found)
        if self._builtin is not None:
            for match in self._builtin.finditer(answer, block.start, block.end):
                group = match.lastindex or 1
                style = self._styles[group - 1]
                ref = match[group]
                if style == "superscript":
                    ref = ref if match[0][0] == "<" else match[0]
                    if "[" not in match[0] and not _is_raised_reference(answer, match.start(), block.start):
                        continue
                if read := resolver.read(style, ref):
                    found.append(Reference(match.start(), match.end(), *read))
        if not own:
            return found
        kept: list[Reference] = []
        for reference in sorted(found, key=lambda r: r.start):  # stable: an app's own pattern goes first
            if not kept or reference.start >= kept[-1].end:
                kept.append(reference)
        return kept


def _compile(styles: Sequence[tuple[str, str, str]]) -> re.Pattern[str]:
    """One pattern with one group per style. A set of first characters comes first: that makes searching fast."""
    first = "".join(dict.fromkeys(opener.strip("[]") if len(opener) > 2 else opener for _, opener, _ in styles))
    rests = [f"(?<={opener}){rest.replace('(?P<ref>', '(')}" for _, opener, rest in styles]
    return re.compile(f"[{first}](?:{'|'.join(rests)})")


def _is_raised_reference(answer: str, start: int, floor: int) -> bool:
    """It stands behind a word or punctuation, not behind a unit, a variable or a number: no exponent."""
    before = answer[max(floor, start - 20) : start]
    last = before[-1:]
    if not last or last.isspace() or last in ".,;:!?\"'”’»*_":
        return True
    if last >= "\u3040" and last.isalpha():  # scripts that write words without spaces
        return True
    word = _WORD_BEFORE.search(before)
    return word is not None and word[0].casefold() not in _EXPONENTS


def _around(place: int, spans: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """The span that holds a place. Spans are sorted and apart."""
    at = bisect_right(spans, place, key=lambda span: span[0]) - 1
    return spans[at] if at >= 0 and place < spans[at][1] else None


def _in_link(reference: Reference, answer: str, links: Sequence[tuple[int, int]]) -> Reference | None:
    """`[1](url)` is a reference if it names chunks; anything else inside a link is part of the link."""
    link = _around(reference.start, links)
    if link is None:
        return reference
    label = answer[link[0] : reference.end]
    whole = label.strip("[]") == answer[reference.start : reference.end].strip("[]") and label[-1] == "]"
    if whole and reference.ids and not reference.dangling and HAS_ID.search(label):
        return Reference(*link, reference.ids)
    return None


_SURE = {
    "numeric": r"\[\s*[1-9]\d{0,2}(?:\s*[,;–—-]\s*\d{1,3}|\]\s*[–—-]\s*\[\d{1,3})*\s*\](?:\([^()\s]*\))?",
    "footnote": r"\[\^[^\[\]\s^]{1,100}\^?\](?!:)",
    "id": r"\[\s*(?i:IDs?)\s*[:#][^\[\]\n]{1,200}\]",
    "doc": r"\[(?i:doc|source|chunk|passage|snippet|dokument|quelle)[^\[\]\n]{0,100}\d[^\[\]\n]{0,100}\](?!\()",
    "file": r"\([^()\s:]{1,100}\.(?:md|txt|pdf|html?|docx?)\)",
    "fullwidth": r"【[^【】\n]{0,200}[\d†][^【】\n]{0,200}】",
    "superscript": r"<(?i:sup)>\s*\[[\d,;\s–-]{1,50}\]\s*</(?i:sup)>",
}


def reference_patterns(settings: StyleSettings) -> tuple[re.Pattern[str], ...]:
    """What `strip_references` takes away: the app's own patterns, and shapes that are references whatever the trace."""
    style = settings.citation_style
    everything = style in {"auto", "structured"}
    sure = "|".join(p for name, p in _SURE.items() if everything or name == style)
    own = [p for name, p in settings.styles.items() if everything or name == style]
    return tuple(re.compile(p) for p in [*own, sure] if p)


def strip_references(text: str, patterns: Sequence[re.Pattern[str]]) -> str:
    """The text without references and without the white space that would be left before punctuation."""
    for pattern in patterns:
        text = pattern.sub("", text)
    return _LEFT_OVER.sub("", text) if patterns else text
