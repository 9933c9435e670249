"""What every stage needs: the lake, the days, and the parts that the config names, loaded and versioned.

Models are not loaded here: versions come from files, weights are read when the first request is made.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec

from tasks import extractors, patterns, sources
from tasks.core import keys
from tasks.core.config import Nightly, Pairing, Recipe, load_nightly, load_yaml, recipes_of, validate
from tasks.core.errors import ConfigError, UsageError
from tasks.core.progress import Progress, Silent
from tasks.core.schemas import TRACES, Table
from tasks.core.types import Judge
from tasks.engines.transformers_cpu import Embedder, EmbedderConfig
from tasks.extractors import ByApp
from tasks.sources import Source
from tasks.stages import annotations as annotated
from tasks.stages import members
from tasks.store.lake import Lake, Part
from tasks.store.query import Queries, sql

PAIRING_RULES = 2  # raised when the windows or the looks that the same settings lead to change
SCORING_SQL = (
    "part_verdicts",
    "second_look",
    "claim_results",
    "escalate",
    "round_two",
    "citation_results",
    "trace_scores",
    "question_sums",
    "nightly_groundedness",
    "nightly_utilization",
    "nightly_relevance",
    "nightly_triad",
    "partial_support",
    "nightly_patterns",
    "nightly_citations",
    "nightly_repeats",
    "trace_grace",
    "nightly_grace",
    "nightly_grace_sources",
    "nightly_grace_confusion",
)


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


@dataclass(frozen=True)
class Context:
    """One run's inputs and tools for one recipe; several recipes of a run share all but what is the recipe's.

    Attributes:
        settings: The recipe as the config has it.
        first: First day to complete.
        last: Last day to complete.
        today: The day of the run, against which timestamps ahead of time are told.
        judges: In the order they are asked: more than one in a cascade.
        recipe: Hash of extractor, pairing, judges, scoring SQL and parameters.
        definition: What is hashed into `recipe`.
        annotations: What the file of right sources says, where the recipe names one.
    """

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
    recipe: str
    definition: Mapping[str, object]
    annotations: annotated.Annotations = field(default_factory=annotated.Annotations)
    progress: Progress = field(default_factory=Silent)

    @property
    def scratch(self) -> Path:
        """Where DuckDB may spill."""
        return self.lake.hidden("scratch")

    @property
    def scorer(self) -> str:
        """`scorer_version`: hash of what can change a relevance score."""
        return scorer_version(self.settings, self.embedder.version)

    @property
    def judge_version(self) -> str:
        """Hash of what can change a label: of the judge, or of the cascade."""
        return members.version(self.judges)

    def queries(self) -> Queries:
        """A private DuckDB within the configured memory."""
        return Queries(self.config.limits.memory_limit, self.scratch)

    def asked(self) -> list[date]:
        """The days that were asked for."""
        return [self.first + timedelta(days=n) for n in range((self.last - self.first).days + 1)]

    def covers(self, day: date) -> bool:
        """Whether the run completes this day: one that was asked for, or one to catch up with."""
        return self.first - timedelta(days=self.config.limits.catch_up_days) <= day <= self.last

    def trace_parts(self) -> list[Part]:
        """Parts of `traces` of the days to complete."""
        return [p for p in self.lake.parts(TRACES) if self.covers(p.date)]

    def close(self) -> None:
        """Free the models."""
        self.extractor.close()
        for member in self.judges:
            member.judge.close()
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
) -> tuple[Context, ...]:
    """Everything a run needs, checked, a context for each recipe: no file is written, no model is loaded.

    Recipes that name the same judge or embedding model share it, so that no model is there twice.

    Args:
        overlay: Directory that takes the writes instead of the lake, for a dry run.

    Raises:
        ConfigError: A config file is wrong, or two recipes differ in nothing but their names.
        UsageError: The range of days is empty.
    """
    if first > last:
        raise UsageError(f"--from {first} is after --to {last}. Swap them.")
    config = load_nightly(config_path)
    base = config_path.resolve().parent
    read_from = tuple(_source(s, str(config_path), base) for s in config.sources)
    lake = Lake(config.lake, overlay)
    opened: dict[Path, Judge] = {}
    embedders: dict[str, Embedder] = {}
    found: dict[str, Context] = {}
    for chosen in recipes_of(config, config_path):
        recipe, where = chosen.recipe, str(chosen.where)
        extractor = extractors.load_by_app(recipe.extractor, recipe.apps, where, chosen.prefix)
        judges = members.load(recipe, opened)
        settings = validate(EmbedderConfig, recipe.relevance, where, chosen.key("relevance"))
        settings = settings.relative_to(chosen.where.resolve().parent)
        embedder = embedders.setdefault(settings.model_dump_json(), Embedder(settings))
        scorer = scorer_version(recipe, embedder.version)
        definition = define(recipe, extractor.version, [m.judge.version for m in judges], scorer)
        version = keys.version(definition)
        if version in found:
            same = f"{found[version].settings.name!r} and {recipe.name!r}"
            raise ConfigError(config_path, "recipes", f"has one recipe twice, as {same}", "Leave one of them out.")
        found[version] = Context(
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
            recipe=version,
            definition=definition,
            annotations=annotated.load(recipe.grace.annotations, where, chosen.key("grace.annotations")),
            progress=progress or Silent(),
        )
    return tuple(found.values())


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


def scorer_version(recipe: Recipe, embedder: str) -> str:
    """Hash of the embedding model and of how it is shown a long text."""
    return keys.version({"embedder": embedder, "window_words": recipe.pairing.window_words})


def define(recipe: Recipe, extractor: str, judges: Sequence[str], scorer: str) -> dict[str, object]:
    """What is hashed into a recipe. The name stays out: renaming changes no number.

    Args:
        judges: Their versions, in the order they are asked.
    """

    def pairing(settings: Pairing) -> dict[str, object]:
        return {**settings.model_dump(), "rules": PAIRING_RULES}

    return {
        "method": recipe.method,
        "extractor": extractor,
        "pairing": pairing(recipe.pairing),
        "judge": judges[0],
        "cascade": [
            {"judge": judge, "band": e.band, "pairing": pairing(e.pairing)}
            for judge, e in zip(judges[1:], recipe.cascade, strict=False)  # the rounds of one judge are no cascade
        ],
        "relevance": scorer,
        "scoring": recipe.scoring.model_dump(),
        "triad": recipe.triad.model_dump(),
        "grace": {"source": recipe.grace.source},
        "patterns": patterns.rules(recipe.patterns),
        "sql": {name: hashlib.sha256(sql(name).encode()).hexdigest()[:16] for name in SCORING_SQL},
    }


def as_json(value: Mapping[str, object]) -> str:
    """Canonical JSON text."""
    return msgspec.json.encode(value, order="sorted").decode()


def _source(settings: Mapping[str, object] | Path, where: str, base: Path) -> Source:
    if isinstance(settings, Path):
        return sources.load(load_yaml(settings), str(settings), settings.resolve().parent)
    return sources.load(settings, where, base)
