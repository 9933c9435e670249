"""Build the contexts of a run from its config: one per recipe, judge, and range of days that the judge counts for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from tasks import executors, extractors, graders, scorers, sources
from tasks.core import keys
from tasks.core.config import Chosen, Nightly, load_nightly, load_yaml, validate
from tasks.core.errors import ConfigError, EngineError, UsageError
from tasks.core.grades import Grader
from tasks.core.progress import Progress, Silent
from tasks.core.types import Judge
from tasks.engines.generator import Generator
from tasks.engines.transformers_cpu import Embedder, EmbedderConfig
from tasks.executors.local import Local
from tasks.gates.gates import GateKeeper
from tasks.run import annotations, cascade
from tasks.run.cascade import CascadeJudge
from tasks.run.context import Context
from tasks.run.identity import recipe_definition
from tasks.run.scopes import promotions
from tasks.run.scopes.promotions import Promotion
from tasks.run.scopes.scope import Scope, oldest
from tasks.run.scopes.variants import Unusable, Variant, nightly_variants
from tasks.sources import Source
from tasks.store.lake import Lake

Select = Callable[[Nightly, Path, Sequence[Promotion]], Sequence[Variant]]


def build_context(
    config_path: Path,
    first: date,
    last: date,
    *,
    overlay: Path | None = None,
    progress: Progress | None = None,
    today: date | None = None,
) -> Context:
    """Build the context of a config's first recipe; see `build_contexts`."""
    return build_contexts(config_path, first, last, overlay=overlay, progress=progress, today=today)[0]


def build_contexts(
    config_path: Path,
    first: date,
    last: date,
    *,
    overlay: Path | None = None,
    progress: Progress | None = None,
    today: date | None = None,
    writer: str = "run",
    select: Select | None = None,
    skip_unusable: bool = False,
) -> tuple[Context, ...]:
    """Build and check the contexts of a run. Writes no file and loads no model.

    Recipes that name the same judge, grader or embedding model share it, so no model is loaded twice.

    Args:
        overlay: Directory for writes in place of the lake, for a dry run.
        writer: See `Lake`.
        select: Selects the recipes, their judges and their traces; `nightly_variants` by default.
        skip_unusable: Leave out recipes whose judge can no longer be used, even if no recipe is left.

    Raises:
        ConfigError: A config file is wrong, or two recipes differ only in their names.
        UsageError: The range of days is empty.
    """
    if first > last:
        raise UsageError(f"--from {first} is after --to {last}. Swap them.")
    config = load_nightly(config_path)
    read_from = tuple(source_of(s, str(config_path), config_path.resolve().parent) for s in config.sources)
    lake = Lake(config.lake, overlay, writer=writer)
    executor = executors.load(config.executor, config_path)
    if overlay:
        executor = Local()  # workers can't read the overlay
    gates = GateKeeper(config.gates, None if overlay else lake.hidden("gates"))
    log = promotions.log(lake)
    if select:
        variants = select(config, config_path, log)
    else:
        variants = nightly_variants(config, config_path, log, oldest(config, first), last)
    models = _Models(log)
    contexts: list[Context] = []
    unusable: list[Unusable] = []
    for variant in variants:
        chosen, recipe, where = variant.chosen, variant.chosen.recipe, str(variant.chosen.where)
        try:
            judges = models.judges_of(variant)
        except (ConfigError, UsageError) as error:
            if skip_unusable or (variant.days.last is not None and variant.days.last < first):
                # The judge counted only for nights to catch up with and can't be used: leave these nights unchanged.
                unusable += [] if variant.shadow else [Unusable(variant, str(error))]
                continue
            raise
        opened = models.opened(chosen, judges)
        same = [c for c in contexts if c.recipe == opened["recipe"]]
        if same and (twin := same[0].settings.name) != recipe.name:
            names = f"{twin!r} and {recipe.name!r}"
            raise ConfigError(config_path, "recipes", f"has one recipe twice, as {names}", "Leave one of them out.")
        scope = _shadow_scope(variant, same) if variant.shadow else variant.scope
        if scope is None:
            continue  # the shadow judge has been promoted since
        if general := next((c for c in same if _excepts(c, variant)), None):
            # This application's own judge is also the judge of all other applications: use one context for both.
            without = tuple(app for app in general.scope.without if app not in variant.scope.apps)
            contexts[contexts.index(general)] = replace(general, scope=replace(general.scope, without=without))
            continue
        contexts.append(
            Context(
                path=config_path,
                config=config,
                chosen=chosen,
                lake=lake,
                gates=gates,
                first=first,
                last=last,
                today=today or datetime.now(UTC).date(),
                sources=read_from,
                judges=judges,
                annotations=annotations.load(recipe.grace.annotations, where, chosen.key("grace.annotations")),
                progress=progress or Silent(),
                scope=scope,
                days=variant.days,
                shadow=variant.shadow,
                executor=executor,
                **opened,
            )
        )
    return tuple(replace(ctx, unusable=() if n else tuple(unusable)) for n, ctx in enumerate(contexts))


