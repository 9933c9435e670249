"""The temporary server: where one is started, when it ends, and what is printed when it does not start.

Each case is a process of its own, since Prefect reads its settings once. How one ends with its command is also shown by
`test_interrupt.py`.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import WITHIN_S, PrefectServer, quiet

pytestmark = pytest.mark.slow
HEAD = """
import os, psutil
from flows.runtime.temporary_server import temporary_server
from tasks.core.errors import LeadlineError
children = psutil.Process().children
"""
ELSEWHERE = "http://127.0.0.1:9/api"


def printed(code: str, **settings: str) -> str:
    """What a program prints that runs to its end."""
    command = [sys.executable, "-c", HEAD + code]
    ended = subprocess.run(
        command, env=quiet(**settings), capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def profile(home: Path, setting: str) -> None:
    """Prefect's own file of settings, as `prefect config set` writes it; a profile that is not active means nothing."""
    lines = ['active = "own"', "[profiles.own]", setting, "[profiles.other]", 'PREFECT_API_URL = "http://other/api"']
    (home / "profiles.toml").write_text("\n".join(lines))


LOOKED_FOR = """
with temporary_server():
    before = children()
with temporary_server():  # now Prefect's settings are loaded
    print(len(before), any(p.is_running() for p in before), children())
"""


def test_none_is_started_where_the_environment_names_a_server(tmp_path: Path) -> None:
    assert printed(LOOKED_FOR, PREFECT_HOME=str(tmp_path), PREFECT_API_URL=ELSEWHERE) == "0 False []\n"


def test_none_is_started_where_the_profile_names_a_server(tmp_path: Path) -> None:
    profile(tmp_path, f'PREFECT_API_URL = "{ELSEWHERE}"')
    assert printed(LOOKED_FOR, PREFECT_HOME=str(tmp_path)) == "0 False []\n"


def test_none_is_left_where_a_setting_forbids_it(tmp_path: Path) -> None:
    profile(tmp_path, 'PREFECT_SERVER_ALLOW_EPHEMERAL_MODE = "0"')
    assert printed(LOOKED_FOR, PREFECT_HOME=str(tmp_path)) == "1 False []\n"


def test_it_answers_after_the_block_and_is_the_only_one(prefect_server: PrefectServer) -> None:
    code = """
with temporary_server():
    (server,) = children()
with temporary_server():
    assert children() == [server]
from prefect.client.orchestration import get_client
with get_client(sync_client=True) as client:
    print(client.hello().status_code, children() == [server], os.getsid(server.pid) == server.pid)
"""
    assert printed(code, PREFECT_HOME=str(prefect_server.home)) == "200 True True\n"


def test_a_mistake_in_the_block_ends_it_at_once(tmp_path: Path) -> None:
    code = """
try:
    with temporary_server():
        (server,) = children()
        raise LeadlineError("a mistake")
except LeadlineError as error:
    print(error, server.is_running())
"""
    assert printed(code, PREFECT_HOME=str(tmp_path)) == "a mistake False\n"


def test_one_that_does_not_start_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    code = """
try:
    with temporary_server():
        (server,) = children()
except LeadlineError as error:
    print(error, server.is_running())
"""
    nowhere = f"sqlite+aiosqlite:///{tmp_path / 'missing' / 'prefect.db'}"
    patience = {
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300"
    }  # its end must come first, also on a busy machine
    reported = printed(code, PREFECT_HOME=str(tmp_path), PREFECT_API_DATABASE_CONNECTION_URL=nowhere, **patience)
    assert reported == (
        "Prefect's temporary server did not start: its process ended with code 3; its output is above. Run the"
        " command again, start a server and name it in PREFECT_API_URL (docs/operations.md), or run with --no-prefect. False\n"
    )  # 3 is how uvicorn ends when the application fails to start
