"""Scores: claim results and trace scores part by part, nightly tables day by day, all of them in SQL.

A part is computed again when what it was computed from has changed: its `inputs` token says what that was.
Results pass the gate before they are written; a trace whose rows fail it goes to quarantine.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core import keys
from tasks.core.errors import DataError
from tasks.core.progress import tracked
from tasks.core.schemas import (
    CLAIM_PATTERNS,
    CLAIM_RESULTS,
    CURRENT_RECIPES,
    JUDGES,
    NIGHTLY_CITATIONS,
    NIGHTLY_GRADES,
    NIGHTLY_GROUNDEDNESS,
    NIGHTLY_LANGUAGES,
    NIGHTLY_PATTERNS,
    NIGHTLY_RELEVANCE,
    NIGHTLY_REPEATS,
    NIGHTLY_TRIAD,
    NIGHTLY_UTILIZATION,
    QUARANTINE,
    RECIPES,
    TRACE_SCORES,
    Table,
)
from tasks.judging.grades import grades_on, night_of
from tasks.judging.known import all_verdicts, claim_results
from tasks.judging.pairs import claims_in, covered, has_claims, pair_parts, parts_of
from tasks.judging.relevance import relevance_of
from tasks.run import cascade
from tasks.run.context import Context
from tasks.run.identity import as_json
from tasks.run.plan import trace_parts, unusable_notes
from tasks.run.redacted import marked, with_redacted
from tasks.run.result import StageResult
from tasks.scoring.intervals import of_repeats, of_scores, of_shares
from tasks.scoring.patterns import find_patterns
from tasks.store.lake import Part, conform, from_rows
from tasks.store.query import Queries, Relation

RESULTS = (CLAIM_RESULTS, CLAIM_PATTERNS, TRACE_SCORES)  # made of a part of `traces`, in this order
# No chunk decides, so that nothing is said of chunks.
CITATION_NIGHTLY = (NIGHTLY_CITATIONS, NIGHTLY_RELEVANCE, NIGHTLY_PATTERNS, NIGHTLY_LANGUAGES, NIGHTLY_REPEATS)
NIGHTLY = (
    NIGHTLY_GROUNDEDNESS,
    NIGHTLY_UTILIZATION,
    NIGHTLY_RELEVANCE,
    NIGHTLY_TRIAD,
    NIGHTLY_PATTERNS,
    NIGHTLY_LANGUAGES,
    NIGHTLY_REPEATS,
)
TRACE_COLUMNS = [
    "date",
    "trace_id",
    "timestamp",
    "app",
    "environment",
    "generator",
    "prompt_version",
    "question",
    "answer",
    "chunks.list.element.chunk_id",
]


def score_traces(ctx: Context) -> StageResult:
    """Claim results and trace scores of the run's days; returns traces scored and reused.

    Raises:
        DataError: More traces than configured have results that break the rules of the tables.
    """
    _describe(ctx)
    computed = reused = refused = 0
    parts = [part for part in trace_parts(ctx) if has_claims(ctx, part)]
    with tracked(ctx.progress, "scores", len(parts)), ctx.queries() as queries:
        for part in parts:
            known, state = all_verdicts(ctx, queries, part, ctx.judges)
            planned = "+".join(p.inputs() or "" for member in ctx.judges for p in pair_parts(ctx, part, member))
            relevance = "+".join(f"{p.rows()}{p.inputs()}" for p in relevance_of(ctx, part))
            token = f"{state}:{planned}:{relevance}"
            existing = _results(ctx, part)
            if existing and all(made.inputs() == token for made in existing):
                reused += existing[-1].rows()
                earlier = ctx.lake.find(QUARANTINE, _refused_name(ctx, part))
                refused += earlier.rows() if earlier else 0
            else:
                scored, bad = _score(ctx, queries, part, known, token)
                computed += scored
                refused += bad
            ctx.progress.advance()
    limit = ctx.config.gates.max_quarantined_share
    total = computed + reused + refused
    if refused > limit * total:
        ctx.gates.write_docs(f"{ctx.first}..{ctx.last}")
        command = ctx.sql_command("FROM quarantine WHERE stage = 'results'")
        raise DataError(
            f"the results of {refused} of {total} traces break the rules of their tables, more than "
            f"gates.max_quarantined_share = {limit:.1%}. No nightly table or report was made of them. Read them with "
            f"{command} and report the judge or SQL that made them."
        )
    notes = (f"The results of {refused} traces were refused; see quarantine.",) if refused else ()
    return StageResult("scores", computed=computed, reused=reused, notes=notes)


def aggregate_nights(ctx: Context) -> StageResult:
    """The nightly tables of the run's days; returns nights computed and reused, and notes the days without traces."""
    ctx.gates.write_docs(f"{ctx.first}..{ctx.last}")  # once, with the results of all recipes
    computed = reused = 0
    days = sorted({p.date for p in trace_parts(ctx)})
    with tracked(ctx.progress, "nightly", len(days)), ctx.queries() as queries:
        for day in days:
            scores = ctx.lake.parts(TRACE_SCORES, ctx.recipe, str(day))
            grades = grades_on(ctx, day)
            token = _night_token(scores, grades)
            tables = nightly_tables(ctx)
            if _aggregated(ctx, day, token):
                reused += 1
            else:
                results = ctx.lake.parts(CLAIM_RESULTS, ctx.recipe, str(day))
                made = _night(ctx, queries, scores, results)
                for table in tables:
                    rows = night_of(ctx, queries, scores, grades) if table is NIGHTLY_GRADES else made(table)
                    ctx.lake.write(table, "night", rows, ctx.recipe, str(day), inputs=token)
                computed += 1
            if ctx.counts:
                _mark_current(ctx, day, scores)
            ctx.progress.advance()
    silent = [d for d in ctx.requested_days() if d not in days]
    shown = f"{', '.join(map(str, silent[:5]))}{', …' if len(silent) > 5 else ''}"
    notes = (f"No traces of {shown}: check that the logs arrived.",) if silent else ()
    return StageResult("nightly", computed=computed, reused=reused, notes=(*notes, *unusable_notes(ctx)))


