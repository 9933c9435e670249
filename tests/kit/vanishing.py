"""A lake of which another process deletes parts while this one works."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasks.core.schemas import Table
from tasks.store.lake import Lake, Part


class VanishingPath(type(Path())):  # type: ignore[misc]
    """A file that is deleted once its size and time are read."""

    def stat(self, **options: Any) -> Any:
        found = super().stat(**options)
        self.unlink()
        return found


class VanishingLake(Lake):
    """Deletes parts of these names once they are listed, or once their sizes and times are read."""

    def __init__(self, root: Path, *, listed: Collection[str] = (), stamped: Collection[str] = ()) -> None:
        super().__init__(root)
        self._listed, self._stamped = listed, stamped

    def parts(self, table: Table, *partition: str) -> list[Part]:
        found = super().parts(table, *partition)
        for part in found:
            if part.name in self._listed:
                part.path.unlink()
        return [replace(p, path=VanishingPath(p.path)) if p.name in self._stamped else p for p in found]
