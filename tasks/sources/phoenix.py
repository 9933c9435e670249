"""Traces of Phoenix, from the spans of a project: read with its REST API or from export files.

An export is JSON lines of spans in the API's format, or Parquet of the client's data frame of spans.
`spans/attributes.py` knows the attribute names, and the package `spans` builds the traces.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import Field

from tasks.core.types import Feedback
from tasks.sources import Reject, Source
from tasks.sources.reading import http
from tasks.sources.reading.values import from_iso, mapping
from tasks.sources.reading.windows import Window, iso
from tasks.sources.spans import Span, pull
from tasks.sources.spans.attributes import span_of
from tasks.sources.spans.pull import MalformedError, PulledSource, Record
from tasks.sources.spans.texts import kind_of

PAGE = 1000  # spans; the server's limit for a page
ANNOTATED = 100  # spans per request for annotations; their ids are part of the URL

_FLAT = "context.trace_id"  # a column of the client's data frame


class Config(pull.Pulled):
    """Settings of a `phoenix` source; see `pull.Pulled` for the common ones.

    Attributes:
        project: Name or id of the project. It is also the application if `spans.app` is not set.
        api_key_env: Environment variable with an API key, if the server requires one.
        page: Number of spans per request.
    """

    kind: Literal["phoenix"]
    project: Annotated[str, Field(min_length=1, pattern=r"^[^/?#]+$")] = "default"
    api_key_env: str | None = None
    page: Annotated[int, Field(ge=1, le=PAGE)] = PAGE


def build(config: Config, base: Path) -> Source:
    """Create the source from its settings; `base` is the config file's directory.

    Raises:
        UsageError: `url` is not a server's URL, or contains credentials.
    """
    return PulledSource(named(config), base, PhoenixStore(config))


def named(config: Config) -> Config:
    """Return the settings with the project as the default application."""
    spans = config.spans.model_copy(update={"app": config.spans.app or config.project})
    return config.model_copy(update={"spans": spans})


class PhoenixStore:
    """Reads spans from a Phoenix server or its exports."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._url = "" if config.url is None else http.checked_url("phoenix", config.url)
        self._project = f"/v1/projects/{quote(config.project, safe='')}"

    @property
    def place(self) -> str:
        """See `pull.Store.place`."""
        return self._url + self._project

    def client(self, sleep: Callable[[float], None]) -> http.Client:
        """See `pull.Store.client`."""
        variable = self._config.api_key_env
        headers: dict[str, str] = {}
        if variable is None:
            names = "`api_key_env`: it names no variable"
        else:
            key = http.secret("phoenix", "api_key_env", variable)
            headers, names = {"Authorization": f"Bearer {key}"}, f"the key in ${variable}"
        return http.Client(self._url, headers, names, timeout_s=self._config.timeout_s, sleep=sleep)

    def pull(self, client: http.Client, window: Window) -> Iterator[Record | Reject]:
        """See `pull.Store.pull`. The annotations with user ratings are added to the roots."""
        times = {"start_time": iso(window.start), "end_time": iso(window.end)}
        for page in self._pages(client, "/spans", {**times, "limit": self._config.page}):
            records = list(pull.objects(page))
            roots = [r for r in records if isinstance(r, dict) and not r.get("parent_id")]
            ids = [i for r in roots if isinstance(i := mapping(r.get("context")).get("span_id"), str)]
            annotations = self._annotations(client, ids)
            for root in roots:
                root["annotations"] = annotations.get(str(mapping(root.get("context")).get("span_id")), [])
            yield from records

    def of_traces(self, client: http.Client, trace_ids: Sequence[str]) -> Iterator[Record | Reject]:
        """Request the spans of some traces, without annotations.

        Raises:
            SourceError: The server can't be read to the end of the spans.
        """
        for page in self._pages(client, "/spans", {"trace_id": list(trace_ids), "limit": self._config.page}):
            yield from pull.objects(page)

    def ratings(self) -> dict[str, Feedback]:
        """See `pull.Store.ratings`. Empty, because ratings are part of the records."""
        return {}

    def spans(self, record: Record) -> Iterator[Span]:
        """See `pull.Store.spans`."""
        context, attributes = mapping(record.get("context")), mapping(record.get("attributes"))
        if _FLAT in record:
            context = {"trace_id": record[_FLAT], "span_id": record.get("context.span_id")}
            attributes = {k.removeprefix("attributes."): v for k, v in record.items() if k.startswith("attributes.")}
        trace_id, span_id, parent_id = context.get("trace_id"), context.get("span_id"), record.get("parent_id")
        if not isinstance(trace_id, str) or not isinstance(span_id, str) or not trace_id or not span_id:
            raise MalformedError("a span has no trace id or span id")
        found = span_of(_flat(attributes))
        yield replace(
            found,
            trace_id=trace_id,
            span_id=span_id,
            parent_id=parent_id if isinstance(parent_id, str) and parent_id else None,
            name=str(record.get("name") or ""),
            kind=kind_of(record["span_kind"]) if record.get("span_kind") else found.kind,
            start=from_iso(record.get("start_time")),
            end=from_iso(record.get("end_time")),
            error=record.get("status_code") == "ERROR",
            feedback=self._rating(record.get("annotations")),
        )

    def _annotations(self, client: http.Client, ids: Sequence[str]) -> dict[str, list[Record]]:
        """Request the annotations of these spans that are ratings. Returns them by span id."""
        found: dict[str, list[Record]] = {}
        for at in range(0, len(ids), ANNOTATED) if self._config.feedback else ():
            asked = {"span_ids": list(ids[at : at + ANNOTATED]), "include_annotation_names": self._config.feedback}
            for page in self._pages(client, "/span_annotations", {**asked, "limit": PAGE}):
                for item in pull.objects(page):
                    if isinstance(item, dict):
                        found.setdefault(str(item.get("span_id")), []).append(item)
        return found

    def _rating(self, annotations: object) -> Feedback | None:
        given = map(mapping, annotations) if isinstance(annotations, list) else ()
        results = [mapping(a.get("result")) for a in given if a.get("name") in self._config.feedback]
        return next((f for r in results if (f := pull.rating(r.get("score"), r.get("explanation")))), None)

    def _pages(self, client: http.Client, path: str, params: Mapping[str, object]) -> Iterator[list[Any]]:
        missing = f"Check `project`, which is {self._config.project!r}"

        def ask(cursor: str | None) -> Record:
            return client.get(self._project + path, {**params, "cursor": cursor}, missing)

        for page in pull.pages(ask, lambda page: page.get("next_cursor"), "phoenix"):
            yield pull.listed(page, "data", "phoenix")


def _flat(value: object, prefix: str = "") -> dict[str, Any]:
    """Flatten attributes to their full names: a data frame nests some of them."""
    items: list[tuple[str, object]] = []
    if isinstance(value, Mapping):
        items = [(str(k), v) for k, v in value.items()]
    elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
        items = [(str(n), v) for n, v in enumerate(value)]
    elif prefix:
        return {} if value is None else {prefix: value}
    return {n: v for key, inner in items for n, v in _flat(inner, f"{prefix}.{key}" if prefix else key).items()}
