"""Ask a question of the user about every stored trace. A language model replies with yes or no, or a grade from 1 to 5.

Method: docs/language-models.md#ask-your-own-question.

`ask_replies` has one part per part of `traces` and version. The version covers question, prompt and model. Traces that
have a reply are skipped, and one request is made for traces with equal texts. Left out: choosing the model
(`flows/analysis/ask.py`), and showing the replies (`tasks/publish/documents/ask.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa

from tasks.core import keys
from tasks.core.grades import Grade
from tasks.core.schemas import ASK_REPLIES, TRACES
from tasks.extractors import visible
from tasks.graders.llm import grade_of
from tasks.judges import rater_model
from tasks.judges.llm import Llm
from tasks.judges.rater_model import RaterModel
from tasks.judging.claims import within
from tasks.judging.estimate import CHARS_PER_TOKEN
from tasks.judging.open_parts import OpenPart
from tasks.judging.relevance import COLUMNS, TRACES_AT_ONCE
from tasks.run.context import Context
from tasks.run.record import ASK, measured_rates
from tasks.run.redacted import unredacted
from tasks.run.result import TOKENS, StageResult
from tasks.run.scopes import scope
from tasks.run.work import answered, shards, work_loop
from tasks.stats.agreement import Interval
from tasks.stats.intervals import interval, mean_of
from tasks.store.lake import Part, frame

Form = Literal["yes-no", "grade"]
RULES = 1  # increase this when the model is shown a trace differently
GIVES = ("task", "passages", "question", "answer")
RATING = "answer"
PROMPTS: dict[Form, Path] = {"yes-no": Path("ask/yes_no/v1"), "grade": Path("ask/grade/v1")}
ENDS: dict[Form, tuple[int, int]] = {"yes-no": (0, 1), "grade": (1, 5)}


@dataclass(frozen=True, slots=True)
class Ask:
    """A question about each trace, and the model that replies.

    Attributes:
        task: The question in the user's words.
        form: Form of the reply: yes or no, or a grade.
        judge: Name of the judge's file that configures the model.
    """

    task: str
    form: Form
    judge: str
    rater: RaterModel

    @property
    def version(self) -> str:
        """`ask_version`."""
        return keys.version({"rules": RULES, "task": self.task, "form": self.form, "model": self.rater.version})


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated cost of asking.

    Attributes:
        traces: Number of traces that the question is about.
        answered: Traces that already have a reply.
        requests: Requests to make. Traces with equal texts share one.
        tokens: Tokens for these requests, at the rate of the latest run of this model and form. Without such a run, an
            estimate of the tokens read, from the number of characters.
        minutes: Minutes at the rate of that run; None without such a run.
    """

    traces: int
    answered: int
    requests: int
    tokens: int
    minutes: float | None


@dataclass(frozen=True, slots=True)
class Group:
    """Replies about the traces of one application and generator. Both names are empty for all traces.

    Attributes:
        n: Traces with a reply.
        scored: Traces with a usable reply; only these enter the mean.
        na: Traces for which the model replied that the question can't be decided.
        unjudged: Traces whose reply is unparsable or failed.
        mean: Share of yes, or mean grade, with its interval over questions.
    """

    app: str
    generator: str
    n: int
    scored: int
    na: int
    unjudged: int
    mean: Interval


@dataclass(frozen=True, slots=True)
class _Item:
    """A trace to ask about; `key` is a hash of the texts."""

    trace_id: str
    key: str
    question: str
    answer: str
    passages: tuple[str, ...]


def opened(task: str, form: Form, judge: Llm, path: Path) -> Ask:
    """Set up a question for the model of a judge, without loading the model.

    Args:
        path: The judge's file.

    Raises:
        ConfigError: The prompt is wrong.
    """
    config = rater_model.Config(
        kind="rater_model", model=judge.config.model, prompt=PROMPTS[form], max_reply_tokens=384
    )
    return Ask(task, form, path.stem, RaterModel(config, judge.generator, str(path), GIVES))


def ask(ctx: Context, of: Ask, *, retry_failures: bool = False) -> StageResult:
    """Ask about traces without a reply, within the context's days and scope.

    Args:
        retry_failures: Ask again about traces whose reply failed or was unparsable.

    Raises:
        EngineError: The model can't be run. Stored replies are kept.
    """
    traces, parts = _open_parts(ctx, of, retry_failures=retry_failures)
    missing = sum(len(part.missing) for part in parts)
    known = _known(ctx, of, retry_failures=retry_failures) if missing else {}
    done = StageResult(ASK, reused=traces - missing, judge=of.rater.version)
    with work_loop(ctx.progress, missing, done, budget=ctx.budget, gpus=of.rater.gpus) as loop:
        for part in parts:
            items = shards(_items(part), ctx.config.limits.shard_requests)
            loop.run(items, partial(_replies, of, known), partial(_store, of, part))
    return loop.result


def estimate(ctx: Context, of: Ask, *, retry_failures: bool = False) -> Estimate:
    """Estimate the cost of `ask`. Reads texts, but runs no model."""
    traces, parts = _open_parts(ctx, of, retry_failures=retry_failures)
    missing = sum(len(part.missing) for part in parts)
    seen = set(_known(ctx, of, retry_failures=retry_failures) if missing else {})
    requests = chars = 0
    for part in parts:
        for item in _items(part):
            if item.key not in seen:
                seen.add(item.key)
                (prompt,) = of.rater.prompts([_inputs(of, item)])
                requests, chars = requests + 1, chars + len(prompt.system) + len(prompt.user)
    rates = measured_rates(ctx, of.rater.version)
    return Estimate(
        traces,
        traces - missing,
        requests,
        tokens=round(requests * rates.tokens / rates.verdicts) if rates else chars // CHARS_PER_TOKEN,
        minutes=requests * rates.seconds / rates.verdicts / 60 if rates else None,
    )


