"""The context of a run, which every stage gets: lake, days, and the models, settings and versions of one recipe.

`build.py` creates contexts. A model is loaded when it gets its first request.
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
    """Inputs and tools of a run for one recipe. Contexts of one run differ only in what their recipes name.

    Attributes:
        path: The config's file, as the user named it.
        chosen: The recipe in the config.
        first: First day to complete.
        last: Last day to complete.
        today: Day of the run; later timestamps are refused.
        judges: Judges in the order of the cascade.
        scorers: Relevance scorers of answers, chunks and answerability, in the order they run.
        recipe: Hash of `definition`.
        definition: See `identity.recipe_definition`.
        annotations: Right sources by question, if the recipe names a file of annotations.
        scope: Which traces are judged under the recipe.
        days: Days for which these judges count.
        shadow: Whether this is a shadow judge, whose results do not count and have no report.
        budget: Limits on the cost of judging.
        executor: Runs models, and work that is done part by part.
        grader: Grades whole answers; None if the recipe names no grader.
        unusable: Variants that the run leaves out, of all recipes; set in the first context only.
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
        """Whether the results count for the night. Those of shadows and backfills do not."""
        return not self.shadow and self.lake.writer == "run"

    @property
    def label(self) -> str:
        """The recipe's name, with the shadow judge, applications and days that distinguish this context."""
        shadow = f", shadow {cascade.name(self.judges)}" if self.shadow else ""
        apps = f" for {', '.join(self.scope.apps)}" if self.scope.apps else ""
        return f"{self.settings.name}{shadow}{apps}{self.days}"

    @property
    def scratch(self) -> Path:
        """Where DuckDB may spill."""
        return self.lake.hidden("scratch")

    @property
    def judge_version(self) -> str:
        """Version of the judge or cascade: a hash of everything that can change a label."""
        return cascade.version(self.judges)

    def sql_command(self, statement: str) -> str:
        """The command that runs a statement on this config's warehouse.

        The statement must be free of characters that a shell interprets within double quotes.
        """
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
        """Whether the run completes this day by these judges: a requested day, or one to catch up with."""
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
