"""Finds the kind of a sentence: a claim, or a kind that is neither judged nor scored (docs/methods.md#claims).

The form decides (a heading, a colon, a question mark), and so do phrases of the language (`languages.yaml`; for English
refusals `tasks/text/declines.py`). A sentence that also states something is a claim.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import yaml

from tasks.core.types import Kind
from tasks.text import declines

RULES = 1  # raised when the same sentence gets a different kind
LONGEST = 300  # characters; a longer sentence states something
_NEVER = re.compile("(?!)")
_EDGE = r"[\s\W_]*"
_QUESTION = re.compile(r"[?？؟][\s\"'”’»)\]*_]*\W*$")
_COLON = re.compile(r"[:：]\W*$")
_ENDS = re.compile(r"[.!?…。！？:：;；][\s\"'”’»)\]*_]*$")
_ADVERSATIVE = re.compile(
    r"[,;–—]\s*(?:but|however|though|although|while|pero|sin embargo|aunque|aber|allerdings|jedoch|mais|cependant|"
    r"maar|ma|mas)\b|が、|ですが|ものの|，但|，不过|但是",
    re.IGNORECASE,
)
_REF = r"(?:\\?\[\^?#?(?:ids?\s*:\s*)?[\w.:#-]{1,40}\\?\]|【[^】]{1,40}】|［[^］]{1,20}］|(?<=\w{3})\^\d|[¹²³⁴⁵⁶⁷⁸⁹])"
_SYMBOL = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u200d]+")
_LETTERS = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W_]+")
_OFFER = re.compile(
    r"^\W*(?:sorry|unfortunately|sadly|hmm+|well|oh|i(?:['’]m| am) (?:so |very )?(?:sorry|afraid)(?: but)?|but)\W*",
    re.I,
)


# The order matters: "see you" is not a pointer.
_BY_PHRASES: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("lead-in", ("lead_in",)),
    ("greeting", ("whole_greeting", "greeting")),
    ("pointer", ("pointer",)),
)


class Language:
    """Phrases of one language, compiled on first use."""

    def __init__(self, phrases: dict[str, Any]) -> None:
        self._phrases = phrases

    def fits(self, kind: str, text: str) -> bool:
        """Whether a sentence begins with a phrase of this kind; see `languages.yaml`."""
        return self._compiled.get(kind, _NEVER).match(text.lower()) is not None

    def unopened(self, text: str) -> str | None:
        """The sentence without an opener such as "Hi,"; None if it has no opener."""
        opened = self._compiled.get("opener", _NEVER).match(text)
        return text[opened.end() :] if opened else None

    def points(self, before: str) -> bool:
        """Whether a text sends the reader to the reference that follows it."""
        return self._compiled.get("points", _NEVER).search(before.lower()) is not None

    @cached_property
    def _compiled(self) -> dict[str, re.Pattern[str]]:
        """A pattern for each kind with phrases in this language. Lower-case patterns skip alternatives fast."""
        found = {}
        documents = self._phrases.get("documents", "(?!)")
        for kind, listed in self._phrases.items():
            if kind in {"source", "documents"} or not listed:
                continue
            body = "|".join(f"(?:{p})" for p in ([listed] if isinstance(listed, str) else listed))
            body = body.replace("{doc}", documents).replace("{ref}", _REF).replace("~", "['’]")
            whole = kind in {"whole_greeting", "meta", "polar"}
            word = kind in {"spoken", "reports", "goes_on"}
            text = rf"{_EDGE}(?:{body}){_EDGE}$" if whole else rf"(?:{body})(?!\w)" if word else rf"{_EDGE}(?:{body})"
            # An opener is matched in the original text, where its end is used as a position.
            flags = re.IGNORECASE if kind == "opener" else re.NOFLAG
            found[kind] = re.compile(rf"(?:{body})\s*\Z" if kind == "points" else text, flags)
        return found

    @property
    def source(self) -> tuple[str, str]:
        """Nouns that replace one reference, and several references, in a sentence."""
        one, several = self._phrases["source"]
        return one, several


@cache
def languages() -> dict[str, Language]:
    """The available languages, by ISO 639 code."""
    read = yaml.safe_load((Path(__file__).parent / "languages.yaml").read_text(encoding="utf-8"))
    return {code: Language(phrases) for code, phrases in read.items()}


@lru_cache(maxsize=64)  # nearly all sentences of a night have the same few
def known(*codes: str | None) -> tuple[Language, ...]:
    """The available phrases of these languages."""
    return tuple(languages()[code] for code in dict.fromkeys(codes) if code in languages())


def kind_of(text: str, codes: Iterable[str | None]) -> Kind:
    """The kind of a sentence in running text.

    Args:
        text: Without markup and references.
        codes: Its language, and other possible languages.
    """
    text = _SYMBOL.sub("", text).strip()
    if len(text) > LONGEST or not _LETTERS.search(text):
        return "claim"
    spoken = known(*codes)
    if _QUESTION.search(text):
        return "question"
    kind = _phrased(text, spoken)
    rest = next((rest for language in spoken if (rest := language.unopened(text)) is not None), None)
    if kind != "claim" or rest is None:
        return kind
    if _LETTERS.search(rest):
        return _phrased(rest, spoken)
    return "claim" if is_polar(text, codes) else "greeting"


def _phrased(text: str, spoken: Sequence[Language]) -> Kind:
    """The kind of a sentence by its phrases."""
    if _refuses(text, spoken):
        return "refusal"
    if _COLON.search(text):
        return "lead-in"
    for kind, keys in _BY_PHRASES:
        if any(language.fits(key, text) for language in spoken for key in keys):
            return kind
    return "claim"


def _refuses(text: str, spoken: Sequence[Language]) -> bool:
    found = declines.declined(text)
    if found is not None:
        return len(_WORD.findall(_OFFER.sub("", found.rest))) < 3
    if not any(language.fits("refusal", text) for language in spoken):
        return False
    turn = _ADVERSATIVE.search(text)
    rest = text[turn.end() :] if turn else ""
    return len(rest) < 12 or any(language.fits("refusal", rest) for language in spoken)


def ends(text: str) -> bool:
    """Whether a text ends like a sentence or a lead-in."""
    return _ENDS.search(text) is not None


def is_polar(text: str, codes: Iterable[str | None]) -> bool:
    """Whether a text is a bare "yes" or "no", which means nothing without its question."""
    return any(language.fits("polar", text) for language in known(*codes))


def is_empty_lead(text: str, codes: Iterable[str | None]) -> bool:
    """Whether a lead-in says nothing about what it introduces: "Here are the steps:"."""
    return any(language.fits("meta", text) for language in known(*codes))
