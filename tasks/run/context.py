"""What every stage needs: the lake, the days, and the parts that the config names, loaded and versioned.

Models are not loaded here: versions come from files, weights are read when the first request is made.
"""

import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec

from tasks import extractors, graders, patterns, scorers, sources
from tasks.core import keys
from tasks.core.budget import Budget
from tasks.core.config import Chosen, Nightly, Pairing, Recipe, load_nightly, load_yaml, validate
from tasks.core.errors import ConfigError, UsageError
from tasks.core.grades import Grader
from tasks.core.paths import CONFIG
from tasks.core.progress import Progress, Silent
from tasks.core.schemas import TRACES, Table
from tasks.core.types import Judge
from tasks.engines.generator import Generator
from tasks.engines.transformers_cpu import Embedder, EmbedderConfig
from tasks.extractors import ByApp
from tasks.run import annotations as annotated
from tasks.run import cascade as members
from tasks.run import promotions
from tasks.run.promotions import Promotion
from tasks.run.scope import ALL, Scope
from tasks.run.variants import ALWAYS, Skipped, Variant, Window, of_night
from tasks.scorers import Scorer
from tasks.sources import Source
from tasks.store.lake import Lake, Part
from tasks.store.query import Queries, sql, sql_in

PAIRING_RULES = 2  # raised when the windows or the looks that the same settings lead to change
# What decides a stored number: a change starts another recipe.
SCORING_SQL = ("macros", *sql_in("judging", "scoring", "sums", "nightly"), "views/reviewed_claims")


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a stage did.

    Attributes:
        computed: Rows made, in the stage's own unit (traces, claims, pairs, verdicts, …).
        reused: Rows that were already there.
        lost: Requests that could not be asked; nothing of them is stored.
        tokens_in: Tokens that models read, those of `tokens_cached` included.
        tokens_cached: Tokens that a prefix cache spared them.
        judge: `judge_version` whose verdicts it made; None where it is no judging stage.
        gpus: GPUs that it held.
        notes: What a person should know, without trace text.
    """

    stage: str
    computed: int = 0
    reused: int = 0
    lost: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    judge: str | None = None
    gpus: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def plus(self, other: "StageResult") -> "StageResult":
        """What this stage and more of it did."""
        return replace(
            self,
            computed=self.computed + other.computed,
            reused=self.reused + other.reused,
            lost=self.lost + other.lost,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_cached=self.tokens_cached + other.tokens_cached,
            tokens_out=self.tokens_out + other.tokens_out,
            gpus=max(self.gpus, other.gpus),
            seconds=self.seconds + other.seconds,
            notes=(*self.notes, *other.notes),
        )


@dataclass(frozen=True)
class Context:
    """One run's inputs and tools for one recipe; several recipes of a run share all but what is the recipe's.

    Attributes:
        path: The config's file, as the user named it.
        settings: The recipe as the config has it.
        first: First day to complete.
        last: Last day to complete.
        today: The day of the run, against which timestamps ahead of time are told.
        judges: In the order they are asked: more than one in a cascade.
        scorers: What scores answers, chunks and answerability, in the order they run.
        recipe: Hash of extractor, pairing, judges, grader, scoring SQL and parameters.
        definition: What is hashed into `recipe`.
        annotations: What the file of right sources says, where the recipe names one.
        scope: Which traces are judged under the recipe.
        window: The days for which these judges count.
        shadow: It runs beside the recipe that counts, and no report is made of it.
        budget: What judging may cost.
        grader: What grades each answer as a whole, where the recipe names it.
        skipped: What the run leaves out, of any of its recipes; the first context has it.
    """

    path: Path
    config: Nightly
    settings: Recipe
    lake: Lake
    first: date
    last: date
    today: date
    sources: tuple[Source, ...]
    extractor: ByApp
    judges: tuple[members.Member, ...]
    embedder: Embedder
    scorers: tuple[Scorer, ...]
    recipe: str
    definition: Mapping[str, object]
    annotations: annotated.Annotations = field(default_factory=annotated.Annotations)
    progress: Progress = field(default_factory=Silent)
    scope: Scope = ALL
    window: Window = ALWAYS
    shadow: bool = False
    budget: Budget = field(default_factory=Budget)
    grader: Grader | None = None
    skipped: tuple[Skipped, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether its numbers are those of the night; those of a shadow or a backfill stand beside them."""
        return not self.shadow and self.lake.writer == "run"

    @property
    def label(self) -> str:
        """The recipe's name, and what tells this context from others of the recipe."""
        beside = f", shadow {members.name(self.judges)}" if self.shadow else ""
        of = f" for {', '.join(self.scope.apps)}" if self.scope.apps else ""
        return f"{self.settings.name}{beside}{of}{self.window}"

    @property
    def scratch(self) -> Path:
        """Where DuckDB may spill."""
        return self.lake.hidden("scratch")

    @property
    def judge_version(self) -> str:
        """Hash of what can change a label: of the judge, or of the cascade."""
        return members.version(self.judges)

    def sql_command(self, statement: str) -> str:
        """The command that runs a statement on this config's warehouse; it holds nothing that a shell reads in `""`."""
        option = "" if self.path == CONFIG else f" -c {shlex.quote(str(self.path))}"
        return f'leadline sql{option} "{statement}"'

    def queries(self) -> Queries:
        """A private DuckDB within the configured memory."""
        return Queries(self.config.limits.memory_limit, self.scratch)

    def asked(self) -> list[date]:
        """The days that were asked for, as far as these judges count for them."""
        days = (self.first + timedelta(days=n) for n in range((self.last - self.first).days + 1))
        return [day for day in days if self.window.holds(day)]

    def covers(self, day: date) -> bool:
        """Whether the run completes this day by these judges: one that was asked for, or one to catch up with."""
        return self.window.holds(day) and oldest(self.config, self.first) <= day <= self.last

    def trace_parts(self) -> list[Part]:
        """Parts of `traces` of the days to complete."""
        return [p for p in self.lake.parts(TRACES) if self.covers(p.date)]

    def close(self) -> None:
        """Free the models."""
        self.extractor.close()
        for member in self.judges:
            member.judge.close()
        for scorer in self.scorers:
            scorer.close()
        if self.grader:
            self.grader.close()
        self.embedder.close()


