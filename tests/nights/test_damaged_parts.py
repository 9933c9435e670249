"""A part of the lake is damaged, the message's remedy is followed, and what it says of every table is true."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Command
from kit.commands import leadline
from kit.soak.finished import LAST, complete, copied, finish, measure, question, rows_of, suite, tables_of
from kit.worlds import World, read

from flows.verbs import with_config
from tasks.core.schemas import TABLES, Table
from tasks.store.lake import Lake

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> World:
    return finish(tmp_path_factory.mktemp("finished") / "nights")


@pytest.fixture
def world(finished: World, tmp_path: Path) -> World:
    """The same lake for each test."""
    return copied(finished, tmp_path / "nights")


def damage(world: World, table: Table) -> list[Path]:
    """Spoil every part of a table."""
    parts = [part.path for part in Lake(world.lake).parts(table)]
    assert parts, f"{table.name} is not tested"
    for path in parts:
        path.write_bytes(b"PAR1 half")
    return parts


def rebuild(command: Command, world: World) -> str:
    """The error of `leadline rebuild`."""
    code, _, error = command("rebuild", "--config", world.config)
    assert code == (1 if error else 0)
    return error


COMMANDS: dict[str, Callable[[World], object]] = {
    "leadline nightly": complete, "leadline noise": measure, "leadline metaeval": suite, "leadline ask": question,
}  # fmt: skip
UNUSED = {"nightly_citations", "write_backs"}  # of another method, and of a store
REMADE = [t for t in TABLES.values() if t.remade and t.name not in UNUSED]


@pytest.mark.parametrize("table", REMADE, ids=lambda t: t.name)
def test_what_can_be_made_again_is(world: World, command: Command, table: Table) -> None:
    before = tables_of(world)
    parts = damage(world, table)
    output = rebuild(command, world)
    assert output.startswith(f"leadline: {parts[0]}: the part is damaged (")
    assert output.strip().endswith(with_config(table.remedy, world.config))
    for path in parts:
        path.unlink()
    for name, verb in COMMANDS.items():
        if name in table.remade + table.lost:  # which also says who makes some of its rows
            verb(world)
    assert tables_of(world) == before


# Which of their columns tell that a row is the same as before; of `alerts`, see the tests of alerts.
NEVER = {"traces": "trace_id", "feedback": "trace_id", "samples": "generator", "reviews": "review_id", "redactions": "trace_id", "promotions": "reason", "runs": "run_id", "quarantine": "reason"}  # fmt: skip


@pytest.mark.parametrize("name", NEVER)
def test_what_can_not_is_not(world: World, command: Command, name: str) -> None:
    table, column = TABLES[name], NEVER[name]
    before = {row[column] for row in rows_of(world, table)}
    parts = damage(world, table)
    assert rebuild(command, world).strip().endswith(with_config(table.remedy, world.config))
    for path in parts:
        path.unlink()
    complete(world)
    assert not before & {row[column] for row in rows_of(world, table)}


def test_the_ledger_is_not_made_again_and_no_trace_is_lost(
    world: World, command: Command, without_prefect: dict[str, str]
) -> None:
    """The remedy as a user follows it, once the log has rotated away."""
    before = tables_of(world)
    (part,) = damage(world, TABLES["sources"])
    shutil.rmtree(world.config.parent / "logs")
    (world.config.parent / "logs").mkdir()
    output = rebuild(command, world)
    assert (
        "Nothing can rebuild it: restore it from a backup. Removing the file loses which file its traces came" in output
    )
    failed = leadline("nightly", "--config", world.config, "--date", LAST, env=without_prefect)
    assert (failed.returncode, b"Traceback" in failed.stderr) == (1, False)
    assert str(part) in failed.stderr.decode()
    part.unlink()
    assert rebuild(command, world) == ""
    assert leadline("nightly", "--config", world.config, "--date", LAST, env=without_prefect).returncode == 0
    after = tables_of(world)
    (row,) = [json.loads(r) for r in after.pop("sources")]
    # Of 13 rows, one was refused.
    assert row == {
        "source": None,
        "fingerprint": None,
        "rows": 13,
        "ingested": 12,
        "duplicates": 0,
        "sampled_out": 0,
        "quarantined": 1,
    }
    before.pop("sources")
    assert after == before
    (notes,) = read(
        world.warehouse, "SELECT notes FROM runs WHERE status = 'completed' ORDER BY started_at DESC LIMIT 1"
    )
    assert any("were adopted (traces: 12): " in note for note in notes["notes"])


def test_traces_come_back_where_their_log_is_still_there(world: World, command: Command) -> None:
    """As the remedy of `traces` says: with the part, remove the row of its file."""
    before = tables_of(world)
    part = Lake(world.lake).parts(TABLES["traces"])[1]
    part.path.write_bytes(b"PAR1 half")
    assert rebuild(command, world).strip().endswith(with_config(TABLES["traces"].remedy, world.config))
    (row,) = [p for p in Lake(world.lake).parts(TABLES["sources"]) if part.name.startswith(p.name)]
    part.path.unlink()
    row.path.unlink()
    complete(world)
    assert tables_of(world) == before


def flip(path: Path) -> None:
    """Flip a bit of the last page before the footer, which has no checksum."""
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little") + 8
    data[-footer - 1] ^= 1
    path.write_bytes(data)


def test_a_check_finds_one_flipped_bit_and_repairs_what_a_run_can_make_again(world: World, command: Command) -> None:
    before = rows_of(world, TABLES["nightly_groundedness"])
    parts = len(list(world.lake.glob("*/**/*.parquet")))
    whole = command("check", "--config", world.config)
    assert (whole.code, whole.out) == (0, f"{parts} parts were read; 0 were damaged.\n")

    spoiled = [Lake(world.lake).parts(TABLES[name])[0].path for name in ("nightly_groundedness", "traces")]
    for path in spoiled:
        flip(path)
    found = command("check", "--config", world.config)
    assert (found.code, found.out.count("the part is damaged")) == (3, 2)
    assert f"2 of {parts} parts are damaged" in found.err

    repaired = command("check", "--repair", "--config", world.config)
    assert (repaired.code, f"1 of {parts} parts are damaged" in repaired.err) == (3, True)
    assert [path.exists() for path in spoiled] == [False, True]  # no run can make a trace again
    flip(spoiled[1])  # as a backup has it
    complete(world)
    assert command("check", "--config", world.config).code == 0
    assert rows_of(world, TABLES["nightly_groundedness"]) == before
