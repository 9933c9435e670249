"""Lines in, traces and rejects out."""

import gzip
import json
import tracemalloc
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.sources import BATCH, Batch, Reject, SourceFile
from tasks.sources.jsonl import Config, JsonlSource
from tasks.sources.reading.lines import MOST_LINES

SECRET = "zebra-crossing"  # stands for the text of a trace: it may be in no detail
MINIMAL: dict[str, Any] = {
    "trace_id": "t-1",
    "timestamp": "2026-11-01T10:00:00Z",
    "app": "support",
    "generator": "m-1",
    "question": f"Where is the {SECRET}?",
    "answer": f"The {SECRET} is here [1].",
}
FULL: dict[str, Any] = {
    **MINIMAL,
    "environment": "prod",
    "session": "s-1",
    "chunks": [
        {"chunk_id": "c1", "text": "one", "doc_id": "d", "title": "T", "rank": 1, "retrieval_score": 0.5},
        {"chunk_id": "c2", "text": "two"},
    ],
    "prompt_version": "p1",
    "retriever": "bm25",
    "latency_ms": 12.5,
    "tokens_in": 5_000_000_000,
    "tokens_out": 7,
    "cost": 0.0021,
    "tags": {"lang": "en", "tier": "gold"},
    "reference_answer": "There.",
    "gold_chunk_ids": ["c1"],
    "citations": [{"start": 0, "end": 3, "chunk_ids": ["c1", "c9"]}],
    "feedback": {"score": 1.0, "comment": "fine"},
    "repeat": 2,
}


def line(**changes: Any) -> bytes:
    return json.dumps({**MINIMAL, **changes}).encode()


def without(field: str) -> bytes:
    return json.dumps({k: v for k, v in MINIMAL.items() if k != field}).encode()


def read(tmp: Path, data: bytes, *, unknown: str = "ignore", **reader: int) -> Batch:
    """All batches of a file as one; checks what holds of every batch."""
    (tmp / "in.jsonl").write_bytes(data)
    config = Config.model_validate({"kind": "jsonl", "paths": ["in.jsonl"], "unknown_fields": unknown})
    batches = list(JsonlSource(config, tmp, **reader).read(SourceFile("in.jsonl", "")))
    for batch in batches:
        assert batch.rows == batch.table.num_rows + len(batch.rejects) > 0
        assert batch.table.schema.equals(BATCH)
        assert [r.line for r in batch.rejects] == sorted(r.line for r in batch.rejects)
        batch.table.validate(full=True)
    table = pa.concat_tables(b.table for b in batches) if batches else BATCH.empty_table()
    return Batch(table, [r for b in batches for r in b.rejects], sum(b.rows for b in batches))


def only_reject(tmp: Path, data: bytes, **options: Any) -> Reject:
    batch = read(tmp, data, **options)
    assert batch.table.num_rows == 0
    (reject,) = batch.rejects
    assert SECRET not in reject.detail
    return reject


def hash_of(tmp: Path, data: bytes) -> str:
    (value,) = read(tmp, data).table["content_hash"].to_pylist()
    return str(value)


@pytest.mark.parametrize(
    ("data", "day"),
    [
        (line(answer=5), date(2026, 11, 1)),
        (line(trace_id="", timestamp="2026-11-01T23:30:00-02:00"), date(2026, 11, 2)),  # 01:30 UTC of the next day
        (line(answer="\0"), date(2026, 11, 1)),
        (line(repeat=2**40), date(2026, 11, 1)),
        (line(timestamp="2026-11-01T10:00:00"), None),  # without a zone it may be a day more or less
        (line(timestamp="9999-12-31T23:00:00-05:00"), None),  # beyond the year 9999 in UTC
        (without("timestamp"), None),
        (line()[:-5], None),
        (b"[]", None),
    ],
)
def test_a_refused_row_shows_its_day_where_it_can_be_read(tmp_path: Path, data: bytes, day: date | None) -> None:
    assert only_reject(tmp_path, data).day == day


def test_every_field_arrives(tmp_path: Path) -> None:
    (row,) = read(tmp_path, json.dumps(FULL).encode()).table.to_pylist(maps_as_pydicts="strict")
    assert len(row.pop("content_hash")) == 32
    assert (row.pop("text_redacted_at"), row.pop("text_redacted")) == (None, None)
    missing = {"doc_id": None, "title": None, "rank": None, "retrieval_score": None}
    assert row == {
        **FULL,
        "timestamp": datetime(2026, 11, 1, 10, tzinfo=UTC),
        "chunks": [FULL["chunks"][0], {**missing, **FULL["chunks"][1]}],
        "line": 1,
    }


