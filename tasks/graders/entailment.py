"""A grader without a language model: uses a judge of claims, sentence embeddings, and rules that recognize refusals.

`docs/grades.md` explains each grade. A grade depends only on its own answer; only the tokens of a text are counted
where it is first read. Left out: implied meaning. An answer that declines in words that no rule knows counts as an
answer.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from tasks import judges, patterns
from tasks.core.config import Settings, Share, resolved_in
from tasks.core.grades import Answered, Grade, Grader
from tasks.core.keys import Versioned
from tasks.core.types import Judge, Verdict
from tasks.engines.transformers_cpu import Embedder, EmbedderConfig
from tasks.graders import _completeness, _likeness, _reading, _slips, _support
from tasks.graders._completeness import Completeness
from tasks.graders._likeness import Likeness
from tasks.graders._reading import Reading
from tasks.graders._support import Check, Support, SupportResult
from tasks.text import declines

RULES = 1  # raised when the same measures give a different grade
FEWEST = 0.3  # lowest likeness of a passage about the question; if all are lower, relevance is measured against this
NA = Grade("na")


class Relevance(Settings):
    """When a statement is relevant to the question. Likeness is a cosine; the best is that of the nearest passage.

    Attributes:
        statement: Share of the best likeness that makes a statement, and all others from its passage, relevant.
        passage: Share of the best likeness that makes every statement from a passage relevant.
        useful: Likeness to the question that makes a statement in a declining answer useful.
    """

    statement: Share = 0.68
    passage: Share = 0.8
    useful: Annotated[float, Field(ge=-1, le=1)] = 0.25


class Config(Settings):
    """The settings in the grader's file.

    Attributes:
        judge: Name or path of the judge of claims.
        embedder: The embedding model.
        reference: Whether completeness uses the reference answer, if there is one: `if_given` or `never`.
        support: When a statement counts as supported.
        relevance: When a statement is relevant to the question.
        completeness: When the answer and the passages count as answering the question.
    """

    kind: Literal["entailment"] = "entailment"
    judge: Path
    embedder: EmbedderConfig = EmbedderConfig()
    reference: Literal["never", "if_given"] = "never"
    support: Support = Support()
    relevance: Relevance = Relevance()
    completeness: Completeness = Completeness()


@dataclass(frozen=True)
class _Item:
    """An answer with the data that its grades need."""

    answered: Answered
    reading: Reading
    likeness: Likeness
    checks: tuple[Check, ...]
    declines: bool
    reference: tuple[Check, ...] | None

    @property
    def all_pairs(self) -> Iterable[Check]:
        yield from self.checks
        yield from self.reference or ()


class Entailment(Versioned):
    """See the module."""

    asks, needs_reference = False, False

    def __init__(self, config: Config, judge: Judge) -> None:
        self._config, self._judge = config, judge
        self._embedder = Embedder(config.embedder)

    @property
    def engine(self) -> str:
        """The judge's engine."""
        return self._judge.engine

    @property
    def gpus(self) -> int:
        """GPUs that the judge holds."""
        return self._judge.gpus

    def describe(self) -> dict[str, object]:
        """Everything that can change a grade. `judge` is the version of the wrapped judge."""
        own = (_completeness, declines, _likeness, _reading, _slips, _support)
        return {
            "rules": [RULES, *(module.RULES for module in own), patterns.rules(_slips.FIGURES)],
            "judge": self._judge.version,
            "embedder": self._embedder.describe(),
            **self._config.model_dump(mode="json", exclude={"judge", "embedder"}),
        }

    def close(self) -> None:
        """Free the models; a later call loads them again."""
        self._judge.close()
        self._embedder.close()

    def grade(self, answers: Sequence[Answered]) -> list[Mapping[str, Grade]]:
        """The four grades of each answer, in order.

        Raises:
            EngineError: A model can't be run.
        """
        readings = [_reading.read(answer.statements) for answer in answers]
        measured = [Likeness(self._embedder, a, r) for a, r in zip(answers, readings, strict=True)]
        self._embedder.embed(list(dict.fromkeys(text for one in measured for text in one.texts())))
        items = [self._item(*of) for of in zip(answers, readings, measured, strict=True)]
        verdicts = self._judged(check for item in items for check in item.all_pairs)
        found = [[self._found(item, check, verdicts) for check in item.checks] for item in items]
        # Other passages matter only if no cited passage addresses any statement.
        others = [self._others(item, of) for item, of in zip(items, found, strict=True)]
        verdicts |= self._judged(check for checks in others for check in checks)
        return [self._grades(*of, verdicts) for of in zip(items, found, others, strict=True)]

    def _item(self, answered: Answered, reading: Reading, likeness: Likeness) -> _Item:
        checks = tuple(_support.check(one, answered.passages, self._config.support) for one in reading.assertions)
        reference = None
        if self._config.reference == "if_given" and answered.reference is not None:
            reference = _completeness.of_reference(answered.reference, reading.assertions)
        return _Item(answered, reading, likeness, checks, self._declines(reading, likeness), reference)

    def _declines(self, reading: Reading, likeness: Likeness) -> bool:
        """Whether the answer declines as a whole: at its start, or in words nearer to the question than the start."""
        if not reading.declined:
            return False
        before = max(likeness.statements[: reading.before], default=-1.0)
        return before < max(likeness.to_question(text) for text in reading.declined)

    def _judged(self, checks: Iterable[Check]) -> dict[str, Verdict]:
        requests = {r.key: r for check in checks for r in check.requests}
        return {v.key: v for v in self._judge.judge(list(requests.values()))} if requests else {}

    def _found(self, item: _Item, check: Check, verdicts: Mapping[str, Verdict]) -> SupportResult:
        return _support.result(check, verdicts, item.answered.question, self._config.support)

    def _others(self, item: _Item, found: Sequence[SupportResult]) -> list[Check]:
        if item.declines or any(one.addressed for one in found) or item.reference is not None:
            return []
        numbers = range(1, len(item.answered.passages) + 1)
        return [
            _support.check(one, item.answered.passages, self._config.support, [n])
            for one in item.reading.assertions
            for n in numbers
            if n not in one.cited
        ]

    def _grades(
        self, item: _Item, found: Sequence[SupportResult], others: Sequence[Check], verdicts: Mapping[str, Verdict]
    ) -> dict[str, Grade]:
        relevant = self._relevant(item)
        all_found = [*found, *(self._found(item, check, verdicts) for check in others)]
        addressed = any(one.addressed for one in all_found)
        failure = next((one.failure for one in all_found if one.failure is not None), None)
        keys = {request.key for check in (*item.all_pairs, *others) for request in check.requests}
        tokens = sum(verdicts[key].tokens_in for key in keys)
        return {
            "answer_relevancy": NA if item.declines else _relevancy(item, relevant),
            "completeness": self._completeness(item, verdicts, any(relevant), addressed, failure),
            "faithfulness": replace(_faithfulness(item, found), tokens_in=tokens),
            "usefulness": self._usefulness(item) if item.declines and item.reading.assertions else NA,
        }

    def _completeness(
        self, item: _Item, verdicts: Mapping[str, Verdict], relevant: bool, addressed: bool, failure: str | None
    ) -> Grade:
        settings = self._config.completeness
        if item.reference is not None:
            return _completeness.by_reference(item.reference, item.declines, item.likeness.stems, verdicts)
        if item.declines:
            return _completeness.of_refusal(item.likeness, settings)
        if failure is not None and not addressed:
            return Grade("failed", failure=failure)
        if not addressed:
            return Grade("na", explanation="no passage addresses any statement of the answer")
        return _completeness.of_answer(item.likeness, relevant, settings)

    def _relevant(self, item: _Item) -> list[bool]:
        """Whether each statement is relevant, because of itself, its passage, or another statement of the passage."""
        like, settings = item.likeness, self._config.relevance
        best = max(like.best, FEWEST)
        near = [own >= settings.statement * best for own in like.statements]
        vouched = {home for home, own in zip(like.homes, near, strict=True) if own}
        vouched |= {at for at, own in enumerate(like.passages) if own >= settings.passage * best}
        return [own or home in vouched for own, home in zip(near, like.homes, strict=True)]

    def _usefulness(self, item: _Item) -> Grade:
        near = max(item.likeness.statements)
        useful = near >= self._config.relevance.useful
        return Grade("scored", float(useful), explanation=f"likeness of what it adds to the question {near:.2f}")


