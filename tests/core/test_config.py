"""Configs: every kind of mistake names file, key, value and remedy, and paths start at the file."""

from pathlib import Path

import pytest
import yaml
from pydantic import Field, ValidationError, model_validator

from tasks.core.config import Nightly, Settings, did_you_mean, load_nightly, load_yaml, validate
from tasks.core.errors import ConfigError
from tasks.core.paths import ObjectUrl

GOOD = {
    "lake": "lake",
    "warehouse": "w.duckdb",
    "report": {"dir": "report"},
    "sources": ["sources/a.yaml"],
    "recipe": {"judge": "judges/j.yaml"},
}


def mistake(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "nightly.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load_nightly(path)
    assert str(caught.value).startswith(str(path))  # the file is always named first
    return str(caught.value).removeprefix(str(path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"surplus": 1}, ": surplus is not a known key. The keys here are lake, lake_cache, warehouse, report, sources, sample, executor, private, recipe, recipes, gates, limits, alerts, ducklake, retention, promotion."),
        ({"gate": {}}, ": gate is not a known key. Did you mean 'gates'."),
        ({"recipe": {"judge": "j.yaml", "pairing": {"windowwords": 3}}}, ": recipe.pairing.windowwords is not a known key. Did you mean 'window_words'."),
        ({"report": {"directory": "x", "dir": "y"}}, ": report.directory is not a known key. The keys here are dir, max_trace_pages, max_explorer_traces, prometheus."),
        ({"recipe": {"name": "x"}}, ": recipe.judge is missing. Add it; docs/configuration.md lists the keys."),
        ({"recipe": {"judge": "j.yaml", "pairing": {"kind": "all"}}}, ": recipe.pairing.kind is 'all'. It should be 'per_chunk', 'top_k', 'cited', 'cited_together' or 'all_chunks'."),
        ({"recipe": {"judge": "j.yaml", "scoring": {"misuse_penalty": -1}}}, ": recipe.scoring.misuse_penalty is -1. It should be greater than or equal to 0."),
        ({"gates": {"max_quarantined_share": 1.5}}, ": gates.max_quarantined_share is 1.5. It should be less than or equal to 1."),
        ({"gates": {"volume_ratio": 1}}, ": gates.volume_ratio is 1. It should be greater than 1."),
        ({"limits": {"part_traces": "many"}}, ": limits.part_traces is 'many'. It should be a valid integer, unable to parse string as an integer."),
        ({"limits": {"memory_limit": "lots"}}, r": limits.memory_limit is 'lots'. It should match pattern '^\d+ ?(MB|GB)$'."),
        ({"lake": "gs://b/lake"}, ": lake is 'gs://b/lake'. It should be a folder, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX with letters, digits and . _ - in it."),
        ({"lake": "az://my.container/lake"}, ": lake is 'az://my.container/lake'. It should be a folder, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX with letters, digits and . _ - in it."),
        ({"lake": "s3:/b/lake"}, ": lake is 's3:/b/lake'. It should be a folder, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX with letters, digits and . _ - in it."),
        ({"lake": "s3://b/../other"}, ": lake is 's3://b/../other'. It should be a folder, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX with letters, digits and . _ - in it."),
        ({"lake": {"url": "s3://b"}}, ": lake is a mapping. It should be a folder, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX."),
        ({"sources": []}, ": sources is []. It should have at least 1 item after validation, not 0."),
        ({"ducklake": {"dsn_env": "C", "data_path": "http://x/"}}, ": ducklake.data_path is 'http://x/'. It should be a folder or begin with s3:// or az://."),
        ({"gates": None}, ": gates is None. It should be a valid dictionary or instance of Gates."),
    ],
)  # fmt: skip
def test_a_wrong_key_or_value_names_place_value_and_remedy(tmp_path: Path, change: dict, message: str) -> None:
    assert mistake(tmp_path, yaml.safe_dump({**GOOD, **change})).startswith(message)


def test_the_address_of_a_catalog_is_not_shown(tmp_path: Path) -> None:
    given = {**GOOD, "ducklake": {"dsn_env": "postgresql://me:secret@host/x", "data_path": "x"}}
    message = mistake(tmp_path, yaml.safe_dump(given))
    assert message.startswith(
        ": ducklake is a mapping. It has a dsn_env that is no name of an environment variable; put "
    )
    assert "secret" not in message


def test_a_misspelt_required_key_is_called_misspelt_rather_than_missing(tmp_path: Path) -> None:
    renamed = {("warehose" if k == "warehouse" else k): v for k, v in GOOD.items()}
    assert mistake(tmp_path, yaml.safe_dump(renamed)) == ": warehose is not a known key. Did you mean 'warehouse'."


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
@pytest.mark.parametrize("key", ["misuse_penalty", "partial_credit"])
def test_only_finite_numbers_enter_a_formula(tmp_path: Path, key: str, number: float) -> None:
    # an infinite penalty times no misuse is no number, and would be clamped to the best score
    recipe = {"judge": "j.yaml", "scoring": {key: number}}
    message = mistake(tmp_path, yaml.safe_dump({**GOOD, "recipe": recipe}))
    assert message.startswith(f": recipe.scoring.{key} is {number}. It should be")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "lake: [1\nwarehouse: 2",
            " is not valid YAML at line 2, column 10 (expected ',' or ']', but got ':'). Correct",
        ),
        ("- a\n- b\n", " holds list, not a mapping of keys. Write `key: value` lines."),
        ("", " holds NoneType, not a mapping of keys. Write"),
        ("3: x\n", " holds dict, not a mapping of keys. Write"),
        (b"lake: \xff\xfe\n", " can't be read ('utf-8' codec can't decode byte 0xff"),
    ],
)
def test_a_file_that_is_no_config(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert mistake(tmp_path, text).startswith(message)


def test_a_missing_file_is_reported_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "nightly.yaml").write_text("{}")
    with pytest.raises(ConfigError, match=r"nigthly\.yaml does not exist\. Did you mean 'nightly\.yaml'\."):
        load_yaml(tmp_path / "nigthly.yaml")
    with pytest.raises(ConfigError, match=r"other\.yaml does not exist\. Check the path\."):
        load_yaml(tmp_path / "nowhere" / "other.yaml")


