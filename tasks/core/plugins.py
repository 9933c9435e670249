"""Plug-ins: each kind is one module of a package, selected by `kind` in a config.

A module is a kind when it has a pydantic model `Config` and a function `build`; the others are helpers.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from tasks.core.config import did_you_mean, validate
from tasks.core.errors import ConfigError


def kinds(package: ModuleType) -> dict[str, ModuleType]:
    """The modules of a package that are kinds, by the name that `kind` gives them."""
    modules = {name: importlib.import_module(f"{package.__name__}.{name}") for name in _names(package)}
    return {name: module for name, module in modules.items() if hasattr(module, "build")}


def configured(
    package: ModuleType, settings: Mapping[str, object], what: str, where: object, prefix: str = ""
) -> tuple[ModuleType, Any]:
    """The module that `settings["kind"]` names, and the settings as its `Config`.

    Args:
        what: What the kinds are kinds of, for messages.
        where: The file that the settings come from, for messages.
        prefix: Dotted path of the settings inside the file.

    Raises:
        ConfigError: The kind is missing or unknown, or the settings don't fit it.
    """
    key = f"{prefix}.kind" if prefix else "kind"
    kind = settings.get("kind")
    if kind is None:
        raise ConfigError(where, key, "is missing", f"Write one of: {', '.join(kinds(package))}.")
    # The other kinds are imported for a message only: some take a while.
    module = importlib.import_module(f"{package.__name__}.{kind}") if kind in _names(package) else None
    if module is None or not hasattr(module, "build"):
        remedy = did_you_mean(str(kind), list(kinds(package)), f"kinds of {what}")
        raise ConfigError(where, key, f"is {kind!r}, which is no kind of {what}", remedy)
    return module, validate(module.Config, settings, where, prefix)


def _names(package: ModuleType) -> list[str]:
    return sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_"))
