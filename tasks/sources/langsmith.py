"""Traces of LangSmith, from its API of runs or from the Parquet files of its bulk export.

Each record is a run. In the export, `inputs`, `outputs` and `extra` are JSON texts, which are parsed. The package
`spans` builds the traces.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from tasks.core.config import WriteBack
from tasks.core.errors import UsageError
from tasks.core.types import Feedback
from tasks.sources import Reject, Source
from tasks.sources.reading import http
from tasks.sources.reading.values import mapping, moment, number, parsed, scalar, whole
from tasks.sources.reading.windows import Window, iso
from tasks.sources.spans import Span, pull
from tasks.sources.spans.pull import MalformedError, PulledSource, Record
from tasks.sources.spans.texts import kind_of

PAGE = 100  # runs; the server's limit for a page
SELECT = [
    "id", "trace_id", "parent_run_id", "name", "run_type", "start_time", "end_time", "status", "error", "inputs",
    "outputs", "extra", "prompt_tokens", "completion_tokens", "total_cost", "feedback_stats",
]  # fmt: skip

_CHECK = "Check `url` and `project`"
_SESSION = ("session_id", "thread_id", "conversation_id")
# Metadata that the SDK adds, and ids of users and conversations, which are not labels.
_NO_TAGS = {*_SESSION, "user", "user_id", "revision_id", "thread_id", "checkpoint_ns"}
_NO_TAG = ("ls_", "langgraph_", "LANGSMITH_", "LANGCHAIN_", "lc_")
_UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


class LangsmithWriteBack(WriteBack):
    """The `write_back` settings for LangSmith.

    Attributes:
        extend_trace_retention: Whether a score extends the trace's retention, for which LangSmith charges.
    """

    extend_trace_retention: bool = False


class Config(pull.Pulled):
    """Settings of a `langsmith` source; see `pull.Pulled` for the common ones.

    Attributes:
        project: Id of the tracing project, as shown in its settings. Required with `url`.
        api_key_env: Environment variable with the API key.
    """

    write_back: LangsmithWriteBack | None = None

    kind: Literal["langsmith"]
    project: Annotated[str, Field(pattern=_UUID)] | None = None
    api_key_env: str = "LANGSMITH_API_KEY"


def build(config: Config, base: Path) -> Source:
    """Create the source from its settings; `base` is the config file's directory.

    Raises:
        UsageError: `url` is not a server's URL or contains credentials, or `project` is missing.
    """
    return PulledSource(config, base, LangsmithStore(config))


class LangsmithStore:
    """Reads runs from a LangSmith server or its exports."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._url = http.checked_url("langsmith", config.url) if config.url else ""
        if config.url and config.project is None:
            raise UsageError("langsmith source: `project` is missing. Write the id that the project's settings show.")

    @property
    def place(self) -> str:
        """See `pull.Store.place`."""
        return f"{self._url} project {self._config.project}"

    def client(self, sleep: Callable[[float], None]) -> http.Client:
        """See `pull.Store.client`."""
        variable = self._config.api_key_env
        headers = {"x-api-key": http.secret("langsmith", "api_key_env", variable)}
        return http.Client(self._url, headers, f"${variable}", timeout_s=self._config.timeout_s, sleep=sleep)

    def pull(self, client: http.Client, window: Window) -> Iterator[Record | Reject]:
        """See `pull.Store.pull`. Each record is a run."""
        body: Record = {
            "session": [self._config.project],
            "start_time": iso(window.start),  # the server's default is the last day
            "filter": f'lt(start_time, "{iso(window.end)}")',
            "select": SELECT,
            "limit": PAGE,
        }

        def ask(cursor: str | None) -> Record:
            return client.post("/api/v1/runs/query", {**body, "cursor": cursor} if cursor else body, _CHECK)

        for page in pull.pages(ask, lambda page: mapping(page.get("cursors")).get("next"), "langsmith"):
            yield from pull.objects(pull.listed(page, "runs", "langsmith"))

    def ratings(self) -> dict[str, Feedback]:
        """See `pull.Store.ratings`. Empty, because ratings are part of the records."""
        return {}

    def spans(self, record: Record) -> Iterator[Span]:
        """See `pull.Store.spans`. A record is one run."""
        trace_id, own, start = (
            scalar(record.get("trace_id")),
            scalar(record.get("id")),
            moment(record.get("start_time")),
        )
        if trace_id is None or own is None or start is None:
            raise MalformedError("a run without `id`, `trace_id` or `start_time`")
        parent = scalar(record.get("parent_run_id"))
        extra = mapping(record.get("extra"))
        metadata, invocation = mapping(extra.get("metadata")), mapping(extra.get("invocation_params"))
        outputs = parsed(record.get("outputs"))
        usage = _usage(outputs)
        tokens_in, tokens_out = whole(record.get("prompt_tokens")), whole(record.get("completion_tokens"))
        names = (metadata.get("ls_model_name"), invocation.get("model"), invocation.get("model_name"))
        yield Span(
            trace_id=trace_id,
            span_id=own,
            parent_id=parent,
            name=scalar(record.get("name")) or "",
            kind=kind_of(record.get("run_type")),
            start=start,
            end=moment(record.get("end_time")),
            error=record.get("status") == "error" or bool(record.get("error")),
            input=parsed(record.get("inputs")),
            output=outputs,
            model=next(filter(None, map(scalar, names)), None),
            tokens_in=whole(usage.get("input_tokens")) if tokens_in is None else tokens_in,
            tokens_out=whole(usage.get("output_tokens")) if tokens_out is None else tokens_out,
            cost=number(record.get("total_cost")),
            session=next(filter(None, (scalar(metadata.get(key)) for key in _SESSION)), None),
            tags={} if parent else _tags(metadata),
            feedback=None if parent else self._feedback(mapping(record.get("feedback_stats"))),
        )

    def _feedback(self, stats: Record) -> Feedback | None:
        """Return the mean of the user ratings. A run doesn't contain their comments."""
        found = (pull.rating(mapping(stats.get(name)).get("avg")) for name in self._config.feedback)
        return next(filter(None, found), None)


def _tags(metadata: Record) -> dict[str, str]:
    own = {k: v for k, v in metadata.items() if k not in _NO_TAGS and not k.startswith(_NO_TAG)}
    return {k: v for k, value in own.items() if (v := scalar(value))}


def _usage(outputs: object) -> Record:
    """Return the token counts that LangChain stores in a model's message; empty if there are none."""
    found = outputs
    for key in ("generations", 0, 0, "message", "kwargs", "usage_metadata"):
        if isinstance(key, int):
            found = found[key] if isinstance(found, list) and found else None
        else:
            found = mapping(found).get(key)
    return mapping(found)
