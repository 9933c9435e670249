"""Hand-written DuckDB queries over the Parquet files of a lake, as an alternative to the nightly tables."""

from pathlib import Path

SCORES = ("groundedness_score", "faithfulness", "utilization", "answer_relevance", "context_relevance")
_MEAN = "avg({0}), stddev_samp({0}), count({0}), quantile_cont({0}, [0.05, 0.25, 0.5, 0.75, 0.95])"
_QUESTION = "coalesce(question_id, trace_id)"
_CLAIMS = (
    "count(*) AS n, count(label) AS judged, count(*) FILTER (label = 'supported') AS supported, "
    "count(*) FILTER (misused) AS misused"
)


def scores(lake: Path, by: str = "app, generator") -> None:
    """Means and percentiles of the scores."""
    _run(lake, f"SELECT {by}, count(*), {', '.join(map(_MEAN.format, SCORES))} FROM scores GROUP BY {by}")


def claims(lake: Path, by: str = "app, generator") -> None:
    """Labels of claims, joined to their traces."""
    _run(lake, f"SELECT {by}, label, count(*) FROM claims JOIN scores USING (trace_id) GROUP BY ALL")


def tables(lake: Path, by: str = "app, generator") -> None:
    """The numbers of all nightly tables, one query per table, with standard errors over questions for intervals."""
    numbers = {name: (f"count({name})", f"sum({name})") for name in (*SCORES, "answerability")}
    numbers |= {"misused": ("sum(claims_judged)", "sum(claims_misused)")}
    numbers |= {"to_check": ("sum(claims_supported)", "sum(claims_to_check)")}
    each = ", ".join(f"{n}::DOUBLE AS {name}_n, {total}::DOUBLE AS {name}" for name, (n, total) in numbers.items())
    errors = ", ".join(
        f"sum({x}) / sum({x}_n), sqrt(sum({x} ** 2) - 2 * sum({x}) / sum({x}_n) * sum({x} * {x}_n) "
        f"+ (sum({x}) / sum({x}_n)) ** 2 * sum({x}_n ** 2)) / sum({x}_n)"
        for x in numbers
    )
    repeats = ", ".join(f"avg({x}) AS {x}, stddev_samp({x}), max({x}) - min({x})" for x in SCORES[:2])
    scores(lake, by)
    _run(
        lake,
        f"SELECT {by}, {errors} FROM (SELECT {by}, {each} FROM scores GROUP BY {by}, {_QUESTION}) GROUP BY {by}",
        f"SELECT {by}, diagnosis, count(*) FROM scores GROUP BY ALL",
        f"SELECT {by}, waterfall, count(*) FROM scores GROUP BY ALL",
        f"SELECT {by}, pattern, count(*), count(label) FROM (SELECT trace_id, label, unnest(patterns) AS pattern "
        f"FROM claims) JOIN scores USING (trace_id) GROUP BY ALL",
        f"SELECT {by}, c.language, count(*), sum(n), sum(judged), sum(supported), sum(misused), "
        f"avg(groundedness_score) FROM (SELECT trace_id, language, {_CLAIMS} FROM claims GROUP BY ALL) AS c "
        f"JOIN scores USING (trace_id) GROUP BY ALL",
        f"SELECT {by}, prompt_version, count(*), sum(claims_total), sum(claims_supported), avg(groundedness_score) "
        f"FROM scores GROUP BY ALL",
        f"SELECT {by}, count(*), sum(n), avg(groundedness_score), avg(faithfulness) FROM (SELECT {by}, count(*) AS n, "
        f"{repeats} FROM scores GROUP BY {by}, {_QUESTION} HAVING count(*) > 1) GROUP BY {by}",
        f"SELECT {by}, count(*), avg(misused::INT) FROM (SELECT {by}, bool_or(claims_misused > 0) AS misused "
        f"FROM scores WHERE session_id IS NOT NULL GROUP BY {by}, session_id) GROUP BY {by}",
    )


def _run(lake: Path, *queries: str) -> None:
    import duckdb

    with duckdb.connect() as connection:
        files = "read_parquet('{}/{}/*/*/*.parquet')"
        connection.execute(f"CREATE VIEW scores AS FROM {files.format(lake, 'trace_scores')}")
        own = files.format(lake, "claim_results")
        connection.execute(f"CREATE VIEW claims AS SELECT * EXCLUDE (recipe, date, judge_version) FROM {own}")
        for query in queries:
            connection.execute(query).fetchall()
