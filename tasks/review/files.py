"""Read files of people's labels: JSON lines, CSV from spreadsheets, and JSON exports of Label Studio.

The format is detected from the content. Left out: the contents of a line (`lines.py`), and writing files for people to
fill in (`formats.py`).
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa

from tasks.core.errors import DataError, SourceError
from tasks.review.lines import CONTEXT, Entry, Refusal, from_fields, from_json

_MARK = b"\xef\xbb\xbf"
FORMULAS = "=+-@\t\r\n＝＋－＠"
"""Characters that a spreadsheet may interpret as the start of a formula."""
GUARD = "'"
RISKY = FORMULAS + GUARD
IDS = ("trace_id", "claim_id")  # always guarded, since a spreadsheet would turn some ids into numbers or dates
BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
NOT_APPLICABLE = ("n/a", "na")
MISUSED = {"misused": True, "not_misused": False}
MOST_CELL = 2**31 - 1


def content(path: Path) -> bytes:
    """Read a file and decompress it if necessary.

    Raises:
        SourceError: The file can't be read.
    """
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            return bytes(stream.read())
    except OSError as error:
        problem = "there is no such file" if isinstance(error, FileNotFoundError) else f"can't be read ({error})"
        remedy = "Give a file of people's labels, as described in docs/reviews.md"
        raise SourceError(f"{path}: {problem}. {remedy}.") from error


def entries(data: bytes, path: Path) -> Iterator[Entry]:
    """Parse the lines of a file.

    Args:
        path: The file's path. A file named `.csv` or `.tsv` must have a header with the column `trace_id`.

    Raises:
        DataError: A CSV file has no column `trace_id`, or two columns with the same name.
    """
    data = data.removeprefix(_MARK)
    if (tasks := _label_studio(data)) is not None:
        return _of_tasks(tasks)
    text = data.decode("utf-8", "surrogateescape")
    if delimiter := _delimiter(text, path):
        return _of_rows(text, delimiter, path)
    return (from_json(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip(b" \t\r"))


def guard(text: str) -> str:
    """Prefix a text so that spreadsheets don't interpret it as a formula."""
    return GUARD + text if text and text[0] in RISKY else text


def unguard(text: str) -> str:
    """Remove the prefix that `guard` adds."""
    return text[1:] if len(text) > 1 and text[0] == GUARD and text[1] in RISKY else text


def _delimiter(text: str, path: Path) -> str | None:
    """Detect the delimiter of a CSV file; None if the text is not CSV."""
    header = text.lstrip("\r\n").partition("\n")[0]
    for delimiter in ",;\t":
        if "trace_id" in _cells(header, delimiter):
            return delimiter
    named = any(suffix in (".csv", ".tsv") for suffix in PurePath(path.name.lower()).suffixes)
    if named and text.strip():
        raise DataError(
            f"{path}: its first line names no column trace_id. Give a CSV with the columns of docs/reviews.md, such as "
            "leadline review export --format csv makes."
        )
    return None


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


