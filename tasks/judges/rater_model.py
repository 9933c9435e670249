"""Rater models: a language model gives named ratings to each input.

Method: docs/methods.md#scores-of-one-trace and #grades-of-a-grounded-answer.

A config file of kind `rater_model` names the model and the prompt. The prompt's output schema lists the ratings. Each
is a whole number from 1 to 5, a yes or no, or `null` if it may not apply. An unreadable reply is a failure, never a
rating. Left out: the use of the ratings (`tasks.scorers`, `tasks.graders.llm`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import Meta
from pydantic import Field, model_validator

from tasks.core.errors import ConfigError
from tasks.engines.generator import Example, Generated, Generator
from tasks.judges import _fence, _model

Rating = int | float | bool | None
EXPLANATION = "explanation"
_KINDS: dict[str, Any] = {"integer": Annotated[int, Meta(ge=1, le=5)], "boolean": bool}


class Config(_model.PromptedConfig):
    """The settings in a rater model's file. Paths are relative to the file.

    Attributes:
        samples: Replies to each input, combined for each rating; more than one needs a temperature.
        max_reply_tokens: Maximum tokens of a reply. A longer reply is a failure.
    """

    kind: Literal["rater_model"]
    samples: Annotated[int, Field(ge=1)] = 1
    max_reply_tokens: Annotated[int, Field(ge=16)] = 256

    @model_validator(mode="after")
    def _draws(self) -> Self:
        self.model.check_samples(self.samples)
        return self


@dataclass(frozen=True, slots=True)
class Ratings:
    """The result for one input.

    Attributes:
        values: By name of the rating: 1 to 5 (not whole if samples were averaged), yes or no, or None if it does not
            apply. Empty after a failure.
        failure: Why there are no ratings (`truncated`, `empty`, `unparsable`, or a failure of `Generated`); None
            otherwise.
        explanation: The model's reasons, if the prompt asks for them, from the first readable sample.
        raw: The unchanged reply, kept after a failure.
        tokens_in: Tokens read, including `tokens_cached`.
    """

    values: Mapping[str, Rating]
    failure: str | None = None
    explanation: str | None = None
    raw: str | None = None
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0


class RaterModel(_model.Prompted):
    """See the module.

    Args:
        gives: The inputs that the prompt may use.
        key: The config key that names the prompt, for messages.

    Raises:
        ConfigError: The prompt file is missing or wrong.
    """

    rules = 1

    def __init__(
        self, config: Config, generator: Generator, where: str, gives: Sequence[str], key: str = "prompt"
    ) -> None:
        super().__init__(config, generator, where, gives, {}, key)
        self._samples = config.samples
        self._reply = _reply(self.prompt.output, self.prompt_path)

    def rate(self, inputs: Sequence[_model.Inputs]) -> list[Ratings]:
        """The ratings of each input, in order.

        Raises:
            EngineError: The model can't be loaded or reached.
        """
        return [self.read(generated) for generated in self.generate(inputs, self._samples)]

    def example(self, values: Mapping[str, Rating], explanation: str | None) -> Example:
        """The reply that expresses another rater model's ratings.

        Args:
            values: By the names in the prompt's schema; yes or no may be 1 or 0.
            explanation: Required if the prompt asks for one.
        """
        reply: dict[str, object] = {}
        for name, schema in self.prompt.output["properties"].items():
            value = values.get(name)
            if name == EXPLANATION:
                if not explanation:
                    return Example(problem="no_explanation")
                reply[name] = _fence.escape(explanation)
            elif isinstance(value, float) and not value.is_integer():
                return Example(problem="not_whole")  # a mean of several samples
            elif value is None:
                reply[name] = None
            else:
                reply[name] = bool(value) if "boolean" in schema["type"] and value in (0, 1) else int(value)
        return _model.example(reply, self.prompt.schema(self._counts))

    def read(self, generated: Generated) -> Ratings:
        """The ratings in the replies to one input."""
        failure, raw = generated.failure, None
        samples: list[dict[str, Any]] = []
        if failure is None:
            read = [_model.read(reply, self._reply) for reply in generated.replies]
            samples = [msgspec.structs.asdict(found) for found in read if not isinstance(found, str)]
            if not samples:
                failure, raw = str(read[0]), generated.replies[0].text
        explanation = samples[0].get(EXPLANATION) if samples else None
        return Ratings(
            {n: combined([s[n] for s in samples]) for n in (samples[0] if samples else ()) if n != EXPLANATION},
            failure=failure,
            explanation=None if explanation is None else _fence.unescape(explanation),
            raw=raw,
            **generated.tokens,
        )


def load(path: Path, gives: Sequence[str], shared: dict[str, Generator] | None = None) -> RaterModel:
    """The rater model that a YAML file describes. The first call loads its model.

    Args:
        gives: The inputs that the caller passes.
        shared: See `_model.opened`.

    Raises:
        ConfigError: The file, one of its keys or its prompt is wrong.
    """
    config, generator = _model.opened(Config, path, shared)
    return RaterModel(config, generator, str(path), gives)


def combined(samples: Sequence[Rating]) -> Rating:
    """One rating from several samples (docs/methods.md#noise-and-confidence).

    The rating does not apply if more than half of the samples are null. Otherwise nulls are ignored: numbers give their
    mean, and yes or no the majority, with a tie counted as no.
    """
    given = [rating for rating in samples if rating is not None]
    if 2 * len(given) < len(samples) or not given:
        return None
    if len(given) == 1:
        return given[0]
    if all(isinstance(rating, bool) for rating in given):
        return 2 * sum(given) > len(given)
    return fmean(given)


def _reply(output: Mapping[str, Any], path: Path) -> type[msgspec.Struct]:
    """The type of a reply: the ratings that the prompt asks for, after an explanation if it asks for one."""
    fields = []
    for at, (name, schema) in enumerate(output["properties"].items()):
        if name == EXPLANATION and schema.get("type") == "string" and at == 0:
            fields.append((name, str))
            continue
        kinds = schema.get("type")
        kind, *other = kinds if isinstance(kinds, list) else [kinds]
        bounds = (schema.get("minimum"), schema.get("maximum"))
        if kind not in _KINDS or other not in ([], ["null"]) or (kind == "integer" and bounds != (1, 5)):
            problem = "comes after a rating" if name == EXPLANATION else "is no rating"
            remedy = f"A rating is an integer from 1 to 5 or a boolean, or null; a text {EXPLANATION} comes first."
            raise ConfigError(path, f"output.properties.{name}", problem, remedy)
        fields.append((name, _KINDS[kind] | None if other else _KINDS[kind]))
    if all(name == EXPLANATION for name, _ in fields):
        raise ConfigError(path, "output.properties", "asks for no rating", "Ask for one.")
    return msgspec.defstruct("Reply", fields, forbid_unknown_fields=True)
