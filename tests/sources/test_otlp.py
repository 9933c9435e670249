"""Files of the Collector in, traces and rejects out."""

import base64
import json
from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from kit.stores.worlds import fixture, read, rows
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tasks.sources import Batch, Source, SourceFile
from tasks.sources.otlp import Config, OtlpSource

DAY = date(2026, 11, 22)
T0 = 1_795_345_200_000_000_000  # 2026-11-22T11:00:00Z
SECRET = "zebra-crossing"


def value(of: Any) -> dict[str, Any]:
    if isinstance(of, dict):
        return {"kvlistValue": {"values": attributes(of)}}
    if isinstance(of, list):
        return {"arrayValue": {"values": [value(v) for v in of]}}
    if isinstance(of, bool):
        return {"boolValue": of}
    return {"intValue": str(of)} if isinstance(of, int) else {"doubleValue": of} if isinstance(of, float) else {"stringValue": of}  # fmt: skip


def attributes(of: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": k, "value": value(v)} for k, v in of.items()]


def span(trace: int, own: int, parent: int, start: int, **of: Any) -> dict[str, Any]:
    given = {key.replace("__", "."): v for key, v in of.items()}
    return {
        "traceId": f"{trace:032x}", "spanId": f"{own:016x}", "parentSpanId": f"{parent:016x}" if parent else "", "name": f"s{own}",
        "startTimeUnixNano": str(T0 + start * 10**9), "endTimeUnixNano": str(T0 + (start + 1) * 10**9),
        "attributes": attributes(given), "status": {},
    }  # fmt: skip


def small(trace: int = 1, second: int = 0) -> list[dict[str, Any]]:
    """A root, a search and a call of a model, as the GenAI conventions have them."""
    found = [{"id": "c1", "content": f"A {SECRET}.", "score": 0.5, "metadata": {"source": "d.md"}}]
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"What is {trace}?"}]}]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": f"A {SECRET} [1]."}]}]
    return [
        span(trace, 2, 1, second + 1, gen_ai__operation__name="retrieval", gen_ai__retrieval__documents=found),
        span(trace, 3, 1, second + 3, gen_ai__operation__name="chat", gen_ai__request__model="m-1", gen_ai__usage__cost=0.002, gen_ai__output__messages=said),
        span(trace, 1, 0, second, gen_ai__operation__name="invoke_agent", gen_ai__input__messages=asked, gen_ai__output__messages=said),
    ]  # fmt: skip


def line(spans: Sequence[dict[str, Any]]) -> bytes:
    resource = {"attributes": attributes({"service.name": "shop", "deployment.environment": "prod"})}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}).encode()


def source(base: Path, *paths: str, **more: Any) -> Source:
    return OtlpSource(Config(kind="otlp", paths=list(paths)), base, **more)


def everything(of: Source, day: date = DAY) -> Batch:
    return read(of, *of.files(day, day))


def of(base: Path, data: bytes, **more: Any) -> Batch:
    (base / "in").write_bytes(data)
    return everything(source(base, "in", **more))


def framed(*messages: bytes) -> bytes:
    return b"".join(len(m).to_bytes(4, "big") + m for m in messages)


def protobuf(spans: Sequence[dict[str, Any]]) -> bytes:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for one in spans:
        made = scope.spans.add(
            trace_id=bytes.fromhex(one["traceId"]), span_id=bytes.fromhex(one["spanId"]), name=one["name"],
            parent_span_id=bytes.fromhex(one["parentSpanId"]), start_time_unix_nano=int(one["startTimeUnixNano"]),
            end_time_unix_nano=int(one["endTimeUnixNano"]),
        )  # fmt: skip
        made.attributes.add(key="input.value").value.string_value = "Why?"
        made.attributes.add(key="output.value").value.string_value = "So."
        made.attributes.add(key="blob").value.bytes_value = b"\xff"
    return request.SerializeToString()


