"""Unit tests for a judge: a grader grades the cases of a suite, and each grade is checked against its condition.

docs/methods.md#judging-the-judges. A grader grades exactly the same case once, under any suite: a corrected condition
costs
nothing. Only outages are repeated. `evaluate` needs no lake; `measure` keeps results there, a part of `metaeval` for
each grader and content of a suite, written again after every shard. Left out: pass rates (`pass_rates.py`), and what a
promotion requires (`requirements.py`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pyarrow as pa

from tasks import extractors, graders
from tasks.analysis.metaeval.conditions import Condition
from tasks.analysis.metaeval.pass_rates import Outcome, Result
from tasks.analysis.metaeval.suite import Case, Suite
from tasks.core import keys
from tasks.core.errors import UsageError
from tasks.core.grades import GRADED, GRADES, Answered, Grade, Grader, derived
from tasks.core.progress import Progress, Silent
from tasks.core.schemas import JUDGES, METAEVAL
from tasks.core.types import OUTAGE, Answer, Chunk, Extractor
from tasks.run.identity import as_json
from tasks.run.result import TOKENS, StageResult
from tasks.run.work import WorkLoop, shards, work_loop
from tasks.store.lake import Lake, Part, empty, frame, from_rows

STAGE = "metaeval"
CASES_AT_ONCE = 32
# How a suite's answers are cut; fixed, so that a pass rate depends on no config.
EXTRACTOR = {"kind": "sentences", "citation_style": "auto"}
_KEPT = ("explanation", "failure", "raw", *TOKENS)  # of a grade, beside its value


@dataclass(frozen=True, slots=True)
class Graded:
    """A grader's grades of one case.

    Attributes:
        grades: By the names of `GRADED`.
        at: When.
    """

    grades: Mapping[str, Grade]
    at: datetime


def evaluate(grader: Grader, suite: Suite) -> list[Result]:
    """The six grades of each case, checked against their conditions; nothing is kept.

    Raises:
        UsageError: The grader needs a reference answer that a case lacks.
        EngineError: The model can't be run.
    """
    inputs = questions(suite, grader)
    found: dict[str, Graded] = {}
    with work_loop(Silent(), len(inputs.given), StageResult(STAGE)) as loop:
        _grade_open(loop, grader, inputs, found, lambda: None)
    return results(suite, inputs, found)


def measure(
    lake: Lake,
    name: str,
    grader: Grader,
    suite: Suite,
    progress: Progress | None = None,
    at_once: int = CASES_AT_ONCE,
) -> tuple[StageResult, list[Result]]:
    """The same, reusing grades of the lake and keeping new ones there; needs the lake's lock.

    Args:
        name: The grader's name, for people.
        at_once: Cases between two writes.

    Raises:
        UsageError: The grader needs a reference answer that a case lacks.
        EngineError: The model can't be run. What was graded before stays.
    """
    inputs = questions(suite, grader)
    found = graded_before(lake, grader.version)
    before = [key for key in inputs.given if key in found and not _open(found[key])]
    if not lake.find(JUDGES, grader.version):
        its = grader.describe()
        row = {"judge_version": grader.version, "name": name, "kind": its.get("kind", ""), "definition": as_json(its)}
        lake.write(JUDGES, grader.version, from_rows([row], JUDGES))

    def keep() -> None:
        lake.write(METAEVAL, suite.version, from_rows(_rows(grader, suite, inputs, found), METAEVAL), grader.version)

    start = StageResult(STAGE, reused=len(before) * len(GRADED), judge=grader.version, gpus=grader.gpus)
    with work_loop(progress or Silent(), len(inputs.given), start, gpus=grader.gpus) as loop:
        _grade_open(loop, grader, inputs, found, keep, at_once)
        keep()
    return loop.result, results(suite, inputs, found)


@dataclass(frozen=True, slots=True)
class Questions:
    """What a grader is given.

    Attributes:
        keys: Of what it is given of each case, by the case's id.
        given: By that key; what several cases share is there once.
    """

    keys: Mapping[str, str]
    given: Mapping[str, Answered]


def questions(suite: Suite, grader: Grader) -> Questions:
    """What a grader is given.

    Raises:
        UsageError: It needs a reference answer that a case lacks.
    """
    if grader.needs_reference and (lacking := [c.case_id for c in suite.cases if not c.expected]):
        raise UsageError(
            f"suite {suite.name}: {len(lacking)} of {len(suite.cases)} cases have no expected_output, by which the "
            f"judge grades; the first is {lacking[0]}. Add it, or take a judge in the reference-free form."
        )
    extractor = extractors.load(EXTRACTOR, "the suite's extractor")
    by_case = {case.case_id: _answered(case, extractor) for case in suite.cases}
    ids = {case_id: _key(answered) for case_id, answered in by_case.items()}
    return Questions(ids, {ids[case_id]: answered for case_id, answered in by_case.items()})


def graded_before(lake: Lake, version: str) -> dict[str, Graded]:
    """Grades of a grader in the lake, by the key of the case; of several, the latest that was judged."""
    columns = ["case_key", "grade", "outcome", "value", "judged_at", *_KEPT]
    parts = [part.read(columns) for part in lake.parts(METAEVAL, version)]
    rows = frame(pa.concat_tables([empty(METAEVAL).select(columns), *parts]))
    latest = (
        rows.filter(pl.col("grade").is_in(GRADED))
        .sort(pl.col("outcome") != "unjudged", "judged_at", descending=True, maintain_order=True)
        .unique(["case_key", "grade"], keep="first", maintain_order=True)
    )
    found: dict[str, Graded] = {}
    for row in latest.iter_rows(named=True):
        before = found.get(row["case_key"], Graded({}, row["judged_at"]))
        grades = {**before.grades, row["grade"]: _grade(row)}
        found[row["case_key"]] = Graded(grades, max(before.at, row["judged_at"]))
    return found


def results(suite: Suite, inputs: Questions, found: Mapping[str, Graded]) -> list[Result]:
    """The results of the cases that have been graded, in the suite's order."""
    held = []
    for case in suite.cases:
        if (graded := found.get(inputs.keys[case.case_id])) is not None:
            all_six = {**graded.grades, **derived(graded.grades)}
            held += [_result(case, grade, all_six[grade]) for grade in GRADES]
    return held


