"""Resolves references: from the inside of `[1, 3]` or `(doc-3.md)` to chunks of the trace.

It also decides whether a match is a reference at all: a year, an interval or an abbreviation in brackets is not.
`citations.py` finds the matches.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from tasks.core.types import Chunk

SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
NUMBERS = r"\d{1,9}(?:\s*[,;–—-]\s*\d{1,9}|\]\s*[–—-]\s*\[\d{1,9})*"
HAS_ID = re.compile(r"[\d./_-]")
MAX_RANGE = 50
_PART = re.compile(r"(\d+)(?:[\s\]]*[–—-][\s\[]*(\d+))?")
_AND = r"(?:[,;|&、，]|\band\b|\bor\b|\bund\b|\by\b|\bet\b|\be\b|\ben\b|および|と|和)"
_LIST = re.compile(rf"\s*{_AND}\s*")
_NUMBER_LIST = re.compile(NUMBERS)
# "see" and "Source:" before a name in parentheses.
_SEE = re.compile(
    r"(?:see(?: also)?|cf\.?|siehe(?: auch)?|vgl\.?|véase|ver|voir|vedi|zie|參照|参照|参见|出典|来源|参考)"
    r"\s*[:：]?\s*",
    re.IGNORECASE,
)
_SOURCE_LIST = re.compile(
    r"(?:sources?|quellen?|fuentes?|fonti|fonte|bronn?en|bron|docs?|documents?|dokumente?|documentos?|passages?|chunks?|"
    r"snippets?|refs?|references?|出典|来源|参考|資料|资料|引用)\s*(?:[:：#]|no\.?|nr\.?|n\.º)?\s*"
    rf"(?P<numbers>#?\d{{1,3}}(?:\s*(?:{_AND}|[–—-])\s*#?\d{{1,3}})*)",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?P<word>docs?|documents?|sources?|chunks?|passages?|snippets?|dokumente?|quellen?|ids?|refs?|references?|files?|"
    r"contexts?|citations?|fuentes?|documentos?|sources?|fonti|fonte|bron|出典|来源|資料|资料|参考)"
    r"(?:(?P<mark>\s*[:#]\s*|\.?\s+|[-_.])(?P<id>.+)|\d+)",
    re.IGNORECASE,
)
_ID = re.compile(r"\S*[\d./]\S*")
_PHONE = re.compile(r"\+?\d[\d\s/-]{5,}\d")
_FILE = re.compile(r"[^\s:]+\.(?:md|markdown|txt|pdf|html?|docx?|pptx?|xlsx?|csv|rst|adoc|json|xml)", re.IGNORECASE)
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")
_SOURCE_WORDS = ("doc", "dok", "source", "quelle", "chunk", "passage", "snippet")
_TOKEN = re.compile(r"[^\s\[\](){}<>,;\"'|*`]+")
_DIGITS = str.maketrans(SUPERSCRIPTS + "０１２３４５６７８９", "0123456789" * 2)
_TRIM = " \t\r\n*_`<>[]()（）「」『』【】:：.。,;；–—-\"“”'"

Named = tuple[tuple[str, ...], tuple[str, ...]]
"""Chunk ids, and references that name no chunk, as written."""


def plain_digits(text: str) -> str:
    """Replace superscript and full-width digits by plain ones."""
    return text.translate(_DIGITS)


class Resolver:
    """Finds the chunks that a reference names. Made once per trace; caches its results.

    A name is looked up as a chunk id, then as a document id or title (also without directory, extension or anchor, in
    any case; it names all chunks of the document). A number is then a rank, or a position if no chunk has a rank. If
    chunk ids are numbers with the same number of digits, a number can only be a chunk id.

    Args:
        notes: Footnote definitions: label to text.
        labels: Chunk ids for the numbers in the answer's own list of sources.
        first: Number of the first chunk in this answer, if ranks or positions start elsewhere.
    """

    def __init__(
        self,
        chunks: Sequence[Chunk],
        notes: Mapping[str, str] | None = None,
        labels: Mapping[str, tuple[str, ...]] | None = None,
        first: int | None = None,
    ) -> None:
        self._chunks = chunks
        self._ids = {c.chunk_id for c in chunks}
        self._notes = notes or {}
        self._labels = labels or {}
        ranks = [c.rank for c in chunks if c.rank is not None]
        self._shift = 0 if first is None else min(ranks, default=1) - first
        self._numbered = {len(c.chunk_id) for c in chunks if c.chunk_id.isdecimal()}  # lengths of numeric chunk ids
        self._known: dict[tuple[str, str], Named | None] = {}

    def ids(self, name: str) -> tuple[str, ...]:  # noqa: PLR0911 (one case a way to name a chunk)
        """The chunks that one name stands for; empty if there are none."""
        if name in self._ids:
            return (name,)
        folded = name.casefold()
        if not name.isdecimal():
            return tuple(next((self._by_document[f] for f in _forms(folded) if f in self._by_document), ()))
        if len(name) > 9:
            return ()
        number = int(name)
        if str(number) in self._labels:
            return self._labels[str(number)]
        if str(number) in self._ids:
            return (str(number),)
        if len(str(number)) in self._numbered:
            return ()
        if found := self._by_document.get(folded):
            return tuple(found)
        return tuple(self._by_number.get(number, ()))

    @cached_property
    def _by_document(self) -> dict[str, list[str]]:
        """Chunk ids by document name. Full names take precedence over shortened ones, and both over titles."""
        by_title: dict[str, list[str]] = {}
        by_short_name: dict[str, list[str]] = {}
        by_name: dict[str, list[str]] = {}
        for chunk in self._chunks:
            names = [name.casefold() for name in (chunk.chunk_id, chunk.doc_id) if name]
            titles = [chunk.title.casefold()] if chunk.title and len(chunk.title) > 3 else []
            short_names = [form for name in names for form in _forms(name)[1:]]
            for table, keys in ((by_title, titles), (by_short_name, short_names), (by_name, names)):
                for key in keys:
                    if chunk.chunk_id not in table.setdefault(key, [])[-1:]:
                        table[key].append(chunk.chunk_id)
        return by_title | by_short_name | by_name

    @cached_property
    def _by_number(self) -> dict[int, list[str]]:
        """Chunk ids by rank, or by position if no chunk has a rank."""
        ranked = any(c.rank is not None for c in self._chunks)
        found: dict[int, list[str]] = {}
        for position, chunk in enumerate(self._chunks, 1):
            place = chunk.rank if ranked else position
            if place is not None:
                found.setdefault(place - self._shift, []).append(chunk.chunk_id)
        return found

    @cached_property
    def _by_label(self) -> dict[str, tuple[str, ...]]:
        """Chunk ids by footnote label, for footnotes that name a document or a title."""
        read = {label: self.titled(note[:1000]) for label, note in self._notes.items()}
        return {label: ids for label, ids in read.items() if ids}

    @cached_property
    def _shapes(self) -> frozenset[str]:
        """Shapes of the ids of chunks and documents."""
        ids = [i for c in self._chunks for i in (c.chunk_id, c.doc_id) if i and not i.isdecimal()]
        return frozenset(_shape(f) for i in ids for f in _forms(i.casefold()))

    def read(self, style: str, ref: str) -> Named | None:
        """The chunks and unknown names inside a reference of this style; None if it is not a reference."""
        at = (style, ref)
        if at not in self._known:
            self._known[at] = self._read(style, ref.strip())
        return self._known[at]

    def _read(self, style: str, ref: str) -> Named | None:  # noqa: PLR0911 (one case a style)
        match style:
            case "numeric":
                return self._numbers(plain_digits(ref))
            case "superscript":
                return self._raised(plain_digits(ref).replace("⁻", "-").replace("˒", ","))
            case "footnote":
                return self._footnote(ref)
            case "fullwidth":
                return self._fullwidth(ref)
            case "doc" | "id" | "file":
                seen = _SEE.match(ref)
                ref = ref[seen.end() :] if seen else ref
                if numbers := _SOURCE_LIST.fullmatch(ref):
                    return self._numbers(_LIST.sub(",", plain_digits(numbers["numbers"])))
                if seen and _NUMBER_LIST.fullmatch(ref):  # "(see 2)" may be a page, so the number must be known
                    known = self._numbers(ref)
                    return known if known and not known[1] else None
                if style == "file" and not all(_may_stand_in_parentheses(p) for p in _LIST.split(ref)):
                    return None
                return self._names(ref)
        return self._names(ref) or ((), (ref,))

    def _raised(self, digits: str) -> Named | None:
        if digits.isdecimal() and not self.ids(digits) and all(self.ids(d) for d in digits):
            digits = ",".join(digits)  # with two chunks, ¹² means 1 and 2
        return self._numbers(digits)

    def titled(self, text: str, least: float = 0.0) -> tuple[str, ...]:
        """The chunks whose title or document a line names, possibly within other text. The longest title counts.

        Args:
            least: Minimum share of the line that the name takes.
        """
        plain = text.strip(_TRIM)
        if ids := () if plain.isdecimal() else self.ids(plain):
            return ids
        tokens = [t.rstrip(".:") for t in _TOKEN.findall(text) if len(t) >= least * len(plain)]
        if ids := next((i for t in tokens if not t.isdecimal() and HAS_ID.search(t) and (i := self.ids(t))), ()):
            return ids
        folded = plain.casefold()
        titles = {c.title.casefold() for c in self._chunks if c.title and len(c.title) > 3}
        longest = max((t for t in titles if t in folded and len(t) >= least * len(plain)), key=len, default=None)
        return tuple(c.chunk_id for c in self._chunks if longest and c.title and c.title.casefold() == longest)

    def _numbers(self, ref: str) -> Named | None:
        ref = ref.replace("#", "")
        if ids := self.ids(ref):  # by far the most frequent case: one known number
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
                return None  # an index or an interval: no chunk has the number 0
            else:
                missing.append(match[0])
                references |= len(match[1]) < 4 or len(match[1]) in self._numbered
        # Unknown numbers of four digits or more are years, unless chunk ids are that long.
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
        # Unknown parts are ignored if others are known. Without known parts, a word that is no id rules out a
        # reference.
        return None if not found and (noise or not missing) else (tuple(found), tuple(missing))

    def _name(self, part: str) -> tuple[str, ...]:
        """The chunks of one name, optionally after a label ("Source 7"). A number must be separate from its label."""
        if ids := self.ids(part):
            return ids
        label = _LABEL.fullmatch(part)
        if label is None or not label["id"] or label["mark"] in {"-", "_", "."}:
            return ()
        if ids := self.ids(label["id"]):
            return ids
        named = label["id"].partition(":")[0].strip()  # "Source 1: Guide"
        numbers = self._numbers(named) if _NUMBER_LIST.fullmatch(named) else None
        return numbers[0] if numbers else ()

    def _is_id(self, part: str) -> bool:
        """Whether the text looks like a chunk id, although no chunk has it."""
        label = _LABEL.fullmatch(part)
        if _PHONE.fullmatch(part):
            return False
        if _FILE.fullmatch(part) or (label and (not label["id"] or _ID.fullmatch(label["id"]))):
            return True
        shape = _shape(part.casefold())
        return "0" in shape and shape in self._shapes

    def _footnote(self, label: str) -> Named:
        ids = self._by_label.get(label, ())
        if not ids:  # by its number, unless another note names that chunk
            named = {i for others in self._by_label.values() for i in others}
            ids = tuple(i for i in self._name(label) if i not in named)
        return (ids, ()) if ids else ((), (label,))

    def _fullwidth(self, ref: str) -> Named | None:
        number, dagger, source = ref.partition("†")
        # 【message:source†name】: the document's name takes precedence over the number.
        if dagger and ":" in number:
            if ids := self.ids(number) or self._name(source):
                return ids, ()
            number = number.rpartition(":")[2].strip()
        if number.isdecimal():
            return self._numbers(number) or ((), (ref,))
        if not dagger:
            return self._names(ref)
        ids = self._name(number) or self._name(source)
        return (ids, ()) if ids else ((), (ref,))


def _may_stand_in_parentheses(part: str) -> bool:
    """Whether a text in parentheses can be a reference; a number, a bare word or "ID 17" can't."""
    label = _LABEL.fullmatch(part)
    return (
        not part.isdecimal()
        and HAS_ID.search(part) is not None
        and (label is None or label["word"].lower().startswith(_SOURCE_WORDS))
    )


def _forms(name: str) -> list[str]:
    """A case-folded name in full, without its directories, and without its extension."""
    base = name.rstrip("/").rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
    file = base.partition("#")[0]
    forms = (name, name.partition("#")[0], base, file, _EXTENSION.sub("", file))
    return [f for i, f in enumerate(forms) if f and (i == 0 or not f.isdecimal())]


def _shape(name: str) -> str:
    return re.sub(r"\d+", "0", name)
