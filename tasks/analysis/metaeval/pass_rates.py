"""Pass rates of a judge on a suite of test cases, with intervals (docs/methods.md#judging-the-judges).

Pure functions from results to rates. Left out: obtaining results (`metaeval.py`), and explaining failures
(`diagnostics.py`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.analysis.metaeval.conditions import chance, chance_of_all
from tasks.analysis.metaeval.suite import Suite
from tasks.core.grades import GRADES
from tasks.stats.intervals import interval, means

Outcome = Literal["passed", "failed", "unparsable", "unjudged"]
OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "unparsable", "unjudged")
OVERALL = "overall"  # all six grades together


@dataclass(frozen=True, slots=True)
class Result:
    """One grade of one case, checked against its condition.

    Attributes:
        grade: Name of one of the six grades.
        condition: The condition as text.
        outcome: `unparsable`: the reply can't be read. `unjudged`: there is no reply.
        value: The grade; None for N/A or without a grade.
        explanation: The grader's explanation, if any.
        failure: Why there is no grade; None if there is one.
        raw: The reply, if it can't be read.
    """

    case_id: str
    topic: str
    test_type: str
    grade: str
    condition: str
    outcome: Outcome
    value: float | None
    explanation: str | None = None
    failure: str | None = None
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """The share of conditions, or of cases, that a judge passes.

    Attributes:
        n: Number of conditions or cases, without unjudged ones.
        value: passed / n; None if n is 0. Unparsable replies count as not passed.
        low: Lower end of the 95% interval over cases; None with fewer than two cases.
        high: Upper end of the interval.
        random: Expected share for a judge that grades at random.
    """

    n: int
    passed: int
    unparsable: int
    unjudged: int
    value: float | None
    low: float | None
    high: float | None
    random: float | None


@dataclass(frozen=True, slots=True)
class Rates:
    """All pass rates of one judge on one suite.

    Attributes:
        grades: Rates of the six grades, and `overall`.
        cases: Share of cases that meet all conditions.
        types: Rates like `grades`, by test type in the suite's order.
        topics: Rates like `grades`, by topic.
    """

    grades: Mapping[str, Rate]
    cases: Rate
    types: Mapping[str, Mapping[str, Rate]]
    topics: Mapping[str, Mapping[str, Rate]]


def rates(suite: Suite, results: Sequence[Result]) -> Rates:
    """Compute pass rates by grade, test type and topic.

    Args:
        results: Results of the suite's cases. Cases without results are ignored.
    """
    by_chance = {(case.case_id, grade): p for case in suite.cases for grade, p in chance(case.conditions).items()}

    def each(of: Callable[[Result], str], names: Iterable[str]) -> dict[str, Mapping[str, Rate]]:
        return {name: _by_grade([r for r in results if of(r) == name], by_chance) for name in names}

    return Rates(
        _by_grade(results, by_chance),
        _whole(suite, results),
        each(lambda r: r.test_type, dict.fromkeys(case.test_type for case in suite.cases)),
        each(lambda r: r.topic, dict.fromkeys(case.topic for case in suite.cases)),
    )


def _by_grade(results: Sequence[Result], by_chance: Mapping[tuple[str, str], float]) -> dict[str, Rate]:
    found = {grade: _rate([r for r in results if r.grade == grade], by_chance) for grade in GRADES}
    return {**found, OVERALL: _rate(results, by_chance)}


def _rate(results: Sequence[Result], by_chance: Mapping[tuple[str, str], float]) -> Rate:
    judged = [r for r in results if r.outcome != "unjudged"]
    by_case: dict[str, list[bool]] = {}
    for r in judged:
        by_case.setdefault(r.case_id, []).append(r.outcome == "passed")
    return _made(
        list(by_case.values()),
        sum(r.outcome == "unparsable" for r in judged),
        len(results) - len(judged),
        [by_chance[r.case_id, r.grade] for r in judged],
    )


def _whole(suite: Suite, results: Sequence[Result]) -> Rate:
    """The share of cases that meet all conditions. Cases with an unjudged condition are left out."""
    outcomes: dict[str, set[Outcome]] = {}
    for r in results:
        outcomes.setdefault(r.case_id, set()).add(r.outcome)
    judged = {i: found for i, found in outcomes.items() if "unjudged" not in found}
    return _made(
        [[found == {"passed"}] for found in judged.values()],
        sum("unparsable" in found for found in judged.values()),
        len(outcomes) - len(judged),
        [chance_of_all(case.conditions) for case in suite.cases if case.case_id in judged],
    )


def _made(by_case: Sequence[Sequence[bool]], unparsable: int, unjudged: int, by_chance: Sequence[float]) -> Rate:
    passed, counts = (np.array([f(held) for held in by_case], np.float64) for f in (sum, len))
    n, held = int(counts.sum()), int(passed.sum())
    low, high = interval(means(passed, counts)) or (None, None)  # conditions of one case are not independent
    random = sum(by_chance) / n if n else None
    return Rate(n, held, unparsable, unjudged, held / n if n else None, low, high, random)