def test_what_is_left_out_is_null_or_empty(tmp_path: Path) -> None:
    (row,) = read(tmp_path, line()).table.to_pylist()
    assert row["chunks"] == []
    assert row["tags"] == []
    absent = set(FULL) - set(MINIMAL) - {"chunks", "tags"}
    assert {name for name in absent if row[name] is None} == absent


def test_empty_lists_differ_from_none(tmp_path: Path) -> None:
    (row,) = read(tmp_path, line(citations=[], gold_chunk_ids=[], feedback={})).table.to_pylist()
    assert row["citations"] == []
    assert row["gold_chunk_ids"] == []
    assert row["feedback"] == {"score": None, "comment": None}


@pytest.mark.parametrize(
    ("data", "reason", "trace_id"),
    [
        (b"{", "malformed_json", None),
        (b"nonsense", "malformed_json", None),
        (line()[:-5], "malformed_json", None),
        (line() + b" " + line(), "malformed_json", None),
        (line(latency_ms=float("nan")), "malformed_json", None),
        (line(latency_ms=float("inf")), "malformed_json", None),
        (line().replace(b"zebra", b"a\x00b"), "malformed_json", None),  # JSON allows no raw control characters
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "malformed_json", None),
        (b"\x0c", "malformed_json", None),  # a form feed is no whitespace to JSON
        (line().replace(b"zebra", b"\xff"), "invalid_utf8", "t-1"),
        (line(session="s").replace(b'"session"', b'"sess\xffion"'), "invalid_utf8", "t-1"),  # else its value is lost
        (line().replace(b"zebra", b"\xed\xa0\x80"), "invalid_utf8", "t-1"),  # a surrogate, encoded
        (line(question="\ud800"), "invalid_utf8", None),
        (line(answer="\udc00x"), "invalid_utf8", None),
        (json.dumps(MINIMAL).encode("utf-16"), "invalid_utf8", None),
        (b"[]", "wrong_type", None),
        (b'"text"', "wrong_type", None),
        (b"null", "wrong_type", None),
        (line(question=5), "wrong_type", "t-1"),
        (line(question=None), "wrong_type", "t-1"),
        (line(trace_id=5), "wrong_type", None),
        (line(timestamp=1793527200), "wrong_type", "t-1"),
        (line(repeat=1.5), "wrong_type", "t-1"),
        (line(repeat=True), "wrong_type", "t-1"),
        (line(tags={SECRET: 1}), "wrong_type", "t-1"),
        (line(chunks=[{"chunk_id": "c", "text": ["x"]}]), "wrong_type", "t-1"),
        (without("answer"), "missing_field", "t-1"),
        (without("trace_id"), "missing_field", None),
        (line(chunks=[{"chunk_id": "c"}]), "missing_field", "t-1"),
        (line(trace_id=""), "empty_id", None),
        (line(app=""), "empty_id", "t-1"),
        (line(chunks=[{"chunk_id": "", "text": "x"}]), "empty_id", "t-1"),
        (line(question="a\0b"), "nul_character", "t-1"),
        (line(trace_id="a\0b"), "nul_character", None),
        (line(tags={"a": "\0"}), "nul_character", "t-1"),
        (line(tags={f"{SECRET}\0": "a"}), "nul_character", "t-1"),
        (line(chunks=[{"chunk_id": "c", "text": "\0"}]), "nul_character", "t-1"),
        (line(citations=[{"start": 0, "end": 1, "chunk_ids": ["\0"]}]), "nul_character", "t-1"),
        (line(timestamp="2026-11-01T10:00:00"), "timestamp_without_zone", "t-1"),
        (line(timestamp="2026-11-01"), "bad_timestamp", "t-1"),
        (line(timestamp=SECRET), "bad_timestamp", "t-1"),
        (line(timestamp="2026-02-30T10:00:00Z"), "bad_timestamp", "t-1"),
        (line(timestamp="10000-01-01T00:00:00Z"), "bad_timestamp", "t-1"),
        (line(timestamp="0001-01-01T00:00:00+05:00"), "bad_timestamp", "t-1"),  # year 0 in UTC
        (line(timestamp="9999-12-31T23:59:59-05:00"), "bad_timestamp", "t-1"),  # year 10000 in UTC
        (line(trace_id="x" * 513), "out_of_range", None),
        (line(tokens_in=-1), "out_of_range", "t-1"),
        (line(tokens_in=2**63), "out_of_range", "t-1"),
        (line(tokens_out=2**70), "out_of_range", "t-1"),
        (line(repeat=2**31), "out_of_range", "t-1"),
        (line().replace(b'"app"', b'"repeat": ' + b"9" * 4500 + b', "app"'), "out_of_range", "t-1"),
        (line().replace(b'"app"', b'"latency_ms": 1e999, "app"'), "out_of_range", "t-1"),
        (line(chunks=[{"chunk_id": "c", "text": "x", "rank": -(2**31) - 1}]), "out_of_range", "t-1"),
        (line(citations=[{"start": 0, "end": 2**31, "chunk_ids": []}]), "out_of_range", "t-1"),
        (line(citations=[{"start": 2**64, "end": 0, "chunk_ids": []}]), "out_of_range", "t-1"),
    ],
)
def test_bad_line_is_rejected_with_its_reason(tmp_path: Path, data: bytes, reason: str, trace_id: str | None) -> None:
    reject = only_reject(tmp_path, data)
    assert (reject.reason, reject.trace_id, reject.line) == (reason, trace_id, 1)
    assert reject.raw == data
    assert reject.detail


