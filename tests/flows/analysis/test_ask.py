"""`leadline ask` as a user gives it: what is printed, kept, refused and written."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command
from kit.chat_server import ChatServer, answer, serve
from kit.worlds import FIRST, World, all_stages, make_world, read, trace, tree, write

from tasks.run.build import build_context
from tasks.run.scopes.scope import Scope

QUESTION = "Does the answer promise a refund?"
MARKUP = "<b>[red]refund[/red]</b>"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """It finds a refund where the answer holds the word."""

    async def handle(_server: object, body: dict[str, Any]) -> Any:
        shown = body["messages"][-1]["content"].rpartition("<answer>")[2]
        return answer(body, json.dumps({"explanation": f"It says {MARKUP}.", "answer": "refund" in shown}))

    with serve(handle) as found:
        yield found


@pytest.fixture
def world(tmp_path: Path, server: ChatServer) -> World:
    """A night of three answers, judged by replay, beside a language model's file."""
    made = make_world(tmp_path)
    texts = {"t1": "You get a refund.", "t2": "You get tea.", "t3": "You get ice."}
    write(tmp_path / "logs" / "a.jsonl", [trace(t, answer=text, question=f"{t}?") for t, text in texts.items()])
    model = {"engine": "openai_server", "model": "x", "revision": "0" * 40, "server": {"urls": [server.url]}}
    (made.out / "llm.yaml").write_text(yaml.safe_dump({"kind": "llm", "prompt": "entailment/v1", "model": model}))
    all_stages(build_context(made.config, FIRST, FIRST))
    return made


@pytest.fixture
def ask(command: Command, world: World) -> Command:
    judge = ("--judge", world.out / "llm.yaml")
    return partial(command, "ask", QUESTION, "--date", FIRST, *judge, "--config", world.config)


def test_it_estimates_asks_prints_and_keeps(ask: Command, world: World, server: ChatServer) -> None:
    code, out, err = ask()
    assert code == 0, err
    assert "3 traces, 0 already answered: 3 requests, about" in err
    assert "no measured rate yet" in err
    lines = [" ".join(row.split()) for row in out.splitlines()]
    assert lines[0] == QUESTION
    # One of three, each with a question of its own.
    (row,) = (line for line in lines if line.startswith("docs large 3 3 0.333 ["))
    assert row.endswith("] 0 0")
    assert len(server.asked) == 3
    code, out, err = ask("--format", "json")
    assert (code, len(server.asked), "3 already answered: 0 requests" in err) == (0, 3, True)
    found = [json.loads(line) for line in out.splitlines()]
    assert [(r["trace_id"], r["value"], r["status"]) for r in found] == [
        ("t1", 1.0, "scored"), ("t2", 0.0, "scored"), ("t3", 0.0, "scored")
    ]  # fmt: skip
    assert "refund" not in out  # ids and numbers, no texts
    kept = read(world.warehouse, "SELECT task, form, judge, sum(value) AS yes FROM ask_replies GROUP BY ALL")
    assert kept == [{"task": QUESTION, "form": "yes-no", "judge": "llm", "yes": 1.0}]
    runs = read(world.warehouse, "SELECT * FROM runs WHERE flow = 'ask' ORDER BY started_at")
    assert [(r["status"], r["tokens_in"], r["verdicts_computed"]) for r in runs] == [
        ("completed", 30, 0), ("completed", 0, 0)
    ]  # fmt: skip
    assert QUESTION not in str(runs)
    code, out, _ = ask("--answer", "grade", "--dry-run")
    assert (code, "no measured rate" in out) == (0, True)  # of the other form
    code, out, _ = ask("--dry-run", "--format", "json")
    assert json.loads(out) | {"minutes": 0} == {"traces": 3, "answered": 3, "requests": 0, "tokens": 0, "minutes": 0}


def test_a_dry_run_changes_nothing(ask: Command, world: World, server: ChatServer) -> None:
    before = tree(world.out)
    code, out, _ = ask("--dry-run")
    assert (code, server.asked, tree(world.out) == before) == (0, [], True)
    lines = [" ".join(row.split()) for row in out.splitlines()]
    assert {"traces 3", "already answered 0", "requests to make 3", "Nothing was changed."} <= set(lines)


def test_the_page_links_to_the_traces(ask: Command, world: World, tmp_path: Path) -> None:
    code, _, err = ask("--format", "html", "--output", tmp_path / "refunds.html")
    assert code == 0, err
    page = (tmp_path / "refunds.html").read_text()
    links = re.findall(r'<a href="([^"]+)"><bdi class="id">(t\d)</bdi></a>', page)
    assert {trace_id for _, trace_id in links} == {"t1", "t2", "t3"}
    assert all((tmp_path / link).is_file() for link, _ in links)
    assert "It says &lt;b&gt;[red]refund[/red]&lt;/b&gt;." in page
    assert MARKUP not in page


def test_the_recipes_own_model_answers(command: Command, world: World, server: ChatServer) -> None:
    """The later judge of a cascade, since the first one is no language model."""
    config = yaml.safe_load(world.config.read_text())
    config["recipe"]["cascade"] = [{"judge": "out/llm.yaml", "band": [0.2, 0.8]}]
    world.config.write_text(yaml.safe_dump(config))
    code, _, err = command("ask", QUESTION, "--date", FIRST, "--sample", 0.5, "--app", "docs", "--config", world.config)
    drawn = [t for t in ("t1", "t2", "t3") if Scope(share=0.5).covers(t, "docs")]
    assert 0 < len(drawn) < 3
    assert (code, len(server.asked)) == (0, len(drawn)), err


def test_a_budget_ends_it(ask: Command, world: World, server: ChatServer) -> None:
    config = yaml.safe_load(world.config.read_text())
    world.config.write_text(yaml.safe_dump(config | {"limits": {"shard_requests": 1}}))
    code, _, err = ask("--max-tokens", 1)
    assert (code, len(server.asked)) == (0, 1)
    assert "Stopped: 12 tokens were used, of at most 1. 2 traces left: run the same command again." in err


def test_mistakes(command: Command, ask: Command, world: World, server: ChatServer) -> None:
    where = ("--date", FIRST, "--config", world.config)
    code, _, err = command("ask", QUESTION, *where)
    assert (code, "(replay) are no language model. Name a judge of kind llm by --judge" in err) == (2, True)
    code, _, err = command("ask", QUESTION, "--judge", "nli", *where)
    assert (code, "no language model" in err) == (2, True)
    code, _, err = ask("--answer", "yes")
    assert (code, "--answer yes: no such answer" in err) == (2, True)
    code, _, err = ask("--sample", 0)
    assert (code, "--sample 0 is not a valid share" in err) == (2, True)
    code, _, err = ask("--app", "dogs")
    assert (code, "to ask about" in err, QUESTION in err) == (2, True, False)
    code, _, err = command("ask", " ", *where)
    assert (code, "the question is empty" in err) == (2, True)
    assert server.asked == []
