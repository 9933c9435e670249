"""Prompt files: the text of a prompt and the schema of its reply, in one Markdown file.

    ---
    inputs: [passages, claim]      # the variables of the text below
    output: {type: object, …}      # JSON schema of the reply
    ---
    # System
    …
    # User
    {{ passages }} … {{ claim }}

A number in the schema that depends on the request is written as `$name`, such as `maximum: $passages`, and is filled in
for each prompt. Jinja renders the text in a sandbox and changes nothing else. Left out: escaping texts of a trace
(`_fence.py`) and the meaning of the reply (each judge).
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta
import yaml
from jinja2.sandbox import SandboxedEnvironment
from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]

from tasks.core import keys
from tasks.core.config.base import StrictLoader
from tasks.core.errors import ConfigError
from tasks.engines.generator import Prompt

_FILE = re.compile(r"---\n(?P<head>.*?\n)---\n\s*# System\n(?P<system>.*?)\n# User\n(?P<user>.*)", re.DOTALL)
_COUNT = re.compile(r"\$(\w+)")
_BOUNDS = {"string": "maxLength", "array": "maxItems"}
_TEXTS = SandboxedEnvironment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)


class PromptFile:
    """A prompt file, checked and ready to be filled in.

    Attributes:
        hash: Hash of the file's bytes, for a judge's version.
        output: JSON schema of the reply, before its numbers are filled in.
        inputs: The variables that the text uses.
    """

    def __init__(self, data: bytes, output: Mapping[str, Any], inputs: Sequence[str], system: str, user: str) -> None:
        self.hash = keys.key(data)
        self.output = output
        self.inputs = tuple(inputs)
        self._system, self._user = _TEXTS.from_string(system), _TEXTS.from_string(user)
        # Nearly all prompts of a file have the same system text, and engines keep many prompts in memory.
        self._constant_system = None if _used(system) else self._system.render()
        self._schemas: dict[tuple[tuple[str, int], ...], Mapping[str, object]] = {}

    def fill(self, max_tokens: int, counts: Mapping[str, int], alternatives: bool = False, /, **inputs: str) -> Prompt:
        """The prompt for one request.

        Args:
            max_tokens: Maximum tokens of the reply.
            counts: Values for the schema's `$names`.
            alternatives: See `Prompt`.
            inputs: The text of each variable, already fenced.
        """
        system = self._system.render(inputs) if self._constant_system is None else self._constant_system
        return Prompt(system, self._user.render(inputs), self.schema(counts), max_tokens, alternatives)

    def schema(self, counts: Mapping[str, int]) -> Mapping[str, object]:
        """The schema with its numbers filled in. Equal numbers give the same object, which engines compile once."""
        made = tuple(sorted(counts.items()))
        if made not in self._schemas:
            self._schemas[made] = _filled(self.output, counts)
        return self._schemas[made]


def load(
    path: Path,
    inputs: Sequence[str],
    fields: Sequence[str] | None,
    counts: Sequence[str] = (),
    *,
    where: object,
    key: str,
    optional: Sequence[str] = (),
) -> PromptFile:
    """Read and check a prompt file.

    Args:
        inputs: The variables that the text must use.
        fields: The keys that the schema must have, in the order in which the model writes them; None allows any.
        counts: Names that the schema may use for a number, each after a `$`.
        where: The config file that names the prompt, for messages.
        key: The config key that names the prompt, for messages.
        optional: Further variables that the text may use. All others are refused.

    Raises:
        ConfigError: The file is missing or malformed. The message says what to correct.
    """
    try:
        data = path.read_bytes()
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        problem = (
            "does not exist" if isinstance(error, FileNotFoundError) else f"can't be read ({type(error).__name__})"
        )
        raise ConfigError(
            where, key, f"names {path}, which {problem}", "Give a UTF-8 file; paths are relative to the judge's file."
        ) from None
    parts = _FILE.fullmatch(text)
    if parts is None:
        raise ConfigError(
            path,
            "",
            "is not a prompt",
            "Write front matter between two lines `---`, then `# System` and `# User`, each heading a line.",
        )
    head = _head(path, parts["head"])
    system, user = parts["system"].strip("\n"), parts["user"].strip("\n")
    _check_inputs(
        path,
        head["inputs"],
        inputs,
        optional,
        used=_variables(path, "# System", system) | _variables(path, "# User", user),
    )
    _check_output(path, head["output"], fields, counts)
    try:
        prompt = PromptFile(data, head["output"], head["inputs"], system, user)
        prompt.fill(1, dict.fromkeys(counts, 1), **dict.fromkeys(prompt.inputs, ""))
    except (jinja2.TemplateError, TypeError) as error:  # TypeError: the template includes another one
        raise ConfigError(path, "", f"can't be filled in ({error})", "Correct the text.") from None
    return prompt


def _head(path: Path, text: str) -> dict[str, Any]:
    try:
        head = yaml.load(text, StrictLoader)  # noqa: S506 - it is a safe loader
    except (yaml.YAMLError, RecursionError) as error:
        problem = getattr(error, "problem", None) or "syntax error"
        raise ConfigError(path, "", f"has front matter that is not valid YAML ({problem})", "Correct it.") from None
    if not isinstance(head, dict) or set(head) != {"inputs", "output"}:
        found = ", ".join(map(str, head)) if isinstance(head, dict) else type(head).__name__
        raise ConfigError(path, "", f"has front matter with {found}", "Its keys are exactly inputs and output.")
    return head


def _variables(path: Path, part: str, text: str) -> set[str]:
    try:
        return _used(text)
    except jinja2.TemplateSyntaxError as error:
        raise ConfigError(path, part, f"is no Jinja template ({error.message})", "Correct it.") from None


def _used(text: str) -> set[str]:
    return jinja2.meta.find_undeclared_variables(_TEXTS.parse(text))


def _check_inputs(path: Path, named: object, needed: Sequence[str], optional: Sequence[str], used: set[str]) -> None:
    if not isinstance(named, list) or sorted(map(str, named)) != sorted(used):
        shown = named if isinstance(named, list) else type(named).__name__
        raise ConfigError(path, "inputs", f"is {shown}, but the text uses {sorted(used)}", "Make the two agree.")
    if not set(needed) <= used <= {*needed, *optional}:
        remedy = f"Use {list(needed)} in the text" + (f", and none but {list(optional)} besides." if optional else ".")
        raise ConfigError(path, "inputs", f"is {named}, but this judge gives {[*needed, *optional]}", remedy)


def _check_output(path: Path, output: object, fields: Sequence[str] | None, counts: Sequence[str]) -> None:
    def wrong(problem: str, remedy: str, key: str = "output") -> ConfigError:
        return ConfigError(path, key, problem, remedy)

    for name in _counts(output):
        if name not in counts:
            known = ", ".join(f"${c}" for c in counts) or "none"
            raise wrong(f"holds ${name}, which stands for no number", f"Known here: {known}.")
    filled = _filled(output, dict.fromkeys(counts, 1))
    try:
        Draft202012Validator.check_schema(filled)
    except SchemaError as error:
        raise wrong(f"is no JSON schema at {error.json_path}", "See json-schema.org for the keywords.") from None
    if not isinstance(filled, dict) or filled.get("type") != "object" or "$ref" in filled:
        raise wrong("is not the schema of an object", "Begin it with `type: object`.")
    if fields is not None and list(filled.get("properties", {})) != list(fields):
        found = list(filled.get("properties", {}))
        raise wrong(f"asks for {found}", f"Ask for {list(fields)}, in this order.", "output.properties")
    _check_bounded(filled, wrong, "output")


def _check_bounded(schema: Any, wrong: Any, key: str) -> None:  # noqa: ANN401 - any JSON
    """Refuse schemas of unlimited replies: open objects, and strings and lists without a maximum."""
    if isinstance(schema, list):
        for i, part in enumerate(schema):
            _check_bounded(part, wrong, f"{key}.{i}")
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if kind == "object":
        if schema.get("additionalProperties") is not False:
            raise wrong("leaves additionalProperties open", "Add `additionalProperties: false`.", key)
        if sorted(schema.get("required", [])) != sorted(schema.get("properties", {})):
            raise wrong("does not require every property", "List all of them under `required`.", key)
    bound = _BOUNDS.get(kind) if isinstance(kind, str) else None
    if bound and not {bound, "enum", "const"} & set(schema):
        raise wrong(f"has no {bound}", f"Add `{bound}`: without an end, a reply may run on until it is cut off.", key)
    for name, part in schema.items():
        _check_bounded(part, wrong, f"{key}.{name}")


def _counts(value: object) -> list[str]:
    """Names after a `$` in places of numbers."""
    if isinstance(value, Mapping):
        return [name for part in value.values() for name in _counts(part)]
    if isinstance(value, list):
        return [name for part in value for name in _counts(part)]
    found = _COUNT.fullmatch(value) if isinstance(value, str) else None
    return [found[1]] if found else []


def _filled(value: Any, counts: Mapping[str, int]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, Mapping):
        return {name: _filled(part, counts) for name, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, counts) for part in value]
    found = _COUNT.fullmatch(value) if isinstance(value, str) else None
    return counts[found[1]] if found else value
