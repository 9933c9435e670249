"""`leadline write-back`: each score in its store once, whatever happens, and only what has changed is sent."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command, Ended
from kit.root import ROOT
from kit.stores import scores
from kit.stores.server import TraceServer, serve
from kit.stores.worlds import KEY, SECRET, Langfuse, Langsmith, Mlflow, Phoenix, Small
from kit.worlds import World, all_stages, make_world, read

from tasks.core.schemas import WRITE_BACKS
from tasks.run.build import build_context
from tasks.store.lake import Lake

AT = datetime(2025, 11, 1, 12, tzinfo=UTC)  # before any machine's today, so that every trace is old enough
DAY = AT.date()
JUDGE = ROOT / "configs" / "judges" / "similarity.yaml"
KINDS = {
    "phoenix": (Phoenix, scores.PhoenixScores),
    "mlflow": (Mlflow, scores.MlflowScores),
    "langfuse": (Langfuse, scores.LangfuseScores),
    "langsmith": (Langsmith, scores.LangsmithScores),
}
EVERY = pytest.mark.parametrize("kind", KINDS)
NAMES = ("groundedness", "faithfulness", "utilization", "context_relevance", "answer_relevance")


@dataclass
class Case:
    """A night of three answers of a store, judged: two with claims, and one that only greets."""

    store: Any
    server: TraceServer
    night: World
    command: Command

    def run(self, *more: object) -> Ended:
        return self.command("--config", self.night.config, "--date", DAY, *more)

    def rows(self) -> list[dict[str, Any]]:
        return [r for part in Lake(self.night.lake).parts(WRITE_BACKS) for r in part.read().to_pylist()]

    def change(self, edit: Any) -> None:
        """Change the config, and complete the night under it."""
        config = yaml.safe_load(self.night.config.read_text())
        edit(config)
        self.night.config.write_text(yaml.safe_dump(config))
        all_stages(build_context(self.night.config, DAY, DAY), published=False)


Night = Callable[..., Case]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[TraceServer, World]]]:
    """By kind of store: a server, and the night that was judged from it. Tests copy the night, and share the server."""
    with ExitStack() as servers, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_KEY", KEY)

        @cache
        def of(kind: str) -> tuple[TraceServer, World]:
            store = a_store(kind)
            server = servers.enter_context(serve(store.answer))
            source = store.world.config(server.url, timeout_s=5)
            recipe = {"judge": str(JUDGE), "relevance": {"threads": 1}}
            night = make_world(tmp_path_factory.mktemp(kind), sources=[source], recipe=recipe)
            all_stages(build_context(night.config, DAY, DAY), published=False)
            return server, night

        yield of


def a_store(kind: str) -> Any:
    """It knows three answers, and has no score yet."""
    world, store = KINDS[kind]
    cited = f"A {SECRET} is striped [1]."
    small = [
        Small("a", AT, answer=cited, text=f"A {SECRET} is striped."),
        Small("b", AT, answer=f"{cited} The moon is made of cheese [1].", text=f"A {SECRET} is striped."),
        Small("c", AT, answer="Hello!", text=f"A {SECRET} is striped."),
    ]
    return store(world(small, page=100))


@pytest.fixture
def a_night(judged: Callable[[str], tuple[TraceServer, World]], tmp_path: Path, command: Command) -> Night:
    """A judged night of a kind of store, with the settings of its `write_back`."""

    def of(kind: str, **settings: Any) -> Case:
        server, first = judged(kind)
        shutil.copytree(first.config.parent, tmp_path / kind)
        night = World(tmp_path / kind / first.config.name, tmp_path / kind / first.out.name)
        config = yaml.safe_load(night.config.read_text())
        config["sources"][0]["write_back"] = settings
        night.config.write_text(yaml.safe_dump(config))
        store = a_store(kind)
        server.answer = store.answer
        server.asked.clear()
        return Case(store, server, night, partial(command, "write-back"))

    return of


@EVERY
def test_each_score_is_there_once_after_two_runs(kind: str, a_night: Night) -> None:
    case = a_night(kind)
    first = case.run()
    assert first.code == 0, first.err
    shown = case.store.shown()
    # The greeting makes no claim: it has relevance only, and nothing else of it is written as a number.
    assert {n.removeprefix("leadline_") for t, n in shown if t == "tr-b"} == set(NAMES)
    assert {n.removeprefix("leadline_") for t, n in shown if t == "tr-c"} == {
        "context_relevance",
        "answer_relevance",
    }
    score, text = shown["tr-b", "leadline_groundedness"]
    assert score == 0  # 100 · (1 supported − 2 · 1 misused) / 2, limited to 0
    assert text.startswith("partly_grounded: 1 of 2 judged claims is supported. Unsupported: ")
    assert not any(SECRET in text for _, text in shown.values())
    assert KEY not in str(case.rows())
    requests, changes = len(case.server.asked), case.store.changes
    again = case.run()
    assert again.code == 0
    assert " 0 sent, " in again.out
    assert (len(case.server.asked), case.store.changes) == (requests, changes)
    assert case.store.shown() == shown
    assert read(case.night.warehouse, "SELECT count(*) AS n FROM write_backs WHERE chunk_id IS NULL") == [{"n": len(shown)}]  # fmt: skip


@EVERY
def test_what_was_sent_and_not_recorded_is_sent_again_and_there_once(kind: str, a_night: Night) -> None:
    """A run that is killed between the store's answer and the record leaves no row."""
    case = a_night(kind)
    case.run()
    shown = case.store.shown()
    shutil.rmtree(case.night.lake / "write_backs")
    assert case.run().code == 0
    assert case.store.shown() == shown
    assert {r["status"] for r in case.rows()} == {"written"}


