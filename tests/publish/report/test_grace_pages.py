"""Right sources on the pages: of a night, of a trace, and where nothing is annotated."""

import re
from pathlib import Path
from typing import Any

import pytest
from kit.html_tree import Node, parse
from kit.report_nights import HOSTILE, by_hand
from kit.report_rows import NIGHT, RECIPE, Rows, nightly

from tasks.publish.report.site import build
from tasks.publish.report.text import slug

MISSES = {"not_retrieved": 4, "retrieved_not_cited": 1, "cited_another": 3, "cited_nothing": 2}
EVIL = "<b>doc</b>"


def outcome(rows: Rows, trace_id: str, what: str | None, gold: list[str], cited: list[str], **more: Any) -> None:
    rows.add(
        "trace_grace", recipe=RECIPE, date=NIGHT, trace_id=trace_id, app="support", generator="g",
        status="scored" if what else "na", gold=gold, cited=cited, outcome=what, **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = by_hand()
    nightly(rows)
    of = {"recipe": RECIPE, "date": NIGHT, "app": "support"}
    rows.add(
        "nightly_grace", **of, generator="g", n=25, n_scored=20, n_na=5, hits=10, **MISSES, accuracy=0.5,
        accuracy_low=0.299, accuracy_high=0.701, f1_micro=0.456, f1_micro_low=0.222, f1_micro_high=0.717, f1_macro=0.351,
        sources=3,
    )  # fmt: skip
    rows.add("nightly_grace", **of, generator="bare", n=7, n_na=7)
    for gold, cited, n in [("a", "b", 2), (EVIL, "c", 1), ("a", "a", 9), ("a", None, 8)]:
        rows.add("nightly_grace_confusion", **of, generator="g", gold=gold, cited=cited, n=n)
    for source in ("a", EVIL):
        rows.add("nightly_grace_sources", **of, generator="g", source=source, support=12)
    outcome(rows, "kinds", "cited_another", ["war-2", "z"], ["ret-1", "ship-3"], gold_chunk_ids=["war-2"])
    outcome(rows, "lost", "cited_nothing", ["ship-3"], [], gold_chunk_ids=["ship-3"])
    outcome(rows, "silent", None, [], [])
    outcome(rows, HOSTILE, "not_retrieved", [EVIL], [])
    out = tmp_path_factory.mktemp("grace")
    build(rows.reader(), out, NIGHT, RECIPE, 100)
    return out / str(NIGHT)


def texts(tree: Node) -> list[list[str]]:
    return [[plain(c.words()) for c in r.children if isinstance(c, Node)] for r in tree.all("tr")]


def plain(text: str) -> str:
    return text.replace("\u202f", "").replace("\u00a0", " ")


def sources_of(site: Path, trace_id: str) -> dict[str, str]:
    (shown,) = parse(site / "traces" / f"{slug(trace_id)}.html").all("dl", "grace")
    return {d.one("dt").words(): d.one("dd").words() for d in shown.all("div")}


def test_a_night_shows_accuracy_and_the_split(site: Path) -> None:
    section = parse(site / "index.html").one(id_="grace")
    table, confused = section.all("table")
    rows = texts(table)
    at = next(i for i, r in enumerate(rows) if r[0] == "g support")
    assert rows[0][1:6] == ["hit", "cited another", "cited nothing", "retrieved but not cited", "not retrieved"]
    assert rows[at + 1] == ["10 50%", "3 15%", "2 10%", "1 5%", "4 20%", "50.0% [30, 70] n=20, 5 n/a", "0.46 [0.22, 0.72]", "0.35 3 sources"]  # fmt: skip
    (bare, chart) = [d.attrs["aria-label"] for d in table.all("div", "stack")]
    assert chart.endswith("10 hit, 3 cited another, 2 cited nothing, 1 retrieved but not cited and 4 not retrieved.")
    assert bare.endswith("nothing is annotated.")
    assert texts(confused)[1:] == [["a", "b", "g support", "2 of 12"], [EVIL, "c", "g support", "1 of 12"]]


def test_what_is_not_annotated_is_never_zero_percent(site: Path) -> None:
    rows = texts(parse(site / "index.html").one(id_="grace").one("table", "bars"))
    at = next(i for i, r in enumerate(rows) if r[0] == "bare support")
    assert rows[at + 1] == ["0", "0", "0", "0", "0", "n/a n=0, 7 n/a", "n/a", "n/a 0 sources"]


def test_every_outcome_has_a_color_in_light_and_dark(site: Path) -> None:
    css = (site.parent / "style.css").read_text()
    for name in ("hit", *MISSES):
        assert len(re.findall(rf"--c-{name}: #", css)) == 2
        assert f".d-{name} " in css


def test_a_trace_says_what_was_right_what_was_cited_and_what_came_of_it(site: Path) -> None:
    assert sources_of(site, "kinds") == {
        "Right source": "war-2 or z", "Cited": "ret-1 and ship-3", "Outcome": "cited another",
    }  # fmt: skip
    assert sources_of(site, "lost") == {"Right source": "ship-3", "Cited": "nothing", "Outcome": "cited nothing"}
    assert sources_of(site, HOSTILE)["Right source"] == EVIL
    chunks = parse(site / "traces" / f"{slug('kinds')}.html").one(id_="chunks").all("article")
    assert ["annotated source" in c.text() for c in chunks] == [False, True, False]


def test_a_trace_that_is_not_annotated_says_nothing(site: Path) -> None:
    for trace_id in ("silent", "bare"):  # one is N/A, of the other nothing is on record
        assert not parse(site / "traces" / f"{slug(trace_id)}.html").all("dl", "grace")


def test_a_night_without_annotations_says_so(tmp_path: Path) -> None:
    rows = by_hand()
    rows.add("nightly_grace", recipe=RECIPE, date=NIGHT, app="support", generator="g", n=7, n_na=7)
    section = parse(build(rows.reader(), tmp_path, NIGHT, RECIPE, 0)).one(id_="grace")
    assert "No trace of this night is annotated" in section.words()
    assert not section.all("table")


def test_chunks_that_the_trace_itself_annotates_are_marked_before_they_are_scored(tmp_path: Path) -> None:
    rows = by_hand()
    (row,) = [t for t in rows.tables["traces"] if t["trace_id"] == "kinds"]
    row["gold_chunk_ids"] = ["ship-3"]
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 100)
    chunks = parse(tmp_path / str(NIGHT) / "traces" / f"{slug('kinds')}.html").one(id_="chunks").all("article")
    assert ["annotated source" in c.text() for c in chunks] == [False, False, True]
