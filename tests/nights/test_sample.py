"""The README's command on the bundled sample, and what later runs make of it: nothing, one late day, or a rebuild.

Expected values come from data/sample/README.md.
"""

import io
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest
from conftest import script
from kit.commands import install, leadline
from kit.root import ROOT
from kit.worlds import FIRST, World, last_run, range_of, read, tables, trace, tree, unbalanced, write

from flows.nightly.dry_run import Missing, measure, show
from tasks.ingest.ingest import ingest
from tasks.run.build import build_context

pytestmark = pytest.mark.slow

pages = script("figures")
REPOSITORY = ROOT
LAST = date(2026, 11, 3)
DAYS = range_of(FIRST, LAST)
NO_CONTEXT = {"hd-1101-022", "hd-1101-032", "hd-1102-012", "hd-1103-034"}
NO_CLAIMS = {"hd-1101-004", "hd-1103-006"}
REFUSALS = {"hd-1101-037", "hd-1103-009"}  # of those that decline the two that say nothing besides
NOT_READ = {  # German, French, Japanese, Chinese and Arabic; the judge reads English
    "hd-1101-008", "hd-1103-021", "hd-1103-033", "hd-1101-009", "hd-1102-022", "hd-1103-010", "hd-1102-005", "hd-1103-004",
}  # fmt: skip
DANGLING = {"hd-1101-038", "hd-1102-008", "hd-1102-025", "hd-1102-038", "hd-1103-003"}
TRACES = {
    ("2026-11-01", "harbor-docs", "harbor-large"): 19,
    ("2026-11-01", "harbor-docs", "harbor-small"): 13,
    ("2026-11-01", "harbor-support", "harbor-large"): 4,
    ("2026-11-01", "harbor-support", "harbor-small"): 4,
    ("2026-11-02", "harbor-docs", "harbor-large"): 16,
    ("2026-11-02", "harbor-docs", "harbor-small"): 16,
    ("2026-11-02", "harbor-support", "harbor-large"): 4,
    ("2026-11-02", "harbor-support", "harbor-small"): 4,
    ("2026-11-03", "harbor-docs", "harbor-large"): 18,
    ("2026-11-03", "harbor-docs", "harbor-small"): 16,
    ("2026-11-03", "harbor-support", "harbor-large"): 4,
    ("2026-11-03", "harbor-support", "harbor-small"): 4,
}
WORK = ("ingest", "claims", "pairs", "verdicts", "joint pairs", "relevance", "scores", "nightly", "report")
# What every run writes: its record and its copy, and the index of what it has searched.
OWN = (".lock", "/runs/", ".warehouse", ".gates", ".index", "leadline.duckdb")


@dataclass(frozen=True)
class First:
    """The first run: what was missing before it, whether looking changed anything, and what it printed."""

    world: World
    missing: Missing
    before_looking: dict[str, str]
    after_looking: dict[str, str]
    printed: str


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> First:
    """The sample judged by the installed package, from a directory of its own; the tests only read it."""
    root, programs = tmp_path_factory.mktemp("sample"), install(tmp_path_factory.mktemp("installed"))
    outside = {name: value for name, value in environment.items() if name != "PYTHONPATH"}

    def run(program: str, *args: str) -> str:
        command = [programs / program, *args]
        return subprocess.run(command, cwd=root, env=outside, check=True, stdout=subprocess.PIPE, text=True).stdout

    shown = run("python", "-c", "import flows, tasks; print(flows.__file__, tasks.__file__)").split()
    assert all(Path(file).is_relative_to(programs.parent) for file in shown)  # not this checkout
    run("leadline", "init")
    world = World(root / "configs" / "nightly.yaml", root / "data")
    before = tree(root)
    missing = measure(world.config, FIRST, LAST)
    after = tree(root)
    return First(world, missing, before, after, run("leadline", "nightly", *DAYS))


@pytest.fixture
def world(first: First, tmp_path: Path) -> World:
    """A copy that may be changed; modification times are kept, as a backup would keep them."""
    root = first.world.config.parents[1]
    shutil.copytree(root, tmp_path / "copy")
    return World(tmp_path / "copy" / "configs" / "nightly.yaml", tmp_path / "copy" / "data")


