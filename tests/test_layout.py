"""Where a test is found: `tests/` mirrors `tasks/`, `flows/` and `sql/`, in folders that can be read at a glance."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.root import ROOT

TESTS = ROOT / "tests"
MOST = 15  # files in a folder of tests
MOST_CODE = 14  # and in one of code: a dozen, `__init__.py`, and a page or a script beside them
ROOMS = ("flows", "tasks", "sql", "bench", "scripts")
MIRRORED = {"tasks": TESTS, "flows": TESTS / "flows", "bench": TESTS / "bench", "training": TESTS / "training"}
# Folders that mirror no package.
OTHERS = {"nights", "docs", "data", "configs", "sql", "kit"}
# Files named by a subject that no single module of their room has, and why.
SUBJECTS = {
    "flows/test_cli.py": "mistakes of any verb",
    "flows/lake/test_object_storage.py": "every verb, where the lake is on object storage",
    "graders/test_derived_grades.py": "grades that follow from others, of several graders",
    "judges/test_asking_vllm.py": "all that ask a language model, with one that is loaded once",
    "judges/test_every_field.py": "the fields of every kind",
    "judges/test_examples.py": "a reply and its reading, of every form of prompt",
    "judges/test_method_examples.py": "the examples of METHODS, by the judge that ships",
    "judging/test_old_rows.py": "edits of a recipe, in every stage",
    "judging/test_packs.py": "the pairing `all_chunks`, through every stage",
    "publish/report/test_browser.py": "all pages in a browser",
    "publish/report/test_corrected_numbers.py": "a subject on several pages",
    "publish/report/test_evidence.py": "evidence of failure patterns on several pages",
    "publish/report/test_grace_pages.py": "a subject on several pages",
    "publish/report/test_grades_pages.py": "a subject on several pages",
    "publish/report/test_repeats_line.py": "a subject on several pages",
    "review/test_simulation.py": "from labels to corrected nights",
    "run/test_side_by_side.py": "two runs at once",
    "scoring/test_grace_simulation.py": "planted misses of retrieval, through every stage",
    "scoring/test_misleading_scores.py": "answers that once got a wrong score, through every stage",
    "sources/test_scenarios.py": "the shared recordings of all stores",
    "stats/test_corrected_mean.py": "corrected means: several modules together",
    "training/test_distill_end_to_end.py": "from the lake to the next night",
}
# Public modules without a file of their own, and the file that tests them.
ELSEWHERE = {
    "flows/console.py": "flows/analysis/test_compare.py",
    "flows/deployments.py": "nights/test_scheduled.py",
    "flows/doctor/command.py": "flows/doctor/test_facts.py",
    "flows/nightly/dry_run.py": "nights/test_sample.py",
    "flows/nightly/run.py": "nights/test_sample.py",
    "flows/nightly/summary.py": "nights/test_sample.py",
    "flows/options.py": "flows/test_cli.py",
    "flows/lake/privacy.py": "nights/test_forget.py",
    "flows/review/agreement.py": "flows/review/test_export.py",
    "flows/runtime/notify.py": "flows/test_alerts.py",
    "flows/lake/warehouse.py": "flows/test_cli.py",
    "tasks/run/part_work.py": "executors/test_ray.py",
    "tasks/analysis/agreement/agreement.py": "flows/analysis/test_agreement.py",
    "tasks/analysis/agreement/results.py": "flows/analysis/test_agreement.py",
    "tasks/analysis/calibrate.py": "flows/analysis/test_calibrate.py",
    "tasks/analysis/compare/arms.py": "flows/analysis/test_compare.py",
    "tasks/analysis/compare/claims.py": "flows/analysis/test_compare.py",
    "tasks/analysis/compare/compare.py": "flows/analysis/test_compare.py",
    "tasks/analysis/compare/differences.py": "flows/analysis/test_compare.py",
    "tasks/analysis/compare/drift.py": "flows/analysis/test_compare.py",
    "tasks/analysis/compare/results.py": "publish/documents/test_comparison.py",
    "tasks/analysis/frames.py": "flows/analysis/test_compare.py",
    "tasks/articles/parts.py": "articles/test_documents.py",
    "tasks/articles/phrases.py": "articles/test_problems.py",
    "tasks/core/budget.py": "judging/test_verdicts.py",
    "tasks/core/grades.py": "graders/test_derived_grades.py",
    "tasks/core/labeling.py": "review/test_formats.py",
    "tasks/core/paths.py": "nights/test_sample.py",
    "tasks/core/progress.py": "flows/runtime/test_progress.py",
    "tasks/core/types.py": "judges/test_labels.py",
    "tasks/distill/examples.py": "flows/judges/test_distill.py",
    "tasks/distill/export.py": "flows/judges/test_distill.py",
    "tasks/distill/grades.py": "flows/judges/test_distill.py",
    "tasks/distill/verdicts.py": "flows/judges/test_distill.py",
    "tasks/executors/local.py": "judging/test_verdicts.py",
    "tasks/engines/generator.py": "engines/vllm/test_generator.py",
    "tasks/judging/open_parts.py": "judging/test_verdicts.py",
    "tasks/judging/stored_verdicts.py": "judging/test_verdicts.py",
    "tasks/publish/documents/agreement.py": "flows/analysis/test_agreement.py",
    "tasks/publish/documents/ask.py": "flows/analysis/test_ask.py",
    "tasks/publish/documents/calibration.py": "flows/analysis/test_calibrate.py",
    "tasks/publish/documents/document.py": "publish/documents/test_comparison.py",
    "tasks/publish/report/night/gather.py": "publish/report/test_report.py",
    "tasks/review/agreement.py": "flows/review/test_export.py",
    "tasks/review/export.py": "flows/review/test_export.py",
    "tasks/review/files.py": "review/test_formats.py",
    "tasks/review/lines.py": "review/test_formats.py",
    "tasks/run/build.py": "run/test_context.py",
    "tasks/run/cascade.py": "judging/test_escalate.py",
    "tasks/run/identity.py": "run/test_context.py",
    "tasks/run/scopes/promotions.py": "flows/judges/test_versions.py",
    "tasks/run/redacted.py": "privacy/test_retention.py",
    "tasks/run/work.py": "judging/test_verdicts.py",
    "tasks/run/result.py": "run/test_record.py",
    "tasks/run/selectors.py": "flows/analysis/test_compare.py",
    "tasks/scoring/nightly.py": "scoring/test_score.py",
    "tasks/sources/reading/exports.py": "sources/spans/test_pull.py",
    "tasks/sources/reading/lines.py": "sources/test_jsonl.py",
    "tasks/sources/reading/rejects.py": "sources/test_jsonl.py",
    "tasks/sources/reading/rows.py": "sources/test_jsonl.py",
    "tasks/sources/reading/values.py": "sources/spans/test_spans.py",
    "tasks/sources/reading/windows.py": "sources/spans/test_pull.py",
    "tasks/sources/tabular/columns.py": "sources/test_table.py",
    "tasks/sources/tabular/database.py": "sources/test_sql.py",
    "tasks/sources/tabular/rows.py": "sources/test_table.py",
    "tasks/store/remote/copies.py": "store/remote/test_objects.py",
    "tasks/store/lock.py": "store/test_lake.py",
    "tasks/store/remote/refusals.py": "store/remote/test_objects.py",
    "tasks/store/backup.py": "flows/lake/test_backup.py",
    "tasks/text/languages.py": "text/test_declines.py",
    "tasks/text/sentences.py": "extractors/test_sentences.py",
    "tasks/text/spans.py": "extractors/cut/test_markdown.py",
    "tasks/text/words.py": "text/test_overlap.py",
    "tasks/text/missing_figures.py": "patterns/test_patterns.py",
    "tasks/write_back/plan.py": "flows/sources/test_write_back.py",
    "tasks/write_back/run.py": "flows/sources/test_write_back.py",
}
# Queries without a case of rows in a file: pages and views are tested with whole nights, the others with their verbs.
NO_ROWS = {
    "macros": "called by the other queries",
    "report": "publish/report",
    "views": "nights/test_sample.py and docs/test_cookbook.py",
    "analysis/compare/claim_texts": "flows/analysis/test_compare.py",
    "analysis/compare/usage": "flows/analysis/test_compare.py",
    "nightly/nightly_citations": "judging/test_second_pass.py",
    "review/agreement": "flows/review/test_export.py",
    "review/recipes": "flows/review/test_export.py",
    "review/targets": "review/test_load.py",
    "review/texts": "flows/review/test_export.py",
}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module, with the file that should test it."""
    for package, tests in MIRRORED.items():
        for path in (ROOT / package).rglob("*.py"):
            inside = path.relative_to(ROOT / package)
            if path.name != "__init__.py" and inside.parts[0] not in {"models", "work", "_files"}:
                yield str(path.relative_to(ROOT)), tests / inside.parent / f"test_{path.stem.lstrip('_')}.py"


