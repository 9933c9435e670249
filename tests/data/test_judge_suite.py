"""The judge suite's files: whole, in the public suite's form, and such that a perfect judge could fulfil the conditions."""

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from kit.root import ROOT

SUITE = ROOT / "data" / "judge_suite"
TYPES = (
    "perfect_answer", "perfect_without_related", "irrelevant_additions", "only_irrelevant", "missing_part",
    "missing_most", "declines_wrongly", "answers_without_source", "declines_rightly_useful", "declines_rightly_useless",
    "declines_rightly_bare", "absurd_in_reference", "unsupported_claim", "missing_citation", "wrong_citation",
    "distorted",
)  # fmt: skip
KEYS = ["input", "actual_output", "expected_output", "references", "conditions", "metadata"]
POSSIBLE: dict[str, tuple[int | None, ...]] = {
    "answer_relevancy_condition": (None, 1, 2, 3, 4, 5),
    "completeness_condition": (None, 1, 2, 3, 4, 5),
    "faithfulness_condition": (None, 0, 1),
    "usefulness_condition": (None, 0, 1),
}
FILES = sorted(SUITE.glob("t*/*.jsonl"))


def cases(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def holds(condition: str, grade: int | None) -> bool:
    """Whether a grade fulfils a condition; N/A fulfils `==None` alone."""
    operator, value = re.fullmatch(r"(==|<=|>=|<|>)(None|\d)", condition).groups()  # type: ignore[union-attr]
    if grade is None or value == "None":
        return operator == "==" and str(grade) == value
    compared = {"==": grade == int(value), "<": grade < int(value), ">": grade > int(value)}
    compared |= {"<=": compared["<"] or compared["=="], ">=": compared[">"] or compared["=="]}
    return compared[operator]


def test_nine_topics_to_measure_on_and_one_for_prompts() -> None:
    folders = [file.parent.name for file in FILES]
    assert (folders.count("test"), folders.count("train")) == (9, 1)
    assert {file.stem for file in FILES} == {file.stem for file in SUITE.glob("review/*.md")}


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_a_topic_has_a_case_of_each_type_in_the_public_form(file: Path) -> None:
    found = cases(file)
    assert [case["metadata"]["test_type"] for case in found] == list(TYPES)
    for case in found:
        assert list(case) == KEYS
        assert case["metadata"]["topic"] == file.stem
        assert case["metadata"]["goal"]
        assert set(case["conditions"]) == set(POSSIBLE)
        assert all(isinstance(text, str) and text.strip() for text in (*case["references"], *map(case.get, KEYS[:3])))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_some_grades_fulfil_each_condition_and_no_judge_that_is_constant_fulfils_all(file: Path) -> None:
    found = cases(file)
    for case, (name, grades) in product(found, POSSIBLE.items()):
        fulfilled = [holds(case["conditions"][name], grade) for grade in grades]
        assert any(fulfilled)
        assert not all(fulfilled)
    for name, grades in POSSIBLE.items():
        assert not any(all(holds(case["conditions"][name], grade) for case in found) for grade in grades)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_references_of_the_good_answers_exist(file: Path) -> None:
    for case in cases(file):
        cited = {int(n) for n in re.findall(r"\[(\d+)\]", case["expected_output"])}
        assert cited <= set(range(1, len(case["references"]) + 1))


def test_no_two_cases_are_the_same() -> None:
    answers = [case["actual_output"] for file in FILES for case in cases(file)]
    bare = [a for a in answers if len(a.split()) < 25]  # how a system declines may recur
    assert len(set(answers)) >= len(answers) - len(bare)
