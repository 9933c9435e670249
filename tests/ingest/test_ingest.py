"""Ingest: every row ends in exactly one place, however files are cut, repeated or interrupted."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path

import msgspec
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kit.root import ROOT
from kit.stage_kit import DAY, NEXT, context, log, rows, trace

from tasks.core.config import Sample
from tasks.core.errors import ConfigError, DataError, SourceError
from tasks.core.schemas import FEEDBACK, QUARANTINE, SAMPLES, SOURCES, TRACES, Table
from tasks.core.types import Trace
from tasks.gates.gates import GateKeeper
from tasks.ingest.ingest import ingest, places, shares_of
from tasks.privacy.retention import Due, redact, request
from tasks.run.context import Context
from tasks.sources import Batch, Reject, SourceFile, jsonl
from tasks.sources.reading.rows import to_table
from tasks.store.lake import Lake, Part

LENIENT = {"max_quarantined_share": 1}


def stored(ctx: Context) -> dict[str, str]:
    """Answers by trace id; fails where an id is there twice."""
    found = [(r["trace_id"], r["answer"]) for r in rows(ctx, TRACES)]
    assert len(dict(found)) == len(found)
    return dict(found)


def tree(root: Path) -> dict[Path, bytes]:
    """Every file below a directory."""
    return {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def reasons(ctx: Context) -> Counter[str]:
    return Counter(r["reason"] for r in rows(ctx, QUARANTINE))


def books(ctx: Context) -> list[tuple[int, int, int, int]]:
    """Of every ledger row: rows, ingested, known, quarantined."""
    found = sorted(rows(ctx, SOURCES), key=lambda r: (r["source"] or "", r["ingested_at"]))
    return [(r["rows"], r["ingested"], r["duplicates"], r["quarantined"]) for r in found]


class TestAccounts:
    def test_every_row_is_in_one_place(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [
            trace("t1"), trace("t1"), trace("t1", "Other."), "{not json", "", trace("t2", question="  "), trace("t3"), trace("t5", ""),
            trace("t4", chunks={"a": "x"}) | {"chunks": [{"chunk_id": "a", "text": "x"}] * 2},
        ])  # fmt: skip
        ctx = context(tmp_path, gates=LENIENT)
        found = ingest(ctx)
        assert stored(ctx) == {"t1": "Tea is hot.", "t3": "Tea is hot.", "t5": ""}  # an empty answer is one
        assert reasons(ctx) == {
            "conflicting_duplicate": 1, "malformed_json": 1, "empty_question": 1, "duplicate_chunk_id": 1,
        }  # fmt: skip
        assert books(ctx) == [(8, 3, 1, 4)]  # the blank line is no row
        assert (found.computed, found.reused) == (3, 1)

    def test_a_refused_row_keeps_its_place_and_its_content(self, tmp_path: Path) -> None:
        bad = trace("t1", question="", tags={"team": "blue"}, gold_chunk_ids=["a"])
        log(tmp_path, "a.jsonl", ["", trace("t0"), bad])
        ctx = context(tmp_path, gates=LENIENT)
        ingest(ctx)
        (row,) = rows(ctx, QUARANTINE)
        assert (row["source"], row["line"], row["trace_id"], row["date"]) == ("logs/a.jsonl", 3, "t1", DAY)
        assert row["stage"] == "gate"
        kept = json.loads(row["raw"])
        assert {k: kept[k] for k in ("trace_id", "question", "tags", "gold_chunk_ids")} == {
            "trace_id": "t1", "question": "", "tags": {"team": "blue"}, "gold_chunk_ids": ["a"],
        }  # fmt: skip
        assert "Tea is hot" not in row["detail"]

    # An id, what it says, and on which day: few of each, so that copies and conflicts are common.
    ROW = st.tuples(st.sampled_from("pqr"), st.sampled_from(["x", "y", " "]), st.sampled_from([DAY, NEXT]))

    @settings(
        max_examples=6, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate)
    )  # shrinking takes minutes
    @given(st.lists(ROW, max_size=14), st.lists(st.integers(0, 14), max_size=3), st.integers(1, 4))
    def test_the_outcome_depends_on_the_order_of_rows_alone(
        self, tmp_path_factory: pytest.TempPathFactory, given_: list, cuts: list[int], size: int
    ) -> None:
        made = [trace(i, a, day=d, **({} if a.strip() else {"question": a})) for i, a, d in given_]
        edges = [0, *sorted(min(c, len(made)) for c in cuts), len(made)]
        outcomes = []
        for cut in ([0, len(made)], edges):
            root = tmp_path_factory.mktemp("ingest")
            for n, (start, end) in enumerate(pairwise(cut)):
                log(root, f"{n}.jsonl", made[start:end])
            ctx = context(root, last=NEXT, gates=LENIENT, limits={"part_traces": size})
            found = ingest(ctx)
            kept, refused = rows(ctx, TRACES), rows(ctx, QUARANTINE)
            total, new, known, quarantined = map(sum, zip(*books(ctx), strict=True))
            assert total == len(made) == new + known + quarantined  # in = out + quarantined
            assert (new, quarantined) == (len(kept), len(refused)) == (found.computed, quarantined)
            assert all(p.rows() <= size for p in ctx.lake.parts(TRACES))
            assert all(r["date"] == p.date for p in ctx.lake.parts(TRACES) for r in p.read(["date"]).to_pylist())
            outcomes.append((stored(ctx), reasons(ctx), known))
        assert outcomes[0] == outcomes[1]  # how rows are cut into files changes nothing
        first: dict[str, tuple[str, date]] = {}
        for i, a, d in given_:
            if a.strip():
                first.setdefault(i, (a, d))
        # the first sound content of an id stays; the same again is known, anything else is refused
        assert outcomes[0][0] == {i: a for i, (a, _) in first.items()}
        sound = [(i, (a, d)) for i, a, d in given_ if a.strip()]
        assert outcomes[0][2] == sum(first[i] == text for i, text in sound) - len(first)
        assert outcomes[0][1]["conflicting_duplicate"] == sum(first[i] != text for i, text in sound)

    def test_parts_are_filled_before_the_next_one_begins(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace(f"t{i}") for i in range(7)])
        ctx = context(tmp_path, limits={"part_traces": 3})
        ingest(ctx)
        assert [p.rows() for p in ctx.lake.parts(TRACES)] == [3, 3, 1]

    def test_a_large_file_is_staged_in_pieces_and_still_deduplicated(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace(f"t{i % 10}", "Same." if i < 15 else "Other.") for i in range(20)])
        config = jsonl.Config(kind="jsonl", paths=["logs/a.jsonl"])
        source = jsonl.JsonlSource(config, tmp_path, block_bytes=700)  # a batch holds two or three rows
        ctx = replace(context(tmp_path, gates=LENIENT), sources=(source,))
        ingest(ctx, buffer_bytes=1)
        assert books(ctx) == [(20, 10, 5, 5)]
        assert stored(ctx) == {f"t{i}": "Same." for i in range(10)}


class TestRefusedRows:
    """They count for a night, and are named without their texts."""

    def test_the_night_is_that_of_the_row_or_of_the_file_or_of_the_run(self, tmp_path: Path) -> None:
        blank = trace("blank", day=NEXT, question=" ")
        wrong = trace("wrong", day=NEXT) | {"question": 5}
        for name in (f"{DAY}.jsonl", "all.jsonl"):
            log(tmp_path, name, ["{cut", blank, wrong, trace("zone") | {"timestamp": "2026-10-30T12:00:00"}])
        dated = {"kind": "jsonl", "paths": ["logs/{date}.jsonl"]}
        undated = {"kind": "jsonl", "paths": ["logs/*.jsonl"]}  # names the dated file too, and knows no day of it
        ctx = context(tmp_path, first=DAY, last=date(2026, 11, 3), sources=[dated, undated], gates=LENIENT)
        ingest(ctx)
        found = {(r["source"], r["line"]): r["date"] for r in rows(ctx, QUARANTINE)}
        assert found == {
            (f"logs/{DAY}.jsonl", 1): DAY,  # of the file
            (f"logs/{DAY}.jsonl", 2): NEXT,  # its own
            (f"logs/{DAY}.jsonl", 3): NEXT,
            (f"logs/{DAY}.jsonl", 4): DAY,  # a timestamp without a zone is on no day of UTC for sure
            ("logs/all.jsonl", 1): date(2026, 11, 3),  # the last of the run's days
            ("logs/all.jsonl", 2): NEXT,
            ("logs/all.jsonl", 3): NEXT,
            ("logs/all.jsonl", 4): date(2026, 11, 3),
        }

    @pytest.mark.parametrize(
        ("bad", "note"),
        [
            (["{"], "1 row was refused (malformed_json 1): logs/a.jsonl:2."),
            (
                ["{", trace("t2", "Secret.", question=""), *"{{{{{{{{{"],
                "11 rows were refused (malformed_json 10, empty_question 1): the first at "
                + ", ".join(f"logs/a.jsonl:{line}" for line in range(2, 12))
                + ".",
            ),
        ],
        ids=["one", "several"],
    )
    def test_a_note_says_how_many_why_and_where(self, tmp_path: Path, bad: list, note: str) -> None:
        log(tmp_path, "a.jsonl", [trace("t1"), *bad])
        assert ingest(context(tmp_path, gates=LENIENT)).notes == (note,)

    def test_no_note_where_none_is_refused(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace("t1"), trace("t1")])
        assert ingest(context(tmp_path)).notes == ()


class TestLongLines:
    def test_a_long_refused_line_keeps_its_beginning_where_its_trace_is_known(self, tmp_path: Path) -> None:
        """65,536 bytes are kept, one more is not."""
        short = json.dumps(trace("short", "") | {"question": 5})
        short = short.replace('"answer": ""', '"answer": "' + "a" * (65_536 - len(short)) + '"')
        assert len(short) == 65_536
        log(tmp_path, "a.jsonl", [
            short,
            trace("gated", "a" * 70_000) | {"question": " "},
            trace("typed", "a" * 70_000) | {"answer": ["a" * 70_000]},
            '{"trace_id":"cut","answer":"' + "a" * 70_000,
        ])  # fmt: skip
        ctx = context(tmp_path, gates=LENIENT)
        ingest(ctx)
        raw = {r["trace_id"] or r["reason"]: r["raw"] for r in rows(ctx, QUARANTINE)}
        assert raw["short"] == short
        for known in ("gated", "typed"):
            head, end = raw[known][:4096], raw[known][4096:]
            assert head.startswith("{")
            assert re.fullmatch(r" \.\.\. \[4096 of 7\d{4} bytes\]", end)
        # Nothing of it: whoever removes the trace "cut" later could not find it by a part of the line.
        assert re.fullmatch(r" \.\.\. \[0 of 7\d{4} bytes\]", raw["malformed_json"])

    def test_an_id_is_looked_for_in_the_whole_line(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", ['{"answer":"' + "a" * 70_000 + '","trace_id":"gone"'])
        ctx = context(tmp_path, gates=LENIENT)
        request(ctx.lake, ["gone"], None, datetime.now(UTC))
        ingest(ctx)
        assert [r["raw"] for r in rows(ctx, QUARANTINE)] == [""]

    @pytest.mark.slow
    @pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak is read from Linux's /proc")
    def test_memory_is_bounded_however_long_and_many_they_are(self, tmp_path: Path) -> None:
        """Six lines of 15 MB that are no JSON, one of 60 MB, and one of 1 GB that never ends.

        Two long lines in memory, each as bytes, text and a copy of both, are 120 MB. Keeping the refused lines would be
        more than 350 MB, reading the last one more than 1 GB.
        """
        (tmp_path / "logs").mkdir()
        with (tmp_path / "logs" / "a.jsonl").open("wb") as file:
            for size in (*[15] * 6, 60):
                file.write(b'{"trace_id":"t","answer":"' + b"a" * (size << 20) + b"\n")
            file.truncate(file.tell() + (1 << 30))  # a hole: it reads as zeros and takes no disk
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(tmp_path)],
            check=True, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        )  # fmt: skip
        found = json.loads(done.stdout)
        assert found["reasons"] == {"malformed_json": 6, "line_too_long": 2}
        assert found["grown_mb"] < 300


# Run in a process of its own, whose peak is measured from when everything is loaded.
PEAK = """
import collections, json, pathlib, sys
from kit.stage_kit import context, log, rows, trace
from tasks.core.schemas import QUARANTINE
from tasks.ingest.ingest import ingest

