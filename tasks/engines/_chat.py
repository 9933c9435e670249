"""Turns prompts into token ids: a model's chat template, with texts that can't act as its markup.

A passage may contain `<|im_end|>` or `</think>`, by accident or on purpose. Only the template's own markers become
special tokens; in a text they are ordinary characters. The template is rendered once, around placeholders, and texts
are encoded separately, so that equal beginnings give equal ids. This does not protect model families whose markers are
ordinary text (`[INST]` of the first Llamas and Mistrals). Left out: images, tools, and earlier turns.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from tokenizers import Tokenizer, decoders

from tasks.core.errors import EngineError
from tasks.engines import _models

SYSTEM, USER = "Leadline-System-Text", "Leadline-User-Text"
# Some templates contain the date, which would make equal prompts differ from night to night.
SAME_DAY = "{% macro strftime_now(format) %}{{ {'%d %b %Y': '01 Jan 2025'}.get(format, '2025-01-01') }}{% endmacro %}"
AT_ONCE = 256  # texts encoded together; an encoding takes far more memory than its ids


class Chat:
    """A model's tokenizer and chat template.

    Attributes:
        special: Ids that no text can produce, such as the ends of replies.
    """

    def __init__(self, tokenizer: Any, model: str, thinking: bool | None) -> None:  # noqa: ANN401
        """Render the template.

        Args:
            tokenizer: A tokenizer of transformers.
            model: The model's name, for messages.
            thinking: The template's `enable_thinking`; None omits it.

        Raises:
            EngineError: The tokenizer or the template can't be used this way.
        """
        if getattr(tokenizer, "backend_tokenizer", None) is None:
            raise EngineError(
                f"{model} has no fast tokenizer, which is needed to separate texts from markers. Use openai_server."
            )
        self._whole = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._whole.no_truncation()
        self._whole.no_padding()
        self.special = frozenset(i for i, t in self._whole.get_added_tokens_decoder().items() if t.special)
        self._plain = _without_markers(self._whole)
        self._check(model)
        pieces = _render(tokenizer, model, {} if thinking is None else {"enable_thinking": thinking})
        self._fixed = [self._whole.encode(piece, add_special_tokens=False).ids for piece in pieces]
        self.text = lru_cache(maxsize=None)(self._text)

    def encode(self, prompts: Sequence[tuple[str, str]]) -> Iterator[list[int]]:
        """Token ids of each (system, user) in the template, up to the start of the model's reply."""
        if len(self._fixed) == 2:  # the template has no system message: its text starts the user's
            first, last = self._fixed
            for user in self._texts([f"{system}\n\n{user}" for system, user in prompts]):
                yield first + user + last
            return
        first, between, last = self._fixed
        names = list(dict.fromkeys(system for system, _ in prompts))
        begins = {name: first + ids + between for name, ids in zip(names, self._texts(names), strict=True)}
        for (system, _), user in zip(prompts, self._texts([user for _, user in prompts]), strict=True):
            yield begins[system] + user + last

    def replies(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Token ids of replies, as they follow a prompt of `encode`, without the token that ends them."""
        return self._texts(texts)

    def decode(self, ids: Sequence[int]) -> Iterator[str]:
        """The text that each token adds to a reply; empty for a token that ends within a character."""
        stream = decoders.DecodeStream(skip_special_tokens=True)
        for token in ids:
            yield stream.step(self._whole, token) or ""

    def _text(self, token: int) -> str:
        """The text of a single token."""
        return self._whole.decode([token], skip_special_tokens=False)

    def _texts(self, texts: Sequence[str]) -> Iterator[list[int]]:
        for start in range(0, len(texts), AT_ONCE):
            for encoding in self._plain.encode_batch_fast(texts[start : start + AT_ONCE], add_special_tokens=False):
                yield encoding.ids

    def _check(self, model: str) -> None:
        names = [t.content for t in self._whole.get_added_tokens_decoder().values() if t.special]
        for name, ids in zip(names, self._texts(names), strict=True):
            if not self.special.isdisjoint(ids):
                raise EngineError(
                    f"the tokenizer of {model} turns {name!r} in a text into a special token. Use another model."
                )


def _without_markers(whole: Tokenizer) -> Tokenizer:
    """The same tokenizer, except that it finds none of its added tokens in a text.

    Added tokens of white space stay, because some models read blank lines with them.
    """
    spec = json.loads(whole.to_str())
    vocabulary = whole.get_vocab(with_added_tokens=False)
    kept = [t for t in spec["added_tokens"] if t["content"].isspace() and vocabulary.get(t["content"]) == t["id"]]
    plain: Tokenizer = Tokenizer.from_str(json.dumps(spec | {"added_tokens": kept, "post_processor": None}))
    return plain


def _render(tokenizer: Any, model: str, options: dict[str, bool]) -> list[str]:  # noqa: ANN401
    """The template's text before, between and after the system and user texts; two pieces without a system text."""
    user = {"role": "user", "content": USER}
    tries = (
        ([{"role": "system", "content": SYSTEM}, user], [SYSTEM, USER]),
        ([user], [USER]),
    )
    problem = "it does not repeat the messages as they are"
    for messages, expected in tries:
        try:
            text = tokenizer.apply_chat_template(
                messages,
                chat_template=SAME_DAY + tokenizer.get_chat_template(),
                tokenize=False,
                add_generation_prompt=True,
                **options,
            )
        except Exception as error:  # jinja's errors, and errors that templates raise
            problem = _models.reason(error)
            continue
        pieces = re.split(f"({SYSTEM}|{USER})", text)
        if pieces[1::2] == expected:
            return pieces[0::2]
    raise EngineError(f"the chat template of {model} can't be used ({problem}). Use a model made for conversation.")
