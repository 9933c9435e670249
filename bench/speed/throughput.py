"""Pairs per second of a classifier on this machine's CPU in every dtype, and the CPU's rate of matrix products.

    python -m bench.speed.throughput [--judge configs/judges/nli.yaml] [--model FOLDER] [--tokens 160] [--threads N]
                                     [--pairs 100] [--rounds 5] [--json FILE]

Pairs are made up and have exactly `--tokens` tokens. Every round multiplies matrices in each dtype (oneDNN, 2048 × 2048
× 2048, and float32 by torch's own product) and then classifies all pairs with each engine. Tokenization is timed,
loading is not. Medians and ranges over the rounds are printed. The share of the matrix rate is computed within a round
and per core second, so other work on the machine hardly affects it. It does affect wall seconds.
"""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from bench import common
from bench.common import ROOT
from tasks.core.errors import LeadlineError
from tasks.engines.classifier import Classifier, ClassifierConfig, Encoder, open_classifier

JUDGE = ROOT / "configs" / "judges" / "nli.yaml"
PATHS = (
    ("float32", "transformers_cpu"),
    ("bfloat16", "transformers_cpu"),
    ("float32", "onnx_cpu"),
    ("int8", "onnx_cpu"),
)
SIZE = 2048  # rows and columns of a matrix
SECONDS = 0.5  # shortest measurement of a matrix rate
HYPOTHESIS_WORDS = 15
Rates = dict[str, tuple[float, float]]  # per wall second, per core second


def config_of(judge: Path, model: str | None) -> ClassifierConfig:
    """The classifier of a judge's file, optionally with another model."""
    if judge.is_file():
        found = yaml.safe_load(judge.read_text()).get("classifier")
        if found is None:
            raise SystemExit(f"{judge} has no classifier. Name an entailment judge's file with --judge.")
        config = ClassifierConfig.model_validate(found).relative_to(judge.parent)
    elif model is None:
        raise SystemExit(f"{judge} does not exist. Name a judge's file with --judge, or a model with --model.")
    else:
        config = ClassifierConfig(model=model)
    if model is None:
        return config
    return config.model_copy(update={"model": model, "revision": None})


def made_up(config: ClassifierConfig, n: int, tokens: int) -> list[tuple[str, str]]:
    """Make `n` pairs of words from the model's vocabulary with exactly `tokens` tokens."""
    config = config.model_copy(update={"max_tokens": tokens})
    encoder = Encoder(config)
    words = sorted({w for token in encoder.tokenizer.get_vocab() if 3 <= len(w := token.lstrip("Ġ▁")) <= 9
                    and w.isascii() and w.isalpha() and w.islower()})  # fmt: skip
    draw = random.Random(0)
    # A word has at least one token, so this many words are always truncated to `tokens`.
    pairs = [(" ".join(draw.choices(words, k=tokens)), " ".join(draw.choices(words, k=HYPOTHESIS_WORDS)))
             for _ in range(n)]  # fmt: skip
    if {len(ids) for ids in encoder.ids(pairs)} != {tokens}:
        raise SystemExit(f"no pairs of exactly {tokens} tokens can be made for {config.model}. Try another --tokens.")
    return pairs


def rates(work: Callable[[], object], amount: float, seconds: float = 0.0) -> tuple[float, float]:
    """Amount of work per wall second and per core second, repeated for at least `seconds`."""
    wall, cpu, times = time.perf_counter(), time.process_time(), 0
    while times == 0 or time.perf_counter() - wall < seconds:
        work()
        times += 1
    return times * amount / (time.perf_counter() - wall), times * amount / (time.process_time() - cpu)


