"""Parts of `relevance` and `grades`, which are written again after every shard until no row is missing.

Its `inputs` token counts what is open: rows that were not made yet or were lost by an outage, and failures.
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
    """What is open in a part, as its `inputs` token has it.

    Attributes:
        open: Rows that are missing.
        failed: Rows without a value.
        unparsable: Rows whose reply can't be read. Their number counts by itself: the night depends on it.
        scopes: Which traces it is of; empty for all.
    """

    open: int = 0
    failed: int = 0
    unparsable: int = 0
    scopes: str = ""

    @property
    def token(self) -> str:
        """As text; empty where nothing is open."""
        return "" if self == type(self)() else msgspec.json.encode(self).decode()


@dataclass(slots=True)
class OpenPart:
    """A part that may lack rows.

    Attributes:
        source: The part of `traces` that it is made of.
        version: Of the model, the first partition column.
        key: Columns that identify a row.
        failures: Which rows count as which failure of `State`.
        scopes: Which traces it is of.
        missing: Keys of the rows to make; those that are made are removed.
        rows: Rows that it has and keeps.
        reused: Their number.
        seen: The version that they are from.
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
        """Its partition."""
        return self.version, self.source.partition[-1]

    @property
    def traces(self) -> set[str]:
        """Ids of the traces with missing rows."""
        return {str(key[0]) for key in self.missing}

    def read(self, expected: Callable[[], tuple[pl.DataFrame, str]], *, retry_failures: bool) -> "OpenPart":
        """Reads what it has, and finds what is missing.

        Args:
            expected: Returns keys of all rows and the token of their scopes; called where something may be missing.
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
        """Writes the part with new rows, and with those that another writer has added meanwhile."""
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
        """Writes these rows, unless another writer has written the part since it was seen."""
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
