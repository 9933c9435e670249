"""Langfuse: its API and its exports say the same, and the shared fixtures."""

import csv
import json
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kit.stores.server import Asked, Reply, serve
from kit.stores.worlds import (
    COST,
    KEY,
    Langfuse,
    Small,
    check_scenarios,
    complaint,
    day,
    fixture,
    names,
    read,
    rows,
    source,
)

from tasks.sources import Source
from tasks.sources.langfuse import Config, build

AT = date(2026, 11, 22)
APP = {"app": "fernleaf-shop"}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


def snake(record: dict[str, Any]) -> dict[str, Any]:
    """A record of the API as an export has it: texts are empty rather than null, times have no zone."""
    names = {k: re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", k) for k in record}
    row = {names[k]: "" if v is None else v for k, v in record.items() if k != "model"} | {
        "provided_model_name": record["model"]
    }
    return {k: v.replace("T", " ").removesuffix("+00:00") if k.endswith("_time") else v for k, v in row.items()}


def write(path: Path, records: list[dict[str, Any]]) -> None:
    found = [snake(r) for r in records]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(r) + "\n" for r in found))
        return
    flat = [{k: json.dumps(v) if isinstance(v, dict) else str(v) for k, v in r.items()} for r in found]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(flat), path)
        return
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(flat[0]))
        writer.writeheader()
        writer.writerows(flat)


def exports(base: Path, *paths: str, **more: Any) -> Source:
    return build(Config(kind="langfuse", paths=list(paths), **more), base)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_exports_say_what_the_api_says(tmp_path: Path, suffix: str) -> None:
    world = Langfuse([Small("a", text='Said "so",\nand left.'), Small("b")])
    with serve(world.answer) as server:
        pulled = rows(day(source(world, server.url, spans={})))
    write(tmp_path / f"o.{suffix}", [r for t in world.traces for r in world.records(t)])
    found = rows(day(exports(tmp_path, f"o.{suffix}")))
    assert [r["content_hash"] for r in found] == [r["content_hash"] for r in pulled]
    (row, _) = found
    assert (row["environment"], row["session"], row["prompt_version"]) == ("production", "s-1", "qa 3")
    assert (row["tokens_in"], row["tokens_out"], row["cost"]) == (9, 4, COST)


def test_a_trace_may_lie_in_several_files(tmp_path: Path) -> None:
    records = Langfuse().records(Small("a"))
    for n, record in enumerate(records):
        write(tmp_path / f"o-{n}.jsonl", [record])
    of = exports(tmp_path, "o-*.jsonl")
    (file,) = of.files(AT, AT)
    assert names(read(of, file)) == ["a"]
    write(tmp_path / "o-9.jsonl", Langfuse().records(Small("b")))
    (later,) = of.files(AT, AT)
    assert later.fingerprint != file.fingerprint
    assert names(read(of, later)) == ["a", "b"]


def test_days(tmp_path: Path) -> None:
    for at in ("2026-11-21", "2026-11-22"):
        (tmp_path / at).mkdir()
        write(tmp_path / at / "o.jsonl", Langfuse().records(Small(at)))
    of = exports(tmp_path, "{date}/*.jsonl")
    assert [(f.path, f.day) for f in of.files(AT, AT)] == [("2026-11-22/*.jsonl", AT)]
    assert names(day(of, AT)) == ["2026-11-22"]


def test_ratings_of_an_export(tmp_path: Path) -> None:
    write(tmp_path / "o.jsonl", Langfuse().records(Small("a")))
    score = {"trace_id": "tr-a", "value": 1.0, "comment": "Exactly."}
    (tmp_path / "s.jsonl").write_text(
        "".join(
            json.dumps(s) + "\n"
            for s in ({**score, "name": "user-feedback"}, {**score, "name": "toxicity", "value": 0})
        )
    )
    (plain,) = rows(day(exports(tmp_path, "o.jsonl")))
    (rated,) = rows(day(exports(tmp_path, "o.jsonl", scores=["s.jsonl"])))
    assert rated["feedback"] == {"score": 1.0, "comment": "Exactly."}
    assert rated["content_hash"] == plain["content_hash"]


def test_one_environment(tmp_path: Path) -> None:
    records = [
        *Langfuse().records(Small("a")),
        *({**r, "environment": "staging"} for r in Langfuse().records(Small("b"))),
    ]
    write(tmp_path / "o.jsonl", records)
    assert names(day(exports(tmp_path, "o.jsonl", environment="staging"))) == ["b"]


def test_bad_lines_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "o.jsonl", Langfuse().records(Small("a")))
    with (tmp_path / "o.jsonl").open("a") as file:
        file.write('{"id": "x"\n\n[1]\n{"id": "x"}\n')
    batch = day(exports(tmp_path, "o.jsonl"))
    assert names(batch) == ["a"]
    assert [r.reason for r in batch.rejects] == ["malformed_json", "wrong_type", "malformed_span"]


def test_a_row_that_was_cut_off(tmp_path: Path) -> None:
    write(tmp_path / "o.csv", Langfuse().records(Small("a")))
    with (tmp_path / "o.csv").open("a") as file:
        file.write("x,y\n")
    batch = day(exports(tmp_path, "o.csv"))
    assert names(batch) == ["a"]
    assert [r.reason for r in batch.rejects] == ["malformed_row"]


@pytest.mark.parametrize(("name", "data", "problem"), [
    ("o.parquet", b"PAR1", "is damaged or was cut off"),
    ("o.xlsx", b"", r"must end in \.jsonl, \.csv, \.parquet"),
])  # fmt: skip
def test_files_that_are_none(tmp_path: Path, name: str, data: bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert re.search(problem, complaint(lambda: day(exports(tmp_path, name))))


def test_the_scenarios_of_the_api() -> None:
    """Four pages, the second of them empty."""
    pages = json.loads(fixture("langfuse", "api-v2-observations.pages.json").read_text())
    after = {None: 0, **{p["meta"]["cursor"]: n for n, p in enumerate(pages[:-1], 1)}}

    def answer(asked: Asked) -> Reply:
        return Reply(pages[after[asked.params.get("cursor", [None])[0]]])

    with serve(answer) as server:
        check_scenarios(day(source(Langfuse(), server.url, now=datetime(2026, 11, 23, tzinfo=UTC), spans=APP), AT))
    assert len(server.asked) == 4
