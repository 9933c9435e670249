"""Write the lock files from pyproject.toml: `python scripts/lock.py` (asks pip's resolver, installs nothing).

`requirements.lock` pins what `leadline` runs on, `requirements-dev.lock` that and the tools of `make test`. Versions
only, no hashes: torch comes as a CPU or a CUDA build of the same version, whichever the machine is set up for.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = "# Written by scripts/lock.py from pyproject.toml. Do not edit.\n"


def resolve(target: str, constraints: Path | None) -> dict[str, str]:
    """Name to version of everything that pip would install for `target`."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    if constraints:
        command += ["--constraint", str(constraints)]
    report = subprocess.run([*command, target], check=True, capture_output=True, text=True).stdout  # noqa: S603
    found = (item["metadata"] for item in json.loads(report)["install"])
    return {m["name"]: m["version"].split("+")[0] for m in found if m["name"] != "leadline"}


def write(path: Path, pins: dict[str, str]) -> None:
    """One `name==version` a line, sorted."""
    lines = [f"{name}=={pins[name]}\n" for name in sorted(pins, key=str.lower)]
    path.write_text(HEADER + "".join(lines), encoding="utf-8")


def main() -> None:
    """Lock the runtime first; the tools may not move it."""
    runtime = ROOT / "requirements.lock"
    write(runtime, resolve(str(ROOT), None))
    write(ROOT / "requirements-dev.lock", resolve(f"{ROOT}[dev]", runtime))


if __name__ == "__main__":
    main()
