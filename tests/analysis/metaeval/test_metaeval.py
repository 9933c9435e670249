"""A grader over a suite: what it is given, what is kept, and what is never graded again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kit.suite_kit import Knowing, every_tenth_lost, line, write_suite

from tasks import graders
from tasks.analysis.metaeval import metaeval
from tasks.analysis.metaeval.metaeval import evaluate, measure
from tasks.analysis.metaeval.pass_rates import OVERALL, rates
from tasks.analysis.metaeval.suite import Suite, read
from tasks.core.errors import EngineError, UsageError
from tasks.core.grades import GRADED, GRADES, Answered, Grade
from tasks.core.schemas import JUDGES, METAEVAL
from tasks.core.types import OUTAGE
from tasks.store.lake import Lake

DECLINES = ("==None", "==None", "==None", "==None")
# Four cases for a judge that says 5, 5, 1 and N/A of everything. Passed of the six grades:
#   all; all but relevancy; all but faithfulness; usefulness alone: both derived grades are as if it answered.
LINES = [
    line("Tea is hot [1]."),
    line("Tea is hot, and coffee black [1].", ("<5", "==5", "==1", "==None")),
    line("Tea is cold [1].", (">=4", ">=4", "==0", "==None")),
    line("No document says how hot tea is.", DECLINES),
]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return read(write_suite(tmp_path / "tea.jsonl", LINES))


def rows(lake: Lake) -> list[dict[str, Any]]:
    return [row for part in lake.parts(METAEVAL) for row in part.read().to_pylist()]


def test_a_constant_judge_passes_what_reasoning_says(tmp_path: Path, suite: Suite) -> None:
    (tmp_path / "constant.yaml").write_text(
        "kind: constant\ngrades: {answer_relevancy: 5, completeness: 5, faithfulness: 1, usefulness: null}\n"
    )
    found = rates(suite, evaluate(graders.load(tmp_path / "constant.yaml"), suite))
    passed = {grade: rate.passed for grade, rate in found.grades.items()}
    assert passed == {
        "answer_relevancy": 2, "completeness": 3, "faithfulness": 2, "usefulness": 4, "positive_acceptance": 3,
        "negative_rejection": 3, OVERALL: 17,
    }  # fmt: skip
    assert (found.cases.passed, found.cases.n) == (1, 4)


def test_what_a_grader_is_given(suite: Suite) -> None:
    knowing = Knowing(suite)
    evaluate(knowing, suite)
    first = knowing.asked[0]
    assert (first.question, first.answer, first.reference) == ("How hot is tea?", "Tea is hot [1].", "Tea is hot [1].")
    assert first.passages == ("Tea is hot.", "Coffee is black.")
    assert [(s.text.rstrip("."), s.cited, s.dangling) for s in first.statements] == [("Tea is hot", (1,), 0)]


def test_a_grader_that_needs_a_reference_says_which_case_has_none(tmp_path: Path) -> None:
    lacking = read(write_suite(tmp_path / "a.jsonl", [*LINES, line("Hm.", expected_output=None)]))
    evaluate(Knowing(lacking), lacking)
    with pytest.raises(UsageError, match=r"1 of 5 cases have no expected_output.*the first is a:5"):
        evaluate(Knowing(lacking, needs_reference=True), lacking)


def test_results_are_kept_and_never_asked_for_again(lake: Lake, suite: Suite, tmp_path: Path) -> None:
    first = Knowing(suite, every_tenth_lost, judge="00000000000000bb")
    stage, results = measure(lake, "knowing", first, suite)
    assert (stage.computed, stage.reused, stage.judge, len(results)) == (16, 0, first.version, 24)
    kept = rows(lake)
    assert len(kept) == 24
    assert {(r["judge_version"], r["claims_judge_version"], r["suite_version"]) for r in kept} == {
        (first.version, "00000000000000bb", suite.version)
    }
    assert {r["outcome"] for r in kept if r["failure"]} == {"unparsable"}
    assert [part.read().to_pylist()[0]["name"] for part in lake.parts(JUDGES)] == ["knowing"]

    again = Knowing(suite, every_tenth_lost, judge="00000000000000bb")
    stage, second = measure(lake, "knowing", again, suite)
    assert (again.asked, stage.computed, stage.reused) == ([], 0, 16)
    assert second == results
    assert rows(lake) == kept

    # A corrected condition and another type cost nothing, a new case itself alone.
    changed = [
        *LINES[:3],
        line("No document says how hot tea is.", ("==None", "==1", "==None", "==None")),
        line("Warm."),
    ]
    wider = read(write_suite(tmp_path / "more" / "tea.jsonl", changed))
    more = Knowing(wider, every_tenth_lost)
    stage, third = measure(lake, "knowing", more, wider)
    assert [a.answer for a in more.asked] == ["Warm."]
    assert (stage.computed, stage.reused, len(third)) == (4, 16, 30)
    declined = {r.grade: r.outcome for r in third if r.case_id == "tea:4"}
    assert declined["completeness"] == "failed"  # N/A was right, and is wrong now
    assert len(lake.parts(METAEVAL)) == 2


def test_another_version_is_asked_anew(lake: Lake, suite: Suite) -> None:
    measure(lake, "one", Knowing(suite), suite)
    other = Knowing(suite, version="00000000000000ab")
    measure(lake, "other", other, suite)
    assert len(other.asked) == 4


def test_what_could_not_be_asked_is_left_out_reported_and_asked_again(lake: Lake, suite: Suite) -> None:
    def down(n: int, name: str, grade: Grade) -> Grade:
        return Grade("failed", failure=OUTAGE) if (n, name) == (2, "completeness") else grade

    stage, results = measure(lake, "knowing", Knowing(suite, down), suite)
    assert (stage.computed, stage.lost) == (15, 1)
    assert "1 requests could not be made" in stage.notes[0]
    open_ = {(r.case_id, r.grade) for r in results if r.outcome == "unjudged"}
    assert open_ == {("tea:3", g) for g in ("completeness", "positive_acceptance", "negative_rejection")}
    assert rates(suite, results).grades[OVERALL].value == 1.0

    again = Knowing(suite)
    stage, results = measure(lake, "knowing", again, suite)
    assert [a.answer for a in again.asked] == ["Tea is cold [1]."]
    assert stage.reused == 12
    assert {r.outcome for r in results} == {"passed"}
    assert len(rows(lake)) == 24


@dataclass
class Breaking(Knowing):
    """Its model dies after so many calls."""

    up_for: int = 1

    def grade(self, answers: Sequence[Answered]) -> list[Mapping[str, Grade]]:
        if self.up_for == 0:
            raise EngineError("the model is gone")
        self.up_for -= 1
        return super().grade(answers)


def test_after_an_outage_the_next_run_goes_on(lake: Lake, suite: Suite) -> None:
    with pytest.raises(EngineError):
        measure(lake, "knowing", Breaking(suite), suite, at_once=2)
    assert len(rows(lake)) == 12
    again = Knowing(suite)
    stage, results = measure(lake, "knowing", again, suite)
    assert ([a.answer for a in again.asked], stage.computed) == ([row["actual_output"] for row in LINES[2:]], 8)
    assert len(results) == 24


def test_a_case_that_stands_there_twice_is_asked_once(lake: Lake, tmp_path: Path) -> None:
    twice = read(write_suite(tmp_path / "a.jsonl", [LINES[0], LINES[0]]))
    knowing = Knowing(twice)
    stage, results = measure(lake, "knowing", knowing, twice)
    assert (len(knowing.asked), stage.computed, len(results)) == (1, len(GRADED), 2 * len(GRADES))


def test_names() -> None:
    constant, wrapped = Knowing(Suite("s", "v", ())), Knowing(Suite("s", "v", ()), judge="b")
    assert metaeval.name_of(constant, "mine", "knowing") == "mine"
    assert metaeval.name_of(wrapped, "nli", "nli") == "knowing(nli)"
