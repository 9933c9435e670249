"""Small worlds for end-to-end tests: seeded traces, a config with a lake of its own, commands, and whole tables."""

import contextlib
import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import yaml

from tasks.claims import extract as claims
from tasks.core.schemas import TABLES
from tasks.gates.gates import GateKeeper
from tasks.ingest import ingest
from tasks.judging import grades, pairs, relevance, verdicts
from tasks.publish import publish
from tasks.run.context import Context
from tasks.run.result import StageResult
from tasks.scoring import alerts, grace, nightly, score
from tasks.scoring import corrected as reviewed

FIRST = date(2026, 11, 1)
WORDS = (
    "backup", "client", "server", "folder", "quota", "link", "token", "session", "upload", "mirror", "index", "shard",
    "reader", "writer", "retention", "policy", "audit", "sync", "share", "guest", "owner", "region", "bucket",
)  # fmt: skip
# Columns that say when something happened, or that are salted for one lake.
DIFFERING = {
    "verdicts": {"created_at"},
    "feedback": {"read_at"},
    "sources": {"ingested_at"},
    "trace_scores": {"question_id", "session_id"},
}


@dataclass(frozen=True)
class World:
    """A config and where it writes."""

    config: Path
    out: Path

    @property
    def lake(self) -> Path:
        return self.out / "lake"

    @property
    def warehouse(self) -> Path:
        return self.out / "leadline.duckdb"

    @property
    def log(self) -> Path:
        """Every request that the replay judge was paid for, a key a line."""
        return self.out / "judged.log"


def make_world(
    root: Path, name: str = "out", *, judge: Mapping[str, Any] | None = None, **settings: Mapping[str, Any]
) -> World:
    """A config in `root` that reads `root/logs/*.jsonl`, judges by replay and writes below `root/name`."""
    (root / name).mkdir(parents=True)
    (root / "logs").mkdir(exist_ok=True)
    world = World(root / f"{name}.yaml", root / name)
    (world.out / "replay.yaml").write_text(yaml.safe_dump({"kind": "replay", "log": str(world.log), **(judge or {})}))
    config = {
        "lake": f"{name}/lake",
        "warehouse": f"{name}/leadline.duckdb",
        "report": {"dir": f"{name}/report", "max_trace_pages": 5},
        "sources": [{"kind": "jsonl", "paths": ["logs/*.jsonl"]}],
        "recipe": {"judge": f"{name}/replay.yaml", "relevance": {"threads": 1}},
        **settings,
    }
    world.config.write_text(yaml.safe_dump(config, sort_keys=False))
    return world


def trace(trace_id: str, **changes: Any) -> dict[str, Any]:
    """A good trace: two sentences, two chunks, the first one cited."""
    return {
        "trace_id": trace_id,
        "timestamp": f"{FIRST}T12:00:00Z",
        "app": "docs",
        "generator": "large",
        "question": "How long are backups kept?",
        "answer": "Backups are kept for thirty days [1]. The owner may extend the retention window.",
        "chunks": [
            {"chunk_id": "1", "text": "Backups are kept for thirty days."},
            {"chunk_id": "2", "text": "A guest can read a shared folder."},
        ],
        **changes,
    }


def make_traces(seed: int, count: int, days: int) -> list[dict[str, Any]]:
    """Traces in time order; passages and sentences recur, so that some requests are the same in several traces."""
    rng = random.Random(seed)
    passages = [_sentences(rng, rng.randint(1, 4)) for _ in range(25)]
    output = [_sentence(rng) for _ in range(40)]
    found = []
    for i in range(count):
        # Every ninth trace has no context at all.
        chunks = [{"chunk_id": str(n + 1), "text": t} for n, t in enumerate(rng.sample(passages, rng.randint(1, 4)))]
        chunks = [] if i % 9 == 4 else chunks
        cited = [f" [{rng.randint(1, len(chunks) + 1)}]" if rng.random() < 0.7 else "" for _ in range(3)]
        sentences = [rng.choice(output) if rng.random() < 0.6 else _sentence(rng) for _ in range(rng.randint(1, 3))]
        answer = " ".join(f"{s[:-1]}{c}." for s, c in zip(sentences, cited, strict=False))
        at = datetime.combine(FIRST, datetime.min.time(), UTC) + timedelta(days=days) * (i / count)
        changes: dict[str, Any] = {"generator": rng.choice(["large", "small"]), "question": _sentence(rng)[:-1] + "?"}
        if i % 3 == 0:  # every third is annotated with its right source
            changes["gold_chunk_ids"] = ["1"]
        found.append(trace(f"t{i:04d}", timestamp=at.isoformat(), answer=answer, chunks=chunks, **changes))
    return found


