"""The gates: which traces and results are refused and why, unusual nights, and which results are kept."""

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tasks.core.config import Gates
from tasks.core.schemas import CLAIM_RESULTS, CLAIMS, TRACE_SCORES, TRACES
from tasks.gates.frames import claim_frame, score_frame, trace_frame, volume_frame
from tasks.gates.gates import GateKeeper, first_broken
from tasks.gates.rules import CLAIM_RULES, SCORE_RULES, VOLUME_RULES, Rule, trace_rules
from tasks.gates.validator import Validator

DAY = date(2026, 11, 1)
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
SMALL = Gates(
    max_question_chars=5,
    max_answer_chars=6,
    max_chunk_chars=4,
    max_chunks=3,
    max_age_days=10,
    max_ahead_days=1,
    volume_nights=4,
    volume_ratio=3,
)


@pytest.fixture
def keeper() -> GateKeeper:
    return GateKeeper(SMALL, None)


def chunk(chunk_id: str, text: str = "text") -> dict[str, Any]:
    return {"chunk_id": chunk_id, "text": text}


def trace(**changes: Any) -> dict[str, Any]:
    good = {
        "trace_id": "t",
        "timestamp": NOON,
        "app": "app",
        "question": "why?",
        "answer": "so.",
        "chunks": [chunk("a"), chunk("b")],
        "generator": "g",
        "tags": {},
        "content_hash": "0",
    }
    return good | changes


def traces(*rows: dict[str, Any]) -> pa.Table:
    schema = TRACES.stored.append(pa.field("line", pa.int64()))
    return pa.Table.from_pylist([{"line": i + 1, **row} for i, row in enumerate(rows)], schema=schema)


def check(keeper: GateKeeper, *rows: dict[str, Any], today: date = DAY) -> list[SimpleNamespace]:
    found = keeper.check_traces(traces(*rows), DAY, today)
    return [SimpleNamespace(**row) for row in found.iter_rows(named=True)]


def narrow(table: pa.Table) -> pl.DataFrame:
    return trace_frame(table, DAY, DAY)


class TestFrame:
    def test_counts_and_lengths(self) -> None:
        late = datetime(2026, 11, 1, 23, 30, tzinfo=UTC).astimezone()
        rows = [
            trace(trace_id="x", timestamp=late, question=" \u3000é😀\n", answer="  ", chunks=[]),
            trace(chunks=[chunk("a", "12"), chunk("b", " 345 "), chunk("a", "")]),
        ]
        found = narrow(traces(*rows)).drop("days_before_range", "days_ahead").to_dicts()
        # two characters of the question stand between white space; a chunk is measured as it is
        assert found == [
            {"trace_id": "x", "date": DAY, "question_chars": 2, "answer_chars": 0}
            | {"chunks": 0, "distinct_chunk_ids": 0, "longest_chunk_chars": 0},
            {"trace_id": "t", "date": DAY, "question_chars": 4, "answer_chars": 3}
            | {"chunks": 3, "distinct_chunk_ids": 2, "longest_chunk_chars": 5},
        ]

    def test_a_slice_of_several_chunks_is_measured_like_its_rows(self) -> None:
        rows = [trace(trace_id=str(i), chunks=[chunk(str(j), "x" * i) for j in range(i)]) for i in range(9)]
        table = pa.concat_tables([traces(*rows[:4]), traces(*rows[4:])]).slice(2, 6)
        found = narrow(table)
        assert found["trace_id"].to_list() == list("234567")
        assert found["chunks"].to_list() == found["longest_chunk_chars"].to_list() == [2, 3, 4, 5, 6, 7]

    def test_no_text_column_is_left(self) -> None:
        assert narrow(traces(trace())).select(pl.col(pl.String)).columns == ["trace_id"]

    def test_an_empty_table(self) -> None:
        assert narrow(traces()).is_empty()


