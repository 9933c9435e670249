"""Backfills by the command: killed again and again, beside a nightly, within a budget, for a sample and an application."""

import random
import shutil
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from kit.commands import leadline
from kit.killing import SHARD, Watch, check_record, follow, kill_at, output_of, paid, start
from kit.worlds import DIFFERING, FIRST, World, make_traces, make_world, range_of, read, tables, write

from tasks import judges
from tasks.core.errors import BusyError

KILLS = 20
TRACES = 40
LAST = FIRST + timedelta(days=1)
DAYS = range_of(FIRST, LAST)
SHARES = {"supported": 0.4, "partially_supported": 0.1, "unsupported": 0.3, "contradicted": 0.1, "abstained": 0.05, "failure": 0.05}  # fmt: skip
LIMITS = {"part_traces": 10, "shard_requests": SHARD}
# Tokens that were paid for: texts that the process has read before cost nothing, and a restarted one forgets them.
LEFT_OUT = {**DIFFERING, "relevance": {"tokens_in"}}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, without_prefect: dict[str, str]) -> World:
    """Two nights of two applications under the replay judge."""
    root = tmp_path_factory.mktemp("backfill")
    rows = make_traces(3, TRACES, days=2)
    for i, row in enumerate(rows):
        row["app"] = ("docs", "shop")[i % 2]
    write(root / "logs" / "a.jsonl", rows)
    world = make_world(root, "judged", judge={"shares": SHARES}, limits=LIMITS)
    ended = leadline("nightly", "--config", world.config, *DAYS, env=without_prefect)
    assert ended.returncode == 0, ended.stderr.decode()
    return world


