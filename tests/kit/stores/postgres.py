"""A PostgreSQL of the machine's own, on a Unix socket, for tests that need a real database."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import pytest

USER, PASSWORD = "leadline", "pw-not-to-be-seen"


def _binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    return found[-1].parent


@contextmanager
def postgres() -> Iterator[str]:
    """A server with an empty database `shop`; gives its address. Skips where PostgreSQL is not installed."""
    binaries = _binaries()
    folder = Path(mkdtemp(prefix="leadline-pg-"))  # a folder of pytest's is closed to the user of the server
    (folder / "password").write_text(PASSWORD)
    as_user: list[str] = []
    if os.geteuid() == 0:  # which PostgreSQL refuses to run as
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
        shutil.chown(folder / "password", "postgres")

    def run(*command: object) -> None:
        subprocess.run([*as_user, *map(str, command)], cwd=folder, check=True, capture_output=True, timeout=120)

    data = folder / "data"
    options = f"-c listen_addresses='' -c fsync=off -k {folder}"
    try:
        run(binaries / "initdb", "-D", data, "-U", USER, "--auth=scram-sha-256", f"--pwfile={folder / 'password'}",
            "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")  # fmt: skip
        run(binaries / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
        try:
            psql(folder, "CREATE DATABASE shop", "postgres")
            yield f"postgresql://{USER}:{PASSWORD}@/shop?host={folder}"
        finally:
            run(binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def psql(folder: Path, script: str, database: str = "shop") -> str:
    """Run a script in a database of the server whose socket is in a folder; gives what it prints."""
    command = [_binaries() / "psql", "-h", folder, "-U", USER, "-d", database, "-qAt", "-v", "ON_ERROR_STOP=1"]
    env = {**os.environ, "PGPASSWORD": PASSWORD}
    ended = subprocess.run(command, input=script, env=env, check=True, capture_output=True, text=True, timeout=120)
    return ended.stdout
