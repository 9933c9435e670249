"""How sure a model was of the value that it wrote: from the alternatives of each token to a distribution over values.

The values of a key differ in some first token. The probability of a token counts for the value that it alone leads to;
a token that leads to several, such as a quotation mark, is followed to the next one where it was written, and counts
for none where it was not. So is every alternative that begins none of the
values, and what is credited is then made to add up to 1. Left out: what the values mean.
"""

import json
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tasks.engines.generator import Reply, Token

RULES = 1  # raised when the same reply gives another distribution
_DECODER = json.JSONDecoder(strict=False)  # grammars let control characters stand in a text as they are


def distribution(reply: Reply, key: str, values: Sequence[str]) -> dict[str, float] | None:
    """Probability of each value of a key of the reply's outermost object, together 1.

    A token that was drawn though it is not among the alternatives listed for its place counts as likely as all that
    the list leaves over, which is the most that it can be.

    Args:
        values: Every value that the key may have; none twice.

    Returns:
        None where the reply has no log-probabilities, or the key is not there with one of the values.
    """
    at = _value_start(reply.text, key)
    if at is None:
        return None
    values = tuple(values)
    if not reply.text.startswith(_encoded(values), at):
        return None
    credit = dict.fromkeys(values, 0.0)
    weight = 1.0  # probability of what was written of the value so far
    for token, start in _from(reply, at):
        if not token.top:
            return None
        before, written = reply.text[start:at], reply.text[at:start]  # one of them is empty
        chances = _chances(token)
        for text, p in chances.items():
            leads = _led_to(written + text[len(before) :], values) if text.startswith(before) else []
            if len(leads) == 1:
                credit[leads[0]] += weight * p
        if len(_led_to(written + token.text[len(before) :], values)) < 2:
            total = sum(credit.values())
            return {value: p / total for value, p in credit.items()} if total > 0 else None
        weight *= chances[token.text]
    return None


def _chances(token: Token) -> dict[str, float]:
    """Probability of each text in the token's place; several tokens may have the same text."""
    chances: dict[str, float] = {}
    for text, log_p in token.top:
        chances[text] = chances.get(text, 0.0) + math.exp(log_p)
    if token.text not in chances:
        chances[token.text] = max(0.0, 1 - sum(chances.values()))
    return chances


@lru_cache
def _encoded(values: tuple[str, ...]) -> tuple[str, ...]:
    """How each value begins in a reply."""
    return tuple(map(json.dumps, values))


@lru_cache(maxsize=4096)  # a model's alternatives are the same few in nearly all replies
def _led_to(text: str, values: tuple[str, ...]) -> tuple[str, ...]:
    """The values that a reply may have that goes on with `text` where the value begins."""
    codes = zip(values, _encoded(values), strict=True)
    return tuple(value for value, code in codes if code.startswith(text) or text.startswith(code))


def _value_start(text: str, key: str) -> int | None:
    """Where the value of a key of the outermost object begins."""
    try:
        at = _skip(text, text.index("{") + 1)
        while True:
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, text.index(":", at) + 1)
            if name == key:
                return at
            _, at = _DECODER.raw_decode(text, at)
            at = _skip(text, text.index(",", at) + 1)
    except ValueError:  # of `index`, and of the decoder
        return None


def _skip(text: str, at: int) -> int:
    return len(text) - len(text[at:].lstrip())


def _from(reply: Reply, at: int) -> Iterator[tuple[Token, int]]:
    """The tokens from the one that writes character `at` on, each with where it starts.

    Counted from the end: before the value there may be free text, and a token that is a part of a character has no
    text of its own to count.
    """
    found: list[tuple[Token, int]] = []
    start = len(reply.text)
    for token in reversed(reply.tokens):
        if not reply.text.endswith(token.text, 0, start):
            return
        start -= len(token.text)
        found.append((token, start))
        if start <= at:
            yield from reversed(found)
            return