def write(path: Path, rows: Iterable[Mapping[str, Any] | bytes | str]) -> None:
    """One line per row: a mapping as JSON, anything else as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        for row in rows:
            line = json.dumps(row, ensure_ascii=False) if isinstance(row, Mapping) else row
            out.write((line.encode() if isinstance(line, str) else line) + b"\n")


def range_of(first: date, last: date) -> list[str]:
    """The options that name a range of days."""
    return ["--from", str(first), "--to", str(last)]


def read(warehouse: Path, sql: str) -> list[dict[str, Any]]:
    """Rows of a SELECT on a published warehouse."""
    with _opened(warehouse) as connection:
        return _rows(connection, sql)


def tables(warehouse: Path, leave_out: Mapping[str, set[str]] = DIFFERING) -> dict[str, list[str]]:
    """Every row of every table but `runs`, sorted by all columns, without the columns that are left out."""
    found = {}
    with _opened(warehouse) as connection:
        for name in sorted(set(TABLES) - {"runs"}):
            gone = leave_out.get(name, set())
            rows = _rows(connection, f"FROM {name}")
            found[name] = sorted(repr({k: v for k, v in row.items() if k not in gone}) for row in rows)
    return found


def last_run(warehouse: Path) -> dict[str, Any]:
    """The latest record of `runs`, its stages by name."""
    row = read(warehouse, "FROM runs ORDER BY started_at DESC LIMIT 1")[0]
    return row | {"stages": {s["stage"]: s for s in row["stages"]}}


def unbalanced(warehouse: Path) -> list[dict[str, Any]]:
    """Source files of which rows in and rows out differ."""
    return read(warehouse, "FROM sources WHERE rows <> ingested + duplicates + sampled_out + quarantined")


def tree(root: Path, without: Sequence[str] = ()) -> dict[str, str]:
    """Hash of every file below `root`, but for those whose path holds one of the given words."""
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and (name := str(path.relative_to(root))) and not any(word in name for word in without)
    }


def all_stages(ctx: Context, *, published: bool = True) -> list[StageResult]:
    """The nightly without Prefect and without Great Expectations; or as far as the lake goes."""
    ctx = replace(ctx, gates=GateKeeper(ctx.config.gates, None))  # Great Expectations takes longer than all the rest
    stages = (
        ingest.ingest, claims.extract_claims, grace.score_grace, pairs.plan_pairs, verdicts.judge_pairs,
        verdicts.judge_joint_pairs, relevance.score_relevance, grades.grade_answers, score.score_traces,
        nightly.aggregate_nights, reviewed.correct_nights, alerts.find_alerts,
    )  # fmt: skip
    ends = (publish.load_warehouse, publish.write_reports, publish.publish_warehouse) if published else ()
    return [stage(ctx) for stage in (*stages, *ends)]


@contextlib.contextmanager
def _opened(warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def _rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = connection.execute(sql).to_arrow_table().to_pylist()
    return rows


def _sentence(rng: random.Random) -> str:
    return " ".join(["The", *rng.choices(WORDS, k=rng.randint(4, 10))]) + "."


def _sentences(rng: random.Random, count: int) -> str:
    return " ".join(_sentence(rng) for _ in range(count))
