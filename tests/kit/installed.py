"""Leadline as people install it: its wheel, in an environment with the requirements and without this checkout."""

import importlib.util
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from kit.root import ROOT


def install(folder: Path) -> Path:
    """Build the wheel and install it below a folder; returns the folder of the environment's programs."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    here = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []  # needs no index
    subprocess.run([*pip, "wheel", "--no-deps", *here, "--wheel-dir", folder, ROOT], check=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", symlinks=True)
    programs = folder / "venv" / "bin"
    subprocess.run([*pip, "--python", programs / "python", "install", "--no-index", "--no-deps", wheel], check=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    # Only what lies there: a .pth file in that folder, which an editable install has, is not read again.
    (site / "requirements.pth").write_text(sysconfig.get_path("purelib"))
    return programs
