"""Corrupted and biased judges are caught by the suite that comes along, and what is wrong with them is diagnose.

The judge that knows every condition is no judge to measure: it is what a corruption is made visible on.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from kit.suite_kit import Corruption, Knowing, every_tenth_lost, full_marks, swapped

from tasks import graders
from tasks.analysis.metaeval.diagnostics import diagnostics
from tasks.analysis.metaeval.metaeval import evaluate
from tasks.analysis.metaeval.pass_rates import OVERALL, Rates, rates
from tasks.analysis.metaeval.suite import Suite, read
from tasks.core.grades import GRADED, RANGES, Grade
from tasks.core.paths import suite_dir

Diagnose = Callable[..., tuple[list[str], Rates]]


@pytest.fixture(scope="module")
def suite() -> Suite:
    return read(suite_dir())


@pytest.fixture(scope="module")
def diagnose(suite: Suite) -> Diagnose:
    def of(corrupt: Corruption, *, at_most: bool = True) -> tuple[list[str], Rates]:
        results = evaluate(Knowing(suite, corrupt, at_most=at_most), suite)
        found = rates(suite, results)
        return diagnostics(found, results), found

    return of


@pytest.mark.parametrize("at_most", [True, False])
def test_a_perfect_judge_passes_all_864_and_is_not_suspected(diagnose: Diagnose, at_most: bool) -> None:
    why, found = diagnose(lambda n, name, grade: grade, at_most=at_most)
    assert (found.grades[OVERALL].passed, found.grades[OVERALL].n, found.cases.passed) == (864, 864, 144)
    assert why == []


def test_always_full_marks(diagnose: Diagnose) -> None:
    why, found = diagnose(full_marks)
    assert why[0] == (
        "It gives every answer the same grades: answer relevancy 5, completeness 5, faithfulness 1, usefulness 1."
    )
    assert not any("reversed" in line or "can't be read" in line for line in why)
    assert (found.grades[OVERALL].value or 0) < 0.75


@pytest.mark.parametrize("at_most", [True, False])
def test_labels_swapped(diagnose: Diagnose, at_most: bool) -> None:
    why, found = diagnose(swapped, at_most=at_most)
    for line, grade in zip(why, GRADED, strict=False):
        least, most = RANGES[grade]
        assert line.startswith(
            f"Its {grade.replace('_', ' ')} is reversed, as if {most} and {least} were swapped: on average "
        )
    assert len([line for line in why if "reversed" in line]) == 4
    assert not any("same grades" in line or "always gives" in line for line in why)
    assert (found.grades["faithfulness"].value or 0) < 0.2  # but for N/A, everything is wrong


def test_one_label_swapped_is_reported_of_that_grade_alone(diagnose: Diagnose) -> None:
    why, _ = diagnose(lambda n, name, grade: swapped(n, name, grade) if name == "faithfulness" else grade)
    assert why[0].startswith("Its faithfulness is reversed, as if 1 and 0 were swapped")
    assert not any("reversed" in line for line in why[1:])
    # 0 where 1 is wanted and the reverse: turned round, all would pass, and none does as it is.
    assert why[0].split("Reversed, ")[1] == "126 of these 126 would pass, not 0."


def test_a_tenth_of_the_replies_unparsable(diagnose: Diagnose, suite: Suite) -> None:
    """Of 4 · 144 = 576 replies, 58 or 57 are lost; all that can be read are right."""
    why, found = diagnose(every_tenth_lost)
    lost = sum((n + 3 * at) % 10 == 0 for at in range(4) for n in range(len(suite.cases)))
    assert why[0].startswith(f"{lost / 576:.1%} of its replies can't be read ({lost} of 576: answer relevancy 15, ")
    assert why[0].endswith("Of those that can, 100% pass.")
    assert found.grades["faithfulness"].unparsable == sum((n + 6) % 10 == 0 for n in range(144))
    assert not any("reversed" in line or "same grades" in line for line in why)


def test_one_grade_that_is_always_the_same(diagnose: Diagnose) -> None:
    why, _ = diagnose(lambda n, name, grade: Grade("scored", 3) if name == "completeness" else grade)
    assert why[0] == "It always gives completeness 3 (144 of 144)."


def test_always_declining(diagnose: Diagnose) -> None:
    why, _ = diagnose(lambda n, name, grade: Grade("na"))
    assert "answer relevancy N/A, completeness N/A, faithfulness N/A, usefulness N/A" in why[0]


def test_never_na(diagnose: Diagnose) -> None:
    why, _ = diagnose(lambda n, name, grade: Grade("scored", RANGES[name][0]) if grade.value is None else grade)
    assert "It never gives N/A for answer relevancy, which 36 of 144 cases call for." in why
    assert "It never gives N/A for usefulness, which 126 of 144 cases call for." in why


def test_na_too_often(diagnose: Diagnose) -> None:
    why, _ = diagnose(lambda n, name, grade: Grade("na") if name == "answer_relevancy" and n % 2 else grade)
    assert any(line.startswith("It gives N/A for answer relevancy in ") for line in why)


def test_a_judge_that_is_too_kind(diagnose: Diagnose) -> None:
    """Nothing is below full marks, but N/A is where it belongs. Two types, 18 cases, want less of answer relevancy."""
    why, _ = diagnose(lambda n, name, grade: full_marks(n, name, grade) if grade.status == "scored" else grade)
    assert why[0] == (
        "It is generous with answer relevancy: of conditions that call for a high grade it passes 90 of 90, of those that"
        " call for a low one 0 of 18."
    )


def test_knowledge_of_its_own(diagnose: Diagnose, suite: Suite) -> None:
    """It doubts what is absurd though it is in the references, and lets missing citations pass."""
    doubted = {"absurd_in_reference": 0, "missing_citation": 1}

    def corrupt(n: int, name: str, grade: Grade) -> Grade:
        other = doubted.get(suite.cases[n].test_type)
        return grade if name != "faithfulness" or other is None else Grade("scored", other)

    why, _ = diagnose(corrupt)
    assert any(
        "goes by its own knowledge" in w and "absurd_in_reference, faithfulness, 0 of 9 passed" in w for w in why
    )
    assert any("lets statements without a citation pass" in w for w in why)
    assert not any("reversed" in w or "generous" in w for w in why)


def test_drawing_lots_is_reported(suite: Suite, tmp_path: Path) -> None:
    (tmp_path / "random.yaml").write_text("kind: random\n")
    results = evaluate(graders.load(tmp_path / "random.yaml"), suite)
    found = rates(suite, results)
    overall = found.grades[OVERALL]
    assert abs((overall.value or 0) - (overall.random or 0)) < 0.05  # 864 draws, of 144 cases
    assert any(line.startswith("It is no better than a judge that draws") for line in diagnostics(found, results))