class TestTraces:
    @pytest.mark.parametrize(
        ("changes", "reason", "detail"),
        [
            ({"timestamp": NOON - timedelta(days=11)}, "timestamp_out_of_window", "11, date = 2026-10-21: .* 10"),
            ({"timestamp": NOON + timedelta(days=2)}, "timestamp_out_of_window", "2, date = 2026-11-03: .* 1"),
            ({"question": " \n\u3000"}, "empty_question", "0: .* 1"),
            ({"question": "123456"}, "question_too_long", "6: .* 5"),
            ({"answer": "1234567"}, "answer_too_long", "7: .* 6"),
            ({"chunks": [chunk(c) for c in "abcd"]}, "too_many_chunks", "4: .* 3"),
            ({"chunks": [chunk("a"), chunk("b", "12345")]}, "chunk_too_long", "5: .* 4"),
            ({"chunks": [chunk("a"), chunk("a")]}, "duplicate_chunk_id", "chunks = 2, distinct_chunk_ids = 1"),
        ],
    )
    def test_each_reason_names_its_row_value_and_limit(
        self, keeper: GateKeeper, changes: dict[str, Any], reason: str, detail: str
    ) -> None:
        (found,) = check(keeper, trace(), trace(**changes), trace())
        assert (found.row, found.reason) == (1, reason)
        assert re.search(detail, found.detail)

    def test_exactly_the_limit_passes(self, keeper: GateKeeper) -> None:
        first = datetime.combine(DAY - timedelta(days=10), time.min, UTC)
        last = datetime.combine(DAY + timedelta(days=1), time.max, UTC)
        full = trace(question=" 12345 ", answer="123456\n", chunks=[chunk(c, "1234") for c in "abc"])
        assert check(keeper, trace(timestamp=first), trace(timestamp=last), full, trace(chunks=[])) == []

    def test_one_moment_beyond_the_window_is_refused(self, keeper: GateKeeper) -> None:
        tick = timedelta(microseconds=1)
        first = datetime.combine(DAY - timedelta(days=10), time.min, UTC) - tick
        last = datetime.combine(DAY + timedelta(days=1), time.max, UTC) + tick
        assert [r.row for r in check(keeper, trace(timestamp=first), trace(timestamp=last))] == [0, 1]

    def test_the_window_reaches_to_today_when_an_older_range_is_asked_for(self, keeper: GateKeeper) -> None:
        rows = [trace(timestamp=NOON + timedelta(days=n)) for n in (6, 7)]
        assert [r.row for r in check(keeper, *rows, today=DAY + timedelta(days=5))] == [1]

    def test_the_window_reaches_to_a_last_day_in_the_future(self, keeper: GateKeeper) -> None:
        assert check(keeper, trace(timestamp=NOON + timedelta(days=1)), today=DAY - timedelta(days=30)) == []

    def test_timestamps_at_the_ends_of_the_calendar(self, keeper: GateKeeper) -> None:
        ends = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)]
        assert [r.reason for r in check(keeper, *[trace(timestamp=t) for t in ends])] == ["timestamp_out_of_window"] * 2

    def test_a_row_is_refused_once_for_its_first_reason(self, keeper: GateKeeper) -> None:
        (found,) = check(keeper, trace(question="123456", answer="1234567", chunks=[chunk("a"), chunk("a")]))
        assert found.reason == "question_too_long"

    def test_more_bad_rows_than_great_expectations_samples(self, keeper: GateKeeper) -> None:
        rows = [trace(question="" if i % 2 else "why?") for i in range(2_000)]
        assert [r.row for r in check(keeper, *rows)] == list(range(1, 2_000, 2))

    def test_rows_are_numbered_from_the_start_of_a_slice(self, keeper: GateKeeper) -> None:
        found = keeper.check_traces(traces(trace(), trace(), trace(question="")).slice(1), DAY, DAY)
        assert found["row"].to_list() == [1]

    def test_an_empty_table_is_not_worth_an_import(self, tmp_path: Path) -> None:
        program = (
            "import sys; from datetime import date; from pathlib import Path\n"
            "from tasks.core.config import Gates; from tasks.core.schemas import TRACES\n"
            "from tasks.gates.gates import GateKeeper\n"
            f"path = Path({str(tmp_path / 'gates')!r}); keeper = GateKeeper(Gates(), path); day = date(2026, 11, 1)\n"
            "assert keeper.check_traces(TRACES.stored.empty_table(), day, day).is_empty()\n"
            "keeper.write_results('run')\n"
            "assert not path.exists()\n"
            "assert 'great_expectations' not in sys.modules"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@dataclass(frozen=True)
class Row:
    """A trace as the predicate below sees it: plain values."""

    days: int
    question: str
    answer: str
    chunks: tuple[tuple[str, str], ...]

    @property
    def refused(self) -> bool:
        """Written from the documentation of `Gates`, in plain Python."""
        ids = [c for c, _ in self.chunks]
        return not (
            -10 <= self.days <= 1
            and 1 <= len(self.question.strip()) <= 5
            and len(self.answer.strip()) <= 6  # an empty one is no answer, and no mistake of the log
            and len(ids) <= 3
            and len(set(ids)) == len(ids)
            and all(len(text) <= 4 for _, text in self.chunks)
        )

    def as_trace(self) -> dict[str, Any]:
        when = NOON + timedelta(days=self.days)
        chunks = [chunk(c, t) for c, t in self.chunks]
        return trace(timestamp=when, question=self.question, answer=self.answer, chunks=chunks)


WORDS = st.text(" \n\x1c\u3000\u00a0aé😀", max_size=8)
ROWS = st.builds(
    Row,
    days=st.integers(-12, 3),
    question=st.one_of(st.just("why?"), WORDS),
    answer=st.one_of(st.just("so."), WORDS),
    chunks=st.lists(st.tuples(st.sampled_from("abcde"), st.text("xé😀", max_size=5)), max_size=5).map(tuple),
)


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(ROWS, max_size=20))
def test_refused_exactly_when_a_limit_is_broken(rows: list[Row]) -> None:
    refused = [r.row for r in check(GateKeeper(SMALL, None), *[row.as_trace() for row in rows])]
    passed = [i for i in range(len(rows)) if i not in refused]
    assert len(refused) + len(passed) == len(rows)
    assert refused == [i for i, row in enumerate(rows) if row.refused]


