"""`leadline ask`: ask a judge's language model a question about every stored trace.

The question is private: it is never part of a log line, a lock or an error.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

import typer

from flows.console import emit_document, note
from flows.options import (
    Apps,
    Config,
    DryRun,
    From,
    Night,
    Output,
    PageForm,
    RetryFailures,
    To,
    days_or_yesterday,
    one_of,
    optional,
)
from flows.runtime.progress import bar_or_lines
from flows.runtime.run import locked, on_record
from tasks import judges
from tasks.analysis.ask import ENDS, Ask, Estimate, Form, ask, estimate, opened, replies
from tasks.core.budget import Budget
from tasks.core.config import given_file
from tasks.core.errors import UsageError
from tasks.core.paths import CONFIG
from tasks.judges.llm import Llm
from tasks.publish.documents.ask import document, estimated
from tasks.publish.documents.document import trace_links
from tasks.publish.report.text import plural
from tasks.run.build import build_contexts
from tasks.run.context import Context
from tasks.run.record import ASK
from tasks.run.result import StageResult
from tasks.run.scopes.scope import Scope


def judge_of(contexts: Sequence[Context], named: Path | None) -> tuple[Llm, Path]:
    """Return the named judge, or the first judge of a recipe that is a language model, with its file.

    Raises:
        UsageError: There is no such judge, or the named judge is of another kind.
    """
    known = [(judge.judge, judge.path) for ctx in contexts for judge in ctx.judges]
    found = [(judges.load(named), named)] if named else known
    for judge, path in found:
        if isinstance(judge, Llm):
            return judge, path
    names = ", ".join(dict.fromkeys(path.stem for _, path in found))
    what = f"--judge {named} is" if named else f"the judges of {contexts[0].path} ({names}) are"
    raise UsageError(f"{what} no language model. Name a judge of kind llm by --judge, such as --judge qwen3-8b-24gb.")


def run(ctx: Context, of: Ask, *, retry_failures: bool) -> StageResult:
    """Ask about traces without a reply, record the run in `runs`, and publish the warehouse.

    Raises:
        BusyError: Another run holds the lake's lock.
        EngineError: The model can't be run. Stored replies are kept.
    """
    with locked(ctx.lake, f"ask {ctx.first}..{ctx.last}"), on_record(ASK, [ctx]) as record:
        try:
            with record.slot(of.rater.gpus, [of.rater]):
                result = record.stage(ASK, ask, ctx, of, retry_failures=retry_failures)
        finally:
            of.rater.close()
    for text in result.notes:
        note(text)
    return result


def _cost(found: Estimate) -> str:
    minutes = "no measured rate yet" if found.minutes is None else f"about {found.minutes:.1f} minutes"
    return (
        f"{plural(found.traces, 'trace')}, {found.answered:,} already answered: "
        f"{plural(found.requests, 'request')}, about {found.tokens:,} tokens, {minutes}."
    )


def command(
    *,
    question: Annotated[str, typer.Argument(help="What to answer about each trace.", show_default=False)],
    sample: Annotated[float, typer.Option("--sample", help="Share of the traces, the same traces each time.")] = 1.0,
    answer: Annotated[str, one_of(*ENDS, option="--answer", text="What it is answered by.")] = "yes-no",
    judge: Annotated[
        Path | None,
        optional("File or name of a judge of kind llm; by default the recipe's.", "--judge", metavar="FILE"),
    ] = None,
    max_tokens: Annotated[int | None, optional("Stop after so many tokens.", "--max-tokens", min=1)] = None,
    max_minutes: Annotated[float | None, optional("Stop after so many minutes.", "--max-minutes", min=0)] = None,
    apps: Apps = None,
    one: Night = None,
    start: From = None,
    end: To = None,
    dry_run: DryRun = False,
    retry_failures: RetryFailures = False,
    form: PageForm = "table",
    output: Output = None,
    config: Config = CONFIG,
) -> None:
    """Ask a question of your own about each answer: yes or no, or a grade from 1 to 5, by a language model.

    Example: leadline ask "Does the answer promise a refund?" --from 2026-11-01 --to 2026-11-03
    """
    if not 0 < sample <= 1:
        raise UsageError(f"--sample {sample:g} is not a valid share. Give more than 0 and at most 1.")
    if not question.strip():
        raise UsageError("the question is empty. Write what is to be answered about each trace.")
    contexts = build_contexts(config, *days_or_yesterday(one, start, end), progress=bar_or_lines())
    chosen, path = judge_of(contexts, judge and given_file(judge, "judges", config))
    scope = Scope(apps=tuple(sorted(set(apps or ()))), share=sample)
    ctx = replace(contexts[0], scope=scope, budget=Budget(max_tokens, max_minutes))
    of = opened(question.strip(), cast("Form", answer), chosen, path)
    cost = estimate(ctx, of, retry_failures=retry_failures)
    if not cost.traces:
        raise UsageError(
            f"the lake has no traces of {ctx.first} to {ctx.last} to ask about. Run leadline nightly over these days "
            "first, or name other days or applications by --from, --to and --app."
        )
    if dry_run:
        emit_document(form, output, estimated(ctx, of, cost), [cost])
        return
    note(_cost(cost))
    done = run(ctx, of, retry_failures=retry_failures)
    left = cost.traces - cost.answered - done.computed - done.lost
    if left and ctx.budget.spent:
        note(f"Stopped: {ctx.budget.spent}. {plural(left, 'trace')} left: run the same command again.")
    rows = replies(ctx, of)
    shown = document(ctx, of, rows, trace_links(ctx.config.report.dir, output))
    emit_document(form, output, shown, rows.drop("question", "explanation").iter_rows(named=True))
