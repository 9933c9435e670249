"""`leadline review export` and `agreement`: claims go out of a judged lake, labels come back, and the rest is still open."""

import csv
import io
import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command
from kit.worlds import FIRST, World, make_world, read, trace, write

from tasks.claims import extract as claims
from tasks.core.labeling import OF_GRADES
from tasks.gates.gates import GateKeeper
from tasks.ingest import ingest
from tasks.judging import pairs, verdicts
from tasks.privacy import retention
from tasks.publish import publish
from tasks.review.load import import_reviews
from tasks.run.build import build_context
from tasks.run.result import StageResult
from tasks.scoring import nightly, score

NASTY = 'Backups "are" kept for thirty days [1]. =HYPERLINK("x")</script><b>\nThe owner, of all; may extend it.'


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A night of six questions, one without context, judged at random, so that each need finds something.

    As far as people's labels go, without relevance and report. Tests that change nothing share it.
    """
    root = tmp_path_factory.mktemp("built")
    shares = {"supported": 0.4, "partially_supported": 0.1, "unsupported": 0.4, "contradicted": 0.1}
    world = make_world(root, judge={"shares": shares}, gates={"max_quarantined_share": 0.3})
    rows = [trace(f"t{i}", question=f"Question {i}?", answer=f"{NASTY} Number {i} is right [1].") for i in range(5)]
    write(root / "logs" / "a.jsonl", [*rows, trace("bare", chunks=[])])
    ctx = build_context(world.config, FIRST, FIRST)
    ctx = replace(ctx, gates=GateKeeper(ctx.config.gates, None))
    for stage in (
        ingest.ingest, claims.extract_claims, pairs.plan_pairs, verdicts.judge_pairs,
        verdicts.judge_joint_pairs, score.score_traces, nightly.aggregate_nights, publish.publish_warehouse,
    ):  # fmt: skip
        stage(ctx)
    return world


@pytest.fixture
def judged(built: World, tmp_path: Path) -> World:
    """The same night for a test that changes it: a copy, published anew, since texts are read from the lake beside."""
    shutil.copytree(built.config.parent, tmp_path, dirs_exist_ok=True)
    world = World(tmp_path / built.config.name, tmp_path / built.out.name)
    publish.publish_warehouse(build_context(world.config, FIRST, FIRST))
    return world


def exported(command: Command, world: World, *args: object) -> tuple[list[dict[str, Any]], str]:
    """What JSON lines hold, and what is said beside."""
    code, out, err = command("review", "export", "-c", world.config, *args)
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()], err


def label(path: Path, lines: list[dict[str, Any]], **more: Any) -> Path:
    """The lines, filled in."""
    write(path, [{**line, "label": "supported", "misused": False, **more} for line in lines])
    return path


def imported(world: World, path: Path) -> StageResult:
    """Take labels in as `leadline review import` does, but for the nights' means and pages (test_review_verb.py)."""
    ctx = build_context(world.config, FIRST, FIRST)
    result = import_reviews(ctx, path)
    publish.publish_warehouse(ctx)
    return result


def test_whole_answers_are_drawn_by_their_ids(built: World, command: Command) -> None:
    lines, err = exported(command, built, "--need", "random", "--count", "2")
    claims = read(built.warehouse, "SELECT trace_id, claim_id FROM claims ORDER BY ordinal")
    drawn = {line["trace_id"] for line in lines}
    assert len(drawn) == 2
    assert "bare" not in drawn  # there is nothing to hold its claims against
    for trace_id in drawn:
        assert [x["claim_id"] for x in lines if x["trace_id"] == trace_id] == [c["claim_id"] for c in claims if c["trace_id"] == trace_id]  # fmt: skip
    assert f"{len(lines)} claims of 2 answers to label." in err
    assert exported(command, built, "--need", "random", "--count", "2")[0] == lines
    more, _ = exported(command, built, "--need", "random", "--count", "3")
    assert more[: len(lines)] == lines  # a larger draw begins with the smaller one
    draws = {frozenset(x["trace_id"] for x in exported(command, built, "--need", "random", "--count", "2", "--seed", s)[0]) for s in "abcdef"}  # fmt: skip
    assert len(draws) > 1


def test_a_line_has_all_that_a_person_needs_and_not_what_the_judge_says(built: World, command: Command) -> None:
    lines, _ = exported(command, built, "--need", "random", "--count", "1")
    first = lines[0]
    assert {k: v for k, v in first.items() if k not in ("trace_id", "claim_id", "context")} == {
        "label": None, "misused": None, "comment": None, "reviewer": None, "sampling": "random",
    }  # fmt: skip
    context = first["context"]
    assert context["answer"][slice(*context["span"])] == context["claim"]
    assert [(c["chunk_id"], c["cited"]) for c in context["chunks"]] == [("1", True), ("2", False)]
    assert "judge" not in context
    shown, _ = exported(command, built, "--need", "random", "--count", "1", "--show-judge")
    (row,) = read(built.warehouse, f"SELECT label, status FROM claim_results WHERE claim_id = '{first['claim_id']}'")
    assert {k: shown[0]["context"]["judge"][k] for k in row} == row