@contextmanager
def _long_cells() -> Iterator[None]:
    """Raise Python's limit of 128 Ki characters per cell, since a cell may contain all chunks of a trace."""
    before = csv.field_size_limit(MOST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _of_rows(text: str, delimiter: str, path: Path) -> Iterator[Entry]:
    with _long_cells():
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        header: list[str] | None = None
        while True:
            number = reader.line_num + 1
            try:
                row = next(reader, None)
            except csv.Error as error:
                detail = f"quotes and separators don't make cells ({error})"
                yield Entry(number, "", Refusal(None, "malformed_csv", detail))
                continue
            if row is None:
                return
            if not any(cell.strip() for cell in row):
                continue
            if header is None:
                header = _header(row, path)
            else:
                yield _of_row(number, header, row)


def _header(row: Sequence[str], path: Path) -> list[str]:
    names = [cell.strip() for cell in row]
    if twice := sorted({n for n in names if n and names.count(n) > 1}):
        raise DataError(f"{path}: has two columns {twice[0]!r}. Leave one of them.")
    return names


def _of_row(number: int, header: Sequence[str], row: Sequence[str]) -> Entry:
    if any(cell.strip() for cell in row[len(header) :]):
        return Entry(number, "", Refusal(None, "malformed_csv", f"{len(row)} cells, and {len(header)} columns"))
    named = zip(header, row, strict=False)
    cells = {n: c for n, c in named if c.strip() and n.partition(".")[0] != CONTEXT}
    return from_fields(number, _fields(cells))


def _fields(cells: Mapping[str, str]) -> dict[str, Any]:
    """Convert cells to the fields of a line. Empty cells are absent."""
    fields: dict[str, Any] = {
        name: cell.removeprefix(GUARD) if name in IDS else unguard(cell) for name, cell in cells.items()
    }
    for name in ("label", "sampling", "grade"):
        if name in fields:
            fields[name] = "_".join(fields[name].lower().split())
    for name in ("misused", "adjudicated"):
        if name in fields:
            fields[name] = BOOLEANS.get(fields[name].strip().lower(), fields[name])
    if "reviewer" in fields:  # a trailing space would make this another reviewer
        fields["reviewer"] = fields["reviewer"].strip()
    if "span_start" in fields or "span_end" in fields:
        fields["span"] = [fields.pop("span_start", None), fields.pop("span_end", None)]
    if "value" in fields:
        fields["value"] = None if fields["value"].strip().lower() in NOT_APPLICABLE else fields["value"].strip()
    elif "grade" in fields:
        del fields["grade"]  # not filled in
    fields.setdefault("label", None)
    return fields


def _label_studio(data: bytes) -> list[Any] | None:
    """The tasks of a Label Studio export; None for other files."""
    if not data.lstrip().startswith(b"["):
        return None
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _of_tasks(tasks: Sequence[Any]) -> Iterator[Entry]:
    """Yield all annotations of all tasks. Skipped annotations and those without a label are not filled in."""
    number = 0
    for task in tasks:
        data = task.get("data") if isinstance(task, Mapping) else None
        annotations = task.get("annotations") if isinstance(task, Mapping) else None
        if not isinstance(data, Mapping) or not isinstance(annotations, list):
            number += 1
            detail = "no task with `data` and `annotations`; export as JSON from Label Studio, not as JSON-MIN"
            yield Entry(number, "", Refusal(None, "wrong_type", detail))
            continue
        for annotation in annotations or [{}]:
            number += 1
            yield _of_annotation(number, data, annotation if isinstance(annotation, Mapping) else {})


def _of_annotation(number: int, data: Mapping[str, Any], annotation: Mapping[str, Any]) -> Entry:
    chosen = dict(_choices(annotation.get("result")))
    if annotation.get("was_cancelled") or "label" not in chosen:
        return Entry(number, "", None)
    fields = {
        "label": chosen["label"],
        "misused": MISUSED.get(chosen.get("misused", "")),
        "comment": chosen.get("comment"),
        "reviewer": _who(annotation.get("completed_by")),
        "reviewed_at": annotation.get("updated_at") or annotation.get("created_at"),
        "sampling": data.get("sampling"),
        "adjudicated": annotation.get("ground_truth") or data.get("adjudicated") or None,
    }
    named = {name: data[name] for name in IDS if name in data}
    return from_fields(number, {**named, **fields})


def _choices(result: object) -> Iterator[tuple[str, str]]:
    """Yield the name of each control with the choice or text."""
    for item in result if isinstance(result, list) else ():
        value = item.get("value") if isinstance(item, Mapping) else None
        choices = (value.get("choices") or value.get("text")) if isinstance(value, Mapping) else None
        if isinstance(choices, list) and len(choices) == 1:
            yield str(item.get("from_name")), str(choices[0])


def _who(completed_by: object) -> str | None:
    """A user's e-mail address or name, or else the user's number in Label Studio."""
    if isinstance(completed_by, Mapping):
        completed_by = completed_by.get("email") or completed_by.get("username") or completed_by.get("id")
    if isinstance(completed_by, int):
        return f"label-studio:{completed_by}"
    return str(completed_by) if completed_by else None
