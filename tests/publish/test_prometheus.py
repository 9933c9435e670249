"""The file for Prometheus: names and labels as its conventions have them, and no number that does not exist."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tasks.core.errors import LeadlineError
from tasks.core.paths import sql_dir
from tasks.publish.prometheus import NUMBERS, families, run_families, write_metrics
from tasks.store.lake import Lake
from tasks.store.warehouse import Warehouse

NIGHT = date(2026, 11, 2)
ROW: dict[str, Any] = {
    "date": NIGHT, "app": 'a"b\n', "generator": "g", "judge": "nli", "judge_version": "9b41", "name": "groundedness_score",
    "main": True, "mean": 60.0, "low": None, "high": 80.5, "alerts": 0,
    "n_scored": 3, "n_na": 1, "n_unjudged": 0, "n_abstained": None,
}  # fmt: skip
RUN = {
    "started_at": datetime(2026, 11, 3, 2, 0, tzinfo=UTC), "ended_at": datetime(2026, 11, 3, 2, 1, 30, tzinfo=UTC),
    "rows_quarantined": 2, "traces_ingested": 5, "verdicts_computed": 9, "gpu_seconds": 0.0,
    "tokens_in": 700, "tokens_out": 0,
}  # fmt: skip


def test_what_does_not_exist_is_absent_and_a_counted_zero_is_not() -> None:
    other = {**ROW, "name": "faithfulness_ratio", "main": False, "mean": None, "high": None}
    found = {f.name: [(s.labels, s.value) for s in f.samples] for f in families([ROW, other])}
    own = {"app": 'a"b\n', "generator": "g", "judge": "nli", "judge_version": "9b41"}
    assert found == {
        "leadline_groundedness_score": [(own, 60.0)],
        "leadline_groundedness_score_high": [(own, 80.5)],
        "leadline_traces": [({**own, "status": s}, n) for s, n in (("scored", 3), ("na", 1), ("unjudged", 0))],
        "leadline_alerts": [(own, 0)],
        "leadline_night_timestamp_seconds": [({}, datetime(2026, 11, 2, tzinfo=UTC).timestamp())],
    }
    assert not list(families([]))


def test_the_last_run() -> None:
    found = {(f.name, *s.labels.values()): s.value for f in run_families([RUN]) for s in f.samples}
    assert found == {
        ("leadline_last_success_timestamp_seconds",): RUN["ended_at"].timestamp(),
        ("leadline_run_duration_seconds",): 90.0,
        ("leadline_run_traces",): 5,
        ("leadline_run_refused_rows",): 2,
        ("leadline_run_verdicts",): 9,
        ("leadline_run_gpu_seconds",): 0.0,
        ("leadline_run_tokens", "in"): 700,
        ("leadline_run_tokens", "out"): 0,
    }


def test_every_number_of_the_query_has_a_description() -> None:
    text = (sql_dir() / "report" / "prometheus.sql").read_text()
    for name in ("groundedness_score", "faithfulness_ratio", "misused_ratio", "utilization_ratio"):
        assert f"'{name}' AS name" in text
        assert name in NUMBERS


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    found = Warehouse(Lake(tmp_path / "lake"), tmp_path / "leadline.duckdb", "500MB")
    found.load()
    return found


def test_a_lake_without_nights_gives_an_empty_file(warehouse: Warehouse, tmp_path: Path) -> None:
    write_metrics(warehouse, tmp_path / "new" / "leadline.prom")
    assert list(text_string_to_metric_families((tmp_path / "new" / "leadline.prom").read_text())) == []
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["leadline.prom"]  # and no temporary one beside it


def test_a_place_that_can_not_be_written_is_named(warehouse: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "leadline.prom").mkdir()
    with pytest.raises(LeadlineError, match=r"leadline\.prom: the metrics can't be written .* complete and published"):
        write_metrics(warehouse, tmp_path / "leadline.prom")
