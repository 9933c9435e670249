"""What a reference names: from the inside of `[1, 3]` or `(doc-3.md)` to chunks of the trace.

Decides too whether something that has the shape of a reference is one: a year, an interval or an abbreviation in
brackets is not. Leaves out where references stand in a text: that is `citations.py`.
"""

import re
from collections.abc import Mapping, Sequence

from tasks.core.types import Chunk

SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
NUMBERS = r"\d{1,9}(?:\s*[,;–—-]\s*\d{1,9}|\]\s*[–—-]\s*\[\d{1,9})*"
HAS_ID = re.compile(r"[\d./_-]")
MAX_RANGE = 50
_PART = re.compile(r"(\d+)(?:[\s\]]*[–—-][\s\[]*(\d+))?")
_LIST = re.compile(r"\s*(?:[,;|&]|\band\b|\bund\b)\s*")
_NUMBER_LIST = re.compile(NUMBERS)
_LABEL = re.compile(
    r"(?P<word>docs?|documents?|sources?|chunks?|passages?|snippets?|dokumente?|quellen?|ids?|refs?|references?|files?|"
    r"contexts?|citations?)(?:(?P<mark>\s*[:#]\s*|\.?\s+|[-_.])(?P<id>.+)|\d+)",
    re.IGNORECASE,
)
_ID = re.compile(r"\S*[\d./]\S*")
_FILE = re.compile(r"[^\s:]+\.(?:md|markdown|txt|pdf|html?|docx?|pptx?|xlsx?|csv|rst|adoc|json|xml)", re.IGNORECASE)
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")
_SOURCE_WORDS = ("doc", "dok", "source", "quelle", "chunk", "passage", "snippet")
_TOKEN = re.compile(r"[^\s\[\](){}<>,;\"'|*`]+")
_DIGITS = str.maketrans(SUPERSCRIPTS, "0123456789")

Named = tuple[tuple[str, ...], tuple[str, ...]]
"""Chunk ids, and references that name no chunk, as written."""


class Resolver:
    """Finds the chunks that a reference names. Made once per trace; remembers what it was asked.

    By chunk id, else by document id (also without directory or extension, in any case; all chunks of the document),
    else a number by rank, or by position where no chunk has a rank. Where chunk ids are numbers themselves, a number
    is a chunk id and nothing else.
    """

    def __init__(self, chunks: Sequence[Chunk], notes: Mapping[str, str] | None = None) -> None:
        self._chunks = chunks
        self._ids = {c.chunk_id for c in chunks}
        self._notes = notes or {}
        self._numbered = {len(c.chunk_id) for c in chunks if c.chunk_id.isdecimal()}  # digits of numeric chunk ids
        self._by_document: dict[str, list[str]] | None = None
        self._by_number: dict[int, list[str]] | None = None
        self._by_label: dict[str, tuple[str, ...]] | None = None  # only labels whose notes name a chunk
        self._shapes: frozenset[str] | None = None
        self._known: dict[tuple[str, str], Named | None] = {}

    def ids(self, name: str) -> tuple[str, ...]:
        """The chunks that one name stands for; empty if none does."""
        if name in self._ids:
            return (name,)
        if self._by_document is None:
            self._by_document = _by_document(self._chunks)
        folded = name.casefold()
        if not name.isdecimal():
            return tuple(next((self._by_document[f] for f in _forms(folded) if f in self._by_document), ()))
        if len(name) > 9:
            return ()
        number = int(name)
        if self._numbered:
            return (str(number),) if str(number) in self._ids else ()
        if found := self._by_document.get(folded):
            return tuple(found)
        if self._by_number is None:
            self._by_number = {}
            ranked = any(c.rank is not None for c in self._chunks)
            for position, chunk in enumerate(self._chunks, 1):
                place = chunk.rank if ranked else position
                if place is not None:
                    self._by_number.setdefault(place, []).append(chunk.chunk_id)
        return tuple(self._by_number.get(number, ()))

    def read(self, style: str, ref: str) -> Named | None:
        """What the inside of a reference of a style names; None if this is no reference after all."""
        at = (style, ref)
        if at not in self._known:
            self._known[at] = self._read(style, ref.strip())
        return self._known[at]

    def _read(self, style: str, ref: str) -> Named | None:  # noqa: PLR0911 (one case a style)
        match style:
            case "numeric":
                return self._numbers(ref)
            case "superscript":
                return self._raised(ref.translate(_DIGITS).replace("⁻", "-").replace("˒", ","))
            case "footnote":
                return self._footnote(ref)
            case "fullwidth":
                return self._fullwidth(ref)
            case "file" if not all(_may_stand_in_parentheses(p) for p in _LIST.split(ref)):
                return None
            case "doc" | "id" | "file":
                return self._names(ref)
        return self._names(ref) or ((), (ref,))

    def _raised(self, digits: str) -> Named | None:
        if digits.isdecimal() and not self.ids(digits) and all(self.ids(d) for d in digits):
            digits = ",".join(digits)  # ¹² with two chunks is 1 and 2
        return self._numbers(digits)

    def _numbers(self, ref: str) -> Named | None:
        if ids := self.ids(ref):  # by far the most frequent case: one number, and it is known
            return ids, ()
        found: list[str] = []
        missing: list[str] = []
        references = False
        for match in _PART.finditer(ref):
            low, high = int(match[1]), int(match[2] or match[1])
            numbers = [str(n) for n in range(low, high + 1)] if low < high < low + MAX_RANGE else [match[0]]
            got = [self.ids(n) for n in numbers]
            if any(got):
                missing += [n for n, ids in zip(numbers, got, strict=True) if not ids]
                found += [i for ids in got for i in ids]
            elif low == 0:
                return None  # an index or an interval: nothing is numbered 0 unless a chunk says so
            else:
                missing.append(match[0])
                references |= len(match[1]) < 4 or len(match[1]) in self._numbered
        # Of numbers of four digits or more, none known: years, unless chunk ids are that long.
        return (tuple(found), tuple(missing)) if found or references else None

    def _names(self, ref: str) -> Named | None:
        if whole := self._name(ref):
            return whole, ()
        if _NUMBER_LIST.fullmatch(ref):
            return self._numbers(ref)
        found: list[str] = []
        missing: list[str] = []
        noise = False
        for part in _LIST.split(ref):
            if ids := self._name(part):
                found += ids
            elif part.isdecimal() or self._is_id(part):
                missing.append(part)
            else:
                noise = True
        # A page beside a known document is no reference; a word that is no id makes an unknown whole none either.
        return None if not found and (noise or not missing) else (tuple(found), tuple(missing))

    def _name(self, part: str) -> tuple[str, ...]:
        """One name, also behind a label ("Source 7"); a number only where the label stands apart from it."""
        if ids := self.ids(part):
            return ids
        label = _LABEL.fullmatch(part)
        if label is None or not label["id"] or label["mark"] in {"-", "_", "."}:
            return ()
        if ids := self.ids(label["id"]):
            return ids
        numbers = self._numbers(label["id"]) if _NUMBER_LIST.fullmatch(label["id"]) else None
        return numbers[0] if numbers else ()

    def _is_id(self, part: str) -> bool:
        """It looks like the id of a chunk, though no chunk has it."""
        label = _LABEL.fullmatch(part)
        if _FILE.fullmatch(part) or (label and (not label["id"] or _ID.fullmatch(label["id"]))):
            return True
        if self._shapes is None:
            ids = [i for c in self._chunks for i in (c.chunk_id, c.doc_id) if i and not i.isdecimal()]
            self._shapes = frozenset(_shape(f) for i in ids for f in _forms(i.casefold()))
        shape = _shape(part.casefold())
        return "0" in shape and shape in self._shapes

    def _footnote(self, label: str) -> Named:
        if self._by_label is None:
            self._by_label = _read_notes(self._notes, self._chunks, self)
        ids = self._by_label.get(label, ())
        # Where notes name the chunks, the labels are just their order: a note that names none leaves nothing.
        if not self._by_label:
            ids = self._name(label)
        return (ids, ()) if ids else ((), (label,))

    def _fullwidth(self, ref: str) -> Named | None:
        number, dagger, source = ref.partition("†")
        if number.isdecimal():
            return self._numbers(number) or ((), (ref,))
        if not dagger:
            return self._names(ref)
        ids = self._name(number) or self._name(source)
        return (ids, ()) if ids else ((), (ref,))


