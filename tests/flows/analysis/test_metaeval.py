"""`leadline metaeval` and the promotion gate as a user gives them: what is printed, kept, refused and written."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command
from kit.suite_kit import line, write_suite
from kit.worlds import World, make_world, read

from tasks import graders, judges
from tasks.store.lake import Lake

FULL = {"kind": "constant", "grades": {"answer_relevancy": 5, "completeness": 5, "faithfulness": 1, "usefulness": None}}
# Full marks pass the first case whole, and of the second all but answer relevancy and faithfulness: 10 of 12.
LINES = [
    line("Tea is hot [1]."),
    line("Tea is cold, and the sky blue [1].", ("<5", "==5", "==0", "==None"), metadata={"test_type": "additions"}),
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = make_world(tmp_path, promotion={"suite": "tea.jsonl", "pass_rates": {"overall": 0.8, "faithfulness": 0.5}})
    write_suite(tmp_path / "tea.jsonl", LINES)
    (made.out / "full.yaml").write_text(yaml.safe_dump(FULL))
    (made.out / "lots.yaml").write_text(yaml.safe_dump({"kind": "random"}))
    return made


def options(world: World, *names: str) -> list[object]:
    chosen = [arg for name in names for arg in ("--judge", world.out / f"{name}.yaml")]
    return ["metaeval", *chosen, "--suite", world.out.parent / "tea.jsonl", "--config", world.config]


def test_it_measures_prints_and_keeps(world: World, command: Command) -> None:
    code, out, _ = command(*options(world, "full"))
    assert code == 0
    lines = [" ".join(row.split()) for row in out.splitlines()]
    # One of two, by Wilson at n = 1, and two of two from 1 / (1 + z²) on; N/A for usefulness passes both. Chance: ==5 is 1 of 6, <5 is 4 of 6.
    assert "answer relevancy 0.500 [0.055, 0.945] 0.417" in lines
    assert any(row.startswith("usefulness 1.000 [0.207, 1.000]") for row in lines)
    assert any(row.startswith("overall 0.833 [") for row in lines)
    assert any(row.startswith("cases, every condition met 0.500 [") for row in lines)
    assert "additions 0/1 1/1 0/1 1/1 1/1 1/1 4/6" in lines
    assert "tea 1/2 2/2 1/2 2/2 2/2 2/2 10/12" in lines
    assert "tea:2 additions faithfulness ==0 1" in lines
    version = graders.load(world.out / "full.yaml").version
    kept = read(
        world.warehouse, "SELECT judge_version AS v, outcome, count(*) AS n FROM metaeval GROUP BY ALL ORDER BY ALL"
    )
    assert kept == [{"v": version, "outcome": "failed", "n": 2}, {"v": version, "outcome": "passed", "n": 10}]
    named = read(world.warehouse, "SELECT name, kind FROM judges")
    assert named == [{"name": "full", "kind": "constant"}]
    runs = read(world.warehouse, "SELECT flow, status, s.computed, s.reused FROM runs, unnest(stages) AS t(s)")
    assert runs == [{"flow": "metaeval", "status": "completed", "computed": 8, "reused": 0}]


def test_judges_side_by_side_as_json_and_paid_for_once(world: World, command: Command) -> None:
    assert command(*options(world, "full"))[0] == 0
    code, out, _ = command(*options(world, "full", "lots"), "--format", "json")
    full, lots = (json.loads(row) for row in out.splitlines())
    assert (code, full["judge"], lots["judge"]) == (0, "full", "lots")
    assert (full["rates"]["grades"]["overall"]["passed"], full["rates"]["grades"]["overall"]["n"], full["n_cases"]) == (
        10,
        12,
        2,
    )
    assert [r["case_id"] for r in full["results"] if r["outcome"] == "failed"] == ["tea:2", "tea:2"]
    assert len(lots["results"]) == 12
    stages = read(world.warehouse, "SELECT s.computed, s.reused FROM runs, unnest(stages) AS t(s)")
    assert sorted((s["computed"], s["reused"]) for s in stages) == [(0, 8), (8, 0), (8, 0)]


def test_a_judge_of_claims_is_asked_by_a_grader(world: World, command: Command) -> None:
    """The replay judge stands for the judge of claims; the embedding model is the real one."""
    code, out, _ = command(*options(world, "replay"), "--format", "json")
    (found,) = map(json.loads, out.splitlines())
    assert (code, found["judge"]) == (0, "entailment(replay)")
    assert found["claims_judge_version"] == judges.load(world.out / "replay.yaml").version
    code, out, _ = command("judges", "list", "--config", world.config)
    row = next(" ".join(r.split()) for r in out.splitlines() if "entailment(replay)" in r)
    assert f"{found['rates']['grades']['overall']['value']:.3f}" in row


def test_a_graders_file_is_shown_and_told_apart(world: World, command: Command) -> None:
    """Before it has graded anything, as a judge's file is."""
    full, lots = (world.out / f"{name}.yaml" for name in ("full", "lots"))
    code, out, _ = command("judges", "show", full, "--format", "json", "--config", world.config)
    shown = json.loads(out)
    assert (code, shown["judge"], shown["kind"]) == (0, "full", "constant")
    assert shown["judge_version"] == graders.load(full).version
    code, out, _ = command("judges", "diff", full, lots, "--config", world.config)
    assert (code, ["kind", "constant", "random"] in [row.split() for row in out.splitlines()]) == (0, True)
    code, out, _ = command("judges", "diff", lots, world.out / "replay.yaml", "--config", world.config)
    assert (code, ["kind", "random", "replay"] in [row.split() for row in out.splitlines()]) == (0, True)


