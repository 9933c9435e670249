"""Suites of test cases: the public form as it is, and what is said of files that are none."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.suite_kit import line, write_suite

from tasks.analysis.metaeval import suite
from tasks.core.errors import DataError, UsageError
from tasks.core.grades import GRADED
from tasks.core.paths import suite_dir

# As the public suite has them: no topic, no id, and nothing of ours.
PUBLIC = (
    '{"input": "Which city is the capital?", "actual_output": "No document seems to precisely answer your question. '
    'However, Lyon is large [2].", "expected_output": "No document seems to precisely answer your question.", '
    '"references": ["Paris is old.", "Lyon is large."], "conditions": {"answer_relevancy_condition": "==None", '
    '"completeness_condition": "==None", "faithfulness_condition": "==1", "usefulness_condition": "==0"}, '
    '"metadata": {"test_type": "Adversarial, useless information", "goal": "Low usefulness"}}'
)


def test_a_line_of_the_public_form_loads_as_it_is(tmp_path: Path) -> None:
    found = suite.read(write_suite(tmp_path / "grouse" / "test.jsonl", [PUBLIC]))
    (case,) = found.cases
    assert (found.name, case.case_id, case.topic) == ("grouse/test", "test:1", "test")
    assert case.test_type == "Adversarial, useless information"
    assert case.references == ("Paris is old.", "Lyon is large.")
    assert {grade: str(c) for grade, c in case.conditions.items()} == {
        "answer_relevancy": "==None", "completeness": "==None", "faithfulness": "==1", "usefulness": "==0",
        "positive_acceptance": "==None", "negative_rejection": "==1",
    }  # fmt: skip


@pytest.mark.parametrize("expected", [{"expected_output": None}, {}])
@pytest.mark.parametrize("metadata", [{}, None, {"test_type": 3, "own": {"deep": [1]}}])
def test_what_need_not_be_there(tmp_path: Path, expected: dict[str, Any], metadata: Any) -> None:
    row = {k: v for k, v in line().items() if k != "expected_output"} | expected | {"own_field": [1], "references": []}
    (case,) = suite.read(write_suite(tmp_path / "a.jsonl", ["", {**row, "metadata": metadata}, "  "])).cases
    assert (case.expected, case.case_id, case.references) == (None, "a:2", ())
    assert case.test_type == ("3" if metadata else "all")


def test_a_folder_is_its_files_in_order(tmp_path: Path) -> None:
    write_suite(tmp_path / "s" / "b.jsonl", [line("B.")])
    write_suite(tmp_path / "s" / "a.jsonl", [line("A."), line("C.", metadata={"topic": "tea"})])
    write_suite(tmp_path / "s" / "notes.txt", ["not a case"])
    found = suite.read(tmp_path / "s")
    assert [(c.case_id, c.topic, c.answer) for c in found.cases] == [
        ("a:1", "a", "A."), ("a:2", "tea", "C."), ("b:1", "b", "B.")
    ]  # fmt: skip


def test_the_version_is_that_of_the_content(tmp_path: Path) -> None:
    def version(name: str, *lines: dict[str, Any]) -> str:
        return suite.read(write_suite(tmp_path / name / "tea.jsonl", lines)).version

    one = version("a", line())
    assert version("b", line()) == one
    assert version("c", line(more=1, metadata={"test_type": "perfect", "goal": "Other words."})) == one
    others = [
        version("d", line("Tea.")), version("e", line(wanted=("==5", "==5", "==1", "==0"))), version("f", line(), line()),
        version("g", line(references=["Tea is hot."])), version("h", line(metadata={"test_type": "other"})),
    ]  # fmt: skip
    assert len({one, *others}) == 6


def test_a_case_that_moves_is_another_one(tmp_path: Path) -> None:
    """Results are held against cases by file and line: those of a suite with other ids are not this one's."""
    one = suite.read(write_suite(tmp_path / "a.jsonl", [line(metadata={"topic": "tea"})]))
    for name, lines in (("b.jsonl", []), ("c/a.jsonl", [""])):
        moved = suite.read(write_suite(tmp_path / name, [*lines, line(metadata={"topic": "tea"})]))
        assert moved.version != one.version


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"input": "x"', "line 2 is not a valid test case: "),
        ("[1]", "line 2 is not a valid test case: Expected `object`"),
        ({k: v for k, v in line().items() if k != "actual_output"}, "missing required field `actual_output`"),
        (line(references="one text"), "at `$.references`"),
        (line(input=""), "at `$.input`"),
        (line(conditions={"answer_relevancy_condition": "==5"}), "`completeness_condition` - at `$.conditions`"),
        (
            line(wanted=("==5", "==5", "=1", "==None")),
            "line 2: conditions.faithfulness_condition is '=1', no condition.",
        ),
    ],
)
def test_a_bad_line_refuses_the_suite_and_names_its_place(tmp_path: Path, row: Any, message: str) -> None:
    path = write_suite(tmp_path / "tea.jsonl", [line(), row])
    with pytest.raises(DataError) as error:
        suite.read(path)
    assert str(error.value).startswith(f"{path}, line 2")
    assert message in str(error.value)
    assert "How hot" not in str(error.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"input": "\xff"}\n')
    with pytest.raises(DataError, match=r"a\.jsonl, line 1"):
        suite.read(tmp_path / "a.jsonl")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        suite.read(tmp_path / "none.jsonl")
    write_suite(tmp_path / "judge_suite" / "test" / "a.jsonl", [line()])
    with pytest.raises(UsageError, match="Its folders test have some"):
        suite.read(tmp_path / "judge_suite")
    with pytest.raises(DataError, match="contains no test case"):
        suite.read(write_suite(tmp_path / "empty.jsonl", [""]))


def test_conditions_that_nothing_meets_are_found(tmp_path: Path) -> None:
    path = write_suite(tmp_path / "a.jsonl", [line(), line("B.", wanted=(">5", "==5", "==2", "==None"))])
    assert suite.impossible(suite.read(path)) == ["a:2: answer_relevancy >5", "a:2: faithfulness ==2"]


def test_the_suite_that_comes_along() -> None:
    """144 cases: nine topics of sixteen types; each condition can be met."""
    found = suite.read(suite_dir())
    assert (found.name, len(found.cases)) == ("judge_suite/test", 144)
    assert (len({c.topic for c in found.cases}), len({c.test_type for c in found.cases})) == (9, 16)
    assert suite.impossible(found) == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
)


@given(st.binary() | st.dictionaries(st.sampled_from([*line(), "other"]), json_values).map(json.dumps).map(str.encode))
def test_whatever_a_line_is_the_error_is_ours(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("suite") / "a.jsonl"
    path.write_bytes(raw)
    try:
        assert all(set(c.conditions) >= set(GRADED) for c in suite.read(path).cases)
    except DataError as error:
        assert str(path) in str(error)  # noqa: PT017 - it may be a suite too