def peak_mb():
    line = next(l for l in open("/proc/self/status") if l.startswith("VmHWM"))
    return int(line.split()[1]) >> 10

root = pathlib.Path(sys.argv[1])
first = root / "first"
log(first, "a.jsonl", [trace("t")])
ingest(context(first))
ctx = context(root, gates={"max_quarantined_share": 1})
open("/proc/self/clear_refs", "w").write("5")
before = peak_mb()
ingest(ctx)
reasons = collections.Counter(row["reason"] for row in rows(ctx, QUARANTINE))
print(json.dumps({"grown_mb": peak_mb() - before, "reasons": reasons}))
"""


class TestAgain:
    def test_a_file_is_read_once(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace("t1"), trace("t2")])
        ctx = context(tmp_path)
        assert ingest(ctx).computed == 2
        found = ingest(ctx)
        assert (found.computed, found.reused) == (0, 2)

    def test_of_a_file_that_has_grown_only_the_new_rows_are_taken(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace("t1"), trace("t2")])
        ctx = context(tmp_path)
        ingest(ctx)
        before = {p.path: p.path.read_bytes() for p in ctx.lake.parts(TRACES)}
        log(tmp_path, "a.jsonl", [trace("t1"), trace("t2"), trace("t3")])
        found = ingest(ctx)
        assert (found.computed, found.reused) == (1, 2)
        assert sorted(stored(ctx)) == ["t1", "t2", "t3"]
        assert {path: path.read_bytes() for path in before} == before  # what is there is never rewritten
        assert books(ctx) == [(2, 2, 0, 0), (3, 1, 2, 0)]

    def test_a_file_that_two_sources_name_is_read_once(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace("t1"), trace("t2")])
        twice = [{"kind": "jsonl", "paths": ["logs/*.jsonl"]}, {"kind": "jsonl", "paths": ["logs/a.jsonl"]}]
        ctx = context(tmp_path, sources=twice)
        assert ingest(ctx).computed == 2
        assert books(ctx) == [(2, 2, 0, 0)]

    def test_a_copy_under_another_name_brings_nothing_new(self, tmp_path: Path) -> None:
        for name in ("a.jsonl", "b.jsonl"):
            log(tmp_path, name, [trace("t1"), trace("t2")])
        ctx = context(tmp_path)
        found = ingest(ctx)
        assert (found.computed, found.reused) == (2, 2)
        assert books(ctx) == [(2, 2, 0, 0), (2, 0, 2, 0)]


class TestShare:
    def test_too_many_refused_rows_stop_the_run_before_anything_is_kept(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace("t1")])  # a good file beside a bad one
        log(tmp_path, "b.jsonl", [trace("t2"), trace("t3", question=""), "{"])
        ctx = context(tmp_path, gates={"max_quarantined_share": 0.4})
        ctx = replace(ctx, gates=GateKeeper(ctx.config.gates, tmp_path / "gates"))
        message = r"2 of 4 new rows were refused \(50\.0%; most: .*\), more than gates\.max_quarantined_share = 40\.0%"
        with pytest.raises(DataError, match=message) as caught:
            ingest(ctx)
        assert caught.value.exit_code == 3
        assert "Tea" not in str(caught.value)
        assert rows(ctx, TRACES) == rows(ctx, SOURCES) == []
        assert reasons(ctx) == {"empty_question": 1, "malformed_json": 1}  # which can be looked at
        assert "empty_question 1<" in (tmp_path / "gates" / "index.html").read_text()  # and so can what the gate found

    def test_the_limit_itself_is_allowed(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace("t1"), trace("t2", question="")])
        assert ingest(context(tmp_path, gates={"max_quarantined_share": 0.5})).computed == 1

    def test_running_again_reads_the_same_files_and_refuses_again(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace("t1"), trace("t2", question="")])
        ctx = context(tmp_path)
        for _ in range(2):
            with pytest.raises(DataError):
                ingest(ctx)
        assert reasons(ctx) == {"empty_question": 1}  # once, not once a run

    def test_rows_that_are_accepted_after_all_leave_the_quarantine(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace("t1", "x" * 9), trace("t2", "y")])
        with pytest.raises(DataError):
            ingest(context(tmp_path, gates={"max_answer_chars": 5}))
        ctx = context(tmp_path)
        assert ingest(ctx).computed == 2
        assert rows(ctx, QUARANTINE) == []
        assert books(ctx) == [(2, 2, 0, 0)]


class TestKilled:
    @pytest.mark.parametrize("lost", [1, 2], ids=["in the second file", "in the first file"])
    def test_between_the_parts_and_the_ledger_row(self, tmp_path: Path, lost: int) -> None:
        log(tmp_path, "a.jsonl", [trace("t1"), trace("t2"), trace("t3", "Old.")])
        log(tmp_path, "b.jsonl", [trace("t3", "New."), trace("t4"), trace("t5"), trace("t1")])
        config = {"gates": LENIENT, "limits": {"part_traces": 2}}
        ctx = context(tmp_path, **config)
        ingest(ctx)
        before = (rows(ctx, TRACES), rows(ctx, QUARANTINE), [p.name for p in ctx.lake.parts(TRACES)], books(ctx))
        ledger = sorted(ctx.lake.parts(SOURCES), key=lambda p: p.read()["source"][0].as_py())
        for part in ledger[-lost:]:
            part.path.unlink()
        if lost == 2:  # nor had all parts of the first file been renamed, nor any of the second
            committed = ctx.lake.parts(TRACES)
            for part in committed[1:]:
                part.path.unlink()
        ingest(context(tmp_path, **config))
        after = (rows(ctx, TRACES), rows(ctx, QUARANTINE), [p.name for p in ctx.lake.parts(TRACES)], books(ctx))
        assert after == before

    def test_while_files_were_staged(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace("t1")])
        ctx = context(tmp_path)

        class Killed(Lake):
            def take(self, table: Table, part: Part) -> None:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            ingest(replace(ctx, lake=Killed(ctx.lake.root)))
        assert rows(ctx, TRACES) == rows(ctx, SOURCES) == []
        assert ingest(ctx).computed == 1
        assert not ctx.lake.hidden("staging").exists()

    def test_a_file_that_breaks_off_keeps_none_of_the_run(self, tmp_path: Path) -> None:
        import gzip  # noqa: PLC0415

        log(tmp_path, "a.jsonl", [trace("t1")])
        whole = gzip.compress(os.urandom(10) + json.dumps(trace("t2")).encode() * 50)
        (tmp_path / "logs" / "b.jsonl.gz").write_bytes(whole[:-20])
        ctx = context(tmp_path, sources=[{"kind": "jsonl", "paths": ["logs/*"]}], gates=LENIENT)
        with pytest.raises(SourceError):
            ingest(ctx)
        assert rows(ctx, TRACES) == rows(ctx, SOURCES) == []


DAILY = [{"kind": "jsonl", "paths": ["logs/{date}.jsonl"]}]


def forget_files(ctx: Context, *sources: str) -> None:
    """Remove the ledger rows of these files, as after a kill, or as somebody does whose part of `sources` is damaged."""
    for part in ctx.lake.parts(SOURCES):
        if part.read()["source"][0].as_py() in sources:
            part.path.unlink()


class TestPartsWithoutALedgerRow:
    def test_they_are_adopted_where_their_file_is_gone(self, tmp_path: Path) -> None:
        gone = log(tmp_path, "a.jsonl", [trace(f"t{i}", day=d) for i, d in enumerate((DAY, DAY, DAY, NEXT))] + ["{"])
        log(tmp_path, "b.jsonl", [trace("t9")])
        ctx = context(tmp_path, last=NEXT, gates=LENIENT, limits={"part_traces": 2})
        ingest(ctx)
        before, texts = books(ctx), rows(ctx, TRACES)
        (name,) = [p.name for p in ctx.lake.parts(SOURCES) if p.read()["source"][0].as_py() == "logs/a.jsonl"]
        forget_files(ctx, "logs/a.jsonl")
        gone.unlink()
        found = ingest(ctx)
        assert rows(ctx, TRACES) == texts
        # Three traces of the first day are two parts, that of the second is another one.
        assert found.notes == (
            "Parts of `traces` that had no row in `sources` were adopted (traces: 4): "
            f"{DAY}/{name}-00000, {DAY}/{name}-00001, {NEXT}/{name}-00002.",
        )
        assert sorted(books(ctx)) == sorted(before)
        assert {r["source"] for r in rows(ctx, SOURCES)} == {None, "logs/b.jsonl"}
        assert ingest(ctx).notes == ()  # they have a row now

    def test_their_file_takes_them_over_where_it_is_read_again(self, tmp_path: Path) -> None:
        log(
            tmp_path,
            "a.jsonl",
            [trace("t1"), trace("t1"), trace("t1", "Other."), trace("t2"), "{", trace("t3", question=" ")],
        )
        ctx = context(tmp_path, gates=LENIENT)
        ingest(ctx)
        before, texts = books(ctx), tree(ctx.lake.root / "traces")
        forget_files(ctx, "logs/a.jsonl")
        found = ingest(ctx)
        assert books(ctx) == before == [(6, 2, 1, 3)]  # its own traces are no copies of others
        assert tree(ctx.lake.root / "traces") == texts
        assert (found.computed, found.reused) == (0, 3)  # no trace is new: two were there, and a copy was known
        assert [note for note in found.notes if "adopted" in note] == []

    def test_a_file_that_comes_after_they_were_adopted(self, tmp_path: Path) -> None:
        log(tmp_path, f"{DAY}.jsonl", [trace("t1"), trace("t2")])
        days = {"sources": DAILY}
        first = context(tmp_path, **days)
        ingest(first)
        before, texts = books(first), tree(first.lake.root / "traces")
        forget_files(first, f"logs/{DAY}.jsonl")
        ingest(context(tmp_path, first=NEXT, last=NEXT, **days))  # names no file of the first day
        assert [r["source"] for r in rows(first, SOURCES)] == [None]
        ingest(context(tmp_path, **days))
        assert [r["source"] for r in rows(first, SOURCES)] == [f"logs/{DAY}.jsonl"]
        assert (books(first), tree(first.lake.root / "traces")) == (before, texts)

    def test_texts_that_were_removed_do_not_come_back(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace("asked"), trace("expired")])
        log(tmp_path, "b.jsonl", [trace("young", day=NEXT)])
        ctx = context(tmp_path, last=NEXT, gates=LENIENT)
        ingest(ctx)
        now = datetime(2026, 11, 10, tzinfo=UTC)
        request(ctx.lake, ["asked"], None, now)
        redact(ctx.lake, Due(texts=NEXT, traces=frozenset({"asked"})), now)
        request(ctx.lake, ["young"], None, now)  # put on record, and killed before its text was removed
        before = rows(ctx, TRACES)
        forget_files(ctx, "logs/a.jsonl", "logs/b.jsonl")
        ingest(ctx)
        assert rows(ctx, TRACES) == before
        assert {r["trace_id"]: (r["text_redacted"], bool(r["answer"])) for r in before} == {
            "asked": ("deleted", False), "expired": ("expired", False), "young": (None, True),
        }  # fmt: skip
        refused = {r["trace_id"]: (r["reason"], r["raw"]) for r in rows(ctx, QUARANTINE)}
        assert refused == {"asked": ("redacted", ""), "young": ("redacted", "")}

    def test_what_passed_the_gate_once_is_not_refused_for_being_read_again(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace("t1", "x" * 9), trace("t2", "y")])
        ctx = context(tmp_path)
        ingest(ctx)
        forget_files(ctx, "logs/a.jsonl")
        ingest(context(tmp_path, gates={"max_answer_chars": 5}))
        assert (books(ctx), rows(ctx, QUARANTINE)) == ([(2, 2, 0, 0)], [])

    @pytest.mark.parametrize("lost", range(5))
    def test_a_part_that_is_lost_with_the_row_comes_back_as_it_was(self, tmp_path: Path, lost: int) -> None:
        """What was made of it bears its name, and has to be of its traces."""
        log(tmp_path, "a.jsonl", [trace(f"t{i}", day=NEXT if i % 3 else DAY) for i in range(8)])
        ctx = context(tmp_path, last=NEXT, limits={"part_traces": 2})
        ingest(ctx)
        before = [(p.name, p.partition, p.read().to_pylist()) for p in ctx.lake.parts(TRACES)]
        assert len(before) == 5  # of three traces of the first day, and of five of the second
        ctx.lake.parts(TRACES)[lost].path.unlink()
        forget_files(ctx, "logs/a.jsonl")
        found = ingest(ctx)
        assert [(p.name, p.partition, p.read().to_pylist()) for p in ctx.lake.parts(TRACES)] == before
        assert found.computed == len(before[lost][2])
        assert books(ctx) == [(8, 8, 0, 0)]

    @settings(max_examples=12, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
    @given(st.sets(st.sampled_from(["logs/a.jsonl", "logs/b.jsonl"])), st.sets(st.integers(0, 9)), st.integers(1, 3))
    def test_wherever_a_run_was_killed_the_next_one_has_every_trace_once(
        self, tmp_path_factory: pytest.TempPathFactory, unwritten: set[str], unmoved: set[int], size: int
    ) -> None:
        root = tmp_path_factory.mktemp("killed")
        log(root, "a.jsonl", [trace(f"t{i}", day=NEXT if i % 2 else DAY) for i in range(5)])
        log(root, "b.jsonl", [trace(t) for t in ("t0", "t8", "t9")] + [trace("t1", "Other."), "{"])
        config = {"last": NEXT, "gates": LENIENT, "limits": {"part_traces": size}}
        ctx = context(root, **config)
        ingest(ctx)
        before = (sorted(stored(ctx).items()), reasons(ctx), books(ctx))
        written = {p.name for p in ctx.lake.parts(SOURCES) if p.read()["source"][0].as_py() not in unwritten}
        forget_files(ctx, *unwritten)
        parts = [p for p in ctx.lake.parts(TRACES) if p.name.rsplit("-", 1)[0] not in written]
        for n, part in enumerate(sorted(parts, key=lambda p: p.read()["trace_id"][0].as_py())):
            if n in unmoved:
                part.path.unlink()
        ingest(context(root, **config))
        assert (sorted(stored(ctx).items()), reasons(ctx), books(ctx)) == before

    def test_a_dry_run_adopts_nothing(self, tmp_path: Path) -> None:
        log(tmp_path, f"{DAY}.jsonl", [trace("t1")])
        ctx = context(tmp_path, sources=DAILY)
        ingest(ctx)
        forget_files(ctx, f"logs/{DAY}.jsonl")
        before = tree(ctx.lake.root)
        over = context(tmp_path, first=NEXT, last=NEXT, sources=DAILY, overlay=tmp_path / "over")
        assert "were adopted (traces: 1)" in ingest(over).notes[-1]
        assert tree(ctx.lake.root) == before


class TestNotes:
    def test_days_outside_the_run_are_named(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace("t1"), trace("t2", day=date(2026, 10, 30))])
        ctx = context(tmp_path)
        assert ingest(ctx).notes == (
            "Traces arrived for days outside this run: 2026-10-30. Complete them with --from and --to.",
        )
        assert sorted(stored(ctx)) == ["t1", "t2"]

    def test_no_file_is_reported(self, tmp_path: Path) -> None:
        (tmp_path / "logs").mkdir()
        assert ingest(context(tmp_path)).notes == ("No source file was found for these days.",)

    @staticmethod
    def nights(root: Path, counts: dict[int, int]) -> None:
        for day, n in counts.items():
            made = [trace(f"{day}-{i}", day=date(2026, 11, day)) for i in range(n)]
            log(root, f"2026-11-{day:02d}.jsonl", made)

    def test_an_unusual_volume_is_reported(self, tmp_path: Path) -> None:
        daily = [{"kind": "jsonl", "paths": ["logs/{date}.jsonl"]}]
        self.nights(tmp_path, {1: 4, 2: 4, 3: 4, 4: 1, 5: 4})
        first = context(tmp_path, first=date(2026, 11, 1), last=date(2026, 11, 3), sources=daily)
        assert ingest(first).notes == ()
        # 1 is outside 4 / 3 to 4 · 3
        (note,) = ingest(context(tmp_path, first=date(2026, 11, 4), last=date(2026, 11, 4), sources=daily)).notes
        assert note.startswith("2026-11-04: 1 traces, outside the usual 1.333 to 12")
        assert ingest(context(tmp_path, first=date(2026, 11, 5), last=date(2026, 11, 5), sources=daily)).notes == ()

    def test_the_volume_of_a_night_is_all_of_it_and_not_what_came_late(self, tmp_path: Path) -> None:
        daily = [{"kind": "jsonl", "paths": ["logs/{date}.jsonl"]}]
        self.nights(tmp_path, {1: 4, 2: 4, 3: 4, 4: 4})
        ingest(context(tmp_path, first=date(2026, 11, 1), last=date(2026, 11, 4), sources=daily))
        self.nights(tmp_path, {4: 5})  # one more line
        found = ingest(context(tmp_path, first=date(2026, 11, 4), last=date(2026, 11, 4), sources=daily))
        assert (found.computed, found.notes) == (1, ())


def test_an_overlay_takes_all_writes(tmp_path: Path) -> None:
    log(tmp_path, "a.jsonl", [trace("t1"), trace("t2", question="")])
    over = context(tmp_path, overlay=tmp_path / "over", gates=LENIENT)
    assert ingest(over).computed == 1
    assert not (tmp_path / "lake").exists()
    assert list(stored(over)) == ["t1"]


class TestPlaces:
    """Files of one place, such as windows of time, may hold the same rows again."""

    class Windows:
        """A source with a window of its own for each run."""

        def __init__(self, name: str, *batch: object) -> None:
            self.file = SourceFile(f"store {name}", name, DAY, "store")
            self.batch = batch

        def files(self, start: date, end: date) -> list[SourceFile]:
            assert start <= DAY <= end
            return [self.file]

        def read(self, file: SourceFile) -> Iterator[Batch]:
            assert file == self.file
            good = [msgspec.convert(t, Trace) for t in self.batch if isinstance(t, dict)]
            bad = [Reject(9, r[0], r[1], r[2], r[3], DAY) for r in self.batch if isinstance(r, tuple)]
            yield Batch(to_table(good, range(1, len(good) + 1)), bad, len(good) + len(bad))

    def night(self, root: Path, name: str, *batch: object, **gates: float) -> Context:
        ctx = replace(context(root, gates=gates or LENIENT), sources=(self.Windows(name, *batch),))
        ingest(ctx)
        return ctx

    def test_a_row_that_was_refused_is_not_refused_again(self, tmp_path: Path) -> None:
        lost = ("t2", "no_root", "the root is missing", b"1 span")
        self.night(tmp_path, "1", trace("t1"), lost)
        ctx = self.night(tmp_path, "2", trace("t1"), lost, trace("t3"))
        assert reasons(ctx) == {"no_root": 1}
        assert books(ctx) == [(2, 1, 0, 1), (3, 1, 2, 0)]  # known: the trace and the refused row

    def test_what_changed_is_another_row_and_so_is_a_second_of_the_same(self, tmp_path: Path) -> None:
        nameless = (None, "malformed_span", "a span has no trace id", b"")
        self.night(tmp_path, "1", nameless)
        ctx = self.night(tmp_path, "2", nameless, nameless, ("t2", "no_root", "the root is missing", b"1 span"))
        assert reasons(ctx) == {"malformed_span": 2, "no_root": 1}
        ctx = self.night(tmp_path, "3", nameless, ("t2", "no_root", "the root is missing", b"2 spans"))
        assert reasons(ctx) == {"malformed_span": 2, "no_root": 2}

    def test_a_run_that_was_stopped_is_no_excuse(self, tmp_path: Path) -> None:
        """Its refused rows can be seen; the next run refuses them again, each there once."""
        lost = ("t2", "no_root", "the root is missing", b"1 span")
        for name in "12":
            with pytest.raises(DataError, match="no_root 1"):
                self.night(tmp_path, name, trace("t1"), lost, max_quarantined_share=0.1)
        ctx = self.night(tmp_path, "3", trace("t1"), lost)
        assert (reasons(ctx), set(stored(ctx))) == ({"no_root": 1}, {"t1"})

    def test_an_answer_that_an_application_did_not_give_is_no_fault_of_the_source(self, tmp_path: Path) -> None:
        failed = [(f"f{n}", "no_answer", "the root failed", b"1 span") for n in range(9)]
        ctx = self.night(tmp_path, "1", trace("t1"), *failed, max_quarantined_share=0.1)
        assert (reasons(ctx), set(stored(ctx))) == ({"no_answer": 9}, {"t1"})
        with pytest.raises(DataError, match="1 of 2 new rows"):  # of those that count
            self.night(
                tmp_path,
                "2",
                trace("t3"),
                ("g", *failed[0][1:]),
                ("t4", "no_root", "x", b""),
                max_quarantined_share=0.1,
            )


def rated(trace_id: str, score: float | None, comment: str | None = None) -> dict[str, object]:
    """A trace with the feedback of its user."""
    return trace(trace_id, feedback={"score": score, "comment": comment})


class TestFeedback:
    def test_a_rating_that_comes_later_is_no_conflict(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace("t1"), rated("t2", 1), rated("t3", 0, "wrong")])
        ctx = context(tmp_path)
        ingest(ctx)
        again = [rated("t1", 0.5), rated("t2", 1), rated("t3", 1, "right, after all")]
        log(tmp_path, "b.jsonl", again)
        found = ingest(ctx)
        assert (found.computed, reasons(ctx)) == (0, {})
        kept = sorted(rows(ctx, FEEDBACK), key=lambda r: r["read_at"])
        said = [(r["date"], r["trace_id"], r["score"], r["comment"]) for r in kept]
        # What was rated as before has no second row.
        assert sorted(said[:2]) == [(DAY, "t2", 1.0, None), (DAY, "t3", 0.0, "wrong")]
        assert sorted(said[2:]) == [(DAY, "t1", 0.5, None), (DAY, "t3", 1.0, "right, after all")]

    def test_only_stored_traces_have_ratings(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [
            rated("t1", 1) | {"question": " "}, rated("gone", 1), rated("t2", 1) | {"timestamp": f"{NEXT}T10:00:00Z"}, trace("t3"),
        ])  # fmt: skip
        ctx = context(tmp_path, gates=LENIENT)
        request(ctx.lake, ["gone"], None, datetime.now(UTC))
        ingest(ctx)
        assert [(r["date"], r["trace_id"]) for r in rows(ctx, FEEDBACK)] == [(NEXT, "t2")]

    def test_a_file_that_is_read_again_gives_the_same(self, tmp_path: Path) -> None:
        """As after a kill: the parts are there, the ledger row is not."""
        log(tmp_path, "a.jsonl", [rated("t1", 1), rated("t2", 0)])
        ctx = context(tmp_path)
        ingest(ctx)
        before = rows(ctx, FEEDBACK)
        forget_files(ctx, "logs/a.jsonl")
        ingest(ctx)
        assert [{**r, "read_at": None} for r in rows(ctx, FEEDBACK)] == [{**r, "read_at": None} for r in before]


class TestSample:
    """A share of the traces is read in, chosen by a hash; the ledger still counts every row."""

    ROWS = 2_000

    def traces(self, n: int = ROWS) -> list[dict[str, object]]:
        return [trace(f"t{i}", session=f"s{i // 4}", question=f"Question {i % 500}?") for i in range(n)]

    def taken(self, **sample: object) -> set[int]:
        found = [msgspec.convert({**t, "timestamp": datetime.now(UTC)}, Trace) for t in self.traces()]
        share = sample.pop("share")
        own = places(to_table(found, range(1, self.ROWS + 1)), Sample.model_validate({"share": share, **sample}))
        return set((own < share).arg_true().to_list())

    def test_the_share_is_met_and_a_small_sample_is_part_of_a_large_one(self) -> None:
        # 4 standard deviations of a binomial number: √(2000 · 0.1 · 0.9) = 13.4, and √(2000 · 0.4 · 0.6) = 21.9.
        small, large = self.taken(share=0.1), self.taken(share=0.4)
        assert abs(len(small) - 200) < 54
        assert abs(len(large) - 800) < 88
        assert small < large
        assert len(self.taken(share=1)) == self.ROWS
        other = self.taken(share=0.1, seed="b")
        assert len(small & other) < 60  # 20 are expected in both, √20 = 4.5

    @pytest.mark.parametrize(("by", "group"), [("session", lambda i: i // 4), ("question", lambda i: i % 500)])
    def test_conversations_and_repeats_stay_together(self, by: str, group: Callable[[int], int]) -> None:
        taken = self.taken(share=0.2, by=by)
        groups = {group(i) for i in taken}
        assert taken == {i for i in range(self.ROWS) if group(i) in groups}
        assert abs(len(groups) - 100) < 36  # √(500 · 0.2 · 0.8) = 8.9

    def test_the_ledger_counts_every_row_and_bad_rows_are_all_refused(self, tmp_path: Path) -> None:
        bad = [trace(f"b{i}", question=" ") for i in range(20)]
        log(tmp_path, "a.jsonl", [*self.traces(100), *bad, "{not json"])
        ctx = context(tmp_path, gates=LENIENT, sample={"share": 0.25})
        found = ingest(ctx)
        (row,) = rows(ctx, SOURCES)
        assert row["rows"] == 121
        assert row["quarantined"] == 21
        assert row["ingested"] + row["sampled_out"] == 100
        assert row["ingested"] == found.computed == len(stored(ctx)) < 100
        assert f"{found.computed} of 100 traces were taken: see `sample` in the config." in found.notes

    def test_the_same_traces_however_the_files_are_cut(self, tmp_path: Path) -> None:
        log(tmp_path / "one", "a.jsonl", self.traces(60))
        for n in range(3):
            log(tmp_path / "three", f"{n}.jsonl", self.traces(60)[n::3])
        contexts = [context(tmp_path / name, sample={"share": 0.3}) for name in ("one", "three")]
        for ctx in contexts:
            ingest(ctx)
        assert stored(contexts[0]) == stored(contexts[1])
        assert 0 < len(stored(contexts[0])) < 60


class TestPerDay:
    """About as many traces a day as asked for, as many of each application and generator as it has."""

    def test_who_has_few_keeps_all_of_them(self) -> None:
        # 240 among three are 80 each, of which a needs 10. Of the other 230 b needs 100, and c gets the rest.
        seen = pl.DataFrame({"app": ["c", "a", "b"], "seen": [1000, 10, 100]})
        assert shares_of(seen, 240).rows() == [("a", 10, 1.0), ("b", 100, 1.0), ("c", 1000, pytest.approx(0.13))]
        assert shares_of(seen, 5000)["share"].to_list() == [1.0, 1.0, 1.0]
        assert shares_of(seen, 3)["share"].to_list() == [pytest.approx(x) for x in (0.1, 0.01, 0.001)]

    def test_a_day_is_thinned_and_late_traces_get_the_same_share(self, tmp_path: Path) -> None:
        def of(generator: str, *numbers: int) -> list[dict[str, object]]:
            return [trace(f"{generator}{i}", generator=generator) for i in numbers]

        log(tmp_path, "a.jsonl", [*of("big", *range(400)), *of("small", *range(20)), trace("b", question=" ")])
        ctx = context(tmp_path, gates=LENIENT, sample={"per_day": 100}, limits={"part_traces": 30})
        found = ingest(ctx)
        kept = [r["generator"] for r in rows(ctx, TRACES)]
        assert kept.count("small") == 20
        assert abs(kept.count("big") - 80) < 32  # 4 · √(400 · 0.2 · 0.8)
        assert found.computed == len(kept)
        shares = [(r["date"], r["generator"], r["seen"], r["share"]) for r in rows(ctx, SAMPLES)]
        assert sorted(shares) == [(DAY, "big", 400, 0.2), (DAY, "small", 20, 1.0)]
        (row,) = rows(ctx, SOURCES)
        assert (row["ingested"], row["sampled_out"], row["quarantined"]) == (len(kept), 420 - len(kept), 1)
        assert [part.rows() for part in ctx.lake.parts(TRACES)][:-1] == [30] * (len(kept) // 30)

        log(tmp_path, "b.jsonl", [*of("big", *range(500)), *of("late", *range(10))])
        ingest(ctx)
        late = [r["generator"] for r in rows(ctx, TRACES)]
        assert stored(ctx).keys() >= {f"late{i}" for i in range(10)}  # 10 of the day's 100, as many as small has
        assert late.count("big") >= kept.count("big")
        assert abs(late.count("big") - 100) < 36  # 4 · √(500 · 0.2 · 0.8)
        assert {(r["generator"], r["share"]) for r in rows(ctx, SAMPLES)} == {
            ("big", 0.2),
            ("small", 1.0),
            ("late", 1.0),
        }

    def test_a_file_that_is_read_again_changes_nothing(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", [trace(f"t{i}") for i in range(200)])
        ctx = context(tmp_path, sample={"per_day": 20})
        ingest(ctx)
        before = stored(ctx)
        forget_files(ctx, "logs/a.jsonl")
        assert ingest(ctx).computed == 0
        assert stored(ctx) == before
        (row,) = rows(ctx, SOURCES)
        assert (row["rows"], row["ingested"], row["sampled_out"]) == (200, len(before), 200 - len(before))

    def test_a_size_is_one_of_two(self, tmp_path: Path) -> None:
        for sample in ({}, {"share": 0.1, "per_day": 5}):
            with pytest.raises(ConfigError, match="either `share` or `per_day`"):
                context(tmp_path, sample=sample)