@EVERY
def test_a_store_that_dies_in_the_middle(kind: str, a_night: Night, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("time.sleep", lambda _: None)
    case = a_night(kind)
    case.store.dies_after = 1  # its last change is made, and nobody learns of it
    died = case.run()
    assert died.code == 1
    assert "Check that the server runs" in died.err
    case.store.dies_after, case.store.dead = None, False
    assert case.run().code == 0
    assert {n.removeprefix("leadline_") for t, n in case.store.shown() if t == "tr-a"} == set(NAMES)


@EVERY
def test_only_a_changed_score_is_sent(kind: str, a_night: Night) -> None:
    case = a_night(kind)
    case.run()
    before = case.store.shown()
    case.change(lambda config: config["recipe"].update(scoring={"misuse_penalty": 0.0}))
    dry = case.run("--dry-run")
    assert "0 new, 1 changed, 0 to withdraw" in dry.out
    assert case.store.shown() == before
    assert " 1 sent, " in case.run().out
    after = case.store.shown()
    changed = ("tr-b", "leadline_groundedness")
    assert after.pop(changed)[0] == 50  # 100 · 1 / 2
    before.pop(changed)
    assert after == before


@EVERY
def test_a_number_that_applies_no_longer_is_withdrawn(kind: str, a_night: Night) -> None:
    case = a_night(kind)
    case.run()
    # Method `citations` has no groundedness by claims: it is N/A for every trace.
    case.change(lambda config: config["recipe"].update(method="citations", pairing={"kind": "cited_together"}))
    assert case.run().code == 0
    names = {n.removeprefix("leadline_") for _, n in case.store.shown()}
    assert names == {"citation_groundedness", "context_relevance", "answer_relevance"}
    assert {r["status"] for r in case.rows() if r["name"] == "leadline_groundedness"} == {"withdrawn"}
    assert " 0 sent, " in case.run().out


@EVERY
def test_a_dry_run_sends_and_stores_nothing(kind: str, a_night: Night) -> None:
    case = a_night(kind)
    found = case.run("--dry-run")
    assert found.code == 0
    assert "leadline_groundedness" in found.out
    assert case.server.asked == []
    assert case.rows() == []


@EVERY
def test_wrong_credentials(kind: str, a_night: Night) -> None:
    case = a_night(kind)
    case.store.denies = True
    found = case.run()
    assert found.code == 1
    assert "does not accept the credentials (HTTP 401). Check " in found.err
    assert KEY not in found.err
    assert case.rows() == []


@EVERY
def test_what_a_store_refuses_is_reported_and_tried_again(kind: str, a_night: Night) -> None:
    case = a_night(kind)
    case.store.refuses = frozenset({"leadline_faithfulness"})
    found = case.run()
    assert found.code == 1
    assert "2 scores were refused" in found.err
    assert "tr-a" in found.err
    assert {n.removeprefix("leadline_") for t, n in case.store.shown() if t == "tr-b"} == {*NAMES} - {"faithfulness"}
    failed = [r for r in case.rows() if r["status"] == "failed"]
    assert {(r["name"], r["content"]) for r in failed} == {("leadline_faithfulness", None)}
    case.store.refuses = frozenset()
    # A later day takes what failed before along.
    again = case.command("--config", case.night.config, "--date", date(2025, 11, 2))
    assert (again.code, " 2 sent, " in again.out) == (0, True)
    assert {r["status"] for r in case.rows()} == {"written"}


@pytest.mark.parametrize("kind", ["phoenix", "mlflow", "langsmith"])
def test_a_trace_that_the_store_has_lost(kind: str, a_night: Night) -> None:
    """Langfuse takes scores of any trace id."""
    case = a_night(kind, chunks=False)
    case.store.forgotten = frozenset({"a"})
    found = case.run()
    assert found.code == 1
    assert "5 scores were refused" in found.err
    assert {t for t, _ in case.store.shown()} == {"tr-b", "tr-c"}


def test_phoenix_gets_verdicts_on_documents(a_night: Night) -> None:
    case = a_night("phoenix")
    case.run()
    found = {(span, at): d["result"] for (_, span, at), d in case.store.documents.items()}
    roots = {t.name: case.store.world.records(t)[1]["context"]["span_id"] for t in case.store.world.traces}
    assert {span for span, _ in found} == {
        roots["a"],
        roots["b"],
    }  # the greeting uses no chunk, and leaves none unused
    assert {(r["score"], r["label"]) for r in found.values()} == {(1.0, "used")}
    assert {r["explanation"].split(":")[0] for r in found.values()} == {"Supports 1 claim"}


def test_explanations_hold_texts_where_the_config_asks(a_night: Night) -> None:
    case = a_night("mlflow", explanations="text", scores=["groundedness"])
    case.run()
    shown = case.store.shown()
    assert '"The moon is made of cheese"' in shown["tr-b", "leadline_groundedness"][1]
    assert set(shown) == {("tr-a", "leadline_groundedness"), ("tr-b", "leadline_groundedness")}


@pytest.mark.parametrize("extend", [False, True])
def test_langsmith_keeps_no_trace_longer_unless_the_config_asks(extend: bool, a_night: Night) -> None:
    more = {"extend_trace_retention": True} if extend else {}
    case = a_night("langsmith", **more)
    case.run()
    assert {f["extend_trace_retention"] for f in case.store.feedback.values()} == {extend}


def test_mistakes_of_the_config(a_night: Night) -> None:
    case = a_night("mlflow")
    config = yaml.safe_load(case.night.config.read_text())
    for change, said in (
        ({"write_back": None}, "none of its sources has `write_back`"),
        ({"write_back": {"recipe": "another"}}, "`write_back.recipe` is 'another', which is no recipe"),
        ({"write_back": {"extend_trace_retention": True}}, "write_back.extend_trace_retention is not a known key"),
        ({"url": None, "paths": ["x.jsonl"]}, "scores can't be written to export files"),
    ):
        source = {k: v for k, v in {**config["sources"][0], **change}.items() if v is not None}
        case.night.config.write_text(yaml.safe_dump({**config, "sources": [source]}))
        found = case.run()
        assert found.code == 2
        assert said in found.err


@pytest.mark.slow
def test_the_nightly_writes_back_and_does_not_fail_with_a_store(a_night: Night, command: Command) -> None:
    case = a_night("mlflow")
    night = partial(command, "nightly", "--no-prefect")
    case.store.refuses = frozenset({"leadline_faithfulness"})
    found = night("--config", case.night.config, "--date", DAY)
    assert found.code == 0, found.err
    assert "2 scores were refused" in found.out
    case.store.refuses = frozenset()
    assert night("--config", case.night.config, "--date", DAY).code == 0
    assert {n.removeprefix("leadline_") for t, n in case.store.shown() if t == "tr-a"} == set(NAMES)
    flows = [r["flow"] for r in read(case.night.warehouse, "FROM runs ORDER BY started_at")]
    assert flows == ["nightly", "write-back"] * 2
