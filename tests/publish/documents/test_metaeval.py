"""The page of unit tests of judges: every text escaped, the same numbers as pictures and tables, failures side by side."""

import re
from pathlib import Path

import pytest
from kit.html_tree import Node, parse
from kit.suite_kit import Corruption, Knowing, every_tenth_lost, full_marks, line, write_suite

from tasks.analysis.metaeval.diagnostics import JudgeReport, report
from tasks.analysis.metaeval.metaeval import evaluate
from tasks.analysis.metaeval.suite import Suite, read
from tasks.core.grades import GRADES, Grade
from tasks.core.paths import suite_dir
from tasks.publish.documents.document import page as html
from tasks.publish.documents.metaeval import SHAPES, document, grid, picture

NASTY = '</div><script>alert("x")</script>&amp; \u202e \r\n'


def reported(name: str, suite: Suite, corrupt: Corruption) -> JudgeReport:
    grader = Knowing(suite, corrupt)
    return report(name, grader, suite, evaluate(grader, suite))


@pytest.fixture(scope="module")
def suite() -> Suite:
    return read(suite_dir())


@pytest.fixture(scope="module")
def page(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Node:
    path = tmp_path_factory.mktemp("page") / "page.html"
    reports = [reported("kind", suite, full_marks), reported("lossy", suite, every_tenth_lost)]
    path.write_text(html(document(suite, reports)), encoding="utf-8")
    return parse(path)


def test_it_needs_nothing_else_and_runs_no_script(page: Node) -> None:
    assert page.all("script") == []
    assert page.references() == ["data:,"]
    policies = [n.attrs["content"] for n in page.all("meta") if "http-equiv" in n.attrs]
    assert "default-src 'none'" in policies[0]
    assert len(page.ids()) == len(set(page.ids()))


def test_each_judge_has_a_matrix_of_16_by_9_for_each_grade(page: Node, suite: Suite) -> None:
    of = grid(suite)
    assert (len(of.rows), len(of.columns), len(of.cells)) == (16, 9, 144)
    assert len(set(of.cells.values())) == 144
    figures = page.all("figure")
    assert len(figures) == 2 * len(GRADES)
    # Full marks: relevancy is right where ==5, >=3 or >=4 is wanted, in 10 types of 16; every cell is drawn.
    alternative = next(n.attrs["aria-label"] for n in figures[0].all("div") if n.attrs.get("role") == "img")
    assert alternative.startswith("Answer relevancy, types by cases: 90 passed, 54 failed.")
    drawn = {shape: "".join(p.attrs["d"] for p in figures[0].all("path")).count(d) for shape, d in SHAPES.items()}
    assert drawn == {"passed": 90, "failed": 54, "unparsable": 0, "unjudged": 0}
    lost = [f.one("figcaption").words() for f in figures[6:]]
    assert any(re.search(r"\b1[45] unparsable", words) for words in lost)


def test_tables_hold_the_same(page: Node) -> None:
    table = page.one("section", id_="judge-1").all("details", "fold")[0]
    cells = [td.words() for td in table.all("td")]
    assert (len(cells), sum(c.startswith("passed") for c in cells)) == (144, 90)
    assert set(cells) == {"passed 5", "failed 5"}
    lossy = page.one("section", id_="judge-2")
    assert sum(td.words() == "unparsable" for t in lossy.all("details", "fold")[:4] for td in t.all("td")) == 58


def test_why_stands_beside_each_judge(page: Node) -> None:
    assert "It gives every answer the same grades" in page.one("section", id_="judge-1").one("ul", "reasons").words()
    assert "of its replies can't be read (58 of 576" in page.one("section", id_="judge-2").one("ul", "reasons").words()


def test_failures_stand_side_by_side(page: Node, suite: Suite) -> None:
    articles = page.one("section", id_="failures").all("article")
    first = next(a for a in articles if suite.cases[6].case_id in a.words())
    case = suite.cases[6]  # declines though the answer is there: N/A, 1, N/A and N/A are right
    assert case.question in first.text()
    assert case.answer in first.text()
    assert all(text in first.text() for text in case.references)
    rows = [[c.words() for c in tr.children if isinstance(c, Node)] for tr in first.one("table").all("tr")]
    assert rows[0] == ["Grade", "Wanted", "kind", "lossy"]
    by_grade = {row[0]: row[1:] for row in rows[1:]}
    assert by_grade["answer relevancy"][:2] == ["==None", "5 failed"]
    assert by_grade["completeness"][:2] == ["==1", "5 failed"]


def test_every_text_is_shown_as_it_is(tmp_path: Path) -> None:
    def explain(n: int, name: str, grade: Grade) -> Grade:
        if name == "usefulness":
            return Grade("unparsable", failure="unparsable", raw=f"raw {NASTY}")
        return Grade("scored", 0, explanation=f"why {NASTY}") if name == "faithfulness" else grade

    nasty = line(
        f"answer {NASTY}", input=f"question {NASTY}", expected_output=f"good {NASTY}", references=[f"reference {NASTY}"],
        metadata={"test_type": f"type {NASTY}", "topic": f"topic {NASTY}", "goal": f"goal {NASTY}"},
    )  # fmt: skip
    found = read(write_suite(tmp_path / "a.jsonl", [nasty]))
    path = tmp_path / "page.html"
    path.write_text(html(document(found, [reported(f"judge {NASTY}", found, explain)])), encoding="utf-8")
    tree = parse(path)
    assert tree.all("script") == []
    shown = tree.text()
    # A browser would make newlines of carriage returns and white space runs together in names.
    for what in ("answer", "question", "good", "reference", "type", "topic", "goal", "judge", "why", "raw"):
        assert f'{what} </div><script>alert("x")</script>&amp;' in shown, what
    assert "<script" not in path.read_text().replace("&lt;script", "")


def test_a_judge_that_passes_everything_has_no_failures(tmp_path: Path) -> None:
    found = read(write_suite(tmp_path / "a.jsonl", [line()]))
    perfect = reported("perfect", found, lambda n, name, grade: grade)
    (tmp_path / "page.html").write_text(html(document(found, [perfect])), encoding="utf-8")
    assert [n.attrs.get("id") for n in parse(tmp_path / "page.html").all("section")] == ["rates", "judge-1"]


def test_several_cases_of_a_topic_and_type_have_columns_of_their_own(tmp_path: Path) -> None:
    """As in the public suite, which names no topics."""
    lines = [line("A."), line("B."), line("C.", metadata={"test_type": "other"})]
    of = grid(read(write_suite(tmp_path / "tea.jsonl", lines)))
    assert (of.rows, of.columns) == (("perfect", "other"), ("tea 1", "tea 2"))
    assert of.cells == {(0, 0): "tea:1", (0, 1): "tea:2", (1, 0): "tea:3"}
    drawn = str(picture(of, {"tea:1": "passed", "tea:2": "unjudged"}))
    assert (drawn.count(SHAPES["passed"]), drawn.count(SHAPES["unjudged"]), drawn.count("<text")) == (1, 1, 4)
