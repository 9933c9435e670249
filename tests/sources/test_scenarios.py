"""The shared scenarios, recording by recording: every trace exactly as expected, or the reason why a field can't be.

`expected.jsonl` says what an importer should arrive at. Stores give ids and times of their own: a question names its
scenario. What a recording lacks is listed with its reason; anything else that differs fails, and so does a listed
difference that is gone. The table of formats in README.md must have the same numbers.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from kit.root import ROOT
from kit.stores.worlds import fixture, read, rows, scenarios

from tasks import sources

DAY = date(2026, 11, 22)
FIELDS = ("app", "generator", "question", "answer", "chunks", "order", "ids", "scores", "session", "tags", "feedback")
SPANS = {"app": "fernleaf-shop", "generator": "fernleaf-7b-instruct"}
TRACES = ("simple", "two-retrievals", "rerank", "nested", "turn-1", "turn-2", "no-retrieval", "stream", "no-ids")

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
]  # fmt: skip


@cache
def imported(number: int) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """The traces of a recording by question, and the reasons of the refused ones."""
    of = RECORDINGS[number]
    with TemporaryDirectory() as folder:
        base, path = fixture(of.folder, of.file.partition("**")[0]).parent, of.file
        if "**" in of.file:
            base = fixture(of.folder)
        if of.unpack:
            records = of.unpack(json.loads((base / path).read_text()))
            base, path = Path(folder), "records.jsonl"
            (base / path).write_text("".join(json.dumps(r) + "\n" for r in records))
        settings = {"kind": of.kind, "paths": [path], **of.more, **({} if of.kind == "jsonl" else {"spans": SPANS})}
        source = sources.load(settings, "x.yaml", base)
        batch = read(source, *source.files(DAY, DAY))
    return {row["question"]: row for row in rows(batch)}, tuple(sorted(r.reason for r in batch.rejects))


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
    rated = {"jsonl": "yes", "phoenix": "yes", "otlp": "–", "mlflow": "yes", "langfuse": "exports", "langsmith": "yes"}
    columns = ("question", "answer", "chunks", "order", "ids", "session")
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    for kind in dict.fromkeys(r.kind for r in RECORDINGS):
        cells = " | ".join(f"{exact[kind, name]}/{exact[kind, 'traces']}" for name in columns)
        row = f"| `{kind}` | {cells} | – | {rated[kind]} |"
        assert [line for line in lines if line.startswith(row)], (kind, cells)
