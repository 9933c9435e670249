"""Runs rules with Great Expectations and keeps what it found as Data Docs.

Two passes: the first counts (and samples up to 20 values) per expectation, which is all that is stored; only where it
finds something, a second one asks the broken expectations for every row. One run's results on many small tables
are stored as one result per suite, so that docs cost the same whatever the number of tables.

Great Expectations takes seconds to import, so it is imported when the first table is checked. Its configuration
lives in memory: nothing that an interrupted run may leave behind can stop the next one from starting.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from tasks.gates.docs import prune, write_index
from tasks.gates.rules import Rule

SAMPLES = 20  # values per expectation that stay in a stored result


@dataclass(frozen=True, slots=True)
class Broken:
    """Row `row` of the checked table (its position, from 0) breaks `rule`, and no earlier one."""

    row: int
    rule: Rule


@dataclass(slots=True)
class Engine:
    """Great Expectations over one directory.

    Attributes:
        directory: Where results (`results/`), Data Docs (`docs/`) and their list (`index.html`) are kept.
        suites: Rules by suite name.
    """

    directory: Path
    suites: Mapping[str, Sequence[Rule]]
    _context: Any = None
    _batches: Any = None
    _pending: dict[tuple[str, str], Any] = field(default_factory=dict)

    @property
    def index(self) -> Path:
        """The first page: a list of what was checked, with links into the Data Docs."""
        return self.directory / "index.html"

    def broken(self, suite: str, table: pa.Table, run_name: str) -> list[Broken]:
        """The rows of `table` that break a rule of `suite`, in row order, each with the first rule that it breaks.

        Raises:
            RuntimeError: An expectation could not be evaluated.
        """
        if table.num_rows == 0:
            return []
        gx = self._open()
        rules = self.suites[suite]
        seen = list(dict.fromkeys(column for rule in rules for column in rule.columns))
        batch = self._batches.get_batch({"dataframe": table.select(seen).to_pandas()})
        result = batch.validate(self._context.suites.get(suite), result_format=_format("BASIC"))
        _check_ran(result)
        self._remember(suite, run_name, result)
        failed = sorted(_position(r) for r in result.results if not r.success)
        if not failed:
            return []
        again = gx.ExpectationSuite(f"{suite}_rows", expectations=[_expectation(rules[i], i) for i in failed])
        rows = batch.validate(again, result_format=_format("COMPLETE"))
        _check_ran(rows)
        first: dict[int, Rule] = {}
        for found in sorted(rows.results, key=_position):
            for row in found.result["unexpected_index_list"]:
                first.setdefault(int(row), rules[_position(found)])
        return [Broken(row, first[row]) for row in sorted(first)]

    def write_docs(self) -> Path:
        """Store what was found since the last call, drop the oldest results, and bring Data Docs up to date.

        Returns:
            The first page. It exists once a table has been checked in this directory.
        """
        if not self._pending:
            return self.index
        import great_expectations as gx  # noqa: PLC0415 - takes seconds
        from great_expectations.data_context.types import resource_identifiers as ids  # noqa: PLC0415

        context = self._context
        new = []
        for (suite, run_name), result in self._pending.items():
            run = gx.RunIdentifier(run_name=run_name, run_time=datetime.now(UTC))
            result.meta |= {"run_id": run, "validation_time": run.run_time, "batch_kwargs": {"data_asset_name": suite}}
            name = ids.ExpectationSuiteIdentifier(name=suite)
            key = ids.ValidationResultIdentifier(batch_identifier=suite, expectation_suite_identifier=name, run_id=run)
            context.validation_results_store.store_validation_results(result, key, name)
            new += [name, key]
        self._pending.clear()
        kept = prune(self.directory / "results")
        # Pages that stand already are not rendered again; the site forgets those whose result is gone.
        standing = (self.directory / "docs" / "index.html").exists()
        context.build_data_docs(resource_identifiers=new if standing else None)
        write_index(self.index, kept)
        return self.index

    def _open(self) -> Any:  # noqa: ANN401 - the module, untyped here
        os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read when the module is imported
        import great_expectations as gx  # noqa: PLC0415 - takes seconds
        from great_expectations.data_context.types import base  # noqa: PLC0415

        if self._context is None:
            config = base.DataContextConfig(
                store_backend_defaults=base.InMemoryStoreBackendDefaults(),
                progress_bars=base.ProgressBarsConfig(globally=False, metric_calculations=False),
                analytics_enabled=False,
            )
            config.stores["validation_results_store"]["store_backend"] = _files(self.directory / "results")
            config.data_docs_sites["leadline"] = {
                "class_name": "SiteBuilder",
                "store_backend": _files(self.directory / "docs"),
                "show_how_to_buttons": False,
            }
            context = gx.get_context(mode="ephemeral", project_config=config)
            for name, rules in self.suites.items():
                expectations = [_expectation(rule, i) for i, rule in enumerate(rules)]
                context.suites.add(gx.ExpectationSuite(name, expectations=expectations))
            asset = context.data_sources.add_pandas("leadline").add_dataframe_asset("table")
            self._batches = asset.add_batch_definition_whole_dataframe("whole")
            self._context = context
        return gx

    def _remember(self, suite: str, run_name: str, result: Any) -> None:  # noqa: ANN401
        key = (suite, run_name)
        self._pending[key] = _merged(self._pending[key], result) if key in self._pending else result


def _files(directory: Path) -> dict[str, object]:
    return {
        "class_name": "TupleFilesystemStoreBackend",
        "base_directory": str(directory.absolute()),
        "suppress_store_backend_id": True,
    }


def _format(level: str) -> dict[str, object]:
    return {"result_format": level, "partial_unexpected_count": SAMPLES, "return_unexpected_index_query": False}


def _expectation(rule: Rule, position: int) -> Any:  # noqa: ANN401 - an Expectation
    import great_expectations.expectations as gxe  # noqa: PLC0415 - takes seconds

    meta = {"reason": rule.reason, "position": position}
    description = f"{rule.note} ({rule.limit}; reason: {rule.reason})"
    return getattr(gxe, rule.expectation)(**rule.options, meta=meta, description=description)


def _position(result: Any) -> int:  # noqa: ANN401 - an ExpectationValidationResult
    return int(result.expectation_config.meta["position"])


def _check_ran(result: Any) -> None:  # noqa: ANN401 - an ExpectationSuiteValidationResult
    for one in result.results:
        if one.exception_info.get("raised_exception", True):
            raise RuntimeError(f"{one.expectation_config.meta['reason']} could not be checked: {one.exception_info}")


def _merged(left: Any, right: Any) -> Any:  # noqa: ANN401 - ExpectationSuiteValidationResult
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
