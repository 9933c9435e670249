"""Kinds of a thing are modules of its package: adding one is one file, and a config's `kind` names it.

A module is a kind when it has a pydantic model `Config` and a function `build`. Modules whose names begin with an
underscore, and modules without `build`, are helpers.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from tasks.core.config import did_you_mean, validate
from tasks.core.errors import ConfigError


def configured(package: ModuleType, settings: Mapping[str, object], where: object, prefix: str = "") -> tuple[Any, Any]:
    """The module that `settings["kind"]` names, and its checked `Config`.

    Args:
        where: The file that the settings come from, for messages.
        prefix: Dotted path of the settings inside the file.

    Raises:
        ConfigError: The kind is missing or unknown, or the settings don't fit it.
    """
    known = _kinds(package)
    key = f"{prefix}.kind" if prefix else "kind"
    kind = settings.get("kind")
    if kind is None:
        raise ConfigError(where, key, "is missing", f"Write one of: {', '.join(sorted(known))}.")
    if not isinstance(kind, str) or kind not in known:
        raise ConfigError(where, key, f"is {kind!r}", did_you_mean(str(kind), sorted(known), "kinds"))
    return known[kind], validate(known[kind].Config, settings, where, prefix)


def _kinds(package: ModuleType) -> dict[str, ModuleType]:
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")]
    modules = {name: importlib.import_module(f"{package.__name__}.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "build")}
