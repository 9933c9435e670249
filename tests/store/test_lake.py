"""The lake: parts appear whole, overlays leave it alone, and one process at a time may change it."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.commands import at_most

from tasks.core.errors import BusyError, DamagedError, LeadlineError
from tasks.core.schemas import JUDGES, RELEVANCE, SOURCES
from tasks.store.lake import Lake, Part, check, conform, empty, from_rows

VERSION, DAY = "a" * 16, "2026-11-01"


def scores(*values: float, trace: str = "t") -> pa.Table:
    """Rows of `relevance` without its partition columns."""
    row = {
        "trace_id": trace,
        "kind": "answer",
        "method": "embedding",
        "tokens_in": 1,
        "tokens_cached": 0,
        "tokens_out": 0,
    }
    return pa.Table.from_pylist([row | {"chunk_id": None, "score": v, "failure": None} for v in values])


def read(lake: Lake) -> list[float]:
    return [v for p in lake.parts(RELEVANCE) for v in p.read(["score"])["score"].to_pylist()]


def judges(name: str = "j") -> pa.Table:
    return from_rows([{"judge_version": name, "name": name, "kind": "k", "definition": "{}"}], JUDGES)


class TestParts:
    def test_a_part_is_filed_under_its_partition_and_says_by_itself_what_it_is(self, tmp_path: Path) -> None:
        lake = Lake(tmp_path)
        part = lake.write(RELEVANCE, "p", scores(0.5), VERSION, DAY)
        assert part.path == tmp_path / "relevance" / f"scorer_version={VERSION}" / f"date={DAY}" / "p.parquet"
        assert part.date == date(2026, 11, 1)
        assert part.rows() == 1
        alone = pq.ParquetFile(part.path).read().to_pylist()[0]  # without the directories' names
        assert (alone["scorer_version"], alone["date"]) == (VERSION, date(2026, 11, 1))

    def test_the_inputs_token_comes_back(self, tmp_path: Path) -> None:
        lake = Lake(tmp_path)
        assert lake.write(RELEVANCE, "p", scores(0.5), VERSION, DAY, inputs="3:0:é").inputs() == "3:0:é"
        assert lake.write(RELEVANCE, "q", scores(0.5), VERSION, DAY).inputs() == ""

    def test_no_lake_holds_nothing(self, tmp_path: Path) -> None:
        lake = Lake(tmp_path / "none")
        assert lake.parts(RELEVANCE) == []
        assert lake.find(RELEVANCE, "p", VERSION, DAY) is None
        assert lake.values(RELEVANCE) == lake.values(RELEVANCE, VERSION) == []
        assert lake.frame(RELEVANCE, columns=["score"]).shape == (0, 1)

    def test_a_frame_has_the_rows_of_all_parts_and_nulls_for_columns_that_an_older_part_lacks(
        self, tmp_path: Path
    ) -> None:
        lake = Lake(tmp_path)
        lake.write(RELEVANCE, "p", scores(0.5), VERSION, DAY)
        lake.write(RELEVANCE, "q", scores(0.7), VERSION, "2026-11-02")
        old = lake.find(RELEVANCE, "q", VERSION, "2026-11-02").path.with_name("r.parquet")
        pq.write_table(lake.parts(RELEVANCE)[0].read().drop_columns(["score"]), old)
        assert lake.frame(RELEVANCE)["score"].to_list() == [0.5, 0.7, None]
        assert lake.frame(RELEVANCE, VERSION, DAY, columns=["trace_id", "score"]).rows() == [("t", 0.5)]

    def test_tables_have_a_part_if_all_have_it_from_the_same_inputs(self, tmp_path: Path) -> None:
        lake = Lake(tmp_path)
        lake.write(JUDGES, "p", judges(), inputs="x")
        assert lake.has([JUDGES], "p", inputs="x")
        assert not lake.has([JUDGES], "p", inputs="y")
        assert not lake.has([JUDGES, SOURCES], "p", inputs="x")

    def test_what_is_not_a_whole_part_is_never_listed(self, tmp_path: Path) -> None:
        lake = Lake(tmp_path)
        part = lake.write(RELEVANCE, "p", scores(0.5), VERSION, DAY)
        for name in (".p.0f.tmp", ".q.parquet", "p.parquet.tmp", "notes.txt"):
            part.path.with_name(name).write_bytes(b"half")
        assert [p.name for p in lake.parts(RELEVANCE)] == ["p"]

    @settings(max_examples=40)
    @given(
        st.sets(st.tuples(st.sampled_from("abc"), st.sampled_from(["v1", "v2"]), st.sampled_from([DAY, "2026-11-02"]), st.booleans()))
    )  # fmt: skip
    def test_find_parts_and_values_agree(self, written: set[tuple[str, str, str, bool]]) -> None:
        with Temporary() as folder:
            bare, over = Lake(folder / "lake"), Lake(folder / "lake", folder / "overlay")
            for name, version, day, in_overlay in written:
                (over if in_overlay else bare).write(RELEVANCE, name, scores(float(in_overlay)), version, day)
            expected = sorted({(version, day, name) for name, version, day, _ in written})
            assert [(*p.partition, p.name) for p in over.parts(RELEVANCE)] == expected
            assert over.values(RELEVANCE) == sorted({v for v, _, _ in expected})
            for version in ("v1", "v2"):
                assert over.values(RELEVANCE, version) == sorted({d for v, d, _ in expected if v == version})
                for day in (DAY, "2026-11-02"):
                    here = over.parts(RELEVANCE, version, day)
                    assert [p.name for p in here] == [n for v, d, n in expected if (v, d) == (version, day)]
                    found = [over.find(RELEVANCE, name, version, day) for name in "abc"]
                    assert [p for p in found if p] == here  # and so the overlay's part hides the lake's in both

    def test_a_directory_without_parts_is_no_value(self, tmp_path: Path) -> None:
        lake = Lake(tmp_path)
        lake.write(RELEVANCE, "p", scores(0.5), VERSION, DAY).path.unlink()
        assert lake.parts(RELEVANCE) == []
        assert lake.values(RELEVANCE) == lake.values(RELEVANCE, VERSION) == []

    def test_an_unpartitioned_table(self, tmp_path: Path) -> None:
        lake = Lake(tmp_path)
        lake.write(JUDGES, "j", judges())
        assert [p.partition for p in lake.parts(JUDGES)] == [()]
        assert lake.find(JUDGES, "j") == lake.parts(JUDGES)[0]


def cut(path: Path) -> None:
    """Leave the first half of a file, as a full disk or a broken copy does."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    """Leave the footer and spoil the rows."""
    data = bytearray(path.read_bytes())
    data[4:200] = b"\xff" * 196
    path.write_bytes(bytes(data))


class TestDamage:
    @pytest.mark.parametrize("read", [Part.read, Part.rows, Part.inputs, lambda part: check([part])])
    def test_whoever_reads_a_damaged_part_is_reported_what_to_do(
        self, tmp_path: Path, read: Callable[[Part], object]
    ) -> None:
        lake = Lake(tmp_path / "a=b")  # a lake may lie anywhere
        part = lake.write(RELEVANCE, "p", scores(0.5), VERSION, DAY)
        cut(part.path)
        with pytest.raises(DamagedError) as caught:
            read(part)
        assert str(caught.value).startswith(f"{part.path}: the part is damaged (Parquet magic bytes not found")
        assert str(caught.value).endswith(RELEVANCE.remedy)
        assert caught.value.exit_code == 1

    @pytest.mark.parametrize("read", [Part.read, lambda part: check([part])])
    def test_damage_behind_a_sound_footer(self, tmp_path: Path, read: Callable[[Part], object]) -> None:
        counts = {"ingested": 1, "duplicates": 0, "sampled_out": 0, "quarantined": 0}
        row = {**counts, "ingested_at": datetime(2026, 11, 1, tzinfo=UTC)}
        part = Lake(tmp_path).write(SOURCES, "p", from_rows([row | {"rows": i} for i in range(2_000)], SOURCES))
        garble(part.path)
        assert part.rows() == 2_000
        with pytest.raises(DamagedError) as caught:
            read(part)
        assert str(caught.value).isprintable()
        assert str(caught.value).endswith(SOURCES.remedy)

    def test_damage_is_never_silent(self, tmp_path: Path) -> None:
        """A bit that flips, a lost sector, a cut end: each is an error, or leaves all rows as they were.

        The footer is left out: it has no checksum, and a flip in it may rename a column.
        """
        rng, lake = random.Random(0), Lake(tmp_path)
        part = lake.write(RELEVANCE, "p", scores(*(n / 300 for n in range(300))), VERSION, DAY)
        good, rows = part.path.read_bytes(), part.read()
        footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
        for _ in range(300):
            bad, at = bytearray(good), rng.randrange(4, footer)
            harm = rng.choice(("flip", "sector", "cut"))
            if harm == "flip":
                bad[at] ^= 1 << rng.randrange(8)
            elif harm == "sector":
                bad[at : at + 16] = bytes(len(bad[at : at + 16]))
            part.path.write_bytes(bad[:at] if harm == "cut" else bad)
            try:
                found = part.read()
            except DamagedError:
                continue
            assert found.equals(rows), (harm, at)

    def test_a_part_that_is_gone_is_not_damaged(self, tmp_path: Path) -> None:
        part = Lake(tmp_path).write(JUDGES, "j", judges())
        part.path.unlink()
        with pytest.raises(FileNotFoundError):
            part.read()
        check([part])

    def test_text_that_is_no_text_is_damage_and_is_not_quoted(self, tmp_path: Path) -> None:
        part = Lake(tmp_path).write(JUDGES, "j", judges())
        names = pa.Array.from_buffers(
            pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\x07\0\0\0"), pa.py_buffer(b"secret\xff")]
        )
        rows = part.read()
        pq.write_table(rows.set_column(rows.schema.get_field_index("name"), "name", names), part.path)
        with pytest.raises(DamagedError, match="UTF8") as caught:
            check([part])
        assert "secret" not in str(caught.value)


class Temporary:
    """A folder per example: hypothesis runs many in one test."""

    def __enter__(self) -> Path:
        import tempfile  # noqa: PLC0415

        self._folder = tempfile.TemporaryDirectory()
        return Path(self._folder.name)

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


class TestOverlay:
    def test_it_reads_both_and_writes_only_to_itself(self, tmp_path: Path) -> None:
        base = Lake(tmp_path / "lake")
        base.write(RELEVANCE, "p", scores(0.1), VERSION, DAY)
        before = snapshot(tmp_path / "lake")
        over = Lake(tmp_path / "lake", tmp_path / "overlay")
        over.write(RELEVANCE, "q", scores(0.2), VERSION, DAY)
        over.write(RELEVANCE, "p", scores(0.3), VERSION, DAY)
        assert read(over) == [0.3, 0.2]
        assert read(base) == [0.1]
        assert snapshot(tmp_path / "lake") == before
        assert over.hidden("scratch") == tmp_path / "overlay" / ".scratch"
        assert base.hidden("scratch") == tmp_path / "lake" / ".scratch"


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


class TestWriting:
    def test_a_part_is_not_there_before_it_is_whole(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        lake = Lake(tmp_path)
        seen: list[tuple[int, list[str]]] = []
        move = Path.replace

        def watched(fresh: Path, to: Path) -> Path:
            assert pq.read_metadata(fresh).num_rows == 1
            seen.append((len(lake.parts(RELEVANCE)), [p.name for p in to.parent.iterdir()]))
            return move(fresh, to)

        monkeypatch.setattr(Path, "replace", watched)
        lake.write(RELEVANCE, "p", scores(0.5), VERSION, DAY)
        (listed, files), = seen  # fmt: skip
        assert listed == 0  # all bytes are written, and the part is still not listed
        assert [f.endswith(".tmp") and f.startswith(".") for f in files] == [True]
        assert [p.name for p in lake.parts(RELEVANCE)] == ["p"]

    def test_a_part_is_replaced_in_one_step(self, tmp_path: Path) -> None:
        lake = Lake(tmp_path)
        lake.write(RELEVANCE, "p", scores(*[0.0] * 50), VERSION, DAY)
        torn: list[list[float]] = []
        done = threading.Event()

        def watch() -> None:
            while not done.is_set():
                values = read(lake)
                if len(values) != 50 or len(set(values)) != 1:
                    torn.append(values)

        reader = threading.Thread(target=watch)
        reader.start()
        for i in range(1, 41):
            lake.write(RELEVANCE, "p", scores(*[float(i)] * 50), VERSION, DAY)
        done.set()
        reader.join()
        assert torn == []
        assert set(read(lake)) == {40.0}

    def test_whoever_has_the_old_part_open_keeps_reading_it(self, tmp_path: Path) -> None:
        lake = Lake(tmp_path)
        with pq.ParquetFile(lake.write(RELEVANCE, "p", scores(0.1), VERSION, DAY).path) as old:
            lake.write(RELEVANCE, "p", scores(0.2, 0.3), VERSION, DAY)
            assert old.read(["score"])["score"].to_pylist() == [0.1]

    @pytest.mark.parametrize("depth", [0, 1, 2, 3])
    def test_a_file_where_a_directory_belongs(self, tmp_path: Path, depth: int) -> None:
        path = tmp_path.joinpath("lake", "relevance", f"scorer_version={VERSION}", f"date={DAY}")
        blocked = [*reversed(path.parents), path][-4 + depth]
        blocked.parent.mkdir(parents=True, exist_ok=True)
        blocked.write_text("in the way")
        with pytest.raises(LeadlineError, match=r"p\.parquet: can't be written \(.+\)\. Free space or grant access"):
            Lake(tmp_path / "lake").write(RELEVANCE, "p", scores(0.5), VERSION, DAY)

    def test_a_full_disk_leaves_the_old_part_and_no_debris(self, tmp_path: Path) -> None:
        lake = Lake(tmp_path)
        part = lake.write(RELEVANCE, "p", scores(0.5), VERSION, DAY)
        with at_most(2_000), pytest.raises(LeadlineError, match=r"can't be written \(.*File too large"):
            lake.write(RELEVANCE, "p", scores(*(i / 7 for i in range(5_000))), VERSION, DAY)
        assert read(lake) == [0.5]
        assert list(part.path.parent.iterdir()) == [part.path]


class TestConform:
    def test_partition_columns_are_added_and_columns_put_in_order(self) -> None:
        shuffled = scores(0.5, 1.0)
        shuffled = shuffled.select(sorted(shuffled.column_names, reverse=True))
        found = conform(shuffled, RELEVANCE, (VERSION, DAY))
        assert found.schema.names == RELEVANCE.schema.names
        assert found["date"].to_pylist() == [date(2026, 11, 1)] * 2
        assert found.schema.field("tokens_in").type == pa.int32()

    def test_a_column_that_is_there_stays(self) -> None:
        dated = scores(0.5).append_column("date", pa.array([date(2026, 11, 9)], pa.date32()))
        assert conform(dated, RELEVANCE, (VERSION, DAY))["date"].to_pylist() == [date(2026, 11, 9)]

    def test_a_missing_column_is_an_error_and_a_surplus_one_goes(self) -> None:
        with pytest.raises(KeyError, match="trace_id"):
            conform(scores(0.5).drop_columns(["trace_id"]), RELEVANCE, (VERSION, DAY))
        more = scores(0.5).append_column("extra", pa.array([1]))
        assert "extra" not in conform(more, RELEVANCE, (VERSION, DAY)).schema.names

    def test_rows_with_missing_keys_get_nulls(self) -> None:
        (row,) = from_rows([{"source": "s"}], SOURCES).to_pylist()
        assert row == {"source": "s"} | dict.fromkeys(SOURCES.schema.names[1:])
        assert empty(SOURCES).num_rows == 0


HOLDER = """
import sys
from pathlib import Path
from tasks.store.lake import Lake
with Lake(Path(sys.argv[1])).lock("leadline nightly, process 4711"):
    print("held", flush=True)
    sys.stdin.read()
