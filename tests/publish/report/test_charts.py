"""Charts: what is drawn, and that nothing but numbers gets in."""

import re
from datetime import date, timedelta

from tasks.publish.report import charts
from tasks.publish.report.charts import Point

START = date(2026, 11, 1)


def lines(svg: str) -> list[str]:
    """The drawn paths of the line marks."""
    group = re.findall(r'<g class="mark-line role-mark[^"]*"[^>]*>(.*?)</g>', svg)
    return [d for g in group for d in re.findall(r'<path d="([^"]*)"', g)]


def points(series: int, means: list[float | None]) -> list[Point]:
    around = [(m, None if m is None else m - 5, None if m is None else m + 5) for m in means]
    return [Point(series, START + timedelta(i), *a) for i, a in enumerate(around)]


def test_each_series_is_a_line_of_its_own_and_has_its_own_color_and_dash():
    svg = charts.trend([*points(0, [40, 50, 60]), *points(1, [70, 60, 50])], 100)
    assert len(lines(svg)) == 2
    assert {"var(--s1)", "var(--s2)"} <= set(re.findall(r"var\(--s\d\)", svg))
    assert "stroke-dasharray" in svg


def test_a_series_that_ends_is_not_joined_to_the_next():
    """Two judge versions, one after the other: no line leads from the third night to the fourth."""
    old, new = points(0, [40, 50, 60]), points(1, [None, None, None, 61, 62])[3:]
    for d in lines(charts.trend([*old, *new], 100)):
        assert d.count("M") == 1
        assert d.count("L") <= 2


def test_a_night_without_a_number_leaves_a_gap():
    (absent,) = lines(charts.trend(points(0, [40, 50, None, 60, 70]), 100))
    assert absent.count("M") == 2
    (missing,) = lines(charts.trend([p for p in points(0, [40, 50, 9, 60, 70]) if p.mean != 9], 100))
    assert missing == absent


def test_one_night_alone_shows_its_interval():
    svg = charts.trend(points(0, [50]), 100)
    (rule,) = re.findall(r'<g class="mark-rule role-mark[^"]*"[^>]*>(.*?)</g>', svg)
    assert rule.count("<line") == 1


def test_the_axis_runs_from_zero_to_the_top():
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", charts.trend(points(0, [49, 50, 51]), 100))
    assert {"0", "50", "100", "1 Nov", "3 Nov"} <= set(texts)


def test_a_bar_has_a_part_for_each_count_that_is_not_zero():
    svg = charts.bar({"healthy": 3, "prompt": 0, "retrieval": 1})
    assert re.findall(r"var\(--c-(\w+)\)", svg) == ["healthy", "retrieval"]
    widths = [float(w) for w in re.findall(r'd="M[\d.]+,[\d.]+h([\d.]+)v', svg) if float(w) > 0]
    assert max(widths[-2:]) == 3 * min(widths[-2:])


def test_an_empty_bar_is_no_error():
    assert "<svg" in charts.bar({"healthy": 0})
