"""Reads traces for their pages, a batch at a time: a few queries a batch, whatever its size."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import islice
from typing import Any

from tasks.publish.report.reader import Reader, select
from tasks.publish.report.views import Row, Trace, trace

BATCH = 100  # traces held at a time


def load(reader: Reader, recipe: Row, night: date, trace_ids: Sequence[str]) -> Iterator[Trace]:
    """Views of the given traces, in their order; those that the tables lack are left out.

    Args:
        recipe: Its row of `recipe`.
    """
    ids = iter(trace_ids)
    while batch := list(islice(ids, BATCH)):
        yield from _batch(reader, recipe, night, batch)


def _batch(reader: Reader, recipe: Row, night: date, batch: list[str]) -> Iterator[Trace]:
    scope: dict[str, object] = {"night": night, "trace_ids": batch}
    name, extractor, judges, scorers = (
        recipe[k] for k in ("recipe", "extractor_version", "judge_versions", "scorer_versions")
    )
    rows = {r["trace_id"]: r for r in select(reader, "page_traces", recipe=name, **scope)}
    claims: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in select(reader, "page_claims", recipe=name, extractor_version=extractor, **scope):
        claims[row["trace_id"]].append(row)
    looks: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in select(reader, "page_pairs", recipe=name, judge_versions=judges, **scope):
        looks[row["claim_id"]].append(row)
    relevance: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in select(reader, "page_relevance", scorer_versions=scorers or [], **scope):
        relevance[row["trace_id"]].append(row)
    grades: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    if grader := recipe["grader_version"]:
        for row in select(reader, "page_grades", grader_version=grader, extractor_version=extractor, **scope):
            grades[row["trace_id"]].append(row)
    for trace_id in batch:
        if trace_id in rows:
            yield trace(rows[trace_id], claims[trace_id], looks, relevance[trace_id], grades[trace_id])
