"""Great Expectations validates the frames of a run; its results and their pages are kept.

It takes milliseconds per expectation, whatever the number of rows, and seconds to import. So it runs once per suite, on
the frames of all parts together, and is imported when there is something to validate. Its configuration lives in
memory: nothing that an interrupted run leaves behind can stop the next one from starting.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors

from tasks.gates.results import KEPT_RUNS, prune, write_pages
from tasks.gates.rules import Rule

SAMPLES = 20  # values per expectation that stay in a stored result


def expectations(rules: Sequence[Rule]) -> list[Any]:
    """The expectations of some rules, in order."""
    gxe = _great_expectations().expectations
    return [
        getattr(gxe, rule.expectation)(
            **rule.options,
            meta={"reason": rule.reason, "position": position},
            description=f"{rule.note} ({rule.limit}; reason: {rule.reason})",
        )
        for position, rule in enumerate(rules)
    ]


class Validator:
    """Validates, and keeps the results (`results/`, JSON and pages) and their list (`index.html`) in a directory.

    Args:
        directory: Where they are kept.
        suites: Rules by suite name.
        kept_runs: Results of each suite that stay.
    """

    def __init__(self, directory: Path, suites: Mapping[str, Sequence[Rule]], kept_runs: int = KEPT_RUNS) -> None:
        self._directory, self._kept_runs = directory, kept_runs
        gx = _great_expectations()
        from great_expectations.data_context.types import base  # noqa: PLC0415 - takes seconds

        config = base.DataContextConfig(
            store_backend_defaults=base.InMemoryStoreBackendDefaults(),
            progress_bars=base.ProgressBarsConfig(globally=False, metric_calculations=False),
            analytics_enabled=False,
        )
        config.stores["validation_results_store"]["store_backend"] = {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": str((directory / "results").absolute()),
            "suppress_store_backend_id": True,
        }
        config.data_docs_sites.clear()  # they would load scripts from the network
        self._context = context = gx.get_context(mode="ephemeral", project_config=config)
        for name, rules in suites.items():
            context.suites.add(gx.ExpectationSuite(name, expectations=expectations(rules)))
        asset = context.data_sources.add_pandas("leadline").add_dataframe_asset("table")
        self._batches = asset.add_batch_definition_whole_dataframe("whole")

    def validate(self, suite: str, frame: pl.DataFrame, result_format: str = "BASIC") -> Any:  # noqa: ANN401
        """An `ExpectationSuiteValidationResult`; its `results` are in the order of the suite's rules.

        Raises:
            RuntimeError: An expectation could not be evaluated.
        """
        level = {
            "result_format": result_format,
            "partial_unexpected_count": SAMPLES,
            "return_unexpected_index_query": False,
        }
        # Any other type of number is checked row by row in Python.
        frame = frame.cast({selectors.integer(): pl.Int64, selectors.float(): pl.Float64})
        batch = self._batches.get_batch({"dataframe": frame.to_pandas()})
        result = batch.validate(self._context.suites.get(suite), result_format=level)
        result.results.sort(key=lambda one: one.expectation_config.meta["position"])
        for one in result.results:
            if one.exception_info.get("raised_exception", True):
                reason = one.expectation_config.meta["reason"]
                raise RuntimeError(f"{reason} could not be checked: {one.exception_info}")
        return result

    def store(self, results: Mapping[str, Any], run_name: str) -> None:
        """Store a result per suite, drop the oldest results, and bring the pages up to date."""
        gx = _great_expectations()
        from great_expectations.data_context.types import resource_identifiers as ids  # noqa: PLC0415 - takes seconds

        for suite, result in results.items():
            run = gx.RunIdentifier(run_name=run_name, run_time=datetime.now(UTC))
            result.meta |= {"run_id": run, "validation_time": run.run_time, "batch_kwargs": {"data_asset_name": suite}}
            name = ids.ExpectationSuiteIdentifier(name=suite)
            key = ids.ValidationResultIdentifier(batch_identifier=suite, expectation_suite_identifier=name, run_id=run)
            self._context.validation_results_store.store_validation_results(result, key, name)
        write_pages(self._directory, prune(self._directory / "results", self._kept_runs))


def merged(left: Any, right: Any) -> Any:  # noqa: ANN401 - ExpectationSuiteValidationResult
    """`left` with the counts of `right` added: the same suite on more rows."""
    for a, b in zip(left.results, right.results, strict=True):
        mine, other = a.result, b.result
        for count in ("element_count", "unexpected_count", "missing_count"):
            if count in mine:
                mine[count] += other[count]
        n, bad = mine["element_count"], mine["unexpected_count"]
        nonmissing = n - mine.get("missing_count", 0)
        mine["unexpected_percent"] = mine["unexpected_percent_nonmissing"] = 100 * bad / (nonmissing or 1)
        mine["unexpected_percent_total"] = 100 * bad / (n or 1)
        mine["missing_percent"] = 100 * (n - nonmissing) / (n or 1)
        samples = mine.get("partial_unexpected_list", []) + other.get("partial_unexpected_list", [])
        mine["partial_unexpected_list"] = samples[:SAMPLES]
        a.success = a.success and b.success
    good = sum(bool(r.success) for r in left.results)
    left.success = good == len(left.results)
    left.statistics |= {
        "successful_expectations": good,
        "unsuccessful_expectations": len(left.results) - good,
        "success_percent": 100 * good / len(left.results),
    }
    return left


def _great_expectations() -> Any:  # noqa: ANN401 - the module, untyped here
    import great_expectations as gx  # noqa: PLC0415 - takes seconds
    import great_expectations.expectations  # noqa: PLC0415 - takes seconds

    return gx
