"""Marks in pages: what stands between them is written, and nothing else is."""

import pytest

from bench import marks

PAGE = """\
1 of <!-- figure: traces -->1<!-- /figure --> and
<!-- figure: nightly -->
```text
1
```
<!-- /figure -->
<!-- figure: judge/traces -->7<!-- /figure --> 1"""


def test_a_figure_is_written_between_its_marks_and_nothing_else_is() -> None:
    expected = """\
1 of <!-- figure: traces -->122<!-- /figure --> and
<!-- figure: nightly -->2<!-- /figure -->
<!-- figure: judge/traces -->7<!-- /figure --> 1"""
    assert marks.filled(PAGE, {"traces": "122", "nightly": "2"}) == expected


def test_each_source_writes_its_own_figures_only() -> None:
    assert marks.filled(PAGE, {"judge/traces": "8"}, "judge") == PAGE.replace("-->7<", "-->8<")
    assert marks.shown(PAGE, "judge") == [("judge/traces", "7")]
    assert marks.shown(PAGE) == [("traces", "1"), ("nightly", "\n```text\n1\n```\n")]


@pytest.mark.parametrize(("source", "mark"), [(None, "trace"), ("judge", "judge/trace")])
def test_a_mark_that_names_no_figure_is_reported(source: str | None, mark: str) -> None:
    known = {mark + "s": "122", "claims": "3"}
    with pytest.raises(SystemExit, match=rf"No figure is named '{mark}'; there are claims, {mark}s"):
        marks.filled(f"<!-- figure: {mark} -->1<!-- /figure -->", known, source)
