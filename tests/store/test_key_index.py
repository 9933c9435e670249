"""Which parts hold a key: never one too few, after any change of the parts; each part is read once."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.core.errors import DamagedError
from tasks.core.schemas import REDACTIONS
from tasks.store.key_index import KeyIndex
from tasks.store.lake import Lake, Part, from_rows

NOW = datetime(2026, 11, 1, tzinfo=UTC)
KEYS = st.sets(st.sampled_from(["", "a", "b", "A", "é", "trace 1", "trace 2"]))


def written(lake: Lake, name: str, keys: set[str]) -> Part:
    return lake.write(
        REDACTIONS, name, from_rows([{"trace_id": key, "requested_at": NOW} for key in sorted(keys)], REDACTIONS)
    )


def holding(lake: Lake, *keys: str) -> list[str]:
    index = KeyIndex(lake, REDACTIONS, "trace_id")
    return [part.name for part in index.holding(keys, lake.parts(REDACTIONS))]


@given(st.lists(st.tuples(st.sampled_from(["p", "q", "r"]), KEYS, KEYS), max_size=6))
def test_it_names_the_parts_that_hold_a_key_after_every_change(tmp_path_factory, changes):
    lake = Lake(tmp_path_factory.mktemp("lake"))
    there: dict[str, set[str]] = {}
    for name, keys, wanted in changes:
        written(lake, name, keys)
        there[name] = keys
        assert {*holding(lake, *wanted)} >= {n for n, held in there.items() if held & wanted}


def test_no_part_is_named_that_never_held_the_key(tmp_path):
    lake = Lake(tmp_path)
    for name, key in (("p", "a"), ("q", "b"), ("r", "a")):
        written(lake, name, {key})
    assert (holding(lake, "a"), holding(lake, "b", "c"), holding(lake)) == (["p", "r"], ["q"], [])


def test_a_part_is_read_once_and_one_that_is_gone_is_not_named(tmp_path):
    lake = Lake(tmp_path)
    part, _ = written(lake, "p", {"a"}), written(lake, "q", {"a"})
    assert holding(lake, "a") == ["p", "q"]
    seen = part.path.stat()
    part.path.write_bytes(b"-" * seen.st_size)  # in place: the same inode and size
    os.utime(part.path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    lake.drop(REDACTIONS, "q")
    assert holding(lake, "a") == ["p"]


def test_a_damaged_part_is_named_with_its_remedy(tmp_path):
    lake = Lake(tmp_path)
    written(lake, "p", {"a"}).path.write_bytes(b"no Parquet")
    with pytest.raises(DamagedError, match=r"p\.parquet: the part is damaged"):
        holding(lake, "a")


@pytest.mark.parametrize("content", [b"no database at all", b"SQLite format 3\0" + bytes(80)])
def test_a_damaged_index_is_made_again(tmp_path, content):
    lake = Lake(tmp_path)
    written(lake, "p", {"a"})
    written(lake, "q", {"b"})
    holding(lake, "a")
    (tmp_path / ".index" / "redactions.sqlite").write_bytes(content)
    assert holding(lake, "a") == ["p", "q"]  # all are searched
    assert holding(lake, "a") == ["p"]


def test_where_no_index_can_be_kept_all_parts_are_searched(tmp_path):
    lake = Lake(tmp_path)
    written(lake, "p", {"a"})
    (tmp_path / ".index").write_text("in the way")
    assert holding(lake, "b") == ["p"]


def test_an_overlay_changes_no_index_and_names_what_it_lacks(tmp_path):
    lake, over = Lake(tmp_path / "lake"), Lake(tmp_path / "lake", tmp_path / "over")
    written(lake, "p", {"a"})
    assert holding(over, "b") == ["p"]
    assert not (tmp_path / "lake" / ".index").exists()
    holding(lake, "a")
    before = (tmp_path / "lake" / ".index" / "redactions.sqlite").read_bytes()
    written(over, "q", {"c"})
    assert (holding(over, "a"), holding(over, "b")) == (["p", "q"], ["q"])
    assert (tmp_path / "lake" / ".index" / "redactions.sqlite").read_bytes() == before


def test_a_moved_lake_keeps_its_index(tmp_path: Path):
    lake = Lake(tmp_path / "here")
    part = written(lake, "p", {"a"})
    assert holding(lake, "a") == ["p"]
    (tmp_path / "here").rename(tmp_path / "there")
    moved = Lake(tmp_path / "there")
    seen = moved.parts(REDACTIONS)[0].path
    stat = seen.stat()
    seen.write_bytes(b"-" * stat.st_size)
    os.utime(seen, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (holding(moved, "a"), part.name) == (["p"], "p")