def products() -> dict[str, Callable[[], object]]:
    """Matrix products by dtype with oneDNN, which reaches the CPU's rate, and `torch float32` with torch's BLAS.

    On some CPUs, torch's BLAS uses narrower instructions than the CPU supports.
    """
    import torch
    from torch.utils.mkldnn import to_mkldnn

    a, b = torch.rand(SIZE, SIZE), torch.rand(SIZE, SIZE)
    dense, dense_a = to_mkldnn(torch.nn.Linear(SIZE, SIZE, bias=False)), a.to_mkldnn()
    half, half_b = a.bfloat16(), b.bfloat16()
    small, small_b = (a * 127).to(torch.int8), (b * 127).to(torch.int8)
    return {
        "torch float32": lambda: a @ b,
        "float32": lambda: dense(dense_a),
        "bfloat16": lambda: half @ half_b,
        "int8": lambda: torch._int_mm(small, small_b),  # noqa: SLF001 - no public API
    }


def flop_of(classifier: Classifier, pairs: list[tuple[str, str]]) -> float:
    """Floating point operations in matrix products for one pair, as counted by torch."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    # torch does not count fused attention, so use the unfused one.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        classifier.classify(pairs[:1])
    return float(counter.get_total_flops())


def one_round(
    multiply: dict[str, Callable[[], object]], classifiers: dict[str, Classifier], pairs: list[tuple[str, str]]
) -> dict[str, Rates]:
    """GFLOP per second of products, pairs per second of classifiers."""
    import torch

    amount = 2 * SIZE**3 / 1e9
    with torch.inference_mode():
        found = {name: rates(work, amount, SECONDS) for name, work in multiply.items()}
    return {
        "products": found,
        "pairs": {name: rates(lambda c=c: c.classify(pairs), len(pairs)) for name, c in classifiers.items()},
    }


def measure(config: ClassifierConfig, tokens: int, n: int, rounds: int, threads: int) -> dict[str, Any]:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in the engines; torch reads this when imported
    import torch

    torch.set_num_threads(threads)
    pairs = made_up(config, n, tokens)
    settings = {**config.model_dump(), "max_tokens": tokens, "threads": threads, "token_types": "zero"}
    classifiers = {
        f"{dtype}, {engine}": open_classifier(ClassifierConfig(**{**settings, "dtype": dtype, "engine": engine}))
        for dtype, engine in PATHS
    }
    multiply = products()
    gflop = flop_of(next(iter(classifiers.values())), pairs) / 1e9
    for classifier in classifiers.values():
        classifier.classify(pairs[:10])  # load the model and allocate buffers
    done = [one_round(multiply, classifiers, pairs) for _ in range(rounds)]
    for classifier in classifiers.values():
        classifier.close()
    return {"tokens": tokens, "threads": threads, "gflop_per_pair": gflop, "rounds": done}


def show(result: dict[str, Any]) -> None:
    console = Console(width=120)
    rounds, gflop = result["rounds"], result["gflop_per_pair"]
    title = f"{result['threads']} threads, median [range] of {len(rounds)} rounds"
    rows = common.table(title, ("matrix product", "GFLOP/s", "GFLOP per core second"))
    for name in rounds[0]["products"]:
        rows.add_row(name, *(common.spread([r["products"][name][i] for r in rounds]) for i in (0, 1)))
    console.print(rows)
    columns = ("path", "pairs/s", "pairs per core second", "share of the dtype's matrix rate")
    rows = common.table(f"pairs of {result['tokens']} tokens, {gflop:.2f} GFLOP each", columns)
    for name in rounds[0]["pairs"]:
        dtype = name.split(",")[0]
        shares = [100 * r["pairs"][name][1] * gflop / r["products"][dtype][1] for r in rounds]
        found = ([r["pairs"][name][i] for r in rounds] for i in (0, 1))
        rows.add_row(name, *(common.spread(f, 1) for f in found), f"{common.spread(shares)} %")
    console.print(rows)


def main() -> None:
    parser = common.parser(__doc__, rounds=5)
    parser.add_argument("--judge", type=Path, default=JUDGE)
    parser.add_argument("--model", help="a folder or package:NAME, in place of the judge's")
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all cores")
    args = parser.parse_args()
    try:
        result = measure(config_of(args.judge, args.model), args.tokens, args.pairs, args.rounds, args.threads)
    except LeadlineError as error:
        raise SystemExit(str(error)) from error
    common.save(args.json, result)
    show(result)


if __name__ == "__main__":
    main()
