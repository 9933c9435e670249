"""A lake of which another process deletes parts while this one works."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tasks.core.schemas import Table
from tasks.store.lake import Lake, Part
from tasks.store.storage import Local, Stamp


@dataclass(frozen=True)
class VanishingFiles(Local):
    """Files that are deleted once their stamps are read."""

    stamped: tuple[str, ...] = ()

    def stamp(self, key: str) -> Stamp | None:
        found = super().stamp(key)
        if Path(key).stem in self.stamped:
            self.delete(key)
        return found


class VanishingLake(Lake):
    """Deletes parts of these names once they are listed, or once their stamps are read."""

    def __init__(self, root: Path, *, listed: Collection[str] = (), stamped: Collection[str] = ()) -> None:
        super().__init__(root)
        self.storage = self._top = VanishingFiles(root, stamped=tuple(stamped))
        self._listed = listed

    def parts(self, table: Table, *partition: str) -> list[Part]:
        found = super().parts(table, *partition)
        for part in found:
            if part.name in self._listed:
                part.path.unlink()
        return found