def reopened(ctx: Context) -> Context:
    """Open the models of a context that was sent by another process.

    Raises:
        ConfigError: The settings or the file of a model are wrong on this machine.
        EngineError: A model has another version on this machine.
    """
    opened = _Models(()).opened(ctx.chosen, ctx.judges)
    if opened["recipe"] != ctx.recipe:
        raise EngineError(
            f"{ctx.chosen.where}: is recipe {opened['recipe']} here, but {ctx.recipe} where the run was started. "
            "Give all machines the same files of models, the same prompts and the same Leadline."
        )
    return replace(ctx, **opened)


@dataclass(frozen=True, slots=True)
class _Models:
    """Models shared by the recipes of a run, by file or settings.

    Attributes:
        log: All promotions.
    """

    log: Sequence[Promotion]
    judges: dict[Path, Judge] = field(default_factory=dict)
    embedders: dict[str, Embedder] = field(default_factory=dict)
    generators: dict[str, Generator] = field(default_factory=dict)
    graders: dict[Path, Grader] = field(default_factory=dict)

    def opened(self, chosen: Chosen, judges: Sequence[CascadeJudge]) -> dict[str, Any]:
        """Return the fields of a context that depend on a recipe and its judges.

        Raises:
            ConfigError: The settings or the file of a model are wrong.
            UsageError: The grader was retired.
        """
        recipe, where = chosen.recipe, str(chosen.where)
        extractor = extractors.load_by_app(
            recipe.extractor, recipe.apps, where, chosen.prefix, recipe.earlier_questions
        )
        embedder = self.embedder_of(chosen)
        own = scorers.load(recipe, embedder, self.generators)
        grader = self.grader_of(chosen)
        definition = recipe_definition(
            recipe,
            extractor.version,
            [judge.version for judge in judges],
            scorers.versions(own, embedder),
            grader.version if grader else None,
            [judge.languages for judge in judges],
        )
        made = {"extractor": extractor, "embedder": embedder, "scorers": own, "grader": grader}
        return {**made, "definition": definition, "recipe": keys.version(definition)}

    def judges_of(self, variant: Variant) -> tuple[CascadeJudge, ...]:
        """Load the judges of a recipe.

        Raises:
            ConfigError: A judge's file is wrong.
            UsageError: A judge was retired, or is not the promoted version.
        """
        recipe = variant.chosen.recipe
        found = cascade.load(recipe, self.judges)
        for judge in found:
            promotions.check(self.log, variant.promotion, judge.version, recipe.judge)
        return found

    def embedder_of(self, chosen: Chosen) -> Embedder:
        """The embedding model of a recipe."""
        settings = validate(EmbedderConfig, chosen.recipe.relevance, str(chosen.where), chosen.key("relevance"))
        settings = settings.relative_to(chosen.where.resolve().parent)
        return self.embedders.setdefault(settings.model_dump_json(), Embedder(settings))

    def grader_of(self, chosen: Chosen) -> Grader | None:
        """Load the grader of a recipe; None if the recipe names none.

        Raises:
            ConfigError: The file is wrong, or the grader needs a reference answer.
            UsageError: The grader was retired.
        """
        path = chosen.recipe.grades.grader
        if path is None:
            return None
        if path not in self.graders:
            self.graders[path] = graders.load(path)
        if self.graders[path].needs_reference:
            raise ConfigError(
                chosen.where,
                chosen.key("grades.grader"),
                f"is {path}, which grades by a reference answer",
                "Logs of production have none: name a grader that needs no reference.",
            )
        promotions.check(self.log, None, self.graders[path].version, path)
        return self.graders[path]


def _shadow_scope(shadow: Variant, same: Sequence[Context]) -> Scope | None:
    """Scope of a shadow judge, without applications for which it already counts; None if no application is left."""
    scope: Scope | None = shadow.scope
    for ctx in same:
        if scope and ctx.days == shadow.days and not ctx.shadow:
            scope = scope.but(ctx.scope)
    return scope


def _excepts(ctx: Context, variant: Variant) -> bool:
    """Whether a context covers the days of a variant and excludes all applications of the variant."""
    apps = set(variant.scope.apps)
    return ctx.days == variant.days and bool(apps) and apps <= set(ctx.scope.without)


def source_of(settings: Mapping[str, object] | Path, where: str, base: Path) -> Source:
    """Load a source of a nightly config.

    Raises:
        ConfigError: The settings or the file are wrong.
    """
    if isinstance(settings, Path):
        return sources.load(load_yaml(settings, "kind"), str(settings), settings.resolve().parent)
    return sources.load(settings, where, base)
