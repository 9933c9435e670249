"""Every verb's page: an example that can be run, options in one order with the same words, no types."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from kit.worlds import World, make_world

from flows.__main__ import LEADLINE
from flows.verbs import Verbs, with_config

# What several verbs share: which data, how the verb works, what it gives out, the config.
ORDER = [
    "--recipe", "--app", "--date", "--from", "--to", "--dry-run", "--retry-failures", "--no-prefect", "--format",
    "--output", "--config",
]  # fmt: skip
# Where a verb works on all days, or takes a recipe from the config, its text says so.
TEXTS = {"--recipe": 4, "--app": 2, "--date": 2, "--from": 2, "--config": 2, "--output": 3}


def every_verb(group: Verbs = LEADLINE, *above: str) -> Iterator[tuple[str, ...]]:
    for name, found in group.verbs.items():
        yield from every_verb(found, *above, name) if isinstance(found, Verbs) else [(*above, name)]


VERBS = list(every_verb())


def verb(path: tuple[str, ...]) -> Any:
    found: Any = LEADLINE
    for name in path:
        found = found.get_command(None, name)
    return found


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_a_page_has_one_example_that_the_verb_accepts(path: tuple[str, ...]) -> None:
    (example,) = re.findall(r"^Example: (leadline .+)$", verb(path).help, re.MULTILINE)
    program, *words = shlex.split(example)
    assert (program, tuple(words[: len(path)])) == ("leadline", path)
    verb(path).make_context("verb", words[len(path) :])


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_shared_options_stand_in_one_order(path: tuple[str, ...]) -> None:
    names = [param.opts[0] for param in verb(path).params]
    shared = [name for name in names if name in ORDER]
    assert shared == sorted(shared, key=ORDER.index)
    tail = ("--format", "--output", "--config")
    assert [name for name in names if name in tail] == names[len(names) - len([n for n in names if n in tail]) :]


def test_shared_options_have_the_same_words() -> None:
    texts: dict[str, set[str]] = defaultdict(set)
    for path in VERBS:
        for param in verb(path).params:
            if param.opts[0] in ORDER:
                texts[param.opts[0]].add(param.help)
    assert {name: len(found) for name, found in texts.items() if len(found) > 1} == TEXTS


@pytest.mark.parametrize("path", [(), ("judges",), *VERBS], ids=lambda path: " ".join(path) or "leadline")
def test_no_page_shows_a_type(path: tuple[str, ...], command: Command) -> None:
    page = command(*path, "--help").out
    assert re.findall(r"<[a-z ]+>|\[x[<>]|\{\w", page) == []
    assert "--no-any-file" not in page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Run `leadline nightly` first.", "Run `leadline nightly -c my.yaml` first."),
        ("leadline judges list, and leadline sql \"FROM x\"", "leadline judges list -c my.yaml, and leadline sql -c my.yaml \"FROM x\""),
        ("leadline sql -c other.yaml", "leadline sql -c other.yaml"),
        ("locked by leadline nightly 2026-11-01..2026-11-01", "locked by leadline nightly 2026-11-01..2026-11-01"),
        ("leadline init FOLDER", "leadline init FOLDER"),  # takes no config
    ],
)  # fmt: skip
def test_commands_in_a_message_name_the_config(text: str, expected: str) -> None:
    assert with_config(text, Path("my.yaml")) == expected
    assert with_config(text, Path("configs/nightly.yaml")) == text  # the default one
    assert with_config(text, None) == text


def test_an_error_names_the_config_that_was_given(tmp_path: Path, command: Command) -> None:
    world: World = make_world(tmp_path)
    ended = command("sql", "SELECT 1", "-c", world.config)
    assert (ended.code, f"`leadline rebuild -c {world.config}`" in ended.err) == (2, True)
