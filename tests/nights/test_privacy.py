"""Texts of traces stay in the lake and the warehouse: none in Prefect, in what is printed, or in the gates' pages.

And nothing leaves the machine: a night needs no network, and looks no name up.
"""

import json
import os
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import PrefectServer
from kit.commands import leadline, works
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


MAY = works("ip", "-V") and works("unshare", "-n", "true")
# In a network of its own: a loopback that also has the addresses of the name servers, and a name server that keeps names.
INSIDE = r"""
import re, socket, subprocess, sys, threading
from pathlib import Path
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
def serve(address):
    subprocess.run(["ip", "addr", "add", f"{address}/32", "dev", "lo"], check=False, stderr=subprocess.DEVNULL)
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, 53))
    def answer():
        while True:
            asked, client = server.recvfrom(4096)
            print("lookup", re.sub(rb"[^a-z0-9-]+", b".", asked[12:]).decode(), flush=True)
            server.sendto(asked[:2] + b"\x81\x83" + asked[4:6] + bytes(6) + asked[12:], client)
    threading.Thread(target=answer, daemon=True).start()
for address in re.findall(r"^nameserver\s+([\d.]+)", Path("/etc/resolv.conf").read_text(), re.MULTILINE) or ["127.0.0.1"]:
    serve(address)
if sys.argv[1] == "lookup":
    try:
        socket.getaddrinfo("leadline.invalid", 80)
    except OSError:
        pass
else:
    sys.exit(subprocess.run([sys.executable, "-m", *sys.argv[1:]]).returncode)
"""


def lookups(*arguments: object) -> list[str]:
    """Names that were looked up while a module ran, which must end well."""
    ours = ("DO_NOT_TRACK", "GX_", "HF_", "ORT_", "PREFECT_", "VLLM_", "OMP_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    command = ["unshare", "-n", sys.executable, "-c", INSIDE, *map(str, arguments)]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("lookup")]


@pytest.mark.slow
@pytest.mark.skipif(not MAY, reason="only root may make a network, with unshare and Debian's package iproute2")
def test_a_night_needs_no_network_and_looks_nothing_up(tmp_path: Path) -> None:
    assert any("leadline" in line for line in lookups("lookup")), "the name server hears nothing"
    world = make_world(tmp_path)
    config = world.config.read_text().replace("out/replay.yaml", str(ROOT / "configs" / "judges" / "nli.yaml"))
    world.config.write_text(config)
    write(tmp_path / "logs" / "a.jsonl", [trace("a"), trace("b", question="Who may read a folder?")])
    assert lookups("flows", "nightly", "--config", world.config, "--date", FIRST) == []
    assert world.warehouse.exists()
