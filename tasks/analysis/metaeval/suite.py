"""A suite of unit tests for judges: JSON lines in the form of the public GroUSE suite.

Method: docs/methods.md#judging-the-judges.

A suite is small and every case counts, so one bad line makes the whole suite invalid. Messages name the file, the line
and the field. Unknown fields are ignored. Left out: running a judge (`metaeval.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from tasks.analysis.metaeval.conditions import Condition, of_derived, parse
from tasks.core import keys
from tasks.core.errors import DataError, SourceError, UsageError
from tasks.core.grades import GRADED

NO_TYPE = "all"  # type of cases without one
SUFFIX = ".jsonl"
_MARK = b"\xef\xbb\xbf"
_SHOWN = 40  # characters of a wrong condition to show in a message

Text = Annotated[str, Meta(min_length=1)]


class _Conditions(Struct, frozen=True):
    answer_relevancy_condition: str
    completeness_condition: str
    faithfulness_condition: str
    usefulness_condition: str


class _Metadata(Struct, frozen=True):
    test_type: str | int | None = None
    topic: str | int | None = None
    goal: str | None = None


class _Line(Struct, frozen=True):
    input: Text
    actual_output: Text
    references: tuple[str, ...]
    conditions: _Conditions
    expected_output: str | None = None
    metadata: _Metadata | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One test: an answer to grade, and a condition for each grade.

    Attributes:
        case_id: Name of the file, and line number.
        topic: Topic of the case; by default, the name of the file.
        test_type: What the case tests.
        references: Texts of the documents; the answer cites the first as `[1]`.
        expected: A reference answer, for graders that need one.
        conditions: Condition of each of the six grades.
    """

    case_id: str
    topic: str
    test_type: str
    goal: str | None
    question: str
    answer: str
    references: tuple[str, ...]
    expected: str | None
    conditions: Mapping[str, Condition]


@dataclass(frozen=True, slots=True)
class Suite:
    """Test cases that belong together.

    Attributes:
        name: Display name: the last two parts of the path.
        version: Hash of the cases' contents and ids, independent of the folder.
        cases: At least one case, ordered by file name and line.
    """

    name: str
    version: str
    cases: tuple[Case, ...]


def read(path: Path) -> Suite:
    """Read a suite from a file, or from the files of a folder.

    Raises:
        UsageError: The file does not exist, or the folder has no files.
        SourceError: A file can't be read.
        DataError: A line is not a valid test case.
    """
    cases = tuple(case for file in _files(path) for case in _cases(file))
    if not cases:
        raise DataError(f"{path} contains no test case. Write one in each line: docs/judging-judges.md shows how.")
    return Suite(_name(path), keys.version([_content(case) for case in cases]), cases)


def impossible(suite: Suite) -> list[str]:
    """Conditions that no value of the grade can meet, as `case: grade condition`. They are probably mistakes."""
    return [
        f"{case.case_id}: {grade} {case.conditions[grade]}"
        for case in suite.cases
        for grade in GRADED
        if not case.conditions[grade].fulfilled_by(grade)
    ]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError(f"{path} does not exist. Give a suite: a file of JSON lines, or a folder of them.")
    if found := sorted(path.glob(f"*{SUFFIX}")):
        return found
    below = sorted({f.parent.name for f in path.glob(f"*/*{SUFFIX}")})
    where = f"Its folders {', '.join(below)} have some: give one of them" if below else "Give a folder that has some"
    raise UsageError(f"{path} contains no file *{SUFFIX}. {where}, or a file.")


def _name(path: Path) -> str:
    place = path.resolve()
    return "/".join(p for p in (place.parent.name, place.stem) if p)


def _cases(file: Path) -> Iterator[Case]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise SourceError(f"{file} can't be read ({error.strerror}). Grant access, then run again.") from error
    for number, raw in enumerate(data.removeprefix(_MARK).split(b"\n"), start=1):
        if raw.strip():
            yield _case(file, number, _decoded(file, number, raw))


def _decoded(file: Path, number: int, raw: bytes) -> _Line:
    try:
        return msgspec.json.decode(raw, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # Messages of msgspec name fields and types, but never quote values.
        problem = str(error) if isinstance(error, msgspec.DecodeError) else type(error).__name__
        raise DataError(
            f"{file}, line {number} is not a valid test case: {problem}. Fix it; docs/judging-judges.md has the fields."
        ) from None


def _case(file: Path, number: int, line: _Line) -> Case:
    graded: dict[str, Condition] = {}
    for grade in GRADED:
        field = f"{grade}_condition"
        written = getattr(line.conditions, field)
        try:
            graded[grade] = parse(written)
        except ValueError as error:
            shown = repr(written[:_SHOWN])
            raise DataError(f"{file}, line {number}: conditions.{field} is {shown}, no condition. {error}") from None
    about = line.metadata or _Metadata()
    return Case(
        case_id=f"{file.stem}:{number}",
        topic=file.stem if about.topic is None else str(about.topic),
        test_type=NO_TYPE if about.test_type is None else str(about.test_type),
        goal=about.goal,
        question=line.input,
        answer=line.actual_output,
        references=line.references,
        expected=line.expected_output,
        conditions={**graded, **of_derived(graded["answer_relevancy"], graded["completeness"])},
    )


def _content(case: Case) -> list[object]:
    """The hashed content of a case: its id, which results refer to, and all fields but the goal."""
    wanted = {grade: str(case.conditions[grade]) for grade in GRADED}
    about = [case.case_id, case.topic, case.test_type]
    return [*about, case.question, case.answer, list(case.references), case.expected, wanted]