class TestVolume:
    # The median of 60, 100, 140, 100 is 100; a third and three times of it are still usual.
    RECENT = (60, 100, 140, 100)

    @pytest.mark.parametrize(("n", "warned"), [(33, True), (34, False), (100, False), (300, False), (301, True)])
    def test_a_night_is_held_against_the_median(self, keeper: GateKeeper, n: int, warned: bool) -> None:
        found = keeper.check_volume({DAY: n}, self.RECENT)
        assert len(found) == int(warned)
        assert all("2026-11-01" in w and str(n) in w and "300" in w and "100" in w for w in found)

    def test_every_night_by_itself(self, keeper: GateKeeper) -> None:
        counts = {DAY: 1, DAY + timedelta(days=1): 100, DAY + timedelta(days=2): 900}
        assert [w[:10] for w in keeper.check_volume(counts, self.RECENT)] == ["2026-11-01", "2026-11-03"]

    def test_only_the_last_nights_count(self, keeper: GateKeeper) -> None:
        assert keeper.check_volume({DAY: 100}, (9_000, 9_000, 9_000, 9_000, *self.RECENT)) == []

    def test_too_few_nights_say_nothing(self, keeper: GateKeeper) -> None:
        assert keeper.check_volume({DAY: 1}, (100, 100)) == []

    def test_it_can_be_switched_off(self) -> None:
        assert GateKeeper(Gates(volume_nights=0), None).check_volume({DAY: 1}, self.RECENT) == []


def result(claim: str, trace_id: str, status: str = "judged", label: str | None = "supported") -> dict[str, Any]:
    ids = {"recipe": "r", "date": DAY, "claim_id": claim, "trace_id": trace_id, "judge_version": "j"}
    judged = {"confidence": 0.9, "p_supported": 1.0, "p_contradicted": 0.0} if status == "judged" else {}
    lists: dict[str, Any] = {"deciding_chunk_ids": [], "cited_support": [], "patterns": []}
    counts = {"n_pairs": 2, "n_pairs_unjudged": 0}
    return {
        **ids,
        **lists,
        **counts,
        **judged,
        "status": status,
        "label": label,
        "misused": False,
        "needs_review": False,
    }


