"""What no stage may do once a text is gone: read it, ask a judge of it, or drop what was made of it."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from kit.stage_kit import DAY, NEXT, TODAY, Watched, context, judged_by, log, put, rows, trace

from tasks.claims import extract as claims
from tasks.core.config import Retention
from tasks.core.schemas import (
    CLAIM_RESULTS,
    CLAIMS,
    NIGHTLY_SLICES,
    PAIRS,
    QUARANTINE,
    REDACTIONS,
    RELEVANCE,
    TRACE_GRACE,
    TRACE_SCORES,
    TRACES,
    VERDICTS,
)
from tasks.core.types import Verdict
from tasks.ingest.ingest import ingest
from tasks.judging import pairs, relevance, verdicts
from tasks.privacy import retention
from tasks.privacy.retention import Due, due, redact, request
from tasks.run import redacted
from tasks.run.context import Context
from tasks.run.plan import trace_parts
from tasks.run.scopes.scope import Scope
from tasks.scoring import grace, nightly, score
from tasks.store.lake import from_rows

NOW = datetime(2026, 11, 10, 8, tzinfo=UTC)
CHUNKS = {"a": "Water boils at one hundred degrees.", "b": "Tea is a plant."}


def forget(ctx: Context, *ids: str) -> None:
    request(ctx.lake, ids, None, NOW)
    redact(ctx.lake, due(ctx.lake, Retention(), TODAY), NOW)


def judge_all(ctx: Context, **options: bool) -> None:
    claims.extract_claims(ctx)
    grace.score_grace(ctx)
    pairs.plan_pairs(ctx)
    verdicts.judge_pairs(ctx, **options)
    verdicts.judge_joint_pairs(ctx, **options)
    relevance.score_relevance(ctx)
    score.score_traces(ctx)
    nightly.aggregate_nights(ctx)


def of(ctx: Context, table: object, trace_id: str) -> list[dict]:
    return [r for r in rows(ctx, table) if r["trace_id"] == trace_id]  # type: ignore[arg-type]


def two(ctx: Context) -> None:
    put(
        ctx,
        trace("gone", "Tea is hot [a]. Tea is a plant.", CHUNKS, gold_chunk_ids=["a"]),
        trace("here", "Tea is cold [a]. Water is wet.", CHUNKS, gold_chunk_ids=["b"]),
    )


class TestDue:
    @pytest.mark.parametrize(
        ("settings", "texts", "explanations"),
        [
            ({}, None, None),
            # A trace of 5 November is 5 days old on the 10th: it stays, that of the 4th goes.
            ({"text_days": 5}, date(2026, 11, 5), date(2026, 11, 5)),  # explanations quote texts: they go with them
            ({"explanations_days": 2}, None, date(2026, 11, 8)),
            ({"text_days": 2, "explanations_days": 5}, date(2026, 11, 8), date(2026, 11, 8)),
            ({"text_days": 5, "explanations_days": 2}, date(2026, 11, 5), date(2026, 11, 8)),
        ],
    )
    def test_days_count_back_from_today(
        self, tmp_path: Path, settings: dict, texts: object, explanations: object
    ) -> None:
        found = due(context(tmp_path).lake, Retention(**settings), TODAY)
        assert (found.texts, found.explanations, found.traces) == (texts, explanations, frozenset())

    def test_a_request_is_due_until_it_is_done(self, tmp_path: Path) -> None:
        lake = context(tmp_path).lake
        request(lake, ["x", "y/1"], "a letter", NOW)
        what = due(lake, Retention(), TODAY)
        assert what.traces == {"x", "y/1"}
        retention.finish(lake, replace(what, traces=frozenset({"x"})), NOW)
        assert due(lake, Retention(), TODAY).traces == {"y/1"}
        request(lake, ["y/1"], "another letter", NOW)  # the first one stands
        assert {r["reason"] for p in lake.parts(REDACTIONS) for r in p.read().to_pylist()} == {"a letter"}
        assert redacted.requested_redactions(lake) == {"x", "y/1"}


class TestRemove:
    def test_only_days_before_the_limit_and_only_once(self, tmp_path: Path) -> None:
        ctx = context(tmp_path, last=NEXT)
        put(ctx, trace("old", day=DAY), name="1-00000")
        put(ctx, trace("new", day=NEXT), name="2-00000")
        claims.extract_claims(ctx)
        what = Due(texts=NEXT, explanations=NEXT)
        assert {s.stage: s.computed for s in redact(ctx.lake, what, NOW)}["texts"] == 1
        assert [(r["trace_id"], r["answer"] == "", r["text_redacted"]) for r in rows(ctx, TRACES)] == [
            ("old", True, "expired"),
            ("new", False, None),
        ]
        assert [bool(r["text"]) for r in rows(ctx, CLAIMS)] == [False, True]
        assert retention.pending(ctx.lake) == [DAY]
        assert {s.computed for s in redact(ctx.lake, what, NOW)} == {0}

    def test_an_expired_trace_can_be_forgotten_too(self, tmp_path: Path) -> None:
        ctx = context(tmp_path)
        put(ctx, trace("a"), trace("b"))
        redact(ctx.lake, Due(texts=NEXT), NOW)
        forget(ctx, "a")
        found = {r["trace_id"]: (r["text_redacted"], r["content_hash"]) for r in rows(ctx, TRACES)}
        assert found["a"] == ("deleted", "redacted")
        assert found["b"][0] == "expired"
        assert found["b"][1] != "redacted"  # or its line would conflict with itself when it is read again

    def test_what_is_not_text_stays(self, tmp_path: Path) -> None:
        ctx = context(tmp_path)
        put(ctx, trace("a", "See [9] and [8].", CHUNKS, latency_ms=5.0, repeat=2))
        claims.extract_claims(ctx)
        before = rows(ctx, CLAIMS)
        forget(ctx, "a")
        (row,) = rows(ctx, TRACES)
        assert (row["latency_ms"], row["repeat"], [c["chunk_id"] for c in row["chunks"]]) == (5.0, 2, ["a", "b"])
        assert [c["rank"] for c in row["chunks"]] == [1, 2]
        spans = [
            (c["claim_id"], c["span_start"], c["span_end"], len(c["dangling_citations"])) for c in rows(ctx, CLAIMS)
        ]
        assert spans == [(c["claim_id"], c["span_start"], c["span_end"], len(c["dangling_citations"])) for c in before]

    def test_an_explanation_goes_wherever_the_same_text_was_judged_first(self, tmp_path: Path) -> None:
        """The verdict of a shared request stands under the day of the trace that needed it first."""
        ctx = context(tmp_path, last=NEXT)
        ctx = judged_by(ctx, Watched(lambda r: Verdict(r.key, "supported", explanation=r.hypothesis)))
        put(ctx, trace("first", "Tea is hot.", day=DAY), name="1-00000")
        put(ctx, trace("second", "Tea is hot.", day=NEXT), name="2-00000")
        judge_all(ctx)
        (verdict,) = rows(ctx, VERDICTS)
        assert (verdict["date"], verdict["explanation"]) == (DAY, "Tea is hot.")
        forget(ctx, "second")
        (verdict,) = rows(ctx, VERDICTS)
        assert (verdict["label"], verdict["explanation"], verdict["raw"]) == ("supported", None, None)

    def test_a_refused_row_without_a_day_or_of_one_ahead_is_as_old_as_its_part(self, tmp_path: Path) -> None:
        ctx = context(tmp_path)
        refused = [
            {"source": "a", "line": n, "trace_id": None, "date": day, "stage": "parse", "reason": "x", "raw": "text"}
            for n, day in enumerate((None, DAY, date(2099, 1, 1)))
        ]
        part = ctx.lake.write(QUARANTINE, "a", from_rows(refused, QUARANTINE))
        stamp = part.path.stat().st_mtime_ns
        redact(ctx.lake, Due(texts=NEXT), NOW)
        assert [r["raw"] for r in rows(ctx, QUARANTINE)] == ["text", "", "text"]  # the part was written just now
        assert part.path.stat().st_mtime_ns == stamp
        later = datetime.fromtimestamp(stamp / 1e9, UTC).date() + timedelta(days=1)
        redact(ctx.lake, Due(texts=later), NOW)
        assert [r["raw"] for r in rows(ctx, QUARANTINE)] == ["", "", ""]  # also the one that claims to be of 2099


class TestSlices:
    """Values of tags are texts, also where they name a slice of a night."""

    def values(self, ctx: Context) -> list[tuple[str, str | None, int]]:
        return [(r["slice"], r["value"], r["n"]) for r in rows(ctx, NIGHTLY_SLICES) if r["slice"].startswith("tags.")]

    def test_a_value_goes_with_its_last_trace(self, tmp_path: Path) -> None:
        ctx = judged_by(context(tmp_path), Watched())
        put(
            ctx,
            trace("gone", tags={"user": "ann", "topic": "tea"}),
            trace("here", tags={"user": "ben", "topic": "tea"}),
        )
        judge_all(ctx)
        assert self.values(ctx) == [
            ("tags.topic", "tea", 2), ("tags.user", "ann", 1), ("tags.user", "ben", 1),
        ]  # fmt: skip
        others = [r for r in rows(ctx, NIGHTLY_SLICES) if not r["slice"].startswith("tags.")]
        forget(ctx, "gone")
        assert self.values(ctx) == [("tags.topic", "tea", 2), ("tags.user", "ben", 1)]  # the number stays as it was
        assert [r for r in rows(ctx, NIGHTLY_SLICES) if not r["slice"].startswith("tags.")] == others
        assert retention.pending(ctx.lake) == [DAY]
        nightly.aggregate_nights(ctx)  # and nothing computes it again
        assert self.values(ctx) == [("tags.topic", "tea", 2), ("tags.user", "ben", 1)]

    def test_all_values_of_a_night_expire(self, tmp_path: Path) -> None:
        ctx = judged_by(context(tmp_path, last=NEXT), Watched())
        put(ctx, trace("old", day=DAY, tags={"user": "ann"}), name="1-00000")
        put(ctx, trace("new", day=NEXT, tags={"user": "ann"}), name="2-00000")
        judge_all(ctx)
        what = Due(texts=NEXT)
        done = {s.stage: s.computed for s in redact(ctx.lake, what, NOW)}
        assert done["slices"] == 1
        assert [r["date"] for r in rows(ctx, NIGHTLY_SLICES) if r["value"] == "ann"] == [NEXT]
        assert {s.computed for s in redact(ctx.lake, what, NOW)} == {0}


class TestNoStageReadsIt:
    def test_its_results_stay_where_others_are_computed_again(self, tmp_path: Path) -> None:
        failing = Watched(lambda r: Verdict(r.key, failure="unparsable"))
        ctx = judged_by(context(tmp_path), failing)
        two(ctx)
        judge_all(ctx)
        tables = (PAIRS, CLAIM_RESULTS, TRACE_SCORES, RELEVANCE, TRACE_GRACE)
        before = {t.name: of(ctx, t, "gone") for t in tables}
        assert all(before.values())
        forget(ctx, "gone")
        working = Watched(lambda r: "unsupported")  # so that joint pairs are planned again
        judge_all(judged_by(ctx, working), retry_failures=True)
        assert working.asked
        assert all(r.hypothesis in ("Tea is cold", "Water is wet.") for r in working.asked)
        (scores,) = before[TRACE_SCORES.name]
        before[TRACE_SCORES.name] = [{**scores, "question_id": None}]  # the hash of the question goes with its text
        assert {t.name: of(ctx, t, "gone") for t in tables} == before
        assert {r["status"] for r in of(ctx, CLAIM_RESULTS, "here")} == {"judged"}
        assert len(rows(ctx, TRACE_SCORES)) == 2

    def test_a_request_that_another_trace_shares_is_asked_for_that_one(self, tmp_path: Path) -> None:
        ctx = judged_by(context(tmp_path), Watched(lambda r: Verdict(r.key, failure="unparsable")))
        put(ctx, trace("gone", "Tea is hot."), trace("here", "Tea is hot."))
        judge_all(ctx)
        forget(ctx, "gone")
        working = Watched()
        judge_all(judged_by(ctx, working), retry_failures=True)
        assert [r.hypothesis for r in working.asked] == ["Tea is hot."]
        assert all(r.premise for r in working.asked)

    def test_a_later_judge_and_a_later_scope_leave_it_out(self, tmp_path: Path) -> None:
        ctx = judged_by(context(tmp_path), Watched())
        two(ctx)
        sample = replace(ctx, scope=Scope(apps=("shop",)))
        judge_all(sample)
        before = of(ctx, PAIRS, "gone")
        forget(ctx, "gone")
        judge_all(replace(ctx, scope=Scope(apps=("shop", "other"))))  # a wider scope plans the part again
        assert of(ctx, PAIRS, "gone") == before
        other = Watched(version="fedcba9876543210")
        fresh = replace(judged_by(ctx, other), recipe="another recipe")
        judge_all(fresh)
        assert {r.hypothesis for r in other.asked} == {"Tea is cold", "Water is wet."}
        (row,) = [r for r in of(ctx, TRACE_SCORES, "gone") if r["recipe"] == "another recipe"]
        assert (row["groundedness_status"], row["question_id"], row["claims_total"]) == ("unjudged", None, 0)
        (outcome,) = [r for r in of(ctx, TRACE_GRACE, "gone") if r["recipe"] == "another recipe"]
        assert (outcome["status"], outcome["outcome"]) == ("na", None)

    def test_a_part_without_removals_reads_as_ever(self, tmp_path: Path) -> None:
        ctx = context(tmp_path)
        two(ctx)
        (part,) = trace_parts(ctx)
        assert len(redacted.redacted_traces(part)) == 0
        table = pa.table({"trace_id": ["gone", "here"]})
        assert redacted.unredacted(part, table) is table
        assert redacted.marked(part, ["trace_id"])[redacted.MARK].null_count == 2


class TestRefusedRows:
    """The original lines of refused rows may hold texts, too."""

    def test_every_spelling_of_an_id_is_found(self) -> None:
        ids = redacted.naming(["a/1", "b", "größe"])
        for raw in (
            '{"trace_id": "a/1", "question": "x"}',
            '{"trace_id": "a\\/1"',
            '{"trace_id": "\\u0061/1", ',
            '{"trace_id": "gr\\u00f6\\u00dfe"}',
            '{"question": "x", "trace_id": "b',
            "b;text;text",
        ):
            assert redacted.names(raw, ids), raw
        for raw in ('{"trace_id": "a/12"}', '{"trace_id": "ab"}', '{"question": "about"}', ""):
            assert not redacted.names(raw, ids), raw
        assert not redacted.names("anything", redacted.naming([]))

    def test_a_line_that_names_a_forgotten_trace_is_not_stored(self, tmp_path: Path) -> None:
        lines = ['{"trace_id": "g\\u006fne", "question": "SECRET', '{"trace_id": "here", "question": "KEPT']
        log(tmp_path, "a.jsonl", lines)
        ctx = context(tmp_path, gates={"max_quarantined_share": 1})
        request(ctx.lake, ["gone"], None, NOW)
        ingest(ctx)
        assert [r["raw"] for r in rows(ctx, QUARANTINE)] == ["", lines[1]]
        assert {r["reason"] for r in rows(ctx, QUARANTINE)} == {"malformed_json"}

    def test_and_one_that_is_stored_is_redacted(self, tmp_path: Path) -> None:
        log(
            tmp_path,
            "a.jsonl",
            ['{"trace_id": "g\\u006fne", "question": "SECRET', '{"trace_id": "here", "question": "KEPT'],
        )
        ctx = context(tmp_path, gates={"max_quarantined_share": 1})
        ingest(ctx)
        forget(ctx, "gone")
        assert ["SECRET" in r["raw"] for r in rows(ctx, QUARANTINE)] == [False, False]
        assert [r["raw"] == "" for r in rows(ctx, QUARANTINE)] == [True, False]

    def test_they_are_kept_for_some_days_from_when_they_were_refused(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", ["{not json"])
        ctx = context(tmp_path, gates={"max_quarantined_share": 1})
        ingest(ctx)
        today = datetime.now(UTC).date()
        for days, kept in ((13, "{not json"), (14, "{not json"), (15, "")):
            redact(ctx.lake, due(ctx.lake, Retention(), today + timedelta(days=days)), NOW)
            assert [r["raw"] for r in rows(ctx, QUARANTINE)] == [kept]

    def test_or_never(self, tmp_path: Path) -> None:
        log(tmp_path, "a.jsonl", ["{not json", trace("t", question=" ")])
        ctx = context(tmp_path, gates={"max_quarantined_share": 1}, retention={"refused_days": 0})
        ingest(ctx)
        assert [(r["reason"], r["raw"]) for r in rows(ctx, QUARANTINE)] == [
            ("malformed_json", ""),
            ("empty_question", ""),
        ]
