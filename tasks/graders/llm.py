"""A grader that asks a language model: one prompt for each grade, all for the same model.

The prompts define the meaning of the grades. They are files, checked when the grader is built, and texts of an answer
are escaped in them. All prompts about an answer follow one another, so that a prefix cache reads their shared part
once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tasks.core.config import Settings
from tasks.core.errors import ConfigError
from tasks.core.grades import GRADED, RANGES, Answered, Grade, GradeName, Grader, Statement
from tasks.engines.generator import Example, Generator, GeneratorConfig, Prompt, open_generator
from tasks.judges import rater_model
from tasks.judges._model import ModelUser
from tasks.judges.rater_model import RaterModel, Ratings

RULES = 1  # raised when replies are read differently, or answers are shown differently
REFERENCE = "reference"
GIVES = ("passages", "question", "answer", "statements", REFERENCE)
UNREADABLE = frozenset({"truncated", "empty", "unparsable"})  # failures of `Ratings` after a reply
NO_REFERENCE = "no_reference"


class Config(Settings):
    """The settings in the grader's file. Paths are relative to the file.

    Attributes:
        model: The model and its engine.
        prompts: Prompt file of each of the four grades. Either all or none of them use `reference`.
        samples: Replies to each prompt, combined for each grade; more than one needs a temperature.
        max_reply_tokens: Maximum tokens of a reply, with its explanation. A longer reply can't be read.
    """

    kind: Literal["llm"] = "llm"
    model: GeneratorConfig
    prompts: Mapping[GradeName, Path]
    samples: Annotated[int, Field(ge=1)] = 1
    max_reply_tokens: Annotated[int, Field(ge=16)] = 384

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if missing := [name for name in GRADED if name not in self.prompts]:
            raise ValueError(f"lacks a prompt for {', '.join(missing)}; add it under prompts")
        self.model.check_samples(self.samples)
        return self


class Llm(ModelUser):
    """See the module.

    Args:
        where: The config file, for messages and for the prompts' paths.

    Raises:
        ConfigError: A prompt is missing or wrong, asks for anything but its grade, or only some prompts use a
            reference.
    """

    asks = True

    def __init__(self, config: Config, generator: Generator, where: str) -> None:
        super().__init__(config.model, generator)
        self._config = config
        self._by_name = {name: _one(config, generator, where, name) for name in GRADED}
        with_reference = [name for name in GRADED if REFERENCE in self._by_name[name].prompt.inputs]
        self.needs_reference = bool(with_reference)
        if self.needs_reference and len(with_reference) < len(GRADED):
            other = next(name for name in GRADED if name not in with_reference)
            problem = f"uses no reference answer, but that of {with_reference[0]} does"
            raise ConfigError(where, f"prompts.{other}", problem, "Name four prompts of the same form.")

    def describe(self) -> dict[str, object]:
        """Everything that can change a grade."""
        own = {name: one.describe() for name, one in self._by_name.items()}
        return {"kind": "llm", "rules": RULES, "grades": own}

    @property
    def config(self) -> Config:
        """The file's settings, in which prompts are relative to the file."""
        return self._config

    @property
    def forms(self) -> tuple[str, ...]:
        """Names of the prompts: one for each grade."""
        return tuple(self._by_name)

    @property
    def prompt_hashes(self) -> dict[str, str]:
        """Hash of each prompt file, by the prompt's name."""
        return {name: one.prompt.hash for name, one in self._by_name.items()}

    def example(self, form: str, grade: Grade) -> Example:
        """The reply that expresses another grader's grade.

        Args:
            grade: A grade that is scored or does not apply.
        """
        (one,) = (one for name, one in self._by_name.items() if name == form)
        return one.example({form: grade.value}, grade.explanation)

    def grade(self, answers: Sequence[Answered]) -> list[Mapping[str, Grade]]:
        """The four grades of each answer, in order.

        If the prompts use a reference, answers without one fail as `no_reference`.

        Raises:
            EngineError: The model can't be loaded or reached; no grades are returned.
        """
        by_grade = self.prompts([a for a in answers if self._can(a)])
        prompts = [prompt for of_one in zip(*by_grade.values(), strict=True) for prompt in of_one]
        found = iter(self._generator.generate(prompts, self._config.samples) if prompts else [])
        graded: list[Mapping[str, Grade]] = []
        for answer in answers:
            if self._can(answer):
                graded.append({n: grade_of(one.read(next(found)), n, RANGES[n]) for n, one in self._by_name.items()})
            else:
                graded.append(dict.fromkeys(GRADED, Grade("failed", failure=NO_REFERENCE)))
        return graded

    def prompts(self, answers: Sequence[Answered]) -> dict[GradeName, list[Prompt]]:
        """The prompts about all answers, in order, for each grade."""
        inputs = [_inputs(answer) for answer in answers]
        return {name: one.prompts(inputs) for name, one in self._by_name.items()}

    def _can(self, answer: Answered) -> bool:
        return not self.needs_reference or answer.reference is not None


