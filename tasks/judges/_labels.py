"""Turns the log-probabilities of a reply's tokens into a probability for each value that a key can have.

Values of a key differ in one of their first tokens. If an alternative token leads to one value only, its probability
counts for that value. If it leads to several values (such as a quotation mark) and the model wrote it, the next token
decides; if the model did not write it, its probability is dropped. Alternatives that begin no value are dropped too.
The remaining probabilities are scaled to a sum of 1. Left out: what the values mean.
"""

import json
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tasks.engines.generator import Reply, Token

RULES = 1  # raised when the same reply gives a different distribution
_DECODER = json.JSONDecoder(strict=False)  # grammars allow raw control characters in strings


def distribution(reply: Reply, key: str, values: Sequence[str]) -> dict[str, float] | None:
    """Probability of each value of a key in the reply's outermost object. They sum to 1.

    The token that was drawn may be missing from its list of alternatives. Its probability is then all that the list
    leaves, which is an upper bound.

    Args:
        values: Every value that the key can have, without duplicates.

    Returns:
        None if the reply has no log-probabilities, or if the key is missing or has a different value.
    """
    at = _value_start(reply.text, key)
    if at is None:
        return None
    values = tuple(values)
    if not reply.text.startswith(_encoded(values), at):
        return None
    credit = dict.fromkeys(values, 0.0)
    weight = 1.0  # probability of the part of the value that was written so far
    for token, start in _from(reply, at):
        if not token.top:
            return None
        before, written = reply.text[start:at], reply.text[at:start]  # one of the two is empty
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
    """Probability of each text at the token's position. Several tokens can have the same text."""
    chances: dict[str, float] = {}
    for text, log_p in token.top:
        chances[text] = chances.get(text, 0.0) + math.exp(log_p)
    if token.text not in chances:
        chances[token.text] = max(0.0, 1 - sum(chances.values()))
    return chances


@lru_cache
def _encoded(values: tuple[str, ...]) -> tuple[str, ...]:
    """The values as JSON."""
    return tuple(map(json.dumps, values))


@lru_cache(maxsize=4096)  # a model's alternatives are the same few in nearly all replies
def _led_to(text: str, values: tuple[str, ...]) -> tuple[str, ...]:
    """The values that a reply can still have if `text` stands where the value begins."""
    codes = zip(values, _encoded(values), strict=True)
    return tuple(value for value, code in codes if code.startswith(text) or text.startswith(code))


def _value_start(text: str, key: str) -> int | None:
    """Where the value of a key in the outermost object begins."""
    try:
        at = _skip(text, text.index("{") + 1)
        while True:
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, text.index(":", at) + 1)
            if name == key:
                return at
            _, at = _DECODER.raw_decode(text, at)
            at = _skip(text, text.index(",", at) + 1)
    except ValueError:  # raised by `index` and by the decoder
        return None


def _skip(text: str, at: int) -> int:
    return len(text) - len(text[at:].lstrip())


def _from(reply: Reply, at: int) -> Iterator[tuple[Token, int]]:
    """The tokens from the one that contains character `at`, each with its start.

    Tokens are counted from the end of the reply: free text may precede the value, and a token that is only a part of a
    character has no text to count.
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
