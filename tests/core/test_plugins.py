"""Plugins: a module with `build` is a kind, nothing else is; a mistake names the kinds."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tasks.core.errors import ConfigError
from tasks.core.plugins import configured, kinds

KIND = """
from tasks.core.config import Settings
class Config(Settings):
    kind: str
    size: int = 1
def build(config): return config.size
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    folder = tmp_path / "kinds_of_test"
    folder.mkdir()
    for name, text in {"__init__": "", "round_one": KIND, "square": KIND, "_helper": KIND, "plain": "x = 1"}.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    import kinds_of_test  # type: ignore[import-not-found]  # noqa: PLC0415

    yield kinds_of_test
    for name in [n for n in sys.modules if n.startswith("kinds_of_test")]:
        del sys.modules[name]


def test_a_file_is_a_kind_when_it_can_build(package: ModuleType) -> None:
    assert list(kinds(package)) == ["round_one", "square"]


def test_settings_come_back_as_the_kinds_own_config(package: ModuleType) -> None:
    module, config = configured(package, {"kind": "square", "size": "4"}, "shape", "s.yaml")
    assert module.build(config) == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "s.yaml: a.kind is missing. Write one of: round_one, square."),
        ({"kind": "sqare"}, "s.yaml: a.kind is 'sqare', which is no kind of shape. Did you mean 'square'."),
        ({"kind": "_helper"}, "s.yaml: a.kind is '_helper', which is no kind of shape. Known kinds of shape: round_one, square."),
        ({"kind": ["square"]}, "s.yaml: a.kind is ['square'], which is no kind of shape."),
        ({"kind": "square", "sise": 2}, "s.yaml: a.sise is not a known key. Did you mean 'size'."),
        ({"kind": "square", "size": "x"}, "s.yaml: a.size is 'x'. It should be a valid integer"),
    ],
)  # fmt: skip
def test_mistakes(package: ModuleType, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(package, settings, "shape", "s.yaml", "a")
    assert str(caught.value).startswith(message)