def _night(
    ctx: Context, queries: Queries, scores: Sequence[Part], results: Sequence[Part]
) -> Callable[[Table], pa.Table]:
    """What gives the rows of a nightly table of a day, but for the grades."""
    patterns = list(ctx.settings.patterns)
    plain = of_scores(queries, scores)

    def rows(table: Table) -> pa.Table:
        known: dict[str, Relation] = {"trace_scores": scores, "intervals": plain}
        names = patterns
        if table in (NIGHTLY_PATTERNS, NIGHTLY_LANGUAGES):
            what = table.name.removeprefix("nightly_")
            shown = queries.run(f"sums/shown_{what}", {"trace_scores": scores, "claim_results": results})
            if table is NIGHTLY_LANGUAGES:
                names = sorted(shown["name"].unique().to_pylist())
            shares = of_shares(queries, scores, shown, names, judged=table is NIGHTLY_PATTERNS)
            known |= {"shown": shown, "intervals": shares}
        elif table is NIGHTLY_REPEATS:
            questions = queries.run("sums/repeated_questions", {"trace_scores": scores})
            known = {"repeated_questions": questions, "intervals": of_repeats(questions)}
        return queries.run(f"nightly/{table.name}", known, {"names": names})

    return rows


def _night_token(scores: Sequence[Part], grades: Sequence[Part]) -> str:
    made_of = [[p.name, p.inputs()] for p in scores]
    return keys.version([*made_of, *([p.name, p.rows(), p.inputs()] for p in grades)])


def _aggregated(ctx: Context, day: date, token: str) -> bool:
    existing = [ctx.lake.find(table, "night", ctx.recipe, str(day)) for table in nightly_tables(ctx)]
    return all(e and e.inputs() == token for e in existing)


