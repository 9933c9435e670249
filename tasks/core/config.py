"""Configuration: YAML files into frozen, checked models; a mistake names file, key, value and remedy.

Paths in a file are relative to that file. Kinds that are plugins (sources, extractors, judges) are checked by
their own modules, through `validate`; nothing here knows them.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tasks.core.errors import ConfigError

M = TypeVar("M", bound=BaseModel)
Share = Annotated[float, Field(ge=0, le=1)]
Pattern = Literal[
    "citation_drift",
    "dangling_citation",
    "ghost_number",
    "stitched_facts",
    "generalized_particular",
    "reverse_direction",
]


class Settings(BaseModel):
    """Base of every config model: immutable, and an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]


class Pairing(Settings):
    """Which evidence the judge is shown with a claim (the cost dial).

    Attributes:
        kind: `per_chunk` every chunk, one by one; `top_k` the k chunks nearest to the claim by embedding, and those it
            cites; `cited` only those it cites; `cited_together` those it cites, together in one look; `all_chunks` all
            of them together, in packs.
        k: Chunks for `top_k`.
        window_words: A chunk longer than this is read in windows of whole sentences up to this many words.
        pack_words: Most words of a pack of `all_chunks` or `cited_together`, at least `window_words`.
        joint_words: Most words of the best windows, of one chunk or several, that are shown together when no look
            supports a claim; 0 = never. Cited chunks are shown together in any case, each with its best window at
            least.
    """

    kind: Literal["per_chunk", "top_k", "cited", "cited_together", "all_chunks"] = "per_chunk"
    k: Annotated[int, Field(ge=1)] = 5
    window_words: Annotated[int, Field(ge=20)] = 160
    pack_words: Annotated[int, Field(ge=20)] = 3_000
    joint_words: Annotated[int, Field(ge=0)] = 480

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.packs and self.pack_words < self.window_words:
            raise ValueError("has pack_words below window_words, so that a window fits no pack; raise pack_words")
        return self

    @property
    def packs(self) -> bool:
        """Whether a first look shows several chunks at once."""
        return self.kind in ("all_chunks", "cited_together")


class Escalation(Settings):
    """A further judge of a cascade, dearer than the one before it.

    Attributes:
        band: `[lo, hi]`: a claim goes on to this judge where lo ≤ p_supported < hi after the one before it, and where
            that one abstained or failed.
        judge: Path of the judge's config.
        pairing: Which evidence this judge is shown with a claim.
    """

    band: tuple[Share, Share]
    judge: Path
    pairing: Pairing = Pairing()

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.band[0] > self.band[1]:
            raise ValueError("has a band [lo, hi] with lo above hi; swap them")
        return self


class Shadow(Settings):
    """A judge that runs every night beside the one that counts, on a sample, to be compared with it.

    Attributes:
        judge: Path of the judge's config.
        share: Share of the traces that it judges, the same ones whenever a night is run.
    """

    judge: Path
    share: Annotated[float, Field(gt=0, le=1)] = 0.1


class Scoring(Settings):
    """Parameters of METHODS section 4.

    Attributes:
        misuse_penalty: What a misused claim costs, in supported claims.
        partial_credit: What a partially supported claim counts.
        dangling_as_misuse: Whether a claim whose references all dangle counts as misused.
    """

    misuse_penalty: Annotated[float, Field(ge=0)] = 2.0
    partial_credit: Share = 0.0
    dangling_as_misuse: bool = False


class Triad(Settings):
    """From where on each of the triad's three questions is answered with yes (METHODS section 6)."""

    context_relevance: Share = 0.34
    groundedness: Annotated[float, Field(ge=0, le=100)] = 50.0
    answer_relevance: Share = 0.42


class Waterfall(Settings):
    """The lowest value with which a trace passes each stage (METHODS section 7); `leadline calibrate` finds them.

    Attributes:
        retrieval: Of the best chunk's relevance to the question.
        answerability: Of the answerability of the question from the chunks.
        faithfulness: Of the support of the answer's weakest claim, where no claim stops the answer by its label.
        answer_relevance: Of the answer's relevance to the question.
        partial_passes: Whether a claim that is supported in part does not stop the answer by its label.
    """

    retrieval: Share = 0.34
    answerability: Share = 0.0
    faithfulness: Share = 0.5
    answer_relevance: Share = 0.42
    partial_passes: bool = False


