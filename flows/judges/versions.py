"""`leadline judges`: list and compare versions of judges, and promote or retire them."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.console import Console

from flows.console import emit, note, print_lines, table
from flows.options import Apps, Config, Form, Output, day_option, optional
from flows.runtime.run import locked
from tasks import graders, judges
from tasks.analysis.metaeval import requirements
from tasks.analysis.metaeval.pass_rates import OVERALL, rates
from tasks.core.config import Nightly, Recipe, given_file, load_nightly
from tasks.core.config.names import Kind, is_path
from tasks.core.errors import UsageError
from tasks.core.grades import Grader
from tasks.core.paths import CONFIG, config_option
from tasks.core.schemas import JUDGES, METAEVAL, NIGHTLY_TRUST, RECIPES, TRACE_SCORES, VERDICTS
from tasks.core.types import Judge
from tasks.publish.report.night.trust import Trust, trust
from tasks.run import cascade
from tasks.run.identity import as_json
from tasks.run.scopes import promotions
from tasks.run.scopes.promotions import PROMOTE, RETIRE, Promotion
from tasks.run.scopes.variants import nightly_variants, recipe_named
from tasks.store.lake import Lake
from tasks.store.warehouse import Warehouse

FILES: tuple[Kind, ...] = ("judges", "graders")


@dataclass(frozen=True, slots=True)
class Known:
    """A judge or grader from the lake or from a file.

    Attributes:
        definition: Everything that is hashed into the version.
    """

    name: str
    kind: str
    version: str
    definition: Mapping[str, Any]


def of_lake(lake: Lake) -> list[Known]:
    """Judges in the lake, sorted by name and version."""
    rows = [row for part in lake.parts(JUDGES) for row in part.read().to_pylist()]
    found = [Known(r["name"], r["kind"], r["judge_version"], json.loads(r["definition"])) for r in rows]
    return sorted(found, key=lambda k: (k.name, k.version))


def find(config: Path, judge: str) -> Known:
    """Find a judge or grader by its file, its name or the beginning of its version.

    Raises:
        UsageError: No judge matches, or several do.
    """
    if is_path(judge):
        return _of_file(Path(judge))
    known = of_lake(Lake(load_nightly(config).lake))
    found = [k for k in known if judge == k.name] or [k for k in known if k.version.startswith(judge)]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(k.version for k in found)
        raise UsageError(f"{judge!r} is the name of {len(found)} versions: {several}. Give the beginning of one.")
    for kind in FILES:
        file: Path | None = None
        with suppress(UsageError):
            file = given_file(Path(judge), kind, config)
        if file:
            return _of_file(file)
    names = ", ".join(sorted({k.name for k in known})) or "none yet"
    raise UsageError(f"{judge!r} is not a judge of this lake ({names}). Give a name, a version, or a judge's file.")


def _of_file(path: Path) -> Known:
    opened: Judge | Grader = graders.load(path) if graders.described(path) else judges.load(path)
    definition = opened.describe()
    opened.close()
    return Known(path.stem, str(definition.get("kind", "")), opened.version, json.loads(as_json(definition)))


def trusted(lake: Lake) -> Mapping[str, list[Trust]]:
    """Trust in each judge by version: agreement with people on each app's claims, by the latest night with labels."""
    rows = lake.frame(NIGHTLY_TRUST).filter(pl.col("n_labels") > 0).sort("date")
    found: defaultdict[str, list[Trust]] = defaultdict(list)
    for row in rows.unique(["judge_version", "app"], keep="last").sort("app").iter_rows(named=True):
        found[row["judge_version"]].append(trust({"noise": None, **row}))
    return found


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the fields in which two definitions differ: dotted path and both values. Missing values are empty."""
    one, other = dict(_flat(a)), dict(_flat(b))
    for field in sorted({*one, *other}):
        if one.get(field) != other.get(field):
            yield field, _shown(one.get(field)), _shown(other.get(field))


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, its in value.items():
        if isinstance(its, Mapping):
            yield from _flat(its, f"{above}{name}.")
        else:
            yield f"{above}{name}", its


def _shown(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _uses(log: Sequence[Promotion], known: Known) -> Iterator[str]:
    """Describe the recipes and apps that a judge was promoted for, including promotions for future nights."""
    for recipe in sorted({p.recipe_name for p in log if p.recipe_name}):
        for app, p in sorted(promotions.counting(log, recipe, date.max).items(), key=str):
            if p.judge_version == known.version:
                yield f"{recipe}{f' of {app}' if app else ''} since {p.since}"


def _passed(settings: Nightly, lake: Lake) -> dict[str, str]:
    """Overall pass rates on the suite required for promotions, by version."""
    if not lake.parts(METAEVAL):
        return {}
    suite = requirements.suite_of(settings.promotion)
    found = {version: rates(suite, its).grades[OVERALL] for version, its in requirements.shown(lake, suite).items()}
    return {version: f"{rate.value:.3f}" for version, rate in found.items() if rate.value is not None}


def _named(config: Nightly, path: Path, log: Sequence[Promotion], known: Known) -> list[str]:
    """Recipes for which a run over yesterday or today uses a judge or grader, including shadows."""
    today = promotions.now().date()
    opened: dict[Path, Judge] = {}

    def taken(recipe: Recipe) -> Iterator[str]:
        yield from (member.judge.version for member in cascade.load(recipe, opened))
        if recipe.grades.grader:
            yield graders.load(recipe.grades.grader).version

    recipes = (v.chosen.recipe for v in nightly_variants(config, path, log, today - timedelta(days=1), today))
    return sorted({recipe.name for recipe in recipes if known.version in taken(recipe)})


def _nights(lake: Lake, recipe: Mapping[str, Any], name: str, judge_version: str) -> list[str]:
    if (recipe["name"], recipe["judge_version"]) != (name, judge_version):
        return []
    return lake.values(TRACE_SCORES, recipe["recipe"])


def _write(lake: Lake, warehouse: Path, memory_limit: str, made: Sequence[Promotion]) -> None:
    """Store promotions and publish them in the warehouse."""
    with locked(lake, "judges"):
        for promotion in made:
            promotions.add(lake, promotion)
        its = Warehouse(lake, warehouse, memory_limit)
        its.load()
        its.publish()


_PEOPLE = "accuracy by people's labels"
_JUDGE = "Name of a judge or grader, the beginning of its version, or its file."
JudgeName = Annotated[str, typer.Argument(help=_JUDGE, metavar="JUDGE")]
OtherName = Annotated[str, typer.Argument(help="The other judge or grader, by name, version or file.", metavar="OTHER")]
Reason = Annotated[str, optional("Why; kept with the decision.", "--reason")]


def list_(form: Form = "table", output: Output = None, config: Config = CONFIG) -> None:
    """List every judge with its number of verdicts and what it counts for.

    Example: leadline judges list
    """
    settings = load_nightly(config)
    lake = Lake(settings.lake)
    log = promotions.log(lake)
    gone = promotions.retired(log)
    passed, checked = _passed(settings, lake), trusted(lake)
    rows = []
    for known in of_lake(lake):
        parts = lake.parts(VERDICTS, known.version)
        uses = [f"retired {gone[known.version].promoted_at:%Y-%m-%d}"] if known.version in gone else []
        uses += _uses(log, known)
        rows.append(
            {
                "judge": known.name,
                "version": known.version,
                "kind": known.kind,
                "verdicts": sum(p.rows() for p in parts),
                "nights": len({p.date for p in parts}),
                "suite": passed.get(known.version, ""),
                _PEOPLE: [f"{t.app} {t.accuracy}" for t in checked.get(known.version, ())],
                "counts for": uses,
            }
        )

    def draw(out: Console) -> None:
        columns = ("judge", "version", "kind", "verdicts", "nights", "suite", _PEOPLE, "counts for")
        shown = [[_cell(row, column) for column in columns] for row in rows]
        out.print(table("", columns, shown, numbers={"verdicts", "nights", "suite"}))
        if not any(p.action == PROMOTE for p in log):
            print_lines("Nothing is promoted: the judges that the config names count.", out=out)

    emit(form, output, draw, rows)


def _cell(row: Mapping[str, Any], column: str) -> str:
    """Format a value of the list. Graders have no verdicts that people could check."""
    value = row[column]
    if isinstance(value, int):
        return f"{value:,}" if value else ""
    if column == _PEOPLE:
        return "; ".join(value) or ("never checked" if row["verdicts"] else "")
    return "; ".join(value) if isinstance(value, list) else value


def show_(judge: JudgeName, form: Form = "table", output: Output = None, config: Config = CONFIG) -> None:
    """Show everything that a judge's version covers.

    Example: leadline judges show nli --format json
    """
    known = find(config, judge)
    definition = {"judge": known.name, "judge_version": known.version, **known.definition}
    rows = ((field, _shown(value)) for field, value in _flat(definition))
    emit(form, output, lambda out: out.print(table("", ("field", "value"), rows)), [definition])


def diff_(
    one: JudgeName, other: OtherName, form: Form = "table", output: Output = None, config: Config = CONFIG
) -> None:
    """List the fields in which two judges differ.

    Example: leadline judges diff nli similarity
    """
    a, b = find(config, one), find(config, other)
    rows = list(differences(a.definition, b.definition))

    def draw(out: Console) -> None:
        if rows:
            out.print(table("", ("field", f"{a.name} {a.version}", f"{b.name} {b.version}"), rows))
        else:
            print_lines(f"{a.name} and {b.name} are the same version, {a.version}.", out=out)

    emit(form, output, draw, ({"field": field, "one": one, "other": other} for field, one, other in rows))


def promote_(
    judge: Annotated[Path, typer.Argument(help="The judge's file or name.", metavar="FILE")],
    reason: Reason,
    recipe: Annotated[
        str | None, optional("Recipe of the config that it counts for; by default its only one.", "--recipe")
    ] = None,
    apps: Apps = None,
    since: Annotated[
        datetime | None, day_option("--since", "First night that it counts for; today by default.")
    ] = None,
    config: Config = CONFIG,
) -> None:
    """Make a judge count from a night on, in place of the previous judge.

    Example: leadline judges promote nli --since 2026-11-01 --reason "reads meaning"
    """
    if not reason.strip():
        raise UsageError("--reason is empty. Say why: it is kept with the promotion.")
    settings = load_nightly(config)
    name = recipe_named(settings, config, recipe).recipe.name
    judge = given_file(judge, "judges", config)
    opened = judges.load(judge)
    version = opened.version
    opened.close()
    night = since.date() if since else promotions.now().date()
    lake = Lake(settings.lake)
    rate = requirements.check(settings.promotion, lake, judge, version, config)
    path = promotions.written_path(judge, config)
    made = [
        Promotion(promotions.now(), PROMOTE, name, app, judge.stem, version, path, night, reason.strip(), rate)
        for app in (apps or (None,))
    ]
    judged = {d for r in lake.parts(RECIPES) for d in _nights(lake, r.read().to_pylist()[0], name, version)}
    _write(lake, settings.warehouse, settings.limits.memory_limit, made)
    whose = f" of {', '.join(apps)}" if apps else ""
    print_lines(f"From {night} on, {judge.stem} ({version}) counts for recipe {name}{whose}.")
    if not judged:
        note(
            "It has judged no night under this recipe yet: its line begins with the promotion. "
            f"`leadline backfill{config_option(config)} --judge {judge}` judges past nights.",
            Console(),
        )


def retire_(judge: JudgeName, reason: Reason, config: Config = CONFIG) -> None:
    """Retire a judge: it is no longer used, and its verdicts stay.

    Example: leadline judges retire similarity --reason "nli is better"
    """
    if not reason.strip():
        raise UsageError("--reason is empty. Say why: it is kept.")
    settings = load_nightly(config)
    lake = Lake(settings.lake)
    known = find(config, judge)
    log = promotions.log(lake)
    if uses := list(_uses(log, known)):
        raise UsageError(f"{known.name} {known.version} still counts for {'; '.join(uses)}. Promote another one first.")
    if names := _named(settings, config, log, known):
        raise UsageError(
            f"{known.name} {known.version} is what tonight's run takes for recipe {', '.join(names)}, which would be "
            "refused. Promote another one, or name another one in the config, first."
        )
    decision = Promotion(promotions.now(), RETIRE, None, None, known.name, known.version, None, None, reason.strip())
    _write(lake, settings.warehouse, settings.limits.memory_limit, [decision])
    print_lines(f"{known.name} ({known.version}) is retired; what it judged stays.")


def history_(form: Form = "table", output: Output = None, config: Config = CONFIG) -> None:
    """List every promotion and retirement with its reason, latest first.

    Example: leadline judges history
    """
    log = promotions.log(Lake(load_nightly(config).lake))[::-1]
    rows = [
        (
            f"{p.promoted_at:%Y-%m-%d %H:%M}",
            *(p.action, p.judge, p.judge_version, p.recipe_name or "", p.app or ""),
            *(str(p.since or ""), "" if p.pass_rate is None else f"{p.pass_rate:.3f}", p.reason),
        )
        for p in log
    ]
    columns = ("decided", "action", "judge", "version", "recipe", "app", "since", "pass rate", "reason")
    emit(form, output, lambda out: out.print(table("", columns, rows)), log)
