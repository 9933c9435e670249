"""Traces from tables with any columns, as JSON lines, CSV or Parquet. The config maps the columns."""

from pathlib import Path
from typing import Literal

from tasks.sources import Source
from tasks.sources.tabular import FilePaths, from_files


class Config(FilePaths):
    """Settings of a `table` source; see `FilePaths` and `Tabular`."""

    kind: Literal["table"]


def build(config: Config, base: Path) -> Source:
    """Create the source from its settings; `base` is the config file's directory."""
    return from_files(config, base)
