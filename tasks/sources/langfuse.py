"""Traces of Langfuse: its API of observations, version 2, or the files that it exports to blob storage.

The two write the names of fields in different cases; both hold inputs and outputs as texts. The API gives no scores, so
the ratings of users come from exports only. Left out: what a span means (`spans/`).
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from tasks.core.types import Feedback
from tasks.sources import Reject, Source
from tasks.sources.reading import exports, http
from tasks.sources.reading.values import mapping, moment, number, parsed, scalar, whole
from tasks.sources.reading.windows import Window, iso
from tasks.sources.spans import Span, pull
from tasks.sources.spans.pull import MalformedError, PulledSource, Record
from tasks.sources.spans.texts import kind_of

PAGE = 1000  # observations, the most that the server gives at once
FIELDS = "core,basic,time,io,metadata,model,usage,prompt,trace_context"  # only what is named here comes

_CHECK = "Check `url`, and that the server is Langfuse Cloud, or version 4 or later"


class Config(pull.Pulled):
    """Settings of a `langfuse` source; see `pull.Pulled` for those that it shares.

    Attributes:
        environment: Of the traces to read; all where it is left out.
        scores: Files with the scores of an export, beside `paths`.
        public_key_env: Environment variable that holds the project's public key. The keys choose the project.
        secret_key_env: Environment variable that holds its secret key.
    """

    kind: Literal["langfuse"]
    environment: str | None = None
    scores: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)
    public_key_env: str = "LANGFUSE_PUBLIC_KEY"
    secret_key_env: str = "LANGFUSE_SECRET_KEY"  # noqa: S105 - its name


def build(config: Config, base: Path) -> Source:
    """The source that the settings describe; `base` is the config file's directory.

    Raises:
        UsageError: `url` is none, or holds credentials.
    """
    return PulledSource(config, base, LangfuseStore(config, base))


class LangfuseStore:
    """Asks a Langfuse server, and reads its observations."""

    def __init__(self, config: Config, base: Path) -> None:
        self._config = config
        self._base = base
        self._url = http.checked_url("langfuse", config.url) if config.url else ""

    @property
    def place(self) -> str:
        """See `pull.Store.place`."""
        # The keys choose the project: the name of their variable tells the windows of two projects apart.
        return " ".join(filter(None, (self._url, self._config.public_key_env, self._config.environment)))

    def client(self, sleep: Callable[[float], None]) -> http.Client:
        """See `pull.Store.client`."""
        public, private = self._config.public_key_env, self._config.secret_key_env
        headers = http.basic(
            http.secret("langfuse", "public_key_env", public), http.secret("langfuse", "secret_key_env", private)
        )
        return http.Client(
            self._url, headers, f"${public} and ${private}", timeout_s=self._config.timeout_s, sleep=sleep
        )

    def pull(self, client: http.Client, window: Window) -> Iterator[Record | Reject]:
        """See `pull.Store.pull`: one record an observation."""
        wanted = {
            "fields": FIELDS,
            "limit": PAGE,
            "fromStartTime": iso(window.start),
            "toStartTime": iso(window.end),
            "environment": self._config.environment,
        }

        def ask(cursor: str | None) -> Record:
            return client.get("/api/public/v2/observations", {**wanted, "cursor": cursor}, _CHECK)

        for page in pull.pages(ask, lambda page: mapping(page.get("meta")).get("cursor"), "langfuse"):
            yield from pull.objects(pull.listed(page, "data", "langfuse"))

    def ratings(self) -> dict[str, Feedback]:
        """See `pull.Store.ratings`: the latest of each trace, from the files with scores."""
        found: dict[str, Feedback] = {}
        for path in self._config.scores:
            for row in exports.read(path, self._base, self._config.storage_options):
                if isinstance(row, dict) and row.get("name") in self._config.feedback:
                    given, trace_id = pull.rating(row.get("value"), row.get("comment")), scalar(row.get("trace_id"))
                    if given and trace_id:
                        found[trace_id] = given
        return found

    def spans(self, record: Record) -> Iterator[Span]:
        """See `pull.Store.spans`: of one observation."""
        row = {_camel(key): value for key, value in record.items()}
        trace_id, own, start = scalar(row.get("traceId")), scalar(row.get("id")), moment(row.get("startTime"))
        if trace_id is None or own is None or start is None:
            raise MalformedError("an observation without `id`, trace id or start time")
        if self._config.environment and row.get("environment") != self._config.environment:
            return
        parent = scalar(row.get("parentObservationId"))
        usage, metadata = mapping(row.get("usageDetails")), mapping(row.get("metadata"))
        prompt = (scalar(row.get("promptName")), scalar(row.get("promptVersion")))
        yield Span(
            trace_id=trace_id,
            span_id=own,
            parent_id=parent,
            name=scalar(row.get("name")) or "",
            kind=kind_of(row.get("type")),
            start=start,
            end=moment(row.get("endTime")),
            error=row.get("level") == "ERROR",
            input=row.get("input"),
            output=row.get("output"),
            model=scalar(row.get("model")) or scalar(row.get("providedModelName")),
            tokens_in=whole(usage.get("input")),
            tokens_out=whole(usage.get("output")),
            cost=number(row.get("totalCost", mapping(row.get("costDetails")).get("total"))),
            prompt_version=" ".join(filter(None, prompt)) or None,
            session=scalar(row.get("sessionId")),
            environment=scalar(row.get("environment")),
            tags={} if parent else {k: v for k, value in metadata.items() if (v := scalar(parsed(value)))},
        )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
