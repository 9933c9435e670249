"""The ledger: a row for every file that was read, and one for parts of `traces` whose file nobody knows any more.

What ingest makes of parts without a row is in `test_ingest.py`.
"""

from itertools import islice
from pathlib import Path

from kit.stage_kit import DAY, NEXT, context, put, rows, trace

from tasks.core.schemas import QUARANTINE, SOURCES
from tasks.ingest import ledger
from tasks.sources import SourceFile
from tasks.store.lake import from_rows

FILE = SourceFile("logs/a.jsonl", "f1")


def test_a_state_of_a_file_is_known_by_its_path_and_fingerprint(tmp_path: Path) -> None:
    lake = context(tmp_path).lake
    ledger.record(lake, ledger.name_of(FILE), FILE, ingested=3, duplicates=2, quarantined=1)
    assert ledger.ledger(lake) == {("logs/a.jsonl", "f1"): 6}
    others = {ledger.name_of(SourceFile(p, f)) for p, f in (("logs/a.jsonl", "f2"), ("logs/b.jsonl", "f1"))}
    assert len({ledger.name_of(FILE), *others}) == 3


def test_names_that_are_taken_are_left_out(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    there = [put(ctx, trace("a"), name="x-00001"), put(ctx, trace("b", day=NEXT), name="x-00003")]
    assert list(islice(ledger.free_names("x", there), 3)) == ["x-00000", "x-00002", "x-00004"]


def test_parts_without_a_row_get_one_that_names_no_file(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    put(ctx, trace("a"), trace("b"), name="x-00000")
    put(ctx, trace("c", day=NEXT), name="x-00001")
    put(ctx, trace("d"), name=f"{ledger.name_of(FILE)}-00000")
    ledger.record(ctx.lake, ledger.name_of(FILE), FILE, ingested=1, duplicates=0, quarantined=0)
    refused = {"source": "logs/x.jsonl", "line": 4, "date": DAY, "stage": "parse", "reason": "wrong_type", "raw": "1"}
    ctx.lake.write(QUARANTINE, "x", from_rows([refused], QUARANTINE))
    assert ledger.adopt(ctx.lake) == [
        "Parts of `traces` that had no row in `sources` were adopted (traces: 3): "
        f"{DAY}/x-00000, {NEXT}/x-00001."
    ]  # fmt: skip
    (row,) = [r for r in rows(ctx, SOURCES) if r["source"] is None]
    assert (row["fingerprint"], row["rows"], row["ingested"], row["duplicates"], row["quarantined"]) == (
        None,
        4,
        3,
        0,
        1,
    )
    assert ledger.ledger(ctx.lake) == {("logs/a.jsonl", "f1"): 1}  # no file is known by it
    assert ledger.adopt(ctx.lake) == []


def test_many_are_counted_and_some_named(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    for n in range(7):
        put(ctx, trace(f"t{n}"), name=f"{n}-00000")
    (note,) = ledger.adopt(ctx.lake)
    assert note.endswith(f"(traces: 7): {', '.join(f'{DAY}/{n}-00000' for n in range(5))} and 2 more.")