def test_what_is_labeled_is_not_exported_again(judged: World, command: Command, tmp_path: Path) -> None:
    """Two reviewers are wanted: ann labels the first claim, and does not get it again; bob does, and then nobody."""
    ask = ("--need", "random", "--count", "2", "--reviewers", "2")
    lines, _ = exported(command, judged, *ask, "--for", "ann")
    assert {line["reviewer"] for line in lines} == {"ann"}
    assert imported(judged, label(tmp_path / "a.jsonl", lines[:1])).computed == 1
    assert exported(command, judged, *ask, "--for", "ann")[0] == lines[1:]
    bobs, _ = exported(command, judged, *ask, "--for", "bob")
    assert [x["claim_id"] for x in bobs] == [x["claim_id"] for x in lines]
    imported(judged, label(tmp_path / "b.jsonl", bobs[:1]))
    left, err = exported(command, judged, *ask)
    assert [x["claim_id"] for x in left] == [x["claim_id"] for x in lines[1:]]
    assert "1 claim left out: labeled already." in err
    # The draw stays the same two answers, whatever is labeled of them.
    assert {x["trace_id"] for x in left} <= {x["trace_id"] for x in lines}


def test_a_spreadsheet_comes_back(judged: World, command: Command, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    code, out, err = command("review", "export", "-c", judged.config, "--need", "random", "--count", 3, "--for", "=ann", "--format", "csv", "-o", path)  # fmt: skip
    assert (code, out) == (0, "")
    assert f"written  {path}" in err
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    assert {'=HYPERLINK("x")</script><b>' in row["context.answer"] for row in rows} == {True}
    for row in rows:
        row |= {"label": "Contradicted", "misused": "TRUE"}
    with path.open("w", newline="", encoding="utf-8-sig") as out_file:
        writer = csv.DictWriter(out_file, rows[0], delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    assert imported(judged, path).computed == len(rows)
    found = read(judged.warehouse, "FROM reviews")
    assert {(r["label"], r["misused"], r["reviewer"], r["sampling"]) for r in found} == {("contradicted", True, "=ann", "random")}  # fmt: skip
    assert {r["claim_id"] for r in found} == {row["claim_id"].removeprefix("'") for row in rows}


def test_label_studio_comes_back(judged: World, command: Command, tmp_path: Path) -> None:
    path, config = tmp_path / "tasks.json", tmp_path / "config.xml"
    code, _, _ = command("review", "export", "-c", judged.config, "--need", "random", "--format", "label-studio", "-o", path, "--labeling-config", config)  # fmt: skip
    assert code == 0
    assert config.read_text().startswith("<View>")
    tasks = json.loads(path.read_text())
    result = [{"from_name": "label", "to_name": "claim", "type": "choices", "value": {"choices": ["supported"]}}]
    done = {"completed_by": 3, "result": result, "was_cancelled": False, "updated_at": "2026-11-05T10:00:00Z"}
    path.write_text(json.dumps([{**t, "annotations": [done]} for t in tasks]))
    assert imported(judged, path).computed == len(tasks)
    assert {r["reviewer"] for r in read(judged.warehouse, "FROM reviews")} == {"label-studio:3"}


def test_needs(built: World, command: Command) -> None:
    """Each need asks for what the results say; uncertain ones nearest to the threshold of 0.5 first."""
    results = {r["claim_id"]: r for r in read(built.warehouse, "FROM claim_results WHERE status <> 'na'")}
    misused, err = exported(command, built, "--need", "misused")
    assert {x["claim_id"] for x in misused} == {i for i, r in results.items() if r["misused"]}
    assert {x["sampling"] for x in misused} == {"misused"}
    assert "marked 'misused', and enter no estimate" in err
    uncertain, _ = exported(command, built, "--need", "uncertain", "--count", "4")
    distance = {i: 0 if r["status"] != "built" else abs(r["p_supported"] - 0.5) for i, r in results.items()}
    assert [distance[x["claim_id"]] for x in uncertain] == sorted(distance.values())[:4]
    assert exported(command, built, "--need", "disputed")[0] == []


def test_disputes_go_to_an_adjudicator_whose_label_counts(judged: World, command: Command, tmp_path: Path) -> None:
    lines, _ = exported(command, judged, "--need", "random", "--count", "1")
    imported(judged, label(tmp_path / "a.jsonl", lines, reviewer="ann"))
    imported(judged, label(tmp_path / "b.jsonl", lines[:1], reviewer="bob", label="contradicted"))
    code, out, _ = command("review", "agreement", "-c", judged.config, "--format", "json")
    told = json.loads(out)
    assert (code, told["claims"], told["by_reviewers"]) == (0, len(lines), {"1": len(lines) - 1, "2": 1})
    assert (told["outcomes"]["tied"], told["open"], told["share"]["value"]) == (1, [lines[0]["claim_id"]], 0.0)
    code, out, _ = command("review", "agreement", "-c", judged.config)
    assert "1 open dispute" in out
    assert "ann" in out
    waiting, err = exported(command, judged, "--need", "disputed", "--reviewers", "3")
    assert ["adjudicated" in x for x in waiting] == [False]  # a third reviewer is wanted first
    disputed, err = exported(command, judged, "--need", "disputed", "--for", "eve")
    assert [(x["claim_id"], x["adjudicated"], x["sampling"]) for x in disputed] == [(lines[0]["claim_id"], True, "disputed")]  # fmt: skip
    assert "reviewers disagree: the next label decides" in err
    imported(judged, label(tmp_path / "e.jsonl", disputed, label="contradicted"))
    assert exported(command, judged, "--need", "disputed")[0] == []
    (row,) = read(judged.warehouse, f"FROM reviewed_claims WHERE claim_id = '{lines[0]['claim_id']}'")
    assert (row["people"], row["adjudicated"], row["disputed"], row["n_reviewers"], row["random"]) == ("contradicted", True, False, 3, True)  # fmt: skip
    told = json.loads(command("review", "agreement", "-c", judged.config, "--format", "json")[1])
    assert (told["open"], told["adjudicated"]) == ([], 1)


def test_texts_that_were_removed_are_left_out_and_don_t_come_back(judged: World, command: Command, tmp_path: Path) -> None:  # fmt: skip
    """Labels by id still find their claims; one by text can't, which is nobody's mistake, and its text is not kept."""
    lines, _ = exported(command, judged, "--need", "random", "--count", "5")
    gone = [x for x in lines if x["trace_id"] == "t1"]
    ctx, now = build_context(judged.config, FIRST, FIRST), datetime.now(UTC)
    retention.request(ctx.lake, ["t1"], None, now)
    retention.redact(ctx.lake, retention.due(ctx.lake, ctx.config.retention, now.date()), now)
    publish.publish_warehouse(ctx)
    left, err = exported(command, judged, "--need", "random", "--count", "5")
    assert [x["claim_id"] for x in left] == [x["claim_id"] for x in lines if x["trace_id"] != "t1"]
    assert "1 answer left out: text redacted." in err
    path = tmp_path / "late.jsonl"
    by_text = {"trace_id": "t1", "claim": gone[0]["context"]["claim"], "label": "supported"}
    write(path, [{**gone[0], "label": "supported"}, by_text, {**by_text, "label": "nonsense"}, *[{**x, "label": "supported"} for x in left[:3]]])  # fmt: skip
    result = imported(judged, path)
    assert result.computed == 4
    assert any("1 of 6 lines are of traces whose text was redacted" in note for note in result.notes)
    refused = read(judged.warehouse, "SELECT reason, raw FROM quarantine WHERE stage = 'reviews' ORDER BY line")
    assert refused == [{"reason": "text_redacted", "raw": ""}, {"reason": "unknown_label", "raw": ""}]


def test_grades_come_in_and_leave_labels_alone(judged: World, tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_text("trace_id,grade,value,reviewer\nt1,completeness,4,ann\nt1,completeness,4,bob\nt1,completeness,2,eve\nt1,usefulness,n/a,ann\nt2,usefulness,1,ann\nt2,usefulness,n/a,bob\n")  # fmt: skip
    assert imported(judged, path).computed == 6
    names = ("trace_id", "grade", "outcome", "value", "n_reviewers")
    found = [tuple(r[n] for n in names) for r in read(judged.warehouse, "FROM reviewed_grades")]
    assert found == [("t1", "completeness", "graded", 4.0, 3), ("t1", "usefulness", "na", None, 1), ("t2", "usefulness", "tied", None, 2)]  # fmt: skip
    assert read(judged.warehouse, "FROM reviewed_claims") == []


def test_grades_are_asked_for_after_the_claims_of_each_answer(judged: World, command: Command, tmp_path: Path) -> None:
    """Three answers by their hashes, four grades each. Those that are given are not asked for again."""
    ask = ("--need", "random", "--count", "3", "--grades")
    lines, err = exported(command, judged, *ask, "--for", "ann")
    grades = [x for x in lines if "grade" in x]
    drawn = list(dict.fromkeys(x["trace_id"] for x in grades))
    assert [x["grade"] for x in grades] == [*OF_GRADES] * 3
    answers = {x["trace_id"] for x in lines}
    assert f"{len(lines) - 12} claims and 12 grades of {len(answers)} answers to label." in err
    assert set(drawn) <= answers
    first = [x for x in lines if x["trace_id"] == drawn[0]]
    assert lines[: len(first)] == first  # answer by answer, the grades last
    assert [("grade" in x) for x in first[-5:]] == [False, True, True, True, True]
    assert {k: v for k, v in first[-4].items() if k != "context"} == {
        "trace_id": drawn[0], "grade": "answer_relevancy", "label": None, "comment": None, "reviewer": "ann", "sampling": "random",
    }  # fmt: skip
    context = first[-1]["context"]
    assert context["values"] == OF_GRADES["usefulness"]
    assert [(c["chunk_id"], c["cited"]) for c in context["chunks"]] == [("1", True), ("2", False)]
    path = tmp_path / "a.jsonl"
    write(path, [{**first[-3], "value": 4}, {**first[-1], "value": None}, first[-2]])  # the last is not filled in
    assert imported(judged, path).computed == 2
    assert read(judged.warehouse, "FROM quarantine WHERE stage = 'reviews'") == []
    left, err = exported(command, judged, *ask)
    assert [x["grade"] for x in left if x.get("grade") and x["trace_id"] == drawn[0]] == [
        "answer_relevancy",
        "faithfulness",
    ]
    assert "2 grades left out: given already." in err


def test_a_spreadsheet_of_claims_and_grades_comes_back(judged: World, command: Command, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    ask = ("--need", "random", "--count", 2, "--grades", "--format", "csv", "-o", path)
    assert command("review", "export", "-c", judged.config, *ask)[0] == 0
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    filled = {"answer_relevancy": "4", "faithfulness": "N/A"}  # the others stay empty
    for row in rows:
        row.update({"value": filled.get(row["grade"], "")} if row["grade"] else {"label": "supported"})
    with path.open("w", newline="", encoding="utf-8-sig") as out_file:
        writer = csv.DictWriter(out_file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    claims = sum(not row["grade"] for row in rows)
    assert imported(judged, path).computed == claims + 2 * 2
    found = read(judged.warehouse, "SELECT grade, value, sampling, count(*) AS n FROM reviews WHERE grade IS NOT NULL GROUP BY ALL ORDER BY ALL")  # fmt: skip
    assert [tuple(r.values()) for r in found] == [("answer_relevancy", 4.0, "random", 2), ("faithfulness", None, "random", 2)]  # fmt: skip


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--need", "misused", "--grades"], "--grades goes with --need random"),
        (["--need", "random", "--grades", "--format", "label-studio"], "--grades goes with --format jsonl"),
        (["--need", "misusd"], "Did you mean 'misused'"),
        (["--need", "random", "--format", "jsnl"], "Did you mean 'jsonl'"),
        (["--need", "random", "--recipe", "claimz"], "no such recipe has scores"),
        (["--need", "random", "--date", FIRST, "--from", FIRST], "exclude each other"),
        (["--need", "random", "--from", "2026-11-02", "--to", "2026-11-01"], "Swap them"),
        (["--need", "random", "--labeling-config", "x.xml"], "goes with --format label-studio"),
        (["--need", "random", "--for", " "], "--for"),
        (["--need", "random", "-o", "/nowhere/x.jsonl"], "/nowhere is not a folder. Create it"),
    ],
)
def test_mistakes_of_an_export(built: World, command: Command, args: list[object], message: str) -> None:
    code, out, err = command("review", "export", "-c", built.config, *args)
    assert (code, out) == (2, "")
    assert message in err


def test_scope(built: World, command: Command) -> None:
    (row,) = read(built.warehouse, "SELECT recipe FROM recipes")
    by_hash, _ = exported(command, built, "--need", "random", "--recipe", row["recipe"][:6])
    assert by_hash == exported(command, built, "--need", "random", "--date", FIRST, "--app", "docs")[0]
    assert by_hash
    none, err = exported(command, built, "--need", "random", "--date", "2026-11-02")
    assert (none, "No answer of these days and apps" in err) == ([], True)
    assert exported(command, built, "--need", "random", "--app", "other")[0] == []


def test_nothing_labeled_yet(built: World, command: Command) -> None:
    settings = yaml.safe_load(built.config.read_text())
    settings["recipe"]["name"] = "later"  # the config's, and no night is scored under it yet
    later = built.config.with_name("later.yaml")
    later.write_text(yaml.safe_dump(settings))
    for config in (built.config, later):
        code, out, _ = command("review", "agreement", "-c", config)
        assert (code, "No claim is labeled." in out) == (0, True)


def test_before_the_first_night(tmp_path: Path, command: Command) -> None:
    world = make_world(tmp_path)
    for args in (["review", "export", "--need", "random"], ["review", "agreement"]):
        code, _, err = command(*args, "-c", world.config)
        assert (code, "no warehouse yet" in err) == (2, True)
