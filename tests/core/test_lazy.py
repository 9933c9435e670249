"""A library loads when it is first used, and a missing one is an error at once."""

import sys
from pathlib import Path

import pytest

from tasks.core.lazy import lazy


def test_a_module_loads_at_its_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tmp_path / "loaded"
    (tmp_path / "seldom_used.py").write_text(f"open({str(loaded)!r}, 'w').close()\nANSWER = 42\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = lazy("seldom_used")
    assert not loaded.exists()
    assert module.ANSWER == 42
    assert loaded.exists()


def test_a_module_that_is_loaded_is_taken_as_it_is() -> None:
    assert lazy("sys") is sys


def test_a_missing_module_is_an_error_before_its_use() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        lazy("no_such_library")
