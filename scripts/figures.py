"""Write what the sample's nights give into README.md and docs/*.md: `python scripts/figures.py`, or `make figures`.

A figure stands between marks (`bench/marks.py`): a block that a command printed, or a number within a sentence. The
script does what `make nightly` does, in a temporary directory, and a test compares the pages with a run of its own
(`tests/nights/test_sample.py`). What depends on the machine is no part of that comparison: seconds are left out, with
the width of their column, and paths begin with `…/leadline`. Left out: what the sentences around the numbers say.
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
# Numbers within sentences: one row with one column each, as it is written.
NUMBERS = {
    "traces": "SELECT count(*) FROM trace_scores",
    "misusing_traces": "SELECT count(*) FROM trace_scores WHERE claims_misused > 0",
    "claims": "SELECT sum(claims_total) FROM trace_scores",
    "unread_claims": "SELECT sum(claims_unread) FROM trace_scores",
    # By the band that docs/language-models.md shows; claims in languages that the judge does not read go on too.
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
    """Every figure of a run, as a page shows it.

    Args:
        missing: What the dry run before it printed.
        printed: What the run printed.
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
    """A figure without what differs from run to run."""
    return _RULE.sub(" ─", _SECONDS.sub("", text))


def _block(text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
    return f"\n```text\n{lines}\n```\n"


def _run(folder: Path) -> dict[str, str]:
    """The sample's nights in an empty folder."""
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
    """Write every page on which a figure differs by more than the time it took."""
    with tempfile.TemporaryDirectory(prefix="leadline-figures-") as folder:
        known = _run(Path(folder))
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        if comparable(written := filled(page, known)) != comparable(page):
            path.write_text(written, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
