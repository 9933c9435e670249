"""Right sources by question, from a file of annotations (docs/methods.md#grace-citations-as-classification).

Rows that can't be used are reported by line number and skipped. Traces are matched to annotations by the text of their
question. `sql/scoring/trace_grace.sql` compares right sources with cited ones.
"""

import csv
import io
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from tasks.core import keys
from tasks.core.errors import ConfigError

if TYPE_CHECKING:
    from _csv import Reader

COLUMNS = ("question", "gold_ids")
LINES_NAMED = 8
Found = tuple[str, str, Sequence[str] | str]  # lines, question, and either the ids or what is wrong with the row


@dataclass(frozen=True, slots=True)
class Annotations:
    """The annotations in a file.

    Attributes:
        gold: Maps a question, as returned by `normalized`, to the ids of its right sources. Citing any of them is
            right. The tuple is empty if an annotator found no right source.
        notes: Messages about the file: line numbers and counts, never text.
    """

    gold: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """Hash of the annotations. It ignores rows that can't be used and the order of rows."""
        return keys.version(sorted([question, *sorted(ids)] for question, ids in self.gold.items()))


class _Row(Struct, frozen=True):
    question: str
    gold_ids: list[str]


def normalized(question: str) -> str:
    """The question as it is compared: case-folded, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", question).casefold().split())


def load(path: Path | None, where: object, key: str) -> Annotations:
    """Load the annotations in a file; without a file, there are none.

    Args:
        path: `*.csv` with a header, or JSON lines.
        where: The config that names the file, for messages.
        key: The key in the config that names the file.

    Raises:
        ConfigError: The file can't be read, or a CSV file lacks a required column.
    """
    if path is None:
        return Annotations()
    try:
        # Bytes that are not UTF-8 make only their own row unusable. A byte order mark is not part of the header.
        text = path.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError as error:
        remedy = "Give a JSON lines or CSV file, relative to the config, or leave the key out."
        raise ConfigError(where, key, f"names {path}, which can't be read ({error.strerror})", remedy) from None
    read = _csv if path.suffix.lower() == ".csv" else _json_lines
    return _gathered(path.name, read(text, path))


def _gathered(name: str, rows: Iterable[Found]) -> Annotations:
    """Merge rows with the same question: any of their sources is right."""
    gold: dict[str, dict[str, None]] = {}
    bad: list[str] = []
    total = 0
    for line, question, ids in rows:
        total += 1
        wrong = ids if isinstance(ids, str) else _wrong(question, ids)
        if wrong:
            bad.append(f"{line}: {wrong}")
        else:
            gold.setdefault(normalized(question), {}).update(dict.fromkeys(ids))
    if not total:
        notes: tuple[str, ...] = (f"{name}: it contains no annotations.",)
    elif bad:
        shown = "; ".join(bad[:LINES_NAMED]) + ("; …" if len(bad) > LINES_NAMED else "")
        notes = (f"{name}: {len(bad)} of {total} annotations can't be used and are left out (line {shown}).",)
    else:
        notes = ()
    return Annotations({question: tuple(ids) for question, ids in gold.items()}, notes)


def _wrong(question: str, ids: Sequence[str]) -> str:
    if any("\udc80" <= c <= "\udcff" for text in (question, *ids) for c in text):
        return "not UTF-8"
    if not question.strip():
        return "empty question"
    return "" if all(i.strip() for i in ids) else "empty id in gold_ids"


def _json_lines(text: str, path: Path) -> Iterator[Found]:  # noqa: ARG001 - same signature as `_csv`
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line.encode("utf-8", "surrogateescape"), type=_Row)
        except msgspec.ValidationError:
            yield str(number), "", "not {question: text, gold_ids: [text, …]}"
        except (msgspec.DecodeError, UnicodeDecodeError):
            yield str(number), "", "not JSON"
        else:
            yield str(number), row.question, row.gold_ids


def _csv(text: str, path: Path) -> Iterator[Found]:
    """Read the rows of a CSV file; semicolons separate several ids in a cell."""
    reader = csv.reader(io.StringIO(text, newline=""))
    header = [name.strip().lower() for name in next(_cells(reader), ("", []))[1] or ()]
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        remedy = "Begin it with the line question,gold_ids."
        raise ConfigError(path, "", f"has no column {' and no column '.join(missing)}", remedy)
    at = [header.index(column) for column in COLUMNS]
    for line, cells in _cells(reader):
        if cells is None:
            yield line, "", "not CSV"
        elif len(cells) != len(header):
            yield line, "", f"{len(cells)} cells, not {len(header)}"
        else:
            question, ids = (cells[i].strip() for i in at)
            # An empty list in JSON means that no source is right; an empty cell means that nobody has annotated it yet.
            yield line, question, [i.strip() for i in ids.split(";")] if ids else "no gold_ids"


def _cells(reader: "Reader") -> Iterator[tuple[str, list[str] | None]]:
    """Yield line numbers and cells of rows that are not empty; None for a row that is not valid CSV."""
    while True:
        before = reader.line_num
        cells: list[str] | None = None
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            pass
        if cells != []:
            first, last = before + 1, reader.line_num
            yield str(first) if first == last else f"{first}–{last}", cells


def of_traces(annotations: Annotations, traces: Iterable[tuple[str, str]]) -> list[dict[str, object]]:
    """Return the right sources of traces with an annotated question.

    Args:
        traces: Pairs of trace id and question.
    """
    if not annotations.gold:
        return []
    found = ((trace, annotations.gold.get(normalized(question))) for trace, question in traces)
    return [{"trace_id": trace, "gold_ids": list(ids)} for trace, ids in found if ids is not None]