def score(trace_id: str, status: str, **changes: Any) -> dict[str, Any]:
    ids = {"recipe": "r", "date": DAY, "trace_id": trace_id, "timestamp": NOON, "app": "a", "generator": "g"}
    zeros = dict.fromkeys((f.name for f in TRACE_SCORES.schema if f.name.startswith("claims_")), 0)
    rest = {"citations_dangling": 0, "chunks_retrieved": 2, "judge_version": "j", "groundedness_status": status}
    relevance = {"context_relevance_status": "scored", "context_relevance": 0.5, "chunks_relevant": 1}
    answer = {"answer_relevance_status": "scored", "answer_relevance": 1.0, "waterfall": "faithfulness"}
    return {**ids, **zeros, **rest, **relevance, **answer, **changes}


def results() -> dict[str, list[dict[str, Any]]]:
    """Three traces: four claims of every kind, no context (its claim has nothing to be held against), no claims."""
    claims = [
        result("c0", "t0"),
        result("c1", "t0", label="unsupported"),
        result("c2", "t0", "unjudged", None),
        result("c3", "t0", "abstained", None),
        result("c4", "t1", "na", None),
    ]
    numbers = {"groundedness_score": 0.0, "faithfulness": 0.5, "chunks_used": 1, "utilization": 0.5}
    counts = {"claims_total": 4, "claims_judged": 2, "claims_supported": 1, "claims_unsupported": 1}
    rest = {"claims_unjudged": 1, "claims_abstained": 1, "claims_misused": 1}
    claims[1]["misused"] = True
    bare = {"chunks_retrieved": 0, "context_relevance_status": "na", "context_relevance": None, "chunks_relevant": None}
    unscored = {"answer_relevance_status": "unjudged", "answer_relevance": None}
    scores = [
        score("t0", "scored", **numbers, **counts, **rest),
        score("t1", "na", claims_total=1, **bare),
        score("t2", "na", **unscored),
    ]
    ids = [{k: c[k] for k in ("claim_id", "trace_id", "date")} | {"extractor_version": "e"} for c in claims]
    blank = {"ordinal": 0, "text": "", "span_start": 0, "span_end": 0, "cited_chunk_ids": [], "dangling_citations": []}
    return {
        "claims": [i | blank for i in ids],
        "results": claims,
        "scores": scores,
        "traces": [{"trace_id": f"t{n}"} for n in range(3)],
    }


def check_results(keeper: GateKeeper, rows: dict[str, list[dict[str, Any]]]) -> list[tuple[str, str]]:
    found = keeper.check_results(
        pa.Table.from_pylist(rows["claims"], schema=CLAIMS.schema),
        pa.Table.from_pylist(rows["results"], schema=CLAIM_RESULTS.schema),
        pa.Table.from_pylist(rows["scores"], schema=TRACE_SCORES.schema),
        pa.Table.from_pylist(rows["traces"], schema=pa.schema([("trace_id", pa.string())])),
    )
    assert all(found["detail"])
    return found.select("trace_id", "reason").rows()


