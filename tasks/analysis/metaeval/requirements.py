"""Pass rates that a judge must reach on a suite before it is promoted (`promotion` in the config).

Method: docs/methods.md#judging-the-judges.

If a grader uses a judge of claims, its results also count for that judge. Left out: measuring (`metaeval.py`).
"""

from pathlib import Path

import polars as pl

from tasks.analysis.metaeval.metaeval import of_part
from tasks.analysis.metaeval.pass_rates import OVERALL, Rate, Result, rates
from tasks.analysis.metaeval.suite import Suite, read
from tasks.core.config import Promotion
from tasks.core.errors import UsageError
from tasks.core.paths import config_option, suite_dir
from tasks.core.schemas import METAEVAL
from tasks.store.lake import Lake


def suite_of(settings: Promotion) -> Suite:
    """Read the suite that `promotion` names.

    Raises:
        UsageError: The suite does not exist.
        DataError: A line is not a valid test case.
    """
    return read(settings.suite or suite_dir())


def shown(lake: Lake, suite: Suite) -> dict[str, list[Result]]:
    """Results on a suite, by version of the grader and by version of the judge of claims that it uses.

    If several graders use the same judge, the one that graded last counts for the judge.
    """
    found = []
    for part in lake.parts(METAEVAL):
        if part.name == suite.version and part.rows():
            of = pl.DataFrame(part.read(["judge_version", "claims_judge_version", "judged_at"]))
            found.append((of["judged_at"].to_list(), of["judge_version"][0], of["claims_judge_version"][0], part))
    by_version: dict[str, list[Result]] = {}
    for _, judge, claims_judge, part in sorted(found, key=lambda f: max(f[0])):
        by_version[judge] = of_part(part)
        if claims_judge is not None:
            by_version[claims_judge] = by_version[judge]
    return by_version


def check(settings: Promotion, lake: Lake, judge: Path, version: str, config: Path) -> float | None:
    """Refuse a judge that does not reach the required pass rates.

    Here, unjudged conditions count as not passed.

    Args:
        version: The judge's version.

    Returns:
        The overall pass rate; None if no rate is required.

    Raises:
        UsageError: The judge has no results, or a rate is too low.
    """
    if not settings.pass_rates:
        return None
    suite = suite_of(settings)
    known = shown(lake, suite)
    named = "" if settings.suite is None else f" --suite {settings.suite}"
    remedy = f"Run `leadline metaeval{config_option(config)} --judge {judge}{named}`"
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
        _below(name, found[name], least) for name, least in settings.pass_rates.items() if _strict(found[name]) < least
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
    """The share passed, counting unjudged conditions as not passed."""
    return rate.passed / (rate.n + rate.unjudged)


def _below(name: str, rate: Rate, least: float) -> str:
    ends = "" if rate.low is None or rate.high is None else f" [{rate.low:.3f}, {rate.high:.3f}]"
    return f"{name} {_strict(rate):.3f}{ends}, required {least:g}"
