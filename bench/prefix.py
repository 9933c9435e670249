"""What order and a cheap first judge spare a language model: tokens, requests and seconds, side by side.

    python -m bench.prefix [order] [cascade] [--rounds 3] [--traces 40] [--cache-tokens 32768] [--json FILE]

Real vLLM on the CPU runs the tiny random model of the tests, so tokens and requests are what a model of any size would
be asked for; seconds are this one's, and reading costs it next to nothing. Order: the pipeline's requests about
generated traces, sorted as the pipeline sorts them and shuffled, with a cache that holds few of the traces, emptied
before each. Cascade: the bundled sample by the language model alone, and by `configs/judges/nli.yaml` first and
its most uncertain claims by the language model; models are loaded beforehand. Ratios are taken inside a round; medians
and ranges over the rounds are printed.
"""

import json
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from operator import attrgetter
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from bench import common
from bench.common import ROOT, Metered, spread
from bench.generate import traces
from bench.peers_stub import load
from bench.pipeline import FreeEmbedder
from tasks.run.plan import trace_parts

DAYS = date(2026, 11, 1), date(2026, 11, 3)  # of the bundled sample; generated traces are of the first
BANDS = ([0.2, 0.8], [0.35, 0.65], [0.4, 0.6], [0.45, 0.55])  # the last one is measured, of the others only the share
POSITIONS = 8192  # the tests' model reads fewer, which a pack does not fit in
CACHE_BYTES = 1024  # of a token of that model: 2 layers, keys and values, 2 heads of 32 numbers of 4 bytes
SEQUENCES = 8  # at a time: their prompts must fit into the cache
PARTS = {"order": ("sorted", "shuffled"), "cascade": ("cascade", "llm alone")}
PAIRS = ("single pairs", "joint pairs")


def built(folder: Path) -> Path:
    """The tests' tiny chat model, reading more tokens."""
    sys.path.insert(0, str(ROOT / "tests"))
    from kit.models import llms

    llms.build(folder)
    for name, key in (("config.json", "max_position_embeddings"), ("tokenizer_config.json", "model_max_length")):
        settings = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**settings, key: POSITIONS}))
    return folder


def written(folder: Path, source: Path, recipe: dict[str, Any]) -> Path:
    """A night's config, with the language model's judge beside it."""
    folder.mkdir(parents=True)
    model = {
        "model": str(folder.parent / "model"),
        "dtype": "float32",
        "max_tokens": POSITIONS,
        "offline": {"max_sequences": SEQUENCES},
    }
    judge = {"kind": "llm", "prompt": str(ROOT / "configs/prompts/entailment/v1.md"), "model": model}
    (folder / "llm.yaml").write_text(yaml.safe_dump(judge))
    night = {
        "lake": "lake",
        "warehouse": "leadline.duckdb",
        "report": {"dir": "report"},
        "sources": [{"kind": "jsonl", "paths": [str(source)]}],
        "recipe": recipe,
    }
    (folder / "nightly.yaml").write_text(yaml.safe_dump(night))
    return folder / "nightly.yaml"


class Kept(Metered):
    """A judge that stays loaded from round to round."""

    def close(self) -> None:
        """Not yet."""

    def forget(self) -> None:
        """Count anew, from an empty prefix cache."""
        self.meter.take()
        if hasattr(self._judge, "_generator"):
            self._judge._generator._host.llm.reset_prefix_cache()  # noqa: SLF001 - vLLM's own way of it


def planned(config: Path, days: tuple[date, date], judges: dict[str, Kept] | None = None) -> Any:
    """A context whose traces are ingested, cut into claims and paired."""
    from tasks.claims import extract as claims
    from tasks.ingest import ingest
    from tasks.judging import pairs
    from tasks.run.build import build_context

    ctx: Any = build_context(config, *days, today=days[-1])
    cascade = tuple(replace(j, judge=judges[j.name]) for j in ctx.judges) if judges else ctx.judges
    ctx = replace(ctx, embedder=FreeEmbedder(), judges=cascade)
    ingest.ingest(ctx)
    claims.extract_claims(ctx)
    pairs.plan_pairs(ctx)
    return ctx


# Order ------------------------------------------------------------------------------------------------------------


