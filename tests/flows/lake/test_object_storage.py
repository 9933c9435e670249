"""Nights whose lake is on object storage: the same tables as on a disk, and every verb that works on a lake."""

import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml
from conftest import Command
from kit.worlds import DIFFERING, FIRST, World, all_stages, make_traces, make_world, range_of, trace, write

from tasks.core.paths import ObjectUrl
from tasks.core.schemas import QUARANTINE, TABLES, TRACES, VERDICTS, Table
from tasks.run.build import build_context
from tasks.store.lake import Lake, conform
from tasks.store.remote.objects import objects

LAST = FIRST + timedelta(days=1)
DAYS = range_of(FIRST, LAST)
SECRET = "Quokkaberg"
SETTINGS = {"limits": {"part_traces": 4}, "gates": {"max_quarantined_share": 0.5}}


@dataclass(frozen=True)
class Remote:
    """A world whose lake is on object storage."""

    world: World
    place: ObjectUrl

    @property
    def lake(self) -> Lake:
        return Lake(build_context(self.world.config, FIRST, LAST).config.lake)

    def copies(self) -> list[Path]:
        return [path for path in self.lake.home.rglob("*.parquet") if SECRET.encode() in path.read_bytes()]


def remote(root: Path, place: ObjectUrl, name: str = "remote") -> Remote:
    world = make_world(root, name, lake=place.url, lake_cache=str(place.cache), **SETTINGS)
    return Remote(world, place)


def logs(root: Path) -> None:
    secret = trace("secret", question=f"Who is {SECRET}?", answer=f"{SECRET} lives here [1]. All is well.")
    write(root / "logs" / "a.jsonl", [*make_traces(3, 12, days=2), secret, "{not json"])


def complete(world: World) -> None:
    """A nightly run over both nights, without Prefect."""
    ctx = build_context(world.config, FIRST, LAST)
    with ctx.lake.lock("a test"):
        all_stages(ctx)


def content(lake: Lake, table: Table) -> pa.Table:
    """All rows of a table, sorted, without what differs between two lakes; texts in Parquet's form, parts aside."""
    rows = pa.concat_tables([conform(part.read(), table) for part in lake.parts(table)] or [conform_none(table)])
    rows = rows.drop_columns(sorted(DIFFERING.get(table.name, set())))
    order = pc.sort_indices(pa.array([repr(row) for row in rows.to_pylist()]))
    return rows.take(order).combine_chunks()


def conform_none(table: Table) -> pa.Table:
    return pa.table({f.name: pa.array([], f.type) for f in table.schema}).cast(
        pa.schema([f.remove_metadata() for f in table.schema])
    )


@pytest.fixture
def night(tmp_path: Path, place: ObjectUrl) -> Remote:
    logs(tmp_path)
    made = remote(tmp_path, place)
    complete(made.world)
    return made


def test_the_tables_are_those_of_a_lake_on_a_disk(night: Remote, tmp_path: Path) -> None:
    local = make_world(tmp_path, "local", **SETTINGS)
    complete(local)
    here, there = Lake(local.lake), night.lake
    assert here.frame(VERDICTS).height
    for table in TABLES.values():
        assert [p.partition for p in here.parts(table)] == [p.partition for p in there.parts(table)], table.name
        assert content(there, table).equals(content(here, table)), table.name
    pages = [world.out / "report" / str(FIRST) / "index.html" for world in (local, night.world)]
    assert len(pages[0].read_text()) == pytest.approx(len(pages[1].read_text()), abs=200)


def test_a_second_run_makes_nothing_again_on_another_machine_too(night: Remote, tmp_path: Path) -> None:
    asked = night.world.log.read_text()
    keys = {key: stamp.etag for key, stamp in objects.__wrapped__(night.place)._ask("verdicts").stamps.items()}
    config = yaml.safe_load(night.world.config.read_text())
    other = night.world.config.with_name("other.yaml")
    for place in (night.place.cache, tmp_path / "other-machine"):
        other.write_text(yaml.safe_dump(config | {"lake_cache": str(place)}))
        complete(World(other, night.world.out))
    assert night.world.log.read_text() == asked
    assert keys == {key: stamp.etag for key, stamp in objects.__wrapped__(night.place)._ask("verdicts").stamps.items()}


