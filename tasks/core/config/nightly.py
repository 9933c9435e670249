"""The keys of a nightly config."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self, get_args

from pydantic import Field, model_validator

from tasks.core.config.base import Number, Passing, Settings, Share
from tasks.core.config.recipe import Recipe


class Gates(Settings):
    """Limits of the gates on traces and on results.

    Attributes:
        max_age_days: A timestamp further than this before the last day asked for is refused.
        max_ahead_days: A timestamp further than this after today, or after the last day asked for, is refused.
        max_quarantined_share: The run stops when a larger share of a run's new rows is refused.
        volume_nights: How many earlier nights tell the usual volume; 0 switches the check off.
        volume_ratio: A night is unusual outside [median / ratio, median · ratio] of those nights; it is reported,
            and stops nothing.
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
    """How work is cut and how much memory it may take.

    Attributes:
        part_traces: Most traces in one part of the lake, the unit of every later stage.
        shard_requests: Requests judged between two writes: at most this many are lost by a kill.
        sort_requests: Requests held in memory to be sorted by their evidence, so that those that share it follow one
            another and a model reads it once; never fewer than `shard_requests`.
        memory_limit: DuckDB's memory limit; beyond it, it spills to disk.
        catch_up_days: Days before the first one asked for that are completed too, if traces arrived late for them.
    """

    part_traces: Annotated[int, Field(ge=1)] = 4_000
    shard_requests: Annotated[int, Field(ge=1)] = 2_048
    sort_requests: Annotated[int, Field(ge=1)] = 16_384
    memory_limit: Annotated[str, Field(pattern=r"^\d+ ?(MB|GB)$")] = "2GB"
    catch_up_days: Annotated[int, Field(ge=0)] = 0


class Report(Settings):
    """The static report.

    Attributes:
        dir: Where the site is written.
        max_trace_pages: Traces of a night that get a page of their own, those most worth a look first.
    """

    dir: Path
    max_trace_pages: Annotated[int, Field(ge=0)] = 500


class Alerts(Settings):
    """Which numbers are watched, from when on a change is told, and where.

    Attributes:
        numbers: Watched in each app and generator, where a recipe has them; all by default.
        nights: Most nights that the last ones are compared with.
        least_nights: With fewer nights to compare with, nothing is told.
        least_traces: A night with fewer scored traces is left out.
        least_change: A smaller change is not told: by number, in its own unit. By default 1 for groundedness, which
            runs to 100, and 0.01 for the others.
        false_alerts: Most false alerts that a recipe may give in a year, on average, over all of its numbers.
        notify: Where alerts are sent: `env:NAME` for an environment variable, or `file:PATH`, that holds Apprise URLs,
            separated by white space. A URL itself does not belong here, since it holds a secret.
        notify_days: Alerts of nights longer ago are kept, but not sent.
        recoveries: Whether it is also sent when a number has returned.
        report_url: Where people find the report, for links; null sends none.
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

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.least_nights > self.nights:
            raise ValueError("has least_nights above nights, so that nothing is ever told; lower least_nights")
        return self

    def least(self, number: str) -> float:
        """The least change of a number that is told."""
        given = (least for name, least in self.least_change.items() if name == number)
        return next(given, 1.0 if number == "groundedness" else 0.01)


class Retention(Settings):
    """How long texts are kept; scores, labels, spans and ids stay. `leadline retention` removes what is older.

    Attributes:
        text_days: Days that the texts of a trace are kept, counted from its day; none for ever.
        explanations_days: Days that a judge's explanations are kept; never longer than the texts that they quote.
    """

    text_days: Annotated[int, Field(ge=1)] | None = None
    explanations_days: Annotated[int, Field(ge=1)] | None = None


class Promotion(Settings):
    """What a judge has to show before it may be promoted: pass rates of `leadline metaeval` (METHODS section 10).

    Attributes:
        suite: Path of the suite, a file or a folder; none: the one that comes with Leadline.
        pass_rates: The least share of conditions that it passes: of a grade, or `overall` of all six. By default no
            rate is required.
    """

    suite: Path | None = None
    pass_rates: Mapping[Passing, Share] = Field(default_factory=dict)


class Nightly(Settings):
    """The whole of `configs/nightly.yaml`.

    Attributes:
        recipe: What is computed of every trace; this or `recipes`.
        recipes: Several recipes for the same traces: paths of recipe files, or recipes written out in place. What they
            share is computed once.
    """

    lake: Path
    warehouse: Path
    report: Report
    sources: Annotated[list[Mapping[str, Any] | Path], Field(min_length=1)]
    recipe: Recipe | None = None
    recipes: tuple[Mapping[str, Any] | Path, ...] = ()
    gates: Gates = Gates()
    limits: Limits = Limits()
    alerts: Alerts = Alerts()
    retention: Retention = Retention()
    promotion: Promotion = Promotion()
