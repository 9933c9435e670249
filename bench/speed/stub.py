"""A stub of a model server with made-up replies, and a night that is judged by it.

The stub and its 200 traces are in the folder of shared data (`bench.accuracy.labeled.shared()`), not in this
repository.
"""

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from bench.accuracy.labeled import needed, read_jsonl, shared
from bench.common import ROOT
from bench.nights import configure

NIGHT = datetime(2026, 11, 1, tzinfo=UTC)
STARTS_WITHIN_S = 30
REMEDY = "Set LEADLINE_SHARED to the folder that holds tools/ and data/."
MODEL = {
    "engine": "openai_server",
    "model": "stub",
    "revision": "0" * 40,  # a placeholder: the stub has no weights
    "dtype": "float32",
    "max_tokens": 8192,
}


class Stub:
    """A running stub. Counts start at its start."""

    def __init__(self, url: str) -> None:
        self.url = url

    def stats(self) -> dict[str, Any]:
        """Counts of calls, tokens, tokens from the prefix cache, and injected failures."""
        return self._request("/stats")

    def configure(self, **options: float) -> None:
        """Configure later replies: `latency_ms`, `malformed`, `error`."""
        self._request("/config", json.dumps(options).encode())

    def reset(self) -> None:
        """Reset all counts and the prefix cache."""
        self._request("/reset", b"")

    def _request(self, path: str, data: bytes | None = None) -> dict[str, Any]:
        with urllib.request.urlopen(self.url + path, data, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


@contextlib.contextmanager
def running(**options: float) -> Iterator[Stub]:
    """Run a stub in its own process, on a free loopback port. Options are those of its command line."""
    script = needed(shared().parent / "tools/stub_server.py", REMEDY)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    command = [sys.executable, str(script), "--port", str(port), *flags]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        stub = Stub(f"http://127.0.0.1:{port}")
        if not _answers(stub, process):
            raise SystemExit(f"The stub server did not start. Run it by hand: {' '.join(command)}")
        yield stub
    finally:
        process.terminate()
        process.wait(10)


def _answers(stub: Stub, process: "subprocess.Popen[bytes]") -> bool:
    until = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            stub.stats()
            return True
        time.sleep(0.05)
    return False


def rows() -> list[dict[str, Any]]:
    """The stub's traces: `{id, question, answer, chunks[]}`. References `[1]`, `[2]`, … are positions of chunks."""
    return read_jsonl(needed(shared() / "stub/traces_200.jsonl", REMEDY))


def as_traces(found: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Convert to Leadline's trace format: a second apart, with chunks numbered from 1."""
    for n, row in enumerate(found):
        yield msgspec.json.encode({
            "trace_id": row["id"],
            "timestamp": (NIGHT + timedelta(seconds=n)).isoformat(),
            "app": "stub",
            "generator": "stub",
            "question": row["question"],
            "answer": row["answer"],
            "chunks": [{"chunk_id": str(i), "text": text, "rank": i} for i, text in enumerate(row["chunks"], 1)],
        })  # fmt: skip


def night(folder: Path, url: str, shard_requests: int, concurrency: int = 256) -> Path:
    """Write a nightly config with a judge and a grader on the server at `url`; returns the config's path."""
    model = {**MODEL, "server": {"urls": [f"{url}/v1"], "concurrency": concurrency}}
    prompts = ROOT / "configs/prompts"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "traces.jsonl").write_bytes(b"".join(line + b"\n" for line in as_traces(rows())))
    return configure(
        folder,
        "traces.jsonl",
        {"extractor": {"kind": "sentences"}, "pairing": {"kind": "all_chunks"}, "judge": "judge.yaml"},
        {
            "judge.yaml": {"kind": "llm", "prompt": str(prompts / "entailment/v1.md"), "model": model},
            "relevance.yaml": {"kind": "rater_model", "prompt": str(prompts / "relevance/v1.md"), "model": model},
        },
        limits={"shard_requests": shard_requests},
    )