def test_every_trace_is_in_the_tables(first: First) -> None:
    warehouse = first.world.warehouse
    assert read(warehouse, "SELECT count(*) AS n FROM traces") == [{"n": 122}]
    assert read(warehouse, "FROM quarantine") == []
    assert not unbalanced(warehouse)
    nights = read(warehouse, "SELECT date::VARCHAR AS d, app, generator, n FROM nightly_groundedness")
    assert {(r["d"], r["app"], r["generator"]): r["n"] for r in nights} == TRACES
    for table in ("nightly_groundedness", "nightly_utilization", "nightly_relevance"):
        sums = f"FROM {table} WHERE n <> n_scored + n_na + n_unjudged + n_abstained"
        assert read(warehouse, sums) == []


def test_traces_without_context_or_claims_are_not_applicable(first: First) -> None:
    scores = {r["trace_id"]: r for r in read(first.world.warehouse, "FROM trace_scores")}
    assert len(scores) == 122
    reasons = {"no_context": NO_CONTEXT, "no_claims": NO_CLAIMS, "refusal": REFUSALS}
    for reason, names in reasons.items():
        assert {t for t, r in scores.items() if r["groundedness_na"] == reason} == names
    assert {t for t, r in scores.items() if r["groundedness_status"] == "na"} == NO_CONTEXT | NO_CLAIMS | REFUSALS
    assert {t for t, r in scores.items() if r["groundedness_status"] == "abstained"} == NOT_READ
    assert Counter(r["groundedness_status"] for r in scores.values()) == {"scored": 106, "na": 8, "abstained": 8}
    for name in NO_CONTEXT | NO_CLAIMS | REFUSALS:
        row = scores[name]
        assert row["groundedness_status"] == "na"
        numbers = ("groundedness_score", "faithfulness", "chunks_used", "utilization", "chunks_unused")
        assert [row[n] for n in numbers] == [None] * 5  # never 0, 1 or NaN
    assert {t for t, r in scores.items() if r["context_relevance_status"] == "na"} == NO_CONTEXT
    assert {t for t, r in scores.items() if r["claims_total"] == 0} == NO_CLAIMS | REFUSALS
    assert {t for t, r in scores.items() if r["answer_relevance_status"] == "na"} == REFUSALS
    assert {r["diagnosis"] for t, r in scores.items() if t in REFUSALS} <= {"declined", "retrieval"}
    assert all(0 <= r["answer_relevance"] <= 1 for t, r in scores.items() if t not in REFUSALS)


def test_dangling_citations_are_found(first: First) -> None:
    sql = "SELECT DISTINCT trace_id FROM claims WHERE len(dangling_citations) > 0"
    assert {r["trace_id"] for r in read(first.world.warehouse, sql)} == DANGLING
    sql = "SELECT trace_id FROM trace_scores WHERE citations_dangling > 0"
    assert {r["trace_id"] for r in read(first.world.warehouse, sql)} == DANGLING


def test_every_claim_stands_in_its_answer_and_has_one_result(first: First) -> None:
    warehouse = first.world.warehouse
    output = "substr(answer, span_start + 1, span_end - span_start)"
    sql = f"SELECT claim_id FROM claims JOIN traces USING (trace_id) WHERE claims.text <> {output} OR claims.text = ''"
    wrong = read(warehouse, sql)
    assert wrong == []
    counts = "SELECT (SELECT count(*) FROM claims WHERE kind = 'claim') AS claims, count(*) AS results, count(DISTINCT claim_id) AS ids"
    (found,) = read(warehouse, f"{counts} FROM claim_results")
    assert found["claims"] == found["results"] == found["ids"] > 300
    # Every look has its verdict.
    assert read(warehouse, "FROM pairs ANTI JOIN verdicts USING (request_key)") == []
    used = "FROM trace_scores WHERE chunks_used + len(chunks_unused) <> chunks_retrieved"
    assert read(warehouse, used) == []


def test_the_formula_of_groundedness(first: First) -> None:
    """docs/methods.md#scores-of-one-trace: 100 (supported - 2 misused) / judged, clamped."""
    for row in read(first.world.warehouse, "FROM trace_scores WHERE groundedness_status = 'scored'"):
        raw = 100 * (row["claims_supported"] - 2 * row["claims_misused"]) / row["claims_judged"]
        assert row["groundedness_score"] == pytest.approx(min(100, max(0, raw)))
        assert row["faithfulness"] == pytest.approx(row["claims_supported"] / row["claims_judged"])


