"""Judge one night on a stub server in this process. `bench.speed.peers_stub` runs and measures it as a child process.

    python -m bench.speed.night_on_stub FOLDER URL [--retry-failures] [--record FILE] [--shard-requests N]

Creates FOLDER, or continues the night in it. The stages are those of a nightly run; then the rater model rates
relevance. Prints one JSON object.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench import common
from bench.common import Meter, Metered, measured
from bench.nights import STAGES, without_embedding
from bench.speed import stub
from tasks.core.schemas import CLAIM_RESULTS, TRACE_SCORES, TRACES, VERDICTS
from tasks.engines.openai._wire import Wire
from tasks.judges import rater_model
from tasks.run.build import build_context
from tasks.text.windows import windows

COUNTED = {
    "calls": "calls",
    "prompt": "prompt_tokens",
    "cached": "prefix_hit_tokens",
    "written": "completion_tokens",
}


def record(path: Path) -> None:
    """Write the body of every request from now on, one per line."""
    encode, out = Wire.encode, path.open("wb")

    def recorded(self: Wire, prompt: Any) -> bytes:
        body = encode(self, prompt)
        out.write(body + b"\n")
        return body

    Wire.encode = recorded  # type: ignore[method-assign]


def night(folder: Path, server: stub.Stub, shard_requests: int, *, retry_failures: bool) -> dict[str, Any]:
    """Run a night; returns the cost by phase, and the results."""
    config = stub.night(folder, server.url, shard_requests)
    day = stub.NIGHT.date()
    ctx: Any = build_context(config, day, day, today=day)
    meter = Meter()
    judge = replace(ctx.judges[0], judge=Metered(ctx.judges[0].judge, "judge", meter=meter))
    ctx = without_embedding(ctx, judges=(judge,))
    before = states(ctx)
    phases: dict[str, dict[str, float]] = {}
    engine: dict[str, dict[str, float]] = {}

    def phase(name: str, work: Callable[[], object], *, by_engine: bool = False) -> None:
        start = server.stats()
        found = measured(name, work)
        end = server.stats()
        phases[found.pop("stage")] = found | {ours: end[theirs] - start[theirs] for ours, theirs in COUNTED.items()}
        if by_engine:
            engine[name] = meter.take()

    # One-time costs of a process: Great Expectations, and the client of the first engine.
    phase("imports", lambda: [__import__(name) for name in ("great_expectations.expectations", "aiohttp", "tenacity")])
    for name in ("ingest", "claims", "pairs"):
        phase(name, partial(STAGES[name], ctx))
    for name, stage in (("single pairs", "verdicts"), ("joint pairs", "joint pairs")):
        phase(name, partial(STAGES[stage], ctx, retry_failures=retry_failures), by_engine=True)
    grades = folder / "grades.json"
    phase("grades", lambda: grade(ctx, folder / "relevance.yaml", grades, meter), by_engine=True)
    phase("scores", lambda: (STAGES["relevance"](ctx), STAGES["scores"](ctx)))
    results = ctx.lake.frame(CLAIM_RESULTS, ctx.recipe).select("claim_id", "status", "label", "misused")
    return {
        "phases": phases,
        "engine": engine,
        "before": before,
        "after": states(ctx),
        "traces": ctx.lake.frame(TRACE_SCORES, ctx.recipe).height,
        "claims": {claim: result for claim, *result in results.iter_rows()},
        "grades": json.loads(grades.read_text()),
    }


def states(ctx: Any) -> dict[str, str | None]:
    """Failure of each request's latest verdict; None if it did not fail."""
    columns = ["request_key", "failure", "created_at"]
    rows = ctx.lake.frame(VERDICTS, ctx.judges[0].judge.version, columns=columns)
    return dict(rows.sort("created_at", maintain_order=True).select(columns[:2]).iter_rows())


def grade(ctx: Any, config: Path, kept: Path, meter: Meter) -> None:
    """Grade every trace without a grade; the passages are those of the judge's packs."""
    done: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    done = {trace: found for trace, found in done.items() if found["failure"] is None}
    words = ctx.settings.pairing.window_words
    inputs = {
        row["trace_id"]: {
            "passages": [c["text"][a:b] for c in row["chunks"] for a, b in windows(c["text"], words)],
            "question": row["question"],
            "answer": row["answer"],
        }
        for row in ctx.lake.frame(TRACES).iter_rows(named=True)
        if row["trace_id"] not in done
    }
    rater = rater_model.load(config, ("passages", "question", "answer"))
    found = meter.run(rater.rate, list(inputs.values()))
    rater.close()
    new = {t: {"values": dict(g.values), "failure": g.failure} for t, g in zip(inputs, found, strict=True)}
    kept.write_text(json.dumps({**done, **new}))


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
