"""Pass rates and their intervals: what counts, and what is left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from tasks.core.conditions import Condition, of_derived, parse
from tasks.core.grades import GRADED, GRADES
from tasks.core.pass_rates import OVERALL, Outcome, Result, interval, rates
from tasks.core.suite import Case, Suite


def case(case_id: str, topic: str = "tea", test_type: str = "perfect") -> Case:
    graded = dict(zip(GRADED, map(parse, ("==5", "==5", "==1", "==None")), strict=True))
    conditions: dict[str, Condition] = {**graded, **of_derived(graded["answer_relevancy"], graded["completeness"])}
    return Case(case_id, topic, test_type, None, "Q?", case_id, (), None, conditions)


def result(of: Case, grade: str, outcome: Outcome) -> Result:
    return Result(of.case_id, of.topic, of.test_type, grade, str(of.conditions[grade]), outcome, None)


def test_outcomes_and_groups() -> None:
    """Two cases: of the first all six conditions are passed; of the second two are, two can't be read, two are open."""
    a, b = case("a"), case("b", "coffee", "distorted")
    outcomes: list[Outcome] = ["passed", "passed", "unparsable", "unparsable", "unjudged", "unjudged"]
    results = [result(a, grade, "passed") for grade in GRADES]
    results += [result(b, grade, outcome) for grade, outcome in zip(GRADES, outcomes, strict=True)]
    found = rates(Suite("s", "v", (a, b)), results)
    overall = found.grades[OVERALL]
    assert (overall.n, overall.passed, overall.unparsable, overall.unjudged) == (10, 8, 2, 2)
    assert overall.value == pytest.approx(0.8)
    faithfulness, rejection = found.grades["faithfulness"], found.grades["negative_rejection"]
    assert (faithfulness.value, faithfulness.unparsable) == (0.5, 1)
    assert (rejection.n, rejection.value, rejection.unjudged) == (1, 1.0, 1)
    assert found.types["distorted"][OVERALL].value == found.topics["coffee"][OVERALL].value == pytest.approx(0.5)
    assert (found.cases.n, found.cases.passed, found.cases.unjudged) == (1, 1, 1)  # the second is not known to be met
    # Chance of ==5, ==5, ==1, ==None, and of what follows: see test_conditions.
    by_chance = [1 / 6, 1 / 6, 1 / 3, 1 / 3, 25 / 36, 5 / 6]
    assert overall.random == pytest.approx((sum(by_chance) + sum(by_chance[:4])) / 10)
    assert found.cases.random == pytest.approx(1 / 6 * 1 / 6 * 1 / 3 * 1 / 3)


def test_nothing_judged_has_no_rate() -> None:
    a = case("a")
    found = rates(Suite("s", "v", (a,)), [result(a, grade, "unjudged") for grade in GRADES])
    overall = found.grades[OVERALL]
    assert (overall.n, overall.value, overall.low, overall.random, overall.unjudged) == (0, None, None, None, 6)
    assert (found.cases.n, found.cases.value) == (0, None)
    assert rates(Suite("s", "v", (a,)), []).grades[OVERALL].n == 0


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_one_condition_in_each_case_has_wilsons_interval(held: list[bool]) -> None:
    ends = interval([int(h) for h in held], [1] * len(held))
    wilson = binomtest(sum(held), len(held)).proportion_ci(method="wilson")
    assert ends == pytest.approx((wilson.low, wilson.high))


@given(st.integers(2, 60), st.integers(0, 60))
def test_six_conditions_that_always_agree_are_worth_one(cases: int, passed: int) -> None:
    """A case is all or nothing: as many independent observations as there are cases."""
    whole = [6 * (i < passed) for i in range(cases)]
    assert interval(whole, [6] * cases) == pytest.approx(interval([x // 6 for x in whole], [1] * cases))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=100))
def test_an_interval_holds_its_share_and_is_no_narrower_than_of_independent_ones(passed: list[int]) -> None:
    n = 6 * len(passed)
    ends = interval(passed, [6] * len(passed))
    assert ends is not None
    assert 0 <= ends[0] <= sum(passed) / n + 1e-12
    assert sum(passed) / n - 1e-12 <= ends[1] <= 1
    wilson = binomtest(sum(passed), n).proportion_ci(method="wilson")
    assert ends[0] <= wilson.low + 1e-9
    assert ends[1] >= wilson.high - 1e-9


def test_no_cases_have_no_interval() -> None:
    assert interval([], []) is None