def _may_stand_in_parentheses(part: str) -> bool:
    """Parentheses hold all sorts of things: a number, a bare word or "ID 17" in them is no reference."""
    label = _LABEL.fullmatch(part)
    return (
        not part.isdecimal()
        and HAS_ID.search(part) is not None
        and (label is None or label["word"].lower().startswith(_SOURCE_WORDS))
    )


def _forms(name: str) -> list[str]:
    """A case-folded name as it is, without its directories, and without its extension."""
    base = name.rstrip("/").rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
    forms = (name, base, _EXTENSION.sub("", base))
    return [f for i, f in enumerate(forms) if f and (i == 0 or not f.isdecimal())]


def _by_document(chunks: Sequence[Chunk]) -> dict[str, list[str]]:
    """Chunk ids by the names of their documents. A full name beats a shortened one."""
    table: dict[str, list[str]] = {}
    full = [(name.casefold(), c.chunk_id) for c in chunks for name in (c.chunk_id, c.doc_id) if name]
    for name, chunk_id in full:
        table.setdefault(name, [])
        if chunk_id not in table[name][-1:]:
            table[name].append(chunk_id)
    short: dict[str, list[str]] = {}
    for name, chunk_id in full:
        for form in _forms(name)[1:]:
            if form not in table and chunk_id not in short.setdefault(form, [])[-1:]:
                short[form].append(chunk_id)
    return table | short


def _shape(name: str) -> str:
    return re.sub(r"\d+", "0", name)


def _read_notes(notes: Mapping[str, str], chunks: Sequence[Chunk], resolver: Resolver) -> dict[str, tuple[str, ...]]:
    """The chunks that each footnote's text names, by document id or title."""
    titles = [(c.title.casefold(), c.chunk_id) for c in chunks if c.title and len(c.title) > 3]
    named: dict[str, tuple[str, ...]] = {}
    for label, note in notes.items():
        text = note[:1000].strip()
        tokens = [t.rstrip(".:") for t in _TOKEN.findall(text)]
        ids = resolver.ids(text) or next(
            (i for t in tokens if not t.isdecimal() and HAS_ID.search(t) and (i := resolver.ids(t))), ()
        )
        folded = text.casefold()
        if ids := ids or tuple(chunk_id for title, chunk_id in titles if title in folded):
            named[label] = ids
    return named
