r"""Fences: put texts of a trace into a prompt, between tags, as data.

A text may contain anything: an end tag, a chat template's control token such as `<|im_end|>` or `[INST]`, or an order
to the judge. Each character sequence that could end the fence or be read as a control token gets one backslash, and
`unescape` removes it: `<|im_end|>` becomes `<\|im_end|>`. Ordinary text, comparisons such as `<5`, and references such
as `[1]` and `[doc-7]` do not change. Left out: orders in plain words; only the system text can warn the model of them.
"""

import re
from collections.abc import Iterable

RULES = 2  # raised when the same text is rendered differently
# The beginning of a tag or a control token: `<` before anything but a space or a number, or before spaces and `/`; `[`
# before a name in capitals (Mistral's, GLM's), `[|` (EXAONE's), `]~` and `[e~[` (MiniMax's). The backslash goes behind
# the first character.
_BEGINS = r"<(?={0}(?:[^\s\d=\\-]|\s+/))|\[(?={0}(?:/?\w{{0,40}}?[A-Z]{{2}}\w{{0,40}}\]|\||e~\[))|\](?={0}~)"
_PLAIN = re.compile(_BEGINS.format(r"\\*"))
_ESCAPED = re.compile("(" + _BEGINS.format(r"\\+") + r")\\")


def block(name: str, text: str) -> str:
    """A text between `<name>` and `</name>`, each on its own line."""
    return f"<{name}>\n{escape(text)}\n</{name.partition(' ')[0]}>"


def blocks(name: str, texts: Iterable[str]) -> str:
    """Texts in order, each in a block numbered from 1: `<name 1>`, `<name 2>`."""
    return "\n".join(block(f"{name} {number}", text) for number, text in enumerate(texts, start=1))


def escape(text: str) -> str:
    """Put a backslash into everything that could be read as a tag or a control token."""
    return _PLAIN.sub(r"\g<0>\\", text)


def unescape(text: str) -> str:
    """Undo `escape`, for text that a model copied from a fence."""
    return _ESCAPED.sub(r"\1", text)