def complete(ctx: Context, day: date) -> bool:
    """Whether all traces of a day that are planned for are scored, and its nightly tables are made of them."""
    for part in (p for p in trace_parts(ctx) if p.date == day):
        scored = _results(ctx, part)[-1:]
        refused = ctx.lake.find(QUARANTINE, _refused_name(ctx, part))
        done = sum(p.rows() for p in (*scored, refused) if p)
        if not scored or done < covered(ctx, part, part.read(["trace_id"])).num_rows:
            return False
    scores = ctx.lake.parts(TRACE_SCORES, ctx.recipe, str(day))
    return _aggregated(ctx, day, _night_token(scores, grades_on(ctx, day)))


def _mark_current(ctx: Context, day: date, scores: Sequence[Part]) -> None:
    """Put on record that this recipe counts for the night, in the place of another one of its name.

    A backfill may have scored more applications under it than those for which it counts.
    """
    table = CURRENT_RECIPES
    apps = sorted({app for part in scores for app in part.read(["app"])["app"].unique().to_pylist()})
    mine = {(ctx.settings.name, app): (ctx.recipe, ctx.judge_version) for app in apps if ctx.scope.takes(app)}
    existing = ctx.lake.find(table, "night", str(day))
    rows = existing.read().to_pylist() if existing else []
    known = {(r["recipe_name"], r["app"]): (r["recipe"], r["judge_version"]) for r in rows}
    if {**known, **mine} != known:
        names = ("recipe_name", "app", "recipe", "judge_version")
        merged = [
            {**dict(zip(names, (*k, *v), strict=True)), "date": day} for k, v in sorted({**known, **mine}.items())
        ]
        ctx.lake.write(table, "night", from_rows(merged, table), str(day))


def nightly_tables(ctx: Context) -> tuple[Table, ...]:
    """The nightly tables that the recipe's method fills, and its grader."""
    tables = CITATION_NIGHTLY if ctx.settings.method == "citations" else NIGHTLY
    return (*tables, NIGHTLY_GRADES) if ctx.grader else tables


def parameters(ctx: Context) -> dict[str, object]:
    """Values of the $parameters of the scoring SQL."""
    recipe = ctx.settings
    return {
        "recipe": ctx.recipe,
        "method": recipe.method,
        "judge_version": ctx.judge_version,
        "misuse_penalty": recipe.scoring.misuse_penalty,
        "partial_credit": recipe.scoring.partial_credit,
        "t_context": recipe.triad.context_relevance,
        "t_groundedness": recipe.triad.groundedness,
        "t_answer": recipe.triad.answer_relevance,
        "w_retrieval": recipe.waterfall.retrieval,
        "w_answerability": recipe.waterfall.answerability,
        "w_faithfulness": recipe.waterfall.faithfulness,
        "w_answer": recipe.waterfall.answer_relevance,
        "partial_passes": recipe.waterfall.partial_passes,
        "salt": ctx.lake.salt(),
    }


def _score(ctx: Context, queries: Queries, part: Part, known: pa.Table, token: str) -> tuple[int, int]:
    """Write one part's results; returns traces scored and traces refused."""
    cut = parts_of(ctx, part)
    where = (ctx.recipe, part.partition[-1])
    traces = covered(ctx, part, marked(part, TRACE_COLUMNS))
    results, found, scores = results_of(ctx, queries, part, known, cut, traces)
    refused = ctx.gates.check_results(claims_in(cut), results, scores, traces)
    bad = {trace: (reason, detail) for trace, reason, detail in refused.iter_rows()}
    if bad:
        _refuse(ctx, part, scores, bad)
        results, scores, found = _without(results, bad), _without(scores, bad), _without(found, bad)
    else:  # an earlier try may have refused some
        ctx.lake.drop(QUARANTINE, _refused_name(ctx, part))
    for table, made in zip(RESULTS, (results, found, scores), strict=True):
        rows = with_redacted(ctx.lake, table, part.name, made, part, *where)
        ctx.lake.write(table, part.name, rows, *where, inputs=token)
    return scores.num_rows, len(bad)


