"""Judges from their config files: kinds are found, mistakes are named."""

import pytest

from tasks import judges
from tasks.core import plugins
from tasks.core.errors import ConfigError


def write(tmp_path, text):
    file = tmp_path / "judge.yaml"
    file.write_text(text)
    return file


def test_kinds_are_the_modules_without_helpers():
    found = list(plugins.kinds(judges))
    assert {"similarity", "replay"} <= set(found)
    assert not [name for name in found if name.startswith("_")]


def test_loads_a_judge_by_kind(tmp_path):
    judge = judges.load(write(tmp_path, "kind: replay\nseed: 3\n"))
    assert judge.engine == "replay"
    assert judge.describe()["seed"] == 3


def test_missing_kind_lists_the_kinds(tmp_path):
    with pytest.raises(ConfigError, match=r"judge\.yaml: kind is missing.*replay.*similarity"):
        judges.load(write(tmp_path, "seed: 3\n"))


def test_misspelt_kind_gets_a_suggestion(tmp_path):
    with pytest.raises(ConfigError, match=r"kind is 'similarty'.*Did you mean 'similarity'"):
        judges.load(write(tmp_path, "kind: similarty\n"))


@pytest.mark.parametrize("kind", ["_base", "quantum", "3", "[a]", "os"])
def test_unknown_kind_is_a_config_error(tmp_path, kind):
    with pytest.raises(ConfigError, match="kind is"):
        judges.load(write(tmp_path, f"kind: {kind}\n"))


def test_unknown_key_of_a_judge_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"judge\.yaml: sede is not a known key.*Did you mean 'seed'"):
        judges.load(write(tmp_path, "kind: replay\nsede: 3\n"))


def test_missing_file_is_a_config_error(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        judges.load(tmp_path / "none.yaml")
