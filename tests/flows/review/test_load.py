"""`leadline review import`: what it prints and leaves in warehouse and report, and what it says of mistakes."""

import shutil
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from conftest import Command
from kit.root import ROOT
from kit.worlds import FIRST, World, all_stages, make_world, trace, write

from tasks.core.schemas import QUARANTINE, REVIEWS
from tasks.ingest.ingest import ingest
from tasks.review.load import import_reviews
from tasks.run.build import build_context
from tasks.store.warehouse import query

SAMPLE = ROOT / "data" / "sample"


@pytest.fixture
def command(command: Command) -> Command:
    return partial(command, "review", "import")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A night of three questions, judged."""
    root = tmp_path_factory.mktemp("built")
    world = make_world(root)
    write(root / "logs" / "a.jsonl", [trace(f"t{i}", question=f"Question {i}?") for i in range(3)])
    all_stages(build_context(world.config, FIRST, FIRST))
    return world


@pytest.fixture
def judged(built: World, tmp_path: Path) -> World:
    """The same night for each test."""
    shutil.copytree(built.config.parent, tmp_path, dirs_exist_ok=True)
    return World(tmp_path / built.config.name, tmp_path / built.out.name)


def test_labels_correct_the_night_and_its_page(judged: World, command: Command, tmp_path: Path) -> None:
    page = judged.out / "report" / str(FIRST) / "index.html"
    assert "Corrected" not in page.read_text()
    cited, uncited = "Backups are kept for thirty days", "The owner may extend the retention window."
    lines = [{"trace_id": f"t{i}", "claim": c, "label": "supported", "misused": False} for i in range(2) for c in (cited, uncited)]  # fmt: skip
    file = tmp_path / "labels[red].jsonl"  # brackets in a name are no markup
    write(file, [*lines, {"trace_id": "t2", "claim": cited, "label": None}])
    code, out, err = command(file, "--config", judged.config)
    assert (code, err) == (0, "note 1 lines have no label; they were left out.\n")
    assert f"{file}: imported 4 labels." in out
    assert "1 night of the report written again" in out
    (row,) = query(judged.warehouse, "FROM nightly_corrected WHERE number = 'groundedness'").to_pylist()
    # All is right by people, so that the change is 100 − the judge's mean over the two answers, which are the same.
    assert (row["n_reviewed"], row["corrected_mean"]) == (2, pytest.approx(100))
    assert "Corrected" in page.read_text()
    assert len(query(judged.warehouse, "FROM reviews").to_pylist()) == 4
    (run,) = query(judged.warehouse, "FROM runs WHERE flow = 'review'").to_pylist()
    assert (run["status"], [s["stage"] for s in run["stages"]]) == ("completed", ["reviews", "reviewed", "warehouse", "report"])  # fmt: skip
    stamp = page.stat().st_mtime_ns
    _, out, _ = command(file, "--config", judged.config)
    assert "imported 0 labels, 4 known already." in out
    assert page.stat().st_mtime_ns == stamp


def test_mistakes(judged: World, command: Command, tmp_path: Path) -> None:
    code, _, err = command(tmp_path / "none.jsonl", "--config", judged.config)
    assert (code, "there is no such file" in err) == (1, True)
    write(tmp_path / "bad.jsonl", [{"trace_id": "nobody", "label": "right"}])
    code, _, err = command(tmp_path / "bad.jsonl", "--config", judged.config)
    assert (code, "1 of 1 lines were refused (unknown_trace 1)" in err) == (3, True)
    refused = query(judged.warehouse, "SELECT reason FROM quarantine WHERE stage = 'reviews'").to_pylist()
    assert refused == [{"reason": "unknown_trace"}]
    (tmp_path / "new").mkdir()
    fresh = make_world(tmp_path / "new")
    code, _, err = command(tmp_path / "bad.jsonl", "--config", fresh.config)
    assert (code, "there are no traces yet" in err) == (2, True)
    code, _, err = command()
    assert code == 2


def test_the_labels_of_the_sample_are_of_its_claims(tmp_path: Path) -> None:
    """data/sample/README.md: 88 claims of 25 answers and one answer without claims, each in its place."""
    world = make_world(tmp_path, sources=[{"kind": "jsonl", "paths": [str(SAMPLE / "2026-*.jsonl*")]}])
    ctx = build_context(world.config, FIRST, FIRST + timedelta(days=2))
    ingest(ctx)
    result = import_reviews(ctx, SAMPLE / "reviews.jsonl")
    assert (result.computed, result.reused, ctx.lake.parts(QUARANTINE)) == (89, 0, [])
    found = [r for p in ctx.lake.parts(REVIEWS) for r in p.read().to_pylist()]
    assert len({r["trace_id"] for r in found}) == 26
    assert sum(r["span_start"] is None for r in found) == 1
    assert {r["sampling"] for r in found} == {"random"}