def results_of(
    ctx: Context, queries: Queries, part: Part, known: pa.Table, cut: pa.Table, traces: pa.Table
) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Claim results, claim patterns and trace scores that these verdicts make of a part; nothing is written.

    Args:
        known: See `all_verdicts`.
        cut: What was cut from the answers of the part; see `parts_of`.
        traces: Of the part, with `TRACE_COLUMNS`.
    """
    params = parameters(ctx)
    results = claim_results(ctx, queries, part, ctx.judges, known)
    if ctx.settings.method == "citations":
        relations = {"traces": traces, "claims": claims_in(cut), "claim_results": results}
        results = conform(queries.run("scoring/citation_results", relations, params), CLAIM_RESULTS)
    results, found = find_patterns(ctx, queries, part, results, known)
    scores = queries.run(
        "scoring/trace_scores",
        {
            "traces": traces,
            "claims": cut,
            "claim_results": results,
            "relevance": relevance_of(ctx, part),
        },
        params,
    )
    return results, found, conform(scores, TRACE_SCORES)


def _results(ctx: Context, part: Part) -> list[Part]:
    """The parts of `RESULTS` that were made of a part of `traces`; none unless all are there."""
    made = [ctx.lake.find(table, part.name, ctx.recipe, part.partition[-1]) for table in RESULTS]
    found = [p for p in made if p]
    return found if len(found) == len(made) else []


def _without(rows: pa.Table, bad: Mapping[str, object]) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["trace_id"], pa.array(sorted(bad), pa.string()))))


def _refuse(ctx: Context, part: Part, scores: pa.Table, bad: Mapping[str, tuple[str, str]]) -> None:
    found = {r["trace_id"]: r for r in scores.to_pylist()}
    rows = [
        {
            "source": TRACE_SCORES.name,
            "trace_id": trace,
            "date": part.date,
            "stage": "results",
            "reason": reason,
            "detail": detail,
            "raw": msgspec.json.encode(found.get(trace, {})).decode(),
        }
        for trace, (reason, detail) in sorted(bad.items())
    ]
    ctx.lake.write(QUARANTINE, _refused_name(ctx, part), from_rows(rows, QUARANTINE))


def _refused_name(ctx: Context, part: Part) -> str:
    return f"{part.name}-results-{ctx.recipe}"


def _describe(ctx: Context) -> None:
    """The rows of `judges` (a cascade, each judge of it, a grader) and `recipes` that say what the hashes stand for."""
    described = {m.judge.version: (m.name, m.judge.describe()) for m in ctx.judges}
    if ctx.grader and ctx.settings.grades.grader:
        described[ctx.grader.version] = (ctx.settings.grades.grader.stem, ctx.grader.describe())
    described[ctx.judge_version] = (cascade.name(ctx.judges), cascade.describe(ctx.judges))
    for version, (name, definition) in described.items():
        judge = {
            "judge_version": version,
            "name": name,
            "kind": str(definition.get("kind", "")),
            "definition": as_json(definition),
        }
        if not ctx.lake.find(JUDGES, version):
            ctx.lake.write(JUDGES, version, from_rows([judge], JUDGES))
    recipe = {
        "recipe": ctx.recipe,
        "name": ctx.settings.name,
        "judge_version": ctx.judge_version,
        "judge_versions": [m.judge.version for m in ctx.judges],
        "extractor_version": ctx.extractor.version,
        "scorer_versions": [scorer.version for scorer in ctx.scorers],
        "grader_version": ctx.grader and ctx.grader.version,
        "definition": as_json(ctx.definition),
    }
    written = ctx.lake.find(RECIPES, ctx.recipe)
    if written is None or written.read(["name"])["name"][0].as_py() != ctx.settings.name:
        ctx.lake.write(RECIPES, ctx.recipe, from_rows([recipe], RECIPES))
