"""Map the columns of a table to the fields of a trace, and build traces from rows.

A row is a mapping from column names to values from JSON, CSV (texts), Arrow or a database. `rows.py` and `database.py`
read the rows.
"""

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, ClassVar, TypeAlias
from uuid import UUID

import msgspec
from pydantic import BeforeValidator, Field

from tasks.core import keys
from tasks.core.config import Settings
from tasks.core.errors import SourceError
from tasks.core.types import Feedback
from tasks.sources import Reason, Reject
from tasks.sources.reading.rejects import checked
from tasks.sources.reading.values import moment, number, parsed, scalar, whole
from tasks.sources.spans.assembly import UNKNOWN
from tasks.sources.spans.chunks import named_chunks
from tasks.sources.spans.span import Assembled, Found
from tasks.sources.spans.texts import ANSWER, ASSISTANT, QUESTION, USER, Document, document, documents_of, text_of

Row: TypeAlias = Mapping[str, Any]

_STEP = re.compile(r"\[(-?\d+)\]|([^.\[\]]+)")
_CUT_LIST = re.compile(r"\s*\[\s*(['\"{]|$)")
_NAME = re.compile(r"[A-Za-z_][\w.\-]{0,63}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = re.compile(r"-?\d{9,}(\.\d+)?")  # a time as a number; the 8 digits of 20261122 are a day
_UNITS = ((1e11, 1), (1e14, 10**3), (1e17, 10**6), (1e20, 10**9))  # seconds, milli-, micro- and nanoseconds since 1970
_NUMBERS = ("latency_ms", "cost")  # the other numbers are integers


def _several(given: object) -> object:
    return [given] if isinstance(given, str) else given


Paths: TypeAlias = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1), BeforeValidator(_several)
]


class Columns(Settings):
    """The column of each field.

    A column is given by its name, or by a path to a value in it: `meta.user.id`, `messages[-1].content`. If several
    columns are given, the first with a value is used.

    Attributes:
        question: The user's question. In a list of messages, the user's last message.
        answer: The application's answer. In a list of messages, the assistant's last message.
        id: Id of the trace. The default is a hash of the time, question, answer and chunks.
        timestamp: Time of the question: ISO 8601 (UTC without a zone), or seconds, milliseconds, microseconds or
            nanoseconds since 1970.
        chunks: List of the passages that the generator saw, in its order: texts or objects (see `chunk`), also as JSON.
        chunk_ids: List of their ids, if it is a separate column.
        chunk_scores: List of their scores, if it is a separate column.
        app: Name of the application.
        generator: Name of the model.
        environment: Environment, such as production.
        session: Id of the conversation.
        prompt_version: Version of the prompt.
        retriever: Name of the retriever.
        latency_ms: Milliseconds that the answer took.
        tokens_in: Tokens of the prompt.
        tokens_out: Tokens of the answer.
        cost: US dollars that the answer cost.
        tags: Labels by their names.
        reference_answer: The correct answer.
        gold_chunk_ids: List of the ids of the relevant chunks.
        feedback: The user's rating. `ratings` maps words to numbers.
        feedback_comment: The user's comment.
        repeat: Number of the repetition, if a question is asked several times.
    """

    question: Paths
    answer: Paths
    id: Paths | None = None
    timestamp: Paths | None = None
    chunks: Paths | None = None
    chunk_ids: Paths | None = None
    chunk_scores: Paths | None = None
    app: Paths | None = None
    generator: Paths | None = None
    environment: Paths | None = None
    session: Paths | None = None
    prompt_version: Paths | None = None
    retriever: Paths | None = None
    latency_ms: Paths | None = None
    tokens_in: Paths | None = None
    tokens_out: Paths | None = None
    cost: Paths | None = None
    tags: dict[str, Paths] = Field(default_factory=dict)
    reference_answer: Paths | None = None
    gold_chunk_ids: Paths | None = None
    feedback: Paths | None = None
    feedback_comment: Paths | None = None
    repeat: Paths | None = None


class ChunkPaths(Settings):
    """The keys of an object in the list of chunks. Omitted keys default to the usual names.

    Attributes:
        text: The passage.
        id: Its id.
        score: The score that the retriever gave it.
        doc_id: The document that it is from.
        title: The title of that document.
    """

    text: Paths | None = None
    id: Paths | None = None
    score: Paths | None = None
    doc_id: Paths | None = None
    title: Paths | None = None


