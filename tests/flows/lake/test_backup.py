"""A backup beside a nightly, a lake made of it, what it leaves out, and what it never keeps."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from conftest import Command
from kit.commands import at_most
from kit.killing import SHARD, output_of, paid, start
from kit.worlds import (
    DIFFERING,
    FIRST,
    World,
    all_stages,
    make_traces,
    make_world,
    range_of,
    read,
    tables,
    trace,
    write,
)

from tasks.core.schemas import TABLES, VERDICTS, Table
from tasks.run.build import build_context
from tasks.store import backup
from tasks.store.lake import Lake, Part

LAST = FIRST + timedelta(days=1)
DAYS = range_of(FIRST, LAST)
SHARES = {"supported": 0.5, "partially_supported": 0.1, "unsupported": 0.2, "contradicted": 0.1, "abstained": 0.1}
SECRET = "Quokkaberg"
PARTS = {"part_traces": 4, "shard_requests": SHARD}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two nights, judged by one recipe and then by another; one line is refused."""
    root = tmp_path_factory.mktemp("backup") / "nights"
    root.mkdir()
    world = make_world(root, judge={"shares": SHARES}, limits=PARTS, gates={"max_quarantined_share": 0.5})
    secret = trace("secret", question=f"Who is {SECRET}?", answer=f"{SECRET} lives here [1]. All is well.")
    write(root / "logs" / "a.jsonl", [*make_traces(3, 12, days=2), secret, "{not json"])
    complete(world)
    config = yaml.safe_load(world.config.read_text())
    config["recipe"]["pairing"] = {"window_words": 20}
    world.config.write_text(yaml.safe_dump(config))
    complete(world)
    return world


@pytest.fixture
def world(judged: World, tmp_path: Path) -> World:
    """These nights once more, for one test."""
    shutil.copytree(judged.config.parent, tmp_path / "nights", symlinks=True)
    for path in (tmp_path / "nights" / "logs").iterdir():  # the ledger knows a file by when it was written
        shutil.copystat(judged.config.parent / "logs" / path.name, path)
    world = World(tmp_path / "nights" / judged.config.name, tmp_path / "nights" / judged.out.name)
    (world.out / "replay.yaml").write_text(yaml.safe_dump({"kind": "replay", "log": str(world.log), "shares": SHARES}))
    return world


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the backup is kept."""
    return tmp_path / "backup"


def complete(world: World) -> str:
    """A nightly run over both nights, without Prefect; returns its recipe."""
    ctx = build_context(world.config, FIRST, LAST)
    with ctx.lake.lock("a test"):
        all_stages(ctx)
    return ctx.recipe


def lose(world: World) -> None:
    """Lose all that Leadline wrote."""
    shutil.rmtree(world.lake)
    shutil.rmtree(world.out / "report")
    world.warehouse.unlink()


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """Files of a backup but the manifest: inode and time of writing, by path."""
    found = (p for p in folder.rglob("*") if p.is_file() and p.name != backup.MANIFEST)
    return {str(p.relative_to(folder)): (p.stat().st_ino, p.stat().st_mtime_ns) for p in found}


def holds(folder: Path, word: str) -> set[str]:
    """Tables of a backup in which a word stands, in the files' bytes or in their rows."""
    found = set()
    for path in (p for p in folder.rglob("*") if p.is_file()):
        rows = str(pq.read_table(path, partitioning=None).to_pylist()) if ".parquet." in path.name else ""
        if word in rows or word.encode() in path.read_bytes():
            found.add(path.relative_to(folder).parts[0])
    return found


@pytest.mark.slow
def test_the_night_after_a_restore_has_the_same_tables_and_asks_no_judge(
    world: World, folder: Path, command: Command
) -> None:
    before, asked = tables(world.warehouse, {}), paid(world.log)
    recipe = build_context(world.config, FIRST, LAST).recipe
    made = command("backup", folder, "-c", world.config)
    assert made.code == 0, made.err
    names = backup.verify(folder).files
    # Left out is what the config's recipe makes again; what the earlier one made is kept, and so is what was paid for.
    scores = [name for name in names if name.startswith("trace_scores/")]
    assert scores
    assert not any(f"recipe={recipe}" in name for name in names)
    assert {name.split("/")[0] for name in names} >= {"traces", "quarantine", "sources", "claims", "verdicts", ".salt"}

    lose(world)
    restored = command("restore", folder, "-c", world.config)
    assert restored.code == 0, restored.err
    assert f"run: leadline nightly {' '.join(DAYS)} -c {world.config}" in restored.out
    assert complete(world) == recipe
    assert paid(world.log) == asked
    assert tables(world.warehouse, {}) == before  # with the hashes of this lake's salt, and when verdicts were stored


