"""The marks around figures. Those of the sample's run are held against a run in `nights/test_sample.py`."""

import pytest
from conftest import script
from kit.root import ROOT

from bench.marks import shown
from training.report import SOURCE

figures = script("figures")
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in [*figures.PAGES, ROOT / "bench/README.md"]
}
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
    found = [*shown(text), *shown(text, SOURCE)]
    assert len(found) == text.count("<!-- figure") == text.count("<!-- /figure -->")
    assert all(figure for _, figure in found)


def test_every_figure_is_on_a_page_and_every_mark_names_one() -> None:
    named = {name for text in TEXTS.values() for name, _ in shown(text)}
    assert named == {"dry_run", "nightly", *figures.NUMBERS}


def test_seconds_and_the_width_of_their_column_are_not_compared() -> None:
    slower = PRINTED.replace("computed  seconds", "computed   seconds").replace(" 55.8", "1,055.8")
    slower = slower.replace(" ─────────────────────────────\n  v", " ──────────────────────────────\n  v")
    assert slower != PRINTED
    assert figures.comparable(slower) == figures.comparable(PRINTED)


@pytest.mark.parametrize(("was", "edited"), [("52.6", "52.5"), ("5 / 0 / 10", "5 / 0 / 11"), ("1,401", "1,402")])
def test_any_other_number_is_compared(was: str, edited: str) -> None:
    assert figures.comparable(PRINTED.replace(was, edited)) != figures.comparable(PRINTED)
