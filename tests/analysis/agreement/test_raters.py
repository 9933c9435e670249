"""Selectors into raters, and the errors where that is not possible."""

from datetime import date
from typing import Any

import pytest

from tasks.analysis.agreement.raters import Candidates, no_overlap, rater
from tasks.analysis.compare.drift import backfill
from tasks.core.errors import UsageError

DAY = date(2026, 11, 1)


def recipe(name: str, version: str, n: int = 5, extractor: str = "e1", **more: Any) -> dict[str, Any]:
    return {
        "recipe": f"r-{version}", "recipe_name": "default", "judge_name": name, "judge_version": version, "n": n,
        "judge_versions": [version], "extractor_version": extractor, "first_date": DAY, "last_date": DAY, **more,
    }  # fmt: skip


def grader(name: str, version: str, n: int = 5) -> dict[str, Any]:
    return {"name": name, "version": version, "n": n}


def candidates(*rows: dict[str, Any], **more: Any) -> Candidates:
    return Candidates(
        tuple(r for r in rows if "recipe" in r), tuple(r for r in rows if "recipe" not in r), ("ann",), **more
    )


def test_a_name_alone_is_whatever_has_it() -> None:
    """nli is a judge of claims and a grader; its kind says which of the two is meant."""
    of = candidates(recipe("nli", "aaaa1111"), grader("nli", "bbbb2222"))
    both = rater("nli", of)
    assert (len(both.recipes), both.grader, both.name) == (1, "bbbb2222", "nli aaaa1111 bbbb2222")
    assert (rater("judge:nli", of).grader, rater("grader:nli", of).recipes) == (None, ())
    assert rater("bbbb", of).grader == "bbbb2222"


def test_people_take_of_each_extractor_the_recipe_that_scored_most() -> None:
    of = candidates(recipe("a", "v1", 3), recipe("b", "v2", 9), recipe("c", "v3", 1, "e2"), recipe("d", "v4", 0, "e3"))
    assert {r["judge_version"] for r in rater("people", of).recipes} == {"v2", "v3"}
    assert rater("reviewer:ann", of).reviewer == "ann"


@pytest.mark.parametrize("word", ["llm", "judge:llm"])
def test_several_versions_are_listed(word: str) -> None:
    """One that has nothing in the days asked for does not count."""
    of = candidates(recipe("llm", "v1000"), recipe("llm", "v2000"), recipe("llm", "v3000", 0))
    with pytest.raises(UsageError, match=r"has 2 versions: v1000 .*; v2000 .*\. Give one by its hash\.") as error:
        rater(word, of)
    assert "v3000" not in str(error.value)
    with pytest.raises(UsageError, match=r"g has 2 versions: w1000 \(5 answers graded\); w2000 \(5 answers graded\)\."):
        rater("g", candidates(grader("g", "w1000"), grader("g", "w2000")))


def test_graders_of_a_suite_alone_are_found_there() -> None:
    suite = {"name": "mine/test", "version": "s1", "n": 3, "graders": ["g1", "g2"], "grader_names": ["lots", "other"]}
    with pytest.raises(
        UsageError, match=r"lots: has graded no trace, only cases of a suite\. Ask with --suite mine/test\."
    ):
        rater("lots", candidates(recipe("nli", "aaaa1111"), suites=(suite,)))
    of = candidates(grader("lots", "g1"), grader("other", "g2"), suites=(suite,))
    raters = rater("lots", of), rater("other", of)
    assert no_overlap(("lots", "other"), *raters, of).endswith("add --suite mine/test.")


def test_what_to_do_where_claims_are_others() -> None:
    of = candidates(recipe("a", "v1000"), recipe("b", "v2000", extractor="e2"))
    message = no_overlap(("a", "b"), rater("a", of), rater("b", of), of)
    assert "Their recipes cut answers into different claims." in message


def test_what_to_do_where_days_are_others() -> None:
    of = candidates(recipe("old", "v1000"), recipe("new", "v2000", first_date=date(2026, 11, 2)))
    message = no_overlap(("old", "new"), rater("old", of), rater("new", of), of)
    assert message.endswith("leadline backfill --judge new --from 2026-11-01 --to 2026-11-01.")


def test_a_judge_may_be_called_as_a_kind_is() -> None:
    of = candidates(recipe("grader", "v1000"), recipe("reviewer", "v2000"))
    assert (rater("grader", of).name, rater("reviewer", of).name) == ("grader v1000", "reviewer v2000")


def test_a_backfill_names_what_there_is() -> None:
    """A cascade has no file of its own: it is the recipe's."""
    assert backfill(recipe("nli", "v1"), DAY, DAY).startswith("leadline backfill --judge nli ")
    cascade = recipe("nli → llm", "v3", judge_versions=["v1", "v2"])
    assert backfill(cascade, DAY, DAY) == "leadline backfill --recipe default --from 2026-11-01 --to 2026-11-01"
    assert backfill(cascade, None, None).endswith("--from DAY --to DAY")
