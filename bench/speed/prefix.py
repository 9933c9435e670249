"""Savings from sorting requests and from a cheap first judge: tokens, requests and seconds of a language model.

    python -m bench.speed.prefix [order] [cascade] [--rounds 3] [--traces 40] [--cache-tokens 32768] [--json FILE]

vLLM on the CPU runs the tiny random model of the tests. Tokens and requests would be the same for a model of any size,
but seconds are those of this model, which reads at almost no cost. `order` compares the pipeline's requests for
generated traces in sorted and in random order; the cache has room for only a few traces and is emptied before each
order. `cascade` compares the bundled sample judged by the language model alone with a cascade:
`configs/judges/nli.yaml` first, and the language model for the most uncertain claims. Models are loaded beforehand.
Ratios are computed within a round; medians and ranges over the rounds are printed.
"""

import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import common
from bench.common import ROOT, Metered, load_average, ratios, spread
from bench.nights import STAGES, configure, without_embedding
from bench.speed.generate import traces
from tasks import judges
from tasks.core import keys
from tasks.core.types import Request
from tasks.engines.vllm import _host
from tasks.judging.pairs import pair_parts
from tasks.judging.stored_verdicts import all_verdicts, claim_results
from tasks.judging.verdicts import open_requests
from tasks.run.build import build_context
from tasks.run.plan import trace_parts
from tasks.run.work import shards

DAYS = date(2026, 11, 1), date(2026, 11, 3)  # of the bundled sample; generated traces are of the first day
BANDS = (
    [0.2, 0.8],
    [0.35, 0.65],
    [0.4, 0.6],
    [0.45, 0.55],
)  # the last band is measured; for the others, only the share of claims
POSITIONS = 8192  # more than the tests' model, so that a pack fits
CACHE_BYTES = 1024  # per token of that model: 2 layers, keys and values, 2 heads of 32 numbers of 4 bytes
SEQUENCES = 8  # concurrent sequences; their prompts must fit into the cache
PARTS = {"order": ("sorted", "shuffled"), "cascade": ("cascade", "llm alone")}


def built(folder: Path) -> Path:
    """Build the tests' tiny chat model with more positions."""
    sys.path.insert(0, str(ROOT / "tests"))
    from kit.models import llms

    llms.build(folder)
    for name, key in (("config.json", "max_position_embeddings"), ("tokenizer_config.json", "model_max_length")):
        settings = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**settings, key: POSITIONS}))
    return folder


def written(folder: Path, source: Path, recipe: dict[str, Any]) -> Path:
    """Write a nightly config and the file of the language model's judge."""
    model = {
        "model": str(folder.parent / "model"),
        "dtype": "float32",
        "max_tokens": POSITIONS,
        "offline": {"max_sequences": SEQUENCES},
    }
    judge = {"kind": "llm", "prompt": str(ROOT / "configs/prompts/entailment/v1.md"), "model": model}
    return configure(folder, source, recipe, {"llm.yaml": judge})


class Kept(Metered):
    """A judge that stays loaded from round to round."""

    def __init__(self, judge: Any) -> None:
        super().__init__(judge, "judge")

    def close(self) -> None:
        """Do nothing, so that the model stays loaded."""

    def reset(self) -> None:
        """Empty the counts and the prefix cache."""
        self.meter.take()
        if hasattr(self._inner, "_generator"):
            self._inner._generator._host.llm.reset_prefix_cache()  # noqa: SLF001 - no public API


def planned(config: Path, days: tuple[date, date], judges: dict[str, Kept] | None = None) -> Any:
    """A context after the stages ingest, claims and pairs."""
    ctx: Any = build_context(config, *days, today=days[-1])
    cascade = tuple(replace(j, judge=judges[j.name]) for j in ctx.judges) if judges else ctx.judges
    ctx = without_embedding(ctx, judges=cascade)
    for stage in ("ingest", "claims", "pairs"):
        STAGES[stage](ctx)
    return ctx


# Order ------------------------------------------------------------------------------------------------------------


def orders(ctx: Any) -> dict[str, list[Any]]:
    """Requests of single pairs, in the pipeline's order and shuffled."""
    member = ctx.judges[0]
    with ctx.queries() as queries:
        found = [
            request
            for part in trace_parts(ctx)
            for request in open_requests(ctx, queries, member, part, pair_parts(ctx, part, member)[:1])
        ]
    limits = ctx.config.limits
    cut = shards(found, limits.shard_requests, held=limits.sort_requests, order=attrgetter("shown"))
    in_order = [r for shard in cut for r in shard]
    return {"sorted": in_order, "shuffled": random.Random(0).sample(found, len(found))}


def order(folder: Path, llm: Kept, rounds: int, n: int) -> list[dict[str, dict[str, float]]]:
    source = folder / "generated.jsonl"
    source.write_bytes(b"".join(line + b"\n" for line in traces(n)))
    recipe = {"judge": "llm.yaml", "pairing": {"kind": "all_chunks"}}
    ctx = planned(written(folder / "order", source, recipe), (DAYS[0], DAYS[0]))
    requests = orders(ctx)

    def work(name: str) -> dict[str, float]:
        llm.reset()
        verdicts = llm.judge(requests[name])
        prompt = sum(v.tokens_in for v in verdicts)
        computed = prompt - sum(v.tokens_cached for v in verdicts)
        return {"requests": len(verdicts), "prompt": prompt, "computed": computed, "seconds": llm.meter.wall}

    return alternating(rounds, requests, work)


