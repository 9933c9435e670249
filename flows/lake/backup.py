"""`leadline backup` and `leadline restore`: copy what no run can recompute, and restore an empty lake from the copy."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from flows.console import print_lines
from flows.options import Config, DryRun
from flows.runtime.run import locked, locked_whole
from tasks.core.config import load_nightly
from tasks.core.errors import DamagedError, UsageError
from tasks.core.paths import CONFIG, config_option
from tasks.core.schemas import TABLES, TRACES, Table
from tasks.run.build import build_contexts
from tasks.run.scopes.scope import ALL
from tasks.store import backup as store
from tasks.store.lake import Lake, Part

Folder = Annotated[
    Path, typer.Argument(help="Folder of the backup, on another disk.", metavar="DIR", show_default=False)
]


def backup(
    folder: Folder,
    without_paid: Annotated[
        bool, typer.Option("--without-paid", help="Leave out what models made: smaller, but paid for again.")
    ] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Remove from the backup what was lost from the lake.")
    ] = False,
    config: Config = CONFIG,
) -> None:
    """Copy what no run can recompute, and remove from the copy what was removed from the lake.

    Example: leadline backup /mnt/backup/leadline
    """
    lake = Lake(load_nightly(config).lake)
    if not any(lake.parts(table) for table in TABLES.values()):
        raise UsageError(f"{lake.root}: there is no lake to back up. Correct `lake` in the config.")
    with locked(Lake(lake.root, writer=store.WRITER), "backup"):
        again = _made_again(lake, config, without_paid=without_paid)
        done = store.copy(lake, folder, again, datetime.now(UTC), accept_loss=accept_loss)
    print_lines(*done.damaged)
    files, size = len(done.manifest.files), done.manifest.size / 1e6
    print_lines(f"{folder}: {files:,} files, {size:,.1f} MB; {done.new:,} are new, {done.removed:,} were removed.")
    if done.damaged:
        which = "1 part of the lake is" if len(done.damaged) == 1 else f"{len(done.damaged):,} parts of the lake are"
        raise DamagedError(
            f"{which} damaged and not copied: see above. The backup keeps the earlier copy where it has one."
        )


def restore(
    folder: Folder,
    dry_run: DryRun = False,
    config: Config = CONFIG,
) -> None:
    """Fill an empty lake with a backup, after its checksums are verified; a nightly run then recomputes the rest.

    Example: leadline restore /mnt/backup/leadline --dry-run
    """
    if dry_run:
        manifest = store.verify(folder)
        print_lines(f"{folder}: {len(manifest.files):,} files of {manifest.ended_at:%Y-%m-%d %H:%M} UTC are whole.")
        return
    lake = Lake(load_nightly(config).lake)
    with locked_whole(lake, "restore", restoring=True):
        manifest = store.restore(folder, lake)
    print_lines(f"{lake.root}: {len(manifest.files):,} files of {manifest.ended_at:%Y-%m-%d %H:%M} UTC were restored.")
    option = config_option(config)
    if manifest.left_out:
        days = f"--from {manifest.left_out[0]} --to {manifest.left_out[-1]}"
        print_lines(f"To make the rest again, run: leadline nightly {days}{option}")
    else:
        print_lines(f"To make the warehouse again, run: leadline rebuild{option}")


def _made_again(lake: Lake, config: Path, *, without_paid: bool) -> Callable[[Table, Part], bool]:
    """Return a function that tells whether a nightly run of this config would recompute a part identically.

    It would if the config's recipe counts for all applications of the day and no text of the day is redacted. Results
    of earlier recipes, of backfills and of redacted texts can't be recomputed, so the backup includes them.
    """
    traces = lake.parts(TRACES)
    redacted = {part.date for part in traces if part.inputs()}
    days = {part.date for part in traces} - redacted
    made: set[tuple[str, date]] = set()
    if days:
        contexts = build_contexts(config, min(days), max(days), skip_unusable=True)
        made = {
            (ctx.recipe, day) for ctx in contexts for day in days if ctx.scope == ALL and ctx.counts and day in ctx.days
        }

    def again(table: Table, part: Part) -> bool:
        if not table.remade or "date" not in table.partition or part.date not in days:
            return False
        return without_paid if table.paid else (part.partition[0], part.date) in made

    return again
