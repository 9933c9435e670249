"""Tables of any form: which column holds what, and what becomes of rows that are wrong."""

import gzip
import json
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from kit.stores.worlds import SECRET, complaint, read, rows

from tasks import sources
from tasks.core.errors import ConfigError, SourceError, UsageError
from tasks.sources import Batch
from tasks.sources.tabular.columns import time_of

DAY = date(2026, 11, 1)
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
ROW = {
    "id": "t1",
    "at": "2026-11-01T12:00:00Z",
    "q": f"Is the {SECRET} striped?",
    "a": f"The {SECRET} is [1].",
    "docs": [f"A {SECRET}."],
}
COLUMNS = {"id": "id", "timestamp": "at", "question": "q", "answer": "a", "chunks": "docs"}


def source(base: Path, *paths: str, columns: dict[str, Any] = COLUMNS, **more: Any) -> sources.Source:
    given = {"kind": "table", "paths": list(paths), "app": "shop", "columns": columns, **more}
    return sources.load(given, "x.yaml", base)


def table(base: Path, *given: Any, columns: dict[str, Any] = COLUMNS, **more: Any) -> Batch:
    """What comes of rows as JSON lines."""
    (base / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    of = source(base, "log.jsonl", columns=columns, **more)
    return read(of, *of.files(DAY, DAY))


def one(
    base: Path, columns: dict[str, Any] | None = None, settings: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    """The trace of a row with these fields."""
    (row,) = rows(table(base, {**ROW, **fields}, columns={**COLUMNS, **(columns or {})}, **(settings or {})))
    return row


def refused(base: Path, columns: dict[str, Any] | None = None, **fields: Any) -> tuple[str, str]:
    """Why a row with these fields is refused; the good row after it is not."""
    batch = table(base, {**ROW, **fields}, {**ROW, "id": "good"}, columns={**COLUMNS, **(columns or {})})
    assert [row["trace_id"] for row in rows(batch)] == ["good"]
    (reject,) = batch.rejects
    assert (reject.line, reject.day) == (1, DAY if "at" not in fields else None)
    return reject.reason, reject.detail


class TestColumns:
    def test_every_field_has_its_column(self, tmp_path: Path) -> None:
        more = {
            "app": "app", "generator": "llm", "environment": "env", "session": "s", "prompt_version": "pv", "retriever": "r",
            "latency_ms": "ms", "tokens_in": "tin", "tokens_out": "tout", "tags": {"lang": "meta.lang"}, "repeat": "n",
            "cost": "usd", "reference_answer": "ref", "gold_chunk_ids": "gold", "feedback": "thumbs", "feedback_comment": "note",
        }  # fmt: skip
        row = one(
            tmp_path, more, {"ratings": {"up": 1, "down": 0}}, app="bot", llm="m-1", env="production", s=7, pv="v2", r="bm25",
            ms="12.5", tin=10, tout="4", usd="0.002", meta='{"lang": "en"}', n=2, ref="Yes.", gold=["1", 2], thumbs="down", note="no",
        )  # fmt: skip
        wanted = {
            "trace_id": "t1", "timestamp": NOON, "app": "bot", "generator": "m-1", "environment": "production", "session": "7",
            "prompt_version": "v2", "retriever": "bm25", "latency_ms": 12.5, "tokens_in": 10, "tokens_out": 4, "tags": {"lang": "en"}, "cost": 0.002,
            "repeat": 2, "reference_answer": "Yes.", "gold_chunk_ids": ["1", "2"], "feedback": {"score": 0.0, "comment": "no"},
            "question": ROW["q"], "answer": ROW["a"],
        }  # fmt: skip
        assert {name: row[name] for name in wanted} == wanted

    def test_names_of_the_config_where_no_column_has_them(self, tmp_path: Path) -> None:
        row = one(tmp_path, {"app": "app"}, {"generator": "m-2"}, app=None)
        assert (row["app"], row["generator"]) == ("shop", "m-2")
        assert one(tmp_path)["generator"] == "unknown"

    def test_a_rating_stays_out_of_the_content(self, tmp_path: Path) -> None:
        given = {one(tmp_path, {"feedback": "stars"}, stars=stars)["content_hash"] for stars in (None, 1, 5, True)}
        assert len(given) == 1

    def test_paths_into_a_column(self, tmp_path: Path) -> None:
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello [1]."}]
        row = one(
            tmp_path, {"question": "log.messages[0].content", "answer": "$.log.messages[-1].content", "session": "a.b"},
            log=json.dumps({"messages": messages}), **{"a.b": "s"},
        )  # fmt: skip
        assert (row["question"], row["answer"], row["session"]) == ("Hi", "Hello [1].", "s")

    def test_the_last_message_of_each(self, tmp_path: Path) -> None:
        messages = [
            {"role": r, "content": c}
            for r, c in (("user", "A?"), ("assistant", "B"), ("user", "C?"), ("assistant", "D"))
        ]
        row = one(tmp_path, q=messages, a=messages)
        assert (row["question"], row["answer"]) == ("C?", "D")

    def test_the_first_of_several_columns_that_holds_something(self, tmp_path: Path) -> None:
        row = one(tmp_path, {"answer": ["final", "draft", "a"]}, final="", draft=None)
        assert row["answer"] == ROW["a"]

    @pytest.mark.parametrize(("value", "wanted"), [
        ("2026-11-01T12:00:00", NOON), ("2026-11-01 13:00:00+01:00", NOON), (1793534400, NOON), ("1793534400.5", NOON.replace(microsecond=500000)),
        (1793534400000, NOON), (1793534400000000, NOON), ("1793534400000000000", NOON), ("20261101", NOON.replace(hour=0)), (date(2026, 11, 1), NOON.replace(hour=0)),
        ("noon", None), (True, None), (1e300, None), ([], None), ("", None),
    ])  # fmt: skip
    def test_times(self, value: object, wanted: datetime | None) -> None:
        assert time_of(value) == wanted


class TestChunks:
    @pytest.mark.parametrize("docs", [
        ["A.", "B."],
        '["A.", "B."]',
        "['A.', \"B.\"]",
        "['A.' 'B.']",
        "['A.'\n 'B.']",
        [{"text": "A."}, {"page_content": "B."}],
        {"documents": [{"content": "A."}, "B."]},
        ['{"text": "A."}', '{"body": "B."}'],
    ], ids=["list", "json", "python", "numpy", "numpy-lines", "objects", "wrapped", "json-items"])  # fmt: skip
    def test_lists_of_many_forms(self, tmp_path: Path, docs: object) -> None:
        chunks = one(tmp_path, docs=docs)["chunks"]
        assert [(c["chunk_id"], c["text"], c["rank"]) for c in chunks] == [("1", "A.", 1), ("2", "B.", 2)]

    def test_a_single_text(self, tmp_path: Path) -> None:
        assert [c["text"] for c in one(tmp_path, docs="[1] A. [2] B.")["chunks"]] == ["[1] A. [2] B."]

    def test_parts_of_an_object(self, tmp_path: Path) -> None:
        docs = [
            {"ref": 7, "body": {"de": "A."}, "sim": "0.5", "file": "f.md", "head": "H"},
            {"ref": None, "body": {"de": "B."}},
        ]
        chunk = {"text": "body.de", "id": "ref", "score": "sim", "doc_id": "file", "title": "head"}
        first, second = one(tmp_path, None, {"chunk": chunk}, docs=docs)["chunks"]
        assert first == {
            "chunk_id": "7",
            "text": "A.",
            "retrieval_score": 0.5,
            "doc_id": "f.md",
            "title": "H",
            "rank": 1,
        }
        assert (second["chunk_id"], second["text"], second["retrieval_score"]) == ("2", "B.", None)

    def test_ids_and_scores_that_stand_apart(self, tmp_path: Path) -> None:
        apart = {"chunk_ids": "ids", "chunk_scores": "scores"}
        chunks = one(tmp_path, apart, docs=["A.", "B."], ids=["x", "y"], scores=[0.5, None])["chunks"]
        assert [(c["chunk_id"], c["retrieval_score"]) for c in chunks] == [("x", 0.5), ("y", None)]
        reason, detail = refused(tmp_path, apart, ids=["x", "y"], docs=["A."])
        assert (reason, detail) == ("wrong_type", "2 values, 1 chunks - at `ids`")

    def test_none(self, tmp_path: Path) -> None:
        for docs in (None, [], "[]", ""):
            assert one(tmp_path, docs=docs)["chunks"] == []


class TestIds:
    def test_without_a_column_an_id_is_that_of_the_content(self, tmp_path: Path) -> None:
        columns = {k: v for k, v in COLUMNS.items() if k != "id"}
        other = {**ROW, "q": "Another?"}
        first = {r["question"]: r["trace_id"] for r in rows(table(tmp_path, ROW, other, columns=columns))}
        moved = {
            r["question"]: r["trace_id"] for r in rows(table(tmp_path, other, {**ROW, "more": 1}, columns=columns))
        }
        assert first == moved
        assert len(set(first.values())) == 2

    def test_another_time_is_another_trace(self, tmp_path: Path) -> None:
        columns = {k: v for k, v in COLUMNS.items() if k != "id"}
        batch = table(tmp_path, ROW, {**ROW, "at": "2026-11-01T12:00:01Z"}, columns=columns)
        assert len({r["trace_id"] for r in rows(batch)}) == 2


class TestBadRows:
    @pytest.mark.parametrize(("fields", "reason", "at"), [
        ({"q": None}, "no_question", "`q`"), ({"q": "  "}, "no_question", "`q`"), ({"a": ""}, "no_answer", "`a`"), ({"a": []}, "no_answer", "`a`"),
        ({"a": 5}, "wrong_type", "Expected `str`, got `int` - at `a`"), ({"at": "noon"}, "bad_timestamp", "`str` that is no time - at `at`"),
        ({"at": None}, "missing_field", "`at`"), ({"id": None}, "missing_field", "`id`"), ({"id": {}}, "wrong_type", "`id`"),
        ({"docs": [{"x": 1}]}, "no_chunk_text", "`docs`"), ({"docs": '[{"text": "A.'}, "wrong_type", "cut off"),
        ({"q": "a\u0000b"}, "nul_character", "$.question"), ({"id": "x" * 513}, "out_of_range", "$.trace_id"),
    ])  # fmt: skip
    def test_only_the_bad_one_is_refused(self, tmp_path: Path, fields: dict[str, Any], reason: str, at: str) -> None:
        found, detail = refused(tmp_path, **fields)
        assert found == reason
        assert at in detail

    @pytest.mark.parametrize(
        ("name", "value"), [("latency_ms", "fast"), ("tokens_in", 1.5), ("feedback", "up"), ("session", [1])]
    )
    def test_mixed_types(self, tmp_path: Path, name: str, value: object) -> None:
        reason, detail = refused(tmp_path, {name: "x"}, x=value)
        assert reason == "wrong_type"
        assert "`x`" in detail

    def test_a_row_without_the_column_is_no_answer_that_failed(self, tmp_path: Path) -> None:
        row = {k: v for k, v in ROW.items() if k != "a"}
        (reject,) = table(tmp_path, row).rejects
        assert (reject.reason, reject.detail) == ("missing_field", "no column `a`")

    def test_lines_that_are_no_rows(self, tmp_path: Path) -> None:
        lines = [
            json.dumps(ROW).encode(),
            b"[1]",
            b"",
            b'{"id": "x',
            json.dumps({**ROW, "q": "\xe9"}, ensure_ascii=False).encode("latin-1"),
        ]
        (tmp_path / "log.jsonl").write_bytes(b"\n".join(lines))
        of = source(tmp_path, "log.jsonl")
        batch = read(of, *of.files(DAY, DAY))
        assert [(r.line, r.reason) for r in batch.rejects] == [
            (2, "wrong_type"),
            (4, "malformed_json"),
            (5, "invalid_utf8"),
        ]
        assert batch.table.num_rows == 1


class TestFiles:
    def write(self, base: Path, name: str, given: list[dict[str, Any]]) -> None:
        flat = [{k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()} for row in given]
        if ".parquet" in name:
            pq.write_table(pa.Table.from_pylist(given), base / "plain")
        elif ".csv" in name:
            pa.csv.write_csv(pa.Table.from_pylist(flat), base / "plain")
        elif ".jsonl" in name:
            (base / "plain").write_text("\n".join(map(json.dumps, given)))
        else:
            (base / "plain").write_text(json.dumps(given))
        data = (base / "plain").read_bytes()
        data = (
            gzip.compress(data)
            if name.endswith(".gz")
            else pa.compress(data, "zstd", asbytes=True)
            if name.endswith(".zst")
            else data
        )
        (base / name).write_bytes(data)

    @pytest.mark.parametrize(
        "name", ["a.jsonl", "a.jsonl.zst", "a.csv", "a.csv.gz", "a.parquet", "a.parquet.gz", "a.json"]
    )
    def test_forms(self, tmp_path: Path, name: str) -> None:
        self.write(tmp_path, name, [{**ROW, "id": f"t{n}"} for n in range(600)])
        of = source(tmp_path, name)
        batch = read(of, *of.files(DAY, DAY))
        assert sorted(batch.table["trace_id"].to_pylist()) == sorted(f"t{n}" for n in range(600))
        assert {c["text"] for row in rows(batch) for c in row["chunks"]} == {f"A {SECRET}."}

    def test_a_day_of_the_path_or_of_the_config(self, tmp_path: Path) -> None:
        columns = {k: v for k, v in COLUMNS.items() if k != "timestamp"}
        self.write(tmp_path, "2026-11-01.csv", [ROW])
        for path, more in (("{date}.csv", {}), ("*.csv", {"day": DAY})):
            of = source(tmp_path, path, columns=columns, **more)
            (row,) = rows(read(of, *of.files(DAY, DAY)))
            assert row["timestamp"] == NOON.replace(hour=0)
        with pytest.raises(ConfigError, match="should have `day`, because the rows have no times"):
            source(tmp_path, "2026-11-01.csv", columns=columns)

    @pytest.mark.parametrize(("name", "data", "problem"), [
        ("a.csv", b"id,at,q\nt1,2026-11-01T12:00:00Z,x\n", "has no column `a` (`columns.answer`), `docs` (`columns.chunks`). It has id, at, q."),
        ("a.csv", f"t1,{SECRET} is,x\nt2,y,z\n".encode(), "Its first line holds 3 names."),
        ("a.csv", "id,at,q,a,docs\nt1,1,ä,b,c\n".encode("utf-16"), "is not encoded in UTF-8"),
        ("a.csv", b'id,at,q,a,docs\nt1,"' + b"x" * (65 << 20), "is damaged or was cut off"),
        ("a.json", b'[{"id": "t1"', "is damaged or was cut off"),
        ("a.json", b'{"id": "t1"}', "holds no list"),
        ("a.parquet", b"PAR1....", "is damaged or was cut off"),
        ("a.arrow", b"....", "is damaged or was cut off"),
        ("a.xlsx", b"", "must end in .jsonl, .csv, .parquet, .json or .arrow"),
    ])  # fmt: skip
    def test_files_that_are_none(self, tmp_path: Path, name: str, data: bytes, problem: str) -> None:
        (tmp_path / name).write_bytes(data)
        of = source(tmp_path, name)
        assert problem in complaint(lambda: read(of, *of.files(DAY, DAY)))

    def test_a_cell_of_another_encoding(self, tmp_path: Path) -> None:
        row = f"t1,2026-11-01T12:00:00Z,café?,{SECRET},[]\n"
        (tmp_path / "a.csv").write_bytes(
            b"id,at,q,a,docs\n" + row.encode("latin-1") + row.replace("t1", "t2").encode() + b"x,y\n"
        )
        of = source(tmp_path, "a.csv")
        batch = read(of, *of.files(DAY, DAY))
        assert [row["trace_id"] for row in rows(batch)] == ["t2"]
        assert [(r.line, r.reason) for r in batch.rejects] == [(2, "invalid_utf8"), (4, "malformed_row")]
        assert batch.rejects[0].raw == row.strip().encode("latin-1")

    def test_rows_are_not_all_held(self, tmp_path: Path) -> None:
        """The first rows come before the end is read, which is damaged."""
        (tmp_path / "a.jsonl.gz").write_bytes(
            gzip.compress(
                b"".join(json.dumps({**ROW, "id": f"t{n}", "x": "x" * 5000}).encode() + b"\n" for n in range(3000))
            )[:-40]
        )
        of = source(tmp_path, "a.jsonl.gz")
        found = of.read(*of.files(DAY, DAY))
        assert next(found).table.num_rows == 1000
        with pytest.raises(SourceError, match="damaged or was cut off"):
            list(found)

    @pytest.mark.parametrize("path", ["s3://key:secret-pw@bucket/a.jsonl", "https://user:secret-pw@host/a.csv"])
    def test_a_url_with_credentials_is_refused(self, tmp_path: Path, path: str) -> None:
        message = complaint(lambda: source(tmp_path, path).files(DAY, DAY), UsageError)
        assert "secret-pw" not in message
        assert re.search("Remove them.*come from the environment", message)
