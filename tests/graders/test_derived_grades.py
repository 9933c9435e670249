"""The two grades that follow from two others, all combinations; and graders that know nothing."""

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.root import ROOT

from tasks import graders
from tasks.core.errors import ConfigError
from tasks.core.grades import GRADED, RANGES, Answered, Grade, Statement, derived
from tasks.core.types import OUTAGE

CONFIGS = ROOT / "configs" / "graders"
SCORED, NA = Grade("scored", 3), Grade("na")
FAILED, UNREAD = Grade("failed", failure=OUTAGE), Grade("unparsable", failure="truncated")
# docs/methods.md#grades-of-a-grounded-answer, "whether the answer rightly claims, or rightly declines, to have an
# answer": it claims one where relevancy
# applies, and there is one where completeness does.
EXPECTED = {
    ("scored", "scored"): (1, None),
    ("na", "scored"): (0, None),
    ("scored", "na"): (None, 0),
    ("na", "na"): (None, 1),
}


@pytest.mark.parametrize(("relevancy", "completeness"), list(product([SCORED, NA, FAILED, UNREAD], repeat=2)))
def test_derived_from_whether_the_first_two_apply(relevancy: Grade, completeness: Grade) -> None:
    found = derived({"answer_relevancy": relevancy, "completeness": completeness})
    values = found["positive_acceptance"].value, found["negative_rejection"].value
    if both := EXPECTED.get((relevancy.status, completeness.status)):
        assert values == both
        assert {g.status for g in found.values()} == {"scored", "na"}
        return
    cause = relevancy if relevancy.status in ("failed", "unparsable") else completeness
    assert values == (None, None)
    assert {(g.status, g.failure) for g in found.values()} == {(cause.status, cause.failure)}


answers = st.builds(
    Answered,
    question=st.text(),
    answer=st.text(),
    passages=st.lists(st.text(), max_size=3).map(tuple),
    statements=st.lists(st.builds(Statement, st.text()), max_size=2).map(tuple),
)


@settings(deadline=None)
@given(st.lists(answers, max_size=4))
def test_grades_by_lot_are_in_range_and_depend_on_the_answer_alone(some: list[Answered]) -> None:
    lots = graders.load(CONFIGS / "random.yaml")
    found = lots.grade(some)
    assert found == [lots.grade([one])[0] for one in some]
    for grades in found:
        assert list(grades) == list(GRADED)
        for name, grade in grades.items():
            least, most = RANGES[name]
            assert grade.value in [*range(least, most + 1), None]
            assert grade.status == ("na" if grade.value is None else "scored")


def test_each_lot_is_drawn_about_as_often() -> None:
    some = [Answered("", str(i), (), ()) for i in range(3000)]
    drawn = [grades["completeness"].value for grades in graders.load(CONFIGS / "random.yaml").grade(some)]
    # 500 expected of each of six; five standard deviations of a binomial are 102
    assert all(abs(drawn.count(value) - 500) < 102 for value in (None, 1, 2, 3, 4, 5))


def test_another_seed_draws_other_grades(tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text("kind: random\nseed: 1\n")
    one, other = graders.load(CONFIGS / "random.yaml"), graders.load(tmp_path / "g.yaml")
    some = [Answered("", str(i), (), ()) for i in range(50)]
    assert one.version != other.version
    assert one.grade(some) != other.grade(some)


def test_a_constant_is_as_its_file_says_and_in_range(tmp_path: Path) -> None:
    (grades,) = graders.load(CONFIGS / "constant.yaml").grade([Answered("", "", (), ())])
    assert {n: g.value for n, g in grades.items()} == dict(zip(GRADED, (5, 5, 1, None), strict=True))
    file = tmp_path / "g.yaml"
    file.write_text("kind: constant\ngrades: {answer_relevancy: 6, completeness: 5, faithfulness: 1, usefulness: 1}\n")
    with pytest.raises(ConfigError, match="answer_relevancy 6; it is 1 to 5"):
        graders.load(file)
    file.write_text("kind: constant\ngrades: {answer_relevancy: 5}\n")
    with pytest.raises(ConfigError, match="lacks a value of completeness, faithfulness, usefulness"):
        graders.load(file)
