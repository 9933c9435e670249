"""Real servers of Phoenix and of MLflow on loopback, from the environments of `make stores`."""

import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import WITHIN_S, free_port, quiet, serving, until

from kit.root import ROOT
from kit.stores.log_traces import FIRST, PROJECT, SPANS

KINDS = ("phoenix", "mlflow")
DAY = FIRST.date()
USER, KEY = "admin", "sk-0-not-to-be-seen-by-anyone-at-all"  # Phoenix wants a key of 32 characters, with a digit
PAGE = 100


@dataclass(frozen=True)
class RealStore:
    """A running server.

    Attributes:
        url: Its address.
        folder: Where it keeps what it is sent.
        auth: What httpx sends with each request.
    """

    kind: str
    url: str
    folder: Path
    auth: Mapping[str, Any] = field(repr=False)

    def source(self, url: str, **more: object) -> dict[str, Any]:
        """Settings of a source for it, at this address; the credentials are in $TEST_USER and $TEST_KEY."""
        own = {
            "phoenix": {"project": PROJECT, "api_key_env": "TEST_KEY"},
            "mlflow": {"experiment": PROJECT, "user_env": "TEST_USER", "password_env": "TEST_KEY"},
        }
        return {"kind": self.kind, "url": url, "reread_hours": 0, "spans": {"app": PROJECT}, **own[self.kind], **more}

    def log(self, count: int) -> None:
        """Log traces by the store's SDK, and wait until the server has all of their spans."""
        most = str(max(1_000, 10 * count))  # both drop traces when their queues are full
        names = {
            "phoenix": {"PHOENIX_API_KEY": KEY, "OTEL_BSP_MAX_QUEUE_SIZE": most},
            "mlflow": {
                "MLFLOW_TRACKING_USERNAME": USER, "MLFLOW_TRACKING_PASSWORD": KEY,
                "MLFLOW_ASYNC_TRACE_LOGGING_MAX_QUEUE_SIZE": most,
            },
        }  # fmt: skip
        script = Path(__file__).with_name("log_traces.py")
        command = [_program(self.kind, "python"), script, self.kind, self.url, str(count)]
        env = quiet(**names[self.kind])
        ended = subprocess.run(command, env=env, check=False, capture_output=True, text=True, timeout=WITHIN_S)
        assert ended.returncode == 0, ended.stderr[-3000:]
        if self.kind == "phoenix":  # it takes spans and stores them later
            with self.client() as client:
                until(lambda: _recorded(client) == SPANS * count)

    def traces(self) -> list[str]:
        """The ids of all traces that it has, by its own API."""
        return [one["trace_id"] for one in self._traces()]

    def annotations(self, prefix: str) -> "Counter[tuple[str, str]]":
        """How often each annotation of a trace or a document is there whose name begins so, by its own API."""
        found: Counter[tuple[str, str]] = Counter()
        for one in self._traces():
            names = [(one["trace_id"], name) for name in one["names"]]
            found.update(key for key in names if key[1].startswith(prefix))
        return found

    def client(self) -> httpx.Client:
        """What asks the server as a user of it."""
        return httpx.Client(base_url=self.url, timeout=60, **self.auth)

    def _traces(self) -> Iterator[dict[str, Any]]:
        with self.client() as client:
            yield from _of_phoenix(client) if self.kind == "phoenix" else _of_mlflow(client)


