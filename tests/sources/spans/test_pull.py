"""What holds of every store that is asked over HTTP: windows, pages, faults, and what is wrong with a trace."""

import re
import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kit.stage_kit import context
from kit.stage_kit import rows as table_rows
from kit.stores.server import Asked, Reply, serve
from kit.stores.worlds import (
    COST,
    DAY,
    KEY,
    NOON,
    SECRET,
    WORLDS,
    Langfuse,
    Mlflow,
    Small,
    World,
    complaint,
    day,
    names,
    rows,
    source,
)

from tasks import sources
from tasks.core.errors import ConfigError, ConnectionLostError, UsageError
from tasks.core.schemas import QUARANTINE, TRACES
from tasks.ingest.ingest import ingest

MIDNIGHT = datetime(2026, 11, 2, tzinfo=UTC)

pytestmark = pytest.mark.usefixtures("key")


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


@pytest.fixture(params=WORLDS, ids=lambda w: w.kind)
def world(request: pytest.FixtureRequest) -> World:
    return request.param([Small("a"), Small("b", NOON + timedelta(hours=1)), Small("c", NOON + timedelta(hours=2))])


class TestRows:
    def test_a_trace_has_what_the_store_knows(self, world: World) -> None:
        with serve(world.answer) as server:
            row, *_ = rows(day(source(world, server.url)))
        assert (row["trace_id"], row["timestamp"], row["app"], row["generator"]) == ("tr-a", NOON, "shop", "m-1")
        assert (row["question"], row["answer"], row["tags"]) == (
            "What is a?",
            f"The {SECRET} is here [1].",
            {"tier": "gold"},
        )
        assert row["cost"] == COST
        (chunk,) = row["chunks"]
        assert (chunk["chunk_id"], chunk["doc_id"], chunk["retrieval_score"]) == ("c1", "d.md", 0.5)

    def test_every_page_is_read(self, world: World) -> None:
        for page, empty in ((1, False), (2, True), (100, True)):
            given = replace(world, page=page, empty=empty)
            with serve(given.answer) as server:
                assert names(day(source(given, server.url))) == ["a", "b", "c"]

    def test_a_cursor_that_comes_again_ends_in_an_error(self, world: World) -> None:
        world.page = 1

        def stuck(asked: Asked) -> Reply:
            reply = world.answer(asked)
            if isinstance(reply.body, dict):
                for holder, name in (
                    (reply.body, "next_page_token"),
                    (reply.body.get("meta"), "cursor"),
                    (reply.body.get("cursors"), "next"),
                ):
                    if holder and holder.get(name):
                        holder[name] = "1"
            return reply

        with serve(stuck) as server:
            assert "the same cursor twice" in complaint(lambda: day(source(world, server.url)))

    def test_a_rating_stays_out_of_the_content(self, world: World) -> None:
        if isinstance(world, Langfuse):
            pytest.skip("its API gives no scores")
        hashes = set()
        for rating in (None, 0.0, 1.0):
            world.traces = [Small("a", rating=rating)]
            with serve(world.answer) as server:
                (row,) = rows(day(source(world, server.url)))
            hashes.add(row["content_hash"])
            assert row["feedback"] == (None if rating is None else {"score": rating, "comment": None})
        assert len(hashes) == 1


class TestWindows:
    def test_a_trace_is_of_the_day_on_which_it_starts(self, world: World) -> None:
        late, early = Small("late", MIDNIGHT - timedelta(seconds=1)), Small("early", MIDNIGHT)
        world.traces = [late, early, Small("before", MIDNIGHT - timedelta(days=1, seconds=1))]
        with serve(world.answer) as server:
            of = source(world, server.url)
            assert names(day(of)) == ["late"]
            assert names(day(of, MIDNIGHT.date())) == ["early"]
            (row,) = rows(day(of))
        assert len(row["chunks"]) == 1  # of a span of the next day

    def test_a_young_trace_waits(self, world: World) -> None:
        with serve(world.answer) as server:
            at = NOON + timedelta(hours=1, minutes=10)
            assert names(day(source(world, server.url, now=at, grace_minutes=15))) == ["a"]
            assert names(day(source(world, server.url, now=at, grace_minutes=5))) == ["a", "b"]
            assert source(world, server.url, now=NOON - timedelta(days=1)).files(DAY, DAY) == []

    def test_the_hours_before_are_read_again(self, world: World) -> None:
        world.traces = [Small("late", MIDNIGHT - timedelta(hours=2)), Small("early", MIDNIGHT - timedelta(hours=9))]
        with serve(world.answer) as server:
            of = source(world, server.url, reread_hours=6)
            assert names(day(of, MIDNIGHT.date())) == ["late"]

    def test_a_settled_window_is_read_once(self, world: World) -> None:
        def files(now: datetime) -> list[tuple[str, str]]:
            return [(f.path, f.fingerprint) for f in source(world, "http://x", now=now, reread_hours=6).files(DAY, DAY)]

        young = [files(MIDNIGHT + timedelta(hours=h)) for h in (1, 2)]
        old = [files(MIDNIGHT + timedelta(hours=h)) for h in (7, 700)]
        assert young[0][1] != young[1][1]
        assert old[0] == old[1]
        assert (
            young[0][1][0]
            == old[0][1][0]
            == f"{source(world, 'http://x')._store.place} 2026-11-01T00:00:00.000Z/2026-11-02T00:00:00.000Z"
        )