def test_numbers_at_the_edge_of_their_column_are_good(tmp_path: Path) -> None:
    chunk = {"chunk_id": "c", "text": "x", "rank": -(2**31)}
    assert read(tmp_path, line(repeat=2**31 - 1, tokens_in=2**63 - 1, chunks=[chunk])).rejects == []


def test_number_too_large_takes_only_its_own_row(tmp_path: Path) -> None:
    data = b"\n".join([line(trace_id="a"), line(trace_id="b", repeat=2**31), b"{", line(trace_id="c")])
    batch = read(tmp_path, data)
    assert batch.table.select(["trace_id", "line"]).to_pylist() == [
        {"trace_id": "a", "line": 1},
        {"trace_id": "c", "line": 4},
    ]
    assert [(r.line, r.reason, r.trace_id) for r in batch.rejects] == [
        (2, "out_of_range", "b"),
        (3, "malformed_json", None),
    ]


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (line(question=5), "`$.question`"),
        (line(chunks=[{"chunk_id": "c", "text": "x", "rank": 2**31}]), "`$.chunks[0].rank`"),
        (line(tags={SECRET: "\0"}), "`$.tags[...]`"),
        (line(feedback={"comment": "\0"}), "`$.feedback.comment`"),
    ],
)
def test_detail_names_the_path(tmp_path: Path, data: bytes, detail: str) -> None:
    assert detail in only_reject(tmp_path, data).detail


def test_escaped_backslash_before_u0000_is_text(tmp_path: Path) -> None:
    batch = read(tmp_path, line(question="the six characters \\u0000"))
    assert batch.table["question"].to_pylist() == ["the six characters \\u0000"]


def test_nul_in_a_field_that_is_not_kept_does_no_harm(tmp_path: Path) -> None:
    assert read(tmp_path, line(extra="\0")).rejects == []


def test_unknown_fields(tmp_path: Path) -> None:
    nested = [line(x=1), line(chunks=[{"chunk_id": "c", "text": "t", "x": 1}]), line(feedback={"x": 1})]
    nested.append(line(citations=[{"start": 0, "end": 1, "chunk_ids": [], "x": 1}]))
    data = b"\n".join(nested)
    assert read(tmp_path, data).table.num_rows == 4
    strict = read(tmp_path, data, unknown="quarantine")
    assert [r.reason for r in strict.rejects] == ["unknown_field"] * 4
    assert strict.rejects[1].detail == "Object contains unknown field `x` - at `$.chunks[0]`"
    assert strict.rejects[1].trace_id == "t-1"
    assert read(tmp_path, json.dumps(FULL).encode(), unknown="quarantine").rejects == []


def test_unknown_field_name_is_shortened(tmp_path: Path) -> None:
    name = "k" * 60 + "\n\0" + SECRET
    assert only_reject(tmp_path, line(**{name: 1}), unknown="quarantine").detail == (
        f"Object contains unknown field `{'k' * 60}??ze`"
    )


def test_strict_and_lenient_reading_hash_alike(tmp_path: Path) -> None:
    data = json.dumps(FULL).encode()
    assert read(tmp_path, data).table == read(tmp_path, data, unknown="quarantine").table