"""
KILLED_WRITING = """
import os, signal, sys
from pathlib import Path
import pyarrow as pa
from tasks.core.schemas import JUDGES
from tasks.store.lake import Lake, from_rows
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
rows = from_rows([{"judge_version": "j", "name": "n", "kind": "k", "definition": "{}"}], JUDGES)
Lake(Path(sys.argv[1])).write(JUDGES, "j", rows)
"""


class TestLock:
    def test_one_process_at_a_time_and_the_other_is_reported_who_holds_it(self, tmp_path: Path) -> None:
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(BusyError, match="locked by leadline nightly, process 4711") as caught:
                Lake(tmp_path).lock("me").__enter__()
            assert caught.value.exit_code == 4
            os.kill(holder.pid, signal.SIGKILL)
            holder.wait(30)
            # the lock died with its process, and its note misleads nobody
            with Lake(tmp_path).lock("me"), pytest.raises(BusyError, match="locked by me"):
                Lake(tmp_path).lock("another").__enter__()
        finally:
            holder.kill()
            holder.communicate()

    def test_it_can_be_taken_again_after_an_error_inside(self, tmp_path: Path) -> None:
        lake = Lake(tmp_path)
        with pytest.raises(ValueError, match="inside"), lake.lock("me"):
            raise ValueError("inside")
        with lake.lock("me"):
            pass
        assert not (tmp_path / ".lock.holder").exists()

    def test_it_clears_what_a_kill_left_half_written(self, tmp_path: Path) -> None:
        killed = subprocess.run([sys.executable, "-c", KILLED_WRITING, str(tmp_path)], check=False)
        assert killed.returncode == -signal.SIGKILL
        lake = Lake(tmp_path)
        assert lake.parts(JUDGES) == []
        assert len(list((tmp_path / "judges").iterdir())) == 1  # the temporary file
        lake.write(RELEVANCE, "p", scores(0.5), VERSION, DAY).path.with_name(".p.0f.tmp").write_bytes(b"half")
        with lake.lock("me"):
            assert list(tmp_path.rglob("*.tmp")) == []
        assert read(lake) == [0.5]

    @pytest.mark.parametrize("below", ["", "lake"])
    def test_a_file_where_the_lake_belongs(self, tmp_path: Path, below: str) -> None:
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(LeadlineError, match=r"can't be locked \(.+\)\. "):
            Lake(tmp_path / "file" / below).lock("me").__enter__()


def test_a_lake_has_one_salt_of_its_own_and_an_overlay_has_its_lakes(tmp_path: Path) -> None:
    lake, other = Lake(tmp_path / "lake"), Lake(tmp_path / "other")
    assert lake.salt() == Lake(tmp_path / "lake").salt() != other.salt()
    assert Lake(tmp_path / "lake", tmp_path / "overlay").salt() == lake.salt()