def test_promotion_requires_what_the_config_says(world: World, command: Command) -> None:
    promote = ["judges", "promote", world.out / "replay.yaml", "--reason", "x", "--config", world.config]
    code, _, err = command(*promote)
    assert (code, "has no results there" in err, f"leadline metaeval -c {world.config} --judge" in err) == (
        2,
        True,
        True,
    )
    code, out, _ = command(*options(world, "replay"), "--format", "json")
    rates = json.loads(out)["rates"]["grades"]

    def require(**least: float) -> None:
        config = yaml.safe_load(world.config.read_text())
        world.config.write_text(yaml.safe_dump(config | {"promotion": {"suite": "tea.jsonl", "pass_rates": least}}))

    require(overall=min(1.0, rates["overall"]["value"] + 0.05))
    code, _, err = command(*promote)
    assert (code, "is below what promotion.pass_rates" in err) == (2, True)
    assert f"overall {rates['overall']['value']:.3f} [" in err
    assert read(world.warehouse, "FROM promotions") == []
    require(overall=rates["overall"]["value"] - 0.05)
    assert command(*promote)[0] == 0
    (kept,) = read(world.warehouse, "SELECT pass_rate FROM promotions")
    assert kept["pass_rate"] == pytest.approx(rates["overall"]["value"])
    code, out, _ = command("judges", "history", "--config", world.config)
    assert f" {kept['pass_rate']:.3f} " in out


def test_the_page_is_written(world: World, command: Command, tmp_path: Path) -> None:
    code, out, err = command(*options(world, "full"), "--format", "html", "-o", tmp_path / "page.html")
    assert (code, out, "written" in err) == (0, "", True)
    assert "Tea is cold, and the sky blue [1]." in (tmp_path / "page.html").read_text()
    code, out, _ = command(*options(world, "full"), "--format", "html")
    assert (code, out) == (0, (tmp_path / "page.html").read_text())


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ({"judge": ["none"]}, 2, "none.yaml does not exist"),
        ({"judge": ["full", "full"]}, 2, "is the same judge as full"),
        ({"judge": ["list"]}, 2, "is no kind of grader"),
        ({"suite": "nowhere.jsonl"}, 2, "nowhere.jsonl does not exist"),
        ({"suite": "bad.jsonl"}, 3, "bad.jsonl, line 1 is not a valid test case"),
        ({"suite": "."}, 0, ""),
    ],
)
def test_exit_codes(world: World, command: Command, given: dict[str, Any], code: int, message: str) -> None:
    here = world.out.parent
    if "bad" in given.get("suite", ""):
        write_suite(here / "bad.jsonl", ["{}"])
    (world.out / "list.yaml").write_text("kind: [llm]\n")
    chosen = [arg for name in given.get("judge", ["full"]) for arg in ("--judge", world.out / f"{name}.yaml")]
    ended_with, _, err = command(
        "metaeval", *chosen, "--suite", here / given.get("suite", "tea.jsonl"), "--config", world.config
    )
    assert (ended_with, message in err) == (code, True)
    assert "Traceback" not in err
    assert "How hot is tea" not in err


def test_a_run_that_holds_the_lake_is_waited_for_by_nobody(world: World, command: Command) -> None:
    with Lake(world.lake).lock("another"):
        code, _, err = command(*options(world, "full"))
    assert (code, "locked by another" in err) == (4, True)
