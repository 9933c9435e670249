"""Pass rates of a judge on a suite of test cases, with intervals (docs/methods.md#judging-the-judges).

Pure: from results to rates. Left out: where results come from (`metaeval.py`), and what may be wrong with a judge that
fails (`diagnostics.py`).
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
    """One grade of one case, held against its condition.

    Attributes:
        grade: One of the six.
        condition: As written.
        outcome: `unparsable`: there is a reply that can't be read. `unjudged`: there is no reply.
        value: The grade; None for N/A, and where there is none.
        explanation: The grader's reasons, where it gives any.
        failure: Why there is no grade.
        raw: A reply that can't be read.
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
    """Which share of conditions, or of cases, a judge passes.

    Attributes:
        n: How many count: all but the unjudged ones.
        value: passed / n: what can't be read is not passed. None where n is 0.
        low: Lower end of its 95% interval over cases; None below two of them.
        high: Upper end.
        random: What a judge that draws its grades at random is expected to pass of the same.
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
    """Everything that is counted of one judge on one suite.

    Attributes:
        grades: Of each of the six grades, and `overall`.
        cases: Cases of which every condition is met.
        types: The same as `grades` of each test type, in the suite's order.
        topics: The same of each topic.
    """

    grades: Mapping[str, Rate]
    cases: Rate
    types: Mapping[str, Mapping[str, Rate]]
    topics: Mapping[str, Mapping[str, Rate]]


def rates(suite: Suite, results: Sequence[Result]) -> Rates:
    """Pass rates by grade, test type and topic.

    Args:
        results: Of the suite's cases; cases that have none yet count nowhere.
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
    """The share of cases with every condition met; a case with anything unjudged does not count."""
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
    low, high = interval(means(passed, counts)) or (None, None)  # conditions of one case are no independent ones
    random = sum(by_chance) / n if n else None
    return Rate(n, held, unparsable, unjudged, held / n if n else None, low, high, random)
