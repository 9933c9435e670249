"""Traces of a table of any form: JSON lines, CSV, Parquet; the config names the columns."""

from pathlib import Path
from typing import Literal

from tasks.sources import Source
from tasks.sources.tabular import FilePaths, from_files


class Config(FilePaths):
    """Settings of a `table` source; see `FilePaths` and `Tabular` for them."""

    kind: Literal["table"]


def build(config: Config, base: Path) -> Source:
    """The source that the settings describe; `base` is the config file's directory."""
    return from_files(config, base)
