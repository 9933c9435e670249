"""The files that the gates leave: which results are kept, and a first page that needs no network.

The pages themselves are Great Expectations' Data Docs. They load their styles from the network, and their own index
shows nothing without it; the list written here does.
"""

import html
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

KEPT_RUNS = 30  # results of one suite that stay
RUN_TIME = "%Y%m%dT%H%M%S.%fZ"  # how Great Expectations writes the time of a run in a path


@dataclass(frozen=True, slots=True)
class Kept:
    """One stored result.

    Attributes:
        path: `<suite>/<run name>/<run time>/<suite>.json`, below the directory of results.
        refused: What broke a rule: reason and number of rows. A row that breaks several counts for each.
    """

    path: Path
    refused: tuple[tuple[str, int], ...]


def prune(results: Path, kept_runs: int = KEPT_RUNS) -> list[Kept]:
    """Drop all but the newest results of each suite, and any that a kill left unreadable.

    Returns:
        The others, newest first.
    """
    kept: list[Kept] = []
    for suite in sorted(results.iterdir()):
        paths = sorted(suite.rglob("*.json"), key=_run_time, reverse=True)
        readable = [k for p in paths if (k := _read(p, results))][:kept_runs]
        kept += readable
        for path in {p.relative_to(results) for p in paths} - {k.path for k in readable}:
            shutil.rmtree(results / path.parent)
            if not any((results / path.parent.parent).iterdir()):
                (results / path.parent.parent).rmdir()
    return sorted(kept, key=lambda k: _run_time(k.path), reverse=True)


def write_index(path: Path, kept: Iterable[Kept]) -> None:
    """Write the list of results to `path`, beside the directory `docs`."""
    rows = []
    for one in kept:
        suite, run_name = one.path.parts[:2]
        page = Path("docs", "validations", one.path).with_suffix(".html").as_posix()
        found = ", ".join(f"{reason} {n:,}" for reason, n in one.refused) or "none"
        when = datetime.strptime(_run_time(one.path), RUN_TIME).replace(tzinfo=UTC)
        cells = [f"{when:%Y-%m-%d %H:%M:%S}", run_name, found]
        link = f'<td><a href="{html.escape(quote(page))}">{html.escape(suite)}</a></td>'
        rows.append(f"<tr>{''.join(f'<td>{html.escape(text)}</td>' for text in cells)}{link}</tr>")
    head = "<tr><th>Checked (UTC)</th><th>Run</th><th>Rows that broke a rule</th><th>Page</th></tr>"
    path.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Leadline gates</title>'
        "<style>body{font:16px system-ui;margin:2rem}td,th{text-align:left;padding:.2rem 1rem .2rem 0}</style>"
        f"<h1>Gates</h1><table>{head}\n{chr(10).join(rows)}\n</table></html>\n",
        encoding="utf-8",
    )


def _run_time(path: Path) -> str:
    return path.parent.name


def _read(path: Path, results: Path) -> Kept | None:
    try:
        data = json.loads(path.read_bytes())
    except ValueError:
        return None
    refused: dict[str, int] = {}
    for one in data["results"]:
        reason, found = one["expectation_config"]["meta"]["reason"], one["result"]["unexpected_count"]
        refused[reason] = refused.get(reason, 0) + found
    return Kept(path.relative_to(results), tuple((reason, n) for reason, n in refused.items() if n))
