"""Texts of traces stay in the lake and the warehouse: none in Prefect, in what is printed, or in the gates' pages."""

import json
import sqlite3
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import PrefectServer
from kit.commands import leadline
from kit.root import ROOT
from kit.worlds import FIRST, World, make_world, read, trace, write

CANARY = "QXCANARY"
GRADER = ROOT / "configs" / "graders" / "constant.yaml"


def marked(trace_id: str, **changes: Any) -> dict[str, Any]:
    """A trace with a canary in each of its texts."""
    texts = {
        "question": f"{CANARY}question?",
        "answer": f"The {CANARY}answer is thirty days [1]. A {CANARY}claim without a citation, [9].",
        "chunks": [{"chunk_id": "1", "title": f"{CANARY}title", "text": f"The {CANARY}chunk is thirty days."}],
        "reference_answer": f"{CANARY}reference",
        "feedback": {"comment": f"{CANARY}feedback"},
        "tags": {f"{CANARY}key": f"{CANARY}value"},
    }
    return trace(trace_id, **(texts | changes))


def refused() -> list[Mapping[str, Any] | bytes]:
    """Rows that are refused at every place, with texts in them."""
    chunk = {"chunk_id": "1", "text": f"{CANARY}double"}
    return [
        b'{"trace_id": "cut", "question": "%b' % CANARY.encode(),
        {**marked("type"), "question": [f"{CANARY}list"]},
        marked("nul", answer=f"{CANARY}\0"),
        marked("old", timestamp="1999-01-01T00:00:00Z"),
        marked("twice", chunks=[chunk, chunk]),
        marked("good-0", answer=f"{CANARY}conflict"),
    ]


def post(server: PrefectServer, what: str) -> str:
    """Everything of one kind that Prefect's API tells."""
    request = urllib.request.Request(
        f"{server.url}/{what}/filter", data=b"{}", headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(answer.read().decode())


def database(server: PrefectServer) -> str:
    """Every row of every table of Prefect's own database."""
    (path,) = server.home.glob("*.db")
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        names = [n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return "\n".join(str(row) for n in names for row in connection.execute(f'SELECT * FROM "{n}"'))


def holds(world: World, *below: str) -> list[Path]:
    """Files below a directory of the lake in which a canary stands as plain bytes."""
    found = [p for p in world.lake.joinpath(*below).rglob("*") if p.is_file()]
    assert found
    return [p for p in found if CANARY.encode() in p.read_bytes()]


@pytest.mark.slow
def test_no_text_of_a_trace_leaves_the_lake(
    tmp_path: Path, prefect_server: PrefectServer, environment: dict[str, str]
) -> None:
    world = make_world(tmp_path, gates={"max_quarantined_share": 0.5})
    config = yaml.safe_load(world.config.read_text())
    config["recipe"]["grades"] = {"grader": str(GRADER)}  # a stage that is handed whole answers
    world.config.write_text(yaml.safe_dump(config))
    write(tmp_path / "logs" / "a.jsonl", [marked(f"good-{i}") for i in range(6)] + refused())
    env = environment | {"PREFECT_LOGGING_LEVEL": "DEBUG"}  # a user who wants to see everything
    options = ["nightly", "--config", world.config, "--date", FIRST]
    good = leadline(*options, env=env)
    assert good.returncode == 0, good.stderr.decode()
    write(tmp_path / "logs" / "b.jsonl", refused())
    too_bad = leadline(*options, env=env)
    assert too_bad.returncode == 3
    # A log that can't be written: the judge fails in the middle of the run.
    (tmp_path / "logs" / "b.jsonl").unlink()
    write(tmp_path / "logs" / "c.jsonl", [marked("new", answer=f"Another {CANARY}answer [1].")])
    world.log.unlink()
    world.log.mkdir()
    outage = leadline(*options, env=env)
    assert outage.returncode == 1

    # The texts are where they belong, so that looking for them elsewhere means something.
    (texts,) = read(world.warehouse, f"SELECT count(*) AS n FROM traces WHERE answer LIKE '%{CANARY}%'")
    assert texts["n"] == 7
    (graded,) = read(world.warehouse, "SELECT count(DISTINCT trace_id) AS n FROM grades")
    assert graded["n"] == 6  # the last run ended before it graded
    held = read(world.warehouse, "SELECT reason, detail, raw FROM quarantine")
    assert all(CANARY in r["raw"] for r in held)
    assert len({r["reason"] for r in held}) == 6
    assert CANARY not in json.dumps([r["detail"] for r in held])
    assert CANARY not in str(read(world.warehouse, "FROM runs"))

    for output in (good, too_bad, outage):
        assert CANARY.encode() not in output.stdout + output.stderr
    reported = {what: post(prefect_server, what) for what in ("flow_runs", "task_runs", "logs", "artifacts", "events")}
    assert f"nightly {FIRST}..{FIRST}" in reported["flow_runs"]  # these runs are among what Prefect tells
    assert [what for what, text in reported.items() if CANARY in text] == []
    rows = database(prefect_server)
    assert str(world.config) in rows  # the same of its database
    assert CANARY not in rows
    assert holds(world, ".gates") == []
