"""Graders: a language model gives named grades to each input (METHODS sections 4 and 9).

A config file of kind `grader` names the model and the prompt. The prompt's output schema says which grades there are:
a whole number from 1 to 5 or yes or no, and `null` besides where a grade may not apply. A reply that can't be read is a
failure, never a grade. Left out: what is done with the grades.
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
from tasks.engines.generator import Generated, Generator, Lesson
from tasks.judges import _fence, _model

Grade = int | float | bool | None
EXPLANATION = "explanation"
_KINDS: dict[str, Any] = {"integer": Annotated[int, Meta(ge=1, le=5)], "boolean": bool}


class Config(_model.AskerConfig):
    """The whole of a grader's file. Paths are relative to the file.

    Attributes:
        samples: Replies to each input, summed up grade by grade; more than one needs a temperature.
        max_reply_tokens: Most tokens of a reply. One that needs more is a failure.
    """

    kind: Literal["grader"]
    samples: Annotated[int, Field(ge=1)] = 1
    max_reply_tokens: Annotated[int, Field(ge=16)] = 256

    @model_validator(mode="after")
    def _draws(self) -> Self:
        self.model.check_samples(self.samples)
        return self


@dataclass(frozen=True, slots=True)
class Grades:
    """What came of one input.

    Attributes:
        values: By the grade's name: 1 to 5 (not whole where samples were averaged), yes or no, or None where it does
            not apply. Empty on failure.
        failure: Why there are no grades (`truncated`, `empty`, `unparsable`, those of `Generated`); None otherwise.
        explanation: The model's reasons, where the prompt asks for them; of the first sample that could be read.
        raw: The reply as it came, kept with a failure.
        tokens_in: Tokens read, those of `tokens_cached` included.
    """

    values: Mapping[str, Grade]
    failure: str | None = None
    explanation: str | None = None
    raw: str | None = None
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0


class Grader(_model.Asker):
    """See the module.

    Args:
        gives: The inputs that the prompt may use.
        key: The file's key that names the prompt, for messages.

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

    def grade(self, inputs: Sequence[_model.Inputs]) -> list[Grades]:
        """The grades of each input, in order.

        Raises:
            EngineError: The model can't be loaded or asked.
        """
        return [self.read(generated) for generated in self.ask(inputs, self._samples)]

    def lesson(self, values: Mapping[str, Grade], explanation: str | None) -> Lesson:
        """The reply that is read as the grades that another grader gave.

        Args:
            values: By the names that the prompt asks for; yes or no may be 1 or 0.
            explanation: Needed where the prompt asks for one.
        """
        reply: dict[str, object] = {}
        for name, schema in self.prompt.output["properties"].items():
            value = values.get(name)
            if name == EXPLANATION:
                if not explanation:
                    return Lesson(problem="no_explanation")
                reply[name] = _fence.escape(explanation)
            elif isinstance(value, float) and not value.is_integer():
                return Lesson(problem="not_whole")  # a mean of several samples
            elif value is None:
                reply[name] = None
            else:
                reply[name] = bool(value) if "boolean" in schema["type"] and value in (0, 1) else int(value)
        return _model.lesson(reply, self.prompt.schema(self._counts))

    def read(self, generated: Generated) -> Grades:
        """The grades in what came of one input's prompt."""
        failure, raw = generated.failure, None
        samples: list[dict[str, Any]] = []
        if failure is None:
            read = [_model.read(reply, self._reply) for reply in generated.replies]
            samples = [msgspec.structs.asdict(found) for found in read if not isinstance(found, str)]
            if not samples:
                failure, raw = str(read[0]), generated.replies[0].text
        explanation = samples[0].get(EXPLANATION) if samples else None
        return Grades(
            {n: summed_up([s[n] for s in samples]) for n in (samples[0] if samples else ()) if n != EXPLANATION},
            failure=failure,
            explanation=None if explanation is None else _fence.unescape(explanation),
            raw=raw,
            tokens_in=generated.tokens_in,
            tokens_cached=generated.tokens_cached,
            tokens_out=generated.tokens_out,
        )


def load(path: Path, gives: Sequence[str], shared: dict[str, Generator] | None = None) -> Grader:
    """The grader that a YAML file describes; its model is not loaded before the first call.

    Args:
        gives: The inputs that the caller has for it.
        shared: See `_model.opened`.

    Raises:
        ConfigError: The file or one of its keys is wrong, or its prompt is.
    """
    config, generator = _model.opened(Config, path, shared)
    return Grader(config, generator, str(path), gives)


def summed_up(samples: Sequence[Grade]) -> Grade:
    """One grade of several samples of it (METHODS section 11).

    It does not apply where more than half of them say so. Else the others count: numbers by their mean, yes or no by
    the majority; as many of the one as of the other is a no.
    """
    given = [grade for grade in samples if grade is not None]
    if 2 * len(given) < len(samples) or not given:
        return None
    if len(given) == 1:
        return given[0]
    if all(isinstance(grade, bool) for grade in given):
        return 2 * sum(given) > len(given)
    return fmean(given)


def _reply(output: Mapping[str, Any], path: Path) -> type[msgspec.Struct]:
    """What a reply must be: the grades that the prompt asks for, an explanation first where it wants one."""
    fields = []
    for at, (name, schema) in enumerate(output["properties"].items()):
        if name == EXPLANATION and schema.get("type") == "string" and at == 0:
            fields.append((name, str))
            continue
        kinds = schema.get("type")
        kind, *other = kinds if isinstance(kinds, list) else [kinds]
        bounds = (schema.get("minimum"), schema.get("maximum"))
        if kind not in _KINDS or other not in ([], ["null"]) or (kind == "integer" and bounds != (1, 5)):
            problem = "comes after a grade" if name == EXPLANATION else "is no grade"
            remedy = f"A grade is an integer from 1 to 5 or a boolean, or null; a text named {EXPLANATION} comes first."
            raise ConfigError(path, f"output.properties.{name}", problem, remedy)
        fields.append((name, _KINDS[kind] | None if other else _KINDS[kind]))
    if all(name == EXPLANATION for name, _ in fields):
        raise ConfigError(path, "output.properties", "asks for no grade", "Ask for one.")
    return msgspec.defstruct("Reply", fields, forbid_unknown_fields=True)
