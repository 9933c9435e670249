"""Names in place of paths: which file they mean, what is said of a wrong one, and that versions don't depend on them."""

from pathlib import Path

import pytest
import yaml
from conftest import Command
from kit.root import ROOT

from tasks import graders, judges
from tasks.core.config import load_nightly, recipes_of
from tasks.core.config.names import ENDINGS, Kind, given_file, resolved, shipped, written
from tasks.core.errors import ConfigError, UsageError

CONFIGS = ROOT / "configs"
NIGHTLY = {"lake": "l", "warehouse": "w", "report": {"dir": "r"}, "sources": ["sample"], "recipe": {"judge": "nli"}}


def own(path: Path, text: str = "kind: similarity\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def nightly(folder: Path, **changes: object) -> Path:
    return own(folder / "nightly.yaml", yaml.safe_dump({**NIGHTLY, **changes}))


@pytest.mark.parametrize("kind", ENDINGS)
def test_every_shipped_file_has_a_name(kind: Kind, tmp_path: Path) -> None:
    files = sorted(p for p in (CONFIGS / kind).rglob("*") if p.suffix in (".yaml", ".md"))
    assert [resolved(Path(name), kind, tmp_path) for name in shipped(kind)] == sorted(
        files, key=lambda p: str(p.relative_to(CONFIGS / kind).with_suffix(""))
    )


def test_a_name_means_ones_own_file_first(tmp_path: Path) -> None:
    assert resolved(Path("nli"), "judges", tmp_path) == CONFIGS / "judges" / "nli.yaml"
    mine = own(tmp_path / "judges" / "nli.yaml")
    assert resolved(Path("nli"), "judges", tmp_path) == mine
    # From a folder of a kind, the folder above counts; from any other one, only what is in it.
    assert resolved(Path("nli"), "judges", tmp_path / "graders") == mine
    assert resolved(Path("nli"), "judges", tmp_path / "deep") == CONFIGS / "judges" / "nli.yaml"
    # A file without the folder of its kind is not meant.
    own(tmp_path / "similarity.yaml")
    assert resolved(Path("similarity"), "judges", tmp_path) == CONFIGS / "judges" / "similarity.yaml"


@pytest.mark.parametrize("given", ["nli.yaml", "judges/nli.yml", "../nli.yaml", "v1.md"])
def test_what_has_an_ending_is_a_path(tmp_path: Path, given: str) -> None:
    """Never a name, whether the file is there or not."""
    assert resolved(Path(given), "judges", tmp_path) == (tmp_path / given).resolve()


@pytest.mark.parametrize("given", ["../judges/nli", "judges/nli", "/nli", "nil", "NLI-", "qwen2.5"])
def test_what_is_neither_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match=r"is neither a path \(which ends in \.yaml\) nor a name") as error:
        resolved(Path(given), "judges", CONFIGS)
    assert "nli-deberta, " in str(error.value)  # among all names


@pytest.mark.parametrize(
    ("changes", "key", "near"),
    [
        ({"recipe": {"judge": "nil"}}, "recipe.judge", "'nli'"),
        ({"recipe": {"judge": "nli", "grades": {"grader": "entailmant"}}}, "recipe.grades.grader", "'entailment'"),
        ({"recipe": {"judge": "nli", "cascade": [{"band": [0, 1], "judge": "simlarity"}]}}, "recipe.cascade.0.judge", "'similarity'"),
        ({"sources": ["phenix"]}, "sources.0", "'phoenix'"),
        ({"recipe": None, "recipes": ["raga"]}, "recipes.0", "'ragas'"),
    ],
)  # fmt: skip
def test_a_wrong_name_names_place_near_miss_and_names(tmp_path: Path, changes: dict, key: str, near: str) -> None:
    path = nightly(tmp_path, **changes)
    with pytest.raises(ConfigError) as error:
        load_nightly(path)
    assert f"{path}: {key}" in str(error.value)
    assert f"Did you mean {near}" in str(error.value)
    assert "Known " in str(error.value)