def _relevancy(item: _Item, relevant: Sequence[bool]) -> Grade:
    """1 to 5: 1 if no statement is relevant to the question, 5 if all are."""
    if not relevant:
        return Grade("scored", 1, explanation="the answer states nothing")
    off = [one.number for one, own in zip(item.reading.assertions, relevant, strict=True) if not own]
    value = 1 + math.floor(4 * (1 - len(off) / len(relevant)))
    why = f"not relevant: {_numbered(off)}" if off else "every statement is relevant to the question"
    return Grade("scored", value, explanation=why)


def _faithfulness(item: _Item, found: Sequence[SupportResult]) -> Grade:
    """1 if the citations of every statement support it, otherwise 0; N/A if the answer states nothing."""
    if not item.checks:
        return NA
    for check, one in zip(item.checks, found, strict=True):
        if not check.assertion.cited:
            return Grade("scored", 0, explanation=f"statement {check.assertion.number} cites no passage")
        if one.why is not None:
            return Grade("scored", 0, explanation=f"statement {check.assertion.number} {one.why}")
    failures = [one.failure for one in found if one.failure is not None]
    if failures:
        return Grade("failed", failure=failures[0])
    return Grade("scored", 1, explanation="the cited passages support every statement")


def _numbered(numbers: Sequence[int]) -> str:
    return f"statement{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def build(config: Config, where: str) -> Grader:
    """The grader of a config. The judge and a relative model folder are relative to the config file `where`."""
    folder = Path(where).parent
    embedder = config.embedder.relative_to(folder)
    judge = judges.load(resolved_in(config.judge, "judges", where, "judge"))
    return Entailment(config.model_copy(update={"embedder": embedder}), judge)
