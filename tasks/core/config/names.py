"""Files that ship with Leadline, by name: `judge: nli` needs no path and no copy of the file.

A value that ends in `.yaml`, `.yml` or `.md` is a path, relative to the file that contains it. Any other value is a
name. It stands for the file of this name in the folder of its kind (`judges/nli.yaml`) beside the config, if there is
one, and otherwise for the file that ships with Leadline. A file in a folder `judges` counts as beside its folder.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, ValidationInfo

from tasks.core.config.base import did_you_mean, placed
from tasks.core.errors import ConfigError, UsageError
from tasks.core.paths import CONFIG, SHIPPED

Kind = Literal["judges", "graders", "prompts", "recipes", "sources"]
ENDINGS = {"judges": ".yaml", "graders": ".yaml", "prompts": ".md", "recipes": ".yaml", "sources": ".yaml"}
_SHIPPED = SHIPPED / CONFIG.parent


def is_path(given: Path | str) -> bool:
    """Whether a value is a path rather than a name."""
    return str(given).endswith((".yaml", ".yml", ".md"))


def shipped(kind: Kind) -> list[str]:
    """Names of the files of a kind that ship with Leadline."""
    folder, ending = _SHIPPED / kind, ENDINGS[kind]
    return sorted(str(p.relative_to(folder)).removesuffix(ending) for p in folder.rglob(f"*{ending}"))


def resolved(given: Path, kind: Kind, base: Path) -> Path:
    """The file that a path or a name stands for; a path may lead nowhere.

    Args:
        base: Folder of the file that contains it.

    Raises:
        ValueError: No file has this name; says which there are.
    """
    if is_path(given):
        return (base / given.expanduser()).resolve()
    base = base.resolve()
    home = base.parent if base.name in ENDINGS else base
    name = f"{given}{ENDINGS[kind]}"
    if not given.is_absolute() and ".." not in given.parts:
        for folder in (home, _SHIPPED):
            if (path := folder / kind / name).is_file():
                return path.resolve()
    known = shipped(kind)
    near = did_you_mean(str(given), known, kind)
    names = "" if near.startswith("Known") else f" Known {kind}: {', '.join(known)}."
    raise ValueError(
        f"is neither a path (which ends in {ENDINGS[kind]}) nor a name: {home / kind / name} does not exist, and no "
        f"file of this name ships with Leadline. {near}{names}"
    )


def resolved_in(given: Path, kind: Kind, where: str, key: str) -> Path:
    """The file that a key of a config names; see `resolved`.

    Args:
        where: The config file.

    Raises:
        ConfigError: No file has this name.
    """
    try:
        return resolved(given, kind, Path(where).parent)
    except ValueError as error:
        raise ConfigError(where, key, f"is {str(given)!r}", f"It {error}") from None


def given_file(given: Path, kind: Kind, config: Path = CONFIG) -> Path:
    """The file that a command line names; a path is relative to the working directory.

    Args:
        config: The nightly config, beside which a name is looked up first.

    Raises:
        UsageError: No file has this name.
    """
    if is_path(given):
        return given
    try:
        return resolved(given, kind, config.parent)
    except ValueError as error:
        raise UsageError(f"{str(given)!r} {error}") from None


def written(path: Path, kind: Kind, base: Path) -> Path | None:
    """The name of a file that ships with Leadline, if configs in `base` find this file by it; otherwise None."""
    name = Path(path.stem)
    try:
        return name if resolved(name, kind, base) == path.resolve() == (_SHIPPED / kind / path.name).resolve() else None
    except ValueError:
        return None


def _file(kind: Kind) -> AfterValidator:
    def find(path: Path, info: ValidationInfo) -> Path:
        return resolved(path, kind, info.context["base"]) if info.context else placed(path, info)

    return AfterValidator(find)


JudgeFile = Annotated[Path, _file("judges")]
GraderFile = Annotated[Path, _file("graders")]
RecipeFile = Annotated[Path, _file("recipes")]
SourceFile = Annotated[Path, _file("sources")]
