"""Traces from rows of tables in files or in a database: column mapping and reading."""

from tasks.sources.tabular.columns import Columns, Tabular
from tasks.sources.tabular.rows import FilePaths, TabularSource, from_files

__all__ = ["Columns", "FilePaths", "Tabular", "TabularSource", "from_files"]
