"""`leadline init`. That the installed command judges the sample from there is shown by `nights/test_sample.py`."""

import filecmp
from pathlib import Path

import pytest
from kit.root import ROOT

from flows import init
from tasks.core.config import load_nightly
from tasks.core.errors import ConfigError, UsageError
from tasks.core.paths import CONFIG


def same(one: Path, other: Path) -> bool:
    found = filecmp.dircmp(one, other)
    return found.left_list == found.right_list and all(
        same(one / name, other / name) if (one / name).is_dir() else filecmp.cmp(one / name, other / name, False)
        for name in found.left_list
    )


def test_configs_and_sample_are_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    init.command(tmp_path / "mine")
    assert same(ROOT / "configs", tmp_path / "mine" / "configs")
    assert same(ROOT / "data" / "sample", tmp_path / "mine" / "data" / "sample")
    assert f"cd {tmp_path / 'mine'} && leadline nightly --from" in capsys.readouterr().out
    assert load_nightly(tmp_path / "mine" / CONFIG).lake == tmp_path / "mine" / "data" / "lake"


@pytest.mark.parametrize("there", ["configs/mine.yaml", "data/sample/mine.jsonl"])
def test_nothing_is_overwritten(tmp_path: Path, there: str) -> None:
    (tmp_path / there).parent.mkdir(parents=True)
    (tmp_path / there).touch()
    with pytest.raises(UsageError, match=f"{(tmp_path / there).parent} already exists"):
        init.command(tmp_path)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [tmp_path / there]


def test_without_a_config_the_message_names_init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"configs/nightly.yaml does not exist. .*`leadline init`.* --config"):
        load_nightly(CONFIG)
