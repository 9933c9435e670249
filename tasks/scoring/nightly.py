"""Nightly tables: aggregates the scores of a day in SQL and adds intervals.

A night is computed again when the parts it was computed from, and so its `inputs` token, have changed.
"""

from collections.abc import Iterator, Sequence
from datetime import date

import polars as pl
import pyarrow as pa

from tasks.core import keys
from tasks.core.progress import tracked
from tasks.core.schemas import (
    CLAIM_RESULTS,
    CURRENT_RECIPES,
    NIGHTLY_CITATIONS,
    NIGHTLY_GRADES,
    NIGHTLY_GROUNDEDNESS,
    NIGHTLY_PATTERNS,
    NIGHTLY_RELEVANCE,
    NIGHTLY_REPEATS,
    NIGHTLY_SESSIONS,
    NIGHTLY_SLICES,
    NIGHTLY_TRIAD,
    NIGHTLY_UTILIZATION,
    TRACE_SCORES,
    Table,
)
from tasks.judging.grades import grades_of
from tasks.run.context import Context
from tasks.run.plan import trace_parts, unusable_notes
from tasks.run.result import StageResult
from tasks.scoring.intervals import of_grades, of_repeats, of_scores, of_sessions, of_shares, of_slices
from tasks.scoring.score import all_scored
from tasks.store.lake import Part, conform, empty
from tasks.store.query import Queries, Relation

MOST = {"most_values": 20, "most_tags": 10}  # values of a slice, and tags, that are listed for each application
# Method `citations` records no deciding chunks, so it has no numbers about chunks.
CITATION_NIGHTLY = (NIGHTLY_CITATIONS, NIGHTLY_RELEVANCE, NIGHTLY_PATTERNS, NIGHTLY_SLICES, NIGHTLY_REPEATS)
NIGHTLY = (
    NIGHTLY_GROUNDEDNESS,
    NIGHTLY_UTILIZATION,
    NIGHTLY_RELEVANCE,
    NIGHTLY_TRIAD,
    NIGHTLY_PATTERNS,
    NIGHTLY_SLICES,
    NIGHTLY_REPEATS,
    NIGHTLY_SESSIONS,
)


def aggregate_nights(ctx: Context) -> StageResult:
    """Compute the nightly tables of the run's days; returns nights computed and reused. Notes days without traces."""
    ctx.gates.write_results(f"{ctx.first}..{ctx.last}")  # once, with the results of all recipes
    computed = reused = 0
    days = sorted({p.date for p in trace_parts(ctx)})
    with tracked(ctx.progress, "nightly", len(days)), ctx.queries() as queries:
        for day in days:
            scores, grades = _inputs(ctx, day)
            token = _token(scores, grades)
            if _aggregated(ctx, day, token):
                reused += 1
            else:
                for table, rows in _night(ctx, queries, day, scores, grades):
                    ctx.lake.write(table, "night", rows, ctx.recipe, str(day), inputs=token)
                computed += 1
            if ctx.counts:
                _mark_current(ctx, day, scores)
            ctx.progress.advance()
    missing = [d for d in ctx.requested_days() if d not in days]
    shown = f"{', '.join(map(str, missing[:5]))}{', …' if len(missing) > 5 else ''}"
    notes = (f"No traces of {shown}: check that the logs arrived.",) if missing else ()
    return StageResult("nightly", computed=computed, reused=reused, notes=(*notes, *unusable_notes(ctx)))


def complete(ctx: Context, day: date) -> bool:
    """Whether a day's planned traces are all scored, and its nightly tables are up to date."""
    return all_scored(ctx, day) and _aggregated(ctx, day, _token(*_inputs(ctx, day)))


def nightly_tables(ctx: Context) -> tuple[Table, ...]:
    """The nightly tables that the recipe's method and grader fill."""
    tables = CITATION_NIGHTLY if ctx.settings.method == "citations" else NIGHTLY
    return (*tables, NIGHTLY_GRADES) if ctx.grader else tables


