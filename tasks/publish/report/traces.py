"""Read traces for their pages in batches, with a fixed number of queries per batch."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import islice

from tasks.publish.report.reader import Reader, select
from tasks.publish.report.views import Row, Trace, trace

BATCH = 100  # traces per batch


def load(reader: Reader, recipe: Row, night: date, trace_ids: Sequence[str]) -> Iterator[Trace]:
    """Yield views of the given traces in order; traces missing from the tables are skipped.

    Args:
        recipe: The recipe's row, see `recipe_row`.
    """
    ids = iter(trace_ids)
    while batch := list(islice(ids, BATCH)):
        yield from _batch(reader, recipe, night, batch)


def _batch(reader: Reader, recipe: Row, night: date, batch: list[str]) -> Iterator[Trace]:
    scope: dict[str, object] = {"night": night, "trace_ids": batch}
    name, extractor, judges, scorers = (
        recipe[k] for k in ("recipe", "extractor_version", "judge_versions", "scorer_versions")
    )
    rows = {r["trace_id"]: r for r in select(reader, "traces/scores", recipe=name, **scope)}
    claims = _by("trace_id", select(reader, "traces/claims", recipe=name, extractor_version=extractor, **scope))
    pairs = _by("claim_id", select(reader, "traces/pairs", recipe=name, judge_versions=judges, **scope))
    relevance = _by("trace_id", select(reader, "traces/relevance", scorer_versions=scorers or [], **scope))
    grader = recipe["grader_version"]
    own = {"grader_version": grader, "extractor_version": extractor}
    grades = _by("trace_id", select(reader, "traces/grades", **own, **scope) if grader else [])
    for trace_id in batch:
        if trace_id in rows:
            yield trace(rows[trace_id], claims[trace_id], pairs, relevance[trace_id], grades[trace_id])


def _by(name: str, rows: Iterable[Row]) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[name]].append(row)
    return found
