"""What a judge has to have shown on a suite before it may be promoted (`promotion` in the config; METHODS section 10).

Results of a grader that asks a judge of claims are results of that judge too. Left out: how results come about
(`metaeval.py`).
"""

from pathlib import Path

from tasks.analysis.metaeval.metaeval import of_part
from tasks.analysis.metaeval.pass_rates import OVERALL, Rate, Result, rates
from tasks.analysis.metaeval.suite import Suite, read
from tasks.core.config import Promotion
from tasks.core.errors import UsageError
from tasks.core.paths import suite_dir
from tasks.core.schemas import METAEVAL
from tasks.store.lake import Lake


def suite_of(settings: Promotion) -> Suite:
    """The suite that a judge is measured by.

    Raises:
        UsageError: It is not there.
        DataError: A line of it is no test case.
    """
    return read(settings.suite or suite_dir())


def shown(lake: Lake, suite: Suite) -> dict[str, list[Result]]:
    """What each judge has shown on a suite, by the versions of graders and of the judges of claims that they ask.

    Of several graders that ask one judge, the one that graded last.
    """
    found = []
    for part in lake.parts(METAEVAL):
        if part.name == suite.version and part.rows():
            of = part.read(["judge_version", "claims_judge_version", "judged_at"]).to_pylist()
            found.append((max(row["judged_at"] for row in of), of[0], part))
    by_version: dict[str, list[Result]] = {}
    for _, of, part in sorted(found, key=lambda f: f[0]):
        its = of_part(part)
        by_version[of["judge_version"]] = its
        if of["claims_judge_version"] is not None:
            by_version[of["claims_judge_version"]] = its
    return by_version


def check(settings: Promotion, lake: Lake, judge: Path, version: str, config: Path) -> float | None:
    """Refuse a judge that does not reach the required pass rates.

    Whatever is unjudged counts as not passed here: a judge has to have shown it.

    Args:
        version: Of the judge; its file is for messages.

    Returns:
        Its overall pass rate; None where nothing is required.

    Raises:
        UsageError: It has no results, or a rate is below what is required.
    """
    if not settings.pass_rates:
        return None
    suite = suite_of(settings)
    known = shown(lake, suite)
    named = "" if settings.suite is None else f" --suite {settings.suite}"
    remedy = f"Run `leadline metaeval --judge {judge}{named} --config {config}`"
    if version not in known:
        raise UsageError(
            f"{judge}: {config} requires pass rates on suite {suite.name} (promotion.pass_rates), and this version of "
            f"the judge has no results there. {remedy} first."
        )
    results = known[version]
    if done := len(suite.cases) - len({r.case_id for r in results}):
        raise UsageError(f"{judge}: {done} of {len(suite.cases)} cases of suite {suite.name} are not graded. {remedy}.")
    found = rates(suite, results).grades
    below = [
        _said(name, found[name], least) for name, least in settings.pass_rates.items() if _strict(found[name]) < least
    ]
    if below:
        unjudged = sum(r.outcome == "unjudged" for r in results)
        open_ = (
            f" {unjudged} unjudged conditions count as not passed; {remedy} to have them judged." if unjudged else ""
        )
        raise UsageError(
            f"{judge} is below what promotion.pass_rates of {config} requires on suite {suite.name}: "
            f"{'; '.join(below)}.{open_} Take a judge that passes, or require less."
        )
    return _strict(found[OVERALL])


def _strict(rate: Rate) -> float:
    """The share that is passed of all, unjudged ones included."""
    return rate.passed / (rate.n + rate.unjudged)


def _said(name: str, rate: Rate, least: float) -> str:
    ends = "" if rate.low is None or rate.high is None else f" [{rate.low:.3f}, {rate.high:.3f}]"
    return f"{name} {_strict(rate):.3f}{ends}, required {least:g}"
