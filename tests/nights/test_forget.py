"""Text that has to go is gone from every file that Leadline writes, the numbers stay, and nothing brings it back."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from kit.commands import leadline
from kit.rule_generator import Scripted, asking
from kit.worlds import World, all_stages, make_world, read, tables, trace, tree, write

from flows.lake.privacy import preview, run, show, show_preview
from tasks.analysis.ask import ask
from tasks.core.config import Retention
from tasks.core.errors import BusyError, LeadlineError
from tasks.core.grades import Answered
from tasks.core.schemas import TRACES, Table
from tasks.core.types import Request, Verdict
from tasks.graders.constant import Constant
from tasks.judges.replay import ReplayJudge
from tasks.privacy import retention
from tasks.review.load import import_reviews
from tasks.run.build import build_context
from tasks.run.scopes.promotions import PROMOTE, Promotion, add
from tasks.store.lake import Lake, Part

pytestmark = pytest.mark.slow
NOW = datetime.now(UTC)
OLD, NEW = (NOW - timedelta(days=d) for d in (10, 2))
SECRET = "Quokkaberg"  # in every text of the trace that has to go
KEPT = "Wombatville"  # in a text of a trace that stays
# Tables that hold texts.
TEXTS = {"traces", "feedback", "claims", "verdicts", "grades", "ask_replies", "quarantine", "reviews", "nightly_slices"}
GRADES = {"answer_relevancy": 5, "completeness": 4, "faithfulness": 1, "usefulness": None}
SHARES = {"supported": 0.5, "partially_supported": 0.1, "unsupported": 0.2, "contradicted": 0.1, "abstained": 0.05, "failure": 0.05}  # fmt: skip


def secret(trace_id: str = "a/1", at: datetime = OLD, word: str = SECRET) -> dict[str, Any]:
    return trace(
        trace_id,
        timestamp=at.isoformat(),
        question=f"Who is {word}?",
        answer=f"{word} lives here [1]. {word} likes tea [{word}]. All is well.\n\n{word} eats:\n\n- Bread.",
        chunks=[
            {"chunk_id": "1", "title": f"On {word}", "text": f"{word} lives here."},
            {"chunk_id": "2", "text": f"Tea is hot, says {word}."},
        ],
        session=f"session-{word}",
        reference_answer=f"{word} is a person.",
        feedback={"score": 1.0, "comment": f"I am {word}!"},
        tags={"user": word},
    )


@pytest.fixture(scope="module", autouse=True)
def quoting() -> Iterator[None]:
    """The judge and the grader quote what they read, as language models do."""

    def quoting(self: ReplayJudge, request: Request, draw: Any = ReplayJudge._draw) -> Verdict:
        return replace(draw(self, request), explanation=f"I read: {request.hypothesis} in {request.premise}")

    def reasoning(self: Constant, answers: Sequence[Answered], grade: Any = Constant.grade) -> list[Any]:
        own = zip(answers, grade(self, answers), strict=True)
        return [
            {n: replace(g, explanation=f"I read: {a.answer} in {a.passages}") for n, g in its.items()} for a, its in own
        ]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ReplayJudge, "_draw", quoting)
        patched.setattr(Constant, "grade", reasoning)
        yield


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, quoting: None) -> World:
    """Two nights, with refused rows that hold the text too."""
    root = tmp_path_factory.mktemp("judged")
    rows = [trace(f"t{i}", timestamp=(OLD if i % 2 else NEW).isoformat()) for i in range(6)]
    mine = secret()
    copy = {**mine, "answer": f"Another answer on {SECRET}."}  # in conflict with the first
    cut = json.dumps(mine)[:-40]  # a line that breaks off: no id can be read
    write(root / "logs" / "a.jsonl", [*rows, mine, copy, cut, secret("b", NEW, KEPT)])
    world = make_world(root, judge={"shares": SHARES}, gates={"max_quarantined_share": 0.5})
    source = {"kind": "jsonl", "paths": [str(root / "logs" / "*.jsonl"), "more/*.jsonl"]}
    config = yaml.safe_load(world.config.read_text())
    config["recipe"]["grades"] = {"grader": "grader.yaml"}
    (root / "grader.yaml").write_text(yaml.safe_dump({"kind": "constant", "grades": GRADES}))
    world.config.write_text(yaml.safe_dump({**config, "sources": [source]}))
    complete(world)
    lines = [{"trace_id": t, "label": "right", "comment": f"It is {w}."} for t, w in (("a/1", SECRET), ("b", KEPT))]
    write(root / "labels.jsonl", lines)
    ctx = build_context(world.config, OLD.date(), NEW.date())
    import_reviews(ctx, root / "labels.jsonl")
    ask(ctx, asking(Scripted(lambda p: json.dumps({"explanation": f"I read: {p.user}", "answer": True}))))
    complete(world)
    return world


@pytest.fixture
def world(judged: World, tmp_path: Path) -> World:
    """These nights once more, for one test; only the source file is shared."""
    root = tmp_path / "copy"
    shutil.copytree(judged.config.parent, root, ignore=shutil.ignore_patterns("logs"))
    world = World(root / judged.config.name, root / judged.out.name)
    settings = {"kind": "replay", "log": str(world.log), "shares": SHARES}
    (world.out / "replay.yaml").write_text(yaml.safe_dump(settings))
    return world


def complete(world: World) -> dict[str, Any]:
    """A nightly run over both nights, without Prefect."""
    ctx = build_context(world.config, OLD.date(), NEW.date())
    with ctx.lake.lock("a test"):
        return {result.stage: result for result in all_stages(ctx)}


def found_in(world: World, word: str) -> set[str]:
    """Where a word stands: in files' bytes, in decoded Parquet files, in tables of the private and the published file."""
    where: set[str] = set()
    for path in sorted(p for p in world.out.rglob("*") if p.is_file()):
        name = str(path.relative_to(world.out))
        if word.encode() in path.read_bytes():
            where.add(f"bytes of {name}")
        if path.suffix == ".parquet" and word in str(pq.read_table(path, partitioning=None).to_pylist()):
            where.add(name.split("/")[1])
        if path.suffix == ".duckdb":
            with duckdb.connect(str(path), read_only=True) as connection:
                for (table,) in connection.execute("SELECT table_name FROM information_schema.tables").fetchall():
                    rows = connection.execute(f'FROM "{table}"').fetchall()
                    if word in repr(rows):
                        where.add(f"{path.name}: {table}")
    return where


