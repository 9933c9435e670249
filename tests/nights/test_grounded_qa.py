"""The recipe that ships for grades, on a handful of traces: with a grader that reads nothing, and with the real one."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.root import ROOT
from kit.worlds import FIRST, World, all_stages, make_world, read, trace, write

from tasks.core.grades import GRADES
from tasks.run.build import build_context

CONFIGS = ROOT / "configs"
KEPT = [{"chunk_id": "1", "text": "Backups are kept for thirty days."}]
GUESTS = [{"chunk_id": "1", "text": "A guest can read a shared folder."}]
TRACES = {
    "answers": {"answer": "Backups are kept for thirty days [1].", "chunks": KEPT},
    "uncited": {"answer": "Backups are kept for thirty days.", "chunks": KEPT},
    "against": {"answer": "Backups are deleted after one hour [1].", "chunks": KEPT},
    "declines": {"answer": "The documents do not say how long backups are kept.", "chunks": GUESTS},
}


def night(root: Path, recipe: dict[str, Any]) -> dict[tuple[str, str], tuple[str, float | None]]:
    """The grades of the four traces after a night, and after a second run that has nothing to do."""
    write(root / "logs" / "a.jsonl", [trace(name, **own) for name, own in TRACES.items()])
    world = make_world(root, recipe=recipe)
    first = complete(world)
    assert first["grades"] == len(TRACES) * len(GRADES)
    found = read(world.warehouse, "SELECT trace_id, grade, status, value FROM grades")
    nights = read(world.warehouse, "FROM nightly_grades")
    assert len(nights) == len(GRADES)
    left_out = ("n_na", "n_unparsable", "n_failed", "n_ungraded")
    assert {r["n"] for r in nights} == {r["n_scored"] + sum(r[c] for c in left_out) for r in nights} == {len(TRACES)}
    assert {name: n for name, n in complete(world).items() if n and name != "publish"} == {}
    (report,) = (world.out / "report").glob("*/index.html")
    assert 'id="grades"' in report.read_text()
    return {(r["trace_id"], r["grade"]): (r["status"], r["value"]) for r in found}


def complete(world: World) -> dict[str, int]:
    ctx = build_context(world.config, FIRST, FIRST)
    with ctx.lake.lock("a test"):
        return {result.stage: result.computed for result in all_stages(ctx)}


def shipped(**changes: Any) -> dict[str, Any]:
    """The recipe that ships, its paths absolute."""
    recipe: dict[str, Any] = yaml.safe_load((CONFIGS / "recipes" / "grounded_qa.yaml").read_text())
    files = {"judge": CONFIGS / "recipes" / recipe["judge"], "grader": CONFIGS / "recipes" / recipe["grades"]["grader"]}
    recipe |= {"judge": str(files["judge"]), "grades": {"grader": str(files["grader"])}, "relevance": {"threads": 1}}
    return {**recipe, **changes}


def test_a_night_graded_by_a_constant(tmp_path: Path) -> None:
    recipe = shipped(judge="out/replay.yaml", grades={"grader": str(CONFIGS / "graders" / "constant.yaml")})
    grades = night(tmp_path, recipe)
    given: dict[str, Any] = yaml.safe_load((CONFIGS / "graders" / "constant.yaml").read_text())["grades"]
    for grade, value in given.items():
        status = "na" if value is None else "scored"
        assert {grades[name, grade] for name in TRACES} == {(status, value)}


@pytest.mark.slow
def test_a_night_graded_without_a_language_model(tmp_path: Path) -> None:
    """Of each trace, the grades that docs/methods.md#grades-of-a-grounded-answer leaves no doubt of."""
    grades = night(tmp_path, shipped())
    assert grades["answers", "faithfulness"] == ("scored", 1)
    assert grades["uncited", "faithfulness"] == ("scored", 0)  # no source is cited
    assert grades["against", "faithfulness"] == ("scored", 0)  # the source says otherwise
    assert grades["answers", "positive_acceptance"] == ("scored", 1)
    for grade in ("usefulness", "negative_rejection"):
        assert grades["answers", grade] == ("na", None)
    assert grades["answers", "completeness"] == ("scored", 5)  # it says all that there is
    for grade in ("answer_relevancy", "completeness", "faithfulness", "positive_acceptance"):
        assert grades["declines", grade] == ("na", None)
    assert grades["declines", "negative_rejection"] == ("scored", 1)
