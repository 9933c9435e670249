"""The shared scenarios, recording by recording: every trace exactly as expected, or the reason why a field can't be.

`expected.jsonl` says what an importer should arrive at. Stores give ids and times of their own: a question names its
scenario. What a recording lacks is listed with its reason; anything else that differs fails, and so does a listed
difference that is gone. The table of formats in README.md must have the same numbers.
"""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from kit.root import ROOT
from kit.stores import postgres
from kit.stores.worlds import fixture, read, rows, scenarios

from tasks import sources
from tasks.sources import Batch

DAY = date(2026, 11, 22)
FIELDS = ("app", "generator", "question", "answer", "chunks", "order", "ids", "scores", "session", "tags", "feedback")
SPANS = {"app": "fernleaf-shop", "generator": "fernleaf-7b-instruct"}
TRACES = ("simple", "two-retrievals", "rerank", "nested", "turn-1", "turn-2", "no-retrieval", "stream", "no-ids")

TABLE = {
    "app": "fernleaf-shop",
    "columns": {
        "id": "request_uuid", "timestamp": "asked_at", "question": "usr_query", "answer": "llm_reply", "generator": "llm",
        "session": "conversation", "latency_ms": "ms", "chunks": "sources",
    },
    "chunk": {"text": "body", "id": "ref", "score": "sim"},
}  # fmt: skip
RATED_TABLE = {**TABLE, "columns": {**TABLE["columns"], "feedback": "thumbs"}, "ratings": {"up": 1, "down": 0}}  # type: ignore[dict-item]
QUERY = """
SELECT r.*, (
    SELECT json_agg(json_build_object('ref', ref, 'body', body, 'sim', sim) ORDER BY pos)
    FROM rag_source s WHERE s.request_uuid = r.request_uuid
) AS sources
FROM rag_request r WHERE asked_at >= :start AND asked_at < :end
"""
SAMPLES = {**SPANS, "day": DAY}

NOT_RATED = {"feedback": "no rating is in the recording"}
NOT_TAGGED = {"tags": "the label is in none of its attributes"}
OTHER_IDS = {"ids": "here the documents do have ids"}
NO_SCORES = {"scores": "LangChain's documents have no scores"}


@dataclass(frozen=True)
class Recording:
    """What a tool stored, and where what becomes of it is not as expected.

    Attributes:
        file: Below the folder of the tool.
        unpack: Takes the records out of recorded answers of a server, where it is that.
        only: The scenarios that it has, besides the failure of a model.
        differ: Fields by scenario, with the reason.
        refused: Reasons of the refused traces.
    """

    kind: str
    folder: str
    file: str
    unpack: Callable[[Any], list[Any]] | None = None
    only: tuple[str, ...] = TRACES
    differ: dict[str, dict[str, str]] = field(default_factory=dict)
    refused: tuple[str, ...] = ("no_answer",)
    more: dict[str, Any] = field(default_factory=dict)


def pages(key: str) -> Callable[[Any], list[Any]]:
    return lambda found: [record for page in found for record in page[key]]


RATED_LATER = {"simple": NOT_RATED}
OTEL = {"simple": NOT_RATED | NOT_TAGGED}
OF_LANGCHAIN = {
    "simple": NOT_RATED | NO_SCORES | {"session": "its autologging knows no session"} | NOT_TAGGED,
    "stream": NO_SCORES,
}


def lacking(only: tuple[str, ...], **reasons: str) -> dict[str, dict[str, str]]:
    """The differences of records that lack some fields, in the scenarios that have them."""
    has = {
        "tags": ("simple",), "feedback": ("simple",), "scores": tuple(k for k in only if k != "no-retrieval"),
        "ids": tuple(k for k in only if k not in ("no-retrieval", "no-ids")),
        "session": ("simple", "rerank", "turn-1", "turn-2", "no-retrieval"),
    }  # fmt: skip
    return {key: found for key in only if (found := {n: r for n, r in reasons.items() if key in has[n]})}


