"""`leadline sources`: what a source would give, and what one trace is made of. Nothing is stored."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command, Ended
from kit.stage_kit import trace
from kit.stores.server import Asked, Reply, serve
from kit.stores.worlds import KEY, SECRET, Langfuse, Mlflow, Small

DAY = "2026-11-01"
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def settings(root: Path, of: dict[str, Any]) -> Path:
    path = root / "source.yaml"
    path.write_text(yaml.safe_dump(of))
    return path


def lines(root: Path, *rows: object) -> Path:
    (root / "log.jsonl").write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return settings(root, {"kind": "jsonl", "paths": ["log.jsonl"]})


@pytest.fixture
def look(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run a verb on a world's server; check that nothing is written, and that no key is printed."""
    monkeypatch.setenv("TEST_KEY", KEY)

    def run(verb: str, world: Any, *args: object, **more: Any) -> Ended:
        with serve(world.answer) as server:
            file = settings(tmp_path, world.config(server.url, **more))
            ended = command("sources", verb, file, *args, "--date", DAY)
        assert [p.name for p in tmp_path.iterdir()] == ["source.yaml"]
        assert KEY not in ended.out + ended.err
        return ended

    return run


def result(ended: Ended) -> dict[str, Any]:
    (line,) = ended.out.splitlines()
    found = json.loads(line)
    return found | {f["field"]: (f["found"], f["of"]) for f in found["fields"]}


def causes(found: dict[str, Any]) -> dict[str, tuple[str, int, str]]:
    """Field, number of traces and key, by reason."""
    return {c["reason"]: (c["field"], c["traces"], c["key"]) for c in found["causes"]}