@contextmanager
def real_store(kind: str, folder: Path) -> Iterator[RealStore]:
    """Run a server with an empty database. Skips where its environment is not installed."""
    port, grpc = free_port(), free_port()
    url = f"http://127.0.0.1:{port}"
    if kind == "phoenix":
        command, health = [_program(kind, "phoenix"), "serve"], f"{url}/healthz"
        env = {
            "PHOENIX_WORKING_DIR": str(folder), "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(grpc), "PHOENIX_TELEMETRY_ENABLED": "false", "PHOENIX_ENABLE_AUTH": "true",
            "PHOENIX_SECRET": KEY[::-1], "PHOENIX_ADMIN_SECRET": KEY, "PHOENIX_DEFAULT_ADMIN_INITIAL_PASSWORD": KEY,
        }  # fmt: skip
        auth: dict[str, Any] = {"headers": {"Authorization": f"Bearer {KEY}"}}
    else:
        settings = folder / "auth.ini"
        settings.write_text(
            f"[mlflow]\ndefault_permission = READ\ndatabase_uri = sqlite:///{folder}/users.db\n"
            f"admin_username = {USER}\nadmin_password = {KEY}\nauth_cache_ttl_seconds = 600\n"
        )
        command = [
            _program(kind, "mlflow"), "server", "--app-name", "basic-auth", "--host", "127.0.0.1", "--port", str(port),
            "--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db",
            "--artifacts-destination", str(folder / "artifacts"),
        ]  # fmt: skip
        health = f"{url}/health"
        env = {"MLFLOW_AUTH_CONFIG_PATH": str(settings), "MLFLOW_FLASK_SERVER_SECRET_KEY": KEY[::-1]}
        env |= {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}  # seven more processes
        auth = {"auth": (USER, KEY)}
    with serving(command, health, folder / "server.log", quiet(**env)):
        yield RealStore(kind, url, folder, auth)


def _program(kind: str, name: str) -> str:
    path = ROOT / ".stores" / kind / "bin" / name
    if not path.exists():
        pytest.skip(f"{path} is not there: run `make stores`")
    return str(path)


def _of_mlflow(client: httpx.Client) -> Iterator[dict[str, Any]]:
    reply = client.get("/api/2.0/mlflow/experiments/get-by-name", params={"experiment_name": PROJECT})
    experiment = reply.raise_for_status().json()["experiment"]["experiment_id"]
    place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}}
    token = None
    while True:
        body = {"locations": [place], "max_results": PAGE, **({"page_token": token} if token else {})}
        page = client.post("/api/3.0/mlflow/traces/search", json=body).raise_for_status().json()
        for info in page.get("traces", []):
            names = [a["assessment_name"] for a in info.get("assessments", [])]
            yield {"trace_id": info["trace_id"], "names": names}
        token = page.get("next_page_token")
        if not token:
            return


_COUNT = """{ projects(filter: {col: name, value: "shop"}) { edges { node { recordCount } } } }"""
_SPANS = """query ($after: String) { projects(filter: {col: name, value: "shop"}) { edges { node {
  spans(first: 500, after: $after) { pageInfo { hasNextPage endCursor } edges { node {
    parentId trace { traceId traceAnnotations { name } } documentEvaluations { name documentPosition }
  } } } } } } }"""


def _recorded(client: httpx.Client) -> int:
    """The spans that Phoenix has; the first one makes the project."""
    reply = client.post("/graphql", json={"query": _COUNT}).raise_for_status().json()
    return sum(int(edge["node"]["recordCount"]) for edge in reply["data"]["projects"]["edges"])


def _of_phoenix(client: httpx.Client) -> Iterator[dict[str, Any]]:
    """By its GraphQL: its REST API gives no annotations of documents."""
    found: dict[str, list[str]] = {}
    after, more = None, True
    while more:
        reply = client.post("/graphql", json={"query": _SPANS, "variables": {"after": after}}).raise_for_status().json()
        (project,) = reply["data"]["projects"]["edges"]
        for span in (edge["node"] for edge in project["node"]["spans"]["edges"]):
            names = found.setdefault(span["trace"]["traceId"], [])
            names += [f"{one['name']} of document {one['documentPosition']}" for one in span["documentEvaluations"]]
            if span["parentId"] is None:
                names += [one["name"] for one in span["trace"]["traceAnnotations"]]
        page = project["node"]["spans"]["pageInfo"]
        after, more = page["endCursor"], page["hasNextPage"]
    yield from ({"trace_id": trace_id, "names": names} for trace_id, names in found.items())
