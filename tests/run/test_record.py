"""The record of a run: running, then how it ended; what was killed is called interrupted."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kit.stage_kit import DAY, Watched, context, log, trace
from kit.vanishing import VanishingLake

from tasks.core.errors import DataError, SourceError
from tasks.core.schemas import QUARANTINE, RUNS
from tasks.ingest.ingest import ingest
from tasks.run.context import Context
from tasks.run.record import Rates, Record, measured_rates
from tasks.run.result import StageResult
from tasks.store.lake import from_rows


def records(ctx: Context) -> list[dict]:
    return [r for p in ctx.lake.parts(RUNS) for r in p.read().to_pylist()]


def at(minute: int) -> datetime:
    return datetime(2026, 11, 3, 2, minute, tzinfo=UTC)


def refuse(ctx: Context, name: str, n: int) -> None:
    row = {"source": "s", "stage": "gate", "reason": "r", "raw": ""}
    ctx.lake.write(QUARANTINE, name, from_rows([row] * n, QUARANTINE))


def test_a_run_is_on_record_from_its_start(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    run = Record("nightly", started=at(0))
    run.start(ctx)
    (row,) = records(ctx)
    assert (row["run_id"], row["flow"], row["status"], row["started_at"]) == (run.run_id, "nightly", "running", at(0))
    assert (row["ended_at"], row["error"], row["stages"], row["notes"]) == (None, None, [], [])
    assert (row["from_date"], row["to_date"]) == (DAY, DAY)
    assert (row["recipe"], row["judge_version"]) == (ctx.recipe, ctx.judge_version)


def test_its_end_replaces_its_start_and_adds_up_the_stages(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    run = Record("nightly", started=at(0))
    run.start(ctx)
    refuse(ctx, "a", 2)
    run.stages += [
        StageResult("ingest", computed=5, reused=1, seconds=1.5, notes=("late",)),
        StageResult(
            "verdicts",
            computed=30,
            reused=2,
            tokens_in=300,
            tokens_cached=200,
            tokens_out=3,
            seconds=4.0,
            judge="j",
            gpus=2,
        ),
        StageResult("joint pairs", computed=4, tokens_in=40, seconds=1.0, judge="j", gpus=2, notes=("odd",)),
        StageResult("scores", computed=6),
    ]
    run.end(ctx, "completed")
    (row,) = records(ctx)
    assert row["status"] == "completed"
    assert row["ended_at"] >= row["started_at"]
    assert (row["traces_ingested"], row["rows_quarantined"], row["verdicts_computed"]) == (5, 2, 34)
    assert (row["tokens_in"], row["tokens_cached"], row["tokens_out"]) == (340, 200, 3)
    assert row["gpu_seconds"] == 2 * 4.0 + 2 * 1.0
    nothing = {"tokens_in": 0, "tokens_cached": 0, "tokens_out": 0, "judge_version": None, "gpus": 0}
    assert row["stages"][0] == {"stage": "ingest", "seconds": 1.5, "computed": 5, "reused": 1, **nothing}
    assert row["stages"][1] == {
        "stage": "verdicts", "seconds": 4.0, "computed": 30, "reused": 2, "tokens_in": 300, "tokens_cached": 200,
        "tokens_out": 3, "judge_version": "j", "gpus": 2,
    }  # fmt: skip
    assert row["notes"] == ["late", "odd"]


def test_each_stage_is_on_record_when_it_is_done(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    run = Record("nightly", started=at(0))
    run.start(ctx)
    run.add(ctx, StageResult("verdicts", computed=30, judge="j"))
    (row,) = records(ctx)  # so that a run that is killed later has not paid for these in silence
    assert (row["status"], row["verdicts_computed"]) == ("running", 30)
    run.end(ctx, "failed", "x")
    assert [s["stage"] for s in records(ctx)[0]["stages"]] == ["verdicts"]


INTERRUPTED_QUERY = RuntimeError("Query interrupted")  # as DuckDB has it
INTERRUPTED_QUERY.__cause__ = KeyboardInterrupt()


@pytest.mark.parametrize(
    ("error", "status", "recorded"),
    [
        (SourceError("s.jsonl: gone. Look for it."), "failed", "s.jsonl: gone. Look for it."),
        (ValueError("'What the user asked' is no number"), "failed", "ValueError"),  # it may quote a trace
        (KeyboardInterrupt(), "interrupted", None),
        (INTERRUPTED_QUERY, "interrupted", None),
    ],
)
def test_a_run_that_fails_says_why(tmp_path: Path, error: BaseException, status: str, recorded: str | None) -> None:
    ctx = context(tmp_path)
    run = Record("nightly", started=at(0))
    run.start(ctx)
    run.fail(ctx, error)
    (row,) = records(ctx)
    assert (row["status"], row["error"], row["ended_at"] is None) == (status, recorded, False)


def test_a_run_that_never_ended_is_called_interrupted_by_the_next_one(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    killed, done = Record("nightly", started=at(0)), Record("nightly", started=at(1))
    killed.start(ctx)
    done.start(ctx)
    done.end(ctx, "completed")
    Record("nightly", started=at(2)).start(ctx)
    assert [(r["status"], r["ended_at"] is None) for r in records(ctx)] == [
        ("interrupted", True), ("completed", False), ("running", True),
    ]  # fmt: skip


def test_rows_refused_by_this_run_alone_are_counted_also_when_it_refuses_them_again(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    refuse(ctx, "before", 7)
    log(tmp_path, "a.jsonl", [trace("t1"), trace("t2", question="")])
    counts = []
    for minute in (0, 1):  # the second run reads the same file again, since the first kept nothing of it
        run = Record("nightly", started=at(minute))
        run.start(ctx)
        with pytest.raises(DataError):
            ingest(ctx)
        run.end(ctx, "failed")
        counts.append((records(ctx)[-1]["rows_quarantined"], run.refused(ctx)))
    for counted, refused in counts:
        assert (counted, refused.n, refused.nights) == (1, 1, (DAY, DAY))
        (row,) = refused.rows
        assert (Path(row["source"]).name, row["line"], "text" in row, "raw" in row) == ("a.jsonl", 2, False, False)


def test_run_ids_sort_by_time_and_never_clash() -> None:
    runs = [Record("nightly", started=at(i // 2)) for i in range(10)]
    ids = [r.run_id for r in runs]
    assert len(set(ids)) == 10
    assert sorted(i[:15] for i in ids) == [i[:15] for i in ids]


def test_rates_are_those_of_the_latest_run_of_this_judge_that_judged(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    mine = ctx.judges[0].judge.version
    assert measured_rates(ctx, mine) is None
    for minute, verdicts, judge in (
        (0, 10, Watched()),
        (1, 20, Watched()),
        (2, 0, Watched()),
        (3, 99, Watched(version="f" * 16)),
    ):
        run = Record("nightly", started=at(minute))
        other = context(tmp_path, judge=judge)
        run.start(other)
        more = 4 if verdicts else 0
        run.stages += [
            StageResult(
                "verdicts", computed=verdicts, tokens_in=3 * verdicts, seconds=3.0, judge=judge.version, gpus=2
            ),
            StageResult("joint pairs", computed=more, tokens_out=more, seconds=1.0, judge=judge.version, gpus=2),
            StageResult("relevance", computed=9, tokens_in=5_000, seconds=9.0),  # which is none of the judge's
        ]
        run.end(other, "completed")
    # of the second run: 20 and 4 verdicts, 60 and 4 tokens, 4 s
    assert measured_rates(ctx, mine) == Rates(verdicts=24, seconds=4.0, tokens=64, gpus=2)


def test_a_record_of_before_a_column_was_there_can_still_be_read(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    Record("nightly", started=at(0)).start(ctx)
    (part,) = ctx.lake.parts(RUNS)
    stage = pa.struct(
        [("stage", pa.string()), ("seconds", pa.float64()), ("computed", pa.int64()), ("tokens", pa.int64())]
    )
    old = pa.array([[{"stage": "verdicts", "seconds": 1.0, "computed": 3, "tokens": 9}]], pa.list_(stage))
    table = part.read().drop_columns(["tokens_cached", "stages"]).append_column("stages", old)
    pq.write_table(table, part.path)
    assert measured_rates(ctx, "j") is None
    Record("nightly", started=at(1)).start(ctx)  # calls the old one interrupted
    first, second = records(ctx)
    assert (first["status"], first["stages"][0]["computed"], first["tokens_cached"]) == ("interrupted", 3, None)
    assert second["status"] == "running"


def test_refused_rows_that_another_writer_takes_back_meanwhile_stop_no_run(tmp_path: Path) -> None:
    """A backfill beside it drops a part of `quarantine` once it is listed, and another once its time is read."""
    ctx = context(tmp_path)
    refuse(ctx, "before", 1)
    run = Record("nightly", started=at(0))
    run.start(ctx)
    refuse(ctx, "gone-at-once", 2)
    refuse(ctx, "gone-soon", 3)
    refuse(ctx, "stays", 4)
    lake = VanishingLake(ctx.lake.root, listed=["gone-at-once"], stamped=["gone-soon"])
    run.end(replace(ctx, lake=lake), "completed")
    assert records(ctx)[0]["rows_quarantined"] == 4