def alternating(
    rounds: int, names: Iterable[str], work: Callable[[str], dict[str, float]]
) -> list[dict[str, dict[str, float]]]:
    """Run `work` on all names in each round, alternating the order between rounds."""
    return [{name: work(name) for name in sorted(names, reverse=n % 2 == 1)} for n in range(rounds)]


# Cascade ----------------------------------------------------------------------------------------------------------


def cascade(folder: Path, llm: Kept, rounds: int) -> list[dict[str, dict[str, float]]]:
    """Judge the bundled sample's three nights with each recipe."""
    nli = ROOT / "configs/judges/nli.yaml"
    packs = {"kind": "all_chunks"}
    recipes: dict[str, dict[str, Any]] = {
        "llm alone": {"judge": "llm.yaml", "pairing": packs},
        "cascade": {"judge": str(nli), "cascade": [{"band": BANDS[-1], "judge": "llm.yaml", "pairing": packs}]},
    }
    kept = {"llm": llm, "nli": Kept(judges.load(nli))}
    kept["nli"].judge(warm_up())
    night = count(1)

    def work(name: str) -> dict[str, float]:
        config = written(folder / f"{name}-{next(night)}", ROOT / "data/sample/2026-*.jsonl*", recipes[name])
        return judged(planned(config, DAYS, kept), kept)

    done = alternating(rounds, recipes, work)
    kept["nli"]._inner.close()  # noqa: SLF001
    return done


def judged(ctx: Any, kept: dict[str, Kept]) -> dict[str, float]:
    """Requests and tokens of the language model, and the seconds of both judges."""
    for judge in kept.values():
        judge.reset()
    found: dict[str, float] = {}
    for member in ctx.judges:
        for name, stage in (("single pairs", "verdicts"), ("joint pairs", "joint pairs")):
            done: Any = STAGES[stage](ctx, stage=member.stage)
            if member.name == "llm":
                found |= {f"requests, {name}": done.computed, f"tokens, {name}": done.tokens_in}
                found[f"computed, {name}"] = done.tokens_in - done.tokens_cached
    llm = next(m for m in ctx.judges if m.name == "llm")
    parts = trace_parts(ctx)
    shown = [single.read(["claim_id"])["claim_id"].to_pylist() for p in parts for single in pair_parts(ctx, p, llm)[:1]]
    found["claims"] = len({claim for claims in shown for claim in claims})
    if llm.stage > 1:
        found |= shares(ctx)
    return found | {f"seconds, {name}": judge.meter.wall for name, judge in kept.items()}


def shares(ctx: Any) -> dict[str, float]:
    """Percent of judged claims that each band would send to the language model."""
    first = ctx.judges[:1]
    with ctx.queries() as queries:
        found = [
            row
            for part in trace_parts(ctx)
            for row in claim_results(ctx, queries, part, first, all_verdicts(ctx, queries, part, first)[0]).to_pylist()
            if row["status"] != "na"
        ]
    sure = [row["p_supported"] if row["status"] == "judged" else None for row in found]
    return {f"% in {lo}–{hi}": 100 * sum(p is None or lo <= p < hi for p in sure) / len(sure) for lo, hi in BANDS}


def warm_up() -> list[Any]:
    """A request to load a model with."""
    return [Request(keys.request_key("Tea is hot.", "Tea is hot."), "Tea is hot.", "Tea is hot.")]


# All --------------------------------------------------------------------------------------------------------------


def measure(whats: Sequence[str], rounds: int, n: int, cache_tokens: int) -> dict[str, Any]:
    load = load_average()
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name:
        folder = Path(name)
        built(folder / "model")
        file = written(folder / "judge", folder, {}).with_name("llm.yaml")
        found: dict[str, Any] = {}
        for what in whats:
            before = _host.CPU_CACHE_BYTES
            _host.CPU_CACHE_BYTES = cache_tokens * CACHE_BYTES if what == "order" else before
            llm = Kept(judges.load(file))
            try:
                llm.judge(warm_up())
                found[what] = order(folder, llm, rounds, n) if what == "order" else cascade(folder, llm, rounds)
            finally:
                llm._inner.close()  # noqa: SLF001
                _host.CPU_CACHE_BYTES = before
        return {**found, "traces": n, "cache_tokens": cache_tokens, "load": load}


def show(found: dict[str, Any]) -> None:
    console = Console(width=120)
    for what, names in PARTS.items():
        if what not in found:
            continue
        rounds = found[what]
        columns = ("", *names, f"{names[0]} / {names[1]}")
        table = common.table(f"{what}, median of {len(rounds)} rounds", columns)
        for key in rounds[0][names[0]]:
            digits = 2 if key.startswith("seconds") else 0
            columns = (
                spread([r[name][key] for r in rounds], digits) if key in rounds[0][name] else "" for name in names
            )
            over = ratios(rounds, key, *names)
            table.add_row(key, *columns, spread(over, 2) if over else "")
        console.print(table)
    console.print(
        f"order: {found['traces']} generated traces, cache of {found['cache_tokens']:,} tokens; "
        f"cascade: band {BANDS[-1]}; load average before {found['load']}",
        highlight=False,
    )


def main() -> None:
    parser = common.parser(__doc__, rounds=3)
    parser.add_argument("--traces", type=int, default=40)
    parser.add_argument("--cache-tokens", type=int, default=32_768)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: both")
    args = parser.parse_args()
    result = measure(args.parts or list(PARTS), args.rounds, args.traces, args.cache_tokens)
    common.save(args.json, result)
    show(result)


if __name__ == "__main__":
    main()