def load(
    config_path: Path,
    first: date,
    last: date,
    *,
    overlay: Path | None = None,
    progress: Progress | None = None,
    today: date | None = None,
) -> Context:
    """The context of a config's only recipe, or of its first one; see `load_all`."""
    return load_all(config_path, first, last, overlay=overlay, progress=progress, today=today)[0]


def load_all(
    config_path: Path,
    first: date,
    last: date,
    *,
    overlay: Path | None = None,
    progress: Progress | None = None,
    today: date | None = None,
    writer: str = "run",
    select: Callable[[Nightly, Path, Sequence[Promotion]], Sequence[Variant]] | None = None,
    asks_nobody: bool = False,
) -> tuple[Context, ...]:
    """Everything a run needs, checked, a context for each recipe: no file is written, no model is loaded.

    Recipes that name the same judge, grader or embedding model share it, so that no model is there twice.

    Args:
        overlay: Directory that takes the writes instead of the lake, for a dry run.
        writer: See `Lake`.
        select: Which recipes, by which judges and over which traces; those of a night by default.
        asks_nobody: Leave out whatever is by a judge that can't be used any more, which may be everything.

    Raises:
        ConfigError: A config file is wrong, or two recipes differ in nothing but their names.
        UsageError: The range of days is empty.
    """
    if first > last:
        raise UsageError(f"--from {first} is after --to {last}. Swap them.")
    config = load_nightly(config_path)
    base = config_path.resolve().parent
    read_from = tuple(_source(s, str(config_path), base) for s in config.sources)
    lake = Lake(config.lake, overlay, writer=writer)
    opened: dict[Path, Judge] = {}
    embedders: dict[str, Embedder] = {}
    generators: dict[str, Generator] = {}
    grading: dict[Path, Grader] = {}
    found: list[Context] = []
    skipped: list[Skipped] = []
    known = promotions.log(lake)
    if select:
        variants = select(config, config_path, known)
    else:
        variants = of_night(config, config_path, known, oldest(config, first), last)
    for variant in variants:
        chosen, recipe, where = variant.chosen, variant.chosen.recipe, str(variant.chosen.where)
        extractor = extractors.load_by_app(recipe.extractor, recipe.apps, where, chosen.prefix)
        try:
            judges = members.load(recipe, opened)
            for member in judges:
                promotions.check(known, variant.promotion, member.judge.version, recipe.judge)
        except (ConfigError, UsageError) as error:
            if asks_nobody or (variant.window.last is not None and variant.window.last < first):
                # A judge that counts no more and is gone: nights to catch up with stay as they are.
                skipped += [] if variant.shadow else [Skipped(variant, str(error))]
                continue
            raise
        settings = validate(EmbedderConfig, recipe.relevance, where, chosen.key("relevance"))
        settings = settings.relative_to(chosen.where.resolve().parent)
        embedder = embedders.setdefault(settings.model_dump_json(), Embedder(settings))
        own = scorers.load(recipe, embedder, generators)
        relevance = scorers.versions(own, embedder)
        grader = _grader(chosen, grading, known)
        judged_by = [m.judge.version for m in judges]
        definition = define(
            recipe,
            extractor.version,
            judged_by,
            relevance,
            grader.version if grader else None,
            [m.languages for m in judges],
        )
        version = keys.version(definition)
        twin = next((c.settings.name for c in found if c.recipe == version), recipe.name)
        if twin != recipe.name:
            same = f"{twin!r} and {recipe.name!r}"
            raise ConfigError(config_path, "recipes", f"has one recipe twice, as {same}", "Leave one of them out.")
        scope = _beside(variant, [c for c in found if c.recipe == version]) if variant.shadow else variant.scope
        if scope is None:
            continue  # it has been promoted since
        if general := next((c for c in found if c.recipe == version and _but_for(c, variant)), None):
            # An application was given the very judge that counts for the others too.
            without = tuple(app for app in general.scope.without if app not in variant.scope.apps)
            found[found.index(general)] = replace(general, scope=replace(general.scope, without=without))
            continue
        found.append(
            Context(
                path=config_path,
                config=config,
                settings=recipe,
                lake=lake,
                first=first,
                last=last,
                today=today or datetime.now(UTC).date(),
                sources=read_from,
                extractor=extractor,
                judges=judges,
                embedder=embedder,
                scorers=own,
                recipe=version,
                definition=definition,
                annotations=annotated.load(recipe.grace.annotations, where, chosen.key("grace.annotations")),
                progress=progress or Silent(),
                scope=scope,
                window=variant.window,
                shadow=variant.shadow,
                grader=grader,
            )
        )
    return tuple(replace(ctx, skipped=() if n else tuple(skipped)) for n, ctx in enumerate(found))


