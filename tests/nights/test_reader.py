"""A second process that holds the published database open and a nightly that publishes do not disturb each other."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from kit.commands import leadline
from kit.worlds import FIRST, make_traces, make_world, range_of, read, write

# Counts what stands in the tables, and reads the texts through the views of the lake, until its input closes.
READER = """
import json, select, sys
import duckdb
connection = duckdb.connect(sys.argv[1], read_only=True)
answers, rounds = set(), 0
while not select.select([sys.stdin], [], [], 0.2)[0]:
    answers.add(connection.execute(
        "SELECT count(*), round(sum(groundedness_score), 6), (SELECT count(*) FROM claim_results),"
        " (SELECT count(*) FROM runs), (SELECT sum(n) FROM nightly_groundedness) FROM trace_scores"
    ).fetchone())
    connection.execute("SELECT max(len(text)) FROM claim_details").fetchall()
    connection.execute("SELECT count(*), max(len(answer)) FROM traces").fetchall()
    rounds += 1
    if rounds == 1:
        print("reading", flush=True)
print(json.dumps({"answers": sorted(answers), "rounds": rounds}))
"""


@pytest.mark.slow
def test_a_reader_and_a_nightly_leave_each_other_alone(tmp_path: Path, without_prefect: dict[str, str]) -> None:
    rows = make_traces(3, 40, days=2)
    world = make_world(tmp_path, limits={"part_traces": 10, "shard_requests": 8})
    days = range_of(FIRST, FIRST + timedelta(days=1))
    write(tmp_path / "logs" / "first.jsonl", rows[:20])
    assert leadline("nightly", "-c", world.config, *days, env=without_prefect).returncode == 0

    command = [sys.executable, "-c", READER, str(world.warehouse)]
    reader = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=without_prefect
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"reading\n"
    write(tmp_path / "logs" / "second.jsonl", rows[20:])
    nightly = leadline("nightly", "-c", world.config, *days, env=without_prefect)
    assert reader.poll() is None  # it reads to the end of the run and beyond
    output, errors = reader.communicate(timeout=60)

    assert (nightly.returncode, reader.returncode, errors) == (0, 0, b""), nightly.stderr + errors
    reported = json.loads(output)
    assert reported["rounds"] > 10
    (old,) = reported["answers"]  # one and the same answer throughout
    assert old[0] == 20
    assert old[3] == 1
    (new,) = read(world.warehouse, "SELECT count(*) AS n, (SELECT count(*) FROM runs) AS runs FROM trace_scores")
    assert new == {"n": 40, "runs": 2}
