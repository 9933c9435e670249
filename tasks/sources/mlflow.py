"""Traces of MLflow: a tracking server, asked by its REST API of version 3, or traces that were exported as JSON lines.

A page of a window names its traces; their spans are then fetched, some traces at a time. Where the server keeps spans
as artifacts and not in its database, they have an address of their own. Left out: what a span means (`spans/`).
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

PAGE = 500  # traces, the most that the server names at once
FETCHED = 50  # traces whose spans one request asks for: its address holds their ids

_CHECK = "Check `experiment`, and that the server is MLflow 3"
_HEX = re.compile(r"(?:0x)?([0-9a-f]{16})")
_OWN = "mlflow."  # how the names of tags and attributes begin that MLflow sets
_FAILED = ("STATUS_CODE_ERROR", "ERROR", 2)


class Config(pull.Pulled):
    """Settings of an `mlflow` source; see `pull.Pulled` for those that it shares.

    Attributes:
        experiment: Name or id of the experiment.
        api_key_env: Environment variable that holds a token, where the server wants one.
        user_env: Environment variable that holds the name of a user, where the server wants name and password.
        password_env: Environment variable that holds the password.
    """

    kind: Literal["mlflow"]
    experiment: Annotated[str, Field(min_length=1)] = "Default"
    api_key_env: str | None = None
    user_env: str | None = None
    password_env: str | None = None


def build(config: Config, base: Path) -> Source:
    """The source that the settings describe; `base` is the config file's directory.

    Raises:
        UsageError: `url` is none, or holds credentials.
    """
    return PulledSource(config, base, MlflowStore(config))


class MlflowStore:
    """Asks an MLflow server, and reads its traces."""

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
        """See `pull.Store.pull`: one record a trace."""
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
        """See `pull.Store.ratings`: they are part of the records."""
        return {}

    def spans(self, record: Record) -> Iterator[Span]:
        """See `pull.Store.spans`: of a trace as the server gives it, or as `Trace.to_json()` writes it."""
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
        """The experiment's id; asked for, so that one that does not exist is an error and not an empty night."""
        asked = self._config.experiment
        if asked.isdecimal():
            reply = client.get("/api/2.0/mlflow/experiments/get", {"experiment_id": asked}, _CHECK)
        else:
            reply = client.get("/api/2.0/mlflow/experiments/get-by-name", {"experiment_name": asked}, _CHECK)
        return scalar(mapping(reply.get("experiment")).get("experiment_id")) or asked

    def _fetched(self, client: http.Client, infos: list[Any]) -> Iterator[Record | Reject]:
        """The traces with these infos, with their spans."""
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
                if name not in there:  # its writer stopped in the middle
                    yield pull.malformed({"trace_id": name}, "the server does not have all spans of this trace")

    def _artifact(self, client: http.Client, name: str) -> Record:
        """The spans of a trace that the server keeps as a file; none where it has lost them."""
        try:
            return client.get("/ajax-api/2.0/mlflow/get-trace-artifact", {"request_id": name}, _CHECK)
        except ConnectionLostError:
            raise
        except SourceError:
            return {"spans": []}

    def _feedback(self, assessments: object) -> Feedback | None:
        """The latest rating of a user."""
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
    context = mapping(span.get("context"))  # of MLflow 2
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
    """Attributes by name: OTLP's typed values, or JSON that is written as text, as `Trace.to_json()` has it."""
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
    """The JSON value of an OTLP `AnyValue`, whose keys may be in either case; one without a value is null."""
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
    """The id of a span in hex, from hex or from the base64 that protobuf makes of bytes.

    Raises:
        MalformedError: It is neither.
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
