"""The marks around figures of the sample's run; what stands in them is held against a run in `nights/test_sample.py`."""

import pytest
from conftest import script

figures = script("figures")
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in figures.PAGES}
PRINTED = """\
  app        traces   groundedness   left out
 ─────────────────────────────────────────────
  docs           53           52.6   5 / 0 / 10

  stage     computed  seconds
 ─────────────────────────────
  verdicts     1,401     55.8
"""


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_mark_is_closed_and_holds_something(text: str) -> None:
    shown = figures.shown(text)
    assert len(shown) == text.count("<!-- figure") == text.count("<!-- /figure -->")
    assert all(figure for _, figure in shown)


def test_every_figure_is_on_a_page_and_every_mark_names_one() -> None:
    named = {name for text in TEXTS.values() for name, _ in figures.shown(text)}
    assert named == {"dry_run", "nightly", *figures.NUMBERS}


def test_a_figure_is_written_between_its_marks_and_nothing_else_is() -> None:
    page = "1 of <!-- figure: traces -->1<!-- /figure --> and\n<!-- figure: nightly -->\n```text\n1\n```\n<!-- /figure -->\n1"
    expected = "1 of <!-- figure: traces -->122<!-- /figure --> and\n<!-- figure: nightly -->2<!-- /figure -->\n1"
    assert figures.filled(page, {"traces": "122", "nightly": "2"}) == expected


def test_a_mark_that_names_no_figure_is_reported() -> None:
    with pytest.raises(SystemExit, match=r"No figure is named 'trace'; there are claims, traces"):
        figures.filled("<!-- figure: trace -->1<!-- /figure -->", {"traces": "122", "claims": "3"})


def test_seconds_and_the_width_of_their_column_are_not_compared() -> None:
    slower = PRINTED.replace("computed  seconds", "computed   seconds").replace(" 55.8", "1,055.8")
    slower = slower.replace(" ─────────────────────────────\n  v", " ──────────────────────────────\n  v")
    assert slower != PRINTED
    assert figures.comparable(slower) == figures.comparable(PRINTED)


@pytest.mark.parametrize(("was", "edited"), [("52.6", "52.5"), ("5 / 0 / 10", "5 / 0 / 11"), ("1,401", "1,402")])
def test_any_other_number_is_compared(was: str, edited: str) -> None:
    assert figures.comparable(PRINTED.replace(was, edited)) != figures.comparable(PRINTED)
