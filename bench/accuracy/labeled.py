"""Read claims that people have labeled into one format, for fitting and measuring judges.

There are three input formats: a folder with `traces.jsonl` and `labels.jsonl` (real traces; `support` per claim), a
folder of authored documents (only the held-out tenth is read), and a file of lines `{claim, chunks[], label}`. Labels
become 1 for supported and 0 for all others, including partially supported. Claims without chunks or without a usable
label are left out and counted.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
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
REFERENCE = re.compile(r"\s*\[\d+(?:\s*[,;–-]\s*\d+)*\]")  # the only citation style in this data
SUPPORT = {"Complete": "supported", "Partial": "partially_supported", "Incomplete": "unsupported"}
DEVELOPMENT = (
    "gensearch", "hagrid", "factcheck_gpt", "wice", "qags_cnndm", "fool_me_twice", "climate_fever", "covidfact"
)  # fmt: skip
USABLE = {"supported", "partially_supported", "unsupported", "not_supported", "contradicted"}


@dataclass(frozen=True)
class Claims:
    """Labeled claims and the requests a judge gets for them, one per (claim, chunk).

    Attributes:
        labels: People's label of each claim.
        clusters: Cluster of each claim (its trace, or claims with the same chunks), for folds and intervals.
        requests: All requests, ordered by claim.
        owners: Index of the claim of each request.
        skipped: Number of claims left out, by reason.
        kinds: Kind of each claim, if the set has kinds, else "".
        pairs: Name of the minimal pair of each claim, else "".
    """

    labels: list[str]
    clusters: list[str]
    requests: list[Request]
    owners: Ints
    skipped: Counter[str]
    kinds: list[str] = field(default_factory=list)
    pairs: list[str] = field(default_factory=list)

    @property
    def truth(self) -> Ints:
        """(claims,) 1 if people call the claim supported, else 0."""
        return np.array([label == "supported" for label in self.labels], dtype=np.int64)

    def best(self, scores: Floats) -> Floats:
        """(claims,) highest score of each claim's requests: the best chunk decides."""
        out = np.full(len(self.labels), -np.inf)
        np.maximum.at(out, self.owners, scores)
        return out

    def drawn(self, most: int | None) -> "Claims":
        """Draw at most this many claims, deterministically and in their original order; None for all."""
        if most is None or most >= len(self.labels):
            return self
        kept = np.sort(np.random.default_rng(0).choice(len(self.labels), most, replace=False))
        asked = np.isin(self.owners, kept)
        return replace(
            self,
            labels=[self.labels[i] for i in kept],
            clusters=[self.clusters[i] for i in kept],
            requests=list(compress(self.requests, asked)),
            owners=np.searchsorted(kept, self.owners[asked]),
            kinds=[self.kinds[i] for i in kept if self.kinds],
            pairs=[self.pairs[i] for i in kept if self.pairs],
        )


def shared() -> Path:
    """The folder of labeled data: $LEADLINE_SHARED/data, or `shared/data` beside the repository."""
    return Path(os.environ.get("LEADLINE_SHARED", ROOT.parent / "shared")) / "data"


def needed(path: Path, remedy: str = "Name labeled data with --data, or set LEADLINE_SHARED.") -> Path:
    """Return the path if it exists; otherwise exit with a remedy."""
    if not path.exists():
        raise SystemExit(f"{path} does not exist. {remedy}")
    return path


def default_data() -> Path:
    """Folder of the labeled real traces."""
    return shared() / "expertqa/dev"


def traces_and_labels(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of a folder's traces and labels."""
    traces, labels = (read_jsonl(needed(folder / f"{name}.jsonl")) for name in ("traces", "labels"))
    return traces, labels


def default_sets() -> dict[str, Claims]:
    """All available sets: real traces, files of claims, authored documents by kind, and the log of two assistants."""
    files = [shared() / f"nli/dev/{name}.jsonl" for name in DEVELOPMENT]
    found = {_name(path): load(path) for path in (default_data(), *files) if path.exists()}
    documents = _held_out(ROOT / "training/data/authored")
    for source in ("authored", "natural", "twins"):
        found[source] = _claims(authored.labeled(d for d in documents if d.source == source))
    found["assistant"] = load(ROOT / "bench/accuracy/assistant")
    return found


def load(path: Path) -> Claims:
    """Labeled claims from a folder or from one file."""
    if not needed(path).is_dir():
        return _claims(read_jsonl(path))
    if (path / "traces.jsonl").exists():
        return _claims(_from_traces(*traces_and_labels(path)))
    return _claims(authored.labeled(_held_out(path)))


def load_all(paths: Sequence[Path] | None = None) -> dict[str, Claims]:
    """Labeled sets by name, by default `default_sets`."""
    if not paths:
        return default_sets()
    found = {_name(path): load(path) for path in paths}
    if len(found) < len(paths):
        raise SystemExit(f"Two of {', '.join(map(str, paths))} have the same name. Rename one.")
    return found


def _name(path: Path) -> str:
    return path.parent.name if path.name == "dev" else path.stem


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _held_out(folder: Path) -> list[authored.Document]:
    return [d for d in authored.read(folder) if authored.held_out(d)]


def _from_traces(traces: Iterable[Mapping[str, Any]], labels: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each labeled claim with the chunks of its trace that it cites."""
    texts = {t["trace_id"]: {c["chunk_id"]: c["text"] for c in t["chunks"]} for t in traces}
    for row in labels:
        own = texts[row["trace_id"]]
        yield {
            "claim": row["claim"],
            "chunks": [own[c] for c in row["cited_chunk_ids"] if c in own],
            "label": SUPPORT.get(row["support"], row["support"]),
            "cluster": row["trace_id"],
        }


def _claims(rows: Iterable[Mapping[str, Any]]) -> Claims:
    """Claims from rows `{claim, chunks[], label}`, clustered by `cluster` or by equal chunks."""
    found = Claims([], [], [], np.array([]), Counter())
    owners = []
    for row in rows:
        chunks, label = row["chunks"], row["label"]
        if label not in USABLE or not chunks:
            found.skipped["no chunks" if label in USABLE else f"label {label}"] += 1
            continue
        hypothesis = plain_text(REFERENCE.sub("", row["claim"]))
        found.requests.extend(Request(keys.request_key(chunk, hypothesis), chunk, hypothesis) for chunk in chunks)
        owners += [len(found.labels)] * len(chunks)
        found.labels.append(label)
        found.clusters.append(row.get("cluster") or keys.key(*chunks))
        found.kinds.append(row.get("kind", ""))
        found.pairs.append(row.get("pair", ""))
    return replace(found, owners=np.array(owners, dtype=np.int64))
