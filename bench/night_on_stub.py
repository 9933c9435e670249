"""One night's judging on a stub server, in this process: what `bench.peers_stub` runs as a child and measures.

    python -m bench.night_on_stub FOLDER URL [--retry-failures] [--record FILE] [--shard-requests N]

FOLDER is made where it is not there, and continued where it is. The stages are those of a nightly run; the rater model
rates relevance after them. Prints one JSON object.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import common, stub
from bench.common import Meter, Metered
from bench.pipeline import FreeEmbedder, measured

COUNTED = {
    "calls": "calls",
    "prompt": "prompt_tokens",
    "cached": "prefix_hit_tokens",
    "written": "completion_tokens",
}
Phases = dict[str, dict[str, float]]


def record(path: Path) -> None:
    """Keep the body of every request from now on, one a line."""
    from tasks.engines import _openai_wire as wire

    encode = wire.Wire.encode
    out = path.open("wb")

    def noted(self: wire.Wire, prompt: Any) -> bytes:
        body = encode(self, prompt)
        out.write(body + b"\n")
        return body

    wire.Wire.encode = noted  # type: ignore[method-assign]


def night(folder: Path, server: stub.Stub, shard_requests: int, *, retry_failures: bool) -> dict[str, Any]:
    """All that is measured of a night, and what it ended with."""
    from tasks.claims import extract as claims
    from tasks.core.schemas import CLAIM_RESULTS, TRACE_SCORES
    from tasks.ingest import ingest
    from tasks.judging import pairs, relevance, verdicts
    from tasks.run.build import build_context
    from tasks.scoring import score

    config = stub.world(folder, server.url, shard_requests)
    day = stub.NIGHT.date()
    ctx: Any = build_context(config, day, day, today=day)
    meter = Meter()
    member = replace(ctx.judges[0], judge=Metered(ctx.judges[0].judge, meter))
    ctx = replace(ctx, embedder=FreeEmbedder(), judges=(member,))
    before = states(ctx)
    phases: Phases = {}

    def phase(name: str, work: Callable[[], object]) -> None:
        start = server.stats()
        found = measured(name, work)
        end = server.stats()
        phases[name] = {k: v for k, v in found.items() if k != "stage"}
        phases[name] |= {ours: end[theirs] - start[theirs] for ours, theirs in COUNTED.items()}

    # What every process pays once: Great Expectations, and the client of the first engine.
    phase("imports", lambda: [__import__(name) for name in ("great_expectations.expectations", "aiohttp", "tenacity")])
    phase("ingest", lambda: ingest.ingest(ctx))
    phase("claims", lambda: claims.extract_claims(ctx))
    phase("pairs", lambda: pairs.plan_pairs(ctx))
    phase("single pairs", lambda: verdicts.judge_pairs(ctx, retry_failures=retry_failures))
    first = meter.take()
    phase("joint pairs", lambda: verdicts.judge_joint_pairs(ctx, retry_failures=retry_failures))
    joint = meter.take()
    grades = folder / "grades.json"
    graded: list[dict[str, Any]] = []
    phase("grades", lambda: graded.append(grade(ctx, folder / "relevance.yaml", grades, meter)))
    grades.write_text(json.dumps(graded[0]))
    rated = meter.take()
    phase("scores", lambda: (relevance.score_relevance(ctx), score.score_traces(ctx)))
    results = [row for part in ctx.lake.parts(CLAIM_RESULTS, ctx.recipe) for row in part.read().to_pylist()]
    return {
        "phases": phases,
        "engine": {"single pairs": first, "joint pairs": joint, "grades": rated},
        "before": before,
        "after": states(ctx),
        "traces": sum(part.rows() for part in ctx.lake.parts(TRACE_SCORES, ctx.recipe)),
        "claims": {row["claim_id"]: [row["status"], row["label"], row["misused"]] for row in results},
        "grades": graded[0],
    }


def states(ctx: Any) -> dict[str, str | None]:
    """Of every request with a verdict: why it failed, None where it did not. The latest verdict counts."""
    from tasks.core.schemas import VERDICTS

    parts = ctx.lake.parts(VERDICTS, ctx.judges[0].judge.version)
    columns = ["request_key", "failure", "created_at"]
    found = sorted((r for p in parts for r in p.read(columns).to_pylist()), key=lambda r: r["created_at"])
    return {r["request_key"]: r["failure"] for r in found}


def grade(ctx: Any, config: Path, kept: Path, meter: Meter) -> dict[str, Any]:
    """Grades of every trace that has none yet, by trace; passages are those of the judge's packs."""
    from tasks.core.schemas import TRACES
    from tasks.judges import rater_model
    from tasks.text.windows import windows

    done: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    done = {trace: found for trace, found in done.items() if found["failure"] is None}
    words = ctx.settings.pairing.window_words
    inputs = {
        row["trace_id"]: {
            "passages": [c["text"][a:b] for c in row["chunks"] for a, b in windows(c["text"], words)],
            "question": row["question"],
            "answer": row["answer"],
        }
        for part in ctx.lake.parts(TRACES)
        for row in part.read().to_pylist()
        if row["trace_id"] not in done
    }
    rater = rater_model.load(config, ("passages", "question", "answer"))
    found = meter.run(rater.rate, list(inputs.values()))
    rater.close()
    new = {t: {"values": dict(g.values), "failure": g.failure} for t, g in zip(inputs, found, strict=True)}
    return {**done, **new}


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("url")
    parser.add_argument("--retry-failures", action="store_true")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--shard-requests", type=int, default=2_048)
    args = parser.parse_args()
    if args.record:
        record(args.record)
    print(json.dumps(night(args.folder, stub.Stub(args.url), args.shard_requests, retry_failures=args.retry_failures)))


if __name__ == "__main__":
    main()
