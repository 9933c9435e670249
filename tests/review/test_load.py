"""People's labels come into the lake: each line in its place or refused with a reason, and no label twice."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kit.stage_kit import DAY, context, put, rows, trace

from tasks.claims.extract import extract_claims
from tasks.core import keys
from tasks.core.errors import DataError, SourceError
from tasks.core.schemas import CLAIMS, QUARANTINE, REVIEWS
from tasks.review.load import STAGE, import_reviews
from tasks.run.context import Context

ANSWER = "Tea is hot [a]. Water\nboils [a]. Tea is fine. Tea is fine."
WHEN = "2026-11-05T10:00:00+01:00"
SECRET = "the customer's secret"


@pytest.fixture
def ctx(tmp_path: Path) -> Context:
    made = context(tmp_path, gates={"max_quarantined_share": 0.5})
    put(made, trace("t", ANSWER), trace("u", "One. Two."))
    return made


def labels(ctx: Context, lines: Iterable[object], name: str = "labels.jsonl") -> Path:
    path = ctx.config.lake.parent / name
    path.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines), encoding="utf-8")
    return path


def placed(row: dict[str, Any]) -> tuple[str, str] | None:
    """What text of which answer a review is of."""
    answer = {"t": ANSWER, "u": "One. Two."}[row["trace_id"]]
    return None if row["span_start"] is None else (row["trace_id"], answer[row["span_start"] : row["span_end"]])


def test_labels_are_placed_by_text_by_span_or_by_id(ctx: Context) -> None:
    extract_claims(ctx)
    claim = next(c for c in rows(ctx, CLAIMS) if c["trace_id"] == "t" and c["ordinal"] == 0)
    result = import_reviews(
        ctx,
        labels(ctx, [
            {"trace_id": "t", "claim": " Water boils ", "label": "contradicted", "misused": True, "reviewer": "ann", "reviewed_at": WHEN, "sampling": "misused"},
            "",
            {"trace_id": "t", "span": [0, 10], "label": "cant_tell"},
            {"trace_id": "t", "claim_id": claim["claim_id"], "label": "supported", "misused": False},
            {"trace_id": "u", "label": "wrong"},
        ]),
    )  # fmt: skip
    assert (result.stage, result.computed, result.reused, result.notes) == (STAGE, 4, 0, ())
    found = {r["label"]: r for r in rows(ctx, REVIEWS)}
    assert {label: placed(r) for label, r in found.items()} == {
        "contradicted": ("t", "Water\nboils"),  # spaces and line breaks are all the same
        "cant_tell": ("t", "Tea is hot"),
        "supported": ("t", "Tea is hot"),  # where the claim stands
        "wrong": None,
    }
    first = found["contradicted"]
    assert first["reviewed_at"] == datetime(2026, 11, 5, 9, tzinfo=UTC)
    assert (first["date"], first["misused"], first["reviewer"], first["sampling"]) == (DAY, True, "ann", "misused")
    assert found["supported"]["claim_id"] == claim["claim_id"]
    assert found["cant_tell"]["claim_id"] is found["wrong"]["sampling"] is found["wrong"]["reviewed_at"] is None


def test_a_comment_is_kept_and_makes_no_other_label(ctx: Context) -> None:
    """It is in no id: two files that differ in it have one label, and a guess of it can't be confirmed."""
    extract_claims(ctx)
    claim = next(c for c in rows(ctx, CLAIMS) if c["trace_id"] == "t" and c["ordinal"] == 0)
    of = {"trace_id": "t", "claim_id": claim["claim_id"], "label": "not_a_claim"}
    import_reviews(ctx, labels(ctx, [{**of, "comment": "A greeting."}, {**GOOD, "comment": ""}]))
    found = {r["label"]: r["comment"] for r in rows(ctx, REVIEWS)}
    assert found == {"not_a_claim": "A greeting.", GOOD["label"]: None}
    assert import_reviews(ctx, labels(ctx, [{**of, "comment": "Hello."}], "more.jsonl")).computed == 0


def test_labels_keep_their_ids_though_lines_can_say_more_now(ctx: Context) -> None:
    """Else a file from before there were grades would be imported a second time."""
    import_reviews(ctx, labels(ctx, [GOOD, {**GOOD, "adjudicated": False, "context": {"x": 1}}]))
    (row,) = rows(ctx, REVIEWS)
    names = (
        "trace_id",
        "span_start",
        "span_end",
        "claim_id",
        "label",
        "misused",
        "reviewer",
        "reviewed_at",
        "sampling",
    )
    assert row["review_id"] == keys.key(msgspec.json.encode({name: row[name] for name in names}))


