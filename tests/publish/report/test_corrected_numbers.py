"""Numbers that people's labels correct stand beside those of the judge, and only where there are any."""

from pathlib import Path
from typing import Any

from kit.html_tree import parse
from kit.report_nights import by_hand
from kit.report_rows import JUDGE, NIGHT, RECIPE, nightly

from tasks.publish.report.site import build

OF = {"recipe": RECIPE, "date": NIGHT, "judge_version": JUDGE, "app": "support", "generator": "meridian-8b"}


def page(tmp_path: Path, *corrected: dict[str, Any]) -> Any:
    rows = by_hand()
    nightly(rows)
    for row in corrected:
        rows.add("nightly_corrected", **{**OF, "n_scored": 9, "raw_mean": 50.0, "rectifier": -8.75, **row})
    build(rows.reader(), tmp_path, NIGHT, RECIPE, 0)
    return parse(tmp_path / str(NIGHT) / "index.html")


def test_a_corrected_number_stands_beside_the_raw_one(tmp_path: Path) -> None:
    row = {"number": "groundedness", "n_reviewed": 12, "n_reviewed_questions": 11}
    found = page(tmp_path, {**row, "corrected_mean": 41.2, "corrected_low": 30.0, "corrected_high": 52.54})
    (note_,) = found.all("small", "corrected")
    assert " ".join(note_.words().split()) == "41.2 [30.0, 52.5] corrected by 12 reviewed answers"
    assert "Corrected: what people's labels would give" in found.words()


def test_without_labels_nothing_is_said(tmp_path: Path) -> None:
    found = page(tmp_path)
    assert found.all("small", "corrected") == []
    assert "Corrected" not in found.words()
