"""Traces of Langfuse, from version 2 of its observations API or from its exports to blob storage.

Field names are camel case in one of the two and snake case in the other. Both write inputs and outputs as texts. The
API returns no scores, so user ratings are read from exports only. The package `spans` builds the traces.
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

PAGE = 1000  # observations; the server's limit for a page
FIELDS = "core,basic,time,io,metadata,model,usage,prompt,trace_context"  # the only groups returned

_CHECK = "Check `url`, and that the server is Langfuse Cloud, or version 4 or later"


class Config(pull.Pulled):
    """Settings of a `langfuse` source; see `pull.Pulled` for the common ones.

    Attributes:
        environment: Environment of the traces to read. The default is all.
        scores: Files with the scores of an export, in addition to `paths`.
        public_key_env: Environment variable with the project's public key. The keys determine the project.
        secret_key_env: Environment variable with the project's secret key.
    """

    kind: Literal["langfuse"]
    environment: str | None = None
    scores: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)
    public_key_env: str = "LANGFUSE_PUBLIC_KEY"
    secret_key_env: str = "LANGFUSE_SECRET_KEY"  # noqa: S105 - its name


def build(config: Config, base: Path) -> Source:
    """Create the source from its settings; `base` is the config file's directory.

    Raises:
        UsageError: `url` is not a server's URL, or contains credentials.
    """
    return PulledSource(config, base, LangfuseStore(config, base))


class LangfuseStore:
    """Reads observations from a Langfuse server or its exports."""

    def __init__(self, config: Config, base: Path) -> None:
        self._config = config
        self._base = base
        self._url = http.checked_url("langfuse", config.url) if config.url else ""

    @property
    def place(self) -> str:
        """See `pull.Store.place`."""
        # The keys determine the project, so the variable's name distinguishes windows of two projects.
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
        """See `pull.Store.pull`. Each record is an observation."""
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
        """See `pull.Store.ratings`. Reads the files with scores; the last rating in them counts for a trace."""
        found: dict[str, Feedback] = {}
        for path in self._config.scores:
            for row in exports.read(path, self._base, self._config.storage_options):
                if isinstance(row, dict) and row.get("name") in self._config.feedback:
                    given, trace_id = pull.rating(row.get("value"), row.get("comment")), scalar(row.get("trace_id"))
                    if given and trace_id:
                        found[trace_id] = given
        return found

    def spans(self, record: Record) -> Iterator[Span]:
        """See `pull.Store.spans`. A record is one observation."""
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