def test_grades_are_stored_beside_labels(ctx: Context) -> None:
    lines = [
        {"trace_id": "t", "grade": "completeness", "value": 4, "reviewer": "ann"},
        {"trace_id": "t", "grade": "completeness", "value": None, "reviewer": "bob", "adjudicated": True},
        {"trace_id": "t", "label": None, "claim": "Tea is hot"},
    ]
    result = import_reviews(ctx, labels(ctx, lines))
    assert (result.computed, result.notes) == (2, ("1 lines have no label; they were left out.",))
    found = {
        r["reviewer"]: (r["label"], r["grade"], r["value"], r["adjudicated"], r["date"]) for r in rows(ctx, REVIEWS)
    }
    assert found == {"ann": (None, "completeness", 4.0, None, DAY), "bob": (None, "completeness", None, True, DAY)}
    assert import_reviews(ctx, labels(ctx, lines)).computed == 0


def test_a_fact_that_shares_its_sentence_has_no_span_of_its_own(ctx: Context) -> None:
    extract_claims(ctx)
    (part,) = ctx.lake.parts(CLAIMS)
    claims = [{**c, "span_start": 0, "span_end": 9} if c["trace_id"] == "u" else c for c in part.read().to_pylist()]
    ctx.lake.write(CLAIMS, part.name, part.read().schema.empty_table().from_pylist(claims, part.read().schema), *part.partition)  # fmt: skip
    one, two = (c["claim_id"] for c in claims if c["trace_id"] == "u")
    lines = [{"trace_id": "u", "claim_id": one, "label": "supported"}, {"trace_id": "u", "claim_id": two, "label": "unsupported"}]  # fmt: skip
    assert import_reviews(ctx, labels(ctx, lines)).computed == 2
    assert {(r["claim_id"], r["span_start"]) for r in rows(ctx, REVIEWS)} == {(one, None), (two, None)}


GOOD = {"trace_id": "t", "claim": "Tea is hot", "label": "supported"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f'{{"trace_id": "t", "claim": "{SECRET}"', "malformed_json"),
        ([], "wrong_type"),
        ({**GOOD, "label": 1}, "wrong_type"),
        ({"trace_id": "t"}, "missing_field"),
        ({**GOOD, "remark": SECRET}, "unknown_field"),
        ({**GOOD, "trace_id": ""}, "empty_id"),
        ({**GOOD, "reviewed_at": "2026-11-05T10:00:00"}, "timestamp_without_zone"),
        ({**GOOD, "reviewed_at": "9999-12-31T23:00:00-10:00"}, "bad_timestamp"),
        ({**GOOD, "claim": f"{SECRET}\0"}, "nul_character"),
        ({**GOOD, "label": SECRET}, "unknown_label"),
        ({**GOOD, "sampling": SECRET}, "unknown_sampling"),
        ({**GOOD, "span": [0, 3]}, "several_targets"),
        ({**GOOD, "value": 3}, "value_without_grade"),
        ({"trace_id": "t", "grade": "kindness", "value": 1}, "unknown_grade"),
        ({"trace_id": "t", "grade": "completeness"}, "missing_field"),
        ({"trace_id": "t", "grade": "completeness", "value": 0}, "bad_value"),
        ({"trace_id": "t", "grade": "usefulness", "value": 0.5}, "bad_value"),
        ({**GOOD, "grade": "usefulness", "value": 1}, "grade_of_answer"),
        ({"trace_id": "elsewhere", "grade": "usefulness", "value": 1}, "unknown_trace"),
        ({**GOOD, "label": "right"}, "label_of_answer"),
        ({"trace_id": "t", "label": "wrong", "misused": True}, "label_of_answer"),
        ({"trace_id": "t", "label": "cant_tell"}, "no_claim"),
        ({**GOOD, "trace_id": "elsewhere"}, "unknown_trace"),
        ({"trace_id": "t", "claim_id": SECRET, "label": "supported"}, "unknown_claim"),
        ({"trace_id": "t", "span": [9, 999], "label": "supported"}, "bad_span"),
        ({"trace_id": "t", "span": [9, 9], "label": "supported"}, "bad_span"),
        ({"trace_id": "t", "span": [-1, 9], "label": "supported"}, "out_of_range"),
        ({"trace_id": "t", "claim": SECRET, "label": "supported"}, "claim_not_found"),
        ({"trace_id": "t", "claim": " ", "label": "supported"}, "claim_not_found"),
        ({"trace_id": "t", "claim": "Tea is fine", "label": "supported"}, "claim_ambiguous"),
    ],
)
def test_a_bad_line_is_refused_and_harms_no_other(ctx: Context, line: object, reason: str) -> None:
    path = labels(ctx, [GOOD, line])
    result = import_reviews(ctx, path)
    (refused,) = rows(ctx, QUARANTINE)
    assert (result.computed, len(rows(ctx, REVIEWS))) == (1, 1)
    assert (refused["stage"], refused["line"], refused["source"]) == (STAGE, 2, str(path))
    assert refused["reason"] == reason
    assert SECRET not in refused["detail"] + result.notes[0]  # the row is kept in `raw` alone
    assert refused["raw"] == (line if isinstance(line, str) else json.dumps(line))


