"""Samples of Ragas: how many times it names its columns, and what it leaves out."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from kit.stores.worlds import read, rows

from tasks import sources
from tasks.core.errors import ConfigError

DAY = date(2026, 11, 1)
NEW = {"user_input": "Q?", "retrieved_contexts": ["A.", "B."], "retrieved_context_ids": ["x", "y"], "response": "A [1].",
       "reference": "A!", "reference_context_ids": ["x"]}  # fmt: skip
OLD = {"question": "Q?", "contexts": ["A.", "B."], "answer": "A [1].", "ground_truth": "A!"}


def load(base: Path, *given: object, **more: object):
    (base / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    of = sources.load({"kind": "ragas", "paths": ["samples.jsonl"], "day": DAY, **more}, "x.yaml", base)
    return read(of, *of.files(DAY, DAY))


def test_a_sample_of_each_version(tmp_path: Path) -> None:
    (new,), (old,) = rows(load(tmp_path, NEW)), rows(load(tmp_path, OLD))
    assert (new["question"], new["answer"], new["reference_answer"]) == ("Q?", "A [1].", "A!")
    assert new["timestamp"] == datetime(2026, 11, 1, tzinfo=UTC)
    assert new["gold_chunk_ids"] == ["x"]
    assert [(c["chunk_id"], c["text"]) for c in new["chunks"]] == [("x", "A."), ("y", "B.")]
    assert [(c["chunk_id"], c["text"]) for c in old["chunks"]] == [("1", "A."), ("2", "B.")]
    assert new["trace_id"] == old["trace_id"]  # they say the same


def test_further_columns(tmp_path: Path) -> None:
    more = {"columns": {"timestamp": "at", "id": "run"}, "day": None}
    (row,) = rows(load(tmp_path, {**NEW, "at": "2026-11-03T00:00:00Z", "run": 7}, **more))
    assert (row["trace_id"], row["timestamp"].day, row["answer"]) == ("7", 3, "A [1].")


def test_a_conversation_is_refused(tmp_path: Path) -> None:
    batch = load(tmp_path, {"user_input": [{"content": "Q?", "type": "human"}, {"content": "A", "type": "ai"}]}, NEW)
    assert [r.reason for r in batch.rejects] == ["missing_field"]
    assert batch.table.num_rows == 1


def test_samples_have_no_times(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="should have `day`"):
        load(tmp_path, NEW, day=None)
