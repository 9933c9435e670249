"""A prompt file and the language model that answers it. Rater models and writers share this module.

Left out: the meaning of the replies.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

import msgspec
from pydantic import Field

from tasks.core import keys
from tasks.core.config import Settings, load_yaml, resolved_in, validate
from tasks.engines.generator import Example, Generated, Generator, GeneratorConfig, Prompt, Reply, open_generator
from tasks.judges import _fence, _prompts

T = TypeVar("T")
C = TypeVar("C", bound="PromptedConfig")
Inputs = Mapping[str, str | Sequence[str]]
# JSON forbids raw control characters in strings, but grammars that engines build from a schema allow them. Outside of
# strings, white space is the only kind that occurs.
_BLANKED = dict.fromkeys(range(0x20), " ")


class ModelUser(keys.Versioned):
    """A class that runs the language model that its config names."""

    def __init__(self, model: GeneratorConfig, generator: Generator) -> None:
        self._model, self._generator = model, generator

    @property
    def engine(self) -> str:
        """Which engine runs the model."""
        return self._model.engine

    @property
    def gpus(self) -> int:
        """GPUs that the model uses in this process; 0 if a server runs it."""
        return self._model.gpus

    @property
    def generator(self) -> Generator:
        """The model, possibly shared with other users."""
        return self._generator

    def close(self) -> None:
        """Free the model; a later call loads it again."""
        self._generator.close()


class PromptedConfig(Settings):
    """The keys that all files with a model and one prompt have. Paths are relative to the file.

    Attributes:
        model: The model and its engine.
        prompt: Name or path of the prompt file.
        max_reply_tokens: Maximum tokens of a reply.
    """

    model: GeneratorConfig
    prompt: Path
    max_reply_tokens: Annotated[int, Field(ge=16)] = 512


class Prompted(ModelUser):
    """Sends a prompt about each input to a model.

    Args:
        where: The config file, for messages and for the prompt's path.
        gives: The inputs that the prompt may use.
        counts: Numbers that the prompt's text and schema may use, by name.
        key: The config key that names the prompt, for messages.

    Raises:
        ConfigError: The prompt file is missing or wrong.
    """

    rules: ClassVar[int]  # raise it when the same replies give a different result

    def __init__(
        self,
        config: PromptedConfig,
        generator: Generator,
        where: str,
        gives: Sequence[str],
        counts: Mapping[str, int],
        key: str = "prompt",
    ) -> None:
        super().__init__(config.model, generator)
        self._config, self._counts = config, counts
        self.prompt_path = resolved_in(config.prompt, "prompts", where, key)
        self.prompt = _prompts.load(
            self.prompt_path, (), None, tuple(counts), where=where, key=key, optional=(*gives, *counts)
        )

    def describe(self) -> dict[str, object]:
        """Everything that can change the result for an input."""
        return {
            "rules": [self.rules, _fence.RULES],
            "model": self._generator.describe(),
            "prompt": self.prompt.hash,
            **self._config.model_dump(mode="json", exclude={"model", "prompt"}),
        }

    def generate(self, inputs: Sequence[Inputs], samples: int = 1) -> list[Generated]:
        """The model's replies to each input, in order.

        Raises:
            EngineError: The model can't be loaded or reached.
        """
        prompts = self.prompts(inputs)
        return self._generator.generate(prompts, samples) if prompts else []

    def prompts(self, inputs: Sequence[Inputs]) -> list[Prompt]:
        """The prompt about each input. Inputs that the prompt does not use are left out."""
        numbers = {name: str(n) for name, n in self._counts.items()}
        texts = [name for name in self.prompt.inputs if name not in numbers]
        return [
            self.prompt.fill(
                self._config.max_reply_tokens,
                self._counts,
                **numbers,
                **{name: _shown(name, row[name]) for name in texts},
            )
            for row in inputs
        ]


def opened(model: type[C], path: Path, shared: dict[str, Generator] | None = None) -> tuple[C, Generator]:
    """The settings in a file, and the generator that they describe.

    Args:
        shared: Generators of other files, by their settings. A matching one is reused; a new one is added.

    Raises:
        ConfigError: The file or one of its keys is wrong.
    """
    config = validate(model, load_yaml(path), path)
    generator = config.model.relative_to(path.resolve().parent)
    known = {} if shared is None else shared
    same = generator.model_dump_json()
    if same not in known:
        known[same] = open_generator(generator)
    return config.model_copy(update={"model": generator}), known[same]


def read(reply: Reply, kind: type[T]) -> T | str:
    """A reply as a value of the given type, or the name of its failure."""
    if reply.finish == "length":
        return "truncated"
    if not reply.text.strip():
        return "empty"
    text = reply.text.translate(_BLANKED)
    try:
        found = msgspec.json.decode(text, type=kind)
        json.loads(text, object_pairs_hook=_unambiguous)
    except (ValueError, RecursionError):  # msgspec.DecodeError and UnicodeEncodeError are ValueErrors
        return "unparsable"
    return found


def _unambiguous(pairs: list[tuple[str, object]]) -> None:
    """Refuse an object with two values for one key: the intended value is unknown."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError


def example(reply: Mapping[str, object], schema: Mapping[str, object]) -> Example:
    """A reply as a model should write it: on one line, with its keys in the schema's order.

    Args:
        reply: Keys in the schema's order.
        schema: The prompt's schema, with its numbers filled in.
    """
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # noqa: PLC0415 - most runs need none

    if not Draft202012Validator(schema).is_valid(reply):
        return Example(problem="not_in_schema")  # such as an explanation longer than the prompt allows
    return Example(json.dumps(reply, ensure_ascii=False))


def _shown(name: str, value: str | Sequence[str]) -> str:
    """A text in a block with its name. A list such as `passages` gives numbered blocks (`<passage 1>`)."""
    return _fence.block(name, value) if isinstance(value, str) else _fence.blocks(name.removesuffix("s"), value)