def test_a_file_of_another_kind_or_with_another_name_is_not_suggested(tmp_path: Path) -> None:
    """`nope` and `prefect` share two of eleven letters; `prefct` is near, but no file of Prefect's has a lake."""
    (tmp_path / "prefect.yaml").write_text("name: leadline\ndeployments: []\n")
    for name in ("nope.yaml", "prefct.yaml"):
        with pytest.raises(ConfigError, match=rf"{name} does not exist\. Check the path\."):
            load_yaml(tmp_path / name, "lake")
    with pytest.raises(ConfigError, match=r"Did you mean 'prefect\.yaml'\."):
        load_yaml(tmp_path / "prefct.yaml")


def test_a_directory_is_no_config(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load_yaml(tmp_path)


def test_paths_start_at_the_file_and_not_where_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "configs"
    folder.mkdir()
    named = {**GOOD, "lake": "../data/lake", "warehouse": "~/w.duckdb", "report": {"dir": "/srv/report"}}
    named["sources"] = ["sources/a.yaml", {"kind": "jsonl", "paths": ["x"]}]
    (folder / "n.yaml").write_text(yaml.safe_dump(named))
    found = load_nightly(folder / "n.yaml")
    assert found.lake == tmp_path / "data" / "lake"
    assert found.warehouse == tmp_path / "home" / "w.duckdb"
    assert found.report.dir == Path("/srv/report")
    assert found.recipe.judge == folder / "judges" / "j.yaml"
    assert found.sources == [folder / "sources" / "a.yaml", {"kind": "jsonl", "paths": ["x"]}]


def test_a_config_can_not_be_changed(tmp_path: Path) -> None:
    found = validate(Nightly, GOOD, "n.yaml")
    with pytest.raises(ValidationError, match="frozen"):
        found.lake = tmp_path  # type: ignore[misc]


class Place(Settings):
    options: dict[str, str] = Field(default_factory=dict)
    low: int = 0

    @model_validator(mode="after")
    def _fits(self) -> "Place":
        if self.low < 0:
            raise ValueError("has a low below 0; raise it")
        return self


@pytest.mark.parametrize(
    "settings",
    [
        {"options": [{"secret": "hunter2"}]},  # the whole value is of the wrong kind
        {"options": {"secret": {"value": "hunter2"}}},  # a part of it is
        {"options": {"secret": "hunter2"}, "low": -1},  # the model as a whole does not fit
        {"options": {"secret": "hunter2"}, "hunter": 1},  # something beside it is unknown
    ],
)
def test_a_mistake_beside_a_secret_does_not_print_it(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(Place, settings, "s.yaml", "sources")
    assert "hunter2" not in str(caught.value)
    assert str(caught.value).startswith("s.yaml: sources")


def test_a_name_far_from_all_known_ones_lists_them() -> None:
    assert did_you_mean("jsnl", ["jsonl", "otlp"], "kinds") == "Did you mean 'jsonl'."
    assert did_you_mean("x", ["b", "a"], "kinds of source") == "Known kinds of source: a, b."


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("lake: a\nreport: {dir: r}\nlake: b\n", "is not valid YAML at line 3, column 1 (key 'lake' twice)"),
        ("report: {dir: r, dir: s}\n", "(key 'dir' twice)"),
        ("lake: " + "[" * 3_000, "is nested too deeply"),
    ],
)
def test_a_file_that_yaml_would_read_otherwise_than_it_was_meant(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "n.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_yaml(tmp_path / "n.yaml")
    assert problem in str(caught.value)


def test_merged_keys_may_be_given_again(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text("a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\n")
    assert load_yaml(tmp_path / "n.yaml")["b"] == {"x": 3, "y": 2}


def test_a_path_that_no_file_can_have() -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load_yaml(Path("a\0.yaml"))


def test_a_lake_on_object_storage_has_copies_in_a_folder_of_its_own(tmp_path: Path) -> None:
    def lake(**keys: str) -> object:
        path = tmp_path / "nightly.yaml"
        path.write_text(yaml.safe_dump(GOOD | keys))
        return load_nightly(path).lake

    places = [lake(lake=url, lake_cache="copies") for url in ("s3://bkt/x", "s3://bkt/x/", "s3://bkt/y", "s3://bkt")]
    assert all(isinstance(place, ObjectUrl) and place.cache.parent == tmp_path / "copies" for place in places)
    assert places[0] == places[1]
    assert len({place.cache for place in places if isinstance(place, ObjectUrl)}) == 3
    assert [(p.bucket, p.prefix) for p in places if isinstance(p, ObjectUrl)][1:] == [
        ("bkt", "x"),
        ("bkt", "y"),
        ("bkt", ""),
    ]
    azure = lake(lake="az://bkt/x", lake_cache="copies")
    assert isinstance(azure, ObjectUrl)
    assert (azure.bucket, azure.prefix) == ("bkt", "x")
    assert azure.cache not in {place.cache for place in places if isinstance(place, ObjectUrl)}
    near = lake(lake="s3://bkt/x")
    assert isinstance(near, ObjectUrl)
    assert near.cache.parent == Path("~/.cache/leadline").expanduser()
