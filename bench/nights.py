"""Nights for benchmarks: configs, and the stages of a nightly run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tasks import scorers
from tasks.claims.extract import extract_claims
from tasks.engines.transformers_cpu import Embedded
from tasks.ingest.ingest import ingest
from tasks.judging.pairs import plan_pairs
from tasks.judging.relevance import score_relevance
from tasks.judging.verdicts import judge_joint_pairs, judge_pairs
from tasks.run.context import Context
from tasks.scoring.score import score_traces

STAGES: dict[str, Callable[[Context], Any]] = {
    "ingest": ingest,
    "claims": extract_claims,
    "pairs": plan_pairs,
    "verdicts": judge_pairs,
    "joint pairs": judge_joint_pairs,
    "relevance": score_relevance,
    "scores": score_traces,
}


def configure(
    folder: Path, traces: str | Path, recipe: Any, models: Mapping[str, Mapping[str, Any]] | None = None, **keys: Any
) -> Path:
    """Write a nightly config into a folder, which also gets the lake; returns the config's path.

    Args:
        traces: Path of JSON lines, relative to the folder.
        recipe: Settings or file of the recipe.
        models: Contents of YAML files to write beside the config, by name.
        keys: Further keys of the config.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "lake": "lake",
        "warehouse": "leadline.duckdb",
        "report": {"dir": "report"},
        "sources": [{"kind": "jsonl", "paths": [str(traces)]}],
        "recipes": [str(recipe) if isinstance(recipe, Path) else recipe],
        **keys,
    }
    for name, settings in {**(models or {}), "nightly.yaml": config}.items():
        (folder / name).write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return folder / "nightly.yaml"


class FreeEmbedder:
    """An embedder that reads nothing and costs nothing."""

    version = "free"

    def embed(self, texts: Sequence[str]) -> Embedded:
        vectors = np.zeros((len(texts), 2), np.float32)
        vectors[:, 0] = 1
        return Embedded(vectors, np.zeros(len(texts), np.int64))

    def close(self) -> None:
        """Do nothing."""


def without_embedding(ctx: Context, **changes: Any) -> Context:
    """Replace the embedder of a context by `FreeEmbedder`, and other fields as given."""
    embedder: Any = FreeEmbedder()
    return replace(ctx, embedder=embedder, scorers=scorers.load(ctx.settings, embedder), **changes)