def room_files(folder: Path) -> set[Path]:
    """Files that may test a room as a whole: in it, or beside it."""
    return {folder / f"test_{folder.name}.py", folder.parent / f"test_{folder.name}.py"}


FILES = sorted(path for path in TESTS.rglob("test_*.py") if path.parent != TESTS)
FOLDERS = sorted({path.parent for path in TESTS.rglob("*") if path.is_file() and "__pycache__" not in path.parts})


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(TESTS)))
def test_a_file_is_named_by_its_module_its_room_or_its_subject(path: Path) -> None:
    name = str(path.relative_to(TESTS))
    folder = TESTS / path.relative_to(TESTS).parts[0]
    mirrored = path in dict(modules()).values() or path in room_files(path.parent)
    rooms = {f for _, test in modules() for f in room_files(test.parent)}
    assert mirrored or path in rooms or name in SUBJECTS or folder.name in OTHERS


def test_every_public_module_is_tested_by_its_file_or_its_room_or_is_listed() -> None:
    """A module that begins with `_` is a part of those that import it."""
    public = {
        m: test for m, test in modules() if m.startswith(("tasks/", "flows/")) and not Path(m).name.startswith("_")
    }
    bare = {
        m for m, test in public.items() if not test.exists() and not any(f.exists() for f in room_files(test.parent))
    }
    assert bare - set(ELSEWHERE) == set(), "write their tests, or list the file that tests them"
    assert set(ELSEWHERE) - bare == set(), "they are gone, or have tests of their own"
    assert {m for m, test in ELSEWHERE.items() if not (TESTS / test).exists()} == set(), "their tests are gone"