def test_sql_check_and_rebuild(night: Remote, command: Command) -> None:
    config = night.world.config
    counted = command(
        "sql", "SELECT count(*) AS n, max(answer LIKE '%Quokka%') AS here FROM traces", "--format", "json", "-c", config
    )
    assert (counted.code, counted.out) == (0, '{"n":13,"here":true}\n'), counted.err
    outside = command("sql", f"FROM '{night.place}-private/x.parquet'", "-c", config)
    assert (outside.code, "file system operations are disabled" in outside.err) == (2, True)
    parts = sum(len(night.lake.parts(table)) for table in TABLES.values())
    assert command("check", "-c", config).out == f"{parts:,} parts were read; 0 were damaged.\n"
    assert command("rebuild", "-c", config).code == 0

    part = night.lake.parts(TRACES)[0]
    night.lake.storage.put(part.key, part.path.read_bytes()[:-20])
    ended = command("check", "-c", config)
    assert (ended.code, f"{part.where}: the part is damaged" in ended.out) == (3, True)
    ended = command("nightly", *DAYS, "-c", config, "--no-prefect")
    assert (ended.code, f"{part.where}: the part is damaged" in ended.err) == (1, True)


def test_a_dry_run_writes_nothing(tmp_path: Path, place: ObjectUrl, command: Command) -> None:
    logs(tmp_path)
    made = remote(tmp_path, place)
    ended = command("nightly", *DAYS, "--dry-run", "-c", made.world.config)
    assert ended.code == 0, ended.err
    assert "traces to ingest" in ended.out
    assert objects.__wrapped__(place).keys("traces", 1) == []


def test_a_forgotten_text_is_gone_from_the_bucket_and_from_this_machine(night: Remote, command: Command) -> None:
    refused = {part.key: part.written_ns() for part in night.lake.parts(QUARANTINE)}
    assert night.copies() or SECRET in str(night.lake.frame(TRACES).to_dicts())
    preview = command("forget", "secret", "--dry-run", "-c", night.world.config)
    assert (preview.code, "secret: is here." in preview.out) == (0, True), preview.err
    assert SECRET in str(night.lake.frame(TRACES).to_dicts())
    ended = command("forget", "secret", "-c", night.world.config)
    assert ended.code == 0, ended.err
    fresh = objects.__wrapped__(night.place)
    for table in TABLES.values():
        for key in fresh.keys(table.name, len(table.partition)):
            assert SECRET not in str(conform_rows(fresh.file(key)))
    assert not [c for c in night.lake.home.rglob("*.parquet") if SECRET in str(conform_rows(c))]
    assert {part.key: part.written_ns() for part in night.lake.parts(QUARANTINE)} == refused
    assert command("retention", "--no-prefect", "-c", night.world.config).code == 0


def conform_rows(path: Path) -> list[object]:
    import pyarrow.parquet as pq  # noqa: PLC0415

    return pq.read_table(path, partitioning=None).to_pylist()


def test_a_backup_fills_another_bucket(night: Remote, tmp_path: Path, command: Command) -> None:
    folder = tmp_path / "backup"
    made = command("backup", folder, "-c", night.world.config)
    assert made.code == 0, made.err
    assert "0 are new, 0 were removed." in command("backup", folder, "-c", night.world.config).out
    elsewhere = remote(tmp_path, ObjectUrl(f"{night.place}-2", tmp_path / "cache-2"), "restored")
    elsewhere.lake.storage.put(".restoring", b"")  # as after a restore that was killed
    elsewhere.lake.storage.put("traces/date=2026-11-01/x.parquet", b"half")
    refused = command("nightly", *DAYS, "-c", elsewhere.world.config, "--no-prefect")
    assert (refused.code, "a restore was interrupted. Run `leadline restore" in refused.err) == (1, True)
    restored = command("restore", folder, "-c", elsewhere.world.config)
    assert restored.code == 0, restored.err
    complete(elsewhere.world)
    for table in (TRACES, VERDICTS, QUARANTINE):
        assert content(elsewhere.lake, table).equals(content(night.lake, table))
        assert [p.written_ns() // 10**9 for p in elsewhere.lake.parts(QUARANTINE)] == [
            p.written_ns() // 10**9 for p in night.lake.parts(QUARANTINE)
        ]


def test_two_runs_and_a_bucket_that_is_not_there(night: Remote, command: Command) -> None:
    with night.lake.lock("leadline nightly, process 7"):
        ended = command("nightly", *DAYS, "-c", night.world.config, "--no-prefect")
        found = command("doctor", "-c", night.world.config)
    assert (ended.code, "locked by leadline nightly, process 7 on" in ended.err) == (4, True)
    assert f"{night.place} is locked by leadline nightly, process 7 on" in found.out
    assert f"{night.place}: 2 nights, not locked" in command("doctor", "-c", night.world.config).out
    config, scheme = yaml.safe_load(night.world.config.read_text()), night.place.url.partition(":")[0]
    night.world.config.write_text(yaml.safe_dump(config | {"lake": f"{scheme}://no-such-one/lake"}))
    for verb in (["nightly", *DAYS, "--no-prefect"], ["check"], ["retention", "--no-prefect"]):
        ended = command(*verb, "-c", night.world.config)
        assert re.search("there is no (bucket|container) 'no-such-one'", ended.err), ended
        assert ended.code == 2
