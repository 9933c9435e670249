"""Conditions: how they are read, what fulfils them, and what follows for the derived grades."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.analysis.metaeval.conditions import Condition, chance, chance_of_all, of_derived, parse, possible
from tasks.core.grades import GRADED, GRADES, RANGES, Grade, derived

OPERATORS = ("==", "<", "<=", ">", ">=")
values = st.integers(-9, 9) | st.floats(-9, 9).map(lambda v: round(v, 3))
written = st.tuples(st.sampled_from(OPERATORS), values).map(lambda parts: f"{parts[0]}{parts[1]:g}") | st.just("==None")


def whole(*wanted: str) -> dict[str, Condition]:
    graded = dict(zip(GRADED, map(parse, wanted), strict=True))
    return {**graded, **of_derived(graded["answer_relevancy"], graded["completeness"])}


@given(written)
def test_what_is_written_is_read_and_written_again(text: str) -> None:
    assert parse(str(parse(text))) == parse(text)


@given(written, values | st.none())
def test_a_condition_says_what_python_says_of_it(text: str, grade: float | None) -> None:
    """The public package evaluates them so; N/A can't be compared, and fulfils `==None` alone."""
    operator, value = text.rstrip("-.0123456789None"), text.lstrip("=<>")
    if grade is None or value == "None":
        expected = (grade is None) == (value == "None") and operator == "=="
    else:
        number = float(value)
        expected = {
            "==": grade == number, "<": grade < number, "<=": grade <= number, ">": grade > number, ">=": grade >= number
        }[operator]  # fmt: skip
    assert parse(text).holds(grade) == expected


@pytest.mark.parametrize(
    "text", ["", "5", "=5", "!=5", "==5 or ==4", "<None", ">=None", "==none", "==five", "5==", "== ", "==5\n==4"]
)
def test_anything_else_is_no_condition(text: str) -> None:
    with pytest.raises(ValueError, match="Write one of"):
        parse(text)


def test_spaces_and_averages_do_no_harm() -> None:
    assert parse(" >= 4 ").holds(4.0)
    assert parse("<5").holds(4.67)
    assert not parse("==5").holds(4.67)
    assert parse("==1.0") == parse("==1")


def test_the_possible_values_of_a_grade() -> None:
    assert possible("completeness") == (None, 1, 2, 3, 4, 5)
    assert possible("usefulness") == (None, 0, 1)
    assert parse(">=4").fulfilled_by("completeness") == (4, 5)
    assert parse("<5").fulfilled_by("completeness") == (1, 2, 3, 4)  # not N/A
    assert parse(">1").fulfilled_by("faithfulness") == ()


@pytest.mark.parametrize(
    ("relevancy", "completeness", "acceptance", "rejection"),
    [
        ("==5", ">=4", "==1", "==None"),  # there is an answer, and it is given
        ("==None", "==1", "==0", "==None"),  # there is one, and the answer declines
        (">=4", "==None", "==None", "==0"),  # there is none, and one is given
        ("==None", "==None", "==None", "==1"),  # there is none, and the answer declines
    ],
)
def test_the_derived_conditions(relevancy: str, completeness: str, acceptance: str, rejection: str) -> None:
    found = of_derived(parse(relevancy), parse(completeness))
    assert {grade: str(c) for grade, c in found.items()} == {
        "positive_acceptance": acceptance,
        "negative_rejection": rejection,
    }


@given(
    st.sampled_from(["==None", "==5", "<5", ">=3"]), st.sampled_from(["==None", "==1", "<3", ">=4"]),
    st.sampled_from(possible("completeness")), st.sampled_from(possible("completeness")),
)  # fmt: skip
def test_whoever_meets_the_first_two_meets_the_derived_ones(
    relevancy: str, completeness: str, a: float | None, c: float | None
) -> None:
    wanted = of_derived(parse(relevancy), parse(completeness))
    if parse(relevancy).holds(a) and parse(completeness).holds(c):
        pair = {"answer_relevancy": a, "completeness": c}
        got = derived({k: Grade("na") if v is None else Grade("scored", v) for k, v in pair.items()})
        assert all(condition.holds(got[grade].value) for grade, condition in wanted.items())


def test_chance_counts_the_values_that_fulfil() -> None:
    """1 of 6 values fulfils `==5`, 2 of 6 `>=4`, 1 of 3 each of the others. Both are no N/A in 5/6 · 5/6 of the draws."""
    found = chance(whole("==5", ">=4", "==1", "==None"))
    assert found == pytest.approx(
        {
            "answer_relevancy": 1 / 6, "completeness": 2 / 6, "faithfulness": 1 / 3, "usefulness": 1 / 3,
            "positive_acceptance": 25 / 36,  # ==1
            "negative_rejection": 5 / 6,  # ==None: completeness is no N/A
        }
    )  # fmt: skip
    assert chance_of_all(whole("==5", ">=4", "==1", "==None")) == pytest.approx(1 / 6 * 2 / 6 / 9)


def test_chance_of_declining_rightly() -> None:
    """Rejection is 1 where both are N/A (1 of 36); acceptance N/A where completeness is (1 of 6)."""
    found = chance(whole("==None", "==None", "==None", "==None"))
    assert (found["negative_rejection"], found["positive_acceptance"]) == pytest.approx((1 / 36, 1 / 6))


@given(st.lists(written, min_size=4, max_size=4))
def test_chances_are_probabilities_of_all_six(texts: list[str]) -> None:
    conditions = whole(*texts)
    found = chance(conditions)
    assert set(found) == set(GRADES) == set(RANGES)
    assert all(0 <= p <= 1 for p in found.values())
    assert chance_of_all(conditions) <= min(found[grade] for grade in GRADED) + 1e-12