def replies(ctx: Context, of: Ask) -> pl.DataFrame:
    """Rows of `sql/analysis/ask.sql` for the context's days and scope."""
    days = (ctx.first, ctx.last)
    parts = ctx.lake.parts(ASK_REPLIES, of.version, days=days)
    with ctx.queries() as queries:
        found = queries.run("analysis/ask", {"traces": ctx.lake.parts(TRACES, days=days), "ask_replies": parts})
    rows = frame(found)
    covered = [ctx.scope.covers(*row) for row in rows.select("trace_id", "app").iter_rows()]
    return rows.filter(pl.Series(covered, dtype=pl.Boolean))


def groups(rows: pl.DataFrame, form: Form) -> list[Group]:
    """Summarize all replies and, if there are several, those of each application and generator.

    Args:
        rows: Rows from `replies`.
    """
    each = sorted(rows.partition_by("app", "generator", as_dict=True).items()) if len(rows) else []
    found = [_group(part, form, str(app), str(generator)) for (app, generator), part in each]
    return found if len(found) == 1 else [_group(rows, form, "", ""), *found]


def _group(rows: pl.DataFrame, form: Form, app: str, generator: str) -> Group:
    scored = rows.filter(status="scored")
    values = scored["value"].to_numpy()
    _, questions = np.unique(scored["question"].to_numpy(), return_inverse=True)
    least, most = ENDS[form]
    low, high = interval(mean_of(values, questions), least, most) or (None, None)
    na = rows.filter(status="na").height
    return Group(
        app=app,
        generator=generator,
        n=rows.height,
        scored=scored.height,
        na=na,
        unjudged=rows.height - scored.height - na,
        mean=Interval(float(values.mean()) if len(values) else None, low, high),
    )


def _open_parts(ctx: Context, of: Ask, *, retry_failures: bool) -> tuple[int, list[OpenPart]]:
    """The number of traces that the question is about, and the parts with their traces without a reply."""
    found = [
        _open_part(ctx, of, part, retry_failures=retry_failures)
        for part in ctx.lake.parts(TRACES, days=(ctx.first, ctx.last))
    ]
    return sum(traces for traces, _ in found), [part for _, part in found]


def _open_part(ctx: Context, of: Ask, part: Part, *, retry_failures: bool) -> tuple[int, OpenPart]:
    ids = pl.DataFrame(within(part, [ctx.scope], unredacted(part, part.read(["trace_id"]))))
    failures = {status: pl.col("status") == status for status in ("failed", "unparsable")}
    found = OpenPart(ctx.lake, part, ASK_REPLIES, part.name, of.version, ["trace_id"], failures)
    return ids.height, found.read(lambda: (ids, scope.token([ctx.scope])), retry_failures=retry_failures)


def _known(ctx: Context, of: Ask, *, retry_failures: bool) -> dict[str, Grade]:
    """Stored replies by the hash of the texts, to be reused at no cost."""
    fields = ["status", "value", "failure", "explanation"]
    rows = ctx.lake.frame(ASK_REPLIES, of.version, columns=["request_key", *fields])
    kept = rows.filter(pl.col("failure").is_null()) if retry_failures else rows
    return {key: Grade(*grade) for key, *grade in kept.iter_rows()}


def _items(part: OpenPart) -> Iterator[_Item]:
    """Traces of a part without a reply."""
    if not part.missing:
        return
    traces = pl.DataFrame(part.source.read(COLUMNS)).filter(pl.col("trace_id").is_in(part.traces))
    for trace in traces.iter_rows(named=True, buffer_size=TRACES_AT_ONCE):
        answer, passages = visible(trace["answer"]), tuple(chunk["text"] for chunk in trace["chunks"])
        key = keys.key(*passages, trace["question"], answer)
        yield _Item(trace["trace_id"], key, trace["question"], answer, passages)


def _inputs(of: Ask, item: _Item) -> dict[str, str | Sequence[str]]:
    return {"task": of.task, "passages": item.passages, "question": item.question, "answer": item.answer}


def _replies(of: Ask, known: dict[str, Grade], shard: Sequence[_Item]) -> list[Grade]:
    """Return a reply for each trace. New replies are added to `known`, so equal texts are requested only once."""
    new = {item.key: item for item in shard if item.key not in known}
    ratings = of.rater.rate([_inputs(of, item) for item in new.values()])
    paid = {key: grade_of(found, RATING, ENDS[of.form]) for key, found in zip(new, ratings, strict=True)}
    known.update({key: Grade(g.status, g.value, g.failure, g.explanation) for key, g in paid.items()})
    return [paid.pop(item.key) if item.key in paid else known[item.key] for item in shard]


def _store(of: Ask, part: OpenPart, shard: Sequence[_Item], grades: Sequence[Grade]) -> int:
    pairs = answered(shard, grades)
    if pairs:
        fields = ("status", "value", "failure", "explanation", "raw", *TOKENS)
        constant = {"task": of.task, "form": of.form, "judge": of.judge, "engine": of.rater.engine}
        columns = {
            "trace_id": [item.trace_id for item, _ in pairs],
            "request_key": [item.key for item, _ in pairs],
            **{name: [value] * len(pairs) for name, value in constant.items()},
            **{name: [getattr(grade, name) for _, grade in pairs] for name in fields},
        }
        part.add(pa.Table.from_pydict(columns, ASK_REPLIES.stored))
    return len(pairs)