def test_what_is_printed_and_where_the_report_is(first: First) -> None:
    for app in ("harbor-docs", "harbor-support"):
        for generator in ("harbor-large", "harbor-small"):
            n = sum(c for (_, a, g), c in TRACES.items() if (a, g) == (app, generator))
            assert re.search(rf"{app} · {generator}\s+{n}\s", first.printed), first.printed
    assert str(first.world.out / "report" / "index.html") in first.printed
    assert str(first.world.warehouse) in first.printed
    assert (first.world.out / "report" / "index.html").exists()
    assert {p.name for p in (first.world.out / "report").iterdir() if p.is_dir()} >= {str(FIRST), str(LAST)}


@pytest.fixture(scope="module")
def figures(first: First) -> dict[str, str]:
    """What the pages have to show of the run."""
    with redirect_stdout(io.StringIO()) as output:
        show(first.missing)
    found: dict[str, str] = pages.figures(output.getvalue(), first.printed, first.world.warehouse)
    return found


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda p: p.name)
def test_the_pages_show_what_the_run_gives(page: Path, figures: dict[str, str]) -> None:
    """It stands here, and not beside the other tests of pages, for the sake of the run: it is made once."""
    text = page.read_text(encoding="utf-8")
    assert pages.comparable(text) == pages.comparable(pages.filled(text, figures)), "run `make figures`"


