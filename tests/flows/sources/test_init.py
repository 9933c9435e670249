"""`leadline init`. That the installed command judges the sample from there is shown by `nights/test_sample.py`."""

import filecmp
import io
from datetime import date
from pathlib import Path

import pytest
import yaml
from conftest import Command
from kit.root import ROOT
from kit.stores.server import serve
from kit.stores.worlds import NOON, Phoenix, Small

from flows.sources import init
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


@pytest.mark.parametrize("there", ["configs/mine.yaml", "data/sample/mine.jsonl", "data/lake/.salt"])
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


class Typed(io.StringIO):
    """What somebody types at a terminal."""

    def isatty(self) -> bool:
        return True


class TestSource:
    STORE = Phoenix([Small("a"), Small("b")])
    DAY = NOON.date()

    def test_it_is_written_and_checked(self, tmp_path: Path, command: Command) -> None:
        with serve(self.STORE.answer) as server:
            given = ("--source", "phoenix", "--set", f"url={server.url}", "--set", "project=shop")
            done = command("init", tmp_path / "mine", *given, "--date", self.DAY)
        assert done.code == 0, done.err
        assert "2 traces seen, 2 imported" in done.out
        source = tmp_path / "mine" / "configs" / "sources" / "phoenix.yaml"
        assert yaml.safe_load(source.read_text()) == {"kind": "phoenix", "url": server.url, "project": "shop"}
        assert "# api_key_env: PHOENIX_API_KEY" in source.read_text()  # comments stay
        config = load_nightly(tmp_path / "mine" / CONFIG)
        assert config.sources == [source]
        written = yaml.safe_load((tmp_path / "mine" / CONFIG).read_text())
        assert (written["sources"], written["recipe"]["judge"]) == (["phoenix"], "nli")  # names, not paths
        assert config.lake == tmp_path / "mine" / "data" / "lake"  # not the sample's
        assert config.gates == load_nightly(ROOT / CONFIG).gates
        assert not (tmp_path / "mine" / "data").exists()

    def test_traces_of_ones_own_never_join_the_sample(self, tmp_path: Path, command: Command) -> None:
        """The lake is left where its configs are gone; and a folder with the sample is no place for another source."""
        assert command("init", tmp_path).code == 0
        given = ("init", tmp_path, "--source", "jsonl", "--set", "paths=a.jsonl")
        assert "configs already exists" in command(*given).err
        (tmp_path / "data" / "lake").mkdir()
        (tmp_path / "configs").rename(tmp_path / "old")
        assert "lake already exists" in command(*given).err
        assert not (tmp_path / "configs").exists()

    def test_a_terminal_is_asked(self, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        with serve(self.STORE.answer) as server:
            monkeypatch.setattr("sys.stdin", Typed(f"phoenix\n{server.url}\nshop\n"))
            done = command("init", tmp_path / "mine", "--date", self.DAY)
        assert done.code == 0, done.err
        assert "2 traces seen, 2 imported" in done.out

    def test_the_sample_is_what_enter_gives(
        self, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdin", Typed("\n"))
        assert command("init", tmp_path / "mine").code == 0
        assert (tmp_path / "mine" / "data" / "sample").is_dir()

    def test_files_instead_of_a_server(self, tmp_path: Path, command: Command) -> None:
        log = tmp_path / "logs" / "2026-11-01.jsonl"
        log.parent.mkdir()
        sample = (ROOT / "data" / "sample" / "2026-11-01.jsonl").read_text().splitlines()
        log.write_text("\n".join(sample[:5]))
        given = ("--source", "jsonl", "--set", f"paths={tmp_path}/logs/{{date}}.jsonl")
        done = command("init", tmp_path / "mine", *given, "--date", date(2026, 11, 1))
        assert "5 traces seen" in done.out, done.err

    def test_a_source_that_is_not_ready_leaves_the_configs(self, tmp_path: Path, command: Command) -> None:
        given = ("--source", "jsonl", "--set", f"paths={tmp_path}/none.jsonl")
        done = command("init", tmp_path / "mine", *given)
        assert done.code == 1
        assert "none.jsonl does not exist" in done.err
        assert f"Correct {tmp_path / 'mine' / 'configs' / 'sources' / 'jsonl.yaml'}, then check it:" in done.out
        assert (tmp_path / "mine" / CONFIG).exists()

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            (("--source", "phenix"), "--source phenix: no such kind. Did you mean 'phoenix'"),
            (("--source", "phoenix", "--set", "url"), "--set url: no value. Write KEY=VALUE"),
            (("--source", "phoenix", "--set", "api_key_env=sk-Abc123"), "is not the name of an environment variable"),
            (
                ("--source", "phoenix", "--set", "api_key_env=Abc123def456"),
                "is not the name of an environment variable",
            ),
            (
                ("--source", "phoenix", "--set", "url=http://me:Abc123@host"),
                "`url` holds a name, a password or a query",
            ),
            (("--source", "phoenix", "--set", "projct=a"), "Did you mean 'project'"),
            (("--source", "phoenix", "--set", "url=["), "--set url: the value is not valid YAML"),
            (("--source", "phoenix", "--set", "url.x=1"), "--set url.x: url is a value, not a section"),
            (("--source", "langsmith", "--set", "project=a"), "--set, source langsmith: project is 'a'"),
            (("--set", "url=http://x"), "--set belongs to a source of your own"),
        ],
    )
    def test_mistakes_write_nothing(self, tmp_path: Path, command: Command, given: tuple[str, ...], words: str) -> None:
        done = command("init", tmp_path / "mine", *given)
        assert done.code == 2
        assert words in done.err
        assert "Abc123" not in done.err + done.out
        assert not (tmp_path / "mine").exists()
