"""Finds references in an answer, by citation styles.

A style is a pattern with a group `ref`. The built-in patterns also match years, intervals and abbreviations in
brackets, so their matches must be plausible. A match of an app's own pattern always counts. A reference to a chunk that
is not in the trace is kept as dangling.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field, ValidationInfo, field_validator

from tasks.core.config import Settings, did_you_mean
from tasks.extractors.cut._resolve import HAS_ID, NUMBERS, SUPERSCRIPTS, Resolver
from tasks.extractors.cut.markdown import Block
from tasks.text.spans import around

_NAMES = r"[^\[\]\n]{1,200}"
# Style, its first character, and the rest of the pattern. The first match at a position counts.
_BUILTIN: tuple[tuple[str, str, str], ...] = (
    ("numeric", r"\[", rf"\s*(?P<ref>#?{NUMBERS})\s*\]"),
    ("numeric", "［", rf"\s*(?P<ref>{NUMBERS})\s*］"),
    ("numeric", r"\\", rf"\[\s*(?P<ref>{NUMBERS})\s*\\\]"),  # escaped, so it is not a link
    ("footnote", r"\[", r"\^(?P<ref>[^\[\]\s^]{1,100})\^?\]"),
    ("id", r"\[", rf"\s*(?i:IDs?)\s*[:#]\s*(?P<ref>{_NAMES})\]"),
    ("doc", r"\[", rf"(?P<ref>{_NAMES})\]"),
    ("file", r"\(", r"(?P<ref>[^()\[\]\n]{1,200})\)"),
    ("file", "（", r"(?P<ref>[^（）\[\]\n]{1,200})）"),
    ("fullwidth", "【", r"(?P<ref>[^【】\n]{1,200})】"),
    ("superscript", "<", rf"(?i:sup)[^<>]*>\s*(?:<a\b[^<>]*>\s*)?\[?(?P<ref>{NUMBERS})\]?\s*(?:</a>\s*)?</(?i:sup)>"),
    ("superscript", r"\^", r"(?P<ref>\d{1,3}(?:,\s?\d{1,3})*)(?![\w^\]])"),
    ("superscript", f"[{SUPERSCRIPTS}]", f"(?P<ref>[{SUPERSCRIPTS}]*(?:[,˒⁻–][{SUPERSCRIPTS}]+)*)"),
)
STYLES = tuple(dict.fromkeys(name for name, _, _ in _BUILTIN))
MODES = ("auto", "structured", "none")

_INTERVAL = re.compile(
    r"\b(?:intervals?|range|between|within|in|from|intervall|bereich|intervalo|rango|entre)\s+$", re.IGNORECASE
)
_NAME_BEFORE = re.compile(r"\b[A-Za-z_]\w*$")
_GOES_ON = re.compile(r"\s+[a-z]")
_NEAR = 300
_WORD_BEFORE = re.compile(r"[^\W\d_]{3,}$")
_TWO_BEFORE = re.compile(r"\b[^\W\d_]{2,}$")
_BASE = re.compile(r"(?:\b(?:10|2)|[×x*·]\s?\d+)$")  # base of a power
# Words that can have an exponent.
_EXPONENTS = frozenset(
    "mm cm dm km ft in yd mi ha sin cos tan cot sec csc log exp chi mol rad mil".split()  # noqa: SIM905 - easier to read
)


class CutSettings(Settings):
    """Settings that all extractors share.

    Attributes:
        styles: The app's own styles: name to regular expression with a named group `ref`.
        citation_style: One built-in style or one of `styles`; `auto` for all styles found; `structured` for the trace's
            `citations` field only; `none` if references have no meaning.
        language: Language whose rules find sentence ends and kinds, as an ISO 639 code; `auto` detects it in the
            answer.
    """

    styles: Mapping[str, str] = Field(default_factory=dict)
    citation_style: str = "auto"
    language: Annotated[str, Field(pattern=r"^(?:auto|[a-z]{2,3})$")] = "auto"

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
    """One reference: `answer[start:end]` names these chunks, and these names without a chunk in the trace."""

    start: int
    end: int
    ids: tuple[str, ...] = ()
    dangling: tuple[str, ...] = ()


def names(references: Iterable[Reference]) -> list[str]:
    """All names in references, in the trace or not."""
    return [name for r in references for name in (*r.ids, *r.dangling)]


class Finder:
    """Finds the references of the configured style. Built once per extractor."""

    def __init__(self, settings: CutSettings) -> None:
        style = settings.citation_style
        everything = style in {"auto", "structured"}
        builtin = [b for b in _BUILTIN if everything or b[0] == style]
        self.structured = style == "structured"
        self.logged = everything  # whether a filled `citations` field of the trace counts
        self._styles = [name for name, _, _ in builtin]
        self._builtin = _compile(builtin) if builtin else None
        self._own = [(n, re.compile(p)) for n, p in settings.styles.items() if everything or n == style]

    def find(self, answer: str, block: Block, resolver: Resolver) -> list[Reference]:
        """The references in a block, in order, without overlaps."""
        found = self._matches(answer, block, resolver)
        if block.code:
            found = [r for r in found if not around(r.start, block.code)]
        if block.links:
            found = [r for r in (_in_link(r, answer, block.links) for r in found) if r]
        return found

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
                    ref = ref if match[0][0] in "<^" else match[0]
                    sure = "[" in match[0] or "<a" in match[0].lower()
                    if not sure and not _is_raised_reference(
                        answer, match.start(), block.start, tagged="<" in match[0]
                    ):
                        continue
                elif style == "numeric" and _is_no_reference(answer, match, block):
                    continue
                if read := resolver.read(style, ref):
                    found.append(Reference(match.start(), match.end(), *read))
        if not own:
            return found
        kept: list[Reference] = []
        for reference in sorted(found, key=lambda r: r.start):  # the sort is stable: an app's own pattern comes first
            if not kept or reference.start >= kept[-1].end:
                kept.append(reference)
        return kept


def _compile(styles: Sequence[tuple[str, str, str]]) -> re.Pattern[str]:
    """One pattern with a group for each style. It begins with a set of first characters, which makes searches fast."""
    first = "".join(dict.fromkeys(opener.strip("[]") if len(opener) > 2 else opener for _, opener, _ in styles))
    rests = [f"(?<={opener}){rest.replace('(?P<ref>', '(')}" for _, opener, rest in styles]
    return re.compile(f"[{first}](?:{'|'.join(rests)})")


def _is_raised_reference(answer: str, start: int, floor: int, *, tagged: bool) -> bool:
    """Whether a superscript is a reference: it follows a word or punctuation, not a unit, a variable or a number.

    Args:
        tagged: Whether HTML raises it, as is more common for footnotes than for powers.
    """
    before = answer[max(floor, start - 20) : start]
    last = before[-1:]
    if not last or last.isspace() or last in ".,;:!?。、！？」）\"'”’»*_>":
        return True
    if last >= "\u3040" and last.isalpha():  # scripts that write words without spaces
        return True
    if tagged and last.isdigit():
        return _BASE.search(before) is None
    word = (_TWO_BEFORE if tagged else _WORD_BEFORE).search(before)
    return word is not None and word[0].casefold() not in _EXPONENTS


def _is_no_reference(answer: str, match: re.Match[str], block: Block) -> bool:
    """Whether a match is an interval ("in [0, 1]"), or an index: its variable has another index nearby."""
    before = answer[max(block.start, match.start() - 30) : match.start()]
    if match[0].startswith("[0,"):
        return _INTERVAL.search(before) is not None
    name = _NAME_BEFORE.search(before)
    if name is None or not _GOES_ON.match(answer, match.end(), block.end):
        return False
    around = answer[max(block.start, match.start() - _NEAR) : min(block.end, match.end() + _NEAR)]
    others = re.finditer(rf"\b{re.escape(name[0])}(\[\d{{1,3}}\])", around)
    return any(other[1] != match[0] for other in others)


def _in_link(reference: Reference, answer: str, links: Sequence[tuple[int, int]]) -> Reference | None:
    """`[1](url)` if it names chunks, otherwise None: other text inside a link is part of the link."""
    link = around(reference.start, links)
    if link is None:
        return reference
    label = answer[link[0] : reference.end]
    whole = label.strip("[]") == answer[reference.start : reference.end].strip("[]") and label[-1] == "]"
    if whole and reference.ids and not reference.dangling and HAS_ID.search(label):
        return Reference(*link, reference.ids)
    return None
