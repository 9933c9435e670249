"""Unit tests for a judge: a grader grades the cases of a suite, and each grade is checked against its condition.

Method: docs/methods.md#judging-the-judges.

A grader grades equal cases only once across all suites, so correcting a condition costs nothing. Only failed requests
are repeated. `evaluate` works without a lake. `measure` stores results in one part of `metaeval` per grader and suite
version and rewrites the part after every shard. Left out: pass rates (`pass_rates.py`), and requirements for promotion
(`requirements.py`).
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
# The extractor for a suite's answers is fixed, so pass rates don't depend on a config.
EXTRACTOR = {"kind": "sentences", "citation_style": "auto"}
_KEPT = ("explanation", "failure", "raw", *TOKENS)  # columns of a grade, besides its value


@dataclass(frozen=True, slots=True)
class Graded:
    """A grader's grades of one case.

    Attributes:
        grades: Grades by name (`GRADED`).
        at: When the case was graded.
    """

    grades: Mapping[str, Grade]
    at: datetime


def evaluate(grader: Grader, suite: Suite) -> list[Result]:
    """Grade all cases and check the six grades of each against their conditions. Nothing is stored.

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
    """Like `evaluate`, but reuse grades in the lake and store new ones. Requires the lake's lock.

    Args:
        name: Display name of the grader.
        at_once: Number of cases between two writes.

    Raises:
        UsageError: The grader needs a reference answer that a case lacks.
        EngineError: The model can't be run. Stored grades are kept.
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
    """Inputs of a grader.

    Attributes:
        keys: Hash of the input of each case, by case id.
        given: Inputs by hash. Equal inputs of several cases are included once.
    """

    keys: Mapping[str, str]
    given: Mapping[str, Answered]


def questions(suite: Suite, grader: Grader) -> Questions:
    """Prepare the inputs of a grader.

    Raises:
        UsageError: The grader needs a reference answer that a case lacks.
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
    """Stored grades of a grader, by the hash of the input. Of several, the latest grade that did not fail is used."""
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
    """Results of the graded cases, in the order of the suite."""
    held = []
    for case in suite.cases:
        if (graded := found.get(inputs.keys[case.case_id])) is not None:
            all_six = {**graded.grades, **derived(graded.grades)}
            held += [_result(case, grade, all_six[grade]) for grade in GRADES]
    return held


def of_part(part: Part) -> list[Result]:
    """Results stored in a part of `metaeval`."""
    names = list(Result.__slots__)
    return [Result(**row) for row in pl.DataFrame(part.read(names)).iter_rows(named=True)]


def outcome(grade: Grade, condition: Condition) -> Outcome:
    """Check a grade against a condition. `unparsable` means an unreadable reply, `unjudged` means no reply."""
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
    """Grade inputs that have no grades or failed ones, shard by shard, and add the grades to `found`."""
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
    """Grades that did not fail, which are not repeated."""
    return {} if graded is None else {g: one for g, one in graded.grades.items() if one.status != "failed"}


def _answered(case: Case, extractor: Extractor) -> Answered:
    chunks = [Chunk(str(n), text) for n, text in enumerate(case.references, start=1)]
    return Answered(
        case.question,
        case.answer,
        case.references,
        graders.statements(extractor, Answer(case.question, case.answer, chunks)),
        case.expected,  # the grader decides whether to use it
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
        own = found[key].grades.get(result.grade, Grade("na"))  # derived grades cost no tokens
        spent = {name: getattr(own, name) for name in TOKENS}
        yield {**of_suite, **asdict(result), **spent, "case_key": key, "judged_at": found[key].at}


def _grade(row: Mapping[str, Any]) -> Grade:
    """Restore a grade from its row."""
    kept = {name: row[name] for name in _KEPT}
    if row["outcome"] == "unparsable":
        return Grade("unparsable", **kept)
    if row["outcome"] == "unjudged":
        return Grade("failed", **kept)
    return Grade("na" if row["value"] is None else "scored", row["value"], **kept)


def name_of(grader: Grader, stem: str, kind: str) -> str:
    """Display name of a grader: its file's name, wrapped in the grader's kind if the file configures a judge of claims.

    Args:
        stem: Name of the file, without the ending.
        kind: The `kind` in the file.
    """
    own = str(grader.describe().get("kind", ""))
    return stem if own == kind else f"{own}({stem})"
