"""Claims go out as files, people fill them in, and what comes back is what they said: every line, whatever is in it."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.core.errors import DataError, SourceError
from tasks.core.labeling import OF_CLAIMS, SAMPLING, Task
from tasks.review.files import content, entries, guard, unguard
from tasks.review.formats import CELL, as_csv, json_lines, label_studio, labeling_config
from tasks.review.lines import Entry, Line, Refusal

NASTY = [
    "=1+1",
    "+1",
    "-1",
    "@x",
    "'=1",
    "''",
    "'",
    "a\nb",
    "a\r\nb",
    'say "hi"',
    "</script>",
    ";",
    ",",
    "\t=",
    "1e5",
    "ß",
    "🙂",
]
plain = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.sampled_from(NASTY) | st.text(plain, max_size=30)
ids = (st.sampled_from(NASTY) | st.text(plain, min_size=1, max_size=12)).filter(bool)
names = texts.map(str.strip).filter(bool)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    answer = draw(texts)
    start = draw(st.integers(0, len(answer)))
    chunks = draw(st.lists(st.tuples(texts, texts, st.booleans()), max_size=3))
    return Task(
        trace_id=draw(ids),
        claim_id=draw(ids),
        sampling=draw(st.sampled_from(SAMPLING)),
        adjudicated=draw(st.booleans()),
        reviewer=draw(st.none() | names),
        context={
            "date": "2026-11-01", "app": draw(texts), "generator": "g", "claim": draw(texts), "question": draw(texts),
            "answer": answer, "span": [start, len(answer)],
            "chunks": [{"chunk_id": i, "title": None, "text": t, "cited": c} for i, t, c in chunks],
        },
    )  # fmt: skip


sheets = st.lists(st.tuples(tasks(), st.sampled_from([None, *OF_CLAIMS, "nonsense"]), st.none() | st.booleans()), max_size=5)  # fmt: skip
Sheet = Sequence[tuple[Task, str | None, bool | None]]


def read(data: str | bytes, name: str = "labels.jsonl") -> list[Entry]:
    return list(entries(data.encode() if isinstance(data, str) else data, Path(name)))


def check(sheet: Sheet, found: list[Entry]) -> None:
    """Lines in = labels + those that nobody filled in + refused; each label is what was said of its claim."""
    assert len(found) == len(sheet)
    for (task, label, misused), entry in zip(sheet, found, strict=True):
        if label is None:
            assert entry.content is None
        elif label == "nonsense":
            assert isinstance(entry.content, Refusal)
            assert entry.content.reason == "unknown_label"
        else:
            assert isinstance(entry.content, Line)
            line = (
                entry.content.trace_id,
                entry.content.claim_id,
                entry.content.label,
                entry.content.misused,
                entry.content.reviewer,
            )
            assert line == (task.trace_id, task.claim_id, label, misused, task.reviewer)
            assert (entry.content.sampling, bool(entry.content.adjudicated)) == (task.sampling, task.adjudicated)


@given(sheets)
def test_json_lines_come_back(sheet: Sheet) -> None:
    lines = [json.loads(line) for line in json_lines([t for t, _, _ in sheet]).split("\n") if line]
    assert len(lines) == len(sheet)
    for line, (_, label, misused) in zip(lines, sheet, strict=True):
        line.update(label=label, misused=misused)
    check(sheet, read("".join(json.dumps(line) + "\n" for line in lines)))


@given(sheets, st.sampled_from(",;\t"))
def test_csv_comes_back_as_spreadsheets_save_it(sheet: Sheet, delimiter: str) -> None:
    """Some separate cells by semicolons, and write TRUE in capitals."""
    header, *rows = csv.reader(io.StringIO(as_csv([t for t, _, _ in sheet]).removeprefix("\ufeff"), newline=""))
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(header)
    for row, (_, label, misused) in zip(rows, sheet, strict=True):
        row[header.index("label")] = (label or "").replace("_", " ").capitalize()
        row[header.index("misused")] = "" if misused is None else str(misused).upper()
        writer.writerow(row)
    check(sheet, read("\ufeff" + out.getvalue(), "labels.csv"))


@given(st.lists(tasks(), max_size=4))
def test_no_cell_begins_a_formula(found: list[Task]) -> None:
    """OWASP, "CSV Injection": a cell that begins with = + - @, a tab or a carriage return may be computed."""
    _, *rows = csv.reader(io.StringIO(as_csv(found), newline=""))
    assert len(rows) == len(found)
    assert not [cell for row in rows for cell in row if cell.startswith(tuple("=+-@\t\r"))]


@given(texts)
def test_a_guarded_text_is_found_again(text: str) -> None:
    assert unguard(guard(text)) == text


def task(**changes: Any) -> Task:
    context = {
        "date": "2026-11-01", "app": "shop", "generator": "g", "claim": "Tea <b>boils</b>", "question": "q",
        "answer": "So: Tea <b>boils</b>.", "span": [4, 20],
        "chunks": [{"chunk_id": "a", "title": "T", "text": "<i>x</i>", "cited": True}, {"chunk_id": "b", "title": None, "text": "y", "cited": False}],
    }  # fmt: skip
    return Task(**{"trace_id": "t", "claim_id": "c", "sampling": "random", "adjudicated": False, "reviewer": None, "context": context, **changes})  # fmt: skip


def test_a_cell_holds_no_more_than_a_spreadsheet_does() -> None:
    long = task(context={**task().context, "answer": "=" * 40_000})
    (row,) = csv.DictReader(io.StringIO(as_csv([long]).removeprefix("\ufeff"), newline=""))
    assert len(row["context.answer"]) == CELL
    assert row["context.answer"].endswith("(truncated: a cell can hold no more)")


def test_cells_may_be_longer_than_python_thinks() -> None:
    text = 'trace_id,claim_id,label,context.answer\nt,c,supported,"' + "x" * 300_000 + '"\n'
    (entry,) = read(text)
    assert isinstance(entry.content, Line)
    assert csv.field_size_limit() == 131_072  # as it was


CSV = "trace_id,claim,claim_id,span_start,span_end,label,misused,reviewer,reviewed_at,sampling,adjudicated,grade,value"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("t,Tea is hot,,,,Partially Supported,no,ann,2026-11-05T10:00:00Z,random,yes,,", {"label": "partially_supported", "misused": False, "adjudicated": True, "reviewed_at": datetime(2026, 11, 5, 10, tzinfo=UTC)}),
        ("t,,,3,9,cant_tell,,,,,,,", {"span": (3, 9), "misused": None}),
        ("t,,,,,wrong,,,,,,,", {"label": "wrong"}),
        ("t,,,,,right,, ann ,,,,,", {"reviewer": "ann"}),
        ("t,,,,,,,ann,,,,completeness,4", {"grade": "completeness", "value": 4.0, "label": None}),
        ("t,,,,,,,ann,,,,usefulness,N/A", {"grade": "usefulness", "value": None}),
        ("t,,,,,,,,,,,completeness,", None),
        ("t,,c,,,,,,,,,,", None),
        ("t,,c,,,supported,maybe,,,,,,", "wrong_type"),
        ("t,,,3,,supported,,,,,,,", "wrong_type"),
        ("t,,c,,,supported,,,5 Nov,,,,", "bad_timestamp"),
        (",,c,,,supported,,,,,,,", "missing_field"),
        ("t,,,,,,,,,,,completeness,6", "bad_value"),
        ("t,,,,,,,,,,,completeness,4.5", "bad_value"),
        ("t,,,,,,,,,,,kindness,4", "unknown_grade"),
        ("t,,c,,,,,,,,,completeness,4", "grade_of_answer"),
        ("t,,c,,,supported,,,,,,,,extra", "malformed_csv"),
        ('t,,c,,,"supp"orted,,,,,,,', "malformed_csv"),
    ],
)  # fmt: skip
def test_rows_of_csv(row: str, expected: Mapping[str, Any] | str | None) -> None:
    first, last = read(f"{CSV}\n{row}\n\nt,,c,,,supported,,,,,,,\n")
    if isinstance(expected, str):
        assert isinstance(first.content, Refusal)
        assert first.content.reason == expected
    elif expected is None:
        assert first.content is None
    else:
        assert {name: getattr(first.content, name) for name in expected} == expected
    assert isinstance(last.content, Line)  # a bad row harms no other
    assert (first.number, last.number) == (2, 4)


def test_a_column_that_is_unknown_is_refused() -> None:
    (entry,) = read("trace_id,claim_id,label,samplign\nt,c,supported,misused\n")
    assert isinstance(entry.content, Refusal)
    assert (entry.content.reason, entry.content.trace_id) == ("unknown_field", "t")


@pytest.mark.parametrize(("text", "message"), [("claim,label\nx,supported\n", "no column trace_id"), ("trace_id,label,label\n", "two columns")])  # fmt: skip
def test_a_csv_that_is_none(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(text, "labels.csv")


def test_bytes_that_are_not_utf8_are_refused_where_they_matter() -> None:
    """What is only shown may be anything; a name must be legible."""
    data = b"trace_id,claim_id,label,reviewer,context.answer\nt,c,supported,ann,\xff\nt,c,supported,\xe4nn,x\n"
    good, bad = read(data)
    assert isinstance(good.content, Line)
    assert isinstance(bad.content, Refusal)
    assert bad.content.reason == "invalid_utf8"
    bad.raw.encode()  # it can be stored


def test_what_is_kept_of_a_refused_line_has_no_context() -> None:
    line = {"trace_id": "t", "claim_id": "c", "label": "nonsense", "context": {"answer": "secret"}}
    (entry,) = read(json.dumps(line))
    assert json.loads(entry.raw) == {"trace_id": "t", "claim_id": "c", "label": "nonsense"}
    (entry,) = read("trace_id,claim_id,label,context.answer\nt,c,nonsense,secret\n")
    assert "secret" not in entry.raw
    (entry,) = read('{"trace_id": "t", "label": "\\ud800", "context": {"answer": "secret"}}')
    assert isinstance(entry.content, Refusal)
    entry.raw.encode()


# Label Studio. The form of an export is that of https://labelstud.io/guide/task_format.


def annotated(data: Mapping[str, Any], *annotations: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": 7, "data": data, "annotations": list(annotations), "drafts": [], "predictions": [], "project": 3}


def annotation(label: str | None, misused: str | None = None, **more: Any) -> dict[str, Any]:
    chosen = [(name, value) for name, value in (("label", label), ("misused", misused)) if value]
    result = [
        {"id": "x1", "from_name": n, "to_name": "claim", "type": "choices", "value": {"choices": [v]}}
        for n, v in chosen
    ]
    times = {"created_at": "2026-11-05T10:00:00.000000Z", "updated_at": "2026-11-05T11:00:00.500000Z"}
    return {
        "id": 1,
        "completed_by": 4,
        "result": result,
        "was_cancelled": False,
        "ground_truth": False,
        **times,
        **more,
    }


def contents(found: Iterable[Entry]) -> list[dict[str, Any] | None]:
    names = ("trace_id", "claim_id", "label", "misused", "reviewer", "sampling", "adjudicated", "comment")
    return [{n: getattr(e.content, n) for n in names} if e.content else None for e in found]


def test_label_studios_tasks_come_back_as_labels() -> None:
    """Two annotators, one by number and one by e-mail; a skipped annotation, one without a label, a task without any."""
    given_out = json.loads(label_studio([task(), task(claim_id="d", adjudicated=True, sampling="disputed")]))
    ann = {"id": 9, "email": "ann@example.com", "first_name": "", "last_name": ""}
    commented = annotation("supported", "not_misused")
    commented["result"].append({"from_name": "comment", "type": "textarea", "value": {"text": ["Only in part 2."]}})
    export = [
        annotated(
            given_out[0]["data"],
            commented,
            annotation("unsupported", "misused", completed_by=ann),
            annotation("supported", was_cancelled=True),
            annotation(None),
        ),
        annotated(given_out[1]["data"], annotation("cant_tell", ground_truth=True)),
        annotated(given_out[1]["data"]),
    ]
    found = read(json.dumps(export), "project-3.json")
    base = {"trace_id": "t", "claim_id": "c", "sampling": "random", "adjudicated": None, "comment": None}
    assert contents(found) == [
        {**base, "label": "supported", "misused": False, "reviewer": "label-studio:4", "comment": "Only in part 2."},
        {**base, "label": "unsupported", "misused": True, "reviewer": "ann@example.com"},
        None,
        None,
        {**base, "claim_id": "d", "label": "cant_tell", "misused": None, "reviewer": "label-studio:4", "sampling": "disputed", "adjudicated": True},
        None,
    ]  # fmt: skip
    assert isinstance(found[0].content, Line)
    assert found[0].content.reviewed_at == datetime(
        2026, 11, 5, 11, 0, 0, 500_000, tzinfo=UTC
    )  # when it was changed last


def test_a_label_that_was_starred_as_ground_truth_is_an_adjudication() -> None:
    data = json.loads(label_studio([task()]))[0]["data"]
    (entry,) = read(json.dumps([annotated(data, annotation("supported", ground_truth=True))]))
    assert isinstance(entry.content, Line)
    assert entry.content.adjudicated is True


@pytest.mark.parametrize("item", [3, {"id": 1, "claim": "x", "label": "supported", "annotator": 1}, {"data": {}, "annotations": 1}])  # fmt: skip
def test_another_export_of_label_studio_is_told(item: object) -> None:
    (entry,) = read(json.dumps([item]))
    assert isinstance(entry.content, Refusal)
    assert "not as JSON-MIN" in entry.content.detail


def test_label_studio_is_shown_texts_and_no_markup_of_theirs() -> None:
    (made,) = json.loads(label_studio([task()]))
    data = made["data"]
    assert "<mark>Tea &lt;b&gt;boils&lt;/b&gt;</mark>." in data["answer_html"]
    assert "<i>" not in data["chunks_html"]
    assert "judge" not in data


def test_the_labeling_config_asks_for_what_the_import_reads() -> None:
    """Names of the choices are what an export has: aliases, since they take the place of values."""
    root = ElementTree.fromstring(labeling_config())
    choices = {c.get("name"): [x.get("alias") for x in c] for c in root.iter("Choices")}
    assert choices == {"label": list(OF_CLAIMS), "misused": ["not_misused", "misused"]}
    objects = {e.get("name") for e in root.iter() if e.tag in ("Text", "HyperText")}
    assert {c.get("toName") for c in root.iter("Choices")} <= objects
    shown = {str(e.get("value")).removeprefix("$") for e in root.iter() if str(e.get("value")).startswith("$")}
    (made,) = json.loads(label_studio([task()]))
    assert shown <= set(made["data"])
    assert "judge" not in shown


def test_label_studio_shows_what_the_judge_says_where_that_is_asked_for() -> None:
    """A tag Text shows a string, so that is what the tasks hold."""
    verdict = {"label": "supported", "p_supported": 0.9}
    (made,) = json.loads(label_studio([task(context={**task().context, "judge": verdict})]))
    assert json.loads(made["data"]["judge"]) == verdict
    root = ElementTree.fromstring(labeling_config(show_judge=True))
    assert [e.get("value") for e in root.iter("Text")] == ["$question", "$claim", "$judge"]


def test_a_list_in_json_lines_is_not_taken_for_an_export() -> None:
    first, second = read('[]\n{"trace_id": "t", "label": "right"}\n')
    assert isinstance(first.content, Refusal)
    assert isinstance(second.content, Line)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        content(tmp_path / "none.csv")
