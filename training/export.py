"""Writes a trained model into Leadline, and measures what each way of making it small costs.

Half precision is what ships, since it loads everywhere as it is, and beside it the int8 graph of the engine `onnx_cpu`,
for speed. The others are measured.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tasks.engines.classifier import ClassifierConfig
from tasks.engines.onnx.classifier import READY, write_graph
from training.recipe import HERE

SHIPPED = HERE.parent / "tasks/models/entailment"
WEIGHTS = "model.safetensors"
Tensors = dict[str, torch.Tensor]


def export(model: Path, target: Path = SHIPPED) -> None:
    """Copies a model's folder, its weights in half precision, and makes its int8 graph; the target's card stays."""
    target.mkdir(parents=True, exist_ok=True)
    save_file(half(load_file(model / WEIGHTS)), target / WEIGHTS, metadata={"format": "pt"})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(model / name, target / name)
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config["dtype"] = "float16"
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    classifier = ClassifierConfig(model=str(target.resolve()), engine="onnx_cpu", dtype="int8", max_tokens=64)
    write_graph(classifier, target / READY)  # for pairs of any length


def average(models: Sequence[Path], target: Path) -> Path:
    """A model whose weights are the means of several that were trained from the same one (Wortsman et al. 2022)."""
    loaded = [load_file(model / WEIGHTS) for model in models]
    mean = {name: torch.stack([tensors[name].float() for tensors in loaded]).mean(0) for name in loaded[0]}
    shutil.rmtree(target, ignore_errors=True)
    return write(mean, models[0], target)


def half(tensors: Mapping[str, torch.Tensor]) -> Tensors:
    """Every tensor in 16 bits."""
    return {name: t.half() if t.is_floating_point() else t for name, t in tensors.items()}


def int8(tensors: Mapping[str, torch.Tensor]) -> tuple[Tensors, int]:
    """Matrices rounded to 8 bits with one scale a row, and the bytes that takes."""
    found, size = {}, 0
    for name, t in tensors.items():
        if t.ndim < 2:
            found[name], size = t.half().float(), size + 2 * t.numel()
            continue
        scale = t.abs().amax(dim=1, keepdim=True).clamp_min(1e-12) / 127
        found[name], size = (t / scale).round() * scale, size + t.numel() + 4 * len(t)
    return found, size


def difference(tensors: Mapping[str, torch.Tensor], base: Mapping[str, torch.Tensor], rank: int) -> tuple[Tensors, int]:
    """The base plus a low-rank difference in half precision per matrix, and the bytes of the difference."""
    found, size = {}, 0
    for name, t in tensors.items():
        origin = base.get(name, base.get(name.partition(".")[2]))
        if origin is not None and torch.equal(origin, t):
            found[name] = t
        elif origin is None or t.ndim < 2:
            found[name], size = t.half().float(), size + 2 * t.numel()
        else:
            u, s, v = torch.linalg.svd(t - origin, full_matrices=False)
            found[name] = origin + (u[:, :rank] * s[:rank]).half().float() @ v[:rank].half().float()
            size += 2 * rank * (u.shape[0] + v.shape[1])
    return found, size


def variants(model: Path, base: Path) -> dict[str, tuple[Tensors, float]]:
    """Weights as each format gives them back, in float32, and megabytes of each format."""
    tensors, origin = load_file(model / WEIGHTS), load_file(base / WEIGHTS)
    size = sum(t.numel() for t in tensors.values())
    made: dict[str, tuple[Tensors, float]] = {
        "float32": (tensors, 4 * size / 1e6),
        "half precision": ({n: t.float() for n, t in half(tensors).items()}, 2 * size / 1e6),
    }
    weights, found = int8(tensors)
    made["int8, weight only"] = (weights, found / 1e6)
    for rank in (16, 64):
        weights, found = difference(tensors, origin, rank)
        made[f"difference to the base, rank {rank}"] = (weights, found / 1e6)
    return made


def write(tensors: Tensors, model: Path, folder: Path) -> Path:
    """A copy of the model's folder with other weights."""
    shutil.copytree(model, folder, ignore=shutil.ignore_patterns(WEIGHTS))
    save_file({n: t.contiguous() for n, t in tensors.items()}, folder / WEIGHTS, metadata={"format": "pt"})
    return folder