class TestCheck:
    def test_of_lines(self, command: Command, tmp_path: Path) -> None:
        file = lines(
            tmp_path,
            trace("t1", "Hot [1].", session="s"), trace("t2", "Hot [7]."), trace("t3", chunks={}), "{", trace("t4", question=" "),
        )  # fmt: skip
        ended = command("sources", "check", file, "--date", DAY, "--format", "json")
        found = result(ended)
        assert (found["seen"], found["imported"], found["skipped"], found["fit"]) == (5, 3, 2, False)
        # Three of five rows are traces; `t4` has no question, and the line that is no JSON may have had one.
        assert [found[n] for n in ("trace", "question", "answer", "timestamp")] == [(3, 5), (3, 4), (3, 3), (3, 3)]
        assert [found[n] for n in ("chunks", "ids", "prompt")] == [(2, 3), (2, 2), (0, 0)]
        assert [found[n] for n in ("citations", "session")] == [(1, 3), (1, 3)]
        assert causes(found) == {
            "malformed_json": ("trace", 1, ""), "empty_question": ("question", 1, ""), "no_chunks": ("chunks", 1, ""),
            "dangling": ("citations", 1, ""), "no_citations": ("citations", 1, ""), "no_session": ("session", 2, ""),
        }  # fmt: skip
        assert ended.code == 3
        assert "trace 60% (at least 95%), of 5 traces seen" in ended.err

    def test_of_a_table(self, command: Command, tmp_path: Path) -> None:
        chunks = [{"ref": "c1", "body": "Tea is hot."}, {"body": "Tea is hot."}, {"body": "Ice is cold."}]
        row = {"id": "t1", "at": "2026-11-01T12:00:00Z", "q": "Hot?", "a": "Hot [1].", "s": "s-1", "docs": chunks[:1]}
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in (
            row, {**row, "id": "t2", "docs": chunks[1:], "s": None}, {**row, "id": "t3", "docs": []}, {**row, "id": "t4", "at": "noon"},
            {k: v for k, v in row.items() if k != "a"}, {**row, "id": "t6", "a": None}, {**row, "id": "t7", "docs": [{}]},
        )))  # fmt: skip
        columns = {"id": "id", "timestamp": "at", "question": "q", "answer": "a", "session": "s", "chunks": "docs"}
        chunk = {"text": "body", "id": "ref"}
        file = settings(
            tmp_path, {"kind": "table", "paths": ["log.jsonl"], "app": "shop", "columns": columns, "chunk": chunk}
        )
        found = result(command("sources", "check", file, "--date", DAY, "--format", "json"))
        assert (found["seen"], found["imported"], found["skipped"], found["fit"]) == (7, 3, 4, False)
        # The ids of the chunks of `t2` are only their positions.
        assert [found[n] for n in ("chunks", "ids", "session", "timestamp")] == [(2, 4), (1, 2), (2, 3), (3, 4)]
        assert {f["field"]: f["where"] for f in found["fields"]} == {
            "trace": {}, "question": {"q": 3}, "answer": {"a": 3}, "chunks": {"docs": 2}, "prompt": {}, "ids": {"ref": 1},
            "timestamp": {"at": 3}, "citations": {"answer": 2}, "session": {"s": 2},
        }  # fmt: skip
        assert causes(found) == {
            "missing_field": ("trace", 1, "`columns`"), "no_answer": ("answer", 1, "`columns.answer`, unless the application failed"),
            "no_chunk_text": ("chunks", 1, "`chunk.text`"), "no_chunks": ("chunks", 1, "`columns.chunks`"),
            "by_position": ("ids", 1, "`chunk.id`, `columns.chunk_ids`"), "bad_timestamp": ("timestamp", 1, "`columns.timestamp`"),
            "dangling": ("citations", 1, ""), "no_session": ("session", 1, "`columns.session`"),
        }  # fmt: skip

    def test_of_a_server(self, look: Any) -> None:
        world = Mlflow([
            *(Small(f"t{n}") for n in range(38)), Small("cycle", cyclic=True), Small("two", roots=2), Small("failed", answer=None),
        ], page=1000)  # fmt: skip
        ended = look("check", world, "--format", "json")
        found = result(ended)
        assert (found["seen"], found["imported"], found["fit"]) == (41, 38, True)  # 38 of 40: a failure is normal
        assert found["trace"] == (38, 40)
        where = {f["field"]: f["where"] for f in found["fields"]}
        assert where["question"] == {"root.input": 38}
        assert where["answer"] == {"root.output": 38}
        assert where["chunks"] == {"retriever 'search'": 38}
        assert where["prompt"] == {"prompt of llm 'chat'": 38}
        assert where["ids"] == {"document": 38}
        of = causes(found)
        assert (of["no_root"][:2], of["several_roots"][:2]) == (("trace", 1), ("trace", 1))
        assert "spans.root" in of["several_roots"][2]
        assert of["no_answer"][:2] == ("answer", 1)
        assert [(c["examples"], c["normal"]) for c in found["causes"] if c["reason"] == "no_answer"] == [
            (["tr-failed"], True)
        ]
        assert ended.code == 0
        assert SECRET not in ended.out + ended.err

    def test_for_people(self, look: Any) -> None:
        ended = look("check", Mlflow([Small("a"), Small("b", roots=2)]))
        assert "2 traces seen, 1 imported, 1 skipped" in ended.out
        assert "several_roots, 1 trace: 2 spans have no parent" in ended.out
        assert "such as tr-b" in ended.out
        assert "key that may fix it: `spans.root`" in ended.out
        assert (ended.code, SECRET in ended.out + ended.err) == (3, False)

    def test_a_limit_ends_the_reading(self, look: Any) -> None:
        pages: list[str] = []
        world = Langfuse([Small(f"t{n}", NOON + timedelta(minutes=n)) for n in range(50)], page=6)

        def answer(asked: Asked) -> Reply:
            pages.append(asked.path)
            return Langfuse.answer(world, asked)

        world.answer = answer  # type: ignore[method-assign]
        found = result(look("check", world, "--limit", 5, "--format", "json"))
        assert (found["seen"], found["imported"]) == (5, 5)
        # Three spans a trace are two traces a page: the eleventh trace, by which the first five are whole, is on page 6.
        assert len(pages) == 6

    @pytest.mark.parametrize(("share", "code"), [("session=0.5", 0), ("session=0.6", 3)])
    def test_shares_that_are_wanted(self, command: Command, tmp_path: Path, share: str, code: int) -> None:
        file = lines(tmp_path, trace("t1", session="s"), trace("t2"))
        assert command("sources", "check", file, "--date", DAY, "--least", share).code == code

    @pytest.mark.parametrize(
        ("share", "words"),
        [
            ("sesion=1", "Did you mean 'session'"),
            ("session=2", "is not a valid share"),
            ("session", "is not a valid share"),
        ],
    )
    def test_shares_that_are_none(self, command: Command, tmp_path: Path, share: str, words: str) -> None:
        ended = command("sources", "check", lines(tmp_path, trace("t1")), "--least", share)
        assert (ended.code, words in ended.err) == (2, True)

    def test_the_gates_and_citations_of_a_nightly_config(self, command: Command, tmp_path: Path) -> None:
        cited = trace("t1", answer="Tea is hot (see: a).", chunks={"a": "Tea is hot."})
        file = lines(tmp_path, cited, trace("t2", question="Why is tea as hot as that?"))
        given = ("sources", "check", file, "--date", DAY, "--format", "json")
        assert result(command(*given))["trace"] == (2, 2)
        assert result(command(*given))["citations"][0] == 0
        styles = {"kind": "sentences", "styles": {"see": r"\(see: (?P<ref>\w+)\)"}, "citation_style": "see"}
        config = {"lake": "l", "warehouse": "w", "report": {"dir": "r"}, "sources": ["source.yaml"],
                  "recipe": {"extractor": styles, "judge": "j.yaml"}, "gates": {"max_question_chars": 20}}  # fmt: skip
        (tmp_path / "nightly.yaml").write_text(yaml.safe_dump(config))
        found = result(command(*given, "--config", tmp_path / "nightly.yaml"))
        assert found["trace"] == (1, 2)
        assert causes(found)["question_too_long"][1] == 1
        assert found["citations"] == (1, 1)

    def test_nothing_is_not_fit(self, look: Any, command: Command, tmp_path: Path) -> None:
        ended = look("check", Mlflow())
        assert (ended.code, "of 0 traces seen" in ended.err) == (3, True)
        dated = settings(tmp_path, {"kind": "jsonl", "paths": ["{date}/*.jsonl"]})
        ended = command("sources", "check", dated, "--date", DAY)
        assert (ended.code, "no file for 2026-11-01" in ended.err) == (1, True)

    def test_a_store_that_does_not_answer_as_it_should(self, look: Any) -> None:
        world = Mlflow()
        ended = look("check", world, experiment="another")
        assert (ended.code, "experiment" in ended.err) == (1, True)