class Tabular(Settings):
    """How to build traces from rows: settings that all sources of rows share.

    Attributes:
        columns: The column of each field.
        chunk: The keys of an object in the list of chunks.
        ratings: Numbers for words in `columns.feedback`, such as `{up: 1, down: 0}`.
        app: Name of the application, used if no column has it.
        generator: Name of the model, used if no column has it.
    """

    unique_ids: ClassVar[bool] = True  # whether an id names one trace only, whatever file it is in

    columns: Columns
    chunk: ChunkPaths = ChunkPaths()
    ratings: dict[str, float] = Field(default_factory=dict)
    app: Annotated[str, Field(min_length=1)] | None = None
    generator: Annotated[str, Field(min_length=1)] | None = None


class _RefusedError(Exception):
    """The row can't be a trace. The message contains only column names and types."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason: Reason = reason


class _Column:
    """The columns of one field."""

    def __init__(self, key: str, paths: Sequence[str]) -> None:
        self.key = key
        self.paths = [(path, _steps(path)) for path in paths]

    @property
    def names(self) -> str:
        """The columns, for messages."""
        return " or ".join(f"`{path}`" for path, _ in self.paths)

    def there(self, row: Iterable[str]) -> bool:
        """Whether the row has one of the columns, even if empty."""
        there = set(row)
        return any(path in there or str(steps[0]) in there for path, steps in self.paths)

    def value(self, row: Row) -> tuple[Any, str]:
        """Return the first non-empty value and its path, or None and an empty path."""
        for path, steps in self.paths:
            value = row[path] if path in row else _at(row, steps)
            if value is not None and value != "" and value == value:  # noqa: PLR0124 - not NaN
                return value, path
        return None, ""

    def wrong(self, expected: str, value: object) -> _RefusedError:
        """Return an error for a value of the wrong type."""
        detail = f"Expected `{expected}`, got `{type(value).__name__}` - at {self.names}"
        return _RefusedError("wrong_type", detail)


class Mapper:
    """Builds traces from rows.

    Args:
        settings: Mapping of columns to fields.
    """

    def __init__(self, settings: Tabular) -> None:
        self._settings = settings
        given = settings.columns
        one = {name: getattr(given, name) for name in type(given).model_fields if name != "tags"}
        self._columns = {name: _Column(f"columns.{name}", paths) for name, paths in one.items() if paths}
        self._tags = {name: _Column(f"columns.tags.{name}", paths) for name, paths in given.tags.items()}
        parts = {name: getattr(settings.chunk, name) for name in ChunkPaths.model_fields}
        self._chunk = {name: _Column(f"chunk.{name}", paths) for name, paths in parts.items() if paths}

    @property
    def timed(self) -> bool:
        """Whether rows have times of their own."""
        return "timestamp" in self._columns

    @cached_property
    def _wanted(self) -> list[_Column]:
        """The columns that a table must have: the question's, the answer's, and those that the config names."""
        names = {"question", "answer", *self._settings.columns.model_fields_set}
        return [*(c for name, c in self._columns.items() if name in names), *self._tags.values()]

    def check_names(self, names: Sequence[str], where: str) -> None:
        """Check that a table has the columns that the config names.

        Args:
            names: Names of the table's columns.
            where: The table, for messages.

        Raises:
            SourceError: Columns are missing.
        """
        missing = [c for c in self._wanted if not c.there(names)]
        if not missing:
            return
        lacks = ", ".join(f"{c.names} (`{c.key}`)" for c in missing)
        # A file without a header has texts of a trace there.
        known = all(_NAME.fullmatch(name) for name in names)
        has = f"It has {', '.join(names)}." if known else f"Its first line holds {len(names)} names."
        raise SourceError(
            f"{where} has no column {lacks}. {has} Correct `columns` in the source's config; a CSV file begins with "
            "the names of its columns, encoded in UTF-8."
        )

    def assembled(self, row: Row, line: int, day: datetime | None = None) -> Assembled:
        """Build the trace of a row, or return a reject. Invalid rows never raise an error.

        Args:
            line: Line of the row in its file, from 1.
            day: Time of the trace, used if rows have no times.
        """
        found = Found()
        trace_id, at = None, day
        try:
            at = self._time(row, day)
            trace_id = self._own_id(row)
            fields = self._fields(row, found)
            if trace_id is None or not self._settings.unique_ids:
                asked = at.isoformat() if self.timed else ""
                texts = (c["text"] for c in fields["chunks"])
                digest = keys.key(asked, fields["question"], fields["answer"], *texts, size=keys.SHORT_HEX)
                trace_id = f"{trace_id}-{digest}" if trace_id else digest
            raw = msgspec.json.encode({"trace_id": trace_id, "timestamp": at, **fields})
            outcome = checked(line, raw)
        except _RefusedError as refused:
            outcome = _reject(row, line, trace_id, refused.reason, str(refused), at)
        except RecursionError:
            outcome = _reject(row, line, trace_id, "wrong_type", "nested too deeply", at)
        except UnicodeEncodeError:
            outcome = _reject(row, line, trace_id, "invalid_utf8", "half a surrogate pair in a text", at)
        if isinstance(outcome, Reject):
            return Assembled(line, reject=outcome, found=found)
        return Assembled(line, outcome, found=found)

    def _get(self, name: str, row: Row) -> tuple[Any, str]:
        column = self._columns.get(name)
        return column.value(row) if column else (None, "")

    def _time(self, row: Row, day: datetime | None) -> datetime:
        column = self._columns.get("timestamp")
        if column is None:
            if day is None:
                raise _RefusedError("bad_timestamp", "the row has no time")
            return day
        value, _ = column.value(row)
        if value is None:
            raise _RefusedError("missing_field", f"no value - at {column.names}")
        at = time_of(value)
        if at is None:
            raise _RefusedError("bad_timestamp", f"`{type(value).__name__}` that is no time - at {column.names}")
        return at

    def _own_id(self, row: Row) -> str | None:
        column = self._columns.get("id")
        if column is None:
            return None
        value, _ = column.value(row)
        if value is None:
            raise _RefusedError("missing_field", f"no value - at {column.names}")
        return self._label("id", row)

    def _fields(self, row: Row, found: Found) -> dict[str, Any]:
        """Return the trace as builtins, without id and time. Records in `found` where each field was found."""
        question = self._text("question", "no_question", (QUESTION, USER), row, found)
        answer = self._text("answer", "no_answer", (ANSWER, ASSISTANT), row, found)
        labels = ("environment", "session", "prompt_version", "retriever", "reference_answer")
        fields: dict[str, Any] = {name: self._label(name, row) for name in labels}
        for name in ("app", "generator"):
            fields[name] = self._label(name, row) or getattr(self._settings, name) or UNKNOWN
        fields |= {name: self._number(name, row) for name in (*_NUMBERS, "tokens_in", "tokens_out", "repeat")}
        gold, _ = self._get("gold_chunk_ids", row)
        tags = {name: column.value(row)[0] for name, column in self._tags.items()}
        for name, where in (("session", "session"), ("timestamp", "timestamp")):
            if path := self._get(where, row)[1]:
                found.where[name] = path
        return {
            **fields,
            "question": question,
            "answer": answer,
            "chunks": named_chunks(self._documents(row, found), (), found),
            "gold_chunk_ids": None if gold is None else [i for g in _listed(gold) if (i := scalar(_plain(g)))],
            "tags": {name: text for name, value in tags.items() if (text := scalar(_plain(value)))},
            "feedback": self._feedback(row),
        }

    def _text(self, name: str, empty: Reason, form: tuple[list[str], set[str]], row: Row, found: Found) -> str:
        column = self._columns[name]
        value, path = column.value(row)
        if value is None and not column.there(row):
            raise _RefusedError("missing_field", f"no column {column.names}")
        # A text is used unchanged, even if it looks like JSON. A path such as `reply.text` looks into JSON.
        text = value if isinstance(value, str) else text_of(value, *form)
        if text is None and isinstance(value, int | float):
            raise column.wrong("str", value)
        if text is None or not text.strip():
            raise _RefusedError(empty, f"empty - at {column.names}")
        found.where[name] = path
        return text

    def _label(self, name: str, row: Row) -> str | None:
        value, _ = self._get(name, row)
        if value is None:
            return None
        text = scalar(_plain(value))
        if text is None:
            raise self._columns[name].wrong("str", value)
        return text

    def _number(self, name: str, row: Row) -> float | int | None:
        value, _ = self._get(name, row)
        if value is None:
            return None
        found = number(_plain(value)) if name in _NUMBERS else whole(_plain(value))
        if found is None:
            raise self._columns[name].wrong("float" if name in _NUMBERS else "int", value)
        return found

    def _feedback(self, row: Row) -> Feedback | None:
        value, _ = self._get("feedback", row)
        comment = self._label("feedback_comment", row)
        score = None
        if value is not None:
            word = scalar(_plain(value))
            score = self._settings.ratings.get(word) if word else None
            if score is None:
                score = float(value) if isinstance(value, bool) else number(_plain(value))
            if score is None:
                raise _RefusedError(
                    "wrong_type", f"neither a number nor a word of `ratings` - at {self._columns['feedback'].names}"
                )
        return None if score is None and comment is None else Feedback(score, comment)

    def _documents(self, row: Row, found: Found) -> list[Document]:
        value, path = self._get("chunks", row)
        if value is None:
            found.missed["chunks"] = "no_chunks"
            return []
        items = _listed(value)
        if isinstance(items[0] if items else None, str) and len(items) == 1 and _CUT_LIST.match(items[0]):
            raise _RefusedError("wrong_type", f"a list that was cut off, or is none - at `{path}`")
        documents = [self._document(item) for item in items]
        for name in ("chunk_ids", "chunk_scores"):
            apart, _ = self._get(name, row)
            if apart is None:
                continue
            listed = _listed(apart)
            if len(listed) != len(documents):
                detail = f"{len(listed)} values, {len(documents)} chunks - at {self._columns[name].names}"
                raise _RefusedError("wrong_type", detail)
            if name == "chunk_ids":
                documents = [
                    Document(d.text, scalar(_plain(i)) or d.id, d.score, d.metadata)
                    for d, i in zip(documents, listed, strict=True)
                ]
            else:
                documents = [
                    Document(d.text, d.id, d.score if i is None else number(_plain(i)), d.metadata)
                    for d, i in zip(documents, listed, strict=True)
                ]
        if documents and not any(d.text.strip() for d in documents):
            raise _RefusedError("no_chunk_text", f"none of {len(documents)} chunks has a text - at `{path}`")
        if documents:
            found.where["chunks"] = path
            apart = self._columns.get("chunk_ids") or self._chunk.get("id")
            if apart and any(d.id for d in documents):
                found.where["ids"] = " or ".join(path for path, _ in apart.paths)
        else:
            found.missed["chunks"] = "no_chunks"
        return documents

    def _document(self, item: Any) -> Document:  # noqa: ANN401 - JSON
        """Return a passage, from the configured keys or else from the usual ones."""
        item = parsed(item) if isinstance(item, str) and item.startswith("{") else item
        if isinstance(item, str):
            return Document(item)
        document = next(iter(documents_of([item])), Document())
        if not isinstance(item, Mapping) or not self._chunk:
            return document
        value = {name: _plain(column.value(item)[0]) for name, column in self._chunk.items()}
        text = value.get("text", document.text)
        if text is not None and not isinstance(text, str):
            raise self._chunk["text"].wrong("str", text)
        own = scalar(value["id"]) if "id" in value else document.id
        score = number(value["score"]) if "score" in value else document.score
        more = {name: given for name, given in value.items() if name in ("doc_id", "title")}
        return Document(text or "", own, score, {**document.metadata, **more})


def time_of(value: object) -> datetime | None:
    """Return a time in UTC from a datetime, ISO 8601, or a number of units since 1970; None if it is invalid."""
    value = _plain(value)
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        value = float(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return moment(value.strip() if isinstance(value, str) else value)
    unit = next((unit for least, unit in _UNITS if abs(value) < least), None)
    if unit is None:
        return None
    try:
        whole_units = value if isinstance(value, int) else Decimal(str(value))
        return _EPOCH + timedelta(microseconds=int(whole_units * 10**6 // unit))
    except (OverflowError, ArithmeticError):
        return None


def _steps(path: str) -> list[str | int]:
    found = [int(n) if n else name for n, name in _STEP.findall(path.removeprefix("$").removeprefix("."))]
    return found or [path]


def _at(value: Any, steps: Sequence[str | int]) -> Any:  # noqa: ANN401 - JSON
    """Return the value at a path, also inside JSON texts; None if the path is missing."""
    for step in steps:
        value = parsed(value)
        if isinstance(step, str) and isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def _plain(value: Any) -> Any:  # noqa: ANN401 - of whatever type a database has
    """Convert a database value to a JSON value. Times are kept, and dates become times."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and abs(value) < 2**63 else float(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time(), UTC)
    return value