class TestResults:
    def test_good_results(self, keeper: GateKeeper) -> None:
        assert check_results(keeper, results()) == []

    def test_no_results_for_nothing(self, keeper: GateKeeper) -> None:
        assert check_results(keeper, {"claims": [], "results": [], "scores": [], "traces": []}) == []

    @pytest.mark.parametrize(
        ("claim", "changes", "reason"),
        [
            (0, {"status": "done"}, "status_not_in_set"),
            (0, {"label": "abstained"}, "label_not_in_set"),
            (0, {"label": "true"}, "label_not_in_set"),
            (0, {"label": None}, "label_does_not_match_status"),
            (2, {"label": "supported"}, "label_does_not_match_status"),
            (4, {"label": "contradicted"}, "label_does_not_match_status"),
            (0, {"confidence": 1.01}, "score_out_of_bounds"),
            (0, {"confidence": float("nan")}, "score_out_of_bounds"),
            (0, {"p_supported": -0.01}, "score_out_of_bounds"),
            (0, {"p_contradicted": 2.0}, "score_out_of_bounds"),
            (0, {"n_pairs_unjudged": -1}, "negative_count"),
            (0, {"n_pairs_unjudged": 3}, "counts_do_not_add_up"),
            (0, {"claim_id": "c9"}, "result_without_claim"),
        ],
    )
    def test_a_bad_claim_result(self, keeper: GateKeeper, claim: int, changes: dict[str, Any], reason: str) -> None:
        rows = results()
        rows["results"][claim] |= changes
        assert (rows["results"][claim]["trace_id"], reason) in check_results(keeper, rows)

    @pytest.mark.parametrize(
        ("row", "changes", "reason"),
        [
            (0, {"groundedness_status": "ok"}, "status_not_in_set"),
            (0, {"context_relevance_status": "abstained"}, "status_not_in_set"),
            (0, {"answer_relevance_status": "abstained"}, "status_not_in_set"),
            (0, {"answer_relevance_status": "na"}, "score_does_not_match_status"),
            (0, {"groundedness_score": None}, "score_does_not_match_status"),
            (0, {"faithfulness": None}, "score_does_not_match_status"),
            (0, {"chunks_relevant": None}, "score_does_not_match_status"),
            (1, {"groundedness_score": 0.0}, "score_does_not_match_status"),
            (1, {"context_relevance": 0.0}, "score_does_not_match_status"),
            (2, {"answer_relevance": 0.0}, "score_does_not_match_status"),
            (0, {"groundedness_score": 100.5}, "score_out_of_bounds"),
            (0, {"groundedness_score": -0.1}, "score_out_of_bounds"),
            (0, {"groundedness_score": float("nan")}, "score_out_of_bounds"),
            (0, {"faithfulness": 1.5}, "score_out_of_bounds"),
            (0, {"utilization": 1.5}, "score_out_of_bounds"),
            (0, {"context_relevance": -1.0}, "score_out_of_bounds"),
            (0, {"answer_relevance": float("inf")}, "score_out_of_bounds"),
            (0, {"weakest_support": 1.5}, "score_out_of_bounds"),
            (0, {"waterfall": None}, "trace_not_in_waterfall"),
            (0, {"waterfall": "stopped"}, "stage_not_in_set"),
            (0, {"waterfall": "sent", "weakest_support": None}, "sent_without_signal"),
            (1, {"citations_dangling": -1}, "negative_count"),
            (0, {"claims_judged": 3}, "counts_do_not_add_up"),
            (0, {"claims_total": 5}, "counts_do_not_add_up"),
            (1, {"claims_total": 0}, "counts_do_not_add_up"),
            (0, {"claims_supported": 2, "claims_unsupported": 0}, "counts_differ_from_results"),
            (0, {"claims_misused": 0}, "counts_differ_from_results"),
            (0, {"chunks_used": 3}, "counts_do_not_add_up"),
            (0, {"chunks_relevant": 3}, "counts_do_not_add_up"),
        ],
    )
    def test_a_bad_trace_score(self, keeper: GateKeeper, row: int, changes: dict[str, Any], reason: str) -> None:
        rows = results()
        rows["scores"][row] |= changes
        assert check_results(keeper, rows) == [(f"t{row}", reason)]

    def test_misuse_is_counted_among_judged_claims(self, keeper: GateKeeper) -> None:
        rows = results()
        rows["results"][3]["misused"] = True  # abstained: it enters neither the score nor the count
        assert check_results(keeper, rows) == []

    @pytest.mark.parametrize("at", [0.0, 100.0])
    def test_the_ends_of_the_scale_are_scores(self, keeper: GateKeeper, at: float) -> None:
        rows = results()
        rows["scores"][0]["groundedness_score"] = at
        assert check_results(keeper, rows) == []

    def test_a_claim_without_a_result(self, keeper: GateKeeper) -> None:
        rows = results()
        del rows["results"][4]
        # the trace's own counts no longer agree with its results either
        assert check_results(keeper, rows) == [("t1", "claim_without_result"), ("t1", "counts_do_not_add_up")]

    def test_claims_of_other_traces_are_not_asked_for(self, keeper: GateKeeper) -> None:
        rows = results()
        rows["claims"].append(rows["claims"][0] | {"claim_id": "c9", "trace_id": "t9"})
        assert check_results(keeper, rows) == []

    def test_two_results_of_one_judge(self, keeper: GateKeeper) -> None:
        rows = results()
        rows["results"].append(dict(rows["results"][0]))
        assert check_results(keeper, rows)[:2] == [("t0", "duplicate_result")] * 2

    def test_a_trace_without_a_score(self, keeper: GateKeeper) -> None:
        rows = results()
        del rows["scores"][2]
        assert check_results(keeper, rows) == [("t2", "trace_without_score")]

    def test_a_score_without_a_trace(self, keeper: GateKeeper) -> None:
        rows = results()
        del rows["traces"][2]
        assert check_results(keeper, rows) == [("t2", "score_without_trace")]

    def test_a_trace_that_is_scored_twice(self, keeper: GateKeeper) -> None:
        rows = results()
        rows["scores"].append(dict(rows["scores"][2]))
        assert check_results(keeper, rows) == [("t2", "duplicate_score")] * 2


