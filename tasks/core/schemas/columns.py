"""Shared types and columns, and the declaration of a table."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

TS = pa.timestamp("us", tz="UTC")
S, I32, I64, F64, B = pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()
STRINGS = pa.list_(S)


def col(name: str, type_: pa.DataType, doc: str, *, null: bool = True) -> "pa.Field[Any]":
    """A documented column."""
    return pa.field(name, type_, nullable=null, metadata={"doc": doc})


CHUNK = pa.struct([("chunk_id", S), ("doc_id", S), ("title", S), ("rank", I32), ("text", S), ("retrieval_score", F64)])
CITATION = pa.struct([("start", I32), ("end", I32), ("chunk_ids", STRINGS)])
RATING = pa.struct([("score", F64), ("comment", S)])
EVIDENCE = pa.struct([("chunk_id", S), ("start", I32), ("end", I32)])
SPAN = pa.struct([("start", I32), ("end", I32)])
CITED_SUPPORT = pa.struct([("chunk_id", S), ("label", S), ("p_supported", F64)])
FLIP = pa.struct([("first", S), ("second", S), ("n", I64)])


DAYS = "`leadline nightly` over its days, or `leadline backfill` if that wrote it,"
UNTEXTED = "rows of traces whose text was removed"


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its grain, its columns, its partition keys, and whether a part can be rebuilt, and from what.

    Errors, `leadline check`, `leadline backup` and `docs/tables.md` follow from what is declared here.

    Attributes:
        partition: Hive-style directories of the lake, outermost first (`date=2026-11-01/`). The files contain the
            partition columns too.
        remade: The command that rebuilds a removed part; empty if nothing can.
        made_of: Tables that the command reads, which must be whole; besides them, it needs configs and models.
        paid: A model makes it, which costs time or money again.
        lost: What a removed part loses permanently; empty if everything is rebuilt.
    """

    name: str
    grain: str
    schema: pa.Schema
    partition: tuple[str, ...] = ()
    remade: str = DAYS
    made_of: tuple[str, ...] = ()
    paid: bool = False
    lost: str = ""

    @property
    def remedy(self) -> str:
        """What to do with a damaged part."""
        if not self.remade:
            return f"Nothing can rebuild it: restore it from a backup. Removing the file loses {self.lost}."
        lost = f", except {self.lost}; if these matter, restore it from a backup" if self.lost else ""
        paid = " What a model makes is paid for again: a backup saves that." if self.paid else ""
        return f"Remove the file and run {self.remade} again to rebuild it{lost}.{paid}"

    @property
    def stored(self) -> pa.Schema:
        """The columns without the partition columns, which the lake adds."""
        return pa.schema([f for f in self.schema if f.name not in self.partition])


DATE = col("date", pa.date32(), "Day of the trace's timestamp, UTC.", null=False)
TRACE_ID = col("trace_id", S, "The application's id of the trace.", null=False)
CLAIM_ID = col("claim_id", S, "Hash of trace id, extractor version and ordinal.", null=False)
APP = col("app", S, "Application that answered.", null=False)
GENERATOR = col("generator", S, "Model or system that wrote the answer.", null=False)
JUDGE_VERSION = col("judge_version", S, "Hash of everything that can change a verdict; see `judges`.", null=False)
RECIPE = col("recipe", S, "Hash of extractor, pairing, judge, scoring SQL and parameters.", null=False)
N_COLUMNS = [
    col("n", I64, "Traces.", null=False),
    col("n_scored", I64, "Traces with the number; only these enter the mean.", null=False),
    col("n_na", I64, "Traces to which the number does not apply.", null=False),
    col("n_unjudged", I64, "Traces to which it applies but that have no verdict.", null=False),
    col("n_abstained", I64, "Traces on which the judge abstained.", null=False),
]


def interval(prefix: str, what: str) -> "list[pa.Field[Any]]":
    """Mean and 95% confidence interval columns of one number."""
    return [col(f"{prefix}_mean", F64, f"Mean {what} over the scored traces."), *ends(prefix)]


def ends(prefix: str, unless: str = "null with fewer than two") -> "list[pa.Field[Any]]":
    """Columns of the 95% confidence interval of one number."""
    return [
        col(f"{prefix}_low", F64, f"Lower end of its 95% interval over questions; {unless}."),
        col(f"{prefix}_high", F64, "Upper end of the interval."),
    ]
