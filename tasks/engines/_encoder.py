"""Turns pairs into token ids, the same for every engine, so that a verdict hardly depends on the engine.

A pair is encoded as in the model's training: by the tokenizer's pair encoding, or by a template if the model reads a
single text. Left out: choosing which part of a long premise to read. transformers is imported on first use.
"""

import re
from collections.abc import Sequence
from typing import Any

from tasks.core.errors import EngineError
from tasks.engines import _models
from tasks.engines._classifiers import FIELDS, WHAT, ClassifierConfig, Labels, labels_of, load_error

RULES = 1  # raised when the same pair gives different token ids
# A tokenizer may consist of several files, and a model with its own code has Python files.
HASHED_FILES = (*_models.HASHED_FILES, "vocab.json", "merges.txt", "*.model", "tokenizer_config.json", "*.py")


class Encoder:
    """A classifier's tokenizer and configuration, loaded on first use."""

    def __init__(self, config: ClassifierConfig) -> None:
        self._config = config
        self._loaded: tuple[Any, Any, re.Pattern[str]] | None = None  # tokenizer, configuration, special tokens

    @property
    def tokenizer(self) -> Any:  # noqa: ANN401
        """The transformers tokenizer."""
        return self._load()[0]

    @property
    def model_config(self) -> Any:  # noqa: ANN401
        """The model's transformers configuration."""
        return self._load()[1]

    @property
    def pad_id(self) -> int:
        """The id of the padding token."""
        pad = self.tokenizer.pad_token_id
        return 0 if pad is None else int(pad)

    @property
    def labels(self) -> Labels:
        """The meaning of the classes (see `labels_of`)."""
        own = self.model_config
        return labels_of(own.id2label, own.num_labels, self._config.labels, f"{WHAT} {self._config.model!r}")

    def describe(self) -> dict[str, object]:
        """Everything that is hashed into a version. It is the same for all engines, because they read the same ids.

        Raises:
            EngineError: The model's files are missing.
        """
        c = self._config
        return {
            **_models.identity(c, WHAT, HASHED_FILES),
            **c.model_dump(include={"dtype", "max_tokens", "template", "token_types", "labels"}),
            "rules": RULES,
        }

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text on its own, without special tokens."""
        plain = [self._plain(text) for text in texts]
        return [len(ids) for ids in self._ids(plain, add_special_tokens=False)]

    def room(self) -> int:
        """Tokens of `max_tokens` that remain after special tokens and the template."""
        if self._config.template is None:
            fixed = int(self.tokenizer.num_special_tokens_to_add(pair=True))
        else:
            fixed = len(self._ids([self._filled("", "")])[0])
        return self._config.max_tokens - fixed

    def ids(self, pairs: Sequence[tuple[str, str]]) -> list[list[int]]:
        """Token ids of each (premise, hypothesis), with special tokens. The premise is truncated to `max_tokens`.

        Raises:
            EngineError: A hypothesis leaves no room for a premise.
        """
        return self.encode(pairs)[0]

    def encode(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]] | None]:
        """`ids`, and their token types if the config uses the model's own.

        Raises:
            EngineError: A hypothesis leaves no room for a premise.
        """
        if not pairs:
            return [], [] if self._config.own_types else None
        premises = [self._plain(premise) for premise, _ in pairs]
        hypotheses = [self._plain(hypothesis) for _, hypothesis in pairs]
        self._check(hypotheses)
        if self._config.template is not None:
            return self._templated(premises, hypotheses), None
        encoded = self.tokenizer(
            premises,
            hypotheses,
            truncation="only_first",
            max_length=self._config.max_tokens,
            return_token_type_ids=self._config.own_types,
            return_attention_mask=False,
            verbose=False,
        )
        return encoded["input_ids"], encoded.get("token_type_ids")

    def _check(self, hypotheses: list[str]) -> None:
        room = self.room()
        if room < 2:
            raise EngineError(
                f"max_tokens is {self._config.max_tokens}, of which special tokens and template leave {room} to "
                f"{WHAT} {self._config.model!r}. Raise it."
            )
        longest = max(self.count(list(set(hypotheses))))
        if longest >= room:
            raise EngineError(
                f"a hypothesis has {longest} tokens, and {WHAT} {self._config.model!r} has room for {room} with its "
                "premise. Raise max_tokens, or leave the hypothesis out."
            )

    def _templated(self, premises: list[str], hypotheses: list[str]) -> list[list[int]]:
        texts = [self._filled(p, h) for p, h in zip(premises, hypotheses, strict=True)]
        found = self._ids(texts)
        for i, ids in enumerate(found):
            if len(ids) > self._config.max_tokens:
                found[i] = self._cut(premises[i], hypotheses[i], len(ids))
        return found

    def _cut(self, premise: str, hypothesis: str, size: int) -> list[int]:
        """Ids of the longest beginning of the premise that fits. It ends where one of the premise's tokens ends."""
        options = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False}
        ends = [end for _, end in self.tokenizer(premise, **options)["offset_mapping"]]
        # Tokens may merge at the end of the premise, so the first guess can be one or two off.
        for kept in range(min(len(ends), len(ends) + self._config.max_tokens - size), -1, -1):
            text = premise[: ends[kept - 1]] if kept else ""
            ids = self._ids([self._filled(text, hypothesis)])[0]
            if len(ids) <= self._config.max_tokens:
                return ids
        raise EngineError(
            f"a hypothesis of {self.count([hypothesis])[0]} tokens leaves {WHAT} {self._config.model!r} no room for a "
            "premise. Raise max_tokens, or leave the hypothesis out."
        )

    def _filled(self, premise: str, hypothesis: str) -> str:
        texts = dict(zip(FIELDS, (premise, hypothesis), strict=True))
        # One pass over the template, so that "{hypothesis}" in a text is not replaced.
        return re.sub("|".join(map(re.escape, FIELDS)), lambda found: texts[found.group()], self._config.template or "")

    def _plain(self, text: str) -> str:
        """Break up special tokens ("[SEP]") that a text spells out; only the model's template may set them."""
        return self._load()[2].sub(lambda found: f"{found.group()[0]} {found.group()[1:]}", text)

    def _ids(self, texts: list[str], **options: bool) -> list[list[int]]:
        if not texts:
            return []
        found: list[list[int]] = self.tokenizer(texts, verbose=False, **options)["input_ids"]
        return found

    def _load(self) -> tuple[Any, Any, re.Pattern[str]]:
        if self._loaded is None:
            library = _models.transformers()
            c = self._config
            name, options = _models.source(c, WHAT)
            options["trust_remote_code"] = c.trust_remote_code
            try:
                own = library.AutoConfig.from_pretrained(name, **options)
                tokenizer = library.AutoTokenizer.from_pretrained(name, **options)
            except Exception as error:  # the libraries' errors have no common base
                raise load_error(c, error) from error
            _models.check_positions(c, WHAT, own, c.max_tokens)
            if c.own_types and getattr(own, "type_vocab_size", 0) < 2:
                raise EngineError(f"{WHAT} {c.model!r} has no token types. Leave out token_types.")
            special = [re.escape(token) for token in tokenizer.all_special_tokens if len(token) > 1]
            self._loaded = (tokenizer, own, re.compile("|".join(special) or "(?!)"))
        return self._loaded
