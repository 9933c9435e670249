"""95% intervals of the nightly numbers, over questions (docs/methods.md#noise-and-confidence). SQL computes the sums.

Each function returns a table that `nightly_*.sql` joins by the names of the numbers. The order of rows does not matter.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.config import scale
from tasks.core.grades import RANGES
from tasks.core.schemas import F64, S
from tasks.stats.intervals import Ints, Numbers, intervals, means, total
from tasks.stats.jackknife import macro, share_of_repeats
from tasks.store.query import Queries, Relation

KEY = ("date", "app", "generator")
NAMES = [(name, S) for name in ("app", "generator", "number")]
SCHEMA = pa.schema([("date", pa.date32()), *NAMES, ("low", F64), ("high", F64)])
OF_SOURCES = SCHEMA.insert(3, pa.field("source", S))
AT_ONCE = 1_000_000
COUNTS = ("true_positives", "false_positives", "false_negatives")
# Precision, recall and F1: numerator and denominator as multiples of the three counts.
QUOTIENTS = {
    "precision": ((1, 0, 0), (1, 1, 0)),
    "recall": ((1, 0, 0), (1, 0, 1)),
    "f1": ((2, 0, 0), (2, 1, 1)),
}


def of_scores(queries: Queries, scores: Relation) -> pa.Table:
    """Intervals of the nightly means and of the shares of diagnoses.

    Args:
        scores: `trace_scores` of one recipe and day.
    """
    return of_means(queries.run("sums/question_sums", {"trace_scores": scores}), scale)


def of_shares(queries: Queries, scores: Relation, shown: pa.Table, names: Sequence[str], *, judged: bool) -> pa.Table:
    """Intervals of the shares of claims with a failure pattern or in a slice.

    Args:
        scores: `trace_scores` of one recipe and day.
        shown: Rows of `sql/sums/shown_patterns.sql` or `sql/sums/shown_slices.sql` for the same.
        names: The patterns that the recipe looks for, or the names in `shown`.
        judged: Whether the shares are of judged claims or of all claims.
    """
    relations = {"trace_scores": scores, "shown": shown}
    return of_means(queries.run("sums/share_sums", relations, {"names": list(names), "judged": judged}))


def of_slices(queries: Queries, shown: pa.Table, most: float) -> pa.Table:
    """Intervals of the mean scores of slices.

    Args:
        shown: Rows of `sql/sums/shown_slices.sql`.
        most: The largest possible score.
    """
    return of_means(queries.run("sums/slice_sums", {"shown": shown}), lambda _: (0.0, most))


def of_waterfall(queries: Queries, scores: Relation, reviewed: pa.Table) -> pa.Table:
    """Intervals of the waterfall's shares and of its shares of wrong answers.

    Args:
        scores: `trace_scores` of one recipe and day.
        reviewed: Rows of `sql/sums/reviewed_traces.sql` for the recipe.
    """
    return of_means(queries.run("sums/waterfall_sums", {"trace_scores": scores, "reviewed_traces": reviewed}))


def of_grades(queries: Queries, scores: Relation, grades: Relation) -> pa.Table:
    """Intervals of the six grades.

    Args:
        scores: `trace_scores` of one recipe and day.
        grades: Grades of that day by the recipe's grader.
    """
    return of_means(queries.run("sums/grade_sums", {"trace_scores": scores, "grades": grades}), lambda g: RANGES[g])


def of_repeats(questions: pa.Table) -> pa.Table:
    """Intervals of mean, spread, range and share of the variance for each number, such as `faithfulness_spread`.

    Args:
        questions: Rows of `sql/sums/repeated_questions.sql`.
    """
    rows = questions.filter(pc.fill_null(questions["varied"], False))
    keys, of = _groups(rows, [*KEY, "number"])
    n, mean, variance, reach = (_numbers(rows[c]) for c in ("n_scored", "mean", "variance", "reach"))
    most = np.array([scale(number)[1] for number in keys["number"].to_pylist()])
    # The two ends of the scale have the largest standard deviation of any two or more values.
    parts = {"mean": (mean, most), "spread": (np.sqrt(variance), most / math.sqrt(2)), "range": (reach, most)}
    ends = {
        w: intervals(means(values, np.ones_like(n), of, None, keys.num_rows), 0.0, end)
        for w, (values, end) in parts.items()
    }
    ends["share_repeats"] = share_of_repeats(n, mean, variance, of, keys.num_rows)
    named = {w: pc.binary_join_element_wise(keys["number"], w, "_") for w in ends}
    return pa.concat_tables([_table(keys, named[w], *ends[w]) for w in ends])


def of_sessions(sessions: pa.Table) -> pa.Table:
    """Intervals of the shares of ungrounded and of misused sessions. Sessions take the place of questions.

    Args:
        sessions: Rows of `sql/sums/sessions.sql`.
    """
    rows = sessions.filter(pc.equal(sessions["status"], "scored"))
    keys, of = _groups(rows, KEY)
    ones = np.ones(rows.num_rows)
    return pa.concat_tables(
        [
            _table(keys, name, *intervals(means(_numbers(rows[name]), ones, of, None, keys.num_rows)))
            for name in ("ungrounded", "misused")
        ]
    )


def of_grace(sums: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Intervals of accuracy, precision, recall and F1 for a night, such as `recall_macro`, and for each source.

    Args:
        sums: Rows of `sql/sums/grace_sums.sql`.
    """
    nights, night = _groups(sums, KEY)
    _, question = _groups(sums, [*KEY, "question"])
    whole = sums["source"].is_null().to_numpy()
    answers, each = sums.filter(pa.array(whole)), sums.filter(pa.array(~whole))
    order = np.argsort(question[whole])
    of, sizes, hits = night[whole][order], *(_numbers(answers[c])[order] for c in ("support", "true_positives"))
    by_source, source = _groups(each, [*KEY, "source"])
    question, night = question[~whole], night[~whole]
    support, counts = _numbers(each["support"]), np.array([_numbers(each[c]) for c in COUNTS])
    found = [_table(nights, "accuracy", *intervals(means(hits, sizes, of, None, nights.num_rows)))]
    sources = []
    for number, (by_above, by_below) in QUOTIENTS.items():
        above, below = np.array(by_above) @ counts, np.array(by_below) @ counts
        sources.append(_table(by_source, number, *intervals(means(above, below, source, None, by_source.num_rows))))
        a, b = (total(x, question, len(of)) for x in (above, below))
        found.append(_table(nights, f"{number}_micro", *intervals(means(a, b, of, None, nights.num_rows))))
        ends = []
        for i in range(nights.num_rows):
            rows, own = night == i, np.flatnonzero(of == i)
            at = np.searchsorted(own, question[rows])
            ends.append(intervals(macro(above[rows], below[rows], support[rows], source[rows], at, sizes[own])))
        low, high = np.array(ends).reshape(-1, 2).T
        found.append(_table(nights, f"{number}_macro", low, high))
    return pa.concat_tables(found), pa.concat_tables(sources)