def orders(ctx: Any) -> dict[str, list[Any]]:
    """The single pairs' requests as the pipeline sorts them, and shuffled."""
    from tasks.judging.pairs import pair_parts
    from tasks.judging.verdicts import open_requests
    from tasks.run.work import shards

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
    asked = orders(ctx)
    done = []
    for number in range(rounds):
        found = {}
        for name in sorted(asked, reverse=number % 2 == 1):  # neither is always the first
            llm.forget()
            verdicts = llm.judge(asked[name])
            prompt = sum(v.tokens_in for v in verdicts)
            computed = prompt - sum(v.tokens_cached for v in verdicts)
            found[name] = {"requests": len(verdicts), "prompt": prompt, "computed": computed, "seconds": llm.meter.wall}
        done.append(found)
    return done


# Cascade ----------------------------------------------------------------------------------------------------------


def cascade(folder: Path, llm: Kept, rounds: int) -> list[dict[str, dict[str, float]]]:
    """The bundled sample's three nights, by each recipe."""
    from tasks import judges

    nli = ROOT / "configs/judges/nli.yaml"
    packs = {"kind": "all_chunks"}
    recipes: dict[str, dict[str, Any]] = {
        "llm alone": {"judge": "llm.yaml", "pairing": packs},
        "cascade": {"judge": str(nli), "cascade": [{"band": BANDS[-1], "judge": "llm.yaml", "pairing": packs}]},
    }
    kept = {"llm": llm, "nli": Kept(judges.load(nli))}
    kept["nli"].judge(warm_up())
    done = []
    for number in range(rounds):
        found = {}
        for name in sorted(recipes, reverse=number % 2 == 1):
            config = written(folder / f"{name}-{number}", ROOT / "data/sample/2026-*.jsonl*", recipes[name])
            found[name] = judged(planned(config, DAYS, kept), kept)
        done.append(found)
    kept["nli"]._judge.close()  # noqa: SLF001 - now
    return done


def judged(ctx: Any, kept: dict[str, Kept]) -> dict[str, float]:
    """What the language model was asked, and the seconds of both judges."""
    from tasks.judging.pairs import pair_parts
    from tasks.judging.verdicts import judge_joint_pairs, judge_pairs

    for judge in kept.values():
        judge.forget()
    found: dict[str, float] = {}
    for member in ctx.judges:
        for name, stage in zip(PAIRS, (judge_pairs, judge_joint_pairs), strict=True):
            done = stage(ctx, stage=member.stage)
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
    """Of the judged claims, those that each band would send on."""
    from tasks.judging.stored_verdicts import all_verdicts, claim_results

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
    """A request that loads a model."""
    from tasks.core import keys
    from tasks.core.types import Request

    return [Request(keys.request_key("Tea is hot.", "Tea is hot."), "Tea is hot.", "Tea is hot.")]


# All --------------------------------------------------------------------------------------------------------------


def measure(whats: Sequence[str], rounds: int, n: int, cache_tokens: int) -> dict[str, Any]:
    from tasks import judges
    from tasks.engines import _vllm

    others = load()
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name:
        folder = Path(name)
        built(folder / "model")
        file = written(folder / "judge", folder, {}).with_name("llm.yaml")
        found: dict[str, Any] = {}
        for what in whats:
            before = _vllm.CPU_CACHE_BYTES
            _vllm.CPU_CACHE_BYTES = cache_tokens * CACHE_BYTES if what == "order" else before
            llm = Kept(judges.load(file))
            try:
                llm.judge(warm_up())
                found[what] = order(folder, llm, rounds, n) if what == "order" else cascade(folder, llm, rounds)
            finally:
                llm._judge.close()  # noqa: SLF001 - now
                _vllm.CPU_CACHE_BYTES = before
        return {**found, "traces": n, "cache_tokens": cache_tokens, "load": others}


def ratios(rounds: Sequence[dict[str, dict[str, float]]], one: str, other: str, key: str) -> list[float]:
    """A key of one over that of the other, round by round; rounds in which the other has none are left out."""
    return [r[one][key] / r[other][key] for r in rounds if r[other].get(key)]


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
            over = ratios(rounds, *names, key)
            table.add_row(key, *columns, spread(over, 2) if over else "")
        console.print(table)
    console.print(
        f"order: {found['traces']} generated traces, cache of {found['cache_tokens']:,} tokens; "
        f"cascade: band {BANDS[-1]}; load average before {found['load']}",
        highlight=False,
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--traces", type=int, default=40)
    parser.add_argument("--cache-tokens", type=int, default=32_768)
    parser.add_argument("--json", type=Path)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: both")
    args = parser.parse_args()
    result = measure(args.parts or list(PARTS), args.rounds, args.traces, args.cache_tokens)
    common.save(args.json, result)
    show(result)


if __name__ == "__main__":
    main()
