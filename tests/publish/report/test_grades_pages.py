"""Grades in the report: the night's means with what they leave out, and each grade of a trace with its reasons."""

from pathlib import Path
from typing import Any

import pytest
from kit.html_tree import Node, parse
from kit.report_nights import HOSTILE, by_hand
from kit.report_rows import EXTRACTOR, JUDGE, NIGHT, RECIPE, Rows, nightly

from tasks.core.grades import GRADES
from tasks.publish.report.site import build
from tasks.publish.report.text import slug

GRADER = "6b3f0d5c9a817e24"
EVIL = "<script>alert('why')</script> \u202eno</p>"


def night(grade: str, generator: str, **counts: Any) -> dict[str, Any]:
    ident = {"recipe": RECIPE, "date": NIGHT, "app": "support", "generator": generator, "judge_version": JUDGE}
    return {**ident, "grader_version": GRADER, "grade": grade, **counts}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = by_hand()
    nightly(rows, nights=1)
    graded(rows)
    out = tmp_path_factory.mktemp("site")
    build(rows.reader(), out, NIGHT, RECIPE, 100)
    return out


def graded(rows: Rows) -> None:
    rows.tables["recipes"][0]["grader_version"] = GRADER
    rows.add("judges", judge_version=GRADER, name="<b>grader</b>", kind="entailment", definition="{}")
    for generator in ("atlas-70b", "meridian-8b"):
        for grade in GRADES:
            few = {"n": 7, "n_scored": 3, "n_na": 1, "n_unparsable": 2, "n_failed": 1, "grade_mean": 3.5}
            own: dict[str, Any] = {"n": 7, "n_na": 5, "n_ungraded": 2}
            if (generator, grade) == ("atlas-70b", "answer_relevancy"):
                own = {**few, "grade_low": 2.25, "grade_high": 4.75}
            rows.add("nightly_grades", **night(grade, generator, **own))
    ident = {"grader_version": GRADER, "extractor_version": EXTRACTOR, "date": NIGHT}
    own_rows: list[dict[str, Any]] = [
        {"grade": "answer_relevancy", "status": "scored", "value": 4.0, "explanation": EVIL},
        {"grade": "completeness", "status": "scored", "value": 3.5},
        {"grade": "faithfulness", "status": "unparsable", "failure": "not_json", "raw": "a raw reply"},
        {"grade": "usefulness", "status": "na"},
        {"grade": "positive_acceptance", "status": "scored", "value": 1.0},
        {"grade": "negative_rejection", "status": "na"},
    ]
    for row in own_rows:
        rows.add("grades", **ident, trace_id=HOSTILE, **row)
    # neither those of another grader nor those on another extractor's statements are this recipe's
    for other in ({"grader_version": "another"}, {"extractor_version": "another"}):
        rows.add("grades", **{**ident, **other}, trace_id="kinds", grade="usefulness", status="scored", value=1.0)


def section(page: Path) -> Node:
    return parse(page).one(id_="grades")


def test_the_night_shows_each_grade_with_its_interval_and_what_it_leaves_out(site: Path) -> None:
    found = section(site / str(NIGHT) / "index.html")
    assert "<b>grader</b>" in found.words()  # as text
    head, *groups = found.all("tr")
    assert [h.words() for h in head.all("th")] == [
        "Generator",
        "Answer relevancy 1 to 5",
        "Completeness 1 to 5",
        "Faithfulness 0 to 1",
        "Usefulness 0 to 1",
        "Positive acceptance 0 to 1",
        "Negative rejection 0 to 1",
    ]
    first = groups[0].all("td")
    assert first[0].words() == "3.50 [2.25, 4.75] n\u202f=\u202f3, 1\xa0n/a, 2\xa0unparsable, 1\xa0failed"
    assert first[1].words() == "n/a n\u202f=\u202f0, 5\xa0n/a, 2\xa0not graded"
    assert len(groups) == 2
    assert '<a href="#grades">' in (site / str(NIGHT) / "index.html").read_text()


def test_a_trace_shows_its_grades_and_their_reasons_as_text(site: Path) -> None:
    page = site / str(NIGHT) / "traces" / f"{slug(HOSTILE)}.html"
    rows = [[c.words() for c in (*r.all("th"), *r.all("td"))] for r in section(page).all("tr")[1:]]
    assert rows == [
        ["Answer relevancy", "4", EVIL],
        ["Completeness", "3.50", ""],
        ["Faithfulness", "unparsable not_json", ""],
        ["Usefulness", "n/a", ""],
        ["Positive acceptance", "1", "follows from the first two"],
        ["Negative rejection", "n/a", "follows from the first two"],
    ]
    text = page.read_text()
    assert "<script>alert('why')" not in text
    assert "a raw reply" not in text
    other = (site / str(NIGHT) / "traces" / f"{slug('kinds')}.html").read_text()
    assert 'id="grades"' not in other


def test_a_recipe_without_a_grader_has_no_such_section(tmp_path: Path) -> None:
    rows = by_hand()
    nightly(rows, nights=1)
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 100)
    assert all("grades" not in page.read_text() for page in tmp_path.rglob("*.html"))
