"""Update the sample's figures in README.md and docs/*.md: `python scripts/figures.py`, or `make figures`.

A figure is a block of printed output, or a number within a sentence, between marks (`bench/marks.py`). The script does
the same as `make nightly` in a temporary directory. `tests/nights/test_sample.py` compares the pages with its own run.
The comparison ignores machine-dependent parts: seconds and the width of their column. Paths start with `…/leadline`.
Left out: the sentences around the numbers.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.marks import filled
from tasks.store.warehouse import query

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NIGHTS = ["nightly", "--from", "2026-11-01", "--to", "2026-11-03"]  # as in the Makefile
# Numbers within sentences. Each query returns one value in the format of the page.
NUMBERS = {
    "traces": "SELECT count(*) FROM trace_scores",
    "misusing_traces": "SELECT count(*) FROM trace_scores WHERE claims_misused > 0",
    "claims": "SELECT sum(claims_total) FROM trace_scores",
    "unread_claims": "SELECT sum(claims_unread) FROM trace_scores",
    # By the band in docs/language-models.md. Claims in languages that the judge does not read are escalated too.
    "escalated_share": """
        WITH claim AS (
            SELECT status = 'abstained' OR (p_supported >= 0.4 AND p_supported < 0.6) AS goes_on
            FROM claim_results
            WHERE status <> 'na'
        )
        SELECT format('{:.0f}%', 100 * avg(goes_on::INTEGER)) FROM claim
    """,
}
_SECONDS = re.compile(r" +(?:seconds|\d[\d,]*\.\d)$", re.MULTILINE)
_RULE = re.compile(r"^ ─+$", re.MULTILINE)


def figures(missing: str, printed: str, warehouse: Path) -> dict[str, str]:
    """Return the figures of a run by name, in the format of a page.

    Args:
        missing: Output of the dry run before the run.
        printed: Output of the run.
    """
    root = str(warehouse.parents[1])  # data/leadline.duckdb in a checkout
    command = f"$ .venv/bin/leadline {' '.join(NIGHTS)} --dry-run\n"
    numbers = {name: str(query(warehouse, sql).column(0)[0].as_py()) for name, sql in NUMBERS.items()}
    return {
        "dry_run": _block(command + missing),
        "nightly": _block(printed.replace(root, "…/leadline")),
        **numbers,
    }


def comparable(text: str) -> str:
    """Remove parts of a figure that differ between runs."""
    return _RULE.sub(" ─", _SECONDS.sub("", text))


def _block(text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
    return f"\n```text\n{lines}\n```\n"


def _run(folder: Path) -> dict[str, str]:
    """Run the sample's nights in an empty folder."""
    shutil.copytree(ROOT / "configs", folder / "configs")
    shutil.copytree(ROOT / "data" / "sample", folder / "data" / "sample")
    command = [str(Path(sys.executable).with_name("leadline")), *NIGHTS]
    environment = {**os.environ, "COLUMNS": "200"}
    printed = [
        subprocess.run([*command, *more], cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
        for more in (["--dry-run"], [])
    ]
    return figures(printed[0].stdout, printed[1].stdout, folder / "data" / "leadline.duckdb")


def main() -> None:
    """Write every page with changed figures, ignoring times."""
    with tempfile.TemporaryDirectory(prefix="leadline-figures-") as folder:
        known = _run(Path(folder))
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        if comparable(written := filled(page, known)) != comparable(page):
            path.write_text(written, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
