"""Results of RAGChecker: passages and ids, and a file that is none."""

import json
from datetime import date
from pathlib import Path

from kit.stores.worlds import complaint, read, rows

from tasks import sources

DAY = date(2026, 11, 1)
RESULT = {"query_id": "0", "query": "Q?", "gt_answer": "A!", "response": "A [1].",
          "retrieved_context": [{"doc_id": "x", "text": "A."}, {"doc_id": None, "text": "B."}]}  # fmt: skip


def load(base: Path, *texts: str):
    for n, text in enumerate(texts):
        (base / f"results{n}.json").write_text(text)
    of = sources.load({"kind": "ragchecker", "paths": ["results*.json"], "day": DAY}, "x.yaml", base)
    return read(of, *of.files(DAY, DAY))


def test_a_result(tmp_path: Path) -> None:
    (row,) = rows(load(tmp_path, json.dumps({"results": [RESULT], "metrics": {}})))
    assert (row["question"], row["answer"], row["reference_answer"]) == ("Q?", "A [1].", "A!")
    assert [(c["chunk_id"], c["text"]) for c in row["chunks"]] == [("x", "A."), ("2", "B.")]


def test_the_same_query_in_two_files_is_two_traces(tmp_path: Path) -> None:
    """Queries are numbered from 0 in each file: one of two systems is not the other's conflicting copy."""
    other = {**RESULT, "response": "B [2]."}
    found = {row["trace_id"] for row in rows(load(tmp_path, *(json.dumps({"results": [r]}) for r in (RESULT, other))))}
    assert len(found) == 2
    assert all(trace_id.startswith("0-") for trace_id in found)


def test_files_that_are_none(tmp_path: Path) -> None:
    assert "damaged or was cut off" in complaint(lambda: load(tmp_path, '{"results": [{"query_id"'))
    assert "holds no list `results`" in complaint(lambda: load(tmp_path, "{}"))


def test_a_result_that_is_none(tmp_path: Path) -> None:
    batch = load(tmp_path, json.dumps({"results": [None, {**RESULT, "response": None}, RESULT]}))
    assert [r.reason for r in batch.rejects] == ["wrong_type", "no_answer"]
    assert batch.table.num_rows == 1