def test_hash_overlooks_how_a_trace_is_written(tmp_path: Path) -> None:
    wanted = hash_of(tmp_path, json.dumps(FULL).encode())
    shuffled = {k: FULL[k] for k in reversed(FULL)} | {"tags": {"tier": "gold", "lang": "en"}, "unknown": 1}
    assert hash_of(tmp_path, json.dumps(shuffled, indent=None, separators=(" , ", " : ")).encode()) == wanted
    assert hash_of(tmp_path, json.dumps({**FULL, "timestamp": "2026-11-01T15:30:00.000+05:30"}).encode()) == wanted


def test_hash_sees_every_field_but_feedback(tmp_path: Path) -> None:
    changed: dict[str, Any] = {
        **dict.fromkeys(FULL.keys() - {"feedback"}, "other"),
        "timestamp": "2026-11-01T10:00:00.000001Z",
        "chunks": list(reversed(FULL["chunks"])),  # their order is what the generator saw
        "latency_ms": 1.0,
        "tokens_in": 1,
        "tokens_out": 1,
        "cost": 1.0,
        "tags": {},
        "gold_chunk_ids": [],
        "citations": [],
        "repeat": 3,
    }
    hashes = [hash_of(tmp_path, json.dumps({**FULL, name: value}).encode()) for name, value in changed.items()]
    feedback = {**FULL, "feedback": None}  # it may come later, which is no other trace
    full = hash_of(tmp_path, json.dumps(FULL).encode())
    assert len({*hashes, full}) == len(changed) + 1
    assert {*changed, "feedback"} == {*FULL}
    assert hash_of(tmp_path, json.dumps(feedback).encode()) == full


def test_timestamps_become_utc_microseconds(tmp_path: Path) -> None:
    stamps = ["2026-11-01T23:30:00-01:00", "2026-11-01 10:00:00.5z", "2026-11-01T10:00:00.1234567Z"]
    batch = read(tmp_path, b"\n".join(line(timestamp=s) for s in stamps))
    assert batch.table["timestamp"].to_pylist() == [
        datetime(2026, 11, 2, 0, 30, tzinfo=UTC),
        datetime(2026, 11, 1, 10, 0, 0, 500_000, tzinfo=UTC),
        datetime(2026, 11, 1, 10, 0, 0, 123_457, tzinfo=UTC),
    ]


def test_blank_lines_count_as_lines_but_not_as_rows(tmp_path: Path) -> None:
    batch = read(tmp_path, b"\n \t\r\n" + line() + b"\r\n\n{\n" + line(trace_id="t-2") + b"\n\n")
    assert batch.rows == 3
    assert batch.table["line"].to_pylist() == [3, 6]
    assert [r.line for r in batch.rejects] == [5]


@pytest.mark.parametrize("data", [b"", b"\n", b"\n\n \n"])
def test_file_without_rows(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path, data).rows == 0


def test_a_value_over_two_lines_does_not_hide_two_values_on_one(tmp_path: Path) -> None:
    pretty = line().replace(b", ", b",\n", 1)
    batch = read(tmp_path, line() + line() + b"\n" + pretty)
    assert batch.table.num_rows == 0
    assert [r.line for r in batch.rejects] == [1, 2, 3]


@pytest.mark.parametrize("block", [1, 2, 3, 1 << 20])
def test_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path, block: int) -> None:
    assert read(tmp_path, b"\xef\xbb\xbf" + line(), block_bytes=block).rejects == []


@pytest.mark.parametrize("block", [1, 7, 50, 400, 1 << 20])
@pytest.mark.parametrize("size", [301, 302, 5_000])
def test_line_over_the_limit(tmp_path: Path, block: int, size: int) -> None:
    good = line()
    data = b"\n".join([good, b"x" * size, b"", b"y" * 300, good])
    batch = read(tmp_path, data, block_bytes=block, max_line_bytes=300)
    assert batch.table["line"].to_pylist() == [1, 5]
    assert [(r.line, r.reason) for r in batch.rejects] == [(2, "line_too_long"), (4, "malformed_json")]
    assert batch.rejects[0].raw == b"x" * 300 + b" ... [300 of %d bytes]" % size
    assert batch.rejects[0].detail == f"line of {size} bytes, limit 300"


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_line_over_the_limit_at_the_end(tmp_path: Path, end: bytes) -> None:
    batch = read(tmp_path, b"x" * 1000 + end, block_bytes=64, max_line_bytes=300)
    assert (batch.rows, [r.detail for r in batch.rejects]) == (1, ["line of 1000 bytes, limit 300"])


