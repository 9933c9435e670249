"""What doctor finds on this machine: before the first night, after one, and where something is broken."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from conftest import Command, quiet
from kit.worlds import World, all_stages, make_world, trace, write

from flows.doctor.facts import examine, exit_code
from tasks.run.build import build_context
from tasks.run.record import Record
from tasks.store.lake import Lake

YESTERDAY = datetime.now(UTC).date() - timedelta(days=1)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("PREFECT_API_URL", "")
    write(tmp_path / "logs" / "a.jsonl", [trace("a", timestamp=f"{YESTERDAY}T12:00:00Z")])
    return make_world(tmp_path)


def found(world: World, now: datetime | None = None) -> dict[str, tuple[str, str]]:
    results = examine(world.config, now or datetime.now(UTC)).results
    return {r.check: (r.status, r.text) for r in results}


def nightly(world: World) -> None:
    ctx = build_context(world.config, YESTERDAY, YESTERDAY)
    record = Record("nightly")
    record.start(ctx)
    for stage in all_stages(ctx, published=False):
        record.add(ctx, stage)
    record.end(ctx, "completed")
    ctx.close()


def test_before_the_first_night(world: World, command: Command) -> None:
    ended = command("doctor", "-c", world.config)
    assert ended.code == 0
    assert ended.err == ""
    lines = [line for line in ended.out.splitlines() if not line.startswith(" ")]
    names = ["python", "gpu", "vllm", "prefect", "config", "clock", "disk", "source", "lake", "index", "last night"]
    assert [line[9:19].strip() for line in lines] == names
    assert not world.lake.exists()


def test_json_has_the_same(world: World, command: Command) -> None:
    rows = [json.loads(line) for line in command("doctor", "-c", world.config, "--format", "json").out.splitlines()]
    assert [(r["check"], r["status"]) for r in rows] == [(k, v[0]) for k, v in found(world).items()]


def test_after_a_night(world: World) -> None:
    nightly(world)
    after = found(world)
    assert after["lake"] == ("ok", f"{world.lake}: 1 night, not locked")
    assert after["last night"] == ("ok", f"{YESTERDAY}, completed 0 h ago")
    # Two days later nothing has come since.
    later = found(world, datetime.now(UTC) + timedelta(days=2))
    assert (later["last night"][0], later["source"][0]) == ("warning", "warning")
    # A clock that was set back a day has a run in its future.
    assert found(world, datetime.now(UTC) - timedelta(days=1))["clock"][0] == "problem"


def test_who_holds_the_lake_is_named_and_stays_undisturbed(world: World) -> None:
    with Lake(world.lake).lock("leadline nightly, process 7"), Lake(world.lake, writer="backfill").lock("a backfill"):
        assert found(world)["lake"] == ("warning", f"{world.lake} is locked by leadline nightly, process 7")
    with Lake(world.lake, writer="backfill").lock("a backfill"):
        assert found(world)["lake"] == ("ok", f"{world.lake}: 0 nights, in use by a backfill")
    (world.lake / ".lock.holder").write_text("a process that was killed")
    assert found(world)["lake"] == ("ok", f"{world.lake} has no night yet; the first run creates it")


def test_a_damaged_index_is_named(world: World) -> None:
    path = world.lake / ".index" / "verdicts.sqlite"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database" * 100)
    status, text = found(world)["index"]
    assert (status, str(path) in text) == ("warning", True)
    assert path.exists()


def test_a_wrong_config_is_exit_code_2_and_the_rest_is_checked(world: World, command: Command) -> None:
    settings = yaml.safe_load(world.config.read_text())
    world.config.write_text(yaml.safe_dump({**settings, "recipe": {"judge": "none.yaml"}}))
    ended = command("doctor", "-c", world.config)
    assert ended.code == 2
    assert "none.yaml does not exist" in ended.out
    assert "ok       source" in ended.out
    world.config.write_text("lak: x")
    ended = command("doctor", "-c", world.config)
    assert ended.code == 2
    assert "warning  lake       not checked: see config" in ended.out


@pytest.mark.parametrize(
    ("path", "code", "status"),
    [("logs/none.jsonl", 1, "problem"), ("logs/{date}.jsonl", 0, "warning")],  # the second may come later
)
def test_a_source_without_its_file(world: World, command: Command, path: str, code: int, status: str) -> None:
    settings = yaml.safe_load(world.config.read_text())
    world.config.write_text(yaml.safe_dump({**settings, "sources": [{"kind": "jsonl", "paths": [path]}]}))
    assert command("doctor", "-c", world.config).code == code
    assert command("nightly", "--dry-run", "-c", world.config).code == code  # a night says the same
    assert found(world)["source"][0] == status


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/api", "http://127.0.0.1:port/api"])
def test_a_server_that_does_not_answer(world: World, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("PREFECT_API_URL", url)
    results = examine(world.config, datetime.now(UTC))
    assert {r.check: r.status for r in results.results}["prefect"] == "problem"
    assert exit_code(results) == 1


def test_no_model_library_is_imported(world: World) -> None:
    code = (
        "import sys; from flows.__main__ import main\n"
        "try: main(['doctor', '-c', sys.argv[1]])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print({'torch', 'transformers', 'vllm', 'prefect', 'great_expectations', 'onnxruntime'} & set(sys.modules))"
    )
    run = [sys.executable, "-c", code, str(world.config)]
    ended = subprocess.run(run, capture_output=True, text=True, env=quiet(PREFECT_API_URL=""), check=True)
    assert ended.stdout.endswith("set()\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(world: World) -> None:
    world.out.chmod(0o500)
    try:
        assert found(world)["disk"][0] == "problem"
    finally:
        world.out.chmod(0o700)