IN_TABLE = lacking(TRACES, tags="no column has it")
IN_QUERY = lacking(TRACES, tags="here every row has the label", feedback="no column has it")
NO_LOG = {"session": "a sample knows no conversation", "tags": "nor labels", "feedback": "nor ratings"}
OF_SAMPLE = {"scores": "nor scores of a retriever", **NO_LOG}
NO_IDS = {"ids": "passages are texts only"}
IN_TRULENS = lacking(
    TRACES[:6], scores="the retriever logged texts only", **NO_IDS, **NO_LOG | {"session": "the application named none"}
)
IN_TRULENS["rerank"]["chunks"] = "the application has no reranker: the model was given all five passages"
IN_DATABASES, OF_SPANS = {"sql", "trulens"}, {"phoenix", "otlp", "mlflow", "langfuse", "langsmith"}
RECORDINGS = [
    Recording("jsonl", ".", "expected-traces.jsonl", refused=()),
    Recording("phoenix", "phoenix", "spans-manual.pages.json", pages("data"), differ=RATED_LATER),
    Recording("phoenix", "phoenix", "spans-langchain.pages.json", pages("data"), ("simple", "turn-2", "stream", "no-ids"), RATED_LATER),
    Recording("phoenix", "phoenix", "spans-llamaindex.pages.json", pages("data"), ("simple", "rerank", "stream"), RATED_LATER, ()),
    Recording("phoenix", "phoenix", "spans-manual.dataframe.parquet", differ=RATED_LATER),
    Recording("phoenix", "phoenix", "spans-langchain.dataframe.parquet", None, ("simple", "turn-2", "stream", "no-ids"), RATED_LATER),
    Recording("otlp", "otel", "genai-json-strings.jsonl", differ=OTEL),
    Recording("otlp", "otel", "genai-structured.jsonl", None, TRACES[:4], OTEL, ()),
    Recording("otlp", "otel", "genai.binpb", differ=OTEL),
    Recording("otlp", "otel", "genai.zst.binpb", differ=OTEL),
    Recording("otlp", "otel", "openinference.jsonl", refused=(), differ=OTEL | {
        "no-ids": OTHER_IDS,
        "rerank": dict.fromkeys(("chunks", "ids", "scores"), "no span is of the reranker, and no prompt was logged"),
    }),
    Recording("otlp", "otel", "openllmetry.jsonl", None, tuple(k for k in TRACES if k not in ("rerank", "no-retrieval")), OTEL | {"no-ids": OTHER_IDS}, ()),
    Recording("otlp", "otel", "genai-ids-only.jsonl", None, (), {}, ("no_chunk_text",) * 3),  # its documents have no text
    Recording("mlflow", "mlflow", "rest-batchget-manual.json", lambda found: found["traces"], differ=RATED_LATER),
    Recording("mlflow", "mlflow", "traces-manual.jsonl", differ=RATED_LATER),
    Recording("mlflow", "mlflow", "rest-batchget-langchain.json", lambda found: found["traces"], ("simple", "stream"), OF_LANGCHAIN, ()),
    Recording("mlflow", "mlflow", "traces-langchain.jsonl", None, ("simple", "stream"), OF_LANGCHAIN, ()),
    Recording("langfuse", "langfuse", "api-v2-observations.pages.json", pages("data"), differ=RATED_LATER),
    *(Recording("langfuse", "langfuse", f"observations_v2.{form}", more={"scores": ["scores.jsonl"]}) for form in ("jsonl", "csv", "parquet")),
    Recording("langsmith", "langsmith", "runs-query.pages.json", pages("runs"), differ=RATED_LATER),
    Recording("langsmith", "langsmith", "runs.jsonl", differ=RATED_LATER),
    Recording("langsmith", "langsmith", "bulk-export/**/*.parquet", differ=RATED_LATER),
    *(Recording("table", "tables", f"log.{form}", refused=(), differ=IN_TABLE, more=RATED_TABLE) for form in ("jsonl", "csv", "parquet")),
    Recording("sql", "tables", "postgres.sql", refused=(), differ=IN_QUERY, more={**TABLE, "query": QUERY}),
    *(Recording("ragas", "ragas", f"single-turn.{form}", refused=(), differ=lacking(TRACES, **OF_SAMPLE), more=SAMPLES) for form in ("jsonl", "csv", "parquet")),
    Recording("ragas", "ragas", "hf/data-00000-of-00001.arrow", refused=(), differ=lacking(TRACES, **OF_SAMPLE), more=SAMPLES),
    Recording("ragas", "ragas", "v0.1-columns.jsonl", None, TRACES[:3], lacking(TRACES[:3], **OF_SAMPLE, **NO_IDS), (), SAMPLES),
    Recording("ragas", "ragas", "multi-turn.jsonl", None, (), {}, ("missing_field",), SAMPLES),
    Recording("ragchecker", "ragchecker", "checking_inputs.json", refused=(), differ=lacking(TRACES, **OF_SAMPLE), more=SAMPLES),
    Recording("ragchecker", "ragchecker", "checking_outputs.json", None, TRACES[:2], lacking(TRACES[:2], **OF_SAMPLE), (), SAMPLES),
    Recording("trulens", "trulens", "trulens.sqlite", None, TRACES[:6], IN_TRULENS, (), {"spans": SPANS}),
]  # fmt: skip


@cache
def imported(number: int) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """The traces of a recording by question, and the reasons of the refused ones."""
    of = RECORDINGS[number]
    with TemporaryDirectory() as folder:
        base, path = fixture(of.folder), of.file
        if of.unpack:
            records = of.unpack(json.loads((base / path).read_text()))
            base, path = Path(folder), "records.jsonl"
            (base / path).write_text("".join(json.dumps(r) + "\n" for r in records))
        if of.kind in IN_DATABASES:
            batch = from_database(of, base / path)
        else:
            spans = {"spans": SPANS} if of.kind in OF_SPANS else {}
            source = sources.load({"kind": of.kind, "paths": [path], **of.more, **spans}, "x.yaml", base)
            batch = read(source, *source.files(DAY, DAY))
    return {row["question"]: row for row in rows(batch)}, tuple(sorted(r.reason for r in batch.rejects))