def numbers(world: World) -> dict[str, list[str]]:
    """Every table that holds no text, and the slices that no tag names; without the hashes of questions."""
    found = {name: rows for name, rows in tables(world.warehouse).items() if name not in TEXTS | {"redactions"}}
    slices = read(world.warehouse, "FROM nightly_slices WHERE NOT starts_with(slice, 'tags.') ORDER BY ALL")
    return {**found, "slices": [str(row) for row in slices]}


def asked(world: World) -> dict[str, tuple[str | None, str | None]]:
    """The hashes of each trace's question and session."""
    return {r["trace_id"]: (r["question_id"], r["session_id"]) for r in read(world.warehouse, "FROM trace_scores")}


def test_a_forgotten_trace_is_nowhere_and_its_numbers_are(world: World) -> None:
    there = found_in(world, SECRET)
    assert there >= {
        "traces",
        "claims",
        "verdicts",
        "grades",
        "ask_replies",
        "quarantine",
        "reviews",
        "leadline.duckdb: claims",
        "leadline.duckdb: reviews",
        "leadline.duckdb: quarantine",
    }
    assert {w.rsplit("/")[-1] for w in there if w.startswith("bytes of report/")} >= {
        "index.html",
        "rows.js",
        "texts-0.js",
    }
    before, paid, questions = numbers(world), world.log.read_text(), asked(world)

    outcome = run(world.config, ["a/1"], "a letter of 1 March")
    assert found_in(world, SECRET) == set()
    assert numbers(world) == before
    assert found_in(world, KEPT) >= {"traces", "claims", "verdicts", "reviews"}  # and no one else's
    assert [w for w in found_in(world, KEPT) if w.endswith("explorer/texts-0.js")]

    (row,) = read(world.warehouse, "FROM traces WHERE trace_id = 'a/1'")
    assert row["text_redacted"] == "deleted"
    assert row["text_redacted_at"] is not None
    assert [c["chunk_id"] for c in row["chunks"]] == ["1", "2"]  # ids stay
    (rating,) = read(world.warehouse, "FROM feedback WHERE trace_id = 'a/1'")
    assert (rating["score"], rating["comment"]) == (1.0, None)
    (label,) = read(world.warehouse, "FROM reviews WHERE trace_id = 'a/1'")
    assert (label["label"], label["comment"]) == ("right", None)
    (request,) = read(world.warehouse, "FROM redactions")
    assert (request["trace_id"], request["reason"]) == ("a/1", "a letter of 1 March")
    assert request["redacted_at"] is not None
    assert None not in {question for question, _ in questions.values()} | {questions["a/1"][1]}
    assert asked(world) == {**questions, "a/1": (None, None)}  # a guess at the question would have confirmed it
    done = {s.stage: s.computed for s in outcome.stages}
    # Of one trace three claims, a lead-in and a claim that is read with it. Refused: the copy, and the line that breaks off.
    assert (done["texts"], done["claims"], done["questions"], done["quarantine"]) == (1, 5, 1, 2)
    assert done["explanations"] > 0
    page = (world.out / "report" / str(OLD.date()) / "index.html").read_text()
    assert "The texts of 1 trace of this night were redacted" in page
    listed = (world.out / "report" / str(OLD.date()) / "explorer" / "rows.js").read_text()
    assert '"a/1"' in listed  # its numbers can still be found
    (last,) = read(world.warehouse, "SELECT flow, status FROM runs WHERE flow = 'forget'")
    assert last["status"] == "completed"

    again = complete(world)  # nothing of it is computed again
    assert {name: r.computed for name, r in again.items() if r.computed} == {}
    assert world.log.read_text() == paid
    assert numbers(world) == before
    assert asked(world)["a/1"] == (None, None)


