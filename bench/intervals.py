"""The intervals of a night with a million traces: how long they take, and what the bootstrap adds to the normal ones.

    python -m bench.intervals [--traces 1000000]

Left out: reading the traces' scores from disk, and the means themselves.
"""

import argparse
import hashlib
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa

from tasks.core import statistics
from tasks.core.schemas import TRACE_SCORES
from tasks.core.statistics import mean_interval
from tasks.stages.intervals import intervals
from tasks.store.query import Queries

NUMBERS = ("faithfulness", "utilization", "answer_relevance", "context_relevance")


def night(traces: int, questions: int) -> pa.Table:
    """Scores of one app and generator, drawn at random."""
    rng = np.random.default_rng(0)
    ids = pa.array([hashlib.md5(str(i).encode()).hexdigest() for i in range(questions)])
    drawn = {"groundedness_score": rng.integers(0, 101, traces).astype(float)}
    drawn |= {name: rng.random(traces).round(4) for name in NUMBERS}
    columns = {name: pa.array(values) for name, values in drawn.items()}
    columns |= {
        "date": pa.repeat(pa.scalar(date(2026, 11, 1)), traces),
        "app": pa.repeat("app", traces),
        "generator": pa.repeat("generator", traces),
        "question_id": ids.take(pa.array(rng.integers(0, questions, traces))),
    }
    return pa.table({
        f.name: columns[f.name] if f.name in columns else pa.nulls(traces, f.type) for f in TRACE_SCORES.schema
    })  # fmt: skip


def seconds(rows: pa.Table) -> float:
    with tempfile.TemporaryDirectory() as scratch, Queries("2GB", Path(scratch)) as queries:
        begun = time.perf_counter()
        intervals(queries, rows)
        return time.perf_counter() - begun


def ends(questions: int, seeds: int = 40) -> tuple[float, float]:
    """Of scores of which 85% are 100: how far the bootstrap's lower end lies from the normal one, and how far it
    scatters by its own draws; in half-widths."""
    rng = np.random.default_rng(1)
    totals, counts = np.where(rng.random(questions) < 0.85, 100.0, rng.integers(0, 100, questions)), np.ones(questions)
    limit = statistics.MOST_RESAMPLED
    try:
        statistics.MOST_RESAMPLED = questions
        drawn = np.array([mean_interval(totals, counts, str(s)) for s in range(seeds)])[:, 0]
        statistics.MOST_RESAMPLED = 0
        low, high = mean_interval(totals, counts, "") or (0.0, 0.0)
    finally:
        statistics.MOST_RESAMPLED = limit
    return abs(drawn.mean() - low) / ((high - low) / 2), drawn.std() / ((high - low) / 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, default=1_000_000)
    traces = parser.parse_args().traces
    for questions in (1_000, traces // 2, 10 * traces):
        rows = night(traces, questions)
        print(f"{traces:,} traces of at most {questions:,} questions, five numbers: {seconds(rows):.2f} s")
    for questions in (30, 100, 300, 1_000, 3_000):
        apart, scatter = ends(questions)
        print(f"{questions:,} questions: {apart:.1%} of a half-width from normal; own noise {scatter:.1%}")


if __name__ == "__main__":
    main()