def _inputs(ctx: Context, day: date) -> tuple[list[Part], list[Part]]:
    """A day's parts of `trace_scores` and of `grades`."""
    grades = (grades_of(ctx, part) for part in trace_parts(ctx) if part.date == day)
    return ctx.lake.parts(TRACE_SCORES, ctx.recipe, str(day)), [part for part in grades if part]


def _token(scores: Sequence[Part], grades: Sequence[Part]) -> str:
    return keys.version([*([p.name, p.inputs()] for p in scores), *([p.name, p.rows(), p.inputs()] for p in grades)])


def _aggregated(ctx: Context, day: date, token: str) -> bool:
    return ctx.lake.has(nightly_tables(ctx), "night", ctx.recipe, str(day), inputs=token)


def _night(
    ctx: Context, queries: Queries, day: date, scores: Sequence[Part], grades: Sequence[Part]
) -> Iterator[tuple[Table, pa.Table]]:
    """The rows of a day's nightly tables."""
    results = ctx.lake.parts(CLAIM_RESULTS, ctx.recipe, str(day))
    means = of_scores(queries, scores)
    for table in nightly_tables(ctx):
        relations: dict[str, Relation] = {"trace_scores": scores, "intervals": means}
        params: dict[str, object] = {}
        if table is NIGHTLY_PATTERNS:
            shown = queries.run("sums/shown_patterns", {"trace_scores": scores, "claim_results": results})
            names = list(ctx.settings.patterns)
            relations |= {"shown": shown, "intervals": of_shares(queries, scores, shown, names, judged=True)}
            params = {"names": names}
        elif table is NIGHTLY_SLICES:
            made_of = {
                "trace_scores": scores,
                "claim_results": results,
                "traces": [part for part in trace_parts(ctx) if part.date == day],
            }
            shown = queries.run("sums/shown_slices", made_of, MOST)
            names = sorted(pl.DataFrame(shown)["name"].unique())
            shares = of_shares(queries, scores, shown, names, judged=False)
            most = 1.0 if ctx.settings.method == "citations" else 100.0
            relations |= {"shown": shown, "shares": shares, "scores": of_slices(queries, shown, most)}
        elif table is NIGHTLY_REPEATS:
            questions = queries.run("sums/repeated_questions", {"trace_scores": scores})
            relations = {"repeated_questions": questions, "intervals": of_repeats(questions)}
        elif table is NIGHTLY_SESSIONS:
            sessions = queries.run("sums/sessions", {"trace_scores": scores})
            relations = {"sessions": sessions, "intervals": of_sessions(sessions)}
        elif table is NIGHTLY_GRADES:
            relations |= {"grades": grades, "intervals": of_grades(queries, scores, grades)}
            params = {"grader_version": ctx.grader and ctx.grader.version}
        yield table, queries.run(f"nightly/{table.name}", relations, params)


def _mark_current(ctx: Context, day: date, scores: Sequence[Part]) -> None:
    """Record that this recipe counts for the night, in place of another recipe of the same name.

    Only the applications in the context's scope are recorded: a backfill may have scored more of them.
    """
    table, name = CURRENT_RECIPES, ctx.settings.name
    apps = sorted({app for part in scores for app in pl.DataFrame(part.read(["app"]))["app"].unique()})
    mine = [
        {"date": day, "recipe_name": name, "app": app, "recipe": ctx.recipe, "judge_version": ctx.judge_version}
        for app in apps
        if ctx.scope.takes(app)
    ]
    existing = ctx.lake.find(table, "night", str(day))
    before = pl.DataFrame(conform(existing.read() if existing else empty(table), table))
    now = pl.DataFrame(mine, schema=before.schema)
    key = ["recipe_name", "app"]
    current = pl.concat([before.join(now, on=key, how="anti"), now]).sort(key)
    if not current.equals(before.sort(key)):
        ctx.lake.write(table, "night", conform(current.to_arrow(), table), str(day))
