"""A night of made-up rows that conform to the tables, and a Reader over them; see `report_nights.py` for nights."""

import random
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from tasks.core.keys import claim_id, key
from tasks.core.paths import sql_dir
from tasks.core.schemas import TABLES, WATERFALL

NIGHT = date(2026, 11, 19)
RECIPE, JUDGE, EXTRACTOR, SCORER = "5f1c9a7720be4d13", "9b41d07ac3e85f26", "e0c4a1", "s7d2b9"


class Rows:
    """Rows by table, with the columns that a row leaves out filled in."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}

    def add(self, table: str, **row: Any) -> dict[str, Any]:
        blank = {f.name: None if f.nullable else _blank(f.type) for f in TABLES[table].schema}
        unknown = row.keys() - blank.keys()
        assert not unknown, f"{table} has no {unknown}"
        self.tables[table].append({**blank, **row})
        return self.tables[table][-1]

    def reader(self) -> "DuckReader":
        return DuckReader(self.tables)


class DuckReader:
    """The Reader protocol over an in-memory DuckDB; counts its queries."""

    def __init__(self, tables: Mapping[str, list[dict[str, Any]]]) -> None:
        self.queries = 0
        self.connection = duckdb.connect()
        for name, table in TABLES.items():
            rows = pa.Table.from_pylist(tables[name], schema=pa.schema([f.remove_metadata() for f in table.schema]))
            rows.validate(full=True)
            self.connection.register(f"{name}_rows", rows)
            self.connection.execute(f"CREATE TABLE {name} AS FROM {name}_rows")
        for view in sorted((sql_dir() / "views").glob("*.sql")):
            self.connection.execute(f"CREATE VIEW {view.stem} AS {view.read_text()}")

    def rows(self, sql: str, params: Mapping[str, object]) -> list[dict[str, Any]]:
        self.queries += 1
        return self.connection.execute(sql, dict(params)).to_arrow_table().to_pylist()


def _blank(type_: pa.DataType) -> Any:
    if pa.types.is_list(type_) or pa.types.is_map(type_):
        return []
    if pa.types.is_string(type_):
        return ""
    if pa.types.is_date(type_):
        return NIGHT
    if pa.types.is_boolean(type_):
        return False
    return datetime(2026, 11, 19, 8, 30, tzinfo=UTC) if pa.types.is_timestamp(type_) else 0


def chunk(chunk_id: str, text: str, title: str | None = None, rank: int = 1) -> dict[str, Any]:
    return {"chunk_id": chunk_id, "doc_id": f"{chunk_id}.md", "title": title, "rank": rank, "text": text, "retrieval_score": 0.5}  # fmt: skip


def pair(chunk_id: str, label: str | None, p: float | None, *, window: tuple[int, int] | None = None, against: float = 0.02, failure: str | None = None, explanation: str | None = None) -> dict[str, Any]:  # fmt: skip
    """One pair of one chunk; a label or a failure."""
    return {"pair_kind": "single", "chunks": [chunk_id], "window": window, "label": label, "p": p, "against": against, "failure": failure, "explanation": explanation}  # fmt: skip


def pack(chunks: list[str], label: str, p: float, *, named: list[int], explanation: str | None = None) -> dict[str, Any]:  # fmt: skip
    """One pair of several chunks, whole, of which the judge names some by their numbers."""
    return {"pair_kind": "pack", "chunks": chunks, "window": None, "label": label, "p": p, "against": 0.02, "failure": None, "explanation": explanation, "named": named}  # fmt: skip


def trace(
    rows: Rows,
    trace_id: str,
    *,
    answer: str,
    chunks: list[dict[str, Any]],
    claims: list[dict[str, Any]],
    question: str = "How long may I return a kettle?",
    app: str = "support",
    generator: str = "meridian-8b",
    diagnosis: str | None = "generator",
    context: float | None = 0.71,
    relevance: float | None = 0.66,
    unused: list[str] | None = None,
    night: date = NIGHT,
) -> None:
    """One trace with its claims, pairs, verdicts and scores, as the stages before the report would leave them.

    A claim is `{text, status?, label?, misused?, cites?, deciding?, patterns?, dangling?, pairs?, confidence?, kind?,
    context?, language?, unread?}`; its span is where its text stands in the answer.
    """
    rows.add(
        "traces", date=night, trace_id=trace_id, app=app, generator=generator, question=question, answer=answer,
        chunks=chunks, prompt_version="v4", retriever="bm25+e5", latency_ms=1840.0, tokens_in=1412, tokens_out=96,
        tags=[("channel", "web")], environment="production",
        timestamp=datetime(night.year, night.month, night.day, 8, 30, tzinfo=UTC),
    )  # fmt: skip
    texts = {c["chunk_id"]: c["text"] for c in chunks}
    tally: dict[str, int] = {}
    at = 0
    for ordinal, c in enumerate(claims):
        at = answer.index(c["text"], at)
        ident = claim_id(trace_id, EXTRACTOR, ordinal)
        status, label = c.get("status", "judged"), c.get("label")
        rows.add(
            "claims", extractor_version=EXTRACTOR, date=night, claim_id=ident, trace_id=trace_id, ordinal=ordinal,
            text=c["text"], span_start=at, span_end=at + len(c["text"]), cited_chunk_ids=c.get("cites", []),
            dangling_citations=c.get("dangling", []), kind=c.get("kind", "claim"), context=c.get("context", ""),
            language=c.get("language", "en"),
        )  # fmt: skip
        at += len(c["text"])
        if "kind" in c:
            continue
        own = []
        for i, k in enumerate(c.get("pairs", [])):
            request = key(trace_id, ordinal, i)
            evidence = [
                {"chunk_id": e, "start": (k["window"] or (0,))[0], "end": (k["window"] or (0, len(texts[e])))[1]}
                for e in k["chunks"]
            ]
            rows.add(
                "pairs", recipe=RECIPE, date=night, claim_id=ident, trace_id=trace_id, pair_kind=k["pair_kind"],
                evidence=evidence, cited=set(k["chunks"]) <= set(c.get("cites", [])), request_key=request,
            )  # fmt: skip
            if k["label"] or k["failure"]:
                rows.add(
                    "verdicts", judge_version=JUDGE, date=night, request_key=request, sample=0, label=k["label"],
                    failure=k["failure"], p_supported=k["p"], p_contradicted=k["against"] if k["label"] else None,
                    passages=k.get("named", []), explanation=k["explanation"], engine="replay",
                )  # fmt: skip
            if len(k["chunks"]) == 1 and k["chunks"][0] in c.get("cites", []):
                own.append({"chunk_id": k["chunks"][0], "label": k["label"], "p_supported": k["p"]})
        rows.add(
            "claim_results", recipe=RECIPE, date=night, claim_id=ident, trace_id=trace_id, judge_version=JUDGE,
            status=status, label=label, misused=c.get("misused"), deciding_chunk_id=(c.get("deciding") or [None])[0],
            deciding_chunk_ids=c.get("deciding", []), cited_support=own,
            confidence=c.get("confidence", 0.9 if label else None), n_pairs=len(c.get("pairs", [])),
            patterns=c.get("patterns", []), to_check=label == "supported" and bool(c.get("patterns")),
            language=c.get("language", "en"), abstained_for="language" if c.get("unread") else None, needs_review=bool(c.get("misused")) or status in ("unjudged", "abstained"),
        )  # fmt: skip
        tally[label or status] = tally.get(label or status, 0) + 1
    refuses = any(c.get("kind") == "refusal" for c in claims)
    claims = [c for c in claims if "kind" not in c]
    misused = sum(bool(c.get("misused")) for c in claims)
    judged = sum(c.get("status", "judged") == "judged" for c in claims)
    supported = tally.get("supported", 0)
    status = "scored" if judged else "na" if not claims or tally.get("na") else next(iter(tally))
    used = len(chunks) - len(unused or []) if judged else None
    rows.add(
        "trace_scores", recipe=RECIPE, date=night, trace_id=trace_id, app=app, generator=generator,
        prompt_version="v4", judge_version=JUDGE, groundedness_status=status, groundedness_na="refusal" if refuses else None,
        groundedness_score=max(0.0, 100 * (supported - 2 * misused) / judged) if judged else None,
        faithfulness=supported / judged if judged else None, claims_total=len(claims), claims_judged=judged,
        claims_supported=supported, claims_partial=tally.get("partially_supported", 0),
        claims_unsupported=tally.get("unsupported", 0), claims_contradicted=tally.get("contradicted", 0),
        claims_misused=misused, claims_escalated=0, claims_unread=sum(bool(c.get("unread")) for c in claims),
        claims_to_check=sum(c.get("label") == "supported" and bool(c.get("patterns")) for c in claims),
        citation_recall=supported / judged if judged else None, claims_unjudged=tally.get("unjudged", 0), claims_abstained=tally.get("abstained", 0),
        citations_dangling=sum(len(c.get("dangling", [])) for c in claims), chunks_retrieved=len(chunks),
        chunks_used=used, chunks_unused=(unused or []) if judged else None,
        utilization=used / len(chunks) if judged and used is not None else None,
        chunks_relevant=len(chunks) if context is not None else None,
        context_relevance_status="scored" if context is not None else "na", context_relevance=context,
        answer_relevance_status="scored" if relevance is not None else "unjudged", answer_relevance=relevance,
        diagnosis=diagnosis,
    )  # fmt: skip
    for i, c in enumerate(chunks):
        rows.add(
            "relevance", scorer_version=SCORER, date=night, trace_id=trace_id, kind="context",
            chunk_id=c["chunk_id"], method="embedding", score=None if context is None else context - 0.1 * i,
        )  # fmt: skip


def nightly(rows: Rows, nights: int = 1, judge: str = JUDGE) -> None:
    """Nightly rows that agree with the trace scores of the night, and earlier nights before it."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for s in rows.tables["trace_scores"]:
        groups.setdefault((s["app"], s["generator"]), []).append(s)
    rng = random.Random(7)
    for (app, generator), scores in groups.items():
        for back in range(nights):
            _night(rows, app, generator, scores, NIGHT - timedelta(back), judge, rng.uniform(-4, 4) if back else 0)


