"""Traces from rows of tables: which column holds what, and where rows are, in files or in a database."""

from tasks.sources.tabular.columns import Columns, Tabular
from tasks.sources.tabular.rows import FilePaths, TabularSource, from_files

__all__ = ["Columns", "FilePaths", "Tabular", "TabularSource", "from_files"]