def copy(judged: World, name: str) -> World:
    """The same nights under another name, and beside its judge a second one."""
    world = make_world(judged.config.parent, name, judge={"shares": SHARES}, limits=LIMITS)
    shutil.copytree(judged.out, world.out, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.yaml", "*.log"))
    second = {"kind": "replay", "seed": 1, "shares": SHARES, "log": str(log_of(world))}
    judge_of(world).write_text(yaml.safe_dump(second))
    return world


def judge_of(world: World) -> Path:
    return world.out / "second.yaml"


def log_of(world: World) -> Path:
    return world.out / "second.log"


def version_of(world: World) -> str:
    return judges.load(judge_of(world)).version


def backfill(world: World, env: Mapping[str, str], *more: object) -> str:
    ended = leadline("backfill", "--config", world.config, *DAYS, "--judge", judge_of(world), *more, env=env)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode()


def scored(world: World, *columns: str) -> list[dict[str, object]]:
    named = ", ".join(columns)
    return read(world.warehouse, f"SELECT {named} FROM trace_scores WHERE judge_version = '{version_of(world)}'")


@pytest.mark.slow
def test_twenty_kills_change_nothing_and_pay_nothing_twice(judged: World, without_prefect: dict[str, str]) -> None:
    calm = copy(judged, "calm")
    before = tables(calm.warehouse)
    whole = Watch(calm, log_of(calm))
    known = whole.look()
    args = ("backfill", *DAYS, "--judge")
    assert follow(start(calm, without_prefect, *args, judge_of(calm)), whole) == 0, output_of(calm).read_text()
    expected = tables(calm.warehouse, LEFT_OUT)
    assert len(paid(log_of(calm))) == len(set(paid(log_of(calm))))
    # What was there is there, and as many traces are scored once more.
    assert len(expected["trace_scores"]) == 2 * len(before["trace_scores"]) == 2 * TRACES
    for name, rows in before.items():
        after = Counter(tables(calm.warehouse)[name])
        assert not Counter(rows) - after, f"{name} lost rows"

    rng = random.Random(20)
    hits = runs = 0
    while hits < KILLS:
        runs += 1
        assert runs < 6, "runs end before they can be killed"
        world = copy(judged, f"killed-{runs}")
        moments = sorted(rng.sample(range(1, len(whole.seen) - known), KILLS - hits))
        at = [known + moment for moment in moments]
        kills, lost = kill_at(
            at, world, without_prefect, *args, judge_of(world), log=log_of(world), judge=version_of(world)
        )  # fmt: skip
        hits += kills
        found = tables(world.warehouse, LEFT_OUT)
        for name, rows in expected.items():
            assert found[name] == rows, f"{name} differs"
        times = Counter(paid(log_of(world)))
        assert set(times) == set(paid(log_of(calm)))
        assert {key for key, n in times.items() if n > 1} <= lost  # only what was in flight when a kill came
        assert times.total() - len(times) <= kills * SHARD
        assert not paid(world.log)  # the nightly's judge was not asked again
        check_record(read(world.warehouse, "FROM runs WHERE flow = 'backfill' ORDER BY started_at"), kills)
        assert not list(world.lake.rglob("*tmp"))


@pytest.mark.slow
def test_a_nightly_beside_it_ends_as_it_would_alone(judged: World, environment: dict[str, str]) -> None:
    """Both work on one lake at the same time; each makes what it would make by itself."""
    new = make_traces(5, 30, days=1)
    for row in new:
        row["trace_id"] = f"new-{row['trace_id']}"
        row["timestamp"] = row["timestamp"].replace(str(FIRST), str(LAST + timedelta(days=1)))
    night = ("nightly", "--date", str(LAST + timedelta(days=1)))
    write(judged.config.parent / "logs" / "b.jsonl", new)
    try:
        alone, both = copy(judged, "alone"), copy(judged, "both")
        assert leadline(*night, "--config", alone.config, env=environment).returncode == 0
        past = start(both, environment, "backfill", *DAYS, "--judge", judge_of(both))
        watch = Watch(both, log_of(both))
        while past.poll() is None and not log_of(both).exists():  # it is judging
            watch.look()
        assert past.poll() is None, output_of(both).read_text()
        now = start(both, environment, *night)
        status = now.wait()
        assert past.wait() == 0, output_of(both).read_text()
        if status == BusyError.exit_code:  # it came while the backfill published, and is started again
            status = start(both, environment, *night).wait()
        assert status == 0, output_of(both).read_text()
    finally:
        (judged.config.parent / "logs" / "b.jsonl").unlink()
    backfill(alone, environment)
    one, other = tables(alone.warehouse, LEFT_OUT), tables(both.warehouse, LEFT_OUT)
    for name in one:
        assert one[name] == other[name], f"{name} differs"
    assert Counter(paid(log_of(both))) == Counter(paid(log_of(alone)))


@pytest.mark.slow
def test_newest_days_first_until_the_budget_is_spent(judged: World, without_prefect: dict[str, str]) -> None:
    world = copy(judged, "budget")
    out = backfill(world, without_prefect, "--max-tokens", 1)
    # The replay judge takes tokens for every request: one shard is judged, of the newest day.
    assert "Stopped" in out
    assert 0 < len(paid(log_of(world))) <= SHARD
    days = read(world.warehouse, f"SELECT DISTINCT date FROM verdicts WHERE judge_version = '{version_of(world)}'")
    assert days == [{"date": LAST}]
    assert not scored(world, "date")

    out = backfill(world, without_prefect)
    assert "Stopped" not in out
    assert len(scored(world, "trace_id")) == TRACES
    assert len(paid(log_of(world))) == len(set(paid(log_of(world))))


@pytest.mark.slow
def test_a_sample_of_one_application_and_then_all_of_it(judged: World, without_prefect: dict[str, str]) -> None:
    world = copy(judged, "sample")
    backfill(world, without_prefect, "--app", "shop", "--sample", "0.5")
    half = scored(world, "trace_id", "app")
    assert {row["app"] for row in half} == {"shop"}
    # 20 traces at a half: outside of 3 to 17 with a chance of 0.0004.
    assert 3 <= len(half) <= 17
    first = set(paid(log_of(world)))
    claims = "SELECT count(*) AS n FROM claim_results JOIN trace_scores USING (recipe, trace_id)"
    (with_scores,) = read(world.warehouse, claims)
    (all_results,) = read(world.warehouse, "SELECT count(*) AS n FROM claim_results")
    assert with_scores == all_results  # no results of traces that are not covered

    backfill(world, without_prefect, "--app", "shop")
    whole = scored(world, "trace_id", "app")
    assert {row["app"] for row in whole} == {"shop"}
    assert len(whole) == TRACES // 2
    assert {row["trace_id"] for row in half} <= {row["trace_id"] for row in whole}
    assert len(paid(log_of(world))) == len(set(paid(log_of(world))))
    assert first < set(paid(log_of(world)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--sample", "0"], "--sample 0 is not a valid share"),
        (["--recipe", "other"], "'other' is not one of the recipes"),
        (["--judge", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(
    judged: World, no_server: dict[str, str], given: list[str], message: str
) -> None:
    ended = leadline("backfill", "--config", judged.config, *DAYS, *given, env=no_server)
    assert ended.returncode == 2
    assert message in ended.stderr.decode()
    assert "Traceback" not in ended.stderr.decode()
