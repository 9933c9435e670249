"""Four letters by which a reply names its request, so that a proxy that mixes replies up is noticed.

The schema of each request asks for its own letters in the reply's last key: they cost no token of the prompt, no prefix
of a cache, and nothing that is written before them changes. Left out: what a reply without them leads to (`server.py`).
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
    """The letters of a prompt, made of its text: the same in every run. Those of others are equal once in 456,976."""
    number = xxhash.xxh3_64_intdigest(f"{prompt.system}\0{prompt.user}".encode(errors="surrogatepass"))
    return "".join(chr(ord("a") + number // 26**place % 26) for place in range(LETTERS))


def with_nonce(prompt: Prompt) -> Mapping[str, object]:
    """The prompt's schema with one key more."""
    schema: Mapping[str, Any] = prompt.schema
    own = {NONCE: {"type": "string", "enum": [nonce(prompt)]}}
    return {
        **schema,
        "properties": {**schema.get("properties", {}), **own},
        "required": [*schema.get("required", ()), NONCE],
    }


def without_nonce(prompt: Prompt, reply: Reply) -> Reply:
    """The reply as the prompt's own schema has it. One that is empty or was cut off has no nonce, and stays as it is.

    Raises:
        MixedUpError: Another nonce, or none.
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
