"""The ledger `sources`: one row for each version of a source file that was read.

The names of a file's parts in `traces` begin with the name of its row, and the row is written after the parts. Parts
without a row mean that a run was killed in between or that the row was lost. They are never removed, because the file
may no longer exist. `ingest.py` reads the files.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count

import polars as pl

from tasks.core import keys
from tasks.core.schemas import QUARANTINE, SOURCES, TRACES
from tasks.sources import SourceFile
from tasks.store.lake import Lake, Part, empty, frame, from_rows

HASHES = ["trace_id", "content_hash"]
REFUSED_KEY = ["trace_id", "stage", "reason", "detail", "raw"]
NAMED = 5  # adopted parts in a note


def name_of(file: SourceFile) -> str:
    """Return the name of a file's row, which is also the prefix of its part names."""
    return keys.key(file.path, file.fingerprint, size=keys.SHORT_HEX)


def ledger(lake: Lake) -> dict[tuple[str, str], int]:
    """Return the row count of every file read so far, by path and fingerprint."""
    found = lake.frame(SOURCES, columns=["source", "fingerprint", "rows"]).drop_nulls("source")
    return {(source, fingerprint): rows for source, fingerprint, rows in found.iter_rows()}


def parts_by_file(lake: Lake) -> Mapping[str, Sequence[Part]]:
    """Return the parts of `traces` by the name of their file's row, even if the row is missing."""
    found: dict[str, list[Part]] = defaultdict(list)
    for part in lake.parts(TRACES):
        found[part.name.rsplit("-", 1)[0]].append(part)
    return found


def refused_before(lake: Lake, place: str) -> pl.DataFrame:
    """Return the refused rows of all files of a place that are in the ledger, with the columns `REFUSED_KEY`."""
    names = {part.name for part in lake.parts(SOURCES)}
    parts = [part for part in lake.parts(QUARANTINE) if part.name in names and _holds(part, place)]
    found = [part.frame(["source", *REFUSED_KEY]).filter(_of(place)).select(REFUSED_KEY) for part in parts]
    return pl.concat([frame(empty(QUARANTINE)).select(REFUSED_KEY), *found])


def drop_abandoned(lake: Lake, place: str) -> None:
    """Drop quarantine parts of a place that have no ledger row. The next run reads their rows again as another file."""
    names = {part.name for part in lake.parts(SOURCES)}
    for part in lake.parts(QUARANTINE):
        if part.name not in names and _holds(part, place):
            lake.drop(QUARANTINE, part.name)


def _holds(part: Part, place: str) -> bool:
    return bool(part.frame(["source"]).select(_of(place).any()).item())


def _of(place: str) -> pl.Expr:
    """Match rows of the files of a place. The path of a time window is the place, a space and the times."""
    return (pl.col("source") == place) | pl.col("source").str.starts_with(f"{place} ")


def free_names(name: str, there: Sequence[Part]) -> Iterator[str]:
    """Yield unused names for the parts of a file.

    A lost part thus gets its old name back, so results computed from it match it again.

    Args:
        there: Parts that exist.
    """
    taken = {part.name for part in there}
    return (part for n in count() if (part := f"{name}-{n:05d}") not in taken)


def hashes(parts: Sequence[Part]) -> pl.DataFrame:
    """Return `trace_id` and `content_hash` of all traces in some parts."""
    return pl.concat([frame(empty(TRACES)).select(HASHES), *(part.frame(HASHES) for part in parts)])


def record(
    lake: Lake,
    name: str,
    file: SourceFile | None,
    *,
    ingested: int,
    quarantined: int,
    duplicates: int = 0,
    sampled_out: int = 0,
) -> None:
    """Write the row of a file. Call it after the parts are written.

    Args:
        file: None for parts whose file is unknown; the row then has no source.
    """
    row = {
        "source": file and file.path,
        "fingerprint": file and file.fingerprint,
        "rows": ingested + duplicates + sampled_out + quarantined,
        "ingested": ingested,
        "duplicates": duplicates,
        "sampled_out": sampled_out,
        "quarantined": quarantined,
        "ingested_at": datetime.now(UTC),
    }
    lake.write(SOURCES, name, from_rows([row], SOURCES))


def adopt(lake: Lake) -> list[str]:
    """Write rows without a source for parts of `traces` that have no row. Returns a note if there are any.

    If the file appears later, it is read and its own row replaces this one.
    """
    rows = {part.name for part in lake.parts(SOURCES)}
    adopted: list[Part] = []
    for name, parts in parts_by_file(lake).items():
        if name not in rows:
            refused = lake.find(QUARANTINE, name)
            traces = sum(part.rows() for part in parts)
            record(lake, name, None, ingested=traces, quarantined=refused.rows() if refused else 0)
            adopted += parts
    if not adopted:
        return []
    named = ", ".join(f"{part.date}/{part.name}" for part in adopted[:NAMED])
    more = f" and {len(adopted) - NAMED} more" if len(adopted) > NAMED else ""
    traces = sum(part.rows() for part in adopted)
    return [f"Parts of `traces` that had no row in `sources` were adopted (traces: {traces:,}): {named}{more}."]
