"""A run that is killed again and again ends with the tables of one that was left alone, and pays for nothing twice."""

import random
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from kit.killing import SHARD, Watch, check_record, follow, kill_at, output_of, paid, start
from kit.worlds import DIFFERING, FIRST, World, make_traces, make_world, range_of, read, tables, unbalanced, write

KILLS = 10
TRACES = 80
PART = 20
DAYS = range_of(FIRST, FIRST + timedelta(days=1))
SHARES = {
    "supported": 0.4, "partially_supported": 0.1, "unsupported": 0.3, "contradicted": 0.1, "abstained": 0.05,
    "failure": 0.05,
}  # fmt: skip
# Tokens that were paid for: texts that the process has read before cost nothing, and a restarted one forgets them.
LEFT_OUT = {**DIFFERING, "relevance": {"tokens_in"}}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Five files of two days: bad lines, a copy and a conflicting duplicate across files, traces without context."""
    made = enumerate(make_traces(7, TRACES, days=2))
    rows = [{**row, "session": f"s{i // 3}", "feedback": {"score": i % 2}} for i, row in made]
    parts: list[list[object]] = [list(rows[i::5]) for i in range(5)]
    parts[1].insert(3, b'{"trace_id": "cut')
    parts[2].append({**rows[0], "answer": "Another answer under the same id [1]."})
    parts[3] += [rows[1], {**rows[2], "trace_id": "no-zone", "timestamp": "2026-11-01T10:00:00"}]
    parts[4].append({**rows[5], "trace_id": "blank", "question": " "})
    for i, lines in enumerate(parts):
        write(tmp_path / "logs" / f"{i}.jsonl", lines)  # type: ignore[arg-type]
    return tmp_path


@pytest.mark.slow
def test_ten_kills_change_nothing_and_pay_nothing_twice(logs: Path, environment: dict[str, str]) -> None:
    settings = {"limits": {"part_traces": PART, "shard_requests": SHARD}, "gates": {"max_quarantined_share": 0.1}}
    calm = make_world(logs, "calm", judge={"shares": SHARES}, **settings)
    whole = Watch(calm)
    assert follow(start(calm, environment, "nightly", *DAYS), whole) == 0, output_of(calm).read_text()
    expected = tables(calm.warehouse, LEFT_OUT)
    # Every comparison compares something, but for what only other verbs, another method or sample and a change fill.
    assert {name for name, rows in expected.items() if not rows} == {
        "alerts", "ask_replies", "grades", "judge_noise", "metaeval", "nightly_citations", "nightly_corrected", "nightly_grades", "promotions",
        "redactions", "reviews", "samples", "write_backs",
    }  # fmt: skip
    assert len(paid(calm.log)) == len(set(paid(calm.log)))
    # One copy; four lines are refused: cut off, without a zone, in conflict, blank.
    assert count(calm) == {"r": TRACES + 5, "i": TRACES, "k": 1, "q": 4}

    rng = random.Random(20)
    hits = nights = 0
    while hits < KILLS:
        nights += 1
        assert nights < 5, "runs end before they can be killed"
        world = make_world(logs, f"killed-{nights}", judge={"shares": SHARES}, **settings)
        moments = sorted(rng.sample(range(1, len(whole.seen)), KILLS - hits))
        kills, lost = kill_at(moments, world, environment, "nightly", *DAYS)
        hits += kills

        found = tables(world.warehouse, LEFT_OUT)
        for name, rows in expected.items():
            assert found[name] == rows, f"{name} differs"
        times = Counter(paid(world.log))
        assert set(times) == set(paid(calm.log))
        assert {key for key, n in times.items() if n > 1} <= lost  # only what was in flight when a kill came
        assert times.total() - len(times) <= kills * SHARD
        assert not read(world.warehouse, "SELECT request_key FROM verdicts GROUP BY ALL HAVING count(*) > 1")
        assert count(world) == count(calm)
        assert not unbalanced(world.warehouse)
        check_record(read(world.warehouse, "FROM runs ORDER BY started_at"), kills)
        assert not list(world.lake.rglob("*.tmp"))


def count(world: World) -> dict[str, int]:
    """Rows in and rows out."""
    sql = "SELECT sum(rows)::INT AS r, sum(ingested)::INT AS i, sum(duplicates)::INT AS k, sum(quarantined)::INT AS q"
    (total,) = read(world.warehouse, f"{sql} FROM sources")
    counts = "SELECT (SELECT count(*) FROM traces) AS i, (SELECT count(*) FROM quarantine) AS q"
    (held,) = read(world.warehouse, counts)
    assert held == {k: total[k] for k in ("i", "q")}
    return total