def _listed(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    """Return a list from a list, JSON or Python text, an object that contains a list, or a single item."""
    value = parsed(value)
    if isinstance(value, str):
        value = _python_list(value)
    if isinstance(value, Mapping):
        found = document(value)
        lists = [v for v in map(parsed, value.values()) if isinstance(v, list)]
        value = lists[0] if lists and not (found and found.text) else [value]
    return list(value) if isinstance(value, list | tuple) else [value]


def _python_list(text: str) -> object:
    """Parse a list that Python or NumPy printed. Any other text is returned unchanged.

    NumPy prints no commas, and Python would join adjacent texts, so commas are added between texts.
    """
    if not text.lstrip().startswith("["):
        return text
    words: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text.strip()).readline):
            if token.type == tokenize.STRING and words and words[-1][-1:] in "'\"":
                words.append(",")
            if token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER):
                words.append(token.string)
        found = ast.literal_eval(" ".join(words))
    except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
        return text
    return found if isinstance(found, list) else text


def _reject(row: Row, line: int, trace_id: str | None, reason: Reason, detail: str, at: datetime | None) -> Reject:
    raw = json.dumps(row, default=str, ensure_ascii=False).encode(errors="replace")
    return Reject(line, trace_id, reason, detail, raw, at.date() if at else None)
