"""Traces of MLflow, from the REST API (version 3) of a tracking server or from exported JSON lines.

The search lists the traces of a window, and their spans are then requested for several traces at once. If the server
stores spans as artifacts instead of in its database, each trace needs a request. The package `spans` builds the traces.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from tasks.core.errors import ConnectionLostError, SourceError
from tasks.core.types import Feedback
from tasks.sources import Reject, Source
from tasks.sources.reading import http
from tasks.sources.reading.values import decode_json, from_ns, mapping, number, scalar, whole
from tasks.sources.reading.windows import Window
from tasks.sources.spans import Span, pull
from tasks.sources.spans.pull import MalformedError, PulledSource, Record
from tasks.sources.spans.texts import kind_of

PAGE = 500  # traces; the server's limit for a page
FETCHED = 50  # traces per request for spans; their ids are part of the URL

_CHECK = "Check `experiment`, and that the server is MLflow 3"
_HEX = re.compile(r"(?:0x)?([0-9a-f]{16})")
_OWN = "mlflow."  # prefix of the tags and attributes that MLflow sets
_FAILED = ("STATUS_CODE_ERROR", "ERROR", 2)


class Config(pull.Pulled):
    """Settings of an `mlflow` source; see `pull.Pulled` for the common ones.

    Attributes:
        experiment: Name or id of the experiment.
        api_key_env: Environment variable with a token, if the server requires one.
        user_env: Environment variable with a user name, if the server requires a name and password.
        password_env: Environment variable with the password.
    """

    kind: Literal["mlflow"]
    experiment: Annotated[str, Field(min_length=1)] = "Default"
    api_key_env: str | None = None
    user_env: str | None = None
    password_env: str | None = None


def build(config: Config, base: Path) -> Source:
    """Create the source from its settings; `base` is the config file's directory.

    Raises:
        UsageError: `url` is not a server's URL, or contains credentials.
    """
    return PulledSource(config, base, MlflowStore(config))


class MlflowStore:
    """Reads traces from an MLflow server or its exports."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._url = http.checked_url("mlflow", config.url) if config.url else ""

    @property
    def place(self) -> str:
        """See `pull.Store.place`."""
        return f"{self._url} experiment {self._config.experiment}"

    def client(self, sleep: Callable[[float], None]) -> http.Client:
        """See `pull.Store.client`."""
        config, headers, names = self._config, {}, "`api_key_env`, or `user_env` and `password_env`"
        if config.api_key_env:
            key = http.secret("mlflow", "api_key_env", config.api_key_env)
            headers, names = {"Authorization": f"Bearer {key}"}, f"${config.api_key_env}"
        elif config.user_env or config.password_env:
            user = http.secret("mlflow", "user_env", config.user_env or "")
            password = http.secret("mlflow", "password_env", config.password_env or "")
            headers, names = http.basic(user, password), f"${config.user_env} and ${config.password_env}"
        return http.Client(self._url, headers, names, timeout_s=self._config.timeout_s, sleep=sleep)

    def pull(self, client: http.Client, window: Window) -> Iterator[Record | Reject]:
        """See `pull.Store.pull`. Each record is a trace."""
        start, end = (int(at.timestamp() * 1000) for at in window)
        body: Record = {
            "locations": [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": self._id(client)}}],
            "filter": f"attributes.timestamp_ms >= {start} AND attributes.timestamp_ms < {end}",
            "order_by": ["attributes.timestamp_ms ASC"],
            "max_results": PAGE,
        }

        def ask(token: str | None) -> Record:
            return client.post(
                "/api/3.0/mlflow/traces/search", {**body, **({"page_token": token} if token else {})}, _CHECK
            )

        for page in pull.pages(ask, lambda page: page.get("next_page_token"), "mlflow"):
            yield from self._fetched(client, pull.listed(page, "traces", "mlflow", may_miss=True))

    def ratings(self) -> dict[str, Feedback]:
        """See `pull.Store.ratings`. Empty, because ratings are part of the records."""
        return {}

    def spans(self, record: Record) -> Iterator[Span]:
        """See `pull.Store.spans`. A record is a trace in the server's format or that of `Trace.to_json()`."""
        info = record.get("trace_info", record.get("info"))
        data = record.get("data")
        spans = data.get("spans") if isinstance(data, dict) else record.get("spans")
        if not isinstance(info, dict) or not isinstance(spans, list) or not spans:
            raise MalformedError("a trace without `info` or without `spans`")
        name = scalar(info.get("trace_id", info.get("request_id")))
        if name is None:
            raise MalformedError("a trace without `trace_id`")
        tags, more = mapping(info.get("tags")), mapping(info.get("trace_metadata", info.get("request_metadata")))
        own = {k: v for k, v in tags.items() if not k.startswith(_OWN) and k != "app"}
        feedback = self._feedback(info.get("assessments"))
        for span in spans:
            if not isinstance(span, dict):
                raise MalformedError(f"a span is `{type(span).__name__}`, not `object`")
            yield _span(name, span, tags, more, own, feedback)

    def _id(self, client: http.Client) -> str:
        """Request the experiment's id, also for an id: otherwise, a missing experiment would look like no traces."""
        asked = self._config.experiment
        if asked.isdecimal():
            reply = client.get("/api/2.0/mlflow/experiments/get", {"experiment_id": asked}, _CHECK)
        else:
            reply = client.get("/api/2.0/mlflow/experiments/get-by-name", {"experiment_name": asked}, _CHECK)
        return scalar(mapping(reply.get("experiment")).get("experiment_id")) or asked

    def _fetched(self, client: http.Client, infos: list[Any]) -> Iterator[Record | Reject]:
        """Yield the traces of these infos, with their spans."""
        stored: list[str] = []
        for info in infos:
            name = scalar(info.get("trace_id")) if isinstance(info, dict) else None
            if name is None:
                yield pull.malformed({}, "an info without `trace_id`")
            elif mapping(info.get("tags")).get("mlflow.trace.spansLocation") == "TRACKING_STORE":
                stored.append(name)
            else:
                yield {"info": info, "data": self._artifact(client, name)}
        for at in range(0, len(stored), FETCHED):
            wanted = stored[at : at + FETCHED]
            page = client.get("/api/3.0/mlflow/traces/batchGet", {"trace_ids": wanted}, _CHECK)
            found = list(pull.objects(pull.listed(page, "traces", "mlflow", may_miss=True)))
            yield from found
            there = {mapping(one.get("trace_info")).get("trace_id") for one in found if isinstance(one, dict)}
            for name in wanted:
                if name not in there:  # the application stopped before it wrote all spans
                    yield pull.malformed({"trace_id": name}, "the server does not have all spans of this trace")

    def _artifact(self, client: http.Client, name: str) -> Record:
        """Request the spans of a trace that are stored as an artifact; none if the server can't return them."""
        try:
            return client.get("/ajax-api/2.0/mlflow/get-trace-artifact", {"request_id": name}, _CHECK)
        except ConnectionLostError:
            raise
        except SourceError:
            return {"spans": []}

    def _feedback(self, assessments: object) -> Feedback | None:
        """Return the latest user rating."""
        for one in reversed(assessments if isinstance(assessments, list) else []):
            given = mapping(mapping(one).get("feedback"))
            if given and one.get("assessment_name") in self._config.feedback:
                return pull.rating(given.get("value"), one.get("rationale"))
        return None


def _span(
    trace_id: str,
    span: Record,
    tags: Mapping[str, Any],
    more: Mapping[str, Any],
    own: Mapping[str, Any],
    feedback: Feedback | None,
) -> Span:
    data = _attributes(span.get("attributes"))
    context = mapping(span.get("context"))  # MLflow 2
    status = mapping(span.get("status"))
    usage = mapping(data.get("mlflow.chat.tokenUsage"))
    parent = _id(span.get("parent_span_id", span.get("parent_id")))
    names = (data.get("mlflow.llm.model"), mapping(data.get("invocation_params")).get("model"))
    name = _id(span.get("span_id", context.get("span_id")))
    if name is None:
        raise MalformedError("a span without `span_id`")
    return Span(
        trace_id=trace_id,
        span_id=name,
        parent_id=parent,
        name=scalar(span.get("name")) or "",
        kind=kind_of(data.get("mlflow.spanType")),
        start=from_ns(span.get("start_time_unix_nano", span.get("start_time"))),
        end=from_ns(span.get("end_time_unix_nano", span.get("end_time"))),
        error=status.get("code", span.get("status_code")) in _FAILED,
        input=data.get("mlflow.spanInputs"),
        output=data.get("mlflow.spanOutputs"),
        model=next(filter(None, map(scalar, names)), None),
        tokens_in=whole(usage.get("input_tokens")),
        tokens_out=whole(usage.get("output_tokens")),
        cost=number(mapping(data.get("mlflow.llm.cost")).get("total_cost")),
        session=scalar(more.get("mlflow.trace.session")),
        app=scalar(tags.get("app")),
        tags={} if parent else {k: v for k, value in own.items() if (v := scalar(value))},
        feedback=None if parent else feedback,
    )


def _attributes(given: object) -> Record:
    """Return attributes by name, from OTLP's typed values or from JSON texts as in `Trace.to_json()`."""
    if isinstance(given, list):
        return {
            str(item["key"]): _typed(item.get("value")) for item in given if isinstance(item, dict) and "key" in item
        }
    return {key: _untexted(value) for key, value in mapping(given).items()}


def _untexted(value: object) -> object:
    if isinstance(value, str):
        try:
            return decode_json(value.encode())
        except (ValueError, RecursionError):
            return value
    return value


def _typed(value: object) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON value of an OTLP `AnyValue`, with keys in camel or snake case; None without a value."""
    for key, held in mapping(value).items():
        match key.removesuffix("_value").removesuffix("Value"):
            case "kvlist":
                return _attributes(mapping(held).get("values", []))
            case "array":
                return [_typed(item) for item in mapping(held).get("values", [])]
            case "int":
                return whole(held)
            case _:
                return held
    return None


def _id(value: object) -> str | None:
    """Return a span id in hex, from hex or from base64 (protobuf's JSON for bytes).

    Raises:
        MalformedError: The id is neither.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        if known := _HEX.fullmatch(value.lower()):
            return known[1]
        try:
            if len(raw := base64.b64decode(value, validate=True)) == 8:
                return raw.hex()
        except (binascii.Error, ValueError):
            pass
    raise MalformedError("an id of a span is neither 16 hex digits nor base64 of 8 bytes")