class _Method(Settings):
    """A method of scoring, and the file of the model that it asks, where it asks one."""

    asks: ClassVar[Mapping[str, str]] = {}
    """Method -> the key that names its model's file."""

    method: str

    @model_validator(mode="after")
    def _asked(self) -> Self:
        due = self.asks.get(self.method)
        if due is not None and getattr(self, due) is None:
            raise ValueError(f"has method {self.method} and no {due}; name the file of its model there")
        for key in sorted(set(self.asks.values()) - {due}):
            if getattr(self, key) is not None:
                raise ValueError(f"names a {key}, which method {self.method} does not ask; remove it")
        return self

    @property
    def model_file(self) -> Path | None:
        """Of the model that the method asks; None where it asks none."""
        key = self.asks.get(self.method)
        return getattr(self, key) if key else None

    def placed(self, base: Path) -> Self:
        """The same with absolute paths."""
        paths = {key: getattr(self, key) for key in self.asks.values()}
        return self.model_copy(update={key: path and _absolute(base, path) for key, path in paths.items()})


class AnswerRelevance(_Method):
    """How the relevance of an answer to its question is scored (METHODS section 4).

    Attributes:
        method: `embedding` cosine of question and answer; `questions` mean cosine of the question and of questions that
            a model writes to the answer; `graded` a model's grade, 1 to 5.
        writer: Of `questions`: path of the config (`kind: generate`) of the model that writes.
        grader: Of `graded`: path of the config (`kind: grader`) of the model that grades; its prompt asks for a grade
            `answer_relevance`.
    """

    asks = {"questions": "writer", "graded": "grader"}

    method: Literal["embedding", "questions", "graded"] = "embedding"
    writer: Path | None = None
    grader: Path | None = None


class ContextRelevance(_Method):
    """How the relevance of each chunk to the question is scored (METHODS section 4).

    Attributes:
        method: `embedding` cosine of question and chunk; `reranker` a cross-encoder's score of the two; `graded` a
            model's grade, 1 to 5.
        reranker: Of `reranker`: path of the config (`kind: reranker`).
        grader: Of `graded`: path of the config (`kind: grader`); its prompt asks for a grade `context_relevance`.
    """

    asks = {"reranker": "reranker", "graded": "grader"}

    method: Literal["embedding", "reranker", "graded"] = "embedding"
    reranker: Path | None = None
    grader: Path | None = None


class Answerability(_Method):
    """How it is told whether a question can be answered from the chunks alone (METHODS sections 4 and 7).

    Attributes:
        method: `coverage` share of the question's words that the chunks have, a baseline without a model; `graded` a
            model's yes or no.
        grader: Of `graded`: path of the config (`kind: grader`); its prompt asks for a grade `answerable`.
    """

    asks = {"graded": "grader"}

    method: Literal["coverage", "graded"] = "coverage"
    grader: Path | None = None


class Grace(Settings):
    """Annotated right sources, and whether answers cite them (METHODS section 8).

    Attributes:
        annotations: Path of a file of right sources by question: JSON lines or CSV with `question` and `gold_ids`.
            Where it has a trace's question, it goes before the trace's own `gold_chunk_ids`. None: those alone.
        source: Which id is a source. With `chunk`, each chunk is one. With `doc`, all chunks with the same `doc_id` are
            one, and the file's ids are documents; a chunk without a `doc_id` is one by itself.
    """

    annotations: Path | None = None
    source: Literal["chunk", "doc"] = "chunk"


class Grades(Settings):
    """The six grades of each answer as a whole (METHODS section 9).

    Attributes:
        grader: Path of the config of the grader that gives them, one that needs no reference answer; none: no grades.
    """

    grader: Path | None = None


