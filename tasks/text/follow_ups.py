"""Recognizes questions that depend on earlier questions of a conversation. Tuned to English.

A question in a script without spaces between words counts as independent, as does a question in another language,
unless it is a single word.
"""

from tasks.text.words import DENSE, STOP_WORDS, WORD

LEADS = frozenset({"and", "but", "or", "so", "then", "also", "why", "else"})
REFERS = frozenset(
    """
    it its itself they them their theirs themselves he him his she her hers that this those these one ones there
    same other others another else former latter both neither either such
    """.split()  # noqa: SIM905 - easier to read
)


def is_follow_up(question: str) -> bool:
    """Whether a question seems to depend on earlier ones: by a leading "and", a pronoun, or too few other words."""
    words = [word.casefold() for word in WORD.findall(question)]
    if not words or DENSE.search(question):
        return False
    about = words[:2] in (["what", "about"], ["how", "about"])
    short = len(words) <= 2 and any(word in STOP_WORDS for word in words)
    return words[0] in LEADS or about or short or len(words) == 1 or not REFERS.isdisjoint(words)
