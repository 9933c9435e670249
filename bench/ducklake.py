"""Many analysts: query a DuckLake from many processes while nights are published into it.

    LEADLINE_CATALOG=postgresql://user@host/name python -m bench.ducklake DATA_PATH
        [--readers 8] [--nights 20] [--traces 10000] [--claims 8] [--json FILE]

Each night is drawn at random, written to a lake and published. The night before is published again with other traces,
as after late logs. Every reader attaches the catalog like an analyst and checks in one query whether the number of
claims in each night's trace scores equals the number of claim results. A night with different states in the two tables
is torn.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from bench import common
from bench.speed.aggregate import drawn, ids
from tasks.core import keys, schemas
from tasks.store.ducklake import EXTENSIONS, LOCK, DuckLake
from tasks.store.lake import Lake
from tasks.store.remote.access import installed
from tasks.store.warehouse import Warehouse

FIRST = date(2026, 11, 1)
PUBLISHED = {table: table.schema.names for table in (schemas.TRACE_SCORES, schemas.CLAIM_RESULTS)}
TORN = """
    SELECT count(*), coalesce(sum((claims IS DISTINCT FROM found)::INT), 0)
    FROM (SELECT date, sum(claims_total) AS claims FROM catalog.trace_scores GROUP BY date)
    FULL JOIN (SELECT date, count(*) AS found FROM catalog.claim_results GROUP BY date) USING (date)
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """Observations of a reader.

    Attributes:
        torn: Number of nights whose two tables differed, over all queries.
        nights: Number of nights in the last query.
        seconds: Duration of each query.
    """

    torn: int
    nights: int
    seconds: tuple[float, ...]
    errors: tuple[str, ...]


def read(address: str, until: Path) -> Seen:
    """Query until a file exists, then once more. Every tenth query uses a new connection."""
    torn, nights, seconds, errors = 0, 0, [], []
    connection = None
    last = False
    while not last:
        last = until.exists()
        begun = time.perf_counter()
        try:
            if connection is None or len(seconds) % 10 == 0:
                connection = attached(address)
            found = connection.execute(TORN).fetchone()
            assert found
            nights, torn = found[0], torn + found[1]
        except duckdb.Error as error:
            errors.append(str(error).replace(address, "…"))
        seconds.append(time.perf_counter() - begun)
    return Seen(torn, nights, tuple(seconds), tuple(errors))


def attached(address: str) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB with the catalog attached, like an analyst."""
    connection = duckdb.connect()
    for extension in EXTENSIONS:
        connection.execute(f"LOAD '{installed(extension, LOCK)}'")
    connection.execute(f"ATTACH 'ducklake:postgres:{address}' AS catalog (READ_ONLY)")
    return connection


def put(lake: Lake, night: date, traces: int, claims: int, rng: np.random.Generator) -> None:
    """Write a random night, with consistent `claims_total`."""
    names = ids(traces, rng)
    each = rng.integers(0, 2 * claims + 1, traces)
    owners = names.take(pa.array(np.repeat(np.arange(traces), each)))
    known = {"trace_id": names, "claims_total": pa.array(each, pa.int32())}
    of_claims = {"trace_id": owners, "claim_id": ids(len(owners), rng)}
    for table, rows in (
        (schemas.TRACE_SCORES, drawn(schemas.TRACE_SCORES, traces, rng, known)),
        (schemas.CLAIM_RESULTS, drawn(schemas.CLAIM_RESULTS, len(owners), rng, of_claims)),
    ):
        lake.write(table, "drawn", rows, "r", str(night))


def measure(
    address: str, data_path: str, readers: int, nights: int, traces: int, claims: int
) -> tuple[list[float], list[Seen]]:
    """Return the seconds of each publication, and the observations of each reader."""
    rng = np.random.default_rng(0)
    place = DuckLake("LEADLINE_CATALOG", address, data_path, "main")
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        lake, until = Lake(Path(folder) / "lake"), Path(folder) / "done"
        warehouse = Warehouse(lake, Path(folder) / "leadline.duckdb", "2GB")

        def published(day: int) -> float:
            for night in {max(day - 1, 0), day}:
                put(lake, FIRST + timedelta(days=night), traces, claims, rng)
            warehouse.load()
            begun = time.perf_counter()
            with warehouse.connect() as connection:
                place.publish(connection, keys.version(["bench"]), PUBLISHED)
            return time.perf_counter() - begun

        seconds = [published(0)]
        command = [sys.executable, "-m", "bench.ducklake", "--read", str(until), data_path]
        env = {**os.environ, "LEADLINE_CATALOG": address}
        running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=common.ROOT)
            for _ in range(readers)
        ]
        seconds += [published(day) for day in range(1, nights)]
        until.touch()
        found = [json.loads(process.communicate()[0].splitlines()[-1]) for process in running]
    return seconds, [Seen(**row) for row in found]


def show(seconds: Sequence[float], seen: Sequence[Seen]) -> None:
    queries = [s for reader in seen for s in reader.seconds]
    print(f"{len(seconds)} publications, median {median(seconds):.2f} s, longest {max(seconds):.2f} s")
    print(f"{len(seen)} readers, {len(queries)} queries, median {median(queries):.2f} s, longest {max(queries):.2f} s")
    print(f"reader errors {sum(len(r.errors) for r in seen)}, torn nights {sum(r.torn for r in seen)}")
    for problem in sorted({e for r in seen for e in r.errors}):
        print(problem)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("data_path")
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--nights", type=int, default=20)
    parser.add_argument("--traces", type=int, default=10_000, help="of a night")
    parser.add_argument("--claims", type=int, default=8, help="of a trace, on average")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    args: Any = parser.parse_args()
    address = os.environ["LEADLINE_CATALOG"]
    if args.read:
        print(json.dumps(asdict(read(address, args.read))))
        return
    seconds, seen = measure(address, args.data_path, args.readers, args.nights, args.traces, args.claims)
    common.save(args.json, {"publications": seconds, "readers": [asdict(r) for r in seen]})
    show(seconds, seen)


if __name__ == "__main__":
    main()