def from_database(of: Recording, file: Path) -> Batch:
    """What is in a database: a file of SQLite, or what a script makes in a PostgreSQL of our own."""
    with ExitStack() as stack:
        address = f"sqlite:///{file}"
        if file.suffix == ".sql":
            address = stack.enter_context(postgres.postgres())
            postgres.psql(Path(address.partition("host=")[2]), file.read_text())
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("TEST_DSN", address)
        source = sources.load({"kind": of.kind, "dsn_env": "TEST_DSN", **of.more}, "x.yaml", Path())
        return read(source, *source.files(DAY, DAY))


def differing(row: dict[str, Any], wanted: dict[str, Any]) -> set[str]:
    """The fields of a trace that are not as expected."""

    def texts(trace: dict[str, Any]) -> list[str]:
        return [chunk["text"] for chunk in trace.get("chunks", ())]

    pairs = {
        name: (row[name], wanted.get(name)) for name in ("app", "generator", "question", "answer", "session", "tags")
    }
    pairs["chunks"] = (sorted(texts(row)), sorted(texts(wanted)))
    if pairs["chunks"][0] == pairs["chunks"][1]:  # else there is no order to compare
        pairs["order"] = (texts(row), texts(wanted))
    for name, key in (("ids", "chunk_id"), ("scores", "retrieval_score")):
        pairs[name] = tuple([c.get(key) for c in trace.get("chunks", ())] for trace in (row, wanted))  # type: ignore[assignment]
    pairs["feedback"] = tuple((trace.get("feedback") or {}).get("score") for trace in (row, wanted))  # type: ignore[assignment]
    assert set(pairs) <= set(FIELDS)
    return {name for name, (got, want) in pairs.items() if got != want}


NAMES = [f"{r.kind} {r.file}" for r in RECORDINGS]


@pytest.mark.parametrize("number", range(len(RECORDINGS)), ids=NAMES)
def test_each_scenario_is_as_expected_or_its_difference_is_listed(number: int) -> None:
    of, (found, refused) = RECORDINGS[number], imported(number)
    wanted = {key: s["trace"] for key, s in scenarios().items()}
    assert {key for key, trace in wanted.items() if trace["question"] in found} == set(of.only)
    assert len(found) == len(of.only)
    assert refused == of.refused
    differ = {key: differing(found[wanted[key]["question"]], wanted[key]) for key in of.only}
    assert {key: names for key, names in differ.items() if names} == {k: set(v) for k, v in of.differ.items()}


TEXTS = [n for n, r in enumerate(RECORDINGS) if r.file.endswith((".json", ".jsonl")) and r.only]


@pytest.mark.parametrize("number", TEXTS, ids=lambda n: NAMES[n])
def test_a_scenario_that_is_left_out_is_not_in_the_recording(number: int) -> None:
    of = RECORDINGS[number]
    text = fixture(of.folder, of.file).read_text()
    history = {"turn-1"} if "turn-2" in of.only else set()  # the second turn repeats the first
    left_out = [scenarios()[key]["trace"]["question"] for key in TRACES if key not in (*of.only, *history)]
    assert [question for question in left_out if question in text] == []


def test_the_table_of_formats_has_these_numbers() -> None:
    """Traces with the field exactly as expected, of all that the recordings of a kind have."""
    exact: Counter[tuple[str, str]] = Counter()
    for number, of in enumerate(RECORDINGS):
        found, _ = imported(number)
        for key in of.only:
            trace = scenarios()[key]["trace"]
            wrong = differing(found[trace["question"]], trace)
            exact[of.kind, "traces"] += 1
            wrong |= {"order"} if "chunks" in wrong else set()
            exact.update((of.kind, name) for name in FIELDS if name not in wrong)
    rated = {"jsonl": "yes", "phoenix": "yes", "otlp": "–", "mlflow": "yes", "langfuse": "exports", "langsmith": "yes",
             "table": "yes", "sql": "yes", "ragas": "–", "ragchecker": "–", "trulens": "–"}  # fmt: skip
    costs = {"ragas": "–", "ragchecker": "–"}  # a test of its own for each of the other kinds
    columns = ("question", "answer", "chunks", "order", "ids", "session")
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    for kind in dict.fromkeys(r.kind for r in RECORDINGS):
        cells = " | ".join(f"{exact[kind, name]}/{exact[kind, 'traces']}" for name in columns)
        row = f"| `{kind}` | {cells} | {costs.get(kind, 'yes')} | {rated[kind]} |"
        assert [line for line in lines if line.startswith(row)], (kind, cells)
