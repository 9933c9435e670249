"""Words with their places and stems, and how many words two texts share. Tuned to English.

Left out: scripts without spaces between words. A run of them is one word, so comparisons find no match there instead of
a wrong one. `overlap.py` also reads these scripts.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

WORD = re.compile(r"[^\W_]+(?:['’](?:s|t|re|ve|ll|d|m)\b)?")
# Words without meaning of their own: scikit-learn's list.
STOP_WORDS = frozenset(
    """
    a about above across after afterwards again against all almost alone along already also although always am among
    amongst amoungst amount an and another any anyhow anyone anything anyway anywhere are around as at back be
    became because become becomes becoming been before beforehand behind being below beside besides between beyond
    bill both bottom but by call can cannot cant co con could couldnt cry de describe detail do done down due during
    each eg eight either eleven else elsewhere empty enough etc even ever every everyone everything everywhere
    except few fifteen fifty fill find fire first five for former formerly forty found four from front full further
    get give go had has hasnt have he hence her here hereafter hereby herein hereupon hers herself him himself his
    how however hundred i ie if in inc indeed interest into is it its itself keep last latter latterly least less
    ltd made many may me meanwhile might mill mine more moreover most mostly move much must my myself name namely
    neither never nevertheless next nine no nobody none noone nor not nothing now nowhere of off often on once one
    only onto or other others otherwise our ours ourselves out over own part per perhaps please put rather re same
    see seem seemed seeming seems serious several she should show side since sincere six sixty so some somehow
    someone something sometime sometimes somewhere still such system take ten than that the their them themselves
    then thence there thereafter thereby therefore therein thereupon these they thick thin third this those though
    three through throughout thru thus to together too top toward towards twelve twenty two un under until up upon
    us very via was we well were what whatever when whence whenever where whereafter whereas whereby wherein
    whereupon wherever whether which while whither who whoever whole whom whose why will with within without would
    yet you your yours yourself yourselves
    """.split()  # noqa: SIM905 - easier to read
)
SUFFIXES = ("ingly", "edly", "ing", "ies", "ied", "ed", "es", "ly", "s")
SHORTEST_STEM = 3
# Irregular past forms.
IRREGULAR = {
    past: verb
    for verb, pasts in {
        "arise": "arose arisen", "beat": "beaten", "become": "became", "begin": "began begun", "break": "broke broken",
        "bring": "brought", "build": "built", "buy": "bought", "catch": "caught", "choose": "chose chosen",
        "come": "came", "draw": "drew drawn", "drive": "drove driven", "eat": "ate eaten", "fall": "fell fallen",
        "feel": "felt", "find": "found", "fly": "flew flown", "forget": "forgot forgotten", "freeze": "froze frozen",
        "get": "got gotten", "give": "gave given", "go": "went gone", "grow": "grew grown", "hold": "held",
        "keep": "kept", "know": "knew known", "lead": "led", "learn": "learnt", "leave": "left", "lend": "lent",
        "lose": "lost", "make": "made", "mean": "meant", "meet": "met", "outsell": "outsold",
        "override": "overrode overridden", "overtake": "overtook overtaken", "overwrite": "overwrote overwritten",
        "pay": "paid", "rise": "rose risen", "run": "ran", "say": "said", "see": "saw seen", "sell": "sold",
        "send": "sent", "show": "shown", "shrink": "shrank shrunk", "sleep": "slept", "speak": "spoke spoken",
        "spend": "spent", "stand": "stood", "take": "took taken", "teach": "taught", "tell": "told",
        "think": "thought", "win": "won", "write": "wrote written",
    }.items()
    for past in pasts.split()
}  # fmt: skip
DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")  # ideographs and syllables
NEGATION = frozenset({"not", "no", "never", "without", "nor", "cannot", "neither"})


@dataclass(frozen=True, slots=True)
class Word:
    """One word: as written, lower-cased, its stem, and its place."""

    text: str
    stem: str
    start: int
    end: int

    @property
    def past(self) -> bool:
        """Whether it looks like the past tense of a verb."""
        return self.text.endswith("ed") or self.text in IRREGULAR

    @property
    def content(self) -> bool:
        """Whether it is a content word."""
        return self.text not in STOP_WORDS and (len(self.text) > 1 or self.text.isdigit())


def lower(text: str) -> str:
    """The text in lower case, character by character. Patterns that ignore case take several times as long."""
    return text.replace("İ", "i").lower()


def words(text: str, offset: int = 0) -> list[Word]:
    """The words of a text in order; `offset` is added to their places."""
    found = []
    for match in WORD.finditer(text):
        word = match.group().casefold()
        found.append(Word(word, stem(word), offset + match.start(), offset + match.end()))
    return found


def distinct(text: str) -> set[str]:
    """The distinct words of a text, without creating a `Word` for each, because chunks are long."""
    return {*WORD.findall(text.casefold())}


def stems_of(text: str) -> frozenset[str]:
    """Stems of the content words of a text."""
    found = distinct(text) - STOP_WORDS
    return frozenset(stem(word) for word in found if len(word) > 1 or word.isdigit())


def stems(some: Sequence[Word]) -> frozenset[str]:
    """Stems of the content words among `some`."""
    return frozenset(word.stem for word in some if word.content)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A crude stem: the same for "reduces", "reduced" and "reducing", and for "company" and "companies"."""
    word = IRREGULAR.get(word, word.replace("’", "'").removesuffix("'s"))
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= SHORTEST_STEM and not word.endswith("ss"):
            word = word.removesuffix(suffix)
            break
    if word.endswith(("e", "y")) and len(word) > SHORTEST_STEM:
        word = word[:-1]
    return word[:-1] if len(word) > SHORTEST_STEM and word[-1] == word[-2] and not word[-1].isdigit() else word


def coverage(some: frozenset[str], other: frozenset[str]) -> float:
    """Share of the first set that the second contains, in [0, 1]; 0 if the first is empty."""
    return len(some & other) / len(some) if some else 0.0