def of_means(sums: pa.Table, scale: Callable[[str], tuple[float, float]] = lambda _: (0.0, 1.0)) -> pa.Table:
    """Intervals of means and shares.

    Args:
        sums: One row for each, with its `number` and three lists: for its questions, `total` and `n`, and in
            `questions` the number of questions with these values.
        scale: Returns the ends of a number's scale.
    """
    found = [SCHEMA.empty_table()]
    for rows in _batches(sums):
        of = pc.list_parent_indices(rows["n"]).to_numpy().astype(np.int64)
        totals, n, times = (_numbers(pc.list_flatten(rows[c])) for c in ("total", "n", "questions"))
        least, most = np.array([scale(number) for number in rows["number"].to_pylist()]).T
        ends = intervals(means(totals, n, of, times, rows.num_rows), least, most)
        found.append(_table(rows.select([*KEY]), rows["number"], *ends))
    return pa.concat_tables(found)


def _batches(sums: pa.Table) -> Iterator[pa.Table]:
    """Slices of about `AT_ONCE` questions, to limit memory. A row is never split."""
    place = pc.list_value_length(sums["n"]).to_numpy().cumsum() // AT_ONCE
    for at in np.unique(place):
        rows = np.flatnonzero(place == at)
        yield sums.slice(int(rows[0]), len(rows)).combine_chunks()


def _groups(rows: pa.Table, names: Sequence[str]) -> tuple[pa.Table, Ints]:
    """The distinct combinations of values in these columns, and the index of each row's combination (n,)."""
    code = np.zeros(rows.num_rows, np.int64)
    for name in names:
        values = pc.dictionary_encode(rows[name].combine_chunks())
        code = code * (len(values.dictionary) + 1) + values.indices.to_numpy()
        code = np.unique(code, return_inverse=True)[1]
    _, first = np.unique(code, return_index=True)
    return rows.select(list(names)).take(pa.array(first)), code


def _numbers(column: pa.ChunkedArray) -> Numbers:
    values: Numbers = column.to_numpy().astype(np.float64)
    return values


def _table(keys: pa.Table, number: "str | pa.ChunkedArray", low: Numbers, high: Numbers) -> pa.Table:
    """Rows of the numbers with an interval. Ends have 6 digits, which the order of additions does not affect."""
    named = pa.repeat(number, keys.num_rows) if isinstance(number, str) else number
    ends = {name: pa.array(np.round(np.round(x, 12), 6)) for name, x in (("low", low), ("high", high))}
    columns = {**{n: keys[n] for n in keys.column_names}, "number": named, **ends}
    schema = OF_SOURCES if "source" in columns else SCHEMA
    return pa.table({n: columns[n] for n in schema.names}).cast(schema).filter(pa.array(~np.isnan(low)))
