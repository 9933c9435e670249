"""Stores of traces for tests: what each of them says of a small trace, a server that says it, and the shared fixtures."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kit.root import ROOT
from kit.stores.server import Asked, Reply
from tasks.core.errors import SourceError
from tasks.sources import Batch, Source, SourceFile, langfuse, langsmith, mlflow
from tasks.sources.spans.pull import PulledSource

STORES = ROOT.parent / "shared" / "data" / "stores"
DAY = date(2026, 11, 1)
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
COST = 0.002  # of the call of a model
SECRET = "zebra-crossing"  # stands for the text of a trace: no error may hold it
KEY = "sk-not-to-be-seen"
PROJECT = "00000000-0000-0000-0000-00000000004d"
RATED = "user-feedback"

Answer = Callable[[Asked], Reply]


def fixture(*parts: str) -> Path:
    """A file of the shared fixtures; skips the test where they are not there."""
    path = STORES.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is not there: the shared fixtures are beside the repository only where it is developed")
    return path


def read(source: Source, *files: SourceFile) -> Batch:
    """All batches of some files as one; checks what holds of every batch."""
    batches = [batch for file in files for batch in source.read(file)]
    for batch in batches:
        assert batch.rows == batch.table.num_rows + len(batch.rejects)
        batch.table.validate(full=True)
        assert not any(SECRET in reject.detail for reject in batch.rejects)
    tables = [batch.table for batch in batches]
    table = pa.concat_tables(tables) if tables else None
    return Batch(table, [r for b in batches for r in b.rejects], sum(b.rows for b in batches))


def rows(batch: Batch) -> list[dict[str, Any]]:
    """The good rows, by question."""
    found = batch.table.to_pylist(maps_as_pydicts="strict") if batch.table else []
    return sorted(found, key=lambda row: row["question"])


def scenarios() -> dict[str, dict[str, Any]]:
    """What an importer should arrive at, by the key of the scenario."""
    lines = fixture("expected.jsonl").read_text().splitlines()
    return {(found := json.loads(line))["key"]: found for line in lines}


def check_scenarios(batch: Batch) -> None:
    """Every scenario is there as it should be, and nothing else. Stores have ids and times of their own."""
    found = {row["question"]: row for row in rows(batch)}
    names = ("chunk_id", "text", "rank", "retrieval_score")
    for key, scenario in scenarios().items():
        wanted = scenario["trace"]
        row = found.pop(wanted["question"], None)
        if scenario["outcome"] != "trace":
            assert row is None, key
            assert scenario["outcome"] == f"skipped:{batch.rejects[0].reason}", key
            continue
        assert row, key
        assert {k: row[k] for k in ("app", "generator", "answer", "session", "tags")} == {
            k: wanted[k] for k in ("app", "generator", "answer", "session", "tags")
        }, key
        assert [{k: c[k] for k in names} for c in row["chunks"]] == wanted["chunks"], key
    assert not found
    assert len(batch.rejects) == 1


@dataclass
class Small:
    """A small trace: a root, a search and a call of a model.

    Attributes:
        start: Of the root; every step starts a second later.
        cyclic: The root's parent is the search.
        roots: Spans without a parent.
        rating: What a user said of it.
    """

    name: str
    start: datetime = NOON
    question: str = ""
    answer: Any = f"The {SECRET} is here [1]."
    text: str = f"A {SECRET} is striped."
    cyclic: bool = False
    roots: int = 1
    rating: float | None = None

    def steps(self) -> Iterator[tuple[str, str | None, str, str, datetime, Any, Any]]:
        """Id, parent, name, kind, start, input and output of each span."""
        ids = [f"{n:x}{self.name.encode().hex()}".ljust(16, "0")[:16] for n in range(1, 4 + self.roots)]
        question = self.question or f"What is {self.name}?"
        found = [{"id": "c1", "page_content": self.text, "metadata": {"score": 0.5, "source": "d.md"}}]
        answer = None if self.answer is None else {"answer": self.answer}
        parent = ids[1] if self.cyclic else None
        yield ids[0], parent, "answer", "chain", self.start, {"question": question}, answer
        yield ids[1], ids[0], "search", "retriever", self.start + timedelta(seconds=1), question, found
        prompt = {"messages": [{"role": "user", "content": f"[1] {self.text}\n\n{question}"}]}
        reply = None if self.answer is None else {"role": "assistant", "content": self.answer}
        yield ids[2], ids[0], "chat", "llm", self.start + timedelta(seconds=2), prompt, reply
        for more in ids[3 : 2 + self.roots]:
            yield more, None, "other", "chain", self.start, {"question": question}, {"answer": "Another."}


@dataclass
class World:
    """One kind of store, as a server that holds small traces.

    Attributes:
        page: Records on a page.
        empty: An empty page that has a cursor comes first.
        bad: Name of a trace of which the store gives something that is no record.
    """

    traces: list[Small] = field(default_factory=list)
    page: int = 2
    empty: bool = False
    bad: str = ""

    kind = ""

    def config(self, url: str, **more: Any) -> dict[str, Any]:
        """Settings for a server."""
        return {"kind": self.kind, "url": url, "reread_hours": 0, "spans": {"app": "shop"}, **more}

    def records(self, trace: Small) -> list[Any]:
        """What the store says of a trace."""
        raise NotImplementedError

    def answer(self, asked: Asked) -> Reply:
        """What the server says."""
        raise NotImplementedError

    def _page(self, records: list[Any], cursor: str | None) -> tuple[list[Any], str | None]:
        at = int(cursor) if cursor else -1 if self.empty else 0
        if at < 0:
            return [], "0"
        end = at + self.page
        return records[at:end], str(end) if end < len(records) else None


class Phoenix(World):
    """Phoenix, with a project `shop`."""

    kind = "phoenix"

    def config(self, url: str, **more: Any) -> dict[str, Any]:
        return {"kind": "phoenix", "url": url, "project": "shop", "reread_hours": 0, **more}

    def records(self, trace: Small) -> list[Any]:
        bad = [{"context": {}, "name": SECRET}] if trace.name == self.bad else []
        return bad + [
            {
                "context": {"trace_id": f"tr-{trace.name}", "span_id": own}, "parent_id": parent, "name": name,
                "span_kind": kind.upper(), "start_time": start.isoformat(), "end_time": start.isoformat(), "status_code": "OK",
                "attributes": {
                    "input.value": json.dumps(given), "output.value": None if got is None else json.dumps(got),
                    "llm.model_name": "m-1", "metadata.tier": "gold", "session.id": "s-1",
                    **({"llm.cost.total": COST} if kind == "llm" else {}),
                    **({"retrieval.documents.0.document.content": trace.text, "retrieval.documents.0.document.id": "c1",
                        "retrieval.documents.0.document.score": 0.5,
                        "retrieval.documents.0.document.metadata": json.dumps({"source": "d.md"})} if kind == "retriever" else {}),
                },
            }
            for own, parent, name, kind, start, given, got in trace.steps()
        ]  # fmt: skip

    def answer(self, asked: Asked) -> Reply:
        assert asked.headers.get("Authorization") in (None, f"Bearer {KEY}")
        if not asked.path.startswith("/v1/projects/shop/"):
            return Reply({"detail": "no such project"}, 404)
        if asked.path.endswith("/span_annotations"):
            assert asked.params["include_annotation_names"][0] == RATED
            roots = {self.records(t)[-3]["context"]["span_id"]: t.rating for t in self.traces if t.rating is not None}
            return Reply({"data": [
                {"span_id": i, "name": RATED, "result": {"score": roots[i], "label": None, "explanation": "fine"}}
                for i in asked.params["span_ids"] if i in roots
            ], "next_cursor": None})  # fmt: skip
        assert int(asked.params["limit"][0]) <= 1000
        found = [r for t in self.traces for r in self.records(t)]
        if "trace_id" in asked.params:
            found = [r for r in found if r["context"].get("trace_id") in asked.params["trace_id"]]
            page, cursor = self._page(found, asked.params.get("cursor", [None])[0])
            return Reply({"data": page, "next_cursor": cursor})
        start, end = (datetime.fromisoformat(asked.params[n][0]) for n in ("start_time", "end_time"))
        found = [r for r in found if start <= datetime.fromisoformat(r.get("start_time", end.isoformat()[:19] + "Z")) < end or "start_time" not in r]  # fmt: skip
        page, cursor = self._page(found, asked.params.get("cursor", [None])[0])
        return Reply({"data": page, "next_cursor": cursor})


class Mlflow(World):
    """MLflow of version 3."""

    kind = "mlflow"

    def config(self, url: str, **more: Any) -> dict[str, Any]:
        return super().config(url, **{"experiment": "shop", "api_key_env": "TEST_KEY", **more})

    def info(self, trace: Small) -> dict[str, Any]:
        more = {}
        if trace.rating is not None:
            more = {"assessments": [{"assessment_name": "user_feedback", "feedback": {"value": trace.rating}}]}
        tags = {"mlflow.trace.spansLocation": "TRACKING_STORE", "app": "shop", "tier": "gold"}
        return {"trace_id": f"tr-{trace.name}", "request_time": trace.start.isoformat(), "tags": tags, **more}

    def records(self, trace: Small) -> list[Any]:
        def coded(value: str | None) -> str | None:
            return value and base64.b64encode(bytes.fromhex(value)).decode()

        return [{"trace_info": self.info(trace), "spans": [
            {
                "trace_id": "imrYbLSe8NBWPnWxBH5mng==", "span_id": coded(own), "name": name,
                **({"parent_span_id": coded(parent)} if parent else {}),
                "start_time_unix_nano": int(start.timestamp() * 1e9), "end_time_unix_nano": int(start.timestamp() * 1e9) + 1,
                "attributes": [
                    {"key": "mlflow.spanType", "value": {"string_value": {"llm": "CHAT_MODEL"}.get(kind, kind.upper())}},
                    {"key": "mlflow.spanInputs", "value": {"string_value": json.dumps(given)}},
                    {"key": "mlflow.spanOutputs", "value": {"string_value": json.dumps(got)} if got is not None else {}},
                    {"key": "mlflow.llm.model", "value": {"string_value": "m-1"}},
                    *([{"key": "mlflow.llm.cost", "value": {"string_value": json.dumps({"total_cost": COST})}}] if kind == "llm" else []),
                ],
            }
            for own, parent, name, kind, start, given, got in trace.steps()
        ]}]  # fmt: skip

    def answer(self, asked: Asked) -> Reply:
        if asked.path.endswith("/experiments/get-by-name"):
            found = asked.params["experiment_name"] == ["shop"]
            return Reply({"experiment": {"experiment_id": "7"}}) if found else Reply({"error_code": "x"}, 404)
        if asked.path.endswith("/traces/search"):
            assert asked.body["max_results"] <= 500
            assert asked.body["locations"][0]["mlflow_experiment"] == {"experiment_id": "7"}
            start, end = map(int, re.findall(r"timestamp_ms [<>]=? (\d+)", asked.body["filter"]))
            within = [t for t in self.traces if start <= t.start.timestamp() * 1000 < end]
            found, cursor = self._page([self.info(t) for t in within], asked.body.get("page_token"))
            return Reply(
                {"traces": found, **({"next_page_token": cursor} if cursor else {})} if found or cursor else {}
            )
        assert asked.path == "/api/3.0/mlflow/traces/batchGet"
        wanted = asked.params["trace_ids"]
        found = [
            ({"trace_info": r["trace_info"]} if t.name == self.bad else r, t)
            for t in self.traces
            for r in self.records(t)
        ]
        return Reply({"traces": [r for r, t in found if f"tr-{t.name}" in wanted]})


class Langfuse(World):
    """Langfuse of version 4."""

    kind = "langfuse"

    def config(self, url: str, **more: Any) -> dict[str, Any]:
        return super().config(url, public_key_env="TEST_KEY", secret_key_env="TEST_KEY", **more)

    def records(self, trace: Small) -> list[Any]:
        return [
            {
                "id": own, "traceId": f"tr-{trace.name}", "parentObservationId": parent, "name": name, "level": "DEFAULT",
                "type": {"llm": "GENERATION"}.get(kind, kind.upper()), "startTime": start.isoformat(), "endTime": start.isoformat(),
                "environment": "production", "sessionId": "s-1", "model": "m-1", "metadata": {"tier": '"gold"'},
                "input": json.dumps(given), "output": None if got is None else json.dumps(got), "promptName": "qa", "promptVersion": 3,
                "usageDetails": {"input": 9, "output": 4}, "totalCost": COST if kind == "llm" else 0,
            }
            for own, parent, name, kind, start, given, got in trace.steps()
        ]  # fmt: skip

    def answer(self, asked: Asked) -> Reply:
        assert asked.path == "/api/public/v2/observations"
        assert int(asked.params["limit"][0]) <= 1000
        fields = asked.params["fields"][0].split(",")
        start, end = (datetime.fromisoformat(asked.params[n][0]) for n in ("fromStartTime", "toStartTime"))
        found = [r for t in self.traces for r in self.records(t) + [{}] * (t.name == self.bad)]
        found = [r for r in found if not r or start <= datetime.fromisoformat(r["startTime"]) < end]
        if "io" not in fields:
            found = [{k: v for k, v in r.items() if k not in ("input", "output")} for r in found]
        page, cursor = self._page(found, asked.params.get("cursor", [None])[0])
        return Reply({"data": page, "meta": {"cursor": cursor} if cursor else {}})


class Langsmith(World):
    """LangSmith's API of version 1."""

    kind = "langsmith"

    def config(self, url: str, **more: Any) -> dict[str, Any]:
        return super().config(url, project=PROJECT, api_key_env="TEST_KEY", **more)

    def records(self, trace: Small) -> list[Any]:
        stats = None if trace.rating is None else {"user_score": {"n": 1, "avg": trace.rating}}
        return [
            {
                "id": own, "trace_id": f"tr-{trace.name}", "parent_run_id": parent, "name": name, "run_type": kind,
                "start_time": start.replace(tzinfo=None).isoformat(), "end_time": start.replace(tzinfo=None).isoformat(),
                "status": "success", "error": None, "feedback_stats": stats, "total_cost": None if kind == "retriever" else str(COST),
                "inputs": given if isinstance(given, dict) else {"query": given}, "outputs": {"documents": got} if isinstance(got, list) else got,
                "extra": {"metadata": {"session_id": "s-1", "tier": "gold", "user_id": "u-1", "ls_model_name": "m-1"}},
            }
            for own, parent, name, kind, start, given, got in trace.steps()
        ]  # fmt: skip

    def answer(self, asked: Asked) -> Reply:
        assert asked.path == "/api/v1/runs/query"
        assert asked.body["limit"] <= 100
        assert asked.body["session"] == [PROJECT]
        until = re.fullmatch(r'lt\(start_time, "(.*)"\)', asked.body["filter"])
        start, end = (datetime.fromisoformat(at) for at in (asked.body["start_time"], until[1]))
        found = [r for t in self.traces for r in self.records(t) + [{}] * (t.name == self.bad)]
        found = [r for r in found if not r or start <= datetime.fromisoformat(r["start_time"] + "Z") < end]
        page, cursor = self._page(found, asked.body.get("cursor"))
        return Reply({"runs": page, "cursors": {"next": cursor}})


WORLDS = (Mlflow, Langfuse, Langsmith)


def source(
    world: World, url: str, *, now: datetime = NOON + timedelta(days=9), sleep: Any = None, **more: Any
) -> Source:
    """The source of a world's server, at some time, that does not wait."""
    module = {"mlflow": mlflow, "langfuse": langfuse, "langsmith": langsmith}[world.kind]
    config = module.Config.model_validate(world.config(url, **more))
    store = (
        langfuse.LangfuseStore(config, Path())
        if world.kind == "langfuse"
        else (mlflow.MlflowStore(config) if world.kind == "mlflow" else langsmith.LangsmithStore(config))
    )
    return PulledSource(config, Path(), store, now=lambda: now, sleep=sleep or (lambda _: None))


def day(of: Source, at: date = DAY) -> Batch:
    """What a source has for a day."""
    return read(of, *of.files(at, at))


def names(batch: Batch) -> list[str]:
    """The ids of its traces, without `tr-`."""
    return sorted(row["trace_id"].removeprefix("tr-") for row in rows(batch))


def complaint(call: Callable[[], object], kind: type[Exception] = SourceError) -> str:
    """What an error says: no text of a trace, and no key."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert KEY not in message
    assert SECRET not in message
    assert "\n" not in message
    return message
