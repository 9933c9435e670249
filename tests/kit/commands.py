"""The command as a process of its own, forked from one that has imported everything already.

Importing takes longer than most runs of a test. What is forked is as much a process as one that was started: it has its
own session and environment, writes to files, ends with an exit code and can be killed. That the command starts from
nothing is shown by `flows/test_cli.py`, and with a worker by `nights/test_scheduled.py`.
"""

import atexit
import importlib.util
import multiprocessing
import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
import threading
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from unittest.mock import patch

from conftest import WITHIN_S, quiet

from kit.root import ROOT

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload([
    "flows.__main__", "flows.command", "flows.deployments", "flows.nightly.command", "flows.nightly.summary", "flows.analysis.compare", "flows.judges.versions",
    "flows.analysis.calibrate", "flows.review.load", "flows.lake.warehouse",
    # and what these import when they need it
    "altair", "fastapi", "great_expectations", "prefect.flow_engine", "prefect.task_engine", "pyarrow.acero",
    "pyarrow.dataset", "tasks.extractors.atomic", "tasks.judges.llm", "tasks.judges.nli", "tasks.judges.replay",
    "tasks.judges.similarity", "tasks.sources.jsonl", "torch", "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto", "transformers.models.bert.modeling_bert", "vl_convert",
])  # fmt: skip


class Running:
    """A command that goes on by itself."""

    def __init__(self, args: tuple[object, ...], env: Mapping[str, str], out: Path, err: Path, cwd: Path) -> None:
        given = (tuple(map(str, args)), dict(env), str(out), str(err), str(cwd))
        self._process: ForkServerProcess = SERVER.Process(target=_run, args=given)
        # Read when the server of forks is started: Prefect sets up its logging while it is imported.
        with patch.dict(os.environ, quiet(PREFECT_LOGGING_LEVEL="CRITICAL"), clear=True):
            self._process.start()

    @property
    def pid(self) -> int:
        """Its id, and that of its session and process group."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit code, or less the signal that ended it; None while it runs."""
        return self._process.exitcode

    def kill(self) -> None:
        """By SIGKILL."""
        self._process.kill()

    def wait(self, timeout: float = WITHIN_S) -> int:
        """Its exit code, once it has ended."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            self._process.kill()
            raise subprocess.TimeoutExpired("leadline", timeout)
        return self._process.exitcode


def leadline(*args: object, env: Mapping[str, str], cwd: Path | None = None) -> "subprocess.CompletedProcess[bytes]":
    """Run the command as a user does."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        code = Running(args, env, out, err, cwd or Path.cwd()).wait()
        return subprocess.CompletedProcess(list(map(str, args)), code, out.read_bytes(), err.read_bytes())


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes: the nearest thing to a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def works(*command: str) -> bool:
    """Whether a program is there and may do this here."""
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def install(folder: Path) -> Path:
    """Leadline as people install it, below a folder; returns the folder of the environment's programs.

    Its wheel, in an environment with the requirements of this one and without this checkout.
    """
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


def _run(args: tuple[str, ...], env: Mapping[str, str], out: str, err: str, cwd: str) -> None:
    """What the process does."""
    os.setsid()
    os.environ.clear()
    os.environ.update(env)
    for stream, path in ((sys.stdout, out), (sys.stderr, err)):
        with open(path, "ab") as file:  # noqa: PTH123 - a descriptor is wanted
            os.dup2(file.fileno(), stream.fileno())
    os.chdir(cwd)
    sys.argv = ["leadline", *args]
    from prefect.context import refresh_global_settings_context  # noqa: PLC0415 - not in the tests' process

    from flows.command import command  # noqa: PLC0415
    from flows.runtime.temporary_server import quiet  # noqa: PLC0415

    quiet()
    refresh_global_settings_context()  # it was imported with another environment
    try:
        command()
    finally:
        threading._shutdown()  # a forked process ends without these, or in another order
        atexit._run_exitfuncs()
