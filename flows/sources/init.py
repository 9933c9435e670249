"""`leadline init`: create a folder with configs for a first night, for the sample or for the user's own source."""

import re
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from flows.options import Night, optional
from tasks.core.config import did_you_mean
from tasks.core.errors import LeadlineError, UsageError
from tasks.core.paths import CONFIG, SHIPPED

SAMPLE = "sample"
SOURCES = Path("configs/sources")
LAKE = "data/lake"  # the path in configs/nightly.yaml
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")  # only capitals, so that a pasted secret is not accepted as a name


def command(
    folder: Annotated[Path, typer.Argument(help="The folder; this one by default.", show_default=False)] = Path(),
    source: Annotated[
        str | None, optional("Kind of source, such as phoenix; by default the sample.", "--source", metavar="KIND")
    ] = None,
    values: Annotated[
        list[str] | None,
        optional(
            "A key of the source, such as url=http://localhost:6006; repeat for more.", "--set", metavar="KEY=VALUE"
        ),
    ] = None,
    night: Night = None,
) -> None:
    """Write configs for the sample or for your own traces, then check the source.

    In a terminal it asks for what is not given.

    Example: leadline init mine --source phoenix --set url=http://localhost:6006
    """
    asks = sys.stdin.isatty()
    kind = source or (typer.prompt(f"Where are your traces? {', '.join(_kinds())}", SAMPLE) if asks else SAMPLE)
    if kind not in _kinds():
        raise UsageError(f"--source {kind}: no such kind. {did_you_mean(kind, _kinds(), 'kinds of source')}")
    given = dict(map(_value, values or ()))
    if kind == SAMPLE and given:
        raise UsageError("--set belongs to a source of your own. Name its kind with --source.")
    copied = ("configs", "data/sample") if kind == SAMPLE else ("configs",)
    # The user's traces get their own lake, apart from the sample's and other lakes.
    if there := [folder / name for name in (*copied, LAKE) if (folder / name).exists()]:
        raise UsageError(f"{there[0]} already exists. Give another folder: leadline init FOLDER.")
    settings = None if kind == SAMPLE else _settings(kind, given, folder, asks=asks and source is None)
    try:
        for name in copied:
            shutil.copytree(SHIPPED / name, folder / name)
    except OSError as error:
        raise UsageError(f"{folder}: can't be written ({error.strerror}). Give another folder.") from error
    say = Console(soft_wrap=True, markup=False, highlight=False).print
    change = "" if folder == Path() else f"cd {folder} && "
    if settings is None:
        first = f"{change}leadline nightly --from 2026-11-01 --to 2026-11-03"
        say(f"{folder / CONFIG} is ready for the sample:\n  {first}")
        say("For your own traces: leadline init FOLDER --source KIND")
        return
    path = folder / SOURCES / f"{kind}.yaml"
    _write(path, settings)
    _edit_nightly(folder / CONFIG, path)
    say(f"{folder / CONFIG} reads {path}. Every night, or for a day:\n"
        f"  {change}leadline nightly --date YYYY-MM-DD\nWhat the source would give it:\n")  # fmt: skip
    from flows.sources.check import check  # noqa: PLC0415 - only here

    try:
        check(path, night=night, config=folder / CONFIG)
    except LeadlineError:
        say(f"Correct {path}, then check it:\n  {change}leadline sources check {path.stem}\n")
        raise


def _kinds() -> list[str]:
    """Kinds of sources with an example config."""
    return sorted(path.stem for path in (SHIPPED / SOURCES).glob("*.yaml"))


def _value(given: str) -> tuple[str, str]:
    key, equals, value = given.partition("=")
    if not equals or not key:
        raise UsageError(f"--set {key}: no value. Write KEY=VALUE, such as url=http://localhost:6006.")
    return key, value


def _settings(kind: str, given: dict[str, str], folder: Path, *, asks: bool) -> Any:  # noqa: ANN401 - of ruamel.yaml
    """Fill the example config of a kind with given values, or with values that the user is asked for.

    Raises:
        UsageError: A value is not the name of an environment variable where one is required.
        ConfigError: The settings don't fit the kind.
    """
    from ruamel.yaml import YAML  # noqa: PLC0415 - only here
    from ruamel.yaml.comments import CommentedMap  # noqa: PLC0415 - only here
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415 - only here

    from tasks import sources  # noqa: PLC0415 - only here

    settings = YAML().load(SHIPPED / SOURCES / f"{kind}.yaml")
    if asks:
        for key, value in settings.items():
            if key not in (*given, "kind") and not isinstance(value, dict):
                shown = ", ".join(value) if isinstance(value, list) else str(value)
                given[key] = typer.prompt(key, shown)
    if "paths" in given and "url" not in given:
        settings.pop("url", None)
    for key, text in given.items():
        *parents, name = key.split(".")
        if name.endswith("_env") and not VARIABLE.fullmatch(text):
            raise UsageError(
                f"--set {key}: this is not the name of an environment variable. Put the secret into a variable, and "
                f"give its name in capitals, such as {kind.upper()}_API_KEY."
            )
        place = settings
        for parent in parents:
            place = place.setdefault(parent, CommentedMap())
            if not isinstance(place, dict):
                raise UsageError(f"--set {key}: {parent} is a value, not a section. Leave out what follows it.")
        listed = name == "paths" or isinstance(place.get(name), list)
        try:
            place[name] = [t.strip() for t in text.split(",")] if listed else YAML(typ="safe").load(text)
        except YAMLError:
            raise UsageError(f"--set {key}: the value is not valid YAML. Put it in quotes within the value.") from None
    sources.load(dict(settings), f"--set, source {kind}", (folder / SOURCES).resolve())
    return settings


def _write(path: Path, settings: Any) -> None:  # noqa: ANN401 - of ruamel.yaml
    from ruamel.yaml import YAML  # noqa: PLC0415 - only here

    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 4096
    yaml.dump(settings, path)


def _edit_nightly(path: Path, source: Path) -> None:
    """Set the source in the nightly config, and remove settings of the sample."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - only here

    config = YAML().load(path)
    config.yaml_set_start_comment(
        "The nightly run on your own logs; docs/configuration.md lists every key.\n"
        "Paths are relative to this file; names without an ending are files that ship with Leadline."
    )
    config["sources"] = [source.stem]
    del config["recipe"]["grace"]
    _write(path, config)
