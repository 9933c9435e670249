"""YAML files into checked, frozen models, and the errors for mistakes in them."""

import difflib
import re
from collections.abc import Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)

from tasks.core.errors import ConfigError
from tasks.core.grades import RANGES
from tasks.core.paths import CONFIG, ObjectUrl

# Buckets as S3 and containers as Azure allow them; a prefix must also be a path for DuckDB and for copies on a disk.
BUCKET = re.compile(
    r"(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]|az://[a-z0-9][a-z0-9-]{1,61}[a-z0-9])(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?"
)
PLACES = "a folder, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX"
M = TypeVar("M", bound=BaseModel)
NEAR = 0.6  # similarity of a misspelled word to the right one, from 0 to 1


def placed(path: Path, info: ValidationInfo) -> Path:
    """The absolute path, relative to the folder of the config file; see `validate`."""
    return Path((info.context["base"] / path.expanduser()).resolve()) if info.context else path


def _lake_place(value: object, info: ValidationInfo) -> Path | ObjectUrl:
    """A path relative to the folder of the config file, or a place on object storage."""
    if isinstance(value, str) and re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:/", value):
        if not BUCKET.fullmatch(value):
            raise ValueError(f"Should be {PLACES} with letters, digits and . _ - in it")
        return ObjectUrl(value.rstrip("/"))
    if not isinstance(value, str | Path):
        raise ValueError(f"Should be {PLACES}")  # noqa: TRY004 - pydantic reports it
    return placed(Path(value), info)


ConfigPath = Annotated[Path, AfterValidator(placed)]
LakePlace = Annotated[
    Path | ObjectUrl,
    PlainValidator(_lake_place, json_schema_input_type=str),
    WithJsonSchema({"type": "string", "format": "path"}),
]
Share = Annotated[float, Field(ge=0, le=1)]
Pattern = Literal[
    "citation_drift",
    "dangling_citation",
    "ghost_number",
    "stitched_facts",
    "generalized_particular",
    "reverse_direction",
]


class Settings(BaseModel):
    """Base of every config model: immutable, and an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]


TraceScore = Literal[
    "groundedness",
    "faithfulness",
    "citation_groundedness",
    "utilization",
    "context_relevance",
    "answer_relevance",
]
Number = Literal[
    TraceScore,
    "answerability",
    "grade_answer_relevancy",
    "grade_completeness",
    "grade_faithfulness",
    "grade_usefulness",
    "grade_positive_acceptance",
    "grade_negative_rejection",
]
SCALES: Mapping[str, tuple[float, float]] = {
    "groundedness": (0, 100),
    **{f"grade_{grade}": ends for grade, ends in RANGES.items()},
}
"""Least and most value of the numbers that are not from 0 to 1."""


def scale(number: str) -> tuple[float, float]:
    """Least and most value of a nightly number."""
    return SCALES.get(number, (0.0, 1.0))


Passing = Literal[
    "overall",
    "answer_relevancy",
    "completeness",
    "faithfulness",
    "usefulness",
    "positive_acceptance",
    "negative_rejection",
]


class StrictLoader(yaml.SafeLoader):
    """Refuses a key that stands twice in a mapping: YAML would take the last one in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping of a node, each key once."""
        seen: set[object] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} twice", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def load_yaml(path: Path, key: str = "") -> dict[str, object]:
    """The mapping in a YAML file.

    Args:
        key: Top-level key that files of this kind have: only such files are suggested in place of a missing one.

    Raises:
        ConfigError: The file is missing, unreadable, not YAML, or not a mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        near = _did_you_mean(path.stem, _alike(path, key))
        init = "Write it and a sample with `leadline init`, or name another with --config"
        remedy = near or (init if path == CONFIG else "Check the path")
        raise ConfigError(path, "", "does not exist", f"{remedy}.") from None
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError, as are bytes that are not UTF-8
        raise ConfigError(path, "", f"can't be read ({error})", "Give a readable UTF-8 YAML file.") from None
    try:
        data = yaml.load(text, StrictLoader)  # noqa: S506 - it is a safe loader
    except RecursionError:
        raise ConfigError(path, "", "is nested too deeply", "Remove levels.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = f"is not valid YAML{line} ({getattr(error, 'problem', 'syntax error')})"
        raise ConfigError(path, "", problem, "Correct the syntax.") from None
    if not isinstance(data, dict) or not all(isinstance(k, str) for k in data):
        raise ConfigError(path, "", f"holds {type(data).__name__}, not a mapping of keys", "Write `key: value` lines.")
    return data


def _alike(path: Path, key: str) -> dict[str, str]:
    """Files beside a missing one that may be meant, by their names without the suffix, which all have."""
    found = {}
    for other in path.parent.glob("*.y*ml"):
        with suppress(OSError, UnicodeDecodeError):
            if not key or re.search(rf"^{key}:", other.read_text(encoding="utf-8"), re.MULTILINE):
                found[other.stem] = other.name
    return found


def validate(
    model: type[M], data: Mapping[str, object], where: object, prefix: str = "", base: Path | None = None
) -> M:
    """`data` as a `model`.

    Args:
        where: The file of `data`, for messages.
        prefix: Dotted path of `data` inside the file.
        base: Folder for relative paths; without it, paths stay as they are.

    Raises:
        ConfigError: The first mistake: unknown key, missing key, wrong type, value out of range.
    """
    try:
        return model.model_validate(data, context=base and {"base": base})
    except ValidationError as error:
        found = error.errors()
    # A misspelled key is often a missing one too; the spelling is the mistake.
    # And what is neither a mapping nor a file is meant as a file.
    telling = [e for kind in ("extra_forbidden", "value_error") for e in found if e["type"] == kind]
    first = (telling or found)[0]
    loc = [str(part) for part in first["loc"] if not str(part).endswith("]")]
    key = ".".join([prefix, *loc] if prefix else loc)
    value = _shown(first["input"])
    kind = first["type"]
    if kind == "extra_forbidden":
        names = _fields_at(model, loc[:-1])
        remedy = _did_you_mean(loc[-1], names) or f"The keys here are {', '.join(names)}"
        raise ConfigError(where, key, "is not a known key", f"{remedy}.")
    if kind == "missing":
        raise ConfigError(where, key, "is missing", "Add it; docs/configuration.md lists the keys.")
    message = re.sub(r"^(\w+ (?=should )|Value error, )", "", first["msg"])
    raise ConfigError(where, key, f"is {value}", f"It {message[0].lower()}{message[1:]}.")


def _shown(value: object) -> str:
    """A value as a message may show it: what holds other values may hold a secret among them."""
    if value and isinstance(value, Mapping | list | tuple):
        return "a mapping" if isinstance(value, Mapping) else f"a list of {len(value)}"
    return repr(value)[:80]


def did_you_mean(word: str, known: list[str], what: str) -> str:
    """A remedy for a misspelled name: the closest known one, or all of them."""
    return (_did_you_mean(word, known) or f"Known {what}: {', '.join(sorted(known))}") + "."


def _did_you_mean(word: str, known: Mapping[str, str] | list[str]) -> str:
    """The nearest word as a question, or what a mapping calls it; nothing where none is near."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=NEAR)
    return f"Did you mean {(known[near[0]] if isinstance(known, Mapping) else near[0])!r}" if near else ""


def _fields_at(model: type[BaseModel], loc: list[str]) -> list[str]:
    """Names of the keys that are known at a place inside a model."""
    for part in loc:
        field = model.model_fields.get(part)
        if field is None:
            break
        candidates = [field.annotation, *get_args(field.annotation)]
        nested = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        if not nested:
            break
        model = nested[0]
    return list(model.model_fields)
