"""Scores: computes claim results and trace scores part by part, in SQL.

A part is computed again when the parts it was computed from, and so its `inputs` token, have changed. Results are
checked by the gate before they are written; a trace whose rows fail is quarantined.
"""

from collections.abc import Mapping
from datetime import date

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tasks.core.errors import DataError
from tasks.core.progress import tracked
from tasks.core.schemas import (
    CLAIM_PATTERNS,
    CLAIM_RESULTS,
    JUDGES,
    QUARANTINE,
    RECIPES,
    TRACE_SCORES,
)
from tasks.judging.claims import claims_in, covered, covered_segments, has_claims
from tasks.judging.pairs import pair_parts
from tasks.judging.relevance import relevance_of
from tasks.judging.stored_verdicts import all_verdicts, claim_results
from tasks.run import cascade
from tasks.run.context import Context
from tasks.run.identity import as_json
from tasks.run.plan import trace_parts
from tasks.run.redacted import marked, with_redacted
from tasks.run.result import StageResult
from tasks.scoring.patterns import find_patterns
from tasks.store.lake import Part, conform, from_rows
from tasks.store.query import Queries

RESULTS = (CLAIM_RESULTS, CLAIM_PATTERNS, TRACE_SCORES)  # computed from a part of `traces`, in this order
TRACE_COLUMNS = [
    "date",
    "trace_id",
    "timestamp",
    "app",
    "environment",
    "generator",
    "prompt_version",
    "session",
    "question",
    "answer",
    "chunks.list.element.chunk_id",
]


def score_traces(ctx: Context) -> StageResult:
    """Compute claim results and trace scores of the run's days; returns traces scored and reused.

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
        ctx.gates.write_results(f"{ctx.first}..{ctx.last}")
        command = ctx.sql_command("FROM quarantine WHERE stage = 'results'")
        raise DataError(
            f"the results of {refused} of {total} traces break the rules of their tables, more than "
            f"gates.max_quarantined_share = {limit:.1%}. No nightly table or report was made of them. Read them with "
            f"{command} and report the judge or SQL that made them."
        )
    notes = (f"The results of {refused} traces were refused; see quarantine.",) if refused else ()
    return StageResult("scores", computed=computed, reused=reused, notes=notes)


def all_scored(ctx: Context, day: date) -> bool:
    """Whether a day's planned traces are all scored or refused."""
    for part in (p for p in trace_parts(ctx) if p.date == day):
        scored = _results(ctx, part)[-1:]
        refused = ctx.lake.find(QUARANTINE, _refused_name(ctx, part))
        done = sum(p.rows() for p in (*scored, refused) if p)
        if not scored or done < covered(ctx, part, part.read(["trace_id"])).num_rows:
            return False
    return True


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
    cut = covered_segments(ctx, part)
    where = (ctx.recipe, part.partition[-1])
    traces = covered(ctx, part, marked(part, TRACE_COLUMNS))
    results, found, scores = results_of(ctx, queries, part, known, cut, traces)
    refused = ctx.gates.check_results(claims_in(cut), results, scores, traces)
    bad = {trace: (reason, detail) for trace, reason, detail in refused.iter_rows()}
    if bad:
        _refuse(ctx, part, scores, bad)
        results, scores, found = _without(results, bad), _without(scores, bad), _without(found, bad)
    else:  # an earlier run may have refused some
        ctx.lake.drop(QUARANTINE, _refused_name(ctx, part))
    for table, made in zip(RESULTS, (results, found, scores), strict=True):
        rows = with_redacted(ctx.lake, table, part.name, made, part, *where)
        ctx.lake.write(table, part.name, rows, *where, inputs=token)
    return scores.num_rows, len(bad)


def results_of(
    ctx: Context, queries: Queries, part: Part, known: pa.Table, cut: pa.Table, traces: pa.Table
) -> tuple[pa.Table, pa.Table, pa.Table]:
    """The claim results, claim patterns and trace scores of a part under these verdicts. Writes nothing.

    Args:
        known: See `all_verdicts`.
        cut: Everything that was cut from the part's answers; see `covered_segments`.
        traces: Traces of the part, with `TRACE_COLUMNS`.
    """
    params, claims = parameters(ctx), claims_in(cut)
    results = claim_results(ctx, queries, part, ctx.judges, known)
    if ctx.settings.method == "citations":
        relations = {"traces": traces, "claims": claims, "claim_results": results}
        results = conform(queries.run("scoring/citation_results", relations, params), CLAIM_RESULTS)
    results, found = find_patterns(ctx, queries, part, claims, results, known)
    relations = {
        "traces": traces,
        "claims": cut,
        "claim_results": results,
        "relevance": relevance_of(ctx, part),
    }
    scores = queries.run("scoring/trace_scores", relations, params)
    return results, found, conform(scores, TRACE_SCORES)


def _results(ctx: Context, part: Part) -> list[Part]:
    """The parts of `RESULTS` for a part of `traces`; none unless all of them exist."""
    made = [ctx.lake.find(table, part.name, ctx.recipe, part.partition[-1]) for table in RESULTS]
    found = [p for p in made if p]
    return found if len(found) == len(made) else []


def _is_bad(rows: pa.Table, bad: Mapping[str, object]) -> pa.ChunkedArray:
    return pc.is_in(rows["trace_id"], pa.array(sorted(bad), pa.string()))


def _without(rows: pa.Table, bad: Mapping[str, object]) -> pa.Table:
    return rows.filter(pc.invert(_is_bad(rows, bad)))


def _refuse(ctx: Context, part: Part, scores: pa.Table, bad: Mapping[str, tuple[str, str]]) -> None:
    found = {r["trace_id"]: r for r in scores.filter(_is_bad(scores, bad)).to_pylist()}
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
    """Write the meaning of the hashes into `judges` (a cascade, each of its judges, a grader) and `recipes`."""
    described = {m.judge.version: (m.name, m.judge.describe()) for m in ctx.judges}
    if ctx.grader and ctx.settings.grades.grader:
        described[ctx.grader.version] = (ctx.settings.grades.grader.stem, ctx.grader.describe())
    described[ctx.judge_version] = (cascade.name(ctx.judges), cascade.describe(ctx.judges))
    for version, (name, definition) in described.items():
        if not ctx.lake.find(JUDGES, version):
            kind = str(definition.get("kind", ""))
            judge = {"judge_version": version, "name": name, "kind": kind, "definition": as_json(definition)}
            ctx.lake.write(JUDGES, version, from_rows([judge], JUDGES))
    written = ctx.lake.find(RECIPES, ctx.recipe)
    if written is None or written.read(["name"])["name"][0].as_py() != ctx.settings.name:
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
        ctx.lake.write(RECIPES, ctx.recipe, from_rows([recipe], RECIPES))