def test_an_edited_figure_is_noticed(figures: dict[str, str]) -> None:
    """The page with one number changed is not what the run gives; 66 answers with a misused citation, not 67."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    stands = f"<!-- figure: misusing_traces -->{figures['misusing_traces']}<"
    edited = readme.replace(stands, "<!-- figure: misusing_traces -->67<")
    assert edited != readme
    assert pages.comparable(pages.filled(edited, figures)) != pages.comparable(edited)


def test_a_dry_run_changes_nothing_and_counts_what_the_run_then_computes(first: First) -> None:
    assert first.before_looking == first.after_looking
    run = last_run(first.world.warehouse)
    computed = {name: stage["computed"] for name, stage in run["stages"].items()}
    missing = first.missing
    assert (missing.traces, missing.claims, missing.pairs) == tuple(computed[s] for s in ("ingest", "claims", "pairs"))
    assert missing.judging.judges[0].verdicts == computed["verdicts"]
    assert missing.judging.judges[0].joint_pairs >= computed["joint pairs"]
    (chunks,) = read(first.world.warehouse, "SELECT count(*) AS n FROM chunks")[0].values()  # each is scored
    (asked,) = read(first.world.warehouse, "SELECT count(*) AS n FROM traces WHERE len(chunks) > 0")[0].values()
    # Each answer, each chunk, and whether its chunks can answer each question that has any.
    assert missing.judging.relevance == 122 + chunks + asked
    assert (missing.traces, missing.judging.scores) == (122, 122)
    assert computed["scores"] == 122
    assert computed["nightly"] == computed["report"] == 3


def test_a_second_run_computes_nothing(world: World, without_prefect: dict[str, str]) -> None:
    expected, before = tables(world.warehouse, {}), tree(world.out, OWN)
    output = leadline("nightly", *DAYS, "-c", world.config, env=without_prefect)
    assert output.returncode == 0, output.stderr.decode()
    run = last_run(world.warehouse)
    assert {name: run["stages"][name]["computed"] for name in WORK} == dict.fromkeys(WORK, 0)
    assert run["stages"]["ingest"]["reused"] == 122
    assert (run["verdicts_computed"], run["tokens_in"], run["status"]) == (0, 0, "completed")
    assert tree(world.out, OWN) == before  # verdicts, pages and all the rest: not a byte
    assert tables(world.warehouse, {}) == expected
    assert read(world.warehouse, "SELECT count(*) AS n FROM runs") == [{"n": 2}]


def test_a_late_trace_makes_its_day_incomplete_and_no_other(world: World, without_prefect: dict[str, str]) -> None:
    late = trace("late", timestamp="2026-11-01T23:59:00Z", app="harbor-docs", generator="harbor-large")
    write(world.out / "sample" / "2026-11-04-late.jsonl", [late])
    before = tree(world.out)
    missing = measure(world.config, FIRST, LAST)
    assert tree(world.out) == before
    # Two sentences, each against two chunks of one window.
    assert (missing.traces, missing.claims, missing.pairs, missing.judging.judges[0].verdicts) == (1, 2, 4, 4)
    assert (missing.judging.relevance, missing.judging.scores) == (1 + 2 + 1, 1)  # answer, two chunks, both together

    parts = tree(world.lake, (*OWN, "nightly_"))
    output = leadline("nightly", *DAYS, "-c", world.config, env=without_prefect)
    assert output.returncode == 0, output.stderr.decode()
    run = last_run(world.warehouse)
    computed = {name: run["stages"][name]["computed"] for name in WORK}
    expected = {"ingest": 1, "claims": 2, "pairs": 4, "verdicts": 4, "scores": 1, "nightly": 1}
    assert {name: computed[name] for name in expected} == expected
    after = tree(world.lake, (*OWN, "nightly_"))
    assert {name: after[name] for name in parts} == parts  # what was there stays as it was
    new = [name for name in after.keys() - parts.keys() if "date=" in name]
    assert new
    assert all("date=2026-11-01" in name for name in new)
    (night,) = read(
        world.warehouse,
        "SELECT n FROM nightly_groundedness WHERE date = '2026-11-01' AND app = 'harbor-docs'"
        " AND generator = 'harbor-large'",
    )
    assert night == {"n": 20}


def test_a_file_that_is_touched_or_copied_changes_nothing(world: World) -> None:
    sample = world.out / "sample"
    os.utime(sample / "2026-11-01.jsonl", (1_800_000_000, 1_800_000_000))
    shutil.copy(sample / "2026-11-02.jsonl.gz", sample / "2026-11-02-copy.jsonl.gz")
    texts = tree(world.lake / "traces")
    ctx = build_context(world.config, FIRST, LAST)
    result = ingest(ctx)
    # 40 rows of each of the two nights are read again, and 122 - 40 stand in files that are as they were.
    assert (result.computed, result.reused) == (0, 40 + 40 + 82)
    assert tree(world.lake / "traces") == texts
    assert not (world.lake / "quarantine").exists()


def test_a_conflicting_duplicate_is_quarantined_and_the_first_stays(
    world: World, without_prefect: dict[str, str]
) -> None:
    rows = [trace("hd-1101-001", answer="Something else."), trace("hd-1101-001", answer="And again.")]
    write(world.out / "sample" / "2026-11-04.jsonl", rows)
    change_share(world)
    texts = tree(world.lake / "traces")
    assert ingest(build_context(world.config, FIRST, LAST)).computed == 0
    assert tree(world.lake / "traces") == texts
    assert leadline("rebuild", "-c", world.config, env=without_prefect).returncode == 0
    found = read(world.warehouse, "SELECT stage, reason, trace_id, line, raw FROM quarantine ORDER BY line")
    assert [(r["stage"], r["reason"], r["trace_id"], r["line"]) for r in found] == [
        ("duplicate", "conflicting_duplicate", "hd-1101-001", 1),
        ("duplicate", "conflicting_duplicate", "hd-1101-001", 2),
    ]
    assert [json.loads(r["raw"])["answer"] for r in found] == ["Something else.", "And again."]
    assert not unbalanced(world.warehouse)


def change_share(world: World) -> None:
    """Two refused rows of two are more than the sample's config allows."""
    text = world.config.read_text()
    assert "max_quarantined_share: 0.05" in text
    world.config.write_text(text.replace("max_quarantined_share: 0.05", "max_quarantined_share: 1.0"))


def test_the_warehouse_is_made_again_from_the_lake(world: World, no_server: dict[str, str]) -> None:
    expected = tables(world.warehouse, {})
    runs = read(world.warehouse, "FROM runs")
    views = read(world.warehouse, "SELECT count(*) AS n FROM claim_details")
    world.warehouse.unlink()
    shutil.rmtree(world.lake / ".warehouse")
    output = leadline("rebuild", "-c", world.config, env=no_server)
    assert output.returncode == 0, output.stderr.decode()
    assert tables(world.warehouse, {}) == expected
    assert read(world.warehouse, "FROM runs") == runs
    assert read(world.warehouse, "SELECT count(*) AS n FROM claim_details") == views


def test_the_embedded_judge_shows_supported_from_contradicted_and_unsupported(first: First) -> None:
    labels = Counter(r["label"] for r in read(first.world.warehouse, "SELECT label FROM claim_results"))
    assert labels["supported"] > 0
    assert labels["unsupported"] > 0
    assert labels["contradicted"] > 0
