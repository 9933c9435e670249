"""Generate traces for benchmarks: five cited sentences and five chunks of 120 words. Only their shape is realistic."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

WORDS = (
    "server storage quota default limit retry upload folder share token request client version backup restore region "
    "policy admin user group login session cache index query result error log metric node cluster replica snapshot "
    "encrypt key rotate expire monthly daily hour minute second gigabyte plan price invoice account support ticket"
).split()


def traces(n: int, seed: int = 7) -> Iterator[bytes]:
    """`n` JSON lines of about 4.7 kB on one day, from two generators."""
    rng = random.Random(seed)
    start = datetime(2026, 11, 1, tzinfo=UTC)
    step = timedelta(seconds=86_000 / max(n, 1))
    for i in range(n):
        chunks = [
            {"chunk_id": str(c + 1), "doc_id": f"doc-{rng.randrange(500)}", "rank": c + 1, "text": _text(rng, 8, 15)}
            for c in range(5)
        ]
        answer = " ".join(f"{_text(rng, 1, 14)[:-1]} {rng.randrange(100)} [{c + 1}]." for c in range(5))
        yield msgspec.json.encode({
            "trace_id": f"gen-{i:07d}",
            "timestamp": (start + step * i).isoformat(),
            "app": "bench",
            "generator": f"model-{i % 2}",
            "question": _text(rng, 1, 12),
            "answer": answer,
            "chunks": chunks,
        })  # fmt: skip


def write(path: Path, n: int) -> Path:
    """Write the traces to a file, unless it exists already."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            out.writelines(line + b"\n" for line in traces(n))
    return path


def _text(rng: random.Random, sentences: int, words: int) -> str:
    return " ".join(" ".join(rng.choices(WORDS, k=words)).capitalize() + "." for _ in range(sentences))