def frames_of(rows: dict[str, list[dict[str, Any]]]) -> dict[str, pl.DataFrame]:
    """A frame per suite, as the gates make them."""
    tables = {"claims": CLAIMS.schema, "results": CLAIM_RESULTS.schema, "scores": TRACE_SCORES.schema}
    claims, found, scores = (pa.Table.from_pylist(rows[name], schema=schema) for name, schema in tables.items())
    expected = scores.select(["trace_id"])
    return {
        "traces": trace_frame(traces(trace()), DAY, DAY),
        "volume": volume_frame({DAY: 1}, 1, 2),
        "claim_results": claim_frame(claims, found, expected),
        "trace_scores": score_frame(found, scores, expected),
    }


SUITES = {
    "traces": trace_rules(SMALL),
    "volume": VOLUME_RULES,
    "claim_results": CLAIM_RULES,
    "trace_scores": SCORE_RULES,
}


def domain(rules: Sequence[Rule], column: str, dtype: pl.DataType) -> pl.Series:
    """Null, and values of a column on both sides of every limit that a rule puts on it, and at the limit."""
    options: list[Mapping[str, Any]] = [r.options for r in rules if column in r.broken.meta.root_names()]
    found: Iterable[Any] = [True, False]
    if dtype.is_numeric():
        step = 1 if dtype.is_integer() else 0.5
        ends = {o[end] for o in options for end in ("min_value", "max_value") if o.get(end) is not None} | {0, 1}
        found = {max(end + d, 0) if dtype.is_unsigned_integer() else end + d for end in ends for d in (-step, 0, step)}
        found = sorted(found | (set() if dtype.is_integer() else {float("inf")}))
    elif dtype == pl.String:
        found = [*{word for o in options for word in o.get("value_set", "abc")}, "other"]
    return pl.Series([None, *found], dtype=dtype)


def frame_of(suite: str, rows: int, seed: int) -> pl.DataFrame:
    """A frame of a suite, each column drawn by itself: many of its rows break a rule."""
    rules, schema = SUITES[suite], {**frames_of(results())[suite].schema, "part": pl.Int32()}
    used = dict.fromkeys(name for rule in rules for name in rule.broken.meta.root_names())
    domains = {name: domain(rules, name, schema[name]) for name in used}
    return pl.DataFrame({
        name: values.sample(rows, with_replacement=True, seed=1_000 * seed + n)
        for n, (name, values) in enumerate(domains.items())
    })  # fmt: skip


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Validator:
    return Validator(tmp_path_factory.mktemp("results"), SUITES)


class TestBothEvaluators:
    """polars refuses the rows that Great Expectations finds."""

    @pytest.mark.parametrize("suite", SUITES)
    @settings(max_examples=6, deadline=None, phases=[Phase.generate])
    @given(rows=st.integers(1, 60), seed=st.integers(0, 2**32))
    def test_the_same_rows_break_each_rule(self, validator: Validator, suite: str, rows: int, seed: int) -> None:
        frame = frame_of(suite, rows, seed)
        validated = validator.validate(suite, frame, "COMPLETE").results
        for rule, result in zip(SUITES[suite], validated, strict=True):
            broken = frame.select(rule.broken.fill_null(value=False)).to_series().arg_true().to_list()
            assert sorted(result.result.get("unexpected_index_list", [])) == broken, rule

    @pytest.mark.parametrize("suite", SUITES)
    @settings(max_examples=20, deadline=None)
    @given(seed=st.integers(0, 2**32))
    def test_a_row_is_refused_for_the_first_rule_that_it_breaks(self, suite: str, seed: int) -> None:
        rules, frame = SUITES[suite], frame_of(suite, 400, seed)
        each = frame.select(rule.broken.fill_null(value=False).alias(str(i)) for i, rule in enumerate(rules))
        first = [next((i for i, broken in enumerate(row) if broken), None) for row in each.rows()]
        assert frame.select(first_broken(rules)).to_series().to_list() == first
        assert all(0 < n < 400 for n in each.sum().row(0))  # rows are bad in every way, and not all of them


