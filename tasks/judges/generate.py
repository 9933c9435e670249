"""Writers: a language model writes a list of texts about each input, such as the facts of a sentence.

A config file of kind `generate` names the model and the prompt. The prompt's output schema is an object with one list
of texts. Left out: the purpose of the texts, and the inputs of the prompt; the caller chooses both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from pydantic import Field

from tasks.core.errors import ConfigError
from tasks.engines.generator import Generated, Generator
from tasks.judges import _fence, _model


class Config(_model.PromptedConfig):
    """The settings in a writer's file. Paths are relative to the file.

    Attributes:
        most: Maximum texts in a list. The prompt's text and schema can use it as `most`.
        max_reply_tokens: Maximum tokens of a reply. A longer reply is a failure.
    """

    kind: Literal["generate"]
    most: Annotated[int, Field(ge=1)] = 8
    max_reply_tokens: Annotated[int, Field(ge=16)] = 1024


@dataclass(frozen=True, slots=True)
class Written:
    """The result for one input.

    Attributes:
        texts: The texts, stripped and without blank ones. Empty after a failure, or if the model wrote none.
        failure: Why there is no list (`truncated`, `empty`, `unparsable`, or a failure of `Generated`); None otherwise.
        tokens_in: Tokens read, including `tokens_cached`.
    """

    texts: tuple[str, ...] = ()
    failure: str | None = None
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0


class Writer(_model.Prompted):
    """See the module.

    Args:
        gives: The inputs that the prompt may use.

    Raises:
        ConfigError: The prompt file is missing or wrong.
    """

    rules = 1

    def __init__(self, config: Config, generator: Generator, where: str, gives: Sequence[str]) -> None:
        super().__init__(config, generator, where, gives, {"most": config.most})
        self._reply = _reply(self.prompt.output, config.most, self.prompt_path)

    def write(self, inputs: Sequence[_model.Inputs]) -> list[Written]:
        """The texts about each input, in order.

        Raises:
            EngineError: The model can't be loaded or reached.
        """
        return [self._written(generated) for generated in self.generate(inputs)]

    def _written(self, generated: Generated) -> Written:
        failure = generated.failure
        texts: tuple[str, ...] = ()
        if failure is None:
            found = _model.read(generated.replies[0], self._reply)
            if isinstance(found, str):
                failure = found
            else:
                (written,) = msgspec.structs.astuple(found)
                texts = tuple(filter(None, (_fence.unescape(text).strip() for text in written)))
        return Written(texts, failure, **generated.tokens)


def load(path: Path, gives: Sequence[str], shared: dict[str, Generator] | None = None) -> Writer:
    """The writer that a YAML file describes. The first call loads its model.

    Args:
        gives: The inputs that the caller passes.
        shared: See `_model.opened`.

    Raises:
        ConfigError: The file, one of its keys or its prompt is wrong.
    """
    config, generator = _model.opened(Config, path, shared)
    return Writer(config, generator, str(path), gives)


def _reply(output: Mapping[str, Any], most: int, path: Path) -> type[msgspec.Struct]:
    """The type of a reply: an object with the one list that the prompt asks for."""
    properties: list[tuple[str, Any]] = list(output["properties"].items())
    name, schema = properties[0] if len(properties) == 1 else ("", {})
    is_list = schema.get("type") == "array" and schema.get("items", {}).get("type") == "string"
    if not is_list or schema.get("maxItems") != "$most":
        raise ConfigError(
            path, "output.properties", "is not one list of texts", "Ask for one array of strings, `maxItems: $most`."
        )
    return msgspec.defstruct("Reply", [(name, Annotated[list[str], Meta(max_length=most)])], forbid_unknown_fields=True)