def test_every_query_has_its_rows_or_is_listed() -> None:
    queries = {str(path.relative_to(ROOT / "sql").with_suffix("")) for path in (ROOT / "sql").rglob("*.sql")}
    cases = {str(path.relative_to(TESTS / "sql").with_suffix("")) for path in (TESTS / "sql").rglob("*.yaml")}
    assert cases <= queries
    assert {q for q in queries - cases if q not in NO_ROWS and q.split("/")[0] not in NO_ROWS} == set()
    assert {q for q in NO_ROWS if q not in queries and not (ROOT / "sql" / q).is_dir()} == set(), "they are gone"


def test_listed_subjects_are_there() -> None:
    assert {name for name in SUBJECTS if not (TESTS / name).exists()} == set()


def test_a_folder_is_read_at_a_glance() -> None:
    """Data is not read: documents and answers that people label."""
    code = {p.parent for room in ROOMS for p in (ROOT / room).rglob("*") if p.suffix in {".py", ".sql", ".j2"}}
    sizes = Counter({folder: sum(p.is_file() for p in folder.iterdir()) for folder in {*FOLDERS, *code}})
    most = {folder: MOST if folder in FOLDERS else MOST_CODE for folder in sizes}
    assert {str(folder.relative_to(ROOT)): n for folder, n in sizes.items() if n > most[folder]} == {}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(TESTS)))
def test_a_test_imports_packages_conftest_and_kit_only(path: Path) -> None:
    """Nothing of another test's file, and nothing by a path that is put in front."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    assert not [n for n in names if n.startswith((".", "tests")) or n.split(".")[-1].startswith("test_")]
    text = path.read_text(encoding="utf-8")
    assert "syspath_prepend(str(TESTS" not in text
    assert "sys.path.insert" not in text