def test_formats_say_the_same() -> None:
    def hashes(name: str) -> list[str]:
        path = fixture("otel", name)
        return [r["content_hash"] for r in rows(everything(source(path.parent, path.name)))]

    assert hashes("genai.binpb") == hashes("genai.zst.binpb") == hashes("genai-json-strings.jsonl")


def test_fields(tmp_path: Path) -> None:
    (row,) = rows(of(tmp_path, line(small())))
    assert row["trace_id"] == f"{1:032x}"
    assert (row["app"], row["environment"], row["generator"]) == ("shop", "prod", "m-1")
    assert (row["question"], row["latency_ms"], row["cost"]) == ("What is 1?", 1000.0, 0.002)
    (chunk,) = row["chunks"]
    assert (chunk["chunk_id"], chunk["retrieval_score"], chunk["doc_id"]) == ("c1", 0.5, "d.md")


@given(st.permutations(small(1) + small(2, 20)), st.lists(st.integers(0, 6), max_size=4), st.sampled_from([3, 1000]))
def test_cuts_across_lines_and_files_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, spans: list[dict[str, Any]], cuts: list[int], block: int
) -> None:
    base = tmp_path_factory.mktemp("cut")
    edges = sorted({0, *cuts, len(spans)})
    for n, (start, end) in enumerate(pairwise(edges)):
        with (base / f"{n % 2}.jsonl").open("ab") as file:
            file.write(line(spans[start:end]) + b"\n")
    found = rows(everything(source(base, "*.jsonl", block_bytes=block)))
    whole = rows(of(base, line(small(1)) + b"\n\n" + line(small(2, 20))))
    assert [r["content_hash"] for r in found] == [r["content_hash"] for r in whole]


def test_a_trace_over_midnight_is_whole_on_both_days(tmp_path: Path) -> None:
    first, second = small(1), small(2, 40)
    (tmp_path / "2026-11-22.jsonl").write_bytes(line(first[:2]) + b"\n")
    (tmp_path / "2026-11-23.jsonl").write_bytes(line([first[2], *second]) + b"\nno JSON\n")
    late = source(tmp_path, "{date}.jsonl")
    today, tomorrow = (everything(late, date(2026, 11, n)) for n in (22, 23))
    assert [r["question"] for r in rows(today)] == ["What is 1?"]
    assert today.rejects == []
    assert [r["question"] for r in rows(tomorrow)] == ["What is 1?", "What is 2?"]
    assert rows(today)[0]["content_hash"] == rows(tomorrow)[0]["content_hash"]
    assert [r.reason for r in tomorrow.rejects] == ["malformed_json"]