def test_a_prompt_by_name_is_the_same_judge(tmp_path: Path) -> None:
    """The version is of what is in the file, not of how it was named."""
    shipped_judge = CONFIGS / "judges" / "qwen3-8b-24gb.yaml"
    settings = yaml.safe_load(shipped_judge.read_text())
    named = {**settings, "prompt": "entailment/v1", "explained_prompt": "entailment_explained/v1"}
    path = own(tmp_path / "mine.yaml", yaml.safe_dump(named))
    assert judges.load(path).version == judges.load(shipped_judge).version
    path = own(tmp_path / "mine.yaml", yaml.safe_dump({**named, "prompt": "entailment"}))
    with pytest.raises(ConfigError, match=r"mine.yaml: prompt is 'entailment'. It is neither a path.*Did you mean"):
        judges.load(path)


@pytest.mark.parametrize("name", ["nli", "similarity", "qwen3-8b-24gb"])
def test_a_judge_has_one_version_however_it_is_named(tmp_path: Path, name: str) -> None:
    copy = own(tmp_path / "copy" / "judges" / f"{name}.yaml", (CONFIGS / "judges" / f"{name}.yaml").read_text())
    if "prompt" in yaml.safe_load(copy.read_text()):
        (tmp_path / "copy" / "prompts").symlink_to(CONFIGS / "prompts")
    ways = {
        "name": nightly(tmp_path / "a", recipe={"judge": name}),
        "path": nightly(tmp_path / "b", recipe={"judge": str(CONFIGS / "judges" / f"{name}.yaml")}),
        "own file by name": nightly(tmp_path / "copy", recipe={"judge": name}),
    }
    versions = {}
    for way, path in ways.items():
        (chosen,) = recipes_of(load_nightly(path), path)
        versions[way] = judges.load(chosen.recipe.judge).version
    assert len(set(versions.values())) == 1
    (chosen,) = recipes_of(load_nightly(ways["own file by name"]), ways["own file by name"])
    assert chosen.recipe.judge == copy


def test_a_grader_finds_its_judge_by_name(tmp_path: Path) -> None:
    path = own(tmp_path / "g.yaml", "kind: entailment\njudge: nli\n")
    assert graders.load(path).version == graders.load(CONFIGS / "graders" / "entailment.yaml").version


def test_a_command_line_takes_a_path_as_it_is(tmp_path: Path) -> None:
    assert given_file(Path("x/y.yaml"), "judges", tmp_path / "nightly.yaml") == Path("x/y.yaml")
    assert given_file(Path("nli"), "judges", tmp_path / "nightly.yaml") == CONFIGS / "judges" / "nli.yaml"
    mine = own(tmp_path / "judges" / "nli.yaml")
    assert given_file(Path("nli"), "judges", tmp_path / "nightly.yaml") == mine
    with pytest.raises(UsageError, match=r"'nil' is neither a path.*Did you mean 'nli'"):
        given_file(Path("nil"), "judges")


def test_a_shipped_file_is_written_down_by_name_unless_ones_own_has_it(tmp_path: Path) -> None:
    """So a promotion holds where Leadline is installed elsewhere."""
    ships = CONFIGS / "judges" / "nli.yaml"
    assert written(ships, "judges", tmp_path) == Path("nli")
    mine = own(tmp_path / "judges" / "nli.yaml")
    assert written(mine, "judges", tmp_path) is None
    assert written(ships, "judges", tmp_path) is None
    assert written(tmp_path / "other.yaml", "judges", tmp_path) is None


def test_verbs_take_a_name(tmp_path: Path, command: Command) -> None:
    config = nightly(tmp_path)
    shown = command("judges", "show", "similarity", "--format", "json", "-c", config)
    assert (shown.code, '"judge":"similarity"' in shown.out.replace(": ", ":")) == (0, True)
    same = command("judges", "diff", "nli", CONFIGS / "judges" / "nli.yaml", "-c", config)
    assert "are the same version" in same.out
    promoted = command("judges", "promote", "similarity", "--reason", "a test", "--since", "2026-11-01", "-c", config)
    assert promoted.code == 0, promoted.err
    assert '"path":"similarity"' in command("judges", "history", "--format", "json", "-c", config).out
    for verb in (("judges", "check", "nil"), ("metaeval", "--judge", "nil"), ("judges", "promote", "nil", "--reason", "x"),
                 ("backfill", "--judge", "nil", "--from", "2026-11-01", "--to", "2026-11-01", "--no-prefect")):  # fmt: skip
        wrong = command(*verb, *(() if verb[1] == "check" else ("-c", config)))
        assert (wrong.code, "Did you mean 'nli'" in wrong.err) == (2, True), verb
