"""`leadline nightly --fail-on`: what a completed run ends with, and the metrics that it leaves."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from kit.commands import leadline
from kit.worlds import FIRST, World, make_world, trace, write
from prometheus_client.parser import text_string_to_metric_families

from tasks.core.schemas import ALERTS
from tasks.run.build import build_context
from tasks.scoring import alerts


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = make_world(
        tmp_path, gates={"max_quarantined_share": 1.0}, report={"dir": "out/report", "prometheus": "out/leadline.prom"}
    )
    write(tmp_path / "logs" / "a.jsonl", [trace("t1"), trace("t2", app="docs[/b]"), "no trace"])  # no markup
    return found


def metrics(world: World) -> dict[str, float]:
    """Values of the metrics without labels of an app."""
    text = (world.out / "leadline.prom").read_text()
    return {s.name: s.value for f in text_string_to_metric_families(text) for s in f.samples if not s.labels}


def add_alert(world: World, status: str) -> None:
    """An alert of the night that people have seen already, which stays whatever the night shows."""
    ctx = build_context(world.config, FIRST, FIRST)
    blank = {f.name: 0 for f in ALERTS.schema if not f.nullable}
    row = {f.name: None for f in ALERTS.schema} | blank | {
        "alert_id": "0", "recipe": ctx.recipe, "judge_version": "j", "date": FIRST, "since": FIRST, "app": "docs",
        "generator": "large", "number": "groundedness", "direction": "down", "status": status, "sent": [],
        "worst_trace_ids": [], "announced_at": datetime(2026, 11, 2, tzinfo=UTC),
        "recovered_on": FIRST if status == "recovered" else None,
    }  # fmt: skip
    alerts.write(ctx, FIRST, [row])
    ctx.close()


def test_a_run_fails_on_what_is_named_and_is_complete_all_the_same(
    world: World, without_prefect: dict[str, str]
) -> None:
    night = ["nightly", "-c", world.config, "--date", str(FIRST)]
    ended = leadline(*night, "--fail-on", "alert", "--fail-on", "refused", env=without_prefect)
    assert ended.returncode == 5
    assert "--fail-on: 1 row refused, see above. The run is complete and published." in ended.stderr.decode()
    assert "groundedness" in ended.stdout.decode()
    first = metrics(world)
    assert (first["leadline_run_refused_rows"], first["leadline_run_traces"]) == (1, 2)

    # The row is on record by now, and no second run refuses it again.
    assert leadline(*night, "--fail-on", "refused", env=without_prefect).returncode == 0
    again = metrics(world)
    assert (again["leadline_run_refused_rows"], again["leadline_run_traces"]) == (0, 0)
    assert again["leadline_last_success_timestamp_seconds"] > first["leadline_last_success_timestamp_seconds"]

    # A change that is over by the same night is none to fail on.
    add_alert(world, "recovered")
    assert leadline(*night, "--fail-on", "alert", env=without_prefect).returncode == 0
    add_alert(world, "fired")
    ended = leadline(*night, "--fail-on", "alert", "--format", "json", env=without_prefect)
    assert ended.returncode == 5
    assert f"--fail-on: 1 alert fired on {FIRST}, see above." in ended.stderr.decode()
    assert ended.stdout.startswith(b"{")
    assert leadline(*night, "--fail-on", "refused", env=without_prefect).returncode == 0  # not of its kind
    assert leadline(*night, env=without_prefect).returncode == 0


def test_a_failed_run_leaves_the_metrics_as_they_were(world: World, without_prefect: dict[str, str]) -> None:
    night = ["nightly", "-c", world.config, "--date", str(FIRST)]
    assert leadline(*night, env=without_prefect).returncode == 0
    before = (world.out / "leadline.prom").read_bytes()
    world.config.write_text(world.config.read_text().replace("max_quarantined_share: 1.0", "max_quarantined_share: 0"))
    write(world.config.parent / "logs" / "b.jsonl", ["no trace either"])
    assert leadline(*night, "--fail-on", "refused", env=without_prefect).returncode == 3  # the gate comes first
    assert (world.out / "leadline.prom").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--fail-on", "alerts"], "is not one of"), (["--fail-on", "alert", "--dry-run"], "--dry-run does not run")],
)
def test_mistakes(world: World, without_prefect: dict[str, str], options: list[str], message: str) -> None:
    ended = leadline("nightly", "-c", world.config, "--date", str(FIRST), *options, env=without_prefect)
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.decode().replace("│", " ").split())