def _grader(chosen: Chosen, opened: dict[Path, Grader], known: Sequence[Promotion]) -> Grader | None:
    """The grader of a recipe.

    Args:
        opened: Those of other recipes by the paths of their files, which it shares; one that it opens is added.
        known: All promotions.

    Raises:
        ConfigError: Its file is wrong, or it grades by a reference answer.
        UsageError: It is retired.
    """
    path = chosen.recipe.grades.grader
    if path is None:
        return None
    if path not in opened:
        opened[path] = graders.load(path)
    if opened[path].needs_reference:
        raise ConfigError(
            chosen.where,
            chosen.key("grades.grader"),
            f"is {path}, which grades by a reference answer",
            "Logs of production have none: name a grader that needs no reference.",
        )
    promotions.check(known, None, opened[path].version, path)
    return opened[path]


def _beside(shadow: Variant, promoted: Sequence[Context]) -> Scope | None:
    """What a shadow judge covers: no application for which it counts by now. None where nothing is left."""
    scope: Scope | None = shadow.scope
    for ctx in promoted:
        if scope and ctx.window == shadow.window and not ctx.shadow:
            scope = scope.but(ctx.scope)
    return scope


def _but_for(ctx: Context, variant: Variant) -> bool:
    """Whether a context covers the same days, of all applications but for those of a variant."""
    apps = set(variant.scope.apps)
    return ctx.window == variant.window and bool(apps) and apps <= set(ctx.scope.without)


def oldest(config: Nightly, first: date) -> date:
    """The first day that a run completes: the one asked for, or one to catch up with before it."""
    return first - timedelta(days=config.limits.catch_up_days)


def missing_parts(ctx: Context, table: Table, version: str) -> tuple[list[Part], int]:
    """Parts of `traces` without a part of `table`, and the rows of the parts of `table` that are there."""
    missing: list[Part] = []
    reused = 0
    for part in ctx.trace_parts():
        if found := ctx.lake.find(table, part.name, version, part.partition[-1]):
            reused += found.rows()
        else:
            missing.append(part)
    return missing, reused


def define(
    recipe: Recipe,
    extractor: str,
    judges: Sequence[str],
    relevance: Mapping[str, str],
    grader: str | None = None,
    languages: Sequence[Sequence[str] | None] = (),
    text: Callable[[str], str] = sql,
) -> dict[str, object]:
    """What is hashed into a recipe. The name stays out: renaming changes no number.

    Args:
        judges: Their versions, in the order they are asked.
        relevance: See `scorers.versions`.
        grader: Its version; None where the recipe names none.
        languages: What each judge reads; None for all.
        text: Gives the text of a SQL file by its name.
    """

    def pairing(settings: Pairing) -> dict[str, object]:
        return {**settings.model_dump(), "rules": PAIRING_RULES}

    return {
        "method": recipe.method,
        "extractor": extractor,
        "pairing": pairing(recipe.pairing),
        "judge": judges[0],
        "languages": [None if codes is None else list(codes) for codes in languages],
        "cascade": [
            {"judge": judge, "band": e.band, "pairing": pairing(e.pairing)}
            for judge, e in zip(judges[1:], recipe.cascade, strict=False)  # the rounds of one judge are no cascade
        ],
        "relevance": dict(relevance),
        "scoring": recipe.scoring.model_dump(),
        "triad": recipe.triad.model_dump(),
        "waterfall": recipe.waterfall.model_dump(),
        "grace": {"source": recipe.grace.source},
        "patterns": patterns.rules(recipe.patterns),
        "sql": {name: hashlib.sha256(text(name).encode()).hexdigest()[:16] for name in SCORING_SQL},
        **({"grades": {"grader": grader}} if grader else {}),
    }


def as_json(value: Mapping[str, object]) -> str:
    """Canonical JSON text."""
    return msgspec.json.encode(value, order="sorted").decode()


def _source(settings: Mapping[str, object] | Path, where: str, base: Path) -> Source:
    if isinstance(settings, Path):
        return sources.load(load_yaml(settings), str(settings), settings.resolve().parent)
    return sources.load(settings, where, base)
