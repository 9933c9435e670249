"""The numbers of the latest night and of the last completed run, as a file for node_exporter's textfile collector.

A missing number (N/A, or too few questions for an interval) is absent, never 0 or NaN. A failed run leaves the file
unchanged, so the age of `leadline_last_success_timestamp_seconds` reveals the failure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, write_to_textfile
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from tasks.core.errors import LeadlineError
from tasks.core.grades import GRADES
from tasks.store.query import sql
from tasks.store.warehouse import Warehouse

Row = Mapping[str, Any]
PREFIX = "leadline_"
LABELS = ("app", "generator", "judge", "judge_version")
NUMBERS = {
    "groundedness_score": "Mean groundedness of the latest night, 0 to 100.",
    "faithfulness_ratio": "Mean share of judged claims that are supported, on the latest night.",
    "misused_ratio": "Share of misused claims among the judged claims of the latest night.",
    "utilization_ratio": "Mean share of retrieved chunks that decide a supported claim, on the latest night.",
    "context_relevance": "Mean relevance of the best chunk to the question on the latest night, 0 to 1.",
    "answer_relevance": "Mean relevance of the answer to the question on the latest night, 0 to 1.",
    "answerability": "Mean answerability of the question from its chunks on the latest night, 0 to 1.",
    "citation_groundedness_ratio": "Mean share of segments found true on the latest night.",
    **{f"grade_{grade}": f"Mean grade {grade} of the latest night." for grade in GRADES},
}
ENDS = {"low": "Lower", "high": "Upper"}
STATUSES = {"scored": "n_scored", "na": "n_na", "unjudged": "n_unjudged", "abstained": "n_abstained"}


def write_metrics(warehouse: Warehouse, path: Path) -> None:
    """Write the latest numbers, replacing the file atomically.

    Args:
        warehouse: The warehouse, with the completed run loaded.

    Raises:
        LeadlineError: The file can't be written.
    """
    with warehouse.connect() as connection:
        found = connection.execute(sql("report/prometheus")).pl().to_dicts()
        runs = connection.execute(sql("report/last_run")).pl().to_dicts()
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families([*families(found), *run_families(runs)]))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_to_textfile(str(path), registry)
    except OSError as error:
        raise LeadlineError(
            f"{path}: the metrics can't be written ({error.strerror}). The night is complete and published; free space "
            "or grant access, then run again."
        ) from error


def families(rows: Sequence[Row]) -> Iterator[GaugeMetricFamily]:
    """The metrics of the latest night.

    Args:
        rows: Rows of `sql/report/prometheus.sql`.
    """
    for name, text in NUMBERS.items():
        mine = [row for row in rows if row["name"] == name]
        yield from _family(name, text, LABELS, ((row, (), row["mean"]) for row in mine))
        for end, which in ENDS.items():
            of = f"{which} end of the 95% interval of {PREFIX}{name}."
            yield from _family(f"{name}_{end}", of, LABELS, ((row, (), row[end]) for row in mine))
    main = [row for row in rows if row["main"]]
    traces = ((row, (status,), row[column]) for row in main for status, column in STATUSES.items())
    yield from _family("traces", "Traces of the latest night by status.", (*LABELS, "status"), traces)
    alerts = ((row, (), row["alerts"]) for row in main)
    yield from _family("alerts", "Alerts that fired on the latest night.", LABELS, alerts)
    began = ((row, (), datetime.combine(row["date"], time(), UTC).timestamp()) for row in rows[:1])  # of all the same
    yield from _family("night_timestamp_seconds", "Start of the latest night, UTC.", (), began)


def run_families(runs: Iterable[Row]) -> Iterator[GaugeMetricFamily]:
    """The metrics of the last completed run.

    Args:
        runs: Rows of `sql/report/last_run.sql`.
    """
    for run in runs:
        seconds = (run["ended_at"] - run["started_at"]).total_seconds()
        plain = {
            "last_success_timestamp_seconds": ("End of the last completed run.", run["ended_at"].timestamp()),
            "run_duration_seconds": ("Duration of the last completed run.", seconds),
            "run_traces": ("Traces that the last completed run ingested.", run["traces_ingested"]),
            "run_refused_rows": ("Rows that the last completed run refused.", run["rows_quarantined"]),
            "run_verdicts": ("Verdicts that the last completed run made.", run["verdicts_computed"]),
            "run_gpu_seconds": ("Seconds that the last completed run held GPUs.", run["gpu_seconds"]),
        }
        for name, (text, value) in plain.items():
            yield from _family(name, text, (), [(run, (), value)])
        tokens = [(run, (way,), run[f"tokens_{way}"]) for way in ("in", "out")]
        yield from _family(
            "run_tokens", "Tokens that models read and wrote in the last completed run.", ("direction",), tokens
        )


def _family(
    name: str, text: str, labels: Sequence[str], samples: Iterable[tuple[Row, tuple[str, ...], float | None]]
) -> Iterator[GaugeMetricFamily]:
    """Yield a metric; nothing if it has no values."""
    family = GaugeMetricFamily(PREFIX + name, text, labels=labels)
    for row, more, value in samples:
        if value is not None:
            own = [str(row[label] or "") for label in labels if label in LABELS]
            family.add_metric([*own, *more], value)
    if family.samples:
        yield family


class _Families(Collector):
    """What a registry collects."""

    def __init__(self, found: list[GaugeMetricFamily]) -> None:
        self._found = found

    def collect(self) -> list[GaugeMetricFamily]:
        """See `Collector`."""
        return self._found
