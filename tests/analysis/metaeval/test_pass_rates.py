"""Pass rates and their intervals: what counts, and what is left out."""

import pytest

from tasks.analysis.metaeval.conditions import Condition, of_derived, parse
from tasks.analysis.metaeval.pass_rates import OVERALL, Outcome, Result, rates
from tasks.analysis.metaeval.suite import Case, Suite
from tasks.core.grades import GRADED, GRADES


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


def test_conditions_of_one_case_are_no_independent_ones() -> None:
    """Five cases: of two all six conditions are passed, of three none. Overall it is as if each case were one: Wilson of 2
    in 5 at n = 4, (0.1026, 0.7954). Of one grade there is one condition in each case, with the same interval."""
    cases = [case(str(i)) for i in range(5)]
    results = [result(c, grade, "passed" if i < 2 else "failed") for i, c in enumerate(cases) for grade in GRADES]
    found = rates(Suite("s", "v", tuple(cases)), results)
    for rate in (found.grades[OVERALL], found.grades["faithfulness"], found.cases):
        assert rate.value == pytest.approx(0.4)
        assert (rate.low, rate.high) == pytest.approx((0.1026, 0.7954), abs=1e-4)


def test_one_case_has_no_interval() -> None:
    a = case("a")
    overall = rates(Suite("s", "v", (a,)), [result(a, grade, "passed") for grade in GRADES]).grades[OVERALL]
    assert (overall.value, overall.low, overall.high) == (1, None, None)