def files(directory: Path) -> Sequence[Path]:
    return [p for p in directory.rglob("*") if p.suffix in {".html", ".json"}]


class TestStored:
    SECRET = "the-patient-is-called-jones"

    def test_no_text_gets_into_the_results(self, tmp_path: Path) -> None:
        keeper = GateKeeper(Gates(max_question_chars=5, max_answer_chars=5, max_chunk_chars=5, max_chunks=1), tmp_path)
        chunks = [chunk("a", self.SECRET), chunk("a", self.SECRET)]
        assert check(keeper, *[trace(question=self.SECRET, answer=self.SECRET, chunks=chunks)] * 3)
        rows = results()
        rows["results"][0]["label"] = rows["results"][1]["status"] = f"I think that {self.SECRET}"
        rows["scores"][0]["groundedness_status"] = f"I think that {self.SECRET}"
        assert check_results(keeper, rows)
        keeper.write_results("run")
        written = files(tmp_path)
        assert {p.suffix for p in written} == {".html", ".json"}
        assert not [p for p in written if self.SECRET in p.read_text()]

    def test_the_list_shows_runs_and_reasons_and_its_links_work(self, tmp_path: Path) -> None:
        keeper = GateKeeper(SMALL, tmp_path)
        for _ in range(3):
            check(keeper, trace(), trace(question=""))
        keeper.write_results("2026-10-30..2026-11-01")
        page = (tmp_path / "index.html").read_text()
        # three tables of one run are one result, their rows added up
        assert page.count("2026-10-30..2026-11-01</td>") == 1
        assert "empty_question 3<" in page
        links = re.findall(r'<a href="([^"]+)"', page)
        assert len(links) == 1
        text = (tmp_path / links[0]).read_text()
        assert "The question holds more than white space." in text
        (row,) = re.findall(r"<tr class=\"broken\">.*?</tr>", text, re.DOTALL)
        assert re.findall(r'class="number">([^<]+)<', row) == ["6", "3", "50.0%"]
        # Nothing is loaded: no script, and no address but the list's.
        assert "default-src 'none'" in text
        assert not re.search(r"<script|src=|https?:", text)

    def test_a_later_run_adds_its_results(self, tmp_path: Path) -> None:
        for n in range(2):
            keeper = GateKeeper(SMALL, tmp_path)
            assert check(keeper, trace()) == []
            keeper.write_results("run")
            assert (tmp_path / "index.html").read_text().count("<tr><td>") == n + 1
        assert len(list((tmp_path / "results").rglob("*.html"))) == 2

    def test_old_and_broken_results_go(self, tmp_path: Path) -> None:
        keeper = GateKeeper(SMALL, tmp_path, kept_runs=2)
        for n in range(4):
            check(keeper, trace())
            keeper.write_results(f"run{n}")
        (kept,) = (tmp_path / "results").rglob("run3/*/*.json")
        kept.write_text(kept.read_text()[:100])  # as a kill leaves it
        check(keeper, trace())
        keeper.write_results("run4")
        page = (tmp_path / "index.html").read_text()
        assert "run3" not in page
        assert sorted(p.name for p in (tmp_path / "results" / "traces").iterdir()) == ["run2", "run4"]
        pages = (tmp_path / "results").rglob("*.html")
        assert sorted(p.parts[-3] for p in pages) == ["run2", "run4"]

    def test_nothing_is_stated_on_the_terminal(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        keeper = GateKeeper(SMALL, tmp_path)
        assert check(keeper, trace(question=""))
        keeper.write_results("run")
        assert capfd.readouterr() == ("", "")
