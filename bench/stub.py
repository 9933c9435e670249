"""A stub of a model server with answers out of nothing, and a night to judge against it.

The stub and its 200 traces stand in the folder of shared data (`bench.labeled.shared()`), not in this repository.
Left out: what is measured.
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
import yaml

from bench.common import ROOT
from bench.labeled import shared

NIGHT = datetime(2026, 11, 1, tzinfo=UTC)
STARTS_WITHIN_S = 30
MODEL = {
    "engine": "openai_server",
    "model": "stub",
    "revision": "0" * 40,  # of nothing: the stub has no weights
    "dtype": "float32",
    "max_tokens": 8192,
}


class Stub:
    """A running stub; counts are those since it was started."""

    def __init__(self, url: str) -> None:
        self.url = url

    def stats(self) -> dict[str, Any]:
        """Its own account: calls, tokens, those of them in its prefix cache, failures that it was told to make."""
        return self._ask("/stats")

    def configure(self, **options: float) -> None:
        """Change how it answers from now on: `latency_ms`, `malformed`, `error`."""
        self._ask("/config", json.dumps(options).encode())

    def forget(self) -> None:
        """Begin all counts anew, with an empty prefix cache."""
        self._ask("/reset", b"")

    def _ask(self, path: str, data: bytes | None = None) -> dict[str, Any]:
        with urllib.request.urlopen(self.url + path, data, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


@contextlib.contextmanager
def running(**options: float) -> Iterator[Stub]:
    """A stub in a process of its own, on a free port of loopback; options as its command line has them."""
    script = needed(shared().parent / "tools/stub_server.py")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    command = [sys.executable, str(script), "--port", str(port), *flags]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        stub = Stub(f"http://127.0.0.1:{port}")
        if not _answers(stub, process):
            raise SystemExit(f"the stub server did not start. Run it by hand: {' '.join(command)}")
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


def needed(path: Path) -> Path:
    """A file of the shared data."""
    if not path.is_file():
        raise SystemExit(f"{path} does not exist. Set LEADLINE_SHARED to the folder that holds tools/ and data/.")
    return path


def rows(path: Path | None = None) -> list[dict[str, Any]]:
    """The stub's traces: `{id, question, answer, chunks[]}`, chunks in the order of the references `[1]`, `[2]`, …"""
    text = needed(path or shared() / "stub/traces_200.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def as_traces(found: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """The same as lines of Leadline's trace format, a second apart, chunks numbered from 1."""
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


def world(folder: Path, url: str, shard_requests: int, concurrency: int = 256) -> Path:
    """A night's config, its judge and its grader, all asking the server at `url`; returns the config's path."""
    model = {**MODEL, "server": {"urls": [f"{url}/v1"], "concurrency": concurrency}}
    prompts = ROOT / "configs/prompts"
    files: dict[str, dict[str, Any]] = {
        "judge.yaml": {"kind": "llm", "prompt": str(prompts / "entailment/v1.md"), "model": model},
        "relevance.yaml": {"kind": "rater_model", "prompt": str(prompts / "relevance/v1.md"), "model": model},
        "nightly.yaml": {
            "lake": "lake",
            "warehouse": "leadline.duckdb",
            "report": {"dir": "report"},
            "sources": [{"kind": "jsonl", "paths": ["traces.jsonl"]}],
            "recipe": {
                "extractor": {"kind": "sentences"},
                "pairing": {"kind": "all_chunks"},
                "judge": "judge.yaml",
            },
            "limits": {"shard_requests": shard_requests},
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "traces.jsonl").write_bytes(b"".join(line + b"\n" for line in as_traces(rows())))
    for name, settings in files.items():
        (folder / name).write_text(yaml.safe_dump(settings))
    return folder / "nightly.yaml"
