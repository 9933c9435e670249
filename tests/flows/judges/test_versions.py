"""`leadline judges`, as a user gives it: what there is, what differs, promotion and retirement with their reasons."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from kit.commands import leadline
from kit.worlds import FIRST, World, make_traces, make_world, read, write

from tasks import judges
from tasks.run.scopes.promotions import written_path

DAY = ["--date", str(FIRST)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, without_prefect: dict[str, str]) -> World:
    """A night under the judge `replay`, backfilled under `second`."""
    root = tmp_path_factory.mktemp("judges")
    write(root / "logs" / "a.jsonl", make_traces(4, 12, days=1))
    world = make_world(root)
    (world.out / "second.yaml").write_text(yaml.safe_dump({"kind": "replay", "seed": 1}))
    done(leadline("nightly", "--config", world.config, *DAY, env=without_prefect))
    days = ["--from", str(FIRST), "--to", str(FIRST)]
    done(
        leadline("backfill", "--config", world.config, *days, "--judge", world.out / "second.yaml", env=without_prefect)
    )
    return world


def done(ended: "subprocess.CompletedProcess[bytes]") -> str:
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode()


def judge(world: World, env: Mapping[str, str], verb: str, *args: object) -> str:
    return done(leadline("judges", verb, *args, "--config", world.config, env=env))


def version(world: World, name: str) -> str:
    return judges.load(world.out / f"{name}.yaml").version


@pytest.mark.slow
def test_from_the_list_to_promotion_and_back(
    world: World, without_prefect: dict[str, str], no_server: dict[str, str]
) -> None:
    listed = judge(world, no_server, "list")
    assert "Nothing is promoted" in listed
    assert version(world, "replay") in listed
    assert version(world, "second") in listed
    verdicts = read(world.warehouse, "SELECT judge_version AS v, count(*) AS n FROM verdicts GROUP BY ALL")
    assert all(f"{row['n']:,}" in listed for row in verdicts)

    shown = json.loads(judge(world, no_server, "show", "second", "--format", "json"))
    assert (shown["kind"], shown["seed"], shown["judge_version"]) == ("replay", 1, version(world, "second"))
    # The two differ in their seed and in nothing else.
    rows = [line.split() for line in judge(world, no_server, "diff", "replay", "second").splitlines()]
    assert [row for row in rows if row[:1] == ["seed"]] == [["seed", "0", "1"]]
    assert not [row for row in rows if row[:1] == ["kind"]]
    assert "same version" in judge(world, no_server, "diff", "second", world.out / "second.yaml")

    # Tonight's run would be refused.
    refused = leadline("judges", "retire", "replay", "--reason", "x", "--config", world.config, env=no_server)
    assert refused.returncode == 2
    assert "is what tonight's run takes for recipe claims" in refused.stderr.decode()

    message = judge(
        world, no_server, "promote", world.out / "second.yaml", "--since", FIRST, "--reason", "[b]better[/b]"
    )
    assert f"From {FIRST} on, second ({version(world, 'second')}) counts for recipe claims." in message
    assert "has judged no night" not in message  # the backfill gave it a past
    assert f"claims since {FIRST}" in judge(world, no_server, "list")
    history = [json.loads(line) for line in judge(world, no_server, "history", "--format", "json").splitlines()]
    assert [(h["action"], h["judge"], h["reason"]) for h in history] == [("promote", "second", "[b]better[/b]")]
    assert "[b]better[/b]" in judge(world, no_server, "history")  # shown as it was written

    # The nightly follows, judges nothing anew, and the tables say which recipe counts.
    done(leadline("nightly", "--config", world.config, *DAY, env=without_prefect))
    counts = "SELECT DISTINCT judge_version AS v FROM current_recipes"
    assert read(world.warehouse, counts) == [{"v": version(world, "second")}]
    for view in ("current_trace_scores", "current_groundedness", "current_claim_details"):
        assert read(world.warehouse, f"SELECT DISTINCT judge_version AS v FROM {view}") == [
            {"v": version(world, "second")}
        ]
    assert read(world.warehouse, "SELECT DISTINCT judge FROM promotions") == [{"judge": "second"}]
    page = (world.out / "report" / str(FIRST) / "index.html").read_text()
    assert version(world, "second") in page

    # What counts can't be retired; what does not, can, and is refused from then on.
    refused = leadline("judges", "retire", "second", "--reason", "x", "--config", world.config, env=no_server)
    assert refused.returncode == 2
    assert "still counts for claims since" in refused.stderr.decode()
    judge(world, no_server, "retire", "replay", "--reason", "worse")
    assert "retired" in judge(world, no_server, "list")
    days = ["--from", FIRST, "--to", FIRST]
    again = ["backfill", "--config", world.config, *days, "--judge", world.out / "replay.yaml"]
    ended = leadline(*again, env=no_server)
    assert ended.returncode == 2
    assert "was retired on" in ended.stderr.decode()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["show", "nobody"], "'nobody' is not a judge of this lake (replay, second)"),
        (["diff", "replay", "none.yaml"], "none.yaml does not exist"),
        (["promote", "none.yaml", "--reason", "x"], "none.yaml does not exist"),
        (["retire", "second", "--reason", " "], "--reason is empty"),
    ],
)
def test_mistakes_are_reported(world: World, no_server: dict[str, str], args: list[str], message: str) -> None:
    ended = leadline("judges", *args, "--config", world.config, env=no_server)
    assert ended.returncode == 2
    assert message in ended.stderr.decode()
    assert "Traceback" not in ended.stderr.decode()


def test_an_unknown_recipe_is_told(world: World, no_server: dict[str, str]) -> None:
    given = ["promote", world.out / "second.yaml", "--recipe", "other", "--reason", "x", "--config", world.config]
    ended = leadline("judges", *given, env=no_server)
    assert ended.returncode == 2
    assert "'other' is not one of the recipes" in ended.stderr.decode()


def test_the_path_of_a_promoted_judge_moves_with_the_config(tmp_path: Path) -> None:
    judge_file, config = tmp_path / "judges" / "a.yaml", tmp_path / "nightly.yaml"
    assert written_path(judge_file, config) == "judges/a.yaml"
