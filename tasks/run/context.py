"""What every stage of a run reads: the lake, the days, and the models and settings of one recipe, with their versions.

`build.py` makes contexts. No model is loaded before the first request to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from tasks.core.budget import Budget
from tasks.core.config import Chosen, Nightly, Recipe
from tasks.core.grades import Grader
from tasks.core.paths import config_option
from tasks.core.progress import Progress, Silent
from tasks.engines.transformers_cpu import Embedder
from tasks.executors import Executor
from tasks.executors.local import Local
from tasks.extractors import ByApp
from tasks.gates.gates import GateKeeper
from tasks.run import cascade
from tasks.run.annotations import Annotations
from tasks.run.cascade import CascadeJudge
from tasks.run.scopes.scope import ALL, ALWAYS, DateRange, Scope, oldest
from tasks.run.scopes.variants import Unusable
from tasks.scorers import Scorer
from tasks.sources import Source
from tasks.store.lake import Lake
from tasks.store.query import Queries


@dataclass(frozen=True)
class Context:
    """Inputs and tools of a run for one recipe. Contexts of one run share all but what the recipe names.

    Attributes:
        path: The config's file, as the user named it.
        chosen: The recipe in the config.
        first: First day to complete.
        last: Last day to complete.
        today: Day of the run; later timestamps are refused.
        judges: In the order of the cascade.
        scorers: Of answers, chunks and answerability, in the order they run.
        recipe: Hash of `definition`.
        definition: See `identity.recipe_definition`.
        annotations: Right sources by question, where the recipe names a file of them.
        scope: Which traces are judged under the recipe.
        days: Days for which these judges count.
        shadow: It runs beside the recipe that counts, without a report.
        budget: What judging may cost.
        executor: Where models run, and what is computed part by part.
        grader: Grades each answer as a whole, where the recipe names one.
        unusable: Judges of any recipe that the run leaves out; set in the first context only.
    """

    path: Path
    config: Nightly
    chosen: Chosen
    lake: Lake
    gates: GateKeeper
    first: date
    last: date
    today: date
    sources: tuple[Source, ...]
    extractor: ByApp
    judges: tuple[CascadeJudge, ...]
    embedder: Embedder
    scorers: tuple[Scorer, ...]
    recipe: str
    definition: Mapping[str, object]
    annotations: Annotations = field(default_factory=Annotations)
    progress: Progress = field(default_factory=Silent)
    scope: Scope = ALL
    days: DateRange = ALWAYS
    shadow: bool = False
    budget: Budget = field(default_factory=Budget)
    executor: Executor = field(default_factory=Local)
    grader: Grader | None = None
    unusable: tuple[Unusable, ...] = ()

    @property
    def settings(self) -> Recipe:
        """The recipe."""
        return self.chosen.recipe

    @property
    def counts(self) -> bool:
        """Whether its numbers are those of the night; those of a shadow or a backfill stand beside them."""
        return not self.shadow and self.lake.writer == "run"

    @property
    def label(self) -> str:
        """The recipe's name, with what distinguishes this context from others of the recipe."""
        shadow = f", shadow {cascade.name(self.judges)}" if self.shadow else ""
        apps = f" for {', '.join(self.scope.apps)}" if self.scope.apps else ""
        return f"{self.settings.name}{shadow}{apps}{self.days}"

    @property
    def scratch(self) -> Path:
        """Where DuckDB may spill."""
        return self.lake.hidden("scratch")

    @property
    def judge_version(self) -> str:
        """Hash of what can change a label: of the judge, or of the cascade."""
        return cascade.version(self.judges)

    def sql_command(self, statement: str) -> str:
        """The command that runs a statement on this config's warehouse; it holds nothing that a shell reads in `""`."""
        return f'leadline sql{self.config_option} "{statement}"'

    @property
    def config_option(self) -> str:
        """See `tasks.core.paths.config_option`."""
        return config_option(self.path)

    def queries(self) -> Queries:
        """A private DuckDB within the configured memory."""
        return Queries(self.config.limits.memory_limit, self.scratch)

    def requested_days(self) -> list[date]:
        """The requested days for which these judges count."""
        days = (self.first + timedelta(days=n) for n in range((self.last - self.first).days + 1))
        return [day for day in days if day in self.days]

    def covers(self, day: date) -> bool:
        """Whether the run completes this day by these judges: a requested one, or one to catch up with."""
        return day in self.days and oldest(self.config, self.first) <= day <= self.last

    def close(self) -> None:
        """Free the models."""
        self.executor.close()
        self.extractor.close()
        for judge in self.judges:
            judge.close()
        for scorer in self.scorers:
            scorer.close()
        if self.grader:
            self.grader.close()
        self.embedder.close()
