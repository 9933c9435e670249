"""Nonces: four letters that tie a reply to its request, to detect a proxy that mixes up replies.

The schema of each request requires its own letters in the reply's last key. They add no tokens to the prompt, keep
prefix caches valid, and change nothing that is written before them. Left out: handling a reply without them
(`server.py`).
"""

import re
from collections.abc import Mapping
from typing import Any

import xxhash

from tasks.engines.generator import Prompt, Reply, Token

NONCE = "nonce"
LETTERS = 4
_END = re.compile(r'\s*"nonce"\s*:\s*"([a-z]*)"\s*\}\s*')


class MixedUpError(Exception):
    """A reply does not repeat the nonce of its request."""


def nonce(prompt: Prompt) -> str:
    """The letters of a prompt, derived from its text. Two prompts share them with a probability of 1 in 456,976."""
    number = xxhash.xxh3_64_intdigest(f"{prompt.system}\0{prompt.user}".encode(errors="surrogatepass"))
    return "".join(chr(ord("a") + number // 26**place % 26) for place in range(LETTERS))


def with_nonce(prompt: Prompt) -> Mapping[str, object]:
    """The prompt's schema with the nonce as one more key."""
    schema: Mapping[str, Any] = prompt.schema
    own = {NONCE: {"type": "string", "enum": [nonce(prompt)]}}
    return {
        **schema,
        "properties": {**schema.get("properties", {}), **own},
        "required": [*schema.get("required", ()), NONCE],
    }


def without_nonce(prompt: Prompt, reply: Reply) -> Reply:
    """The reply without its nonce. An empty or truncated reply has no nonce and is returned unchanged.

    Raises:
        MixedUpError: The nonce is missing or different.
    """
    if reply.finish == "length" or not reply.text.strip():
        return reply
    kept, _, end = reply.text.rpartition(",")
    found = _END.fullmatch(end)
    if found is None or found[1] != nonce(prompt):
        raise MixedUpError
    tokens: list[Token] = []
    length = 0
    for token in reply.tokens:
        if length + len(token.text) > len(kept):
            break
        tokens.append(token)
        length += len(token.text)
    if reply.tokens:
        tokens.append(Token(kept[length:] + "}", ()))
    return Reply(kept + "}", reply.finish, tuple(tokens))