@pytest.mark.slow
def test_without_what_was_paid_for_the_judge_is_asked_again(world: World, folder: Path, command: Command) -> None:
    before, asked = tables(world.warehouse), paid(world.log)
    assert command("backup", folder, "--without-paid", "-c", world.config).code == 0
    kept = {name.split("/")[0] for name in backup.verify(folder).files}
    assert not kept & {name for name, table in TABLES.items() if table.paid and "date" in table.partition}
    lose(world)
    assert command("restore", folder, "-c", world.config).code == 0
    recipe = complete(world)
    assert len(paid(world.log)) > len(asked)
    assert set(paid(world.log)[len(asked) :]) <= set(asked)
    after = tables(world.warehouse)
    same = [
        name for name in before if name not in {"verdicts", "relevance", "claims"}
    ]  # these also lack the earlier recipe's
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert [r for r in after["trace_scores"] if recipe in r]


@pytest.mark.slow
def test_a_backup_beside_a_nightly_is_one_that_a_night_can_go_on_from(
    tmp_path: Path, folder: Path, command: Command, without_prefect: dict[str, str]
) -> None:
    world = make_world(tmp_path, judge={"shares": SHARES}, limits=PARTS, gates={"max_quarantined_share": 0.5})
    rows = make_traces(5, 60, days=2)
    for i in range(4):
        write(tmp_path / "logs" / f"{i}.jsonl", [*rows[i::4], "{not json"])
    run = start(world, without_prefect, "nightly", *DAYS)
    beside: list[Path] = []
    while run.poll() is None:
        if not list(world.lake.glob("traces/*/*.parquet")):
            continue
        ended = command("backup", folder, "-c", world.config)
        assert ended.code == 0, ended.err
        backup.verify(folder)
        beside.append(shutil.copytree(folder, tmp_path / f"backup-{len(beside)}"))
    assert run.wait(30) == 0, output_of(world).read_text()
    expected = tables(world.warehouse, {**DIFFERING, "relevance": {"tokens_in"}})
    kept = [sum(name.startswith("verdicts/") for name in backup.verify(at).files) for at in beside]
    middle = beside[next(i for i, n in enumerate(kept) if n)]  # when the first verdicts were stored
    assert command("backup", folder, "-c", world.config).code == 0
    assert len(backup.verify(middle).files) < len(backup.verify(folder).files)

    asked = len(paid(world.log))
    lose(world)
    assert command("restore", middle, "-c", world.config).code == 0
    parts = Lake(world.lake).parts(VERDICTS)
    has = {key for part in parts for key in part.read(["request_key"])["request_key"].to_pylist()}
    assert has
    ended = start(world, without_prefect, "nightly", *DAYS)
    assert ended.wait(300) == 0, output_of(world).read_text()
    assert not has & set(paid(world.log)[asked:])
    assert tables(world.warehouse, {**DIFFERING, "relevance": {"tokens_in"}}) == expected
    assert "interrupted" in {row["status"] for row in read(world.warehouse, "SELECT status FROM runs")}


@pytest.mark.slow
def test_the_ledger_is_not_ahead_of_the_traces(world: World, folder: Path, command: Command) -> None:
    """A whole night passes after the backup has listed its first table."""
    listed: list[Table] = []

    def night(table: Table, part: Part) -> bool:
        if not listed:
            write(world.config.parent / "logs" / "b.jsonl", [trace("late")])
            complete(world)
        listed.append(table)
        return False

    backup.copy(Lake(world.lake), folder, night, datetime.now(UTC))
    before, asked = tables(world.warehouse), paid(world.log)
    lose(world)
    assert command("restore", folder, "-c", world.config).code == 0
    lake = Lake(world.lake)
    assert "late" in lake.frame(TABLES["traces"])["trace_id"]
    assert lake.frame(TABLES["sources"]).height == 1  # so the late file is read again, and its traces are found
    complete(world)
    assert tables(world.warehouse) == before
    assert paid(world.log) == asked


@pytest.mark.slow
def test_a_forgotten_text_leaves_the_backup_and_does_not_come_back(
    world: World, folder: Path, command: Command
) -> None:
    assert command("backup", folder, "-c", world.config).code == 0
    assert {"traces", "claims"} <= holds(folder, SECRET)
    forgotten = command("forget", "secret", "-c", world.config)
    assert "A backup has the texts until the next `leadline backup`." in forgotten.out
    before = tables(world.warehouse, {})
    ended = command("backup", folder, "-c", world.config)
    assert ended.code == 0, ended.err
    assert holds(folder, SECRET) == set()

    lose(world)
    assert command("restore", folder, "-c", world.config).code == 0
    asked = paid(world.log)
    complete(world)  # what was made of the text can't be made again: the backup has it
    assert paid(world.log) == asked
    assert tables(world.warehouse, {}) == before
    write(world.config.parent / "logs" / "b.jsonl", [trace("secret", answer=f"{SECRET} again [1].")])
    complete(world)
    assert not read(world.warehouse, f"FROM traces WHERE answer LIKE '%{SECRET}%'")
    assert read(world.warehouse, "SELECT reason FROM quarantine WHERE trace_id = 'secret'") == [{"reason": "redacted"}]


