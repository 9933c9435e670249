"""Claims that people have labeled, read into one shape for fitting and measuring judges.

Three formats: a folder with `traces.jsonl` and `labels.jsonl` (real traces; `support` per claim), a folder of authored
documents (of which the held-out tenth is read), and a file of lines `{claim, chunks[], label}`. Labels become 1 for
supported and 0 for the rest, partially supported included; claims without a citation or without a usable label are
left out and counted.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.common import ROOT
from tasks.core import keys
from tasks.core.types import Request
from tasks.extractors.cut.markdown import plain_text
from training import authored

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
REFERENCE = re.compile(r"\s*\[\d+(?:\s*[,;–-]\s*\d+)*\]")  # the only style of these data
SUPPORT = {"Complete": "supported", "Partial": "partially_supported", "Incomplete": "unsupported"}
USABLE = {"supported", "partially_supported", "unsupported", "not_supported", "contradicted"}


@dataclass(frozen=True)
class Claims:
    """Labeled claims and the requests a judge gets for them, one per (claim, chunk).

    Attributes:
        labels: What people said of each claim.
        clusters: Which claims belong together (the trace, or the same chunks), for folds and intervals.
        requests: All requests, claim after claim.
        owners: Index of the claim of each request.
        skipped: Claims left out, by reason.
    """

    labels: list[str]
    clusters: list[str]
    requests: list[Request]
    owners: Ints
    skipped: Counter[str]

    @property
    def truth(self) -> Ints:
        """1 where people call the claim supported (claims,)."""
        return np.array([label == "supported" for label in self.labels], dtype=np.int64)

    def best(self, scores: Floats) -> Floats:
        """Highest score of each claim's requests: a claim is as supported as its best chunk says. (claims,)."""
        out = np.full(len(self.labels), -np.inf)
        np.maximum.at(out, self.owners, scores)
        return out


def shared() -> Path:
    """The folder of labeled data: $LEADLINE_SHARED/data, or `shared/data` beside the repository."""
    return Path(os.environ.get("LEADLINE_SHARED", ROOT.parent / "shared")) / "data"


def default_data() -> Path:
    """The labeled real traces."""
    return shared() / "expertqa/dev"


def default_sets() -> dict[str, Claims]:
    """Everything at hand that judges are measured on: real traces, files of claims, the authored documents by kind."""
    files = [shared() / f"nli/dev/{name}.jsonl" for name in ("wice", "qags_cnndm", "climate_fever", "covidfact")]
    found = {_name(path): load(path) for path in (default_data(), *files) if path.exists()}
    documents = [d for d in authored.read(ROOT / "training/data/authored") if authored.held_out(d)]
    for source in ("authored", "natural"):
        found[source] = _from_rows(authored.labeled(d for d in documents if d.source == source))
    return found


def load(path: Path) -> Claims:
    """Labeled claims from a folder or from one file."""
    if not path.exists():
        raise SystemExit(f"{path} does not exist. Name labeled data with --data, or set LEADLINE_SHARED.")
    if not path.is_dir():
        return _from_rows(read_jsonl(path))
    if (path / "traces.jsonl").exists():
        return _from_traces(path)
    return _from_rows(authored.labeled(d for d in authored.read(path) if authored.held_out(d)))


def load_all(paths: Sequence[Path] | None = None) -> dict[str, Claims]:
    """Labeled sets by name, by default `default_sets`."""
    if not paths:
        return default_sets()
    found = {_name(path): load(path) for path in paths}
    if len(found) < len(paths):
        raise SystemExit(f"Two of {', '.join(map(str, paths))} have the same name. Rename one: sets are told by it.")
    return found


def _name(path: Path) -> str:
    return path.parent.name if path.name == "dev" else path.stem


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _from_traces(folder: Path) -> Claims:
    texts = {
        t["trace_id"]: {c["chunk_id"]: c["text"] for c in t["chunks"]} for t in read_jsonl(folder / "traces.jsonl")
    }
    rows = []
    skipped: Counter[str] = Counter()
    for row in read_jsonl(folder / "labels.jsonl"):
        chunks = [texts[row["trace_id"]][c] for c in row["cited_chunk_ids"] if c in texts[row["trace_id"]]]
        label = SUPPORT.get(row["support"])
        if label is None or not chunks:
            skipped[f"label {row['support']}" if label is None else "cites nothing in the trace"] += 1
            continue
        rows.append((row["claim"], chunks, label, row["trace_id"]))
    return _claims(rows, skipped)


def _from_rows(found: Iterable[Mapping[str, Any]]) -> Claims:
    rows = []
    skipped: Counter[str] = Counter()
    for row in found:
        if row["label"] not in USABLE or not row["chunks"]:
            skipped["no chunks" if row["label"] in USABLE else f"label {row['label']}"] += 1
            continue
        rows.append((row["claim"], row["chunks"], row["label"], keys.key(*row["chunks"])))
    return _claims(rows, skipped)


def _claims(rows: Sequence[tuple[str, list[str], str, str]], skipped: Counter[str]) -> Claims:
    requests, owners = [], []
    for i, (claim, chunks, _, _) in enumerate(rows):
        said = plain_text(REFERENCE.sub("", claim))
        for chunk in chunks:
            requests.append(Request(keys.request_key(chunk, said), chunk, said))
            owners.append(i)
    return Claims([r[2] for r in rows], [r[3] for r in rows], requests, np.array(owners, dtype=np.int64), skipped)