def test_a_day_is_read_again_when_a_file_comes(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(line(small(1)))
    files = source(tmp_path, "*.jsonl")
    (before,) = files.files(DAY, DAY)
    assert files.files(DAY, DAY) == [before]
    (tmp_path / "b.jsonl").write_bytes(line(small(2)))
    (after,) = files.files(DAY, DAY)
    assert after.path == before.path == "*.jsonl"
    assert after.fingerprint != before.fingerprint
    assert source(tmp_path, "{date}/*.jsonl").files(DAY, DAY) == []


@pytest.mark.parametrize("packed", [False, True])
def test_messages_with_their_length(tmp_path: Path, packed: bool) -> None:
    messages = [protobuf(small(1)[2:]), line(small(2)), b""]
    if packed:
        messages = [zstandard.ZstdCompressor().compress(m) for m in messages]
    batch = of(tmp_path, framed(*messages), block_bytes=7)
    assert [r["question"] for r in rows(batch)] == ["What is 2?", "Why?"]
    assert batch.rejects == []


def test_ids_in_base64(tmp_path: Path) -> None:
    spans = small()
    for one in spans:
        for key in ("traceId", "spanId", "parentSpanId"):
            one[key] = base64.b64encode(bytes.fromhex(one[key])).decode()
    assert [r["trace_id"] for r in rows(of(tmp_path, line(spans)))] == [f"{1:032x}"]


@pytest.mark.parametrize("name", ["traceId", "spanId"])
@pytest.mark.parametrize("bad", [None, "", "0" * 32, "%%%", "zz" * 16, 5, "AAAA"])
def test_a_span_with_a_bad_id_takes_no_other_trace(tmp_path: Path, name: str, bad: object) -> None:
    batch = of(tmp_path, line([*small(1), {**small(2)[2], name: bad}]))
    assert [r["question"] for r in rows(batch)] == ["What is 1?"]
    assert [r.reason for r in batch.rejects] == ["malformed_span"]


@pytest.mark.parametrize(
    ("data", "reason", "kept"),
    [
        (b"{nonsense\n" + line(small()), "malformed_json", 1),
        (line(small()) + b"\n" + line(small(2))[:-9], "malformed_json", 1),
        (line(small()) + b'\n{"a":' + b"[" * 15_000, "malformed_json", 1),
        (line(small()) + b"\n" + b'{"' + b"x" * 99_999 + b'":1}', "line_too_long", 1),
        (framed(line(small()), b"\x0a\xff\xff\xff"), "malformed_span", 1),
        (framed(line(small()), line(small(2)))[:-9], "malformed_span", 1),
        (framed(line(small())) + b"\xff\xff\xff\xff rest", "line_too_long", 1),
        (framed(line(small()), b"\x28\xb5\x2f\xfd no frame"), "malformed_span", 1),
        (framed(line(small()), zstandard.ZstdCompressor().compress(b" " * 99_999)), "line_too_long", 1),
        (b"no spans at all, only a text", "line_too_long", 0),
    ],
)
def test_damage_is_refused_and_the_rest_is_kept(tmp_path: Path, data: bytes, reason: str, kept: int) -> None:
    batch = of(tmp_path, data, max_message_bytes=20_000)
    assert batch.table is not None
    assert batch.table.num_rows == kept
    assert [r.reason for r in batch.rejects] == [reason]
    assert SECRET not in batch.rejects[0].detail
    assert "in:" in batch.rejects[0].detail


def test_half_a_surrogate_pair_takes_no_other_trace(tmp_path: Path) -> None:
    data = line([*small(1), *small(2)]).replace(b"What is 2?", b"What is \\ud83d?")
    assert [r["question"] for r in rows(of(tmp_path, data))] == ["What is 1?", "What is \ufffd?"]


odd = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["key", "value", "values", "stringValue", "arrayValue", "kvlistValue", "intValue", "attributes", "name"]), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from([*small()[0], "events"]), odd, max_size=6))
def test_any_values_in_a_span_take_no_other_trace(
    tmp_path_factory: pytest.TempPathFactory, bad: dict[str, Any]
) -> None:
    found = of(tmp_path_factory.mktemp("odd"), line([*small(1), {**small(2)[0], **bad}]))
    assert f"{1:032x}" in [r["trace_id"] for r in rows(found)] or bad.get("traceId") == f"{1:032x}"


def test_openllmetry_events_and_a_file_without_spans(tmp_path: Path) -> None:
    root = span(1, 1, 0, 0, traceloop__span__kind="workflow", traceloop__entity__input='{"args": ["Why?"]}', traceloop__entity__output='"So."')  # fmt: skip
    search = span(1, 2, 1, 1, db__system="chroma")
    hit = {"db.query.result.id": "a", "db.query.result.document": "text", "db.query.result.distance": 0.25}
    search["events"] = [{"name": "db.query.result", "attributes": attributes(hit)}]
    (row,) = rows(of(tmp_path, line([root, search])))
    assert (row["question"], row["answer"], row["generator"]) == ("Why?", "So.", "unknown")
    assert [(c["chunk_id"], c["retrieval_score"]) for c in row["chunks"]] == [("a", 0.75)]
    assert of(tmp_path, b"").rows == of(tmp_path, b"\n\n").rows == of(tmp_path, b'{"resourceMetrics": []}').rows == 0


def test_a_state_that_is_gone(tmp_path: Path) -> None:
    assert read(source(tmp_path, "*.jsonl"), SourceFile("*.jsonl", "")).rows == 0