class TestFaults:
    @pytest.mark.parametrize("fault", [
        Reply({"error": SECRET}, 503),
        Reply({"error": SECRET}, 429, {"Retry-After": "7"}),
        Reply({"data": [], "traces": [], "runs": []}, cut=5),
        Reply(b'{"data": [', 200),
    ], ids=["503", "429", "connection", "json"])  # fmt: skip
    def test_a_server_that_recovers_loses_nothing(self, world: World, fault: Reply) -> None:
        seen: Counter[str] = Counter()

        def shaky(asked: Asked) -> Reply:
            seen[repr(asked)] += 1
            return fault if seen[repr(asked)] == 1 else world.answer(asked)

        pauses: list[float] = []
        with serve(shaky) as server:
            assert names(day(source(world, server.url, sleep=pauses.append))) == ["a", "b", "c"]
        assert pauses
        assert all(p >= 7 for p in pauses) == (fault.status == 429)

    def test_a_server_that_takes_too_long_is_asked_again(self, world: World) -> None:
        asked_again = threading.Event()

        def slow(asked: Asked) -> Reply:
            asked_again.wait(20)
            return world.answer(asked)

        with serve(slow) as server:
            of = source(world, server.url, timeout_s=0.2, sleep=lambda _: asked_again.set())
            assert names(day(of)) == ["a", "b", "c"]
        assert asked_again.is_set()

    def test_a_server_that_dies_is_read_again_in_the_next_run(self, world: World, tmp_path: Path) -> None:
        world.page, dead = 1, [False]

        def dying(asked: Asked) -> Reply:
            reply = world.answer(asked)
            dead[0] = dead[0] or "2" in repr(reply.body.get("next_page_token", "")) + repr(
                asked.params.get("cursor")
            ) + repr((asked.body or {}).get("cursor"))
            return Reply({}, 500) if dead[0] else reply

        ctx = context(tmp_path)
        with serve(dying) as server:
            of = source(world, server.url, now=NOON + timedelta(days=9))
            ctx = replace(ctx, sources=(of,))
            message = complaint(lambda: ingest(ctx), ConnectionLostError)
            assert table_rows(ctx, TRACES) == []
        assert server.url in message
        with serve(world.answer) as server:
            again = replace(ctx, sources=(source(world, server.url),))
            assert ingest(again).computed == 3
            assert ingest(again).computed == 0
            unsettled = replace(ctx, sources=(source(world, server.url, now=NOON + timedelta(hours=9)),))
            world.traces[0].rating = 1.0
            world.traces.append(Small("d", NOON + timedelta(hours=3)))
            assert ingest(unsettled).computed == 1
        assert sorted(r["trace_id"] for r in table_rows(ctx, TRACES)) == ["tr-a", "tr-b", "tr-c", "tr-d"]
        assert table_rows(ctx, QUARANTINE) == []

    @pytest.mark.parametrize(("reply", "problem"), [
        (Reply(f"<html>{SECRET}</html>".encode(), 200, {"Content-Type": "text/html"}), "answers with a web page"),
        (Reply({"error": SECRET}, 401), r"does not accept the credentials \(HTTP 401\)\. Check .*\$TEST_KEY"),
        (Reply({"error": SECRET}, 404), r"does not exist \(HTTP 404\)\. Check `"),
        (Reply([SECRET]), "answers list, not an object"),
        (Reply({"traces": SECRET, "data": SECRET, "runs": SECRET}), "answers without a list `"),
        (Reply({"error": SECRET}, 400), "refuses the request"),
    ], ids=["html", "key", "project", "list", "shape", "400"])  # fmt: skip
    def test_what_trying_again_does_not_mend(self, world: World, reply: Reply, problem: str) -> None:
        with serve(
            lambda asked: world.answer(asked) if "experiments" in asked.path and reply.status == 200 else reply
        ) as server:
            assert re.search(problem, complaint(lambda: day(source(world, server.url))))
        assert len(server.asked) <= 2

    def test_a_secret_that_is_not_set(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("TEST_KEY")
        message = complaint(lambda: day(source(world, "http://127.0.0.1:9")), UsageError)
        assert "$TEST_KEY, which is not set" in message

    def test_the_key_is_sent_and_not_shown(self, world: World) -> None:
        with serve(world.answer) as server:
            of = source(world, server.url)
            files = of.files(DAY, DAY)
            day(of)
        assert all(KEY not in file.path for file in files)
        sent = {name.lower(): value for name, value in server.asked[-1].headers.items()}
        assert sent.get("x-api-key") == KEY or sent["authorization"].startswith(("Bearer", "Basic"))


class TestBadTraces:
    @pytest.mark.parametrize(("bad", "reason"), [
        (Small("bad", answer=None), "no_answer"),
        (Small("bad", cyclic=True), "no_root"),
        (Small("bad", roots=2), "several_roots"),
        (Small("bad", answer=f"{SECRET}\0"), "nul_character"),
        (Small("bad", question=f"Context:\n[1] A {SECRET} is striped.\n\nWhat is it?"), "question_holds_context"),
    ], ids=lambda v: v if isinstance(v, str) else "")  # fmt: skip
    def test_only_the_bad_one_is_refused(self, world: World, bad: Small, reason: str) -> None:
        world.traces.insert(1, bad)
        with serve(world.answer) as server:
            batch = day(source(world, server.url))
        assert names(batch) == ["a", "b", "c"]
        (reject,) = batch.rejects
        assert (reject.trace_id, reject.reason) == ("tr-bad", reason)

    def test_ten_megabytes_of_text(self, world: World) -> None:
        world.traces = [Small("a", text="x" * (10 << 20))]
        with serve(world.answer) as server:
            (row,) = rows(day(source(world, server.url)))
        assert len(row["chunks"][0]["text"]) == 10 << 20

    def test_what_is_no_record_is_refused(self, world: World) -> None:
        """A store that gives whole traces loses that one; of the others, a record that is no span."""
        world.bad = "b"
        with serve(world.answer) as server:
            batch = day(source(world, server.url))
        assert names(batch) == (["a", "c"] if isinstance(world, Mlflow) else ["a", "b", "c"])
        assert [r.reason for r in batch.rejects] == ["malformed_span"]

    def test_a_number_that_no_column_holds(self, world: World) -> None:
        world.traces.append(Small("d", answer=2**70))
        with serve(world.answer) as server:
            assert names(day(source(world, server.url))) == ["a", "b", "c"]


class TestSettings:
    def test_a_server_or_files(self, world: World) -> None:
        both: dict[str, Any] = {**world.config("http://x"), "paths": ["a.jsonl"]}
        for wrong in (both, {k: v for k, v in both.items() if k not in ("url", "paths")}):
            with pytest.raises(ConfigError, match="either `url`, for a server, or `paths`, for export files"):
                sources.load(wrong, "s.yaml", Path())

    @pytest.mark.parametrize("url", [f"http://me:{KEY}@host", f"https://host/?key={KEY}", "host:6006", "ftp://host"])
    def test_a_url_with_a_secret_is_refused(self, world: World, url: str) -> None:
        message = complaint(lambda: sources.load(world.config(url), "s.yaml", Path()), UsageError)
        assert "environment variable" in message or "Write one like" in message

    def test_a_secret_instead_of_its_name_is_not_shown(self, world: World) -> None:
        name = "secret_key_env" if isinstance(world, Langfuse) else "api_key_env"
        of = sources.load({**world.config("http://127.0.0.1:9"), name: KEY}, "s.yaml", Path())
        assert "never the secret itself" in complaint(lambda: day(of), UsageError)
