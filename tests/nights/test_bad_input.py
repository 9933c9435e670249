"""Whatever stands in a log, every row ends in one place: judged, known already, or quarantined with a reason."""

import json
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.worlds import FIRST, World, all_stages, make_world, read, trace, unbalanced, write

from tasks.core.schemas import QUARANTINE, SOURCES, TRACES
from tasks.ingest.ingest import ingest
from tasks.run.build import build_context
from tasks.store.lake import Lake

ALL_MAY_BE_BAD = {"max_quarantined_share": 1.0}
CHUNK = {"chunk_id": "1", "text": "Backups are kept for thirty days."}
TEN_MB = "word " * 2_000_000
ARABIC = "تُحفظ النسخ الاحتياطية لمدة ثلاثين يومًا [1]. يمكن للمالك تمديد المدة."
JAPANESE = "バックアップは三十日間保存されます[1]。所有者は期間を延長できます。"
MARKUP = 'Backups <script>alert("x")</script> are kept for <b>thirty</b> days [1].\n\n<img src=x onerror=alert(1)>'


def as_bytes(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode()


# One line each, and the reason for which it is refused.
REFUSED: list[tuple[str, bytes]] = [
    ("malformed_json", b"{"),
    ("malformed_json", b'{"trace_id": "cut", "timestamp": "2026-11-01T1'),
    ("malformed_json", b'{"tags": {"a": "b"}, '),
    ("wrong_type", b"[1, 2"),  # cut off, but no object to begin with
    ("malformed_json", b"not json at all"),
    ("malformed_json", as_bytes(trace("two")) + as_bytes(trace("values"))),
    ("malformed_json", as_bytes(trace("raw-nul", answer="a NUL: !")).replace(b"!", b"\0")),
    ("malformed_json", b"\0\0\0\0"),
    ("malformed_json", b'{"trace_id": "nan", "latency_ms": NaN}'),
    ("nul_character", as_bytes(trace("nul", answer="a NUL: \0"))),
    ("nul_character", as_bytes(trace("nul-in-chunk", chunks=[{**CHUNK, "text": "\0"}]))),
    ("nul_character", as_bytes(trace("nul-in-tag", tags={"a\0": "b"}))),
    ("invalid_utf8", as_bytes(trace("latin-1", answer="gr!n")).replace(b"!", b"\xfc")),
    ("invalid_utf8", as_bytes(trace("cut-sequence", answer="gr!")).replace(b"!", b"\xe2\x82")),
    ("invalid_utf8", as_bytes(trace("lone-surrogate", answer="gr!")).replace(b"!", b"\\ud800")),
    ("wrong_type", b"[]"),
    ("wrong_type", b'"text"'),
    ("wrong_type", b"null"),
    ("wrong_type", as_bytes(trace("number-for-text", question=5))),
    ("wrong_type", as_bytes(trace("text-for-chunks", chunks="none"))),
    ("wrong_type", as_bytes(trace("null-answer", answer=None))),
    ("wrong_type", as_bytes(trace("text-for-number", tokens_in="12"))),
    ("missing_field", b"{}"),
    ("missing_field", as_bytes({k: v for k, v in trace("no-answer").items() if k != "answer"})),
    ("missing_field", as_bytes(trace("no-chunk-id", chunks=[{"text": "text"}]))),
    ("empty_id", as_bytes(trace(""))),
    ("timestamp_without_zone", as_bytes(trace("no-zone", timestamp="2026-11-01T12:00:00"))),
    ("bad_timestamp", as_bytes(trace("no-time", timestamp="yesterday"))),
    ("bad_timestamp", as_bytes(trace("no-day", timestamp="2026-02-30T12:00:00Z"))),
    ("out_of_range", as_bytes(trace("negative", tokens_in=-1))),
    ("out_of_range", as_bytes(trace("huge", tokens_in=2**70))),
    ("timestamp_out_of_window", as_bytes(trace("last-century", timestamp="1999-12-31T00:00:00Z"))),
    ("timestamp_out_of_window", as_bytes(trace("far-ahead", timestamp="2999-01-01T00:00:00Z"))),
    ("empty_question", as_bytes(trace("no-question", question=" \n\t"))),
    ("answer_too_long", as_bytes(trace("ten-megabytes", answer=TEN_MB))),
    ("chunk_too_long", as_bytes(trace("long-chunk", chunks=[{**CHUNK, "text": TEN_MB}]))),
    (
        "too_many_chunks",
        as_bytes(trace("1001-chunks", chunks=[{"chunk_id": str(i), "text": "x"} for i in range(1001)])),
    ),
    ("duplicate_chunk_id", as_bytes(trace("same-chunk-id", chunks=[CHUNK, CHUNK]))),
    ("conflicting_duplicate", as_bytes(trace("plain", answer="Another answer under an id that is taken."))),
]

# Odd but good traces: each is judged.
JUDGED: list[dict[str, Any]] = [
    trace("plain"),
    trace("500-chunks", chunks=[{"chunk_id": str(i), "text": f"Passage number {i}."} for i in range(500)]),
    trace("empty-chunk", chunks=[CHUNK, {"chunk_id": "2", "text": ""}, {"chunk_id": "3", "text": " \n "}]),
    trace("only-empty-chunks", chunks=[{"chunk_id": "1", "text": ""}]),
    trace("dangling", answer="Backups are kept for thirty days [7]. Guests may read [doc-9]."),
    trace("arabic", question="كم تُحفظ؟", answer=ARABIC, chunks=[{"chunk_id": "1", "text": ARABIC}]),
    trace("japanese", question="何日?", answer=JAPANESE, chunks=[{"chunk_id": "1", "text": JAPANESE * 40}]),
    trace("markup", answer=MARKUP, chunks=[{"chunk_id": "1", "text": MARKUP}]),
    trace("emoji", answer="Kept 🗄️ for 👩‍👩‍👧 thirty days [1]. Ｆｕｌｌｗｉｄｔｈ too."),
    trace("offset", timestamp="2026-11-02T01:30:00+02:00"),  # 23:30 of the day before, UTC
    trace("one-long-word", answer="x" * 5_000, chunks=[{"chunk_id": "1", "text": "y" * 50_000}]),
    trace("sql", question="'; DROP TABLE traces; --", answer="Use {braces}, %s, $1 and \\N [1]. Done."),
]  # fmt: skip
NOTHING_TO_JUDGE = [
    trace("no-context", chunks=[]),
    trace("empty-answer", answer=""),
    trace("only-code", answer="# Title\n\n```\ncode\n```\n"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """All of it in one file, once through the whole pipeline; the tests only read what came of it."""
    root = tmp_path_factory.mktemp("bad")
    world = make_world(root, gates=ALL_MAY_BE_BAD, report={"dir": "out/report", "max_trace_pages": 50})
    good = [*JUDGED, *NOTHING_TO_JUDGE]
    lines = [*map(as_bytes, good), b"", b"  \t", *(line for _, line in REFUSED), as_bytes(trace("plain"))]
    write(root / "logs" / "all.jsonl", lines)
    ctx = build_context(world.config, FIRST, FIRST)
    all_stages(ctx)
    ctx.close()
    return world


def test_rows_in_are_rows_out(world: World) -> None:
    good = len(JUDGED) + len(NOTHING_TO_JUDGE)
    (row,) = read(world.warehouse, "SELECT rows, ingested, duplicates, quarantined FROM sources")
    # The last line is a copy of the first; blank lines are no rows.
    assert row == {"rows": good + len(REFUSED) + 1, "ingested": good, "duplicates": 1, "quarantined": len(REFUSED)}
    assert not unbalanced(world.warehouse)


def test_every_bad_row_is_quarantined_with_its_reason(world: World) -> None:
    held = {r["line"]: r for r in read(world.warehouse, "FROM quarantine")}
    first = len(JUDGED) + len(NOTHING_TO_JUDGE) + 3  # after two blank lines, from 1
    found = {line - first: r["reason"] for line, r in held.items()}
    assert found == {i: reason for i, (reason, _) in enumerate(REFUSED)}


def test_a_quarantined_row_can_be_reported_and_read_again(world: World) -> None:
    held = {r["trace_id"]: r for r in read(world.warehouse, "FROM quarantine WHERE trace_id IS NOT NULL")}
    assert {"no-zone", "null-answer", "ten-megabytes", "no-question", "plain"} <= held.keys()
    assert json.loads(held["no-zone"]["raw"]) == trace("no-zone", timestamp="2026-11-01T12:00:00")
    beginning, rest = held["ten-megabytes"]["raw"].split(" ... ")  # of a row over 64 KB (docs/trace-format.md)
    size = int(re.fullmatch(r"\[4096 of (\d+) bytes\]", rest)[1])
    assert len(beginning) == 4096
    assert len(TEN_MB) < size < len(TEN_MB) + 1000  # of its row, whose other fields are short
    assert beginning.split('"answer":"')[1] in TEN_MB
    (latin,) = read(world.warehouse, "FROM quarantine WHERE raw LIKE '%latin-1%'")
    assert r"gr\xfcn" in latin["raw"]
    assert all(len(r["detail"]) < 300 for r in held.values())


def test_every_good_row_is_judged(world: World) -> None:
    scores = {r["trace_id"]: r for r in read(world.warehouse, "FROM trace_scores")}
    assert {t for t, r in scores.items() if r["groundedness_status"] == "scored"} == {t["trace_id"] for t in JUDGED}
    assert {t for t, r in scores.items() if r["groundedness_status"] == "na"} == {
        t["trace_id"] for t in NOTHING_TO_JUDGE
    }
    assert scores["500-chunks"]["chunks_retrieved"] == 500
    assert scores["dangling"]["citations_dangling"] == 2
    assert str(scores["offset"]["date"]) == "2026-11-01"
    (looks,) = read(
        world.warehouse, "SELECT count(*) AS n FROM pairs WHERE trace_id = '500-chunks' AND pair_kind = 'single'"
    )
    assert looks["n"] == 2 * 500  # two claims, one window a chunk


def test_texts_come_through_as_they_were(world: World) -> None:
    rows = {r["trace_id"]: r for r in read(world.warehouse, "SELECT trace_id, answer, chunks FROM traces")}
    for sent in JUDGED:
        kept = rows[sent["trace_id"]]
        assert kept["answer"] == sent["answer"]
        assert [c["text"] for c in kept["chunks"]] == [c["text"] for c in sent["chunks"]]
    wrong = (
        "SELECT claim_id FROM claims JOIN traces USING (trace_id)"
        " WHERE claims.text <> substr(answer, span_start + 1, span_end - span_start)"
    )
    assert read(world.warehouse, wrong) == []
    arabic = read(world.warehouse, "SELECT cited_chunk_ids FROM claims WHERE trace_id = 'arabic' ORDER BY ordinal")
    assert [r["cited_chunk_ids"] for r in arabic] == [["1"], []]


def test_no_script_of_a_trace_runs_in_the_report(world: World) -> None:
    pages = list((world.out / "report").rglob("*.html"))
    assert pages
    text = "".join(p.read_text(encoding="utf-8") for p in pages)
    assert "&lt;script&gt;alert(" in text  # it is shown, as text
    assert '<script>alert("x")' not in text
    assert "<img src=x" not in text


@dataclass
class Expected:
    """What a reader of METHODS and of the trace format expects of a log, line by line."""

    contents: dict[str, Any] = field(default_factory=dict)
    rows: int = 0
    known: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def take(self, line: bytes, reason: str | None) -> None:
        if not line.strip(b" \t\r"):
            return
        self.rows += 1
        if reason is not None:
            self.reasons[reason] += 1
            return
        row = json.loads(line)
        first = self.contents.setdefault(row["trace_id"], row)
        if first is not row:
            if first == row:
                self.known += 1
            else:
                self.reasons["conflicting_duplicate"] += 1


SMALL = [(reason, line) for reason, line in REFUSED if len(line) < 1_000 and reason != "conflicting_duplicate"]
LINES = st.one_of(
    st.builds(
        lambda n, answer, day: (None, as_bytes(trace(f"t{n}", answer=answer, timestamp=f"2026-11-0{day}T08:00:00Z"))),
        st.integers(0, 5),
        st.sampled_from(["One answer [1].", "Another one."]),
        st.integers(1, 3),
    ),
    st.sampled_from(SMALL),
    st.sampled_from([(None, b""), (None, b" \t")]),
)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(files=st.lists(st.lists(LINES, max_size=12), min_size=1, max_size=3), runs=st.integers(1, 2))
def test_rows_in_are_rows_out_for_any_mixture(files: list[list[tuple[str | None, bytes]]], runs: int) -> None:
    expected = Expected()
    root = Path(tempfile.mkdtemp())
    try:
        world = make_world(root, gates=ALL_MAY_BE_BAD, limits={"part_traces": 2})
        for i, lines in enumerate(files):
            write(root / "logs" / f"{i}.jsonl", [line for _, line in lines])
            for reason, line in lines:
                expected.take(line, reason)
        for _ in range(runs):  # a second run must add nothing
            ctx = build_context(world.config, FIRST, FIRST)
            ingest(ctx)
        lake = Lake(world.lake)
        ledger = [r for p in lake.parts(SOURCES) for r in p.read().to_pylist()]
        held = Counter(r for p in lake.parts(QUARANTINE) for r in p.read(["reason"])["reason"].to_pylist())
        kept = {r["trace_id"]: r for p in lake.parts(TRACES) for r in p.read().to_pylist()}
        assert all(r["rows"] == r["ingested"] + r["duplicates"] + r["quarantined"] for r in ledger)
        assert len(ledger) == len(files)
        assert sum(r["rows"] for r in ledger) == expected.rows
        assert sum(r["duplicates"] for r in ledger) == expected.known
        assert held == expected.reasons
        assert {t: r["answer"] for t, r in kept.items()} == {t: r["answer"] for t, r in expected.contents.items()}
        assert sum(p.rows() for p in lake.parts(TRACES)) == len(expected.contents)
    finally:
        shutil.rmtree(root)