class Recipe(Settings):
    """What is computed of every trace.

    Attributes:
        method: `claims` judges each claim against the trace's chunks; `citations` judges in two rounds, cited claims
            against what they cite, and the others against those found true (METHODS section 5).
        extractor: Settings of the claim extractor (`kind` and its own keys).
        apps: Per application, extractor settings that replace the recipe's, such as the citation style.
        judge: Path of the judge's config.
        cascade: Further judges, from cheap to dear, for the claims that the one before left uncertain.
        shadow: A judge that runs beside, on a sample; no number of the recipe changes by it.
        relevance: Settings of the embedding model that scores relevance (and ranks chunks for `top_k`).
        answer_relevance: How the answer's relevance to the question is scored.
        context_relevance: How each chunk's relevance to the question is scored.
        answerability: How it is told whether the chunks answer the question.
        grades: What grades each answer as a whole.
        patterns: Failure patterns to look for in claims; all by default.
    """

    name: str = "claims"
    method: Literal["claims", "citations"] = "claims"
    extractor: Mapping[str, Any] = Field(default_factory=lambda: {"kind": "sentences"})
    apps: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    pairing: Pairing = Pairing()
    judge: Path
    cascade: tuple[Escalation, ...] = ()
    shadow: Shadow | None = None
    relevance: Mapping[str, Any] = Field(default_factory=dict)
    answer_relevance: AnswerRelevance = AnswerRelevance()
    context_relevance: ContextRelevance = ContextRelevance()
    answerability: Answerability = Answerability()
    grades: Grades = Grades()
    patterns: tuple[Pattern, ...] = get_args(Pattern)
    scoring: Scoring = Scoring()
    triad: Triad = Triad()
    waterfall: Waterfall = Waterfall()
    grace: Grace = Grace()

    @model_validator(mode="after")
    def _rounds(self) -> Self:
        if self.method == "citations":
            if self.pairing.kind != "cited_together":
                raise ValueError(f"has method citations and pairing.kind {self.pairing.kind}; set it to cited_together")
            if self.cascade:
                raise ValueError("has method citations and a cascade; its two rounds ask one judge: leave cascade out")
        return self


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


Number = Literal[
    "groundedness",
    "faithfulness",
    "citation_groundedness",
    "utilization",
    "context_relevance",
    "answer_relevance",
    "answerability",
]


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


Passing = Literal[
    "overall",
    "answer_relevancy",
    "completeness",
    "faithfulness",
    "usefulness",
    "positive_acceptance",
    "negative_rejection",
]


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


@dataclass(frozen=True, slots=True)
class Chosen:
    """A recipe of a nightly config.

    Attributes:
        recipe: Its paths are absolute, but for those in the settings of plugins.
        where: The file that it stands in.
        prefix: Dotted path of the recipe inside that file.
    """

    recipe: Recipe
    where: Path
    prefix: str

    def key(self, *parts: str) -> str:
        """Dotted path of one of its keys inside the file."""
        return ".".join(filter(None, (self.prefix, *parts)))


def load_yaml(path: Path) -> dict[str, object]:
    """The mapping in a YAML file.

    Raises:
        ConfigError: The file is missing, unreadable, not YAML, or not a mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        remedy = _did_you_mean(path.name, [p.name for p in path.parent.glob("*.y*ml")]) or "Check the path"
        raise ConfigError(path, "", "does not exist", f"{remedy}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(path, "", f"can't be read ({error})", "Give a readable UTF-8 YAML file.") from None
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = f"is not valid YAML{line} ({getattr(error, 'problem', 'syntax error')})"
        raise ConfigError(path, "", problem, "Correct the syntax.") from None
    if not isinstance(data, dict) or not all(isinstance(k, str) for k in data):
        raise ConfigError(path, "", f"holds {type(data).__name__}, not a mapping of keys", "Write `key: value` lines.")
    return data


def validate(model: type[M], data: Mapping[str, object], where: object, prefix: str = "") -> M:
    """`data` as a `model`.

    Args:
        where: The file that `data` comes from, for messages.
        prefix: Dotted path of `data` inside the file.

    Raises:
        ConfigError: The first mistake: unknown key, missing key, wrong type, value out of range.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = error.errors()
    # A misspelt key is often a missing one too: the spelling is what to mend.
    first = next((e for e in found if e["type"] == "extra_forbidden"), found[0])
    loc = [str(part) for part in first["loc"] if not str(part).endswith("]")]
    key = ".".join([prefix, *loc] if prefix else loc)
    value = _shown(first["input"])
    kind = first["type"]
    if kind == "extra_forbidden":
        names = _fields_at(model, loc[:-1])
        remedy = _did_you_mean(loc[-1], names) or f"The keys here are {', '.join(names)}"
        raise ConfigError(where, key, "is not a known key", f"{remedy}.")
    if kind == "missing":
        raise ConfigError(where, key, "is missing", "Add it; docs/configuration.md lists the keys.")
    message = re.sub(r"^(\w+ (?=should )|Value error, )", "", first["msg"])
    raise ConfigError(where, key, f"is {value}", f"It {message[0].lower()}{message[1:]}.")


def _shown(value: object) -> str:
    """A value as a message may show it: what holds other values may hold a secret among them."""
    if value and isinstance(value, Mapping | list | tuple):
        return "a mapping" if isinstance(value, Mapping) else f"a list of {len(value)}"
    return repr(value)[:80]