def test_the_same_file_again_is_nothing_to_do(ctx: Context) -> None:
    path = labels(ctx, [GOOD, GOOD])
    assert (import_reviews(ctx, path).computed, import_reviews(ctx, path).computed) == (1, 0)
    (before,) = (p.path.stat().st_mtime_ns for p in ctx.lake.parts(REVIEWS))
    again = import_reviews(ctx, path.rename(path.with_name("renamed.jsonl")))
    assert (again.computed, again.reused) == (0, 2)
    assert [p.path.stat().st_mtime_ns for p in ctx.lake.parts(REVIEWS)] == [before]


def test_a_file_that_has_grown_adds_what_is_new(ctx: Context) -> None:
    import_reviews(ctx, labels(ctx, [GOOD]))
    more = {**GOOD, "reviewer": "bob"}
    result = import_reviews(ctx, labels(ctx, [GOOD, more]))
    assert (result.computed, result.reused) == (1, 1)
    assert sorted(str(r["reviewer"]) for r in rows(ctx, REVIEWS)) == ["None", "bob"]


def test_a_line_whose_trace_comes_later_is_taken_then(ctx: Context) -> None:
    path = labels(ctx, [GOOD, {**GOOD, "trace_id": "late"}])
    import_reviews(ctx, path)
    (first,) = rows(ctx, REVIEWS)
    put(ctx, trace("late"), name="1111111111111111-00000")
    result = import_reviews(ctx, path)
    assert (result.computed, result.reused, result.notes, rows(ctx, QUARANTINE)) == (1, 1, (), [])
    assert {r["trace_id"]: r for r in rows(ctx, REVIEWS)}["t"] == first  # the earlier label keeps its time of import


def test_a_label_stays_when_its_place_can_t_be_found_any_more(ctx: Context) -> None:
    """The text of its trace is gone, while another trace of the file has come: docs/reviews.md, labels are never deleted."""
    path = labels(ctx, [GOOD, {**GOOD, "trace_id": "late"}])
    import_reviews(ctx, path)
    put(ctx, trace("t", " "))  # in the place of the part that holds its answer
    put(ctx, trace("late"), name="1111111111111111-00000")
    result = import_reviews(ctx, path)
    assert result.computed == 1
    assert sorted(r["trace_id"] for r in rows(ctx, REVIEWS)) == ["late", "t"]
    assert [r["reason"] for r in rows(ctx, QUARANTINE)] == ["claim_not_found"]


def test_too_many_bad_lines_stop_it_and_nothing_is_kept(ctx: Context) -> None:
    bad = {**GOOD, "label": SECRET}
    path = labels(ctx, [GOOD, bad, bad, {**GOOD, "label": None}])  # a line that nobody filled in says nothing
    with pytest.raises(DataError, match=r"2 of 3 lines were refused \(unknown_label 2\)") as stopped:
        import_reviews(ctx, path)
    assert SECRET not in str(stopped.value)
    assert (rows(ctx, REVIEWS), len(rows(ctx, QUARANTINE))) == ([], 2)


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_file_that_can_t_be_read_is_reported(ctx: Context, name: str) -> None:
    with pytest.raises(SourceError, match=r"docs/reviews\.md"):
        import_reviews(ctx, ctx.config.lake.parent / name)


def test_an_empty_file_is_a_file(ctx: Context) -> None:
    assert import_reviews(ctx, labels(ctx, ["", " "])).computed == 0