class TestShow:
    def test_spans_with_what_was_taken(self, look: Any) -> None:
        ended = look("show", Mlflow([Small("a", question="What is a?")]), "tr-a")
        assert ended.code == 0
        root, search, chat = (next(line for line in ended.out.splitlines() if f" {name}  " in f" {line}") for name in ("answer  chain", "search  retriever", "chat  llm"))  # fmt: skip
        assert root.endswith("← question, answer")
        assert search.endswith("← chunks")
        assert chat.endswith("← prompt, generator")
        assert f"[1] c1: A {SECRET} is striped." in ended.out  # of the search, and of the trace
        assert "tr-a is imported." in ended.out

    def test_why_a_trace_is_refused(self, look: Any) -> None:
        ended = look("show", Mlflow([Small("a", cyclic=True)]), "tr-a")
        assert "tr-a is refused: no_root" in ended.out
        assert ended.out.count("search  retriever") == 1  # of a cycle, each span once

    def test_what_a_terminal_would_carry_out(self, look: Any) -> None:
        ended = look("show", Mlflow([Small("a", question="\x1b[31mRed [bold]?\x07")]), "tr-a")
        assert "\ufffd[31mRed [bold]?\ufffd" in ended.out
        assert "\x07" not in ended.out

    def test_of_lines(self, command: Command, tmp_path: Path) -> None:
        file = lines(tmp_path, trace("t1"), trace("t2", question="Cold?"), '{"trace_id": "t3"}')
        assert "Cold?" in command("sources", "show", file, "t2", "--date", DAY).out
        assert "t3 is refused: missing_field" in command("sources", "show", file, "t3", "--date", DAY).out

    def test_a_trace_that_is_not_there(self, look: Any) -> None:
        ended = look("show", Mlflow([Small("a")]), "tr-b")
        assert (ended.code, "no trace 'tr-b' on 2026-11-01" in ended.err) == (1, True)