def _night(rows: Rows, app: str, generator: str, scores: list[dict[str, Any]], night: date, judge: str, off: float) -> None:  # fmt: skip
    ident = {"recipe": RECIPE, "date": night, "app": app, "generator": generator, "judge_version": judge, "n": len(scores)}  # fmt: skip

    def counts(column: str) -> dict[str, int]:
        return {
            "n_scored": sum(s[column] == "scored" for s in scores),
            **{f"n_{w}": sum(s[column] == w for s in scores) for w in ("na", "unjudged", "abstained")},
        }

    def stats(prefix: str, column: str, top: float = 1) -> dict[str, float | None]:
        values = [s[column] for s in scores if s[column] is not None]
        if not values:
            return {}
        mean = min(top, max(0.0, sum(values) / len(values) + off * top / 100))
        half = top * 0.35 / len(values) ** 0.5 if len(values) > 1 else None
        ends = {f"{prefix}_low": max(0.0, mean - half), f"{prefix}_high": min(top, mean + half)} if half else {}
        return {f"{prefix}_mean": mean, **ends}

    sums = {
        c: sum(s[c] for s in scores)
        for c in TABLES["nightly_groundedness"].schema.names
        if (c.startswith("claims_") or c == "citations_dangling") and c in scores[0]
    }
    rows.add(
        "nightly_groundedness", **ident, **counts("groundedness_status"),
        **stats("groundedness", "groundedness_score", 100), **stats("faithfulness", "faithfulness"), **sums,
        **stats("citation_recall", "citation_recall"),
    )  # fmt: skip
    rows.add("nightly_utilization", **ident, **counts("groundedness_status"), **stats("utilization", "utilization"))
    for kind in ("context", "answer"):
        rows.add("nightly_relevance", **ident, kind=kind, **counts(f"{kind}_relevance_status"), **stats("relevance", f"{kind}_relevance"))  # fmt: skip
    diagnosed = sum(s["diagnosis"] is not None for s in scores)
    found = [s["diagnosis"] or "none" for s in scores]
    for d in sorted(set(found)):
        share = found.count(d) / diagnosed if d != "none" else None
        around = {"share_low": max(0, share - 0.1), "share_high": min(1, share + 0.1)} if share is not None else {}
        rows.add("nightly_triad", **{**ident, "n": found.count(d)}, diagnosis=d, share=share, **around)
    met = [s["waterfall"] for s in scores if s["waterfall"]]
    for position, stage in enumerate(WATERFALL if met else (), 1):
        share = met.count(stage) / len(met)
        rows.add(
            "nightly_waterfall", **{**ident, "n": len(met)}, position=position, stage=stage,
            n_reached=sum(WATERFALL.index(m) >= position - 1 for m in met), n_stopped=met.count(stage), share=share,
            share_low=share / 2, share_high=(1 + share) / 2,
        )  # fmt: skip
