"""`leadline write-back`: write changed scores and verdicts back to the stores that the traces came from."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from flows.console import emit, note, print_lines, table
from flows.options import Config, DryRun, Form, From, Night, Output, To, days_or_yesterday
from flows.runtime.run import Local, Runner, locked, on_record
from tasks.core.errors import LeadlineError, UsageError
from tasks.core.paths import CONFIG
from tasks.run.build import build_contexts
from tasks.run.context import Context
from tasks.run.result import StageResult
from tasks.run.scopes.scope import oldest
from tasks.write_back import run as stage
from tasks.write_back.run import STAGE, Target


def command(
    on: Night = None,
    start: From = None,
    end: To = None,
    dry_run: DryRun = False,
    form: Form = "table",
    output: Output = None,
    config: Config = CONFIG,
) -> None:
    """Write the scores of a day or a range back to the stores of the traces.

    Example: leadline write-back --date 2026-11-01 --dry-run
    """
    first, last = days_or_yesterday(on, start, end)
    contexts = build_contexts(config, first, last)
    found = stage.targets(contexts[0].sources)
    if not found:
        raise UsageError(
            f"{config}: none of its sources has `write_back`. Add it to a source that is asked by `url`: "
            "docs/write-back.md shows how."
        )
    _check_recipes(contexts, found, config)
    if dry_run:
        rows = preview(contexts, found, _days(first, last))
        emit(form, output, partial(_draw_preview, rows), rows)
        return
    with locked(contexts[0].lake, f"write-back {first}..{last}"):
        results = run(contexts, found, _days(first, last))
    done = [
        {"place": target.place, "sent": result.computed, "same": result.reused}
        for target, result in zip(found, results, strict=True)
    ]
    lines = (f"{d['place']}: {d['sent']:,} sent, {d['same']:,} there already." for d in done)
    emit(form, output, lambda out: print_lines(*lines, out=out), done)
    if problems := [text for result in results for text in result.notes]:
        raise LeadlineError(" ".join(problems))


def run(
    contexts: Sequence[Context], found: Sequence[Target], days: Sequence[date], runner: Runner | None = None
) -> list[StageResult]:
    """Send due items to each store and record the run in `runs`. The caller must hold the lake's lock.

    Raises:
        LeadlineError: A store can't be reached or does not accept the credentials. The other stores are still updated.
    """
    results: list[StageResult] = []
    failed: list[LeadlineError] = []
    with on_record(STAGE, contexts, runner or Local(), publish_failure=True) as record:
        for target in found:
            name = f"{STAGE} {target.place}" if len(found) > 1 else STAGE
            try:
                results.append(record.stage(name, stage.write_back, contexts[0], target, days))
            except LeadlineError as error:
                failed.append(error)
        if failed:
            raise failed[0]
    return results


def after_night(contexts: Sequence[Context], runner: Runner) -> StageResult:
    """Send due items after a night was published. A failure becomes a note.

    The caller must hold the lake's lock.
    """
    main = contexts[0]
    found = stage.targets(main.sources)
    total = StageResult(STAGE)
    try:
        _check_recipes(contexts, found, main.path)
        for result in run(contexts, found, _days(oldest(main.config, main.first), main.last), runner):
            total += result
    except LeadlineError as error:
        note = f"Scores were not all written back: {error} The next run continues."
        return replace(total, notes=(*total.notes, note))
    return total


def preview(contexts: Sequence[Context], found: Sequence[Target], days: Sequence[date]) -> list[dict[str, Any]]:
    """Show what would be sent, by store and score."""
    rows = []
    for target in found:
        due = stage.preview(contexts[0], target, days)
        counts = {"new": due.new, "changed": due.changed, "withdrawn": due.withdrawn, "same": due.same}
        rows.append({"place": target.place, **counts, "items": Counter(item.key.name for item in due.items)})
    return rows


def _draw_preview(rows: Sequence[dict[str, Any]], out: Console) -> None:
    for row in rows:
        print_lines(
            f"{row['place']}: {row['new']:,} new, {row['changed']:,} changed, {row['withdrawn']:,} to withdraw, "
            f"{row['same']:,} there already.",
            out=out,
        )
    if items := [(row["place"], name, f"{n:,}") for row in rows for name, n in sorted(row["items"].items())]:
        out.print(table("To send", ("store", "score", "items"), items, numbers={"items"}))
    note("Nothing was sent or changed.")


def _check_recipes(contexts: Sequence[Context], found: Sequence[Target], config: Path) -> None:
    names = {ctx.settings.name for ctx in contexts}
    for target in found:
        if target.settings.recipe not in {None, *names}:
            raise UsageError(
                f"{target.place}: `write_back.recipe` is {target.settings.recipe!r}, which is no recipe of {config}. "
                f"Its recipes are {', '.join(sorted(names))}."
            )


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]