def test_what_is_there_is_not_copied_again(world: World, folder: Path, command: Command) -> None:
    assert command("backup", folder, "-c", world.config).code == 0
    first = files(folder)
    again = command("backup", folder, "-c", world.config)
    assert "0 are new, 0 were removed." in again.out
    assert files(folder) == first
    moved = world.lake.rename(world.out / "moved")  # a lake that was copied has other inodes and times
    shutil.copytree(moved, world.lake, copy_function=shutil.copyfile)
    assert "0 are new, 0 were removed." in command("backup", folder, "-c", world.config).out
    assert files(folder) == first
    quarantine = Lake(world.lake).parts(TABLES["quarantine"])[0]
    quarantine.path.unlink()
    assert "0 are new, 1 were removed." in command("backup", folder, "-c", world.config).out


def test_a_damaged_part_does_not_replace_its_copy(world: World, folder: Path, command: Command) -> None:
    assert command("backup", folder, "-c", world.config).code == 0
    first = files(folder)
    part = Lake(world.lake).parts(TABLES["traces"])[0].path
    data = bytearray(part.read_bytes())
    data[len(data) // 4] ^= 1
    part.write_bytes(data)
    ended = command("backup", folder, "-c", world.config)
    assert (ended.code, f"{part}: the part is damaged" in ended.out) == (1, True)
    assert "1 part of the lake is damaged" in ended.err
    assert files(folder) == first


def test_what_the_lake_has_lost_stays_in_the_backup(world: World, folder: Path, command: Command) -> None:
    assert command("backup", folder, "-c", world.config).code == 0
    first = files(folder)
    shutil.rmtree(world.lake / "traces" / f"date={FIRST}")
    for part in Lake(world.lake).parts(TABLES["nightly_groundedness"]):  # no loss: a run makes them again
        part.path.unlink()
    ended = command("backup", folder, "-c", world.config)
    assert (ended.code, f"files that the backup has are gone: traces/date={FIRST}/" in ended.err) == (1, True)
    assert files(folder).items() >= first.items()
    backup.verify(folder)
    assert command("backup", folder, "--accept-loss", "-c", world.config).code == 0
    assert not list(folder.glob(f"traces/date={FIRST}/*"))


def test_a_damaged_backup_is_refused(world: World, folder: Path, command: Command) -> None:
    assert command("backup", folder, "-c", world.config).code == 0
    held = len(files(folder))
    names = [folder / name for name in sorted(files(folder)) if name.startswith("traces/")]
    data = bytearray(names[0].read_bytes())
    data[len(data) // 2] ^= 1
    names[0].write_bytes(data)
    names[1].unlink()
    lose(world)
    for options in ([], ["--dry-run"]):
        ended = command("restore", folder, *options, "-c", world.config)
        assert ended.code == 1
        assert f"2 of {held} files are damaged or missing: " in ended.err
        assert all(str(name) in ended.err for name in names[:2])
        assert not list(world.lake.glob("[!.]*"))
    (folder / backup.MANIFEST).write_text("{")
    assert "the manifest is damaged" in command("restore", folder, "-c", world.config).err


def test_where_no_backup_can_be_and_no_lake_can_be_filled(
    world: World, folder: Path, command: Command, tmp_path: Path
) -> None:
    def refused(verb: str, place: Path) -> str:
        ended = command(verb, place, "-c", world.config)
        assert ended.code == 2
        return ended.err

    assert "no complete backup is there" in refused("restore", folder)
    other = tmp_path / "photos"
    write(other / "a.jpg", [b"x"])
    assert "is not a backup" in refused("backup", other)
    assert [p.name for p in other.iterdir()] == ["a.jpg"]
    assert "can't be in its lake" in refused("backup", world.lake / "backup")
    assert command("backup", folder, "-c", world.config).code == 0
    assert "the lake is not empty" in refused("restore", folder)
    kept = files(folder)
    lose(world)
    assert "there is no lake to back up" in refused("backup", folder)
    complete(world)  # as a nightly does where a disk is not mounted
    assert "the backup of another lake" in refused("backup", folder)
    assert files(folder) == kept


def test_a_full_disk_leaves_the_backup_before(world: World, folder: Path, command: Command) -> None:
    assert command("backup", folder, "-c", world.config).code == 0
    first = backup.verify(folder)
    part = Lake(world.lake).parts(TABLES["traces"])[0]
    Lake(world.lake).write(TABLES["traces"], part.name, part.read().slice(1), *part.partition)
    with at_most(1000):
        ended = command("backup", folder, "-c", world.config)
    assert ended.code == 1
    assert "can't be written (File too large). Free space or grant access, then run it again" in ended.err
    assert backup.verify(folder) == first
    lose(world)
    with at_most(1000):
        assert command("restore", folder, "-c", world.config).code == 1
    assert not list(world.lake.glob("[!.]*"))
    assert command("restore", folder, "-c", world.config).code == 0


def test_removing_texts_waits_for_a_backup(world: World, command: Command) -> None:
    with Lake(world.lake, writer=backup.WRITER).lock("leadline backup, process 1"):
        ended = command("forget", "secret", "-c", world.config)
    assert (ended.code, "locked by leadline backup" in ended.err) == (4, True)
