"""A small lake to run stages on: traces by hand, a judge that is watched, an embedder with chosen vectors."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
import yaml
from pydantic import BaseModel

from tasks import scorers
from tasks.core import keys
from tasks.core.errors import EngineError
from tasks.core.schemas import TRACES, Table
from tasks.core.types import Request, Trace, Verdict
from tasks.engines.transformers_cpu import Embedded
from tasks.gates.gates import GateKeeper
from tasks.run.build import build_context
from tasks.run.context import Context
from tasks.run.identity import recipe_definition
from tasks.sources.reading.rows import to_table
from tasks.store.lake import Part

DAY = date(2026, 11, 1)
NEXT = date(2026, 11, 2)
TODAY = date(2026, 11, 10)


def trace(trace_id: str, answer: str = "Tea is hot.", chunks: Mapping[str, str] | None = None, **more: Any) -> dict:
    """A trace as JSON; `chunks` are texts by id."""
    shown = {"a": "Water boils at one hundred degrees."} if chunks is None else chunks
    return {
        "trace_id": trace_id,
        "timestamp": f"{more.pop('day', DAY)}T12:00:00Z",
        "app": "shop",
        "generator": "g-1",
        "question": "How hot is tea?",
        "answer": answer,
        "chunks": [{"chunk_id": c, "text": t, "rank": i} for i, (c, t) in enumerate(shown.items(), 1)],
        **more,
    }


def log(root: Path, name: str, rows: Iterable[object]) -> Path:
    """A source file of the config that `context` writes; a row that is text stands there as it is."""
    path = root / "logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return path


@dataclass
class Watched:
    """A judge that answers by a rule and keeps what it was asked; it is down after `up_for` calls."""

    rule: Callable[[Request], str | Verdict] = lambda request: "supported"
    version: str = "0123456789abcdef"
    engine: str = "watched"
    gpus: int = 0
    up_for: int | None = None
    languages: tuple[str, ...] | None = None
    calls: list[list[Request]] = field(default_factory=list)
    closed: int = 0

    @property
    def asked(self) -> list[Request]:
        return [r for call in self.calls for r in call]

    def describe(self) -> dict[str, object]:
        return {"kind": "watched", "version": self.version}

    def judge(self, requests: Sequence[Request]) -> list[Verdict]:
        if self.up_for is not None and len(self.calls) >= self.up_for:
            raise EngineError("the model is down. Start it.")
        self.calls.append(list(requests))
        return [self._verdict(r) for r in requests]

    def close(self) -> None:
        self.closed += 1

    def _verdict(self, request: Request) -> Verdict:
        found = self.rule(request)
        if isinstance(found, Verdict):
            return replace(found, key=request.key)
        p = {"supported": 0.9, "partially_supported": 0.5}.get(found, 0.1)
        return Verdict(request.key, found, p_supported=p, p_contradicted=0.05, tokens_in=7)  # type: ignore[arg-type]


class Directions:
    """An embedder whose vectors are given by a function of the text; scaled to length 1, zeros stay zeros."""

    version = "fedcba9876543210"

    def __init__(self, of: Callable[[str], Sequence[float]] = lambda text: (1.0, 0.0)) -> None:
        self._of = of
        self.read: list[str] = []

    def describe(self) -> dict[str, object]:
        return {"kind": "directions"}

    def embed(self, texts: Sequence[str]) -> Embedded:
        self.read += texts
        rows = np.array([self._of(t) for t in texts], np.float32).reshape(len(texts), -1)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return Embedded(np.divide(rows, norms, where=norms > 0, out=np.zeros_like(rows)), np.ones(len(texts), np.int64))

    def close(self) -> None:
        """Nothing is held."""


def context(
    root: Path,
    *,
    judge: Watched | None = None,
    later: Sequence[Watched] = (),
    embedder: Directions | None = None,
    first: date = DAY,
    last: date = DAY,
    overlay: Path | None = None,
    sources: list[Any] | None = None,
    recipe: Mapping[str, Any] | None = None,
    **sections: Mapping[str, Any],
) -> Context:
    """A context as `build_context` makes it of a config in `root`, with the judges and the embedder of this file in place.

    Args:
        later: Judges of `recipe.cascade`, whose files are `judge2.yaml` and so on.
    """
    for number in range(len(later) + 1):
        (root / f"judge{number + 1 if number else ''}.yaml").write_text("kind: replay\n")
    config = {
        "lake": "lake",
        "warehouse": "leadline.duckdb",
        "report": {"dir": "report"},
        "sources": sources or [{"kind": "jsonl", "paths": ["logs/*.jsonl"]}],
        "recipe": {"judge": "judge.yaml", **(recipe or {})},
        **sections,
    }
    path = root / "nightly.yaml"
    path.write_text(yaml.safe_dump(config))
    ctx = build_context(path, first, last, overlay=overlay, today=TODAY)
    embedder = embedder or Directions()
    watched = [judge or Watched(), *later]
    if ctx.settings.method == "citations":
        watched *= 2  # one judge, two passes
    judges = tuple(replace(m, judge=w) for m, w in zip(ctx.judges, watched, strict=True))
    own = scorers.load(ctx.settings, embedder)
    relevance = scorers.versions(own, embedder)
    grader = ctx.grader.version if ctx.grader else None
    versions, languages = [w.version for w in watched], [w.languages for w in watched]
    definition = recipe_definition(ctx.settings, ctx.extractor.version, versions, relevance, grader, languages)
    changed = {
        "gates": GateKeeper(ctx.config.gates, None),  # Great Expectations takes longer than all the rest
        "judges": judges,
        "embedder": embedder,
        "recipe": keys.version(definition),
        "definition": definition,
    }
    return replace(ctx, scorers=own, **changed)


def judged_by(ctx: Context, judge: Watched) -> Context:
    """The same context, with another judge in the place of the first, and no other recipe for it."""
    return replace(ctx, judges=(replace(ctx.judges[0], judge=judge), *ctx.judges[1:]))


def put(ctx: Context, *rows: dict[str, Any], name: str = "0000000000000000-00000") -> Part:
    """Traces of one day, in the lake as one part, as if they had been ingested."""
    decoded = [msgspec.convert(r, Trace, strict=False) for r in rows]
    table = to_table(decoded, range(1, len(rows) + 1))
    return ctx.lake.write(TRACES, name, table, str(decoded[0].timestamp.date()))


def rows(ctx: Context, table: Table, *partition: str) -> list[dict[str, Any]]:
    """All rows of a table of the lake."""
    return [r for part in ctx.lake.parts(table, *partition) for r in part.read().to_pylist()]


def leaves(model: type[BaseModel], above: str = "") -> Iterator[str]:
    """Dotted names of the fields of a config and of those inside it."""
    for name, info in model.model_fields.items():
        candidates = [info.annotation, *get_args(info.annotation)]
        candidates += [inner for c in candidates for inner in get_args(c)]
        nested = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        if nested:
            yield from leaves(nested[0], f"{above}{name}.")
        else:
            yield above + name