def load_nightly(path: Path) -> Nightly:
    """The nightly config, its paths made absolute; `recipes_of` reads the recipes that it names.

    Raises:
        ConfigError: See `load_yaml` and `validate`.
    """
    raw = validate(Nightly, load_yaml(path), path)
    if raw.recipe is None and not raw.recipes:
        raise ConfigError(path, "recipe", "is missing", "Add it, or `recipes`; docs/configuration.md lists the keys.")
    if raw.recipe is not None and raw.recipes:
        raise ConfigError(path, "recipes", "stands beside recipe", "Move that one into the list.")
    base = path.resolve().parent

    def at(p: Path) -> Path:
        return _absolute(base, p)

    update = {
        "lake": at(raw.lake),
        "warehouse": at(raw.warehouse),
        "report": raw.report.model_copy(update={"dir": at(raw.report.dir)}),
        "recipe": raw.recipe and _placed(raw.recipe, base),
        "recipes": tuple(at(r) if isinstance(r, Path) else r for r in raw.recipes),
        "sources": [at(s) if isinstance(s, Path) else s for s in raw.sources],
        "alerts": raw.alerts.model_copy(update={"notify": tuple(_placed_secret(n, base) for n in raw.alerts.notify)}),
        "promotion": raw.promotion.model_copy(update={"suite": raw.promotion.suite and at(raw.promotion.suite)}),
    }
    return raw.model_copy(update=update)


def recipes_of(config: Nightly, path: Path) -> tuple[Chosen, ...]:
    """The recipes of a nightly config, in its order, at least one.

    Args:
        config: From `load_nightly`.
        path: Its file.

    Raises:
        ConfigError: A recipe's file is wrong, or two recipes have one name.
    """
    if config.recipe is not None:
        return (Chosen(config.recipe, path, "recipe"),)
    found: list[Chosen] = []
    for n, given in enumerate(config.recipes):
        where, prefix = (given, "") if isinstance(given, Path) else (path, f"recipes.{n}")
        recipe = validate(Recipe, load_yaml(given) if isinstance(given, Path) else given, where, prefix)
        if recipe.name in {c.recipe.name for c in found}:
            raise ConfigError(path, "recipes", f"has two recipes named {recipe.name!r}", "Name each by its key `name`.")
        found.append(Chosen(_placed(recipe, where.resolve().parent), where, prefix))
    return tuple(found)


def load_recipe(path: Path) -> Chosen:
    """The recipe of a file.

    Raises:
        ConfigError: See `load_yaml` and `validate`.
    """
    return Chosen(_placed(validate(Recipe, load_yaml(path), path), path.resolve().parent), path, "")


def _placed(recipe: Recipe, base: Path) -> Recipe:
    """A recipe with absolute paths of the files that it names."""
    cascade = tuple(e.model_copy(update={"judge": _absolute(base, e.judge)}) for e in recipe.cascade)
    shadow = recipe.shadow and recipe.shadow.model_copy(update={"judge": _absolute(base, recipe.shadow.judge)})
    known = recipe.grace.annotations
    grace = recipe.grace.model_copy(update={"annotations": known and _absolute(base, known)})
    grader = recipe.grades.grader
    grades = recipe.grades.model_copy(update={"grader": grader and _absolute(base, grader)})
    judge = _absolute(base, recipe.judge)
    own = {"judge": judge, "cascade": cascade, "shadow": shadow, "grace": grace, "grades": grades}
    scored = ("answer_relevance", "context_relevance", "answerability")
    return recipe.model_copy(update={**own, **{key: getattr(recipe, key).placed(base) for key in scored}})


def _placed_secret(name: str, base: Path) -> str:
    """Where a secret is, with an absolute path if it is a file."""
    kind, place = name.split(":", 1)
    return f"file:{_absolute(base, Path(place))}" if kind == "file" else name


def _absolute(base: Path, path: Path) -> Path:
    return Path((base / path.expanduser()).resolve())


def did_you_mean(word: str, known: list[str], what: str) -> str:
    """A remedy for a misspelt name: the nearest known one, or all of them."""
    return (_did_you_mean(word, known) or f"Known {what}: {', '.join(sorted(known))}") + "."


def _did_you_mean(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"Did you mean {near[0]!r}" if near else ""


def _fields_at(model: type[BaseModel], loc: list[str]) -> list[str]:
    """Names of the keys that are known at a place inside a model."""
    for part in loc:
        field = model.model_fields.get(part)
        if field is None:
            break
        candidates = [field.annotation, *get_args(field.annotation)]
        nested = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        if not nested:
            break
        model = nested[0]
    return list(model.model_fields)