def test_endless_line_is_not_held_in_memory(tmp_path: Path) -> None:
    """A line of 96 MB between good ones, limit 1 MB: Arrow aside, a few blocks are all that may be allocated."""
    with gzip.open(tmp_path / "in.jsonl.gz", "wb", compresslevel=1) as f:
        f.write(line() + b"\n")
        for _ in range(96):
            f.write(b"x" * (1 << 20))
        f.write(b"\n" + line())
    config = Config(kind="jsonl", paths=["in.jsonl.gz"])
    source = JsonlSource(config, tmp_path, block_bytes=1 << 16, max_line_bytes=1 << 20)
    tracemalloc.start()
    rows = [(b.table.num_rows, [r.detail for r in b.rejects]) for b in source.read(SourceFile("in.jsonl.gz", ""))]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sorted(rows) == [(0, [f"line of {96 << 20} bytes, limit {1 << 20}"]), (1, []), (1, [])]
    assert peak < 16 << 20


def test_refused_lines_of_a_few_bytes_come_in_batches_of_bounded_length(tmp_path: Path) -> None:
    """A block of 60 KB holds 20,000 lines `{}`; each keeps its number, and two good ones lie on the edges of a batch."""
    lines = [b"{}"] * 20_000
    lines[MOST_LINES - 1] = lines[MOST_LINES] = line()
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines))
    batches = list(JsonlSource(Config(kind="jsonl", paths=["in.jsonl"]), tmp_path).read(SourceFile("in.jsonl", "")))
    assert max(b.rows for b in batches) == MOST_LINES
    numbers = [n for b in batches for n in [*b.table["line"].to_pylist(), *(r.line for r in b.rejects)]]
    assert sorted(numbers) == list(range(1, 20_001))
    assert [n for b in batches for n in b.table["line"].to_pylist()] == [MOST_LINES, MOST_LINES + 1]


BAD = st.sampled_from([
    (b"{", "malformed_json"),
    (line(question=3), "wrong_type"),
    (line(repeat=2**40), "out_of_range"),
    (line(answer="\0"), "nul_character"),
    (line(question="\ud800"), "invalid_utf8"),
    (b"\xff\xfe", "invalid_utf8"),
    (b"x" * 3000, "line_too_long"),
    (without("app"), "missing_field"),
])  # fmt: skip
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
GOOD = st.builds(
    lambda text, chunks: line(question=text, chunks=[{"chunk_id": "c", "text": c} for c in chunks]),
    TEXT,
    st.lists(TEXT, max_size=3),
).map(lambda data: (data, "good"))
BLANK = st.sampled_from([(b"", "blank"), (b" \t\r", "blank")])


@settings(max_examples=150, deadline=None)
@given(
    lines=st.lists(st.one_of(GOOD, BAD, BLANK), max_size=12),
    ends=st.sampled_from([b"\n", b"\r\n"]),
    last=st.booleans(),
    block=st.integers(1, 5000),
)
def test_nothing_is_lost_and_good_rows_are_unharmed(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[bytes, str]], ends: bytes, last: bool, block: int
) -> None:
    data = ends.join(raw for raw, _ in lines) + (ends if last else b"")
    batch = read(tmp_path_factory.mktemp("h"), data, block_bytes=block, max_line_bytes=2000)
    numbered = list(enumerate(lines, 1))
    good = [(n, json.loads(raw)) for n, (raw, kind) in numbered if kind == "good"]
    assert batch.rows == sum(kind != "blank" for _, kind in lines)
    assert [(r.line, r.reason) for r in batch.rejects] == [
        (n, kind) for n, (_, kind) in numbered if kind not in {"good", "blank"}
    ]
    rows = batch.table.to_pylist()
    assert [(r["line"], r["question"], [c["text"] for c in r["chunks"]]) for r in rows] == [
        (n, t["question"], [c["text"] for c in t["chunks"]]) for n, t in good
    ]


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=200), block=st.integers(1, 64))
def test_any_bytes_are_read_without_a_crash(tmp_path_factory: pytest.TempPathFactory, data: bytes, block: int) -> None:
    batch = read(tmp_path_factory.mktemp("b"), data, block_bytes=block)
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    assert batch.rows == sum(bool(one.strip(b" \t\r")) for one in lines)


def test_files_asks_for_days_inclusive(tmp_path: Path) -> None:
    for day in ("2026-10-31", "2026-11-01", "2026-11-02", "2026-11-03"):
        (tmp_path / f"{day}.jsonl").write_bytes(line())
    source = JsonlSource(Config(kind="jsonl", paths=["{date}.jsonl"]), tmp_path)
    found = source.files(date(2026, 11, 1), date(2026, 11, 2))
    assert [f.path for f in found] == ["2026-11-01.jsonl", "2026-11-02.jsonl"]
