"""Each check, from facts to a result."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows.doctor import checks
from flows.doctor.checks import Disk, Night, Package, Result

NOW = datetime(2026, 11, 5, 8, tzinfo=UTC)
LAKE = Path("data/lake")


def hours(n: float) -> datetime:
    return NOW - timedelta(hours=n)


def night(status: str = "completed", started: float = 6, ended: float | None = 5, error: str | None = None) -> Night:
    return Night(status, hours(started), None if ended is None else hours(ended), "2026-11-04", error)


POLARS = Package("polars>=1.30", "1.31", True)
OLD = Package("polars>=1.30", "1.2", False)
GONE = Package("polars>=1.30", None, False)
JUDGE = ["judge qwen3"]


@pytest.mark.parametrize(
    ("result", "status", "words"),
    [
        (checks.python("3.11.4", ">=3.11", True, [POLARS]), "ok", ["3.11.4", "1 packages"]),
        (checks.python("3.10.1", ">=3.11", False, [POLARS]), "problem", ["3.10.1", ">=3.11"]),
        (checks.python("3.11.4", ">=3.11", True, [GONE]), "problem", ["polars>=1.30 (missing)"]),
        (checks.python("3.11.4", ">=3.11", True, [OLD]), "warning", ["polars>=1.30 (1.2)"]),
        (checks.gpu([], [], None), "ok", ["none"]),
        (checks.gpu(None, ["H100"], None), "ok", ["H100", "not known"]),
        (checks.gpu(JUDGE, ["H100"], "0.32"), "ok", ["H100", "judge qwen3"]),
        (checks.gpu(JUDGE, [], "0.32"), "problem", ["judge qwen3"]),
        (checks.gpu(JUDGE, [], "0.32+cpu"), "warning", ["slow"]),  # vLLM's build for CPUs runs without one
        (checks.vllm([], None), "ok", ["not installed"]),
        (checks.vllm(JUDGE, None), "problem", ["judge qwen3 needs it", "requirements-gpu.lock"]),
        (checks.vllm(JUDGE, "0.32"), "ok", ["0.32"]),
        (checks.prefect("", None, None), "ok", ["turned off"]),  # not even installed, and not needed
        (checks.prefect(None, None, None), "problem", ["--no-prefect"]),
        (checks.prefect(None, "3.7", None), "ok", ["temporary"]),
        (checks.prefect("http://a/api", "3.7", None), "ok", ["http://a/api"]),
        (checks.prefect("http://a/api", "3.7", "refused"), "problem", ["http://a/api", "refused"]),
        (checks.clock(NOW, {"the latest run": hours(1)}), "ok", ["completes 2026-11-04"]),
        (checks.clock(NOW, {"the latest run": hours(-0.05)}), "ok", []),  # three minutes: clocks are set now and then
        (checks.clock(NOW, {"a": hours(2), "the latest run": hours(-3)}), "problem", ["the latest run", "11:00"]),
        (checks.config(Path("c.yaml"), ["recipe a, judge b"], None), "ok", ["recipe a, judge b"]),
        (checks.config(Path("c.yaml"), [], "c.yaml: lake is missing."), "problem", ["lake is missing"]),
        (checks.source("s.yaml", "2026-11-04", 5, 5, 9, None), "ok", ["5 of 2026-11-04"]),
        (checks.source("s.yaml", "2026-11-04", 9, 4, 9, None), "ok", ["4 or more"]),  # there may be others behind
        (checks.source("s.yaml", "2026-11-04", 9, 0, 9, None), "ok", ["first 9 traces are of other days"]),
        (checks.source("s.yaml", "2026-11-04", 5, 0, 9, None), "warning", ["5 traces, none of 2026-11-04"]),
        (checks.source("s.yaml", "2026-11-04", 0, 0, 9, None), "warning", ["nothing of 2026-11-04"]),
        (checks.source("s.yaml", "2026-11-04", 0, 0, 9, "no answer"), "problem", ["no answer", "sources check s.yaml"]),
        (checks.lake(LAKE, 0, None, NOW), "ok", ["no night yet"]),
        (checks.lake(LAKE, 1, None, NOW), "ok", ["1 night,"]),
        (checks.lake(LAKE, 3, None, NOW, ["a backfill"]), "ok", ["3 nights", "a backfill"]),
        (checks.lake(LAKE, 3, ("process 7", hours(2)), NOW), "warning", ["process 7", "exit code 4"]),
        (checks.lake(LAKE, 3, ("process 7", hours(30)), NOW), "problem", ["process 7", "30 h"]),
        (checks.lake(LAKE, 3, None, NOW, redacting=True), "warning", ["leadline retention"]),
        (checks.index([], 0), "ok", ["none yet"]),
        (checks.index([], 2), "ok", ["2 files"]),
        (checks.index([(Path("i.sqlite"), "malformed")], 2), "warning", ["malformed", "rm i.sqlite"]),
        (checks.last_night(None, None, NOW), "ok", ["none yet"]),
        (checks.last_night(None, night("failed", error="disk full"), NOW), "warning", ["failed", "disk full"]),
        (checks.last_night(night(), night(), NOW), "ok", ["2026-11-04", "5 h ago"]),
        (checks.last_night(night(started=39, ended=37), night(started=39, ended=37), NOW), "warning", ["37 h ago"]),
        (checks.last_night(night(started=99, ended=96), night(started=99, ended=96), NOW), "warning", ["4 days ago"]),
        (checks.last_night(night(), night("failed", started=1, ended=1), NOW), "warning", ["2026-11-05 07:00", "failed"]),
    ],
)  # fmt: skip
def test_facts_decide(result: Result, status: str, words: list[str]) -> None:
    assert result.status == status
    assert [word for word in words if word not in result.text + result.remedy] == []


# What a night needs besides what it copies: 200 MB at least, 2 GB as a reserve.
@pytest.mark.parametrize(
    ("free", "needed", "status"),
    [
        (2_000_000_000, 0, "ok"),
        (1_999_999_999, 0, "warning"),
        (200_000_000, 0, "warning"),
        (199_999_999, 0, "problem"),
        (5_000_000_000, 4_900_000_000, "problem"),  # the copy of a large warehouse leaves 100 MB
    ],
)
def test_a_full_disk_stops_a_night(free: int, needed: int, status: str) -> None:
    assert checks.disk(Disk(LAKE, ["lake"], free, needed)).status == status


def test_a_folder_that_cannot_be_written_stops_a_night() -> None:
    found = checks.disk(Disk(LAKE, ["lake"], 10**12, 0, [LAKE]))
    assert (found.status, "data/lake can't be written" in found.text) == ("problem", True)


def test_every_problem_says_what_to_do() -> None:
    """The message of a wrong config holds its remedy already."""
    found = [
        checks.python("3.10", ">=3.11", False, []),
        checks.python("3.11", ">=3.11", True, [GONE]),
        checks.disk(Disk(LAKE, [], 0, 0)),
        checks.disk(Disk(LAKE, [], 0, 0, [LAKE])),
        checks.gpu(JUDGE, [], None),
        checks.vllm(JUDGE, None),
        checks.prefect("http://a", "3", "refused"),
        checks.clock(NOW, {"a": hours(-9)}),
        checks.source("s", "d", 0, 0, 1, "gone"),
        checks.lake(LAKE, 1, ("p", hours(99)), NOW),
    ]
    assert [(r.status, bool(r.remedy)) for r in found] == [("problem", True)] * len(found)