def test_a_line_that_comes_again_is_refused(world: World) -> None:
    run(world.config, ["a/1", "later"])
    rows = len(read(world.warehouse, "FROM traces"))
    write(world.config.parent / "more" / "b.jsonl", [secret(), secret("later")])
    complete(world)
    assert found_in(world, SECRET) == set()
    assert len(read(world.warehouse, "FROM traces")) == rows
    refused = read(world.warehouse, "SELECT trace_id, stage, raw FROM quarantine WHERE reason = 'redacted' ORDER BY 1")
    assert refused == [{"trace_id": t, "stage": "gate", "raw": ""} for t in ("a/1", "later")]
    assert read(world.warehouse, "FROM sources WHERE rows <> ingested + duplicates + sampled_out + quarantined") == []


@pytest.mark.parametrize("change", ["judge", "extractor"])
def test_a_new_recipe_counts_it_as_unjudged_and_asks_nothing_of_it(world: World, change: str) -> None:
    run(world.config, ["a/1"])
    config = yaml.safe_load(world.config.read_text())
    if change == "judge":
        (world.out / "replay.yaml").write_text(
            yaml.safe_dump({"kind": "replay", "seed": 1, "log": str(world.log), "shares": SHARES})
        )
    else:
        config["recipe"]["extractor"] = {"kind": "sentences", "citation_style": "numeric"}
    world.config.write_text(yaml.safe_dump(config))
    old = {r["recipe"] for r in read(world.warehouse, "SELECT DISTINCT recipe FROM trace_scores")}
    complete(world)
    new = build_context(world.config, OLD.date(), OLD.date()).recipe
    assert new not in old
    (row,) = read(world.warehouse, f"FROM trace_scores WHERE recipe = '{new}' AND trace_id = 'a/1'")
    assert (row["groundedness_status"], row["answer_relevance_status"], row["question_id"]) == (
        "unjudged",
        "scored",
        None,
    )
    assert row["claims_total"] == 0
    assert not read(world.warehouse, f"FROM pairs WHERE recipe = '{new}' AND trace_id = 'a/1'")
    (night,) = read(
        world.warehouse,
        f"SELECT n, n_unjudged FROM nightly_groundedness WHERE recipe = '{new}' AND date = DATE '{OLD.date()}'",
    )
    assert night["n"] == 4  # three others of that night, and this one
    assert night["n_unjudged"] >= 1


def test_old_texts_expire_and_new_ones_stay(world: World) -> None:
    before = numbers(world)
    for part in (world.lake / "quarantine").glob("*.parquet"):  # the broken line is as old as its part, at least
        os.utime(part, (OLD.timestamp(), OLD.timestamp()))
    retain(world, text_days=5)
    run(world.config)
    assert found_in(world, SECRET) == set()
    assert found_in(world, KEPT) >= {"traces", "claims", "verdicts", "leadline.duckdb: claims"}
    assert numbers(world) == before
    marks = read(world.warehouse, "SELECT date, text_redacted, count(*) AS n FROM traces GROUP BY ALL ORDER BY date")
    assert marks == [
        {"date": OLD.date(), "text_redacted": "expired", "n": 4},
        {"date": NEW.date(), "text_redacted": None, "n": 4},
    ]
    second = run(world.config)  # there is nothing left to do, and nothing is made again
    assert {s.computed for s in second.stages} == {0}
    assert second.nights == ()
    assert {name for name, r in complete(world).items() if r.computed} == set()


