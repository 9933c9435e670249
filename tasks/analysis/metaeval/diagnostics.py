"""Explain in plain words why a judge fails a suite, such as constant, reversed or biased grades.

Each diagnostic is a sentence with counts, worst first. Diagnostics are computed without a model, and only patterns that
chance hardly explains are reported. Left out: rates (`pass_rates.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from scipy.stats import mannwhitneyu

from tasks.analysis.metaeval.conditions import parse
from tasks.analysis.metaeval.pass_rates import OVERALL, Rates, Result, rates
from tasks.analysis.metaeval.suite import Suite
from tasks.core.grades import GRADED, RANGES, Grader

ALWAYS = 0.95  # share of equal values from which a grade counts as constant
LEAST = 3  # smallest number of cases for a pattern
SURE = 0.01  # p below which grades count as reversed
APART = 0.4  # smallest difference of two pass rates to report
MOST = 3  # test types to name

# What it means to fail a test type, by type of the bundled suite and grade.
MEANINGS: Mapping[tuple[str, str], str] = {
    ("absurd_in_reference", "faithfulness"): "goes by its own knowledge instead of the references",
    ("missing_citation", "faithfulness"): "lets statements without a citation pass",
    ("wrong_citation", "faithfulness"): "does not check that the cited reference is the one with this content",
    ("unsupported_claim", "faithfulness"): "lets claims pass that are in no reference",
    ("distorted", "faithfulness"): "does not see that a reference's content is distorted",
    ("answers_without_source", "faithfulness"): "believes an answer that no reference holds",
    ("answers_without_source", "completeness"): "does not see that no reference answers the question",
    ("declines_wrongly", "completeness"): "does not see that the references hold the answer",
    ("declines_wrongly", "answer_relevancy"): "takes an answer that declines for one that answers",
    ("irrelevant_additions", "answer_relevancy"): "does not mind irrelevant additions",
    ("only_irrelevant", "answer_relevancy"): "does not mind that an answer is about something else",
    ("only_irrelevant", "completeness"): "counts content that was not asked for as complete",
    ("missing_part", "completeness"): "does not miss what is left out",
    ("missing_most", "completeness"): "does not miss that most is left out",
    ("perfect_without_related", "completeness"): "expects more than the question asks for",
    ("declines_rightly_useful", "usefulness"): "does not honour useful related information",
    ("declines_rightly_useless", "usefulness"): "takes useless related information for useful",
    ("declines_rightly_bare", "usefulness"): "grades the usefulness of an answer that adds nothing",
    ("perfect_answer", "usefulness"): "grades the usefulness of an answer that does not decline",
}


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """All results of one judge on one suite.

    Attributes:
        judge: Name of the judge.
        claims_judge_version: Version of the judge of claims that the grader uses; None if it uses none.
        diagnostics: Sentences on what seems to be wrong with the judge.
        notes: Remarks on the run and the suite.
    """

    judge: str
    judge_version: str
    claims_judge_version: str | None
    suite: str
    suite_version: str
    n_cases: int
    rates: Rates
    diagnostics: tuple[str, ...]
    notes: tuple[str, ...]
    results: tuple[Result, ...]


def report(
    name: str, grader: Grader, suite: Suite, results: Sequence[Result], notes: Sequence[str] = ()
) -> JudgeReport:
    """Compute pass rates and diagnostics of a judge.

    Args:
        name: Display name of the judge.
    """
    found, inner = rates(suite, results), grader.describe().get("judge")
    return JudgeReport(
        judge=name,
        judge_version=grader.version,
        claims_judge_version=inner if isinstance(inner, str) else None,
        suite=suite.name,
        suite_version=suite.version,
        n_cases=len(suite.cases),
        rates=found,
        diagnostics=tuple(diagnostics(found, results)),
        notes=tuple(notes),
        results=tuple(results),
    )


def diagnostics(found: Rates, results: Sequence[Result]) -> list[str]:
    """Describe what seems to be wrong with a judge; empty if it passes everything."""
    overall = found.grades[OVERALL]
    if overall.value is None or overall.passed == overall.n:
        return []
    by_grade: dict[str, list[Result]] = {grade: [r for r in results if r.grade == grade] for grade in GRADED}
    constant: dict[str, str] = {grade: value for grade in GRADED if (value := _constant(by_grade[grade])) is not None}
    reversed_ = {
        grade: line for grade in GRADED if grade not in constant and (line := _reversed(grade, by_grade[grade]))
    }
    plain = [grade for grade in GRADED if grade not in constant and grade not in reversed_]
    return [
        *_constants(constant, by_grade),
        *reversed_.values(),
        *_unparsable(by_grade),
        *_no_better(found),
        *(line for grade in plain for line in _declining(grade, by_grade[grade])),
        *(line for grade in plain for line in _leaning(grade, by_grade[grade])),
        *_types(found, plain),
    ]


def _read(results: Sequence[Result]) -> list[Result]:
    return [r for r in results if r.outcome in ("passed", "failed")]


def _constant(results: Sequence[Result]) -> str | None:
    """The value of nearly all grades, in plain words; None if there is none or if the conditions call for it."""
    read = _read(results)
    if len(read) < LEAST:
        return None
    values = [r.value for r in read]
    common = max(dict.fromkeys(values), key=values.count)
    if values.count(common) < ALWAYS * len(values):
        return None
    wanted = sum(parse(r.condition).holds(common) for r in read)
    return _words(common) if wanted <= ALWAYS * len(read) - 1 else None


def _constants(found: Mapping[str, str], by_grade: Mapping[str, Sequence[Result]]) -> Iterator[str]:
    if len(found) > 1 and all(len({r.value for r in _read(by_grade[grade])}) == 1 for grade in found):
        whole = "gives every answer the same grades" if len(found) == len(GRADED) else "grades every answer alike"
        yield f"It {whole}: {', '.join(f'{_name(grade)} {value}' for grade, value in found.items())}."
        return
    for grade, value in found.items():
        read = _read(by_grade[grade])
        times = sum(_words(r.value) == value for r in read)
        how_often = "always" if times == len(read) else "nearly always"
        yield f"It {how_often} gives {_name(grade)} {value} ({times} of {len(read)})."


def _reversed(grade: str, results: Sequence[Result]) -> str | None:
    """Describe a grade that is high where the conditions call for low, and low where they call for high."""
    scored = [r for r in _read(results) if r.value is not None]
    low, high = ([r for r in scored if _calls_for(grade, r) == what] for what in ("low", "high"))
    if min(len(low), len(high)) < LEAST:
        return None
    of_low, of_high = ([float(r.value or 0) for r in some] for some in (low, high))
    if fmean(of_high) >= fmean(of_low) or mannwhitneyu(of_high, of_low, alternative="less").pvalue >= SURE:
        return None
    both = [*low, *high]
    least, most = RANGES[grade]
    as_is = sum(r.outcome == "passed" for r in both)
    if_reversed = sum(parse(r.condition).holds(least + most - float(r.value or 0)) for r in both)
    return (
        f"Its {_name(grade)} is reversed, as if {most} and {least} were swapped: on average "
        f"{fmean(of_high):.1f} where a high grade is called for, {fmean(of_low):.1f} where a low one is. Reversed, "
        f"{if_reversed} of these {len(both)} would pass, not {as_is}."
    )


def _unparsable(by_grade: Mapping[str, Sequence[Result]]) -> Iterator[str]:
    judged = [r for results in by_grade.values() for r in results if r.outcome != "unjudged"]
    lost = [r for r in judged if r.outcome == "unparsable"]
    if not lost:
        return
    read = len(judged) - len(lost)
    passed = sum(r.outcome == "passed" for r in judged)
    counts = {grade: sum(r.grade == grade for r in lost) for grade in GRADED}
    where = ", ".join(f"{_name(grade)} {n}" for grade, n in counts.items() if n)
    rest = f" Of those that can, {passed / read:.0%} pass." if read else ""
    yield f"{len(lost) / len(judged):.1%} of its replies can't be read ({len(lost)} of {len(judged)}: {where}).{rest}"


def _declining(grade: str, results: Sequence[Result]) -> Iterator[str]:
    """Describe N/A that is given never, seldom or too often."""
    read = _read(results)
    called = [r for r in read if _calls_for(grade, r) == "na"]
    others = [r for r in read if _calls_for(grade, r) != "na"]
    rightly, wrongly = (sum(r.value is None for r in some) for some in (called, others))
    if len(called) >= LEAST and not rightly and not wrongly:
        yield f"It never gives N/A for {_name(grade)}, which {len(called)} of {len(read)} cases call for."
    elif len(called) >= LEAST and rightly < len(called) / 2:
        yield f"It seldom gives N/A for {_name(grade)} where that is right: {rightly} of {len(called)}."
    if len(others) >= LEAST and wrongly > len(others) / 3:
        yield f"It gives N/A for {_name(grade)} in {wrongly} of {len(others)} cases that call for a grade."


def _leaning(grade: str, results: Sequence[Result]) -> Iterator[str]:
    """Describe generous judges, which fail where low grades are called for, and strict judges, which do the reverse."""
    scored = [r for r in _read(results) if r.value is not None]
    low, high = ([r for r in scored if _calls_for(grade, r) == what] for what in ("low", "high"))
    if min(len(low), len(high)) < LEAST:
        return
    of_low, of_high = (sum(r.outcome == "passed" for r in some) for some in (low, high))
    lead = of_high / len(high) - of_low / len(low)
    if abs(lead) >= APART:
        yield (
            f"It is {'generous' if lead > 0 else 'strict'} with {_name(grade)}: of conditions that call for a high "
            f"grade it passes {of_high} of {len(high)}, of those that call for a low one {of_low} of {len(low)}."
        )


def _types(rates: Rates, plain: Sequence[str]) -> Iterator[str]:
    """Describe test types that mostly fail: what the failure means, if known, then the worst types by name."""
    cells = [
        (rate.value, test_type, grade, rate)
        for test_type, of in rates.types.items()
        for grade in plain
        if (rate := of[grade]).n >= LEAST and rate.value is not None and rate.value < 0.5
    ]
    clearest = sorted((c for c in cells if c[1:3] in MEANINGS), key=lambda c: c[:3])[:MOST]
    for _, test_type, grade, rate in clearest:
        yield f"It {MEANINGS[test_type, grade]}: {test_type}, {_name(grade)}, {rate.passed} of {rate.n} passed."
    whole = [(r.value, t, r) for t, of in rates.types.items() if (r := of[OVERALL]).value is not None]
    if len(whole) > 1 and (worst := [c for c in sorted(whole, key=lambda c: c[:2]) if c[2].passed < c[2].n][:MOST]):
        yield f"It passes least of {', '.join(f'{t} ({v:.0%})' for v, t, _ in worst)}."


def _no_better(rates: Rates) -> Iterator[str]:
    overall = rates.grades[OVERALL]
    if overall.low is not None and overall.random is not None and overall.low <= overall.random:
        yield (
            f"It is no better than a judge that draws its grades at random, which is expected to pass "
            f"{overall.random:.0%}."
        )


def _calls_for(grade: str, result: Result) -> str | None:
    """Which grades meet a result's condition: `na`, `low` or `high`."""
    values = parse(result.condition).fulfilled_by(grade)
    if None in values:
        return "na"
    numbers = [v for v in values if v is not None]
    if not numbers or fmean(numbers) == (middle := sum(RANGES[grade]) / 2):
        return None
    return "high" if fmean(numbers) > middle else "low"


def _words(value: float | None) -> str:
    return "N/A" if value is None else f"{value:g}"


def _name(grade: str) -> str:
    return grade.replace("_", " ")
