"""Graders, which give whole answers six grades (docs/methods.md#grades-of-a-grounded-answer). Each module is one kind.

A module defines a pydantic model `Config` (the keys of its YAML file) and `build(config, where) -> Grader`.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from tasks import judges
from tasks.core.config import load_yaml
from tasks.core.errors import EngineError
from tasks.core.grades import Grader, Statement
from tasks.core.plugins import configured, kinds
from tasks.core.types import Answer, Extractor

_WRAPPED = "entailment"  # the kind of grader that wraps a judge of claims

STATED = ("claim", "refusal")  # kinds of cut text that count as statements of an answer


def load(path: Path) -> Grader:
    """The grader that a YAML file describes. The first call loads its model.

    Raises:
        ConfigError: The file or one of its keys is wrong, or its kind is unknown.
    """
    return _built(load_yaml(path), path)


def opened(path: Path) -> Grader:
    """The grader that a YAML file of a grader or of a judge describes.

    A judge is wrapped in a grader of kind `entailment` with that kind's default settings.

    Raises:
        ConfigError: See `load`.
    """
    of_claims = not described(path) and load_yaml(path).get("kind") in list(kinds(judges))
    return _built({"kind": _WRAPPED, "judge": path.resolve()} if of_claims else load_yaml(path), path)


def described(path: Path) -> bool:
    """Whether a file describes a grader. A file of kind `llm` does only if it has `prompts`."""
    settings = load_yaml(path)
    return "prompts" in settings or settings.get("kind") in sorted({*kinds(sys.modules[__name__])} - {*kinds(judges)})


def statements(extractor: Extractor, answer: Answer) -> tuple[Statement, ...]:
    """The statements of an answer, as a judge reads them. They cite chunks by number, from 1, in `answer.chunks`.

    Raises:
        EngineError: The extractor's model can't be run, or did not process all of the answer.
    """
    (found,) = extractor.extract_many([answer])
    if found.outage:
        raise EngineError("the extractor's model did not process an answer. Start it and run again.")
    numbers = {chunk.chunk_id: number for number, chunk in enumerate(answer.chunks, start=1)}
    return tuple(
        statement(c.hypothesis, c.cited_chunk_ids, c.dangling, numbers) for c in found.claims if c.kind in STATED
    )


def statement(text: str, cited: Iterable[str], dangling: Sequence[str], numbers: Mapping[str, int]) -> Statement:
    """One statement of an answer.

    Args:
        numbers: Numbers of the answer's chunks, from 1, by chunk id.
    """
    return Statement(text, tuple(sorted(numbers[i] for i in cited)), len(dangling))


def _built(settings: Mapping[str, object], path: Path) -> Grader:
    module, config = configured(sys.modules[__name__], settings, "grader", path)
    return cast("Grader", module.build(config, str(path)))
