"""`leadline noise`: what it prints, what it leaves in the warehouse, and what it says of mistakes."""

import json
from functools import partial
from pathlib import Path

import pytest
from conftest import Command
from kit.worlds import FIRST, World, all_stages, make_traces, make_world, write

from tasks.run.build import build_context
from tasks.store.warehouse import query


@pytest.fixture
def command(command: Command) -> Command:
    return partial(command, "noise")


@pytest.fixture
def judged(tmp_path: Path) -> World:
    """A night that a judge has judged which always gives the same verdict."""
    world = make_world(tmp_path)
    write(tmp_path / "logs" / "a.jsonl", make_traces(1, 6, days=1))
    all_stages(build_context(world.config, FIRST, FIRST))
    return world


def test_it_measures_prints_and_keeps(judged: World, command: Command) -> None:
    options = ("--sample", 5, "--date", FIRST, "--config", judged.config)
    code, out, _ = command(*options)
    assert code == 0
    assert "replay under recipe claims" in out
    assert "1.000 [" in out
    keys = judged.log.read_text().split()
    asked_again = len(keys) - len(set(keys))
    assert asked_again >= 5
    code, out, _ = command(*options, "--format", "json", "--judge", "replay")
    (row,) = [json.loads(line) for line in out.splitlines()]
    assert (code, row["agreement"], row["n"], row["trace_sd"]) == (0, 1.0, asked_again, 0.0)
    assert len(judged.log.read_text().split()) == len(keys)  # asked once more, and not twice
    (kept,) = query(judged.warehouse, "SELECT judge_version, n, agreement, kappa FROM judge_noise").to_pylist()
    assert (kept["judge_version"], kept["n"], kept["agreement"]) == (row["judge_version"], row["n"], 1.0)
    runs = query(
        judged.warehouse, "SELECT status, verdicts_computed FROM runs WHERE flow = 'noise' ORDER BY started_at"
    )
    assert runs.to_pylist() == [
        {"status": "completed", "verdicts_computed": asked_again},
        {"status": "completed", "verdicts_computed": 0},
    ]
    shown = query(
        judged.warehouse,
        "SELECT count(*) AS n, count(DISTINCT (claim_id, pair_kind, request_key)) AS d FROM pair_verdicts",
    )
    assert shown["n"].to_pylist() == shown["d"].to_pylist()  # a look has one verdict, however often it was asked


def test_mistakes(judged: World, command: Command, tmp_path: Path) -> None:
    code, _, err = command("--sample", 5, "--date", FIRST, "--judge", "replya", "--config", judged.config)
    assert (code, "--judge replya: no recipe" in err, "They have replay." in err) == (2, True, True)
    code, _, err = command("--sample", 5, "--date", "2026-10-01", "--config", judged.config)
    assert (code, "has no verdicts of 2026-10-01" in err) == (2, True)
    code, _, _ = command("--sample", 0, "--date", FIRST, "--config", judged.config)
    assert code == 2
