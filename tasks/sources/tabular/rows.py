"""Sources that build one trace from each row of files or of a database."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Protocol, Self, TypeAlias

from pydantic import Field, model_validator

from tasks.sources import Batch, Reject, SourceFile
from tasks.sources.reading import exports, files
from tasks.sources.spans.piles import batches
from tasks.sources.spans.span import Assembled
from tasks.sources.tabular.columns import Mapper, Tabular

Numbered: TypeAlias = tuple[int, dict[str, Any] | Reject]


class FilePaths(Tabular):
    """Settings that all sources with rows in files share.

    Attributes:
        paths: Files, globs or URLs: `.jsonl`, `.csv`, `.parquet`, `.arrow`, or `.json` with a list; `.gz` and `.zst`
            too. `{date}` stands for each requested day, as YYYY-MM-DD; relative paths start at the config file's
            directory.
        storage_options: Options for fsspec, such as `endpoint_url`. No secrets: credentials come from the environment.
        day: Day of the traces, as YYYY-MM-DD, used if neither a column nor `{date}` gives it.
    """

    paths: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
    storage_options: dict[str, object] = Field(default_factory=dict)
    day: date | None = None

    @model_validator(mode="after")
    def _dated(self) -> Self:
        if self.day is None and self.columns.timestamp is None and not all("{date}" in path for path in self.paths):
            raise ValueError(
                "Should have `day`, because the rows have no times; or name a column in `columns.timestamp`, or write "
                "{date} in each of `paths`"
            )
        return self


class RowStore(Protocol):
    """A place to read rows from."""

    def files(self, start: date, end: date) -> list[SourceFile]:
        """See `tasks.sources.Source.files`."""

    def rows(self, file: SourceFile) -> Iterator[Numbered]:
        """Yield the rows of a file with their lines, and rejects of invalid rows.

        Raises:
            SourceError: The file can't be read to its end.
        """

    def named(self, file: SourceFile) -> bool:
        """Whether each row has all columns. Otherwise, rows may omit some."""


class TabularSource:
    """Builds traces from rows."""

    write_back = None  # scores can't be written to tables

    def __init__(self, settings: Tabular, store: RowStore) -> None:
        self._mapper = Mapper(settings)
        self._day = settings.day if isinstance(settings, FilePaths) else None
        self._store = store

    def files(self, start: date, end: date) -> list[SourceFile]:
        """See `tasks.sources.Source.files`."""
        return self._store.files(start, end)

    def read(self, file: SourceFile) -> Iterator[Batch]:
        """See `tasks.sources.Source.read`."""
        return batches(self._assembled(file))

    def traces(self, file: SourceFile, most: int) -> Iterator[Assembled]:
        """Return the first traces of one file, and where their fields were found.

        Args:
            most: Number of traces, including rejects.

        Raises:
            SourceError: The file can't be read.
        """
        return islice(self._assembled(file), most)

    def _assembled(self, file: SourceFile) -> Iterator[Assembled]:
        day = file.day or self._day
        at = None if day is None else datetime.combine(day, time(), UTC)
        checked = not self._store.named(file)
        for line, row in self._store.rows(file):
            if isinstance(row, Reject):
                yield Assembled(line, reject=row)
                continue
            if not checked:
                self._mapper.check_names(list(row), file.path)
                checked = True
            yield self._mapper.assembled(row, line, at)


@dataclass(frozen=True, slots=True)
class _Files:
    """Rows of files.

    Attributes:
        listed: Key of the list of rows in a `.json` file that holds an object.
    """

    config: FilePaths
    base: Path
    listed: str | None

    def files(self, start: date, end: date) -> list[SourceFile]:
        """See `RowStore.files`."""
        return files.find(self.config.paths, self.base, self.config.storage_options, start, end)

    def rows(self, file: SourceFile) -> Iterator[Numbered]:
        """See `RowStore.rows`."""
        options = self.config.storage_options
        return exports.records(file.path, self.base, options, strict=True, listed=self.listed)

    def named(self, file: SourceFile) -> bool:
        """See `RowStore.named`."""
        return not {".jsonl", ".ndjson", ".json"} & set(Path(file.path).suffixes)


def from_files(config: FilePaths, base: Path, listed: str | None = None) -> TabularSource:
    """Create a source of rows in files.

    Args:
        base: Directory for relative paths.
        listed: Key of the list of rows in a `.json` file that holds an object.
    """
    return TabularSource(config, _Files(config, base, listed))
