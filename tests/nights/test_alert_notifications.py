"""A generator gets 5 points worse: the nightly finds which one and in which layer, tells Prefect, and sends it once.

The messages go to a real HTTP server on loopback, through the same library that speaks Slack and e-mail.
"""

import json
import random
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import PrefectServer, until
from kit.commands import leadline
from kit.worlds import FIRST, World, make_world, range_of, read, trace, write

from tasks.core import keys

pytestmark = pytest.mark.slow

QUIET, WORSE = 8, 4  # nights before the drop, and since
FELL = FIRST + timedelta(days=QUIET)
LAST = FELL + timedelta(days=WORSE - 1)
CHUNK = "Backups are kept in three regions, and each of them is checked every week."
PLACES = ("north", "south", "east", "west", "coast", "valley", "harbor", "island", "forest", "desert")
GOOD = [f"The {place} region keeps a backup." for place in PLACES]
BAD = [f"The {place} region deletes a backup." for place in PLACES[:3]]
# Sentences of ten that are not in the chunk, so that a trace scores 100 less 10 for each: 90 on average, and 85 after.
USUAL, FALLEN = (0, 1, 1, 2), (1, 2)


@dataclass
class Receiver:
    """A webhook that answers with a status, and keeps what it is sent."""

    port: int = 0
    status: int = 200
    got: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if found.status == 200:
                found.got.append(json.loads(body))
            self.send_response(found.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.port = server.server_port
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


def night(day: date, generator: str, wrong: tuple[int, ...], count: int = 30) -> list[dict[str, Any]]:
    """Traces of one night, each asked another question; `wrong` is how many sentences of an answer are, one in turn."""
    rng = random.Random(f"{day}{generator}")
    found = []
    for n in range(count):
        bad = rng.choice(wrong)
        answer = " ".join([*GOOD[: len(PLACES) - bad], *BAD[:bad]])
        found.append(
            trace(
                f"{day}-{generator}-{n:02d}",
                timestamp=f"{day}T12:00:00Z",
                generator=generator,
                answer=answer,
                question=f"How is backup number {n} kept?",
                chunks=[{"chunk_id": "1", "text": CHUNK}],
            )
        )
    return found


def make(root: Path) -> World:
    """Nights of two generators, of which `large` gets worse; the triad's threshold is passed at one bad sentence
    and missed at two. Old nights are sent too, whenever this runs."""
    records = root / "records.jsonl"
    labels = [(GOOD, "supported"), (BAD, "unsupported")]
    write(records, [{"key": keys.request_key(CHUNK, s), "label": label} for output, label in labels for s in output])
    world = make_world(
        root,
        judge={"records": str(records)},
        recipe={
            "judge": "out/replay.yaml",
            "relevance": {"threads": 1},
            "triad": {"context_relevance": 0, "groundedness": 85, "answer_relevance": 0},
        },
        report={"dir": "out/report", "max_trace_pages": 1},
        alerts={
            "numbers": ["groundedness", "utilization"],
            "least_nights": QUIET,
            "notify": ["env:LEADLINE_HOOK"],
            "notify_days": 100_000,
            "report_url": "https://reports.example.org/leadline/",
        },
    )
    for n in range(QUIET + WORSE):
        day = FIRST + timedelta(days=n)
        worse = night(day, "large", FALLEN if day >= FELL else USUAL)
        write(root / "logs" / f"{day}.jsonl", worse + night(day, "small", USUAL))
    return world


def filtered(server: PrefectServer, what: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        f"{server.url}/{what}/filter", data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_a_drop_is_found_announced_and_sent_once(
    tmp_path: Path, prefect_server: PrefectServer, environment: dict[str, str], receiver: Receiver
) -> None:
    world = make(tmp_path)
    command = ["nightly", "--config", world.config, *range_of(FIRST, LAST)]

    # The variable is not set: the night is done all the same, and says what is still to be told.
    first = leadline(*command, env=environment)
    assert first.returncode == 0, first.stderr.decode()
    printed = first.stdout.decode()
    assert "could not be sent to env:LEADLINE_HOOK: the variable is not set. The next run tries again." in printed
    (alert,) = read(world.warehouse, "FROM alerts")
    assert (alert["app"], alert["generator"], alert["number"], alert["direction"]) == (
        "docs",
        "large",
        "groundedness",
        "down",
    )
    assert FELL <= alert["date"] <= LAST
    assert alert["change_low"] <= -5 <= alert["change_high"] < 0
    assert alert["layer"] == "generator"
    assert (alert["status"], alert["sent_at"], alert["sent"]) == ("fired", None, [])
    assert alert["announced_at"] is not None
    assert f"alert {alert['date']}: Groundedness of docs · large fell by" in printed
    assert len(alert["worst_trace_ids"]) == 5
    assert all(t.startswith(f"{alert['date']}-large-") for t in alert["worst_trace_ids"])

    # Prefect has an artifact and an event of it.
    key = f"alert-{alert['alert_id']}"
    (artifact,) = filtered(prefect_server, "artifacts", {"artifacts": {"key": {"any_": [key]}}})
    assert artifact["type"] == "markdown"
    assert artifact["flow_run_id"] is not None
    assert "likely layer: generator" in artifact["data"]
    wanted = {"filter": {"resource": {"id": [f"leadline.alert.{alert['alert_id']}"]}}}
    (event,) = until(lambda: filtered(prefect_server, "events", wanted)["events"])  # kept some seconds after it came
    assert event["event"] == "leadline.alert.fired"
    assert (event["payload"]["generator"], event["payload"]["layer"]) == ("large", "generator")
    assert event["payload"]["change"] == pytest.approx(alert["change"])

    # The night's page has it at its top.
    page = (world.out / "report" / str(alert["date"]) / "index.html").read_text()
    assert page.index('id="alerts"') < page.index('id="numbers"')
    assert 'id="alerts"' not in (world.out / "report" / str(FIRST) / "index.html").read_text()

    # A place that refuses is tried again, a place that takes it is told once.
    again = ["nightly", "--config", world.config, "--date", LAST]
    env = environment | {"LEADLINE_HOOK": f"json://127.0.0.1:{receiver.port}/hook?secret=QXSECRET"}
    receiver.status = 503
    refused = leadline(*again, env=env)
    assert refused.returncode == 0, refused.stderr.decode()
    assert "could not be sent to env:LEADLINE_HOOK" in refused.stdout.decode()
    receiver.status = 200
    for _ in range(2):
        output = leadline(*again, env=env)
        assert output.returncode == 0, output.stderr.decode()
        assert "could not be sent" not in output.stdout.decode()
    (message,) = receiver.got
    assert message["title"].startswith("Leadline: Groundedness of docs · large fell by")
    assert "likely layer: generator" in message["message"]
    assert f"https://reports.example.org/leadline/{alert['date']}/index.html" in message["message"]
    assert all(t in message["message"] for t in alert["worst_trace_ids"])
    opening = json.loads((world.out / "report" / str(alert["date"]) / "night.json").read_text())["opening"]
    assert {"read", "label"} <= {line["about"] for line in opening}
    for line in opening:
        assert (f"- {line['about']}: " in message["message"]) == (
            line["about"] != "changed"
        )  # that is the message itself
    (sent,) = read(world.warehouse, "FROM alerts")
    assert [(s["place"], s["status"]) for s in sent["sent"]] == [("env:LEADLINE_HOOK", "fired")]
    assert sent["sent_at"] is not None
    assert len(filtered(prefect_server, "artifacts", {"artifacts": {"key": {"any_": [key]}}})) == 1

    # No text of a trace, and no secret, in what leaves the lake.
    reported = str([message, artifact, event, printed, refused.stdout, refused.stderr, output.stdout])
    assert "backup" not in reported.casefold()
    assert "QXSECRET" not in reported
    assert "QXSECRET" not in str(read(world.warehouse, "FROM runs")) + str(sent)
