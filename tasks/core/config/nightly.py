"""The keys of a nightly config."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, ValidationInfo, field_validator, model_validator

from tasks.core.config.base import ConfigPath, LakePlace, Number, Passing, Settings, Share, placed, scale
from tasks.core.config.names import RecipeFile, SourceFile
from tasks.core.config.recipe import Recipe


class Gates(Settings):
    """Limits of the gates on traces and on results.

    Attributes:
        max_age_days: Refuses a timestamp more than this before the last requested day.
        max_ahead_days: Refuses a timestamp more than this after today, or after the last requested day.
        max_quarantined_share: Stops the run if a larger share of its new rows is refused.
        volume_nights: Number of earlier nights for the usual volume; 0 turns the check off.
        volume_ratio: A night outside [median / ratio, median · ratio] of those nights is reported as unusual; it does
            not stop the run.
    """

    max_question_chars: Annotated[int, Field(ge=1)] = 50_000
    max_answer_chars: Annotated[int, Field(ge=1)] = 200_000
    max_chunk_chars: Annotated[int, Field(ge=1)] = 200_000
    max_chunks: Annotated[int, Field(ge=1)] = 1_000
    max_age_days: Annotated[int, Field(ge=1)] = 3_650
    max_ahead_days: Annotated[int, Field(ge=0)] = 1
    max_quarantined_share: Share = 0.05
    volume_nights: Annotated[int, Field(ge=0)] = 7
    volume_ratio: Annotated[float, Field(gt=1)] = 3.0


class Limits(Settings):
    """How work is divided, and how much memory it may use.

    Attributes:
        part_traces: Maximum of traces in one part of the lake, the unit of work of every later stage.
        shard_requests: Requests judged between two writes; a kill loses at most this many.
        sort_requests: Requests sorted in memory by their evidence, so that requests with the same evidence follow one
            another and a model reads it once; at least `shard_requests`.
        memory_limit: DuckDB's memory limit; DuckDB spills to disk beyond it.
        catch_up_days: Days before the first requested day that are completed too, if traces arrived late for them.
    """

    part_traces: Annotated[int, Field(ge=1)] = 4_000
    shard_requests: Annotated[int, Field(ge=1)] = 2_048
    sort_requests: Annotated[int, Field(ge=1)] = 16_384
    memory_limit: Annotated[str, Field(pattern=r"^\d+ ?(MB|GB)$")] = "2GB"
    catch_up_days: Annotated[int, Field(ge=0)] = 0


class Report(Settings):
    """The static report.

    Attributes:
        dir: Folder of the site.
        max_trace_pages: Maximum of traces per night with their own page; the worst ones come first.
        max_explorer_traces: Maximum of traces per night in the explorer, with the first 1,000 characters of their
            question and answer; the worst ones come first. Traces with a page are always in it.
        prometheus: A file for the metrics of the latest night (docs/operations.md#metrics), which ends in `.prom`; none
            is written by default.
    """

    dir: ConfigPath
    max_trace_pages: Annotated[int, Field(ge=0)] = 500
    max_explorer_traces: Annotated[int, Field(ge=0)] = 100_000
    prometheus: ConfigPath | None = None

    @field_validator("prometheus")
    @classmethod
    def _prom(cls, path: Path | None) -> Path | None:
        """node_exporter reads no other file."""
        if path is not None and path.suffix != ".prom":
            raise ValueError("Should end in .prom, since node_exporter reads no other file")
        return path


class Alerts(Settings):
    """Which numbers are watched, which changes raise an alert, and where alerts are sent.

    Attributes:
        numbers: Watched numbers of each app and generator; all by default. `grade_…` are means of the grades, where the
            recipe names a grader.
        nights: Maximum of nights in the comparison.
        least_nights: Minimum of nights in the comparison; with fewer, no alert fires.
        least_traces: Leaves out nights with fewer scored traces.
        least_change: Smallest change that raises an alert, by number and in its unit. The default is a hundredth of the
            scale: 1 for groundedness (0 to 100), 0.04 for grades from 1 to 5, and 0.01 for the others.
        false_alerts: Budget of false alerts per recipe and year, on average, over all of its numbers.
        notify: Where alerts are sent: `env:NAME` or `file:PATH`, an environment variable or file with Apprise URLs,
            separated by white space. URLs contain secrets, so they do not belong here.
        notify_days: Does not send alerts of older nights.
        recoveries: Whether a message is also sent when a number has returned.
        report_url: Base URL of the report for links; null sends no links.
    """

    numbers: tuple[Number, ...] = get_args(Number)
    nights: Annotated[int, Field(ge=5)] = 42
    least_nights: Annotated[int, Field(ge=5)] = 14
    least_traces: Annotated[int, Field(ge=2)] = 20
    least_change: Mapping[Number, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    false_alerts: Annotated[float, Field(gt=0)] = 3.0
    notify: tuple[str, ...] = ()
    notify_days: Annotated[int, Field(ge=0)] = 7
    recoveries: bool = False
    report_url: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_secrets(cls, data: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        """Before all else, since other messages show the value."""
        given = data.get("notify") if isinstance(data, Mapping) else None
        texts = given if isinstance(given, list | tuple) else [] if given is None else [given]
        if given is not None and (
            not isinstance(given, list | tuple)
            or not all(isinstance(t, str) and re.fullmatch(r"env:\w+|file:.+", t) for t in texts)
        ):
            raise ValueError("has something in notify that is neither env:NAME nor file:PATH; put URLs there")
        return data

    @field_validator("notify")
    @classmethod
    def _placed(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        """The names, with absolute paths of files."""
        files = {name: placed(Path(name.removeprefix("file:")), info) for name in names if name.startswith("file:")}
        return tuple(f"file:{files[name]}" if name in files else name for name in names)

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.least_nights > self.nights:
            raise ValueError("has least_nights above nights, so that no alert can ever fire; lower least_nights")
        return self

    def least(self, number: str) -> float:
        """The smallest change of a number that raises an alert."""
        given = (least for name, least in self.least_change.items() if name == number)
        low, high = scale(number)
        return next(given, (high - low) / 100)


class Retention(Settings):
    """How long texts are kept; scores, labels, spans and ids stay. `leadline retention` removes older texts.

    Attributes:
        text_days: Days to keep a trace's texts, counted from its day; none keeps them forever.
        explanations_days: Days to keep a judge's explanations; never longer than the texts that they quote.
        refused_days: Days to keep the original lines of refused rows; 0 stores none, none keeps them as long as texts.
    """

    text_days: Annotated[int, Field(ge=1)] | None = None
    explanations_days: Annotated[int, Field(ge=1)] | None = None
    refused_days: Annotated[int, Field(ge=0)] | None = 14


class Promotion(Settings):
    """Pass rates of `leadline metaeval` that a judge needs for a promotion (docs/methods.md#judging-the-judges).

    Attributes:
        suite: Path of the suite, a file or a folder; none means the bundled suite.
        pass_rates: Required share of passed conditions, by grade or `overall` for all six; none by default.
    """

    suite: ConfigPath | None = None
    pass_rates: Mapping[Passing, Share] = Field(default_factory=dict)


class Sample(Settings):
    """A part of the traces, for logs that cost too much to judge (docs/operations.md#sampling).

    Attributes:
        share: Of the traces, on average; this or `per_day`.
        per_day: Traces of a day, on average, divided equally among its applications and generators: one that has fewer
            keeps all of them.
        by: What is taken or left out as a whole: each trace, each conversation, or each question with its repeats.
        seed: Another one takes another sample.
    """

    share: Annotated[float, Field(gt=0, le=1)] | None = None
    per_day: Annotated[int, Field(ge=1)] | None = None
    by: Literal["trace", "session", "question"] = "trace"
    seed: str = ""

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if (self.share is None) == (self.per_day is None):
            raise ValueError("Should have either `share` or `per_day`")
        return self


class DuckLake(Settings):
    """A DuckLake that many analysts query at once (docs/operations.md#many-analysts).

    Attributes:
        dsn_env: Environment variable that holds the address of its catalog, a PostgreSQL database:
            `postgresql://user:password@host/name`. The address itself never stands in a config.
        data_path: Where its Parquet files are: a folder, or a prefix such as `s3://bucket/leadline/` or
            `az://container/leadline/`.
        schema_name: Schema of its tables in the catalog: one for each lake.
    """

    dsn_env: str
    data_path: str
    schema_name: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")] = "main"

    @model_validator(mode="before")
    @classmethod
    def _no_secrets(cls, data: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        """Before all else, since other messages show the value."""
        if isinstance(data, Mapping) and not re.fullmatch(r"[A-Za-z_]\w*", str(data.get("dsn_env", "_"))):
            raise ValueError("has a dsn_env that is no name of an environment variable; put the address into one")
        return data

    @field_validator("data_path")
    @classmethod
    def _placed(cls, path: str, info: ValidationInfo) -> str:
        """The prefix, or the absolute path of the folder."""
        if "://" in path and not re.fullmatch(r"(s3|az)://[^@]+", path):
            raise ValueError("should be a folder or begin with s3:// or az://")
        return path if "://" in path else str(placed(Path(path), info))


class Nightly(Settings):
    """The whole of `configs/nightly.yaml`.

    Attributes:
        lake: Folder of the lake, the Parquet files from which everything else is derived; or its place on object
            storage, `s3://bucket/prefix` or `az://container/prefix`.
        lake_cache: Folder of this machine for copies of a lake that is on object storage.
        recipe: The recipe for every trace; this or `recipes`.
        recipes: Several recipes for the same traces: paths of recipe files, or inline recipes. Shared results are
            computed once.
        sample: How many of the traces are read in; all by default.
        ducklake: Where results are published for many analysts, beside the warehouse; nowhere by default.
        executor: Where models run: `kind: local`, in this process, or `kind: ray`, on several workers.
        private: Lake, warehouse, report and outputs can be read by the user who runs Leadline alone (modes 0600 and
            0700). Set it to false where others or a web server read them; then the umask of the process decides.
    """

    lake: LakePlace
    lake_cache: ConfigPath = Path("~/.cache/leadline")
    warehouse: ConfigPath
    report: Report
    sources: Annotated[list[Mapping[str, Any] | SourceFile], Field(min_length=1)]
    sample: Sample | None = None
    executor: Mapping[str, Any] = Field(default_factory=lambda: {"kind": "local"})
    private: bool = True
    recipe: Recipe | None = None
    recipes: tuple[Mapping[str, Any] | RecipeFile, ...] = ()
    gates: Gates = Gates()
    limits: Limits = Limits()
    alerts: Alerts = Alerts()
    ducklake: DuckLake | None = None
    retention: Retention = Retention()
    promotion: Promotion = Promotion()