def of_part(part: Part) -> list[Result]:
    """The results of a part of `metaeval`."""
    names = list(Result.__slots__)
    return [Result(**row) for row in pl.DataFrame(part.read(names)).iter_rows(named=True)]


def outcome(grade: Grade, condition: Condition) -> Outcome:
    """What a grade comes to. A reply that can't be read is not the same as one that was never given."""
    if grade.status in ("unparsable", "failed"):
        return "unparsable" if grade.status == "unparsable" else "unjudged"
    return "passed" if condition.holds(grade.value if grade.status == "scored" else None) else "failed"


def _grade_open(
    loop: WorkLoop,
    grader: Grader,
    inputs: Questions,
    found: dict[str, Graded],
    keep: Callable[[], None],
    at_once: int = CASES_AT_ONCE,
) -> None:
    """Grades what is missing or open, shard by shard, and adds it to `found`."""
    missing = [key for key in inputs.given if key not in found or _open(found[key])]
    loop.progress.advance(len(inputs.given) - len(missing))

    def store(keys_: list[str], given: Sequence[Mapping[str, Grade]]) -> int:
        now = datetime.now(UTC)
        for key, grades in zip(keys_, given, strict=True):
            found[key] = Graded({**grades, **_closed(found.get(key))}, now)
        keep()
        return sum(grade.failure != OUTAGE for grades in given for grade in grades.values())

    loop.run(
        shards(missing, at_once),
        lambda keys_: grader.grade([inputs.given[key] for key in keys_]),
        store,
        lambda grades: grades.values(),
    )


def _open(graded: Graded) -> bool:
    return len(_closed(graded)) < len(GRADED)


def _closed(graded: Graded | None) -> dict[str, Grade]:
    """Grades that stay."""
    return {} if graded is None else {g: one for g, one in graded.grades.items() if one.status != "failed"}


def _answered(case: Case, extractor: Extractor) -> Answered:
    chunks = [Chunk(str(n), text) for n, text in enumerate(case.references, start=1)]
    return Answered(
        case.question,
        case.answer,
        case.references,
        graders.statements(extractor, Answer(case.question, case.answer, chunks)),
        case.expected,  # the grader decides whether it counts
    )


def _key(answered: Answered) -> str:
    return keys.key(as_json(asdict(answered)))


def _result(case: Case, grade: str, given: Grade) -> Result:
    condition = case.conditions[grade]
    return Result(
        case_id=case.case_id,
        topic=case.topic,
        test_type=case.test_type,
        grade=grade,
        condition=str(condition),
        outcome=outcome(given, condition),
        value=given.value,
        explanation=given.explanation,
        failure=given.failure,
        raw=given.raw,
    )


def _rows(grader: Grader, suite: Suite, inputs: Questions, found: Mapping[str, Graded]) -> Iterator[dict[str, object]]:
    inner = grader.describe().get("judge")
    of_suite = {
        "judge_version": grader.version,
        "claims_judge_version": inner if isinstance(inner, str) else None,
        "suite": suite.name,
        "suite_version": suite.version,
    }
    for result in results(suite, inputs, found):
        key = inputs.keys[result.case_id]
        own = found[key].grades.get(result.grade, Grade("na"))  # derived ones cost nothing
        spent = {name: getattr(own, name) for name in TOKENS}
        yield {**of_suite, **asdict(result), **spent, "case_key": key, "judged_at": found[key].at}


def _grade(row: Mapping[str, Any]) -> Grade:
    """A grade as it was given, from its row."""
    kept = {name: row[name] for name in _KEPT}
    if row["outcome"] == "unparsable":
        return Grade("unparsable", **kept)
    if row["outcome"] == "unjudged":
        return Grade("failed", **kept)
    return Grade("na" if row["value"] is None else "scored", row["value"], **kept)


def name_of(grader: Grader, stem: str, kind: str) -> str:
    """What people call a grader: by its file, and by what makes a grader of it where it is a judge of claims.

    Args:
        stem: Of its file's name.
        kind: Which the file names.
    """
    own = str(grader.describe().get("kind", ""))
    return stem if own == kind else f"{own}({stem})"
