r"""How texts of a trace enter a prompt: as data between tags, where nothing in them can be more than data.

A text may hold anything: an end tag, a chat template's control token such as `<|im_end|>` or `[INST]`, an order to the
judge. What could end the fence or be read as a control token gets one backslash, which `unescape` takes out again:
`<|im_end|>` becomes `<\|im_end|>`. Ordinary text, comparisons such as `<5` and references such as `[1]` and `[doc-7]`
stay as they are. Left out: orders in plain words, against which only the system text can warn the model.
"""

import re
from collections.abc import Iterable

RULES = 2  # raised when the same text is rendered otherwise
# What begins a tag or a control token: `<` before anything but a space or a number, or before spaces and `/`; `[`
# before a name in capitals (Mistral's, GLM's), `[|` (EXAONE's), `]~` and `[e~[` (MiniMax's). Only the first character
# is parted from the rest.
_BEGINS = r"<(?={0}(?:[^\s\d=\\-]|\s+/))|\[(?={0}(?:/?\w{{0,40}}?[A-Z]{{2}}\w{{0,40}}\]|\||e~\[))|\](?={0}~)"
_PLAIN = re.compile(_BEGINS.format(r"\\*"))
_ESCAPED = re.compile("(" + _BEGINS.format(r"\\+") + r")\\")


def block(name: str, text: str) -> str:
    """A text between `<name>` and `</name>`, each on a line of its own."""
    return f"<{name}>\n{escape(text)}\n</{name.partition(' ')[0]}>"


def blocks(name: str, texts: Iterable[str]) -> str:
    """Texts in order, each in a block that bears its number from 1: `<name 1>`, `<name 2>`."""
    return "\n".join(block(f"{name} {number}", text) for number, text in enumerate(texts, start=1))


def escape(text: str) -> str:
    """The text with nothing in it that could be a tag or a control token; one character more for each."""
    return _PLAIN.sub(r"\g<0>\\", text)


def unescape(text: str) -> str:
    """What `escape` was given; for text that a model copied from a fence."""
    return _ESCAPED.sub(r"\1", text)