def test_explanations_may_go_before_the_texts(world: World) -> None:
    retain(world, explanations_days=5)
    before = numbers(world)
    run(world.config)
    old, new = (f"date = DATE '{at.date()}'" for at in (OLD, NEW))
    assert read(world.warehouse, f"FROM verdicts WHERE {old} AND (explanation IS NOT NULL OR raw IS NOT NULL)") == []
    assert read(world.warehouse, f"FROM verdicts WHERE {new} AND explanation IS NOT NULL")
    assert read(world.warehouse, f"FROM grades WHERE {old} AND (explanation IS NOT NULL OR raw IS NOT NULL)") == []
    assert read(world.warehouse, f"FROM grades WHERE {new} AND explanation IS NOT NULL")
    assert found_in(world, SECRET) >= {"traces", "claims"}
    assert numbers(world) == before


@pytest.mark.parametrize("at", ["traces", "claims", "verdicts", "grades", "quarantine", "redactions"])
def test_a_run_that_breaks_off_is_completed_by_the_next(world: World, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, whole = numbers(world), Lake.write

    def breaks(lake: Lake, table: Table, name: str, rows: pa.Table, *partition: str, **options: Any) -> Part:
        if table.name == at and (at != "redactions" or rows["redacted_at"].null_count == 0):  # as it is closed
            raise LeadlineError("The disk is full.")
        return whole(lake, table, name, rows, *partition, **options)

    with monkeypatch.context() as patched, pytest.raises(LeadlineError, match="The disk is full"):
        patched.setattr(Lake, "write", breaks)
        run(world.config, ["a/1"])
    complete(world)  # a nightly between the two reads no text that is half gone
    assert numbers(world) == before
    run(world.config)  # the weekly retention, without any days set
    assert found_in(world, SECRET) == set()
    assert numbers(world) == before
    assert retention.pending(Lake(world.lake)) is None
    assert read(world.warehouse, "FROM redactions WHERE redacted_at IS NULL") == []


def test_a_judge_that_is_gone_keeps_no_text(world: World) -> None:
    """The judge that counted for the old night can't be opened any more: its page can't be told, and has to go too."""
    lake = Lake(world.lake)
    now = build_context(world.config, NEW.date(), NEW.date()).judges[0].judge.version
    for name, version, since in (("gone", "0" * 16, OLD.date()), ("replay", now, NEW.date())):
        path = f"{world.out.name}/{name}.yaml"
        add(lake, Promotion(NOW, PROMOTE, "claims", None, name, version, path, since, "better"))
    before = numbers(world)
    found = run(world.config, ["a/1", "b"])
    assert (found.nights, found.unwritten) == ((OLD.date(), NEW.date()), (OLD.date(),))
    assert found_in(world, SECRET) == found_in(world, KEPT) == set()
    assert {name: rows for name, rows in numbers(world).items() if rows != before[name]}.keys() <= {"promotions"}
    assert retention.pending(lake) is None
    assert [p.parent.name for p in (world.out / "report").glob("*/index.html")] == [str(NEW.date())]


@pytest.mark.parametrize("writer", ["run", "backfill"])
def test_no_text_is_removed_while_somebody_reads_it(world: World, writer: str) -> None:
    with Lake(world.lake, writer=writer).lock("another run"), pytest.raises(BusyError, match="another run"):
        run(world.config, ["a/1"])
    assert found_in(world, SECRET) >= {"traces"}
    assert read(world.warehouse, "FROM redactions") == []


def test_a_dry_run_shows_what_would_go_and_changes_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    before = tree(world.out)
    found = preview(world.config, ["b", "nobody"])
    show_preview(found, ["b", "nobody"])
    output = capsys.readouterr().out
    assert tree(world.out) == before
    assert (found.known, found.nights) == ({"b"}, (NEW.date(),))
    assert "b: is here." in output
    assert "nobody: not in this lake; it would be refused if it arrived." in output
    assert f"Pages to write again: {NEW.date()}." in output
    assert "Nothing was changed." in output
    assert SECRET not in output
    done = {s.stage: s.computed for s in run(world.config, ["b", "nobody"]).stages}  # what it really does is the same
    assert [rows for rows, _ in found.tables.values()] == list(done.values())
    assert found.tables["traces"] == (1, [NEW.date()])
    after = preview(world.config)
    assert ({rows for rows, _ in after.tables.values()}, after.nights) == ({0}, ())


def removed(world: World) -> dict[str, str]:
    """Why the texts of traces are gone, by trace."""
    lake = Lake(world.lake)
    rows = [r for p in lake.parts(TRACES) for r in p.read(["trace_id", "text_redacted"]).to_pylist()]
    return {r["trace_id"]: r["text_redacted"] for r in rows if r["text_redacted"]}


def test_who_asks_for_one_trace_loses_no_other_by_age(world: World) -> None:
    """The old night is due by age: its other three traces are for `retention` to remove, and nobody asked for that."""
    retain(world, text_days=5, explanations_days=1)
    explained = "SELECT count(*) AS n FROM verdicts WHERE explanation IS NOT NULL"
    old, new = (f"{explained} AND date = DATE '{at.date()}'" for at in (OLD, NEW))
    before = [read(world.warehouse, sql) for sql in (old, new)]
    found = preview(world.config, ["b"])
    assert found.tables["traces"] == (1, [NEW.date()])
    run(world.config, ["b"])
    assert removed(world) == {"b": "deleted"}
    assert found_in(world, SECRET) >= {"traces", "claims", "verdicts", "grades", "quarantine"}
    after = [read(world.warehouse, sql) for sql in (old, new)]
    assert after[0] == before[0]  # by age, all would be due
    assert after[1][0]["n"] < before[1][0]["n"]  # what `b` alone had judged lost its explanation
    run(world.config)
    # The night of 10 days ago: t1, t3, t5 and a/1.
    assert removed(world) == {"b": "deleted"} | dict.fromkeys(("t1", "t3", "t5", "a/1"), "expired")
    assert read(world.warehouse, explained) == [{"n": 0}]


def test_a_request_that_a_killed_run_left_is_completed_and_named(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    retain(world, text_days=5)
    retention.request(Lake(world.lake), ["a/1"], None, NOW)  # put on record, and killed before anything was removed
    found = preview(world.config, ["b"])
    show_preview(found, ["b"])
    assert "Open from an earlier request, and taken too: a/1." in capsys.readouterr().out
    assert found.tables["traces"] == (2, [OLD.date(), NEW.date()])
    show(run(world.config, ["b"]))
    assert "Open from an earlier request, and taken too: a/1." in capsys.readouterr().out
    assert removed(world) == dict.fromkeys(("a/1", "b"), "deleted")
    assert found_in(world, SECRET) == set()


def test_what_a_killed_retention_began_is_left_to_the_next_one(world: World) -> None:
    """When it is killed, the old traces are empty and their claims are not; then a `forget` completes its own."""
    retain(world, text_days=5)
    before = numbers(world)
    for part in (world.lake / "quarantine").glob("*.parquet"):  # the broken line is as old as its part, at least
        os.utime(part, (OLD.timestamp(), OLD.timestamp()))
    lake, aside = Lake(world.lake), world.out / "aside"
    (world.lake / "claims").rename(aside)
    retention.redact(lake, retention.due(lake, Retention(text_days=5), NOW.date()), NOW)
    aside.rename(world.lake / "claims")
    run(world.config, ["t1"])  # in the same part as the old ones
    assert retention.pending(lake) is None
    assert found_in(world, SECRET) & set(TEXTS) == {"claims"}
    run(world.config)
    assert found_in(world, SECRET) == set()  # nor in the bytes of a warehouse, which has to be made anew
    assert numbers(world) == before
    assert removed(world) == {"t1": "deleted"} | dict.fromkeys(("t3", "t5", "a/1"), "expired")


def test_a_dry_run_waits_for_nobody(world: World) -> None:
    with Lake(world.lake).lock("a nightly"):
        assert preview(world.config, ["a/1"]).tables["traces"][0] == 1


def test_the_verbs(world: World, environment: dict[str, str], no_server: dict[str, str]) -> None:
    output = leadline("forget", "a/1", "--dry-run", "--config", world.config, env=no_server)
    assert (output.returncode, "a/1: is here." in output.stdout.decode()) == (0, True)
    assert found_in(world, SECRET)
    output = leadline("forget", "a/1", "nobody", "--reason", "a letter", "--config", world.config, env=no_server)
    assert output.returncode == 0, output.stderr.decode()
    assert "Texts removed of 1 traces" in output.stdout.decode()
    assert "nobody: not in this lake. It will be refused if it arrives." in output.stdout.decode()
    assert found_in(world, SECRET) == set()
    retain(world, text_days=5)
    output = leadline("retention", "--config", world.config, env=environment)
    assert output.returncode == 0, output.stderr.decode()
    assert "Texts removed of 3 traces" in output.stdout.decode()  # the others of the old night


def retain(world: World, **days: int) -> None:
    config = yaml.safe_load(world.config.read_text())
    world.config.write_text(yaml.safe_dump({**config, "retention": days}))
