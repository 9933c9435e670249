"""The list of nights: which had changes, from where on something is measured otherwise, and a trend of each app."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from kit.html_tree import parse
from kit.report_nights import by_hand
from kit.report_rows import JUDGE, NIGHT, RECIPE, nightly

from tasks.publish.report.index import changes, summaries
from tasks.publish.report.site import build

BEFORE = NIGHT - timedelta(1)


def site(tmp_path: Path, **changes: Any) -> Any:
    """Two nights; `changes` are of the rows of the second one."""
    for night in (BEFORE, NIGHT):
        rows = by_hand()
        nightly(rows)
        for name, table in rows.tables.items():
            for row in table:
                if "date" in row and name not in {"runs"}:
                    row["date"] = night
        if night == NIGHT:
            for row in rows.tables["trace_scores"]:
                row.update(changes.get("scores", {}))
            for row in changes.get("alerts", []):
                rows.add("alerts", recipe=RECIPE, judge_version=JUDGE, date=NIGHT, **row)
            for row in rows.tables["recipes"]:
                row.update(changes.get("recipes", {}))
            for row in changes.get("judges", []):
                rows.add("judges", **row)
        else:
            for row in rows.tables["trace_scores"]:
                row.update(changes.get("before", {}))
        build(rows.reader(), tmp_path, night, RECIPE, 0)
    return parse(tmp_path / "index.html")


def changed(tmp_path: Path) -> list[list[str]]:
    return [night["changed"] for night in summaries(tmp_path)]


def test_nothing_is_marked_where_nothing_changed(tmp_path: Path) -> None:
    page = site(tmp_path)
    assert changed(tmp_path) == [[], []]
    assert page.all("p", "alerted") == []
    assert "Changed since" not in page.words()


def test_a_night_with_alerts_leads_to_them(tmp_path: Path) -> None:
    alert = {
        "app": "support",
        "generator": "meridian-8b",
        "number": "groundedness",
        "direction": "down",
        "status": "fired",
    }
    page = site(tmp_path, alerts=[alert, {**alert, "number": "faithfulness"}])
    (mark,) = page.all("p", "alerted")
    assert mark.words() == "2 numbers changed"
    assert f"{NIGHT}/index.html#alerts" in page.links()


def test_another_prompt_is_named_with_the_one_before(tmp_path: Path) -> None:
    page = site(tmp_path, scores={"prompt_version": "v<5>"}, before={"prompt_version": "v4"})
    generators = sorted({r["generator"] for r in by_hand().tables["trace_scores"]})
    (first, second) = changed(tmp_path)
    assert (sorted(first), second) == ([f"prompt of {g} v<5> (before: v4)" for g in generators], [])
    assert "Changed since the night before: prompt of" in page.words()


def test_another_retriever_and_a_new_generator_are_named(tmp_path: Path) -> None:
    generator = by_hand().tables["trace_scores"][0]["generator"]
    at = {"app": "support", "generator": generator, "prompts": []}
    before = {"judge_version": "j", "recipe": "r", "setups": [{**at, "retrievers": ["bm25"]}]}
    new = [{**at, "retrievers": ["bm25", "e5"]}, {**at, "generator": "next", "retrievers": []}]
    other = {**at, "app": "hr", "retrievers": []}  # an application that was not there has no new generator
    assert changes(before, {**before, "setups": [*new, other]}) == [
        f"retriever of {generator} bm25 and e5 (before: bm25)",
        "new generator next of support",
    ]


def test_another_judge_is_named_with_the_one_before(tmp_path: Path) -> None:
    other = {"judge_version": "0123456789abcdef", "name": "new", "kind": "k", "definition": "{}"}
    site(tmp_path, recipes={"judge_version": other["judge_version"]}, judges=[other])
    (first, second) = changed(tmp_path)
    assert (second, len(first)) == ([], 1)
    assert first[0].startswith("judge new (before: ")


def test_each_app_has_a_trend_from_the_second_night_on(tmp_path: Path) -> None:
    rows = by_hand()
    nightly(rows)
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 0)
    assert parse(tmp_path / "index.html").all("figure") == []
    page = site(tmp_path)
    figures = {figure.one("figcaption").words(): figure for figure in page.all("figure")}
    assert set(figures) == {row["app"] for row in rows.tables["nightly_groundedness"]}
    assert "over 2 nights" in figures["support"].one("div", "plot").attrs["aria-label"]
