"""Claim extractors: how an answer is cut into claims (METHODS section 2).

One file per kind. A kind exposes a pydantic model `Config` and `build(config) -> Extractor`; adding one is one file
here. `markdown.py` and `citations.py` are what the kinds share. Leaves out what happens to the claims next.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import cast

from tasks.core.config import did_you_mean, validate
from tasks.core.errors import ConfigError
from tasks.core.types import Extractor


def _plugins() -> dict[str, ModuleType]:
    """The modules of this package that are extractors, by kind."""
    names = [m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "build")}


def load(settings: Mapping[str, object], where: str, prefix: str = "") -> Extractor:
    """The extractor that a config describes.

    Args:
        settings: The settings as read; their `kind` picks the module.
        where: The config file, as the user named it; for errors.
        prefix: Dotted path of the settings inside the file; for errors.

    Raises:
        ConfigError: The kind is unknown, or the settings don't fit it.
    """
    plugins, key = _plugins(), f"{prefix}.kind" if prefix else "kind"
    kind = settings.get("kind")
    if kind is None:
        raise ConfigError(where, key, "is missing", f"Write one of: {', '.join(sorted(plugins))}.")
    module = plugins.get(kind) if isinstance(kind, str) else None
    if module is None:
        remedy = did_you_mean(str(kind), list(plugins), "kinds of extractor")
        raise ConfigError(where, key, f"is {kind!r}, which is no kind of extractor", remedy)
    return cast("Extractor", module.build(validate(module.Config, settings, where, prefix)))
