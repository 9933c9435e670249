"""A night without Prefect: the same tables, and no module of Prefect in its process."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import WITHIN_S, quiet
from kit.commands import leadline
from kit.worlds import FIRST, make_traces, make_world, tables, write

pytestmark = pytest.mark.slow
WITHOUT = """
import sys
from flows.__main__ import main
main(sys.argv[1:])
assert not [name for name in sys.modules if name.partition(".")[0] == "prefect"]
"""


@pytest.mark.parametrize(("options", "settings"), [(["--no-prefect"], {}), ([], {"PREFECT_API_URL": ""})])
def test_a_night_without_prefect_makes_the_same_tables(
    tmp_path: Path, environment: dict[str, str], options: list[str], settings: dict[str, str]
) -> None:
    write(tmp_path / "logs" / "a.jsonl", make_traces(2, 12, days=1))
    with_prefect, without = make_world(tmp_path, "with"), make_world(tmp_path, "without")
    ended = leadline("nightly", "-c", with_prefect.config, "--date", FIRST, env=environment)
    assert ended.returncode == 0, ended.stderr.decode()
    command = [sys.executable, "-c", WITHOUT, "nightly", "-c", str(without.config), "--date", str(FIRST), *options]
    alone = subprocess.run(
        command, env=quiet(**settings), capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert alone.returncode == 0, alone.stderr
    assert tables(without.warehouse) == tables(with_prefect.warehouse)
    assert "Run cost" in alone.stdout