def _one(config: Config, generator: Generator, where: str, name: GradeName) -> RaterModel:
    """The rater model of one grade. Its prompt must ask for that grade only."""
    key = f"prompts.{name}"
    settings = rater_model.Config(
        kind="rater_model",
        model=config.model,
        prompt=config.prompts[name],
        samples=config.samples,
        max_reply_tokens=config.max_reply_tokens,
    )
    one = RaterModel(settings, generator, where, GIVES, key)
    fields = [field for field in one.prompt.output["properties"] if field != rater_model.EXPLANATION]
    kind = "boolean" if RANGES[name] == (0, 1) else "integer"
    schema = one.prompt.output["properties"].get(name, {})
    if fields != [name] or kind not in (schema.get("type"), *_listed(schema.get("type"))):
        problem = f"names a prompt that asks for {', '.join(fields)}"
        raise ConfigError(where, key, problem, f"Name one that asks for {name}, of type {kind} or null, and no other.")
    return one


def _listed(kind: object) -> Sequence[object]:
    return kind if isinstance(kind, list) else ()


def _inputs(answered: Answered) -> dict[str, str | Sequence[str]]:
    shown: dict[str, str | Sequence[str]] = {
        "passages": answered.passages,
        "question": answered.question,
        "answer": answered.answer,
        "statements": [_shown(statement) for statement in answered.statements],
    }
    return shown if answered.reference is None else {**shown, REFERENCE: answered.reference}


def _shown(statement: Statement) -> str:
    """A statement after a line with its citations. It is put on one line, so that it can't imitate the line before."""
    several = "passages" if len(statement.cited) > 1 else "passage"
    cited = f"{several} {', '.join(map(str, statement.cited))}" if statement.cited else "no passage"
    nothing = f", and {statement.dangling} times what is no passage" if statement.dangling else ""
    return f"It cites {cited}{nothing}:\n{' '.join(statement.text.split())}"


def grade_of(found: Ratings, name: str, ends: tuple[int, int]) -> Grade:
    """One rating of a reply as a grade. It must lie in the range `ends`."""
    value = found.values.get(name)
    failure, raw = found.failure, found.raw
    least, most = ends
    if failure is None and value is not None and not least <= value <= most:
        value, failure = None, "unparsable"
    paid = Grade("na", tokens_in=found.tokens_in, tokens_cached=found.tokens_cached, tokens_out=found.tokens_out)
    if failure is not None:
        return replace(paid, status="unparsable" if failure in UNREADABLE else "failed", failure=failure, raw=raw)
    if value is None:
        return replace(paid, explanation=found.explanation)
    return replace(paid, status="scored", value=float(value), explanation=found.explanation)


def build(config: Config, where: str) -> Grader:
    """The grader. A relative model folder and the prompts are relative to the config file `where`."""
    model = config.model.relative_to(Path(where).parent)
    return Llm(config.model_copy(update={"model": model}), open_generator(model), where)
