"""Parts of `relevance` and `grades`, which are rewritten after every shard until they are complete.

Their `inputs` token counts the open rows: rows not made yet or lost in an outage, and failures.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa

from tasks.core.errors import ChangedError
from tasks.core.schemas import Table
from tasks.store.lake import Lake, Part
from tasks.store.storage import Stamp

Key = tuple[Any, ...]


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """Open rows of a part, as its `inputs` token records them.

    Attributes:
        open: Missing rows.
        failed: Rows without a value.
        unparsable: Rows whose reply can't be read. They have their own count because the night depends on it.
        scopes: Token of the scopes that the part covers; empty for all traces.
    """

    open: int = 0
    failed: int = 0
    unparsable: int = 0
    scopes: str = ""

    @property
    def token(self) -> str:
        """The state as text; empty if nothing is open."""
        return "" if self == type(self)() else msgspec.json.encode(self).decode()


@dataclass(slots=True)
class OpenPart:
    """A part with possibly missing rows.

    Attributes:
        source: The part of `traces` that it is derived from.
        version: Version of the model: the first partition column.
        key: Columns that identify a row.
        failures: For each kind of failure in `State`, the expression that selects its rows.
        scopes: Token of the scopes that the part covers.
        missing: Keys of the rows to make. `add` removes the keys of new rows.
        rows: Existing rows that are kept.
        reused: Number of kept rows.
        seen: Version of the part that `rows` comes from.
    """

    lake: Lake
    source: Part
    table: Table
    name: str
    version: str
    key: list[str]
    failures: Mapping[str, pl.Expr]
    scopes: str = ""
    missing: set[Key] = field(default_factory=set)
    rows: pa.Table | None = None
    reused: int = 0
    seen: Stamp | None = None

    @property
    def where(self) -> tuple[str, str]:
        """The part's partition."""
        return self.version, self.source.partition[-1]

    @property
    def traces(self) -> set[str]:
        """Ids of the traces with missing rows."""
        return {str(key[0]) for key in self.missing}

    def read(self, expected: Callable[[], tuple[pl.DataFrame, str]], *, retry_failures: bool) -> "OpenPart":
        """Read the existing rows, and find the missing ones.

        Args:
            expected: Returns the keys of all rows and the token of their scopes. Called only if rows may be missing.
            retry_failures: Make failed rows again.
        """
        existing = self.lake.find(self.table, self.name, *self.where)
        state = msgspec.json.decode(existing.inputs() or "{}", type=State) if existing else State()
        if existing and not (state.open or state.scopes or (retry_failures and (state.failed or state.unparsable))):
            self.reused = existing.rows()
            return self
        self.seen = existing.stamp() if existing else None
        keys, self.scopes = expected()
        if existing:
            rows = existing.read()
            frame = pl.DataFrame(rows)
            if retry_failures:
                failed = frame.filter(pl.any_horizontal(*self.failures.values()))
                again = failed.join(keys, on=self.key, how="semi", nulls_equal=True)
                frame = frame.join(again, on=self.key, how="anti", nulls_equal=True, maintain_order="left")
            keys = keys.join(frame, on=self.key, how="anti", nulls_equal=True)
            self.reused = frame.height
            self.rows = frame.to_arrow().cast(rows.schema) if keys.height else None
        self.missing = set(keys.select(self.key).rows())
        return self

    def add(self, new: pa.Table) -> None:
        """Write the part with new rows and with the rows that another writer has added since it was read."""
        tables = [new] if self.rows is None else [self.rows.select(new.column_names).cast(new.schema), new]
        rows = pl.DataFrame(pa.concat_tables(tables))
        while not self._written(rows, new.schema):
            there = self.lake.find(self.table, self.name, *self.where)
            self.seen = there.stamp() if there else None
            if there:  # a nightly and a backfill may work on the same traces
                others = pl.DataFrame(there.read(rows.columns).select(rows.columns).cast(new.schema))
                others = others.join(rows, on=self.key, how="anti", nulls_equal=True, maintain_order="left")
                rows = pl.concat([rows, others])

    def _written(self, rows: pl.DataFrame, schema: pa.Schema) -> bool:
        """Write these rows, unless another writer has changed the part. Returns whether they were written."""
        self.missing.difference_update(rows.select(self.key).rows())
        counts = {name: rows.filter(failure).height for name, failure in self.failures.items()}
        token = State(open=len(self.missing), scopes=self.scopes, **counts).token
        self.rows = rows.to_arrow().cast(schema)
        where = (self.table, self.name, self.rows, *self.where)
        try:
            self.seen = self.lake.write(*where, inputs=token, once=not self.seen, replaces=self.seen).stamp()
        except ChangedError:
            return False
        return True
