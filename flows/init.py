"""`leadline init`: the configs and the sample in a folder of the user's, ready for a first night."""

import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tasks.core.errors import UsageError
from tasks.core.paths import CONFIG, SHIPPED

COPIED = ("configs", "data/sample")


def command(
    folder: Annotated[Path, typer.Argument(help="The folder; this one by default.", show_default=False)] = Path(),
) -> None:
    """Copy the configs and the sample into a folder, for a first night."""
    if there := [folder / name for name in COPIED if (folder / name).exists()]:
        raise UsageError(f"{there[0]} already exists. Give another folder: leadline init FOLDER.")
    for name in COPIED:
        shutil.copytree(SHIPPED / name, folder / name)
    change = "" if folder == Path() else f"cd {folder} && "
    Console().print(
        f"{folder / CONFIG} is ready for the sample:\n  {change}leadline nightly --from 2026-11-01 --to 2026-11-03\n"
        "For your own logs, name them in a file like configs/sources/sample.yaml.",
        soft_wrap=True, markup=False, highlight=False,
    )  # fmt: skip
