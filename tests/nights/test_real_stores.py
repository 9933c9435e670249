"""Real servers of Phoenix and of MLflow: traces by their SDKs, a night of them, and each score in the store once.

`STORE_TRACES=1000 pytest -s tests/nights/test_real_stores.py` does the same with more traces and prints the seconds.
"""

import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from conftest import Command, quiet
from kit.commands import Running, leadline
from kit.killing import output_of, start
from kit.root import ROOT
from kit.stores.real import DAY, KEY, KINDS, PROJECT, USER, RealStore, real_store
from kit.stores.server import Asked, Reply, TraceServer, serve
from kit.worlds import World, make_world, read

pytestmark = pytest.mark.slow
COUNT = int(os.environ.get("STORE_TRACES", "20"))
JUDGE = ROOT / "configs" / "judges" / "similarity.yaml"
ENV = quiet(PREFECT_API_URL="", TEST_USER=USER, TEST_KEY=KEY)
RELEVANCE = ("context_relevance", "answer_relevance")
SCORES = ("groundedness", "faithfulness", "utilization", *RELEVANCE)
CHANGES = {"phoenix": COUNT // 20, "mlflow": 2 * COUNT}  # about the middle: of requests with 100 scores, and with one


@dataclass(frozen=True)
class Case:
    """A store, an address that passes on what it is asked, and a night of its traces."""

    store: RealStore
    proxy: TraceServer
    night: World

    def copy(self, folder: Path, prefix: str) -> World:
        """The night again, with scores of their own names in the store."""
        shutil.copytree(self.night.config.parent, folder, dirs_exist_ok=True)
        night = World(folder / self.night.config.name, folder / self.night.out.name)
        config = yaml.safe_load(night.config.read_text())
        config["sources"][0]["write_back"] = {"prefix": prefix}
        night.config.write_text(yaml.safe_dump(config))
        return night

    def expected(self, prefix: str) -> "Counter[tuple[str, str]]":
        """A greeting makes no claim, so it has relevance only, and its chunks have no verdict."""
        found: Counter[tuple[str, str]] = Counter()
        for row in read(self.night.warehouse, "SELECT trace_id, answer FROM traces"):
            greets = row["answer"] == "Hello!"
            names = [*(RELEVANCE if greets else SCORES)]
            if self.store.kind == "phoenix" and not greets:
                names += [f"chunk of document {n}" for n in (0, 1)]  # the one that is cited, and the one that is not
            found.update((row["trace_id"], prefix + name) for name in names)
        return found


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    kind, folder = request.param, tmp_path_factory.mktemp(request.param)
    (folder / "server").mkdir()
    with real_store(kind, folder / "server") as store, store.client() as client, serve(passed_on(client)) as proxy:
        with timed(store, "log"):
            store.log(COUNT)
        recipe = {"judge": str(JUDGE), "relevance": {"threads": 1}}
        night = make_world(folder / "night", sources=[store.source(proxy.url)], recipe=recipe)
        with timed(store, "nightly"):
            ended = leadline("nightly", "--no-prefect", "--config", night.config, "--date", DAY, env=ENV)
        assert ended.returncode == 0, ended.stderr.decode()
        yield Case(store, proxy, night)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_USER", USER)
    monkeypatch.setenv("TEST_KEY", KEY)


def test_a_check_finds_all_of_each_trace(case: Case, tmp_path: Path, command: Command) -> None:
    file = tmp_path / "store.yaml"
    file.write_text(yaml.safe_dump(case.store.source(case.proxy.url)))
    with timed(case.store, "check"):
        ended = command("sources", "check", file, "--date", DAY, "--limit", COUNT, "--format", "json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert (found["seen"], found["imported"]) == (COUNT, COUNT)
    fields = {f["field"]: (f["found"], f["of"]) for f in found["fields"]}
    names = ("trace", "question", "answer", "chunks", "prompt", "ids", "timestamp")
    assert {name: fields[name] for name in names} == dict.fromkeys(names, (COUNT, COUNT))


def test_a_night_has_all_traces(case: Case) -> None:
    found = {row["trace_id"] for row in read(case.night.warehouse, "SELECT trace_id FROM trace_scores")}
    assert len(found) == COUNT
    assert found == set(case.store.traces())


def test_each_score_is_there_once_after_two_runs(case: Case, tmp_path: Path, command: Command) -> None:
    night = case.copy(tmp_path, "twice_")
    wanted = case.expected("twice_")
    with timed(case.store, f"write-back of {len(wanted):,} scores"):
        first = command("write-back", "--config", night.config, "--date", DAY)
    assert first.code == 0, first.err
    assert f" {len(wanted):,} sent, " in first.out
    assert case.store.annotations("twice_") == wanted
    case.proxy.asked.clear()
    with timed(case.store, "write-back again"):
        again = command("write-back", "--config", night.config, "--date", DAY)
    assert (again.code, " 0 sent, " in again.out) == (0, True)
    assert case.proxy.asked == []
    # What was written and not recorded is sent again, and replaces itself.
    shutil.rmtree(night.lake / "write_backs")
    assert command("write-back", "--config", night.config, "--date", DAY).code == 0
    assert case.store.annotations("twice_") == wanted


def test_a_run_that_is_killed_in_the_middle_leaves_no_score_out_or_twice(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    night = case.copy(tmp_path, "killed_")
    run: list[Running] = []
    passing, changes = case.proxy.answer, 0

    def killing(asked: Asked) -> Reply:
        """The last change is made in the store, and the run ends before it hears of it."""
        nonlocal changes
        reply = passing(asked)
        changes += asked.method != "GET"
        if changes == CHANGES[case.store.kind]:
            os.kill(run[0].pid, signal.SIGKILL)
        return reply

    with monkeypatch.context() as patch:
        patch.setattr(case.proxy, "answer", killing)
        run.append(start(night, ENV, "write-back", "--date", DAY))
        assert run[0].wait() == -signal.SIGKILL, output_of(night).read_text()
    there, wanted = case.store.annotations("killed_"), case.expected("killed_")
    assert 0 < there.total() < wanted.total()
    ended = leadline("write-back", "--config", night.config, "--date", DAY, env=ENV)
    assert ended.returncode == 0, ended.stderr.decode()
    assert case.store.annotations("killed_") == wanted


@pytest.mark.parametrize(
    ("project", "secret", "message"),
    [
        (PROJECT, "sk-another", "does not accept the credentials (HTTP 401). Check "),
        ("nowhere", KEY, "does not exist (HTTP 404). Check `"),
    ],
    ids=["credentials", "project"],
)
def test_a_mistake_of_the_config(
    case: Case, project: str, secret: str, message: str, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setenv("TEST_KEY", secret)
    name = {"mlflow": "experiment", "phoenix": "project"}[case.store.kind]
    file = tmp_path / "store.yaml"
    file.write_text(yaml.safe_dump(case.store.source(case.proxy.url, **{name: project})))
    ended = command("sources", "check", file, "--date", DAY)
    assert ended.code == 1
    assert message in ended.err
    assert secret not in ended.err


@contextmanager
def timed(store: RealStore, step: str) -> Iterator[None]:
    """Print what a step takes; to be seen with `-s`."""
    start = time.monotonic()
    yield
    taken = f"{store.kind}: {step} of {COUNT:,} traces in {time.monotonic() - start:.1f} s"
    print(taken, file=sys.__stdout__, flush=True)


def passed_on(client: httpx.Client) -> Callable[[Asked], Reply]:
    """Ask the store, with the credentials of whoever asks, and answer what it answers."""

    def answer(asked: Asked) -> Reply:
        headers = {k: v for k, v in asked.headers.items() if k in ("Authorization", "Content-Type")}
        more: dict[str, Any] = {} if asked.body is None else {"json": asked.body}
        reply = client.request(asked.method, asked.path, params=asked.params, headers=headers, auth=None, **more)
        return Reply(reply.content, reply.status_code)

    return answer
